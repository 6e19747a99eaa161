//! Parquet Modular Encryption, the reading side: keys of a column, AAD of a module, AES-GCM.
//!
//! Source: <https://github.com/apache/parquet-format/blob/master/Encryption.md>.
//!
//! Of key bytes this crate has one copy of its own: what a key retriever hands out, which is wiped when the cipher is
//! made. Not wiped are the keys inside the caller's [`FileDecryptionProperties`] and what the parquet crate copies of them
//! to read the footer, and the key schedule in a cipher of `ring`, which stays as long as the reader.

mod aad;
mod cipher;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::encryption::decrypt::FileDecryptionProperties;
use parquet::errors::{ParquetError, Result};
use parquet::file::column_crypto_metadata::ColumnCryptoMetaData;
use parquet::file::metadata::ColumnChunkMetaData;
use zeroize::Zeroizing;

pub(crate) use aad::Module;
pub(crate) use cipher::{FRAMING_LEN, LENGTH_LEN};

use crate::buffer::Buffer;
use crate::format::footer::FileEncryption;
use aad::Aad;
use cipher::Cipher;

/// What decrypts the columns of one file: the caller's keys and the file's part of the AAD.
pub(crate) struct FileCrypto {
    properties: Arc<FileDecryptionProperties>,
    encryption: FileEncryption,
    file_aad: Vec<u8>,
    /// Ciphers by column, `None` for the footer's: a key retriever may ask a service for each key.
    ciphers: Mutex<HashMap<Option<usize>, Arc<Cipher>>>,
}

impl FileCrypto {
    pub(crate) fn new(
        properties: Arc<FileDecryptionProperties>,
        encryption: FileEncryption,
    ) -> Self {
        // A prefix that the caller gives goes before one that the file stores, as in the parquet crate.
        let prefix = properties
            .aad_prefix()
            .or(encryption.aad_prefix.as_ref())
            .map_or(&[][..], Vec::as_slice);
        let file_aad = [prefix, &encryption.aad_file_unique].concat();
        Self {
            properties,
            encryption,
            file_aad,
            ciphers: Mutex::default(),
        }
    }

    /// What decrypts the chunk of column `column` (leaf) in row group `row_group`.
    pub(crate) fn column(
        &self,
        how: &ColumnCryptoMetaData,
        row_group: usize,
        column: usize,
    ) -> Result<ColumnCrypto> {
        let cipher = match how {
            ColumnCryptoMetaData::ENCRYPTION_WITH_FOOTER_KEY => self.cipher(None, || {
                let key_metadata = self.encryption.footer_key_metadata.as_deref();
                self.properties.footer_key(key_metadata)
            })?,
            ColumnCryptoMetaData::ENCRYPTION_WITH_COLUMN_KEY(with) => {
                self.cipher(Some(column), || {
                    let name = with.path_in_schema.join(".");
                    let key_metadata = with.key_metadata.as_deref();
                    self.properties.column_key(&name, key_metadata)
                })?
            }
        };
        Ok(ColumnCrypto {
            cipher,
            aad: Aad::new(&self.file_aad, row_group, column)?,
        })
    }

    /// The cipher of a column, or of the footer, made the first time that it is needed.
    fn cipher<'k>(
        &self,
        of: Option<usize>,
        key: impl FnOnce() -> Result<Cow<'k, Vec<u8>>>,
    ) -> Result<Arc<Cipher>> {
        let mut ciphers = self.ciphers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cipher) = ciphers.get(&of) {
            return Ok(Arc::clone(cipher));
        }
        let cipher = Arc::new(match key()? {
            Cow::Borrowed(callers) => Cipher::new(callers)?,
            Cow::Owned(retrieved) => Cipher::new(&Zeroizing::new(retrieved))?,
        });
        ciphers.insert(of, Arc::clone(&cipher));
        Ok(cipher)
    }
}

/// What decrypts the modules of one column chunk.
pub(crate) struct ColumnCrypto {
    cipher: Arc<Cipher>,
    aad: Aad,
}

impl ColumnCrypto {
    /// For column `column` (leaf) in row group `row_group` of a file whose AAD is `file_aad`.
    pub(crate) fn with_key(
        key: &[u8],
        file_aad: &[u8],
        row_group: usize,
        column: usize,
    ) -> Result<Self> {
        Ok(Self {
            cipher: Arc::new(Cipher::new(key)?),
            aad: Aad::new(file_aad, row_group, column)?,
        })
    }

    /// For a chunk that is encrypted, if it is; an error where it is and no keys are at hand.
    pub(crate) fn for_chunk(
        file: Option<&FileCrypto>,
        chunk: &ColumnChunkMetaData,
        row_group: usize,
        column: usize,
    ) -> Result<Option<Self>> {
        match (chunk.crypto_metadata(), file) {
            (None, _) => Ok(None),
            (Some(how), Some(file)) => file.column(how, row_group, column).map(Some),
            (Some(_), None) => Err(ParquetError::General(format!(
                "column '{}' is encrypted and no keys were given: use with_file_decryption_properties",
                chunk.column_path().string()
            ))),
        }
    }

    /// Decrypts `module` (length, nonce, ciphertext, tag) where it lies and returns the plaintext's
    /// place in it. `page_ordinal` counts the chunk's data pages; dictionary modules have none.
    pub(crate) fn open_in_place(
        &self,
        module: &mut [u8],
        kind: Module,
        page_ordinal: usize,
    ) -> Result<std::ops::Range<usize>> {
        let aad = self.aad.of(kind, page_ordinal)?;
        self.cipher.open_in_place(module, &aad)
    }

    /// Decrypts `module` into `out`, which takes [`separate_len`](Self::separate_len) bytes and then shows
    /// the plaintext.
    pub(crate) fn open_separate(
        &self,
        module: &[u8],
        kind: Module,
        page_ordinal: usize,
        out: &mut Buffer,
    ) -> Result<()> {
        let aad = self.aad.of(kind, page_ordinal)?;
        self.cipher.open_separate(module, &aad, out)
    }

    /// Encrypts `plain` as a module: what the two above open.
    pub(crate) fn seal(
        &self,
        plain: &[u8],
        kind: Module,
        page_ordinal: usize,
        nonce: [u8; cipher::NONCE_LEN],
    ) -> Result<Vec<u8>> {
        let aad = self.aad.of(kind, page_ordinal)?;
        self.cipher.seal(plain, nonce, &aad)
    }

    /// Bytes that [`open_separate`](Self::open_separate) needs for a module of `module_len` bytes.
    pub(crate) fn separate_len(module_len: usize) -> usize {
        module_len.saturating_sub(LENGTH_LEN + cipher::NONCE_LEN)
    }
}
