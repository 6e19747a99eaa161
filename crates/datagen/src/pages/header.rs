//! A page's header: the three numbers in it that are wanted, in the clear or
//! decrypted. Page bodies are not read.

use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::thrift::{Compact, Value};
use crate::keys::Key;

/// Length prefix, nonce and tag that encryption adds to a module.
pub(super) const FRAMING: usize = LENGTH + NONCE + TAG;
const LENGTH: usize = 4;
const NONCE: usize = 12;
const TAG: usize = 16;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes of the header itself, as stored.
    pub(super) header_bytes: usize,
    /// Bytes of the body, decompressed.
    pub(super) page_bytes: u64,
    /// Bytes of the body, as stored.
    pub(super) stored_bytes: u64,
    /// Values of the page, nulls included.
    pub(super) values: u64,
}

impl Header {
    /// Reads a header that lies at the start of `bytes`.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut thrift = Compact::new(bytes);
        let mut numbers = [None; 3];
        thrift.fields(|id, value| {
            if let (1..=3, Value::Integer(number)) = (id, value) {
                numbers[id as usize - 1] = u64::try_from(number).ok();
            }
        })?;
        let header_bytes = thrift.position();
        let [kind, page_bytes, stored_bytes] = numbers;
        // Each kind of page has its own header, in which the first field is the
        // number of values.
        let own_header = match kind? {
            0 => 5,
            2 => 7,
            3 => 8,
            _ => return None,
        };
        let mut values = None;
        let mut own = Compact::new(bytes);
        own.enter(own_header)?;
        own.fields(|id, value| {
            if let (1, Value::Integer(number)) = (id, value) {
                values = u64::try_from(number).ok();
            }
        })?;
        Some(Self {
            header_bytes,
            page_bytes: page_bytes?,
            stored_bytes: stored_bytes?,
            values: values?,
        })
    }

    /// Reads an encrypted header that lies at the start of `bytes`.
    pub(super) fn decrypt(bytes: &[u8], decryptor: &Decryptor, aad: &[u8]) -> Option<Self> {
        let length = u32::from_le_bytes(bytes.get(..LENGTH)?.try_into().ok()?);
        let end = LENGTH.checked_add(usize::try_from(length).ok()?)?;
        let plain = decryptor.open(bytes.get(LENGTH..end)?, aad)?;
        let header = Self::read(&plain)?;
        Some(Self {
            header_bytes: end,
            ..header
        })
    }
}

/// A column's key, ready for use.
pub(super) struct Decryptor(LessSafeKey);

impl Decryptor {
    pub(super) fn new(key: &Key) -> Option<Self> {
        let algorithm = match key.bytes().len() {
            16 => &AES_128_GCM,
            _ => &AES_256_GCM,
        };
        let key = UnboundKey::new(algorithm, key.bytes()).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// Decrypts nonce, ciphertext and tag.
    fn open(&self, module: &[u8], aad: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = module.split_at_checked(NONCE)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut buffer = sealed.to_vec();
        let length = self
            .0
            .open_in_place(nonce, Aad::from(aad), &mut buffer)
            .ok()?
            .len();
        buffer.truncate(length);
        Some(buffer)
    }
}

/// The additional authenticated data of a page header. `page` is the data page's
/// number in its chunk, or `None` for the dictionary page.
pub(super) fn header_aad(
    file_aad: &[u8],
    row_group: usize,
    column: usize,
    page: Option<usize>,
) -> Option<Vec<u8>> {
    const DATA_PAGE_HEADER: u8 = 4;
    const DICTIONARY_PAGE_HEADER: u8 = 5;
    let ordinal = |number: usize| i16::try_from(number).ok().map(i16::to_le_bytes);
    let mut aad = file_aad.to_vec();
    aad.push(match page {
        Some(_) => DATA_PAGE_HEADER,
        None => DICTIONARY_PAGE_HEADER,
    });
    aad.extend(ordinal(row_group)?);
    aad.extend(ordinal(column)?);
    if let Some(page) = page {
        aad.extend(ordinal(page)?);
    }
    Some(aad)
}
