//! The key file: TOML read by hand, because the messages of a derived reader
//! repeat the values they complain about.

use std::path::Path;

use toml::{Table, Value};

use super::{KeyError, KeySet, KeySource};
use crate::toml_error::{NOT_SHOWN, cannot_be_a_key};

const NAMES: &str = "footer_key, aad_prefix and [column_keys]";

pub(super) fn parse(text: &str, origin: &str, folder: Option<&Path>) -> Result<KeySet, KeyError> {
    let table: Table = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map(|span| format!(" at line {}", crate::toml_error::line_of(text, span.start)))
            .unwrap_or_default();
        KeyError::new(
            origin,
            format!("is not TOML{line}; expected {NAMES}, each key as \"text:…\", \"hex:…\", \"base64:…\", \"env:NAME\" or \"file:PATH\""),
        )
    })?;

    for name in table.keys() {
        if !["footer_key", "aad_prefix", "column_keys"].contains(&name.as_str()) {
            return Err(KeyError::new(
                origin,
                format!(
                    "unknown name{}, expected {NAMES}",
                    named(name, cannot_be_a_key(name))
                ),
            ));
        }
    }

    let place = |name: &str| format!("{origin}: {name}");
    let footer_key = table
        .get("footer_key")
        .ok_or_else(|| KeyError::new(origin, "footer_key is missing"))?;
    let footer_place = place("footer_key");
    let footer_key = source(footer_key, &footer_place)?.resolve_key(folder, &footer_place)?;
    let mut keys = KeySet::new(footer_key);

    if let Some(prefix) = table.get("aad_prefix") {
        let place = place("aad_prefix");
        keys = keys.with_aad_prefix(source(prefix, &place)?.resolve(folder, &place)?);
    }

    match table.get("column_keys") {
        None => {}
        Some(Value::Table(columns)) => {
            for (column, value) in columns {
                let place = place(&format!(
                    "column_keys{}",
                    named(column, is_like_a_column(column))
                ));
                let key = source(value, &place)?.resolve_key(folder, &place)?;
                keys = keys.with_column_key(column, key);
            }
        }
        Some(_) => return Err(KeyError::new(origin, "column_keys must be a table")),
    }
    Ok(keys)
}

fn source(value: &Value, place: &str) -> Result<KeySource, KeyError> {
    match value {
        Value::String(text) => KeySource::parse(text, place),
        Value::Table(_) => Err(KeyError::new(
            place,
            "must be a string; a dotted column name needs quotes",
        )),
        _ => Err(KeyError::new(place, "must be a string")),
    }
}

fn named(name: &str, is_shown: bool) -> String {
    if is_shown {
        format!(" `{name}`")
    } else {
        format!(" ({NOT_SHOWN})")
    }
}

/// Unlike an unknown name, a column's may hold anything. It looks like a key, as
/// if the two had been swapped, with a source's colon or as long as one.
fn is_like_a_column(name: &str) -> bool {
    let long_as_a_key = matches!(name.len(), 16 | 24 | 32 | 44 | 64);
    let is_word = name.len() < 16 || name.contains(['.', '_']);
    !name.contains(':') && !long_as_a_key && is_word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text, "keys.toml", None).unwrap_err().to_string()
    }

    #[test]
    fn reads_every_part() {
        let keys = parse(
            "footer_key = 'text:0123456789012345'\naad_prefix = 'text:tester'\n[column_keys]\n'a.b' = 'hex:31323334353637383930313233343530'\n",
            "keys.toml",
            None,
        )
        .unwrap();
        assert_eq!(keys.footer_key().bytes(), b"0123456789012345");
        assert_eq!(keys.aad_prefix(), Some(&b"tester"[..]));
        let columns: Vec<_> = keys
            .column_keys()
            .map(|(column, key)| (column, key.bytes()))
            .collect();
        assert_eq!(columns, [("a.b", &b"1234567890123450"[..])]);
    }

    #[test]
    fn unknown_names_and_missing_keys_are_told() {
        assert_eq!(
            error("footer = 'text:0123456789012345'"),
            "keys.toml: unknown name `footer`, expected footer_key, aad_prefix and [column_keys]"
        );
        assert_eq!(error(""), "keys.toml: footer_key is missing");
        assert!(
            error("footer_key = 'text:0123456789012345'\n[column_keys]\na.b = 'x'")
                .contains("dotted column name needs quotes")
        );
    }

    #[test]
    fn no_error_repeats_a_value() {
        let secret = "sEcReTsEcReTsEcR";
        for text in [
            format!("footer_key = '{secret}'"),
            format!("footer_key = {secret}"),
            format!("footer_key = 'text:{secret}x'"),
            format!("footer_key = 'hex:{secret}'"),
            format!("footer_key = ['{secret}']"),
            format!("footer_key = 'text:{secret}\n"),
            format!("footer_key = 'text:{secret}'\n[column_keys]\n'{secret}' = 'a.b'"),
            format!("footer_key = 'text:{secret}'\n[column_keys]\n'text:{secret}' = 'a.b'"),
            format!("footer_key = 'text:{secret}'\ncolumn_keys = '{secret}'"),
            format!("{secret} = 'text:0123456789012345'"),
            format!("[{secret}]"),
            format!("footer_key = 'text:{secret}'\n[column_keys]\n'_{secret}_12345.' = 'a.b'"),
            format!("footer_key = 'text:{secret}'\nfooter_key = 'text:{secret}'"),
        ] {
            let error = error(&text);
            assert!(!error.contains(secret), "{error}");
        }
    }

    #[test]
    fn an_unknown_name_as_long_as_a_key_is_not_shown() {
        for name in [
            "abcdefghijklmnop",
            "abcdefghijklmnop_abcdefghijklmno",
            "k3y",
        ] {
            let error = error(&format!("{name} = 'text:0123456789012345'"));
            assert!(
                error.contains("unknown name (not shown: it may be a key), expected footer_key"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_number_is_not_repeated() {
        assert!(!error("footer_key = 1234567890123456").contains("12345678"));
    }
}
