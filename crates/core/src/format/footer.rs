//! The encryption algorithm that a file's footer names: the parquet crate reads it, but keeps the
//! file's unique AAD part to itself.
//!
//! Source: <https://github.com/apache/parquet-format/blob/master/Encryption.md>, sections 5.1 to 5.5.

use parquet::errors::{ParquetError, Result};

use super::schema;
use super::thrift::{CompactReader, FieldType, ThriftError};
use crate::source::ReadAt;

/// Length of what ends a file: the footer's length (4 bytes) and the magic (4 bytes).
const TAIL_LEN: u64 = 8;

/// How a file is encrypted: AES_GCM_V1 with this file's parts of the AAD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileEncryption {
    /// The AAD prefix, where the file stores it.
    pub(crate) aad_prefix: Option<Vec<u8>>,
    /// The part of the AAD that is unique to the file.
    pub(crate) aad_file_unique: Vec<u8>,
    /// The footer key's metadata, for a key retriever.
    pub(crate) footer_key_metadata: Option<Vec<u8>>,
}

/// Reads the footer's encryption algorithm; `None` for a file that is not encrypted.
///
/// `file_len` is the length of `source` in bytes.
pub(crate) fn read_encryption(
    source: &impl ReadAt,
    file_len: u64,
) -> Result<Option<FileEncryption>> {
    let (footer, magic) = read_footer(source, file_len)?;
    // FileCryptoMetaData: 1 algorithm, 2 key metadata. FileMetaData: 8 algorithm, 9 key metadata.
    let (algorithm_id, key_id) = match magic {
        Magic::Encrypted => (1, 2),
        Magic::Plain => (8, 9),
    };
    let mut encryption = None;
    let mut key_metadata = None;
    let parsed = CompactReader::new(&footer).structure(|r, field| {
        match (field.id, field.kind) {
            (id, FieldType::Struct) if id == algorithm_id => encryption = Some(algorithm(r)?),
            (id, FieldType::Binary) if id == key_id => key_metadata = Some(r.binary()?.to_vec()),
            _ => return Ok(false),
        }
        Ok(true)
    });
    parsed.map_err(invalid)?;

    match encryption {
        None => Ok(None),
        Some(None) => Err(ParquetError::NYI(
            "the file is encrypted with AES_GCM_CTR_V1, which is not supported".into(),
        )),
        Some(Some(found)) => Ok(Some(FileEncryption {
            footer_key_metadata: key_metadata,
            ..found
        })),
    }
}

/// Refuses a footer whose schema would take more memory or stack than its bytes justify, before the parquet crate
/// parses it. An encrypted footer is not looked at: it is authenticated before it is parsed.
///
/// `file_len` is the length of `source` in bytes.
pub(crate) fn check_schema(source: &impl ReadAt, file_len: u64) -> Result<()> {
    match read_footer(source, file_len)? {
        (footer, Magic::Plain) => schema::check(&footer).map_err(invalid),
        (_, Magic::Encrypted) => Ok(()),
    }
}

/// What a file ends with.
enum Magic {
    /// `PAR1`: the footer is a `FileMetaData`.
    Plain,
    /// `PARE`: the footer is a `FileCryptoMetaData` and an encrypted `FileMetaData`.
    Encrypted,
}

/// The footer's bytes, of a file of `file_len` bytes.
fn read_footer(source: &impl ReadAt, file_len: u64) -> Result<(Vec<u8>, Magic)> {
    let mut tail = [0u8; TAIL_LEN as usize];
    let tail_start = file_len
        .checked_sub(TAIL_LEN)
        .ok_or_else(|| ParquetError::EOF("the file is too short to be Parquet".into()))?;
    source.read_exact_at(&mut tail, tail_start)?;
    let [l0, l1, l2, l3, magic @ ..] = tail;
    let magic = match &magic {
        b"PARE" => Magic::Encrypted,
        b"PAR1" => Magic::Plain,
        _ => {
            return Err(ParquetError::General(
                "the file does not end as Parquet does".into(),
            ));
        }
    };
    let footer_len = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
    let start = tail_start
        .checked_sub(footer_len)
        .ok_or_else(|| ParquetError::EOF("the footer is said to be longer than the file".into()))?;
    let mut footer = Vec::with_capacity(footer_len as usize);
    source.append_at(&mut footer, footer_len as usize, start)?;
    Ok((footer, magic))
}

fn invalid(error: ThriftError) -> ParquetError {
    match error {
        ThriftError::Eof => ParquetError::EOF("the footer ends too early".into()),
        ThriftError::Invalid(why) => ParquetError::General(format!("the footer is invalid: {why}")),
    }
}

/// The union `EncryptionAlgorithm`: `None` stands for AES_GCM_CTR_V1.
fn algorithm(
    r: &mut CompactReader<'_>,
) -> std::result::Result<Option<FileEncryption>, ThriftError> {
    let mut found = None;
    r.structure(|r, field| {
        if field.id != 1 || field.kind != FieldType::Struct {
            return Ok(false);
        }
        let mut gcm = FileEncryption::default();
        r.structure(|r, field| {
            match (field.id, field.kind) {
                (1, FieldType::Binary) => gcm.aad_prefix = Some(r.binary()?.to_vec()),
                (2, FieldType::Binary) => gcm.aad_file_unique = r.binary()?.to_vec(),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        found = Some(gcm);
        Ok(true)
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn file(footer: &[u8], magic: &[u8; 4]) -> Bytes {
        let mut bytes = footer.to_vec();
        bytes.extend((footer.len() as u32).to_le_bytes());
        bytes.extend(magic);
        Bytes::from(bytes)
    }

    fn read(bytes: &Bytes) -> Result<Option<FileEncryption>> {
        read_encryption(bytes, bytes.len() as u64)
    }

    #[test]
    fn an_encrypted_footer_names_its_aad() {
        // { 1: { 1: { 1: "ab", 2: "xyz" } }, 2: "key" }
        let footer = [
            0x1c, 0x1c, 0x18, 2, b'a', b'b', 0x18, 3, b'x', b'y', b'z', 0, 0, 0x18, 3, b'k', b'e',
            b'y', 0,
        ];
        let found = read(&file(&footer, b"PARE")).unwrap().unwrap();
        assert_eq!(found.aad_prefix.as_deref(), Some(&b"ab"[..]));
        assert_eq!(found.aad_file_unique, b"xyz");
        assert_eq!(found.footer_key_metadata.as_deref(), Some(&b"key"[..]));
    }

    #[test]
    fn ctr_is_refused_by_name() {
        let footer = [0x1c, 0x2c, 0, 0, 0];
        let error = read(&file(&footer, b"PARE")).unwrap_err().to_string();
        assert!(error.contains("AES_GCM_CTR_V1"), "{error}");
    }

    #[test]
    fn a_plain_file_has_none() {
        assert_eq!(read(&file(&[0], b"PAR1")).unwrap(), None);
    }

    #[test]
    fn lying_footer_lengths_are_refused() {
        let mut bytes = vec![0u8; 20];
        bytes.extend(u32::MAX.to_le_bytes());
        bytes.extend(b"PARE");
        assert!(read(&Bytes::from(bytes)).is_err());
        assert!(read(&Bytes::from_static(b"PAR1")).is_err());
    }
}
