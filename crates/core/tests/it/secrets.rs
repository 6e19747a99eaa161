//! Keys are in no error and in no `Debug` output.

use std::fs::File;
use std::sync::Arc;

use alloquet_core::{ReadStrategy, ReaderBuilder};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use parquet::encryption::decrypt::{FileDecryptionProperties, KeyRetriever};
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::errors::Result;

use crate::generated::{all_types, properties, write};
use crate::support::{options, strategies};

const KEY: &[u8] = b"sEcReTfOoTeR-k3y";
const COLUMN_KEY: &[u8] = b"an0therSecretK3yFor1ColumnAlone!";
const WRONG_KEY: &[u8] = b"wR0ngKeyTh4tIs-Also-aSecret-Key!";
/// No AES key is so long.
const LONG_KEY: &[u8] = b"a-key-of-20-bytes-!!";

/// Every form in which text could show a key.
fn forms(key: &[u8]) -> Vec<String> {
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    // Half a key is too much, too. Pieces of base64 begin at a multiple of three bytes.
    let half = key.len() / 2;
    vec![
        String::from_utf8_lossy(&key[..half]).into_owned(),
        String::from_utf8_lossy(&key[half..]).into_owned(),
        hex[..key.len()].to_uppercase(),
        hex[..key.len()].to_owned(),
        hex[key.len()..].to_owned(),
        STANDARD.encode(key),
        STANDARD_NO_PAD.encode(&key[..half / 3 * 3]),
        URL_SAFE_NO_PAD.encode(&key[..half / 3 * 3]),
        // A `Debug` of bytes.
        format!("{:?}", &key[..half])
            .trim_matches(['[', ']'])
            .to_owned(),
        format!("{:#?}", &key[..half])
            .trim_matches(['[', ']'])
            .to_owned(),
    ]
}

fn assert_silent(text: &str) {
    for key in [KEY, COLUMN_KEY, WRONG_KEY, LONG_KEY] {
        for form in forms(key) {
            assert!(!text.contains(&form), "{form} is in: {text}");
        }
    }
}

#[test]
fn the_forms_are_found() {
    let shown = format!("{KEY:?} {COLUMN_KEY:x?}");
    let is_shown = |key| forms(key).iter().any(|form| shown.contains(form.as_str()));
    assert!(is_shown(KEY) && !is_shown(WRONG_KEY));
}

/// Hands out a key by its metadata, and names none.
struct Retriever(&'static [u8]);

impl KeyRetriever for Retriever {
    fn retrieve_key(&self, _: &[u8]) -> Result<Vec<u8>> {
        Ok(self.0.to_vec())
    }
}

fn keys(footer: &[u8], column: &[u8]) -> Arc<FileDecryptionProperties> {
    let keys = FileDecryptionProperties::builder(footer.to_vec());
    let keys = keys.with_column_key("utf8", column.to_vec());
    keys.build().unwrap()
}

#[test]
fn nothing_shows_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let encryption = FileEncryptionProperties::builder(KEY.to_vec())
        .with_column_key("utf8", COLUMN_KEY.to_vec())
        .with_plaintext_footer(true)
        .build()
        .unwrap();
    let properties = properties().with_file_encryption_properties(encryption);
    write(&path, &all_types(), properties.build());

    let retrieved = |key| {
        let keys = FileDecryptionProperties::with_key_retriever(Arc::new(Retriever(key)));
        keys.disable_footer_signature_verification()
            .build()
            .unwrap()
    };
    let mut errors = 0;
    for keys in [
        keys(KEY, COLUMN_KEY),
        keys(KEY, WRONG_KEY),
        keys(KEY, LONG_KEY),
        keys(WRONG_KEY, COLUMN_KEY),
        keys(LONG_KEY, LONG_KEY),
        retrieved(WRONG_KEY),
        retrieved(LONG_KEY),
    ] {
        for strategy in strategies() {
            let builder = ReaderBuilder::try_new_with_options(
                File::open(&path).unwrap(),
                options(Some(&keys)),
            );
            errors += usize::from(read(builder, strategy));
        }
    }
    assert!(errors > 20, "{errors} errors");

    // Keys that come beside metadata, which hold them only then.
    let builder = ReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    for keys in [
        keys(KEY, COLUMN_KEY),
        keys(KEY, WRONG_KEY),
        retrieved(LONG_KEY),
    ] {
        let builder = builder.with_source(File::open(&path).unwrap());
        read(
            Ok(builder.with_file_decryption_properties(keys)),
            ReadStrategy::default(),
        );
    }
}

/// Reads a file and looks at what can be shown on the way; whether there was an error.
fn read(builder: Result<ReaderBuilder<File>>, strategy: ReadStrategy) -> bool {
    let reader = builder.and_then(|builder| {
        assert_silent(&format!("{builder:?} {builder:#?}"));
        if let Err(error) = builder.pages() {
            assert_silent(&format!("{error} {error:?} {error:#?}"));
        }
        builder.with_strategy(strategy).build()
    });
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => {
            assert_silent(&format!("{error} {error:?} {error:#?}"));
            return true;
        }
    };
    assert_silent(&format!("{reader:?} {reader:#?}"));
    let error = reader.find_map(std::result::Result::err);
    assert_silent(&format!("{reader:?} {:?}", reader.ledger()));
    let Some(error) = error else {
        return false;
    };
    assert_silent(&format!("{error} {error:?} {error:#?}"));
    true
}
