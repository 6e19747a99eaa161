//! Read strategies: who owns the buffer of each step a page goes through.
//!
//! A strategy is written as a preset (`pooled`), as a preset with parts replaced
//! (`temp-both,codec=shared`), or as all of its parts (`fetch=temporary,decrypt=…`).

use std::fmt;
use std::str::FromStr;

/// The names of the presets, in the order in which tables list them; the last is the control.
pub const PRESETS: [&str; 5] = [
    "retained",
    "temp-decrypt",
    "temp-both",
    "pooled",
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

/// Owner of the decompression contexts. It makes a difference for zstd; the other codecs keep nothing
/// from page to page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CodecContext {
    /// One context per column.
    PerColumn,
    /// One context for all columns of the reader.
    Shared,
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
    };

    fn preset(name: &str) -> Option<Self> {
        match name {
            "retained" => Some(Self::RETAINED),
            "temp-decrypt" => Some(Self::TEMP_DECRYPT),
            "temp-both" => Some(Self::TEMP_BOTH),
            "pooled" => Some(Self::POOLED),
            _ => None,
        }
    }

    fn set(&mut self, part: &str, choice: &str) -> Result<(), StrategyError> {
        match part {
            "fetch" => self.fetch = choose(part, choice, &FETCH)?,
            "decrypt" => self.decrypt = choose(part, choice, &DECRYPT)?,
            "page" => self.page = choose(part, choice, &PAGE)?,
            "codec" => self.codec = choose(part, choice, &CODEC)?,
            _ => {
                return Err(StrategyError::UnknownPart {
                    part: part.to_owned(),
                });
            }
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
const CODEC: [(&str, CodecContext); 2] = [
    ("per-column", CodecContext::PerColumn),
    ("shared", CodecContext::Shared),
];

fn choose<C: Copy>(part: &str, choice: &str, choices: &[(&str, C)]) -> Result<C, StrategyError> {
    choices
        .iter()
        .find(|(name, _)| *name == choice)
        .map(|(_, value)| *value)
        .ok_or_else(|| StrategyError::UnknownChoice {
            part: part.to_owned(),
            choice: choice.to_owned(),
            choices: choices
                .iter()
                .map(|(n, _)| *n)
                .collect::<Vec<_>>()
                .join(", "),
        })
}

fn name_of<C: Copy + PartialEq>(value: C, choices: &[(&'static str, C)]) -> &'static str {
    choices
        .iter()
        .find(|(_, choice)| *choice == value)
        .map_or("", |(name, _)| name)
}

impl fmt::Display for BufferOwners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in PRESETS {
            if Self::preset(name) == Some(*self) {
                return f.write_str(name);
            }
        }
        write!(
            f,
            "fetch={},decrypt={},page={},codec={}",
            name_of(self.fetch, &FETCH),
            name_of(self.decrypt, &DECRYPT),
            name_of(self.page, &PAGE),
            name_of(self.codec, &CODEC),
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
        let mut items = text.split(',').map(str::trim).peekable();
        let base = match items.peek() {
            None | Some(&"") => return Err(StrategyError::Empty),
            Some(item) if item.contains('=') => None,
            Some(&"upstream") => {
                items.next();
                return match items.next() {
                    None => Ok(Self::Upstream),
                    Some(_) => Err(StrategyError::UpstreamHasNoParts),
                };
            }
            Some(name) => {
                let preset =
                    BufferOwners::preset(name).ok_or_else(|| StrategyError::UnknownPreset {
                        name: (*name).to_owned(),
                    })?;
                items.next();
                Some(preset)
            }
        };

        let mut buffers = base.unwrap_or(BufferOwners::POOLED);
        let mut given = Vec::new();
        for item in items {
            let (part, choice) = item
                .split_once('=')
                .ok_or_else(|| StrategyError::NotAPart {
                    item: item.to_owned(),
                })?;
            if given.contains(&part) {
                return Err(StrategyError::PartTwice {
                    part: part.to_owned(),
                });
            }
            buffers.set(part, choice)?;
            given.push(part);
        }
        // Without a preset, a part left out would be a silent default.
        if base.is_none()
            && let Some(missing) = ["fetch", "decrypt", "page", "codec"]
                .iter()
                .find(|part| !given.contains(part))
        {
            return Err(StrategyError::MissingPart { part: missing });
        }
        Ok(Self::Owned(buffers))
    }
}

/// Why a strategy's text was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategyError {
    /// Nothing was given.
    #[error("the strategy is empty: name a preset ({}) or write out its parts", PRESETS.join(", "))]
    Empty,
    /// The first item is no preset.
    #[error("unknown strategy '{name}': the presets are {}", PRESETS.join(", "))]
    UnknownPreset {
        /// What was given.
        name: String,
    },
    /// An item after the first is not of the form `part=choice`.
    #[error("'{item}' is not of the form part=choice (as in 'temp-both,codec=shared')")]
    NotAPart {
        /// What was given.
        item: String,
    },
    /// The left side of `part=choice` is no part.
    #[error("unknown part '{part}': the parts are fetch, decrypt, page, codec")]
    UnknownPart {
        /// What was given.
        part: String,
    },
    /// The right side of `part=choice` is not offered by that part.
    #[error("unknown choice '{choice}' for {part}: it takes {choices}")]
    UnknownChoice {
        /// The part.
        part: String,
        /// What was given.
        choice: String,
        /// What the part takes.
        choices: String,
    },
    /// A part was given more than once.
    #[error("part '{part}' is given twice")]
    PartTwice {
        /// The part.
        part: String,
    },
    /// Without a preset every part must be written out.
    #[error("part '{part}' is missing: without a preset, write out fetch, decrypt, page and codec")]
    MissingPart {
        /// The part.
        part: &'static str,
    },
    /// The control is the parquet crate's own reader and has nothing to choose.
    #[error("'upstream' is the parquet crate's own reader: it has no parts to replace")]
    UpstreamHasNoParts,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ReadStrategy, StrategyError> {
        text.parse()
    }

    #[test]
    fn presets_round_trip() {
        for name in PRESETS {
            assert_eq!(parse(name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn every_combination_round_trips() {
        for (_, fetch) in FETCH {
            for (_, decrypt) in DECRYPT {
                for (_, page) in PAGE {
                    for (_, codec) in CODEC {
                        let strategy = ReadStrategy::Owned(BufferOwners {
                            fetch,
                            decrypt,
                            page,
                            codec,
                        });
                        assert_eq!(parse(&strategy.to_string()), Ok(strategy));
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
            "fetch=temporary,decrypt=temporary,page=temporary,codec=shared"
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
        assert_eq!(parse(""), Err(StrategyError::Empty));
    }
}
