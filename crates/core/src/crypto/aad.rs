//! The additional authenticated data of a module, which ties it to its place in its file.
//!
//! Source: Encryption.md 4.4.2: file AAD ‖ module type ‖ row group ‖ column [‖ page], the ordinals
//! being little-endian i16, the page's only in modules of data pages.

use parquet::errors::{ParquetError, Result};

/// A kind of module that belongs to a page; the value is the format's module type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Module {
    DataPage = 2,
    DictionaryPage = 3,
    DataPageHeader = 4,
    DictionaryPageHeader = 5,
}

impl Module {
    /// The header module of a page.
    pub(crate) fn header(dictionary: bool) -> Self {
        if dictionary {
            Self::DictionaryPageHeader
        } else {
            Self::DataPageHeader
        }
    }

    /// The body module of a page.
    pub(crate) fn body(dictionary: bool) -> Self {
        if dictionary {
            Self::DictionaryPage
        } else {
            Self::DataPage
        }
    }
}

/// What all AADs of one column chunk share.
#[derive(Debug, Clone)]
pub(super) struct Aad {
    file_aad: Vec<u8>,
    row_group: [u8; 2],
    column: [u8; 2],
}

impl Aad {
    pub(super) fn new(file_aad: &[u8], row_group: usize, column: usize) -> Result<Self> {
        Ok(Self {
            file_aad: file_aad.to_vec(),
            row_group: ordinal(row_group, "row groups")?,
            column: ordinal(column, "columns")?,
        })
    }

    pub(super) fn of(&self, module: Module, page: usize) -> Result<Vec<u8>> {
        let mut aad = Vec::with_capacity(self.file_aad.len() + 7);
        aad.extend_from_slice(&self.file_aad);
        aad.push(module as u8);
        aad.extend_from_slice(&self.row_group);
        aad.extend_from_slice(&self.column);
        if matches!(module, Module::DataPage | Module::DataPageHeader) {
            aad.extend_from_slice(&ordinal(page, "pages in a column chunk")?);
        }
        Ok(aad)
    }
}

fn ordinal(value: usize, of: &str) -> Result<[u8; 2]> {
    i16::try_from(value).map(i16::to_le_bytes).map_err(|_| {
        ParquetError::General(format!(
            "an encrypted file cannot have more than {} {of}",
            i16::MAX
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_modules_carry_the_page_and_others_do_not() {
        let aad = Aad::new(b"file", 1, 0x203).unwrap();
        assert_eq!(
            aad.of(Module::DataPageHeader, 5).unwrap(),
            b"file\x04\x01\0\x03\x02\x05\0"
        );
        assert_eq!(
            aad.of(Module::DictionaryPage, 5).unwrap(),
            b"file\x03\x01\0\x03\x02"
        );
    }

    #[test]
    fn ordinals_are_bounded() {
        assert!(Aad::new(b"", 32_768, 0).is_err());
        assert!(Aad::new(b"", 0, 32_768).is_err());
        let aad = Aad::new(b"", 0, 0).unwrap();
        assert!(aad.of(Module::DataPage, 32_768).is_err());
        assert!(aad.of(Module::DictionaryPage, 32_768).is_ok());
    }
}
