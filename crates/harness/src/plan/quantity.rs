//! Sizes and lengths of time as they are written: `256MiB`, `10m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use alloquet_report::format::mib;
use serde::Deserialize;

/// An amount of memory, in bytes; 1 MiB at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Written")]
pub(crate) struct Bytes(pub(crate) u64);

/// The least that is taken for an amount: a number without its unit is far below.
const LEAST: u64 = 1 << 20;

const SIZE_UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let no_size = || format!("'{text}' is no size: write it as 256MiB, 1.5GiB or in bytes");
        let (number, unit) = number_and_unit(text).ok_or_else(no_size)?;
        let known = SIZE_UNITS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit));
        let (_, factor) = known.ok_or_else(no_size)?;
        let bytes = number * *factor as f64;
        // Every number of bytes that a machine can have is far below.
        if bytes < LEAST as f64 {
            return Err(format!(
                "'{text}' is less memory than any process takes: was {number}MiB meant?"
            ));
        }
        if bytes >= 1e18 {
            return Err(format!(
                "'{text}' is no amount of memory that there could be"
            ));
        }
        Ok(Self(bytes as u64))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mib(self.0))
    }
}

/// What a TOML can hold of an amount.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Text(String),
}

impl TryFrom<Written> for Bytes {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Number(bytes) => bytes.to_string().parse(),
            Written::Text(text) => text.parse(),
        }
    }
}

/// A length of time such as `90s`, `10m` or `2h`; a bare number is seconds.
///
/// # Errors
///
/// It is none, or is 0.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let no_time = || format!("'{text}' is no length of time: write it as 90s, 10m or 2h");
    let (number, unit) = number_and_unit(text).ok_or_else(no_time)?;
    let factor = match unit {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(no_time()),
    };
    let seconds = number * factor;
    if !(0.001..1e9).contains(&seconds) {
        return Err(no_time());
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_with_their_unit() {
        let bytes = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0);
        assert_eq!(bytes("256MiB"), Ok(256 << 20));
        assert_eq!(bytes("1.5 gib"), Ok(3 << 29));
        assert_eq!(bytes("2097152"), Ok(2 << 20));
        assert_eq!(bytes("2MB"), Ok(2_000_000));
        for wrong in [
            "",
            "1000",
            "MiB",
            "12 parsecs",
            "-1MiB",
            "0",
            "1e9",
            "9999999999GiB",
        ] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_written_with_their_unit() {
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        for wrong in ["", "0s", "m", "3d", "-1s", "1e99h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
