//! How quantities are written for people: the one place that decides on units and decimals.
//!
//! Files for machines (CSV, JSON) carry bytes and plain seconds and do not pass through here.

use std::fmt;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

/// Bytes with their unit: `12.3 MiB`. The one way that bytes are shown.
///
/// ```
/// assert_eq!(alloquet_report::format::mib(12_897_484), "12.3 MiB");
/// ```
#[must_use]
pub fn mib(bytes: u64) -> String {
    format!("{} MiB", mib_number(bytes as f64))
}

/// Bytes as a bare number of MiB with one decimal, for a column that is headed `MiB`.
#[must_use]
pub fn mib_number(bytes: f64) -> String {
    one_decimal(bytes / MIB)
}

/// Bytes as a bare number of KiB with one decimal, for a column that is headed `KiB`: of shares that are too small for
/// MiB.
#[must_use]
pub fn kib_number(bytes: f64) -> String {
    one_decimal(bytes / KIB)
}

/// Nothing has no sign.
fn one_decimal(number: f64) -> String {
    let text = format!("{number:.1}");
    if text == "-0.0" {
        return "0.0".to_owned();
    }
    text
}

/// Seconds with three decimals and no unit, for a column that is headed `s`.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    format!("{seconds:.3}")
}

/// A count with a comma at every thousand: `1,048,576`.
#[must_use]
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A ratio with two decimals: `0.57`.
#[must_use]
pub fn ratio(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// `1 sample`, `1,200 samples`: a count and its noun, which must take a plain `s`.
#[must_use]
pub fn plural(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(number))
}

/// The first few of `items` with commas, and how many more there are: `a, b and 2 more`.
#[must_use]
pub fn listed<T: fmt::Display>(items: impl IntoIterator<Item = T>, most: usize) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    let shown = items.len().min(most);
    let mut text = items[..shown].join(", ");
    if shown < items.len() {
        text.push_str(&format!(" and {} more", items.len() - shown));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_mib_with_one_decimal() {
        assert_eq!(mib(0), "0.0 MiB");
        assert_eq!(mib(1024 * 1024), "1.0 MiB");
        assert_eq!(mib(1_074 * 1024 * 1024 + 300_000), "1074.3 MiB");
        assert_eq!(mib_number(52_428.0), "0.0");
        assert_eq!(mib_number(52_429.0), "0.1");
        assert_eq!(kib_number(5_632.0), "5.5");
        assert_eq!(mib_number(-52_428.0), "0.0");
        assert_eq!(mib_number(-52_429.0), "-0.1");
    }

    #[test]
    fn counts_have_a_comma_at_every_thousand() {
        let pairs = [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_048_576, "1,048,576"),
        ];
        for (number, text) in pairs {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn times_and_ratios_have_fixed_decimals() {
        assert_eq!(seconds(0.0004), "0.000");
        assert_eq!(seconds(1.2345), "1.234");
        assert_eq!(ratio(0.567), "0.57");
        assert_eq!(plural(1, "pair"), "1 pair");
        assert_eq!(plural(1_200, "pair"), "1,200 pairs");
    }

    #[test]
    fn a_long_list_is_cut_and_says_so() {
        assert_eq!(listed([1, 2], 2), "1, 2");
        assert_eq!(listed([1, 2, 3, 4], 2), "1, 2 and 2 more");
        assert_eq!(listed([0; 0], 2), "");
    }
}
