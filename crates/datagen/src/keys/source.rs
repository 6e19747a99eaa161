//! A key's source: where its bytes are to be found.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

use super::{Key, KeyError};
use crate::toml_error::NOT_SHOWN;

const FORMS: &str = "text:…, hex:…, base64:…, env:NAME or file:PATH";

/// Where a key (or an AAD prefix) comes from. Its `Debug` shows the form only.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySource(Form);

#[derive(Clone, PartialEq, Eq)]
enum Form {
    /// The bytes stand in the definition or key file itself.
    Inline(Zeroizing<Vec<u8>>),
    /// An environment variable's name.
    Env(String),
    /// A file's path.
    File(PathBuf),
}

impl KeySource {
    /// Reads a source; `place` names the key in the error.
    ///
    /// # Errors
    ///
    /// An unknown form, or `hex:` and `base64:` that are not. The text itself is
    /// never in the error.
    pub fn parse(text: &str, place: &str) -> Result<Self, KeyError> {
        let fail = |problem: &str| Err(KeyError::new(place, problem));
        let Some((form, rest)) = text.split_once(':') else {
            return fail(&format!("must be {FORMS}"));
        };
        let form = match form {
            "text" => Form::Inline(Zeroizing::new(rest.as_bytes().to_vec())),
            "hex" => match decode_hex(rest) {
                Some(bytes) => Form::Inline(Zeroizing::new(bytes)),
                None => return fail("hex: is not followed by an even number of hex digits"),
            },
            "base64" => match STANDARD.decode(rest) {
                Ok(bytes) => Form::Inline(Zeroizing::new(bytes)),
                Err(_) => return fail("base64: is not followed by padded base64"),
            },
            "env" if rest.is_empty() || rest.contains(['=', '\0']) => {
                return fail("env: must be followed by a variable's name");
            }
            "env" => Form::Env(rest.to_owned()),
            "file" if rest.is_empty() => return fail("file: must be followed by a path"),
            "file" => Form::File(PathBuf::from(rest)),
            _ => return fail(&format!("must be {FORMS}")),
        };
        Ok(Self(form))
    }

    /// Whether the key stands in the text itself, which makes it a test key in
    /// a dataset definition: only such a key may go into a file's metadata.
    #[must_use]
    pub fn is_inline(&self) -> bool {
        matches!(self.0, Form::Inline(_))
    }

    /// Fetches the bytes; a relative `file:` is looked for in `folder`.
    ///
    /// A variable's value and a file's content may be a `text:`, `hex:` or
    /// `base64:` source again; anything else is taken as the bytes themselves,
    /// without one trailing newline.
    ///
    /// # Errors
    ///
    /// The variable or file is missing, or holds a malformed `hex:` or `base64:`.
    pub fn resolve(&self, folder: Option<&Path>, place: &str) -> Result<Vec<u8>, KeyError> {
        match &self.0 {
            Form::Inline(bytes) => Ok(bytes.to_vec()),
            Form::Env(name) => {
                let value = std::env::var_os(name).ok_or_else(|| {
                    let name = shown_variable(name);
                    KeyError::new(place, format!("the environment variable {name} is not set"))
                })?;
                outside(value.into_encoded_bytes(), place)
            }
            Form::File(path) => {
                let whole = folder.map_or_else(|| path.clone(), |folder| folder.join(path));
                let bytes = std::fs::read(&whole).map_err(|error| {
                    let path = shown_path(path, &whole);
                    KeyError::new(place, format!("cannot read {path}: {error}"))
                })?;
                outside(bytes, place)
            }
        }
    }

    /// As [`resolve`](Self::resolve), and checks the length.
    pub(crate) fn resolve_key(&self, folder: Option<&Path>, place: &str) -> Result<Key, KeyError> {
        Key::new(self.resolve(folder, place)?, place)
    }

    /// The source as text that tells two sources apart, for the definition's
    /// hash. Holds an inline key: only ever fed to the hash.
    pub(crate) fn identity(&self) -> String {
        match &self.0 {
            Form::Inline(bytes) => format!("base64:{}", STANDARD.encode(bytes.as_slice())),
            Form::Env(name) => format!("env:{name}"),
            Form::File(path) => format!("file:{}", path.display()),
        }
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Inline(bytes) => write!(f, "KeySource(inline, {} bytes)", bytes.len()),
            Form::Env(name) => write!(f, "KeySource(env:{})", shown_variable(name)),
            Form::File(path) => write!(f, "KeySource(file:{})", shown_path(path, path)),
        }
    }
}

impl<'de> Deserialize<'de> for KeySource {
    /// Takes any value first: serde's own "invalid type" would repeat it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fail = |error: KeyError| serde::de::Error::custom(error.problem);
        let toml::Value::String(text) = toml::Value::deserialize(deserializer)? else {
            return Err(fail(KeyError::new(
                "",
                format!("a key must be a string: {FORMS}"),
            )));
        };
        Self::parse(&text, "").map_err(|mut error| {
            error.problem.insert_str(0, "a key ");
            fail(error)
        })
    }
}

/// A variable's name, unless the key itself may have been put there.
fn shown_variable(name: &str) -> Cow<'_, str> {
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && !name.starts_with(|first: char| first.is_ascii_digit());
    if is_name {
        name.into()
    } else {
        format!("(name {NOT_SHOWN}; use upper-case letters, digits and _)").into()
    }
}

/// Where a file is, unless the `written` path may be the key itself: a path has
/// a slash or an extension, and does not end as base64 does.
fn shown_path<'a>(written: &Path, whole: &'a Path) -> Cow<'a, str> {
    let text = written.to_string_lossy();
    if text.contains(['/', '.']) && !text.ends_with('=') {
        whole.to_string_lossy()
    } else {
        format!("its file (path {NOT_SHOWN}; write ./ before it)").into()
    }
}

fn outside(mut bytes: Vec<u8>, place: &str) -> Result<Vec<u8>, KeyError> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    let mut bytes = Zeroizing::new(bytes);
    match std::str::from_utf8(&bytes) {
        Ok(text)
            if ["text:", "hex:", "base64:"]
                .iter()
                .any(|form| text.starts_with(form)) =>
        {
            KeySource::parse(text, place)?.resolve(None, place)
        }
        _ => Ok(std::mem::take(&mut *bytes)),
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| (byte as char).to_digit(16);
    text.as_bytes()
        .chunks_exact(2)
        .map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        KeySource::parse(text, "k")
            .unwrap()
            .resolve(None, "k")
            .unwrap()
    }

    #[test]
    fn inline_forms() {
        assert_eq!(bytes("text:a:b"), b"a:b");
        assert_eq!(bytes("hex:00fFa1"), [0x00, 0xff, 0xa1]);
        assert_eq!(bytes("base64:AQID"), [1, 2, 3]);
    }

    #[test]
    fn malformed_sources_are_not_repeated() {
        for text in [
            "topsecret",
            "hexa:topsecret",
            "hex:topsecret!",
            "base64:topsecret!",
            "hex:abc",
        ] {
            let error = KeySource::parse(text, "footer_key")
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("footer_key: "), "{error}");
            assert!(
                !error.contains("topsecret") && !error.contains("abc"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_file_is_relative_to_its_folder_and_may_hold_a_source() {
        let folder = tempfile::tempdir().unwrap();
        for (content, expected) in [
            (&b"0123456789012345\n"[..], &b"0123456789012345"[..]),
            (b"hex:0102\r\n", &[1, 2]),
            (&[0xff, 0xfe], &[0xff, 0xfe]),
        ] {
            let mut file = std::fs::File::create(folder.path().join("key")).unwrap();
            file.write_all(content).unwrap();
            let source = KeySource::parse("file:key", "k").unwrap();
            assert_eq!(source.resolve(Some(folder.path()), "k").unwrap(), expected);
        }
    }

    #[test]
    fn a_missing_variable_is_named() {
        let source = KeySource::parse("env:ALLOQUET_NO_SUCH_VARIABLE", "footer_key").unwrap();
        assert_eq!(
            source.resolve(None, "footer_key").unwrap_err().to_string(),
            "footer_key: the environment variable ALLOQUET_NO_SUCH_VARIABLE is not set"
        );
    }

    #[test]
    fn a_key_in_place_of_a_variable_or_path_is_not_repeated() {
        for (text, problem) in [
            (
                "env:topsecret0123456",
                "k: the environment variable (name not shown: it may be a key; use upper-case letters, digits and _) is not set",
            ),
            (
                "env:0TOPSECRET",
                "k: the environment variable (name not shown",
            ),
            (
                "file:topsecret0123456",
                "k: cannot read its file (path not shown: it may be a key; write ./ before it): ",
            ),
            ("file:dG9w/3NlY3JldHRvcA==", "k: cannot read its file ("),
        ] {
            let source = KeySource::parse(text, "k").unwrap();
            let folder = tempfile::tempdir().unwrap();
            let error = source.resolve(Some(folder.path()), "k").unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with(problem), "{error}");
            let secret = text.split_once(':').unwrap().1;
            for shown in [error, format!("{source:?}")] {
                assert!(!shown.contains(secret), "{shown}");
            }
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        for text in ["keys/footer", "./footer", "footer.key"] {
            let source = KeySource::parse(&format!("file:{text}"), "k").unwrap();
            let error = source.resolve(Some("no-such-folder".as_ref()), "k");
            let error = error.unwrap_err().to_string();
            let start = format!("k: cannot read no-such-folder/{text}: ");
            assert!(error.starts_with(&start), "{error}");
            assert_eq!(format!("{source:?}"), format!("KeySource(file:{text})"));
        }
    }

    #[test]
    fn debug_hides_inline_keys() {
        let source = KeySource::parse("text:topsecret", "k").unwrap();
        assert_eq!(format!("{source:?}"), "KeySource(inline, 9 bytes)");
    }
}
