//! Read strategies: who owns the buffer of each step a page goes through.

use std::fmt;
use std::str::FromStr;

use super::parts::{CODEC, Parts, choose, name_of, parse};
use super::{CodecContext, StrategyError};

/// The names of the presets for reading, in the order in which tables list them; the last is the control.
pub const READ_PRESETS: [&str; 6] = [
    "retained",
    "temp-decrypt",
    "temp-both",
    "pooled",
    "direct",
    "upstream",
];

/// Owner of the buffer that a page's stored bytes are read into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fetch {
    /// Allocated for one page, freed when the next step has its bytes.
    Temporary,
    /// One per column, kept as long as the reader lives.
    Retained,
    /// One for the whole reader.
    Shared,
}

/// Owner of the buffer that a page is decrypted into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decrypt {
    /// Allocated for one page, freed when the page is decompressed.
    Temporary,
    /// One per column, kept as long as the reader lives.
    Retained,
    /// No buffer of its own: the page is decrypted where it was fetched.
    InPlace,
}

/// Owner of the buffer that holds the page as the decoder reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PageBuffer {
    /// Allocated for one page, freed when the decoder is done with it.
    Temporary,
    /// One per column, kept as long as the reader lives.
    Retained,
    /// Taken from buffers shared by all columns; it returns when its last reference is dropped.
    Pooled,
}

/// Who makes arrays of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decode {
    /// The parquet crate's decoders, which copy values out of the page.
    Parquet,
    /// Flat columns are decoded here. Where a page's bytes are the array (PLAIN, fixed width, no null among the rows asked
    /// for) the array is a slice of the page; elsewhere values are decoded into the array at once. The parquet crate's
    /// decoders serve the columns that have no such path.
    Direct,
}

/// What the arrays of a batch may hold on to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Arrays {
    /// Arrays may be slices of pages, and views may point into them: while one row of such an array is kept, so is its page.
    Shared,
    /// What points into a page is copied out of it: who keeps an array keeps that array and nothing else.
    Owned,
}

/// The owner of each buffer of a page: one choice per part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BufferOwners {
    /// Owner of the stored bytes.
    pub fetch: Fetch,
    /// Owner of the decrypted bytes. Without effect on files that are not encrypted.
    pub decrypt: Decrypt,
    /// Owner of the decoded page. Where no step follows that would need another buffer (no codec),
    /// the last buffer that a page goes through is owned so, whichever part it belongs to.
    pub page: PageBuffer,
    /// Owner of the decompression contexts. It makes a difference for zstd; the other codecs keep nothing
    /// from page to page.
    pub codec: CodecContext,
    /// Who makes arrays of the decoded page.
    pub decode: Decode,
    /// Whether arrays may be slices of pages.
    pub arrays: Arrays,
}

impl BufferOwners {
    /// Preset `retained`: Arrow C++ before GH-46971, one decryption and one page buffer per column. Two
    /// page buffers where a decoder holds one while it asks for the next: in columns with a dictionary
    /// or repetition levels, which have to be shown to it chunk by chunk.
    pub const RETAINED: Self = Self {
        fetch: Fetch::Temporary,
        decrypt: Decrypt::Retained,
        page: PageBuffer::Retained,
        codec: CodecContext::PerColumn,
        decode: Decode::Parquet,
        arrays: Arrays::Shared,
    };
    /// Preset `temp-decrypt`: GH-46971 as merged.
    pub const TEMP_DECRYPT: Self = Self {
        decrypt: Decrypt::Temporary,
        ..Self::RETAINED
    };
    /// Preset `temp-both`: GH-46971 as first tried, the page buffer temporary too.
    pub const TEMP_BOTH: Self = Self {
        page: PageBuffer::Temporary,
        ..Self::TEMP_DECRYPT
    };
    /// Preset `pooled`: buffers of data pages are used again by any column, and given back
    /// to the allocator while reading only where pages change their size.
    pub const POOLED: Self = Self {
        fetch: Fetch::Shared,
        decrypt: Decrypt::InPlace,
        page: PageBuffer::Pooled,
        codec: CodecContext::Shared,
        decode: Decode::Parquet,
        arrays: Arrays::Shared,
    };
    /// Preset `direct`: as `pooled`, and arrays are slices of the pages where that is possible. A page's buffer is used again when
    /// its last array is dropped.
    pub const DIRECT: Self = Self {
        decode: Decode::Direct,
        ..Self::POOLED
    };
}

impl Parts for BufferOwners {
    const BASE: Self = Self::POOLED;
    const PARTS: &'static [&'static str] =
        &["fetch", "decrypt", "page", "codec", "decode", "arrays"];
    const PRESETS: &'static [&'static str] = &READ_PRESETS;
    const EXAMPLE: &'static str = "temp-both,codec=shared";

    fn preset(name: &str) -> Option<Self> {
        match name {
            "retained" => Some(Self::RETAINED),
            "temp-decrypt" => Some(Self::TEMP_DECRYPT),
            "temp-both" => Some(Self::TEMP_BOTH),
            "pooled" => Some(Self::POOLED),
            "direct" => Some(Self::DIRECT),
            _ => None,
        }
    }

    fn set(&mut self, part: &str, choice: &str) -> Result<(), StrategyError> {
        match part {
            "fetch" => self.fetch = choose(part, choice, &FETCH)?,
            "decrypt" => self.decrypt = choose(part, choice, &DECRYPT)?,
            "page" => self.page = choose(part, choice, &PAGE)?,
            "codec" => self.codec = choose(part, choice, &CODEC)?,
            "decode" => self.decode = choose(part, choice, &DECODE)?,
            _ => self.arrays = choose(part, choice, &ARRAYS)?,
        }
        Ok(())
    }
}

const FETCH: [(&str, Fetch); 3] = [
    ("temporary", Fetch::Temporary),
    ("retained", Fetch::Retained),
    ("shared", Fetch::Shared),
];
const DECRYPT: [(&str, Decrypt); 3] = [
    ("temporary", Decrypt::Temporary),
    ("retained", Decrypt::Retained),
    ("in-place", Decrypt::InPlace),
];
const PAGE: [(&str, PageBuffer); 3] = [
    ("temporary", PageBuffer::Temporary),
    ("retained", PageBuffer::Retained),
    ("pooled", PageBuffer::Pooled),
];
const DECODE: [(&str, Decode); 2] = [("parquet", Decode::Parquet), ("direct", Decode::Direct)];
const ARRAYS: [(&str, Arrays); 2] = [("shared", Arrays::Shared), ("owned", Arrays::Owned)];

impl fmt::Display for BufferOwners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in READ_PRESETS {
            if Self::preset(name) == Some(*self) {
                return f.write_str(name);
            }
        }
        write!(
            f,
            "fetch={},decrypt={},page={},codec={},decode={},arrays={}",
            name_of(self.fetch, &FETCH),
            name_of(self.decrypt, &DECRYPT),
            name_of(self.page, &PAGE),
            name_of(self.codec, &CODEC),
            name_of(self.decode, &DECODE),
            name_of(self.arrays, &ARRAYS),
        )
    }
}

/// How a file is read: with the buffers of this crate, or by the control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadStrategy {
    /// The control: the parquet crate's own page reader.
    Upstream,
    /// This crate's page reader with the given owners.
    Owned(BufferOwners),
}

impl Default for ReadStrategy {
    /// [`BufferOwners::POOLED`].
    fn default() -> Self {
        Self::Owned(BufferOwners::POOLED)
    }
}

impl fmt::Display for ReadStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upstream => f.write_str("upstream"),
            Self::Owned(buffers) => buffers.fmt(f),
        }
    }
}

impl FromStr for ReadStrategy {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        parse(
            text,
            |control| (control == "upstream").then_some(Self::Upstream),
            Self::Owned,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ReadStrategy, StrategyError> {
        text.parse()
    }

    #[test]
    fn presets_round_trip() {
        for name in READ_PRESETS {
            assert_eq!(parse(name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn every_combination_round_trips() {
        for (_, fetch) in FETCH {
            for (_, decrypt) in DECRYPT {
                for (_, page) in PAGE {
                    for (_, codec) in CODEC {
                        for (decode, arrays) in DECODE.iter().zip(ARRAYS.iter().rev()) {
                            let strategy = ReadStrategy::Owned(BufferOwners {
                                fetch,
                                decrypt,
                                page,
                                codec,
                                decode: decode.1,
                                arrays: arrays.1,
                            });
                            assert_eq!(parse(&strategy.to_string()), Ok(strategy));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_preset_takes_replacements() {
        let expected = BufferOwners {
            codec: CodecContext::Shared,
            ..BufferOwners::TEMP_BOTH
        };
        let parsed = parse("temp-both,codec=shared").unwrap();
        assert_eq!(parsed, ReadStrategy::Owned(expected));
        assert_eq!(
            parsed.to_string(),
            "fetch=temporary,decrypt=temporary,page=temporary,codec=shared,decode=parquet,arrays=shared"
        );
        // A replacement that changes nothing is the preset itself.
        assert_eq!(parse("pooled,page=pooled").unwrap().to_string(), "pooled");
    }

    #[test]
    fn errors_name_what_was_wrong() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(message("poled").contains("'poled'") && message("poled").contains("pooled"));
        assert!(message("pooled,page=heap").contains("temporary, retained, pooled"));
        assert!(message("pooled,pages=pooled").contains("'pages'"));
        assert!(message("pooled,shared").contains("part=choice"));
        assert!(message("upstream,page=pooled").contains("no parts"));
        assert!(message("fetch=shared").contains("decrypt"));
        assert!(message("pooled,codec=shared,codec=shared").contains("twice"));
        assert!(message("").contains("empty"));
    }
}
