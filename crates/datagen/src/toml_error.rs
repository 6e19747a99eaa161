//! What is said of a TOML text that does not parse: the line, and never a value, which could be a key.

/// A message of the TOML reader, without the value or name it may repeat: where a
/// key stands in the wrong place, that is the key. The line tells where it is.
pub(crate) fn without_values(message: &str) -> String {
    for kind in ["invalid type", "invalid value", "invalid length"] {
        if message.starts_with(kind) {
            return match message.rsplit_once(", expected ") {
                Some((_, expected)) => format!("{kind}, expected {expected}"),
                None => kind.to_owned(),
            };
        }
    }
    let named = message
        .strip_prefix("unknown ")
        .and_then(|rest| rest.split_once(" `"));
    let Some((kind, rest)) = named else {
        return message.to_owned();
    };
    // What is expected stands last: the name may hold anything, this text too.
    let (name, expected) = match rest.rsplit_once("`, expected ") {
        Some((name, expected)) => (name, format!(", expected {expected}")),
        None => (rest.trim_end_matches('`'), String::new()),
    };
    let is_shown = match kind {
        "field" | "variant" => cannot_be_a_key(name),
        // The type or codec of a column, which may hold digits and brackets.
        _ => !name.contains(':'),
    };
    if is_shown {
        message.to_owned()
    } else {
        format!("unknown {kind} ({NOT_SHOWN}){expected}")
    }
}

/// Said in place of a name that may be a key.
pub(crate) const NOT_SHOWN: &str = "not shown: it may be a key";

/// Whether a name that is not known can be shown: it looks like those that are,
/// and does not have the length of a key.
pub(crate) fn cannot_be_a_key(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-');
    name.bytes().all(is_plain) && !matches!(name.len(), 16 | 32)
}

/// The line, counted from 1, of a byte offset.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().iter().take(offset);
    before.filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_values_and_keep_names() {
        for (message, expected) in [
            (
                "invalid type: string \"s3cret\", expected a map",
                "invalid type, expected a map",
            ),
            (
                "invalid type: string \"a, expected b\", expected u64",
                "invalid type, expected u64",
            ),
            (
                "unknown field `typ`, expected `type`",
                "unknown field `typ`, expected `type`",
            ),
            (
                "unknown field `text:s3cret`, expected `footer_key`",
                "unknown field (not shown: it may be a key), expected `footer_key`",
            ),
            (
                "unknown variant `abcdefghijklmnop`, expected `none` or `test-kms`",
                "unknown variant (not shown: it may be a key), expected `none` or `test-kms`",
            ),
            (
                "unknown variant `test_kms`, expected `none` or `test-kms`",
                "unknown variant `test_kms`, expected `none` or `test-kms`",
            ),
            (
                "unknown field `a`, expected `S3`, expected one of `b`, `c`",
                "unknown field (not shown: it may be a key), expected one of `b`, `c`",
            ),
            (
                "unknown field `S3`, there are no fields",
                "unknown field (not shown: it may be a key)",
            ),
            (
                "unknown type `int128`, expected one of boolean",
                "unknown type `int128`, expected one of boolean",
            ),
            ("missing field `seed`", "missing field `seed`"),
        ] {
            assert_eq!(without_values(message), expected);
        }
    }

    #[test]
    fn names_that_may_be_keys() {
        for name in ["footer", "key-metadata", "aad_prefix_", ""] {
            assert!(cannot_be_a_key(name), "{name}");
        }
        for name in [
            "Footer",
            "key1",
            "a b",
            "schlüssel",
            "MDEyMzQ1Njc4OTAxMjM0NQ==",
            "abcdefghijklmnop",
            "abcdefghijklmnopabcdefghijklmnop",
        ] {
            assert!(!cannot_be_a_key(name), "{name}");
        }
    }

    #[test]
    fn lines_count_from_one() {
        assert_eq!(line_of("a\nb\nc", 0), 1);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }
}
