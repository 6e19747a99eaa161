//! The steps that a page goes through, one by one, for benches and for tests with hostile bytes.
//!
//! No part of the public interface: it changes without notice. Each item is a thin cover of what the reader itself uses.
//! The step after these, decoding, is the parquet crate's: give its decoders the pages of [`chunk`].

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parquet::basic::{Compression, PageType};
use parquet::column::page::PageReader;
use parquet::encryption::decrypt::FileDecryptionProperties;
use parquet::errors::Result;
use parquet::file::metadata::ParquetMetaData;

use crate::buffer::{Buffer, Home, Keep};
use crate::codec;
use crate::crypto::{ColumnCrypto, FileCrypto, Module};
use crate::format::footer;
use crate::format::page_header::PageHeader;
use crate::format::thrift::ThriftError;
use crate::ledger::{Ledger, Purpose};
use crate::limits::Limits;
use crate::page::chunk::ChunkCursor;
use crate::page::file::FileShared;
use crate::page::info::PageInfo;
use crate::page::owners::ReaderOwners;
use crate::page::reader::{Span, StrategyPageReader};
use crate::source::ReadAt;
use crate::strategy::BufferOwners;

/// A page header, as parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes that the header takes.
    pub len: usize,
    /// Kind of the page that follows.
    pub page_type: PageType,
    /// Bytes of the body as it lies in the file.
    pub stored_bytes: usize,
    /// Bytes of the body when decompressed.
    pub uncompressed_bytes: usize,
    /// Values in the page, nulls included.
    pub num_values: u32,
}

/// Parses the page header at the start of `bytes`; `None` where it needs more of them.
///
/// # Errors
/// What is wrong with a header that no further bytes could mend.
pub fn parse_header(bytes: &[u8]) -> std::result::Result<Option<Header>, &'static str> {
    match PageHeader::parse(bytes) {
        Ok((header, len)) => {
            let info = PageInfo::new(0, 0, 0, &header);
            Ok(Some(Header {
                len,
                page_type: info.page_type,
                stored_bytes: header.stored_size,
                uncompressed_bytes: header.uncompressed_size,
                num_values: info.num_values,
            }))
        }
        Err(ThriftError::Eof) => Ok(None),
        Err(ThriftError::Invalid(why)) => Err(why),
    }
}

/// Checks the footer of a file of `len` bytes as is done before the parquet crate parses it.
///
/// # Errors
/// Where the footer is damaged, or its schema would take more memory or stack than its bytes can justify.
pub fn check_footer(source: &impl ReadAt, len: u64) -> Result<()> {
    footer::check_schema(source, len)
}

/// Which module of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModuleKind {
    /// Body of a data page.
    DataPage,
    /// Body of a dictionary page.
    DictionaryPage,
    /// Header of a data page.
    DataPageHeader,
    /// Header of a dictionary page.
    DictionaryPageHeader,
}

impl ModuleKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::DataPage,
        Self::DictionaryPage,
        Self::DataPageHeader,
        Self::DictionaryPageHeader,
    ];

    fn module(self) -> Module {
        match self {
            Self::DataPage => Module::DataPage,
            Self::DictionaryPage => Module::DictionaryPage,
            Self::DataPageHeader => Module::DataPageHeader,
            Self::DictionaryPageHeader => Module::DictionaryPageHeader,
        }
    }
}

/// Opens the encrypted modules of one column chunk.
pub struct Opener(ColumnCrypto);

impl Opener {
    /// For a key of 16 or 32 bytes, the file's AAD, and the chunk's place in its file.
    ///
    /// # Errors
    /// Where the key has another length or an ordinal is too large.
    pub fn new(key: &[u8], file_aad: &[u8], row_group: usize, column: usize) -> Result<Self> {
        ColumnCrypto::with_key(key, file_aad, row_group, column).map(Self)
    }

    /// Decrypts a module where it lies, and returns where in it the plaintext is.
    ///
    /// # Errors
    /// Where the module is damaged, or of another place, file or key.
    pub fn open_in_place(
        &self,
        module: &mut [u8],
        kind: ModuleKind,
        page: usize,
    ) -> Result<Range<usize>> {
        self.0.open_in_place(module, kind.module(), page)
    }

    /// Decrypts a module into a buffer of `buffers`.
    ///
    /// # Errors
    /// As [`open_in_place`](Self::open_in_place).
    pub fn open_separate(
        &self,
        module: &[u8],
        kind: ModuleKind,
        page: usize,
        buffers: &Buffers,
    ) -> Result<PageBuffer> {
        let len = ColumnCrypto::separate_len(module.len());
        let mut out = buffers.0.take_empty(0, len, 0);
        self.0
            .open_separate(module, kind.module(), page, &mut out)?;
        Ok(PageBuffer(out))
    }

    /// Encrypts a module, for something to open. A nonce must not be used twice with a key that protects anything.
    ///
    /// # Errors
    /// Where the page's ordinal or the plaintext is too large.
    pub fn seal(
        &self,
        plain: &[u8],
        kind: ModuleKind,
        page: usize,
        nonce: [u8; 12],
    ) -> Result<Vec<u8>> {
        self.0.seal(plain, kind.module(), page, nonce)
    }
}

/// An owner of buffers.
pub struct Buffers(Arc<Home>);

impl Buffers {
    /// Buffers that are freed when dropped.
    pub fn temporary() -> Self {
        Self::new(Keep::Nothing)
    }

    /// Buffers that are kept for the next use.
    pub fn pooled() -> Self {
        Self::new(Keep::All)
    }

    fn new(keep: Keep) -> Self {
        let ledger = Arc::new(Ledger::new(1));
        Self(Home::new(keep, Purpose::Page, None, &ledger))
    }

    /// A buffer of `len` initialised bytes; what they hold is left over.
    pub fn take(&self, len: usize) -> PageBuffer {
        PageBuffer(self.0.take_behind(0, len, 0))
    }

    /// Reads `len` bytes at `offset` of `source` into a buffer.
    ///
    /// # Errors
    /// What the source said.
    pub fn fetch(&self, source: &impl ReadAt, offset: u64, len: usize) -> io::Result<PageBuffer> {
        let mut buffer = self.0.take_empty(0, len, 0);
        buffer.read_from(source, offset, len)?;
        Ok(PageBuffer(buffer))
    }
}

/// A buffer that goes back to its owner when dropped.
pub struct PageBuffer(Buffer);

impl PageBuffer {
    /// The bytes, shared: the buffer goes back when the last clone is dropped.
    pub fn into_bytes(self) -> Bytes {
        self.0.share().0
    }
}

impl AsRef<[u8]> for PageBuffer {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl AsMut<[u8]> for PageBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_slice()
    }
}

/// The contexts of every codec.
pub struct Decompressor(codec::Decompressor);

impl Default for Decompressor {
    fn default() -> Self {
        Self(codec::Decompressor::new(Arc::new(Ledger::new(0)), None))
    }
}

impl Decompressor {
    /// Decompresses `input` into all of `output`.
    ///
    /// # Errors
    /// Where the codec is not supported, `input` is damaged, or it gives another number of bytes.
    pub fn decompress(
        &mut self,
        codec: Compression,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        self.0.decompress(codec, input, output)
    }
}

/// The most bytes that `input` can decompress to, where the codec has such a bound.
pub fn max_decompressed_len(codec: Compression, input: &[u8]) -> Option<usize> {
    codec::max_decompressed_len(codec, input)
}

/// The pages of column `column` (leaf) in row group `row_group` of a file of `len` bytes: fetched, decrypted,
/// decompressed and checked one by one.
///
/// # Errors
/// Where the chunk's place or encryption is damaged. The two ordinals must be those of chunks that `metadata` has.
pub fn chunk<T: ReadAt + 'static>(
    source: T,
    len: u64,
    metadata: Arc<ParquetMetaData>,
    keys: Option<Arc<FileDecryptionProperties>>,
    owners: BufferOwners,
    (row_group, column): (usize, usize),
) -> Result<impl PageReader> {
    let encryption = match &keys {
        Some(_) => footer::read_encryption(&source, len)?,
        None => None,
    };
    let crypto = keys
        .zip(encryption)
        .map(|(keys, encryption)| FileCrypto::new(keys, encryption));
    let ledger = Arc::new(Ledger::new(column + 1));
    let described = metadata.file_metadata().schema_descr().column(column);
    let file = Arc::new(FileShared {
        source,
        len,
        metadata,
        crypto,
        verify_checksums: false,
        limits: Limits::default(),
        ledger: Arc::clone(&ledger),
    });
    let owners = ReaderOwners::new(owners, 1, &ledger).column(column);
    let cursor = ChunkCursor::try_new(file, owners, row_group, column)?;
    Ok(StrategyPageReader::new(
        Arc::new(Mutex::new(cursor)),
        described,
        Span::Chunk,
        true,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_both_ways_and_nowhere_else() {
        let opener = Opener::new(&[3; 16], b"file", 1, 2).unwrap();
        let elsewhere = Opener::new(&[3; 16], b"file", 1, 3).unwrap();
        let buffers = Buffers::pooled();
        for kind in ModuleKind::ALL {
            let module = opener.seal(b"a page", kind, 4, [9; 12]).unwrap();
            let mut here = module.clone();
            let plain = opener.open_in_place(&mut here, kind, 4).unwrap();
            assert_eq!(&here[plain], b"a page");
            let out = opener.open_separate(&module, kind, 4, &buffers).unwrap();
            assert_eq!(out.as_ref(), b"a page");
            assert!(elsewhere.open_separate(&module, kind, 4, &buffers).is_err());
        }
    }
}
