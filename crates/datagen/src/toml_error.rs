//! What is said of a TOML text that does not parse: the line, and never a value, which could be a key.

/// A message of the TOML reader, without the value or key source it may repeat:
/// in `[encryption]` that could be a key. The line tells where it is.
pub(crate) fn without_values(message: &str) -> String {
    for kind in ["invalid type", "invalid value", "invalid length"] {
        if message.starts_with(kind) {
            return match message.rsplit_once(", expected ") {
                Some((_, expected)) => format!("{kind}, expected {expected}"),
                None => kind.to_owned(),
            };
        }
    }
    let named = message.strip_prefix("unknown ").and_then(|rest| {
        let (kind, rest) = rest.split_once(" `")?;
        let (name, rest) = rest.split_once('`')?;
        name.contains(':')
            .then(|| format!("unknown {kind} (not shown: it looks like a key){rest}"))
    });
    named.unwrap_or_else(|| message.to_owned())
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
                "unknown field (not shown: it looks like a key), expected `footer_key`",
            ),
            ("missing field `seed`", "missing field `seed`"),
        ] {
            assert_eq!(without_values(message), expected);
        }
    }

    #[test]
    fn lines_count_from_one() {
        assert_eq!(line_of("a\nb\nc", 0), 1);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }
}
