//! The one thing in the footer that the parquet crate reads and does not tell:
//! the file's own part of the additional authenticated data.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::thrift::{Compact, Value};

/// Far above any footer that this crate writes.
const MOST_FOOTER_BYTES: u64 = 1 << 30;

/// `aad_prefix` (the caller's, or the stored one) followed by `aad_file_unique`.
pub(super) fn file_aad(file: &mut File, prefix: Option<&[u8]>) -> io::Result<Vec<u8>> {
    let bad = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the footer does not name its cipher",
        )
    };
    let length = file.seek(SeekFrom::End(0))?;
    let mut tail = [0; 8];
    file.seek(SeekFrom::Start(length.checked_sub(8).ok_or_else(bad)?))?;
    file.read_exact(&mut tail)?;
    let [a, b, c, d, magic @ ..] = tail;
    let footer_bytes = u64::from(u32::from_le_bytes([a, b, c, d]));
    let start = (length - 8).checked_sub(footer_bytes).ok_or_else(bad)?;
    if footer_bytes > MOST_FOOTER_BYTES {
        return Err(bad());
    }
    let mut footer = vec![0; footer_bytes as usize];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut footer)?;

    // An encrypted footer begins with FileCryptoMetaData, whose first field is the
    // algorithm; a plain one is FileMetaData, whose eighth is.
    let algorithm = if &magic == b"PARE" { 1 } else { 8 };
    let parts = || {
        let mut thrift = Compact::new(&footer);
        thrift.enter(algorithm)?;
        // The union's first member: AES_GCM_V1.
        thrift.enter(1)?;
        let (mut stored_prefix, mut unique) = (None, None);
        thrift.fields(|id, value| match (id, value) {
            (1, Value::Bytes(bytes)) => stored_prefix = Some(bytes),
            (2, Value::Bytes(bytes)) => unique = Some(bytes),
            _ => {}
        })?;
        let prefix = prefix.or(stored_prefix).unwrap_or_default();
        Some([prefix, unique?].concat())
    };
    parts().ok_or_else(bad)
}
