//! Write strategies: who owns encoder buffers and pages, and when they are born.

use std::fmt;
use std::str::FromStr;

use super::parts::{CODEC, Parts, choose, name_of, parse};
use super::{CodecContext, StrategyError};

/// The names of the presets for writing, in the order in which tables list them; the last three are
/// the controls.
pub const WRITE_PRESETS: [&str; 8] = [
    "eager",
    "grow",
    "exact",
    "bounded",
    "pooled",
    "upstream",
    "upstream-column-wise",
    "upstream-exact-store",
];

/// How the buffers that values are encoded into get their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encode {
    /// Each encoder of deltas reserves 1 MiB at birth, as upstream did before arrow-rs #11149.
    Eager,
    /// On demand, doubling; what was reserved is kept for the column's next page.
    Grow,
    /// What the values at hand need at most, as long as that stays within a page; kept for the column's next page.
    Exact,
    /// On demand, from buffers that all columns share; they go back with each page.
    Pooled,
}

/// When the encoder that a column falls back to is built, if its dictionary outgrows its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fallback {
    /// With the column.
    Eager,
    /// When the dictionary has outgrown its limit.
    Lazy,
}

/// In which order the columns of a row group are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// All columns are open; each batch is encoded as it comes.
    Interleaved,
    /// One column of the row group at a time. The row group's batches are held until then.
    ColumnWise,
}

/// Where finished pages stay until their column chunk can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PageSink {
    /// In memory, exactly as large as they are.
    Chunk,
    /// In a temporary file.
    Spill,
    /// Nowhere: they go straight to the file. Only with [`Order::ColumnWise`].
    Direct,
}

/// The owner of each buffer of writing: one choice per part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EncoderBuffers {
    /// How encoder buffers get their memory.
    pub encode: Encode,
    /// When the encoder after the dictionary is built.
    pub fallback: Fallback,
    /// In which order columns are encoded.
    pub order: Order,
    /// Where finished pages stay.
    pub sink: PageSink,
    /// Owner of the compression contexts.
    pub codec: CodecContext,
}

impl EncoderBuffers {
    /// Preset `eager`: arrow-rs before #11149.
    pub const EAGER: Self = Self {
        encode: Encode::Eager,
        fallback: Fallback::Eager,
        order: Order::Interleaved,
        sink: PageSink::Chunk,
        codec: CodecContext::PerColumn,
    };
    /// Preset `grow`: arrow-rs after #11149.
    pub const GROW: Self = Self {
        encode: Encode::Grow,
        ..Self::EAGER
    };
    /// Preset `exact`: what a page needs is what is reserved.
    pub const EXACT: Self = Self {
        encode: Encode::Exact,
        fallback: Fallback::Lazy,
        ..Self::EAGER
    };
    /// Preset `bounded`: memory does not depend on the row group's size.
    pub const BOUNDED: Self = Self {
        encode: Encode::Pooled,
        fallback: Fallback::Lazy,
        order: Order::Interleaved,
        sink: PageSink::Spill,
        codec: CodecContext::Shared,
    };
    /// Preset `pooled`: the least that writing can hold, given a row group that is in memory anyway.
    pub const POOLED: Self = Self {
        order: Order::ColumnWise,
        sink: PageSink::Direct,
        ..Self::BOUNDED
    };

    /// Whether the parts can go together.
    ///
    /// # Errors
    /// [`PageSink::Direct`] without [`Order::ColumnWise`].
    pub fn check(&self) -> Result<(), StrategyError> {
        if self.sink == PageSink::Direct && self.order != Order::ColumnWise {
            return Err(StrategyError::Needs {
                this: "sink=direct",
                needs: "order=column-wise",
            });
        }
        Ok(())
    }
}

impl Parts for EncoderBuffers {
    const BASE: Self = Self::POOLED;
    const PARTS: &'static [&'static str] = &["encode", "fallback", "order", "sink", "codec"];
    const PRESETS: &'static [&'static str] = &WRITE_PRESETS;
    const EXAMPLE: &'static str = "grow,sink=spill";

    fn preset(name: &str) -> Option<Self> {
        match name {
            "eager" => Some(Self::EAGER),
            "grow" => Some(Self::GROW),
            "exact" => Some(Self::EXACT),
            "bounded" => Some(Self::BOUNDED),
            "pooled" => Some(Self::POOLED),
            _ => None,
        }
    }

    fn set(&mut self, part: &str, choice: &str) -> Result<(), StrategyError> {
        match part {
            "encode" => self.encode = choose(part, choice, &ENCODE)?,
            "fallback" => self.fallback = choose(part, choice, &FALLBACK)?,
            "order" => self.order = choose(part, choice, &ORDER)?,
            "sink" => self.sink = choose(part, choice, &SINK)?,
            _ => self.codec = choose(part, choice, &CODEC)?,
        }
        Ok(())
    }
}

const ENCODE: [(&str, Encode); 4] = [
    ("eager", Encode::Eager),
    ("grow", Encode::Grow),
    ("exact", Encode::Exact),
    ("pooled", Encode::Pooled),
];
const FALLBACK: [(&str, Fallback); 2] = [("eager", Fallback::Eager), ("lazy", Fallback::Lazy)];
const ORDER: [(&str, Order); 2] = [
    ("interleaved", Order::Interleaved),
    ("column-wise", Order::ColumnWise),
];
const SINK: [(&str, PageSink); 3] = [
    ("chunk", PageSink::Chunk),
    ("spill", PageSink::Spill),
    ("direct", PageSink::Direct),
];

impl fmt::Display for EncoderBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in WRITE_PRESETS {
            if Self::preset(name) == Some(*self) {
                return f.write_str(name);
            }
        }
        write!(
            f,
            "encode={},fallback={},order={},sink={},codec={}",
            name_of(self.encode, &ENCODE),
            name_of(self.fallback, &FALLBACK),
            name_of(self.order, &ORDER),
            name_of(self.sink, &SINK),
            name_of(self.codec, &CODEC),
        )
    }
}

/// How a file is written: with the buffers of this crate, or by a control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WriteStrategy {
    /// The control: the parquet crate's own `ArrowWriter`.
    Upstream,
    /// The control with one column of the row group at a time.
    UpstreamColumnWise,
    /// The control with a `PageStore` that keeps copies as large as the pages are.
    UpstreamExactStore,
    /// This crate's writer with the given owners.
    Owned(EncoderBuffers),
}

impl Default for WriteStrategy {
    /// [`EncoderBuffers::BOUNDED`]: it holds neither the row group's input nor its pages.
    fn default() -> Self {
        Self::Owned(EncoderBuffers::BOUNDED)
    }
}

impl fmt::Display for WriteStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upstream => f.write_str("upstream"),
            Self::UpstreamColumnWise => f.write_str("upstream-column-wise"),
            Self::UpstreamExactStore => f.write_str("upstream-exact-store"),
            Self::Owned(buffers) => buffers.fmt(f),
        }
    }
}

impl FromStr for WriteStrategy {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        let control = |name: &str| match name {
            "upstream" => Some(Self::Upstream),
            "upstream-column-wise" => Some(Self::UpstreamColumnWise),
            "upstream-exact-store" => Some(Self::UpstreamExactStore),
            _ => None,
        };
        let strategy = parse(text, control, Self::Owned)?;
        if let Self::Owned(buffers) = &strategy {
            buffers.check()?;
        }
        Ok(strategy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<WriteStrategy, StrategyError> {
        text.parse()
    }

    #[test]
    fn presets_round_trip() {
        for name in WRITE_PRESETS {
            assert_eq!(parse(name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn every_combination_round_trips_or_says_what_it_needs() {
        for (_, encode) in ENCODE {
            for (_, fallback) in FALLBACK {
                for (_, order) in ORDER {
                    for (_, sink) in SINK {
                        for (_, codec) in CODEC {
                            let buffers = EncoderBuffers {
                                encode,
                                fallback,
                                order,
                                sink,
                                codec,
                            };
                            let strategy = WriteStrategy::Owned(buffers);
                            let parsed = parse(&strategy.to_string());
                            match buffers.check() {
                                Ok(()) => assert_eq!(parsed, Ok(strategy)),
                                Err(error) => assert_eq!(parsed, Err(error)),
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn errors_name_what_was_wrong() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(message("poled").contains("bounded"));
        assert!(message("grow,encode=big").contains("eager, grow, exact, pooled"));
        assert!(message("grow,page=pooled").contains("encode, fallback"));
        assert!(message("grow,sink=direct").contains("order=column-wise"));
        assert!(message("upstream,sink=spill").contains("no parts"));
        assert!(message("upstream-exact-store,sink=spill").contains("upstream-exact-store"));
    }
}
