//! The key file: TOML read by hand, because the messages of a derived reader
//! repeat the values they complain about.

use std::path::Path;

use toml::{Table, Value};

use super::{KeyError, KeySet, KeySource};

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
                format!("unknown name{}, expected {NAMES}", shown(name)),
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
                let place = place(&format!("column_keys{}", shown(column)));
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

/// A name, unless it looks as if key and name had been swapped.
fn shown(name: &str) -> String {
    let looks_like_a_key = name.contains(':') || (name.len() >= 16 && !name.contains(['.', '_']));
    if looks_like_a_key {
        " (not shown: it looks like a key)".to_owned()
    } else {
        format!(" `{name}`")
    }
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
            format!("footer_key = 'text:{secret}'\nfooter_key = 'text:{secret}'"),
        ] {
            let error = error(&text);
            assert!(!error.contains(secret), "{error}");
        }
    }

    #[test]
    fn a_number_is_not_repeated() {
        assert!(!error("footer_key = 1234567890123456").contains("12345678"));
    }
}
