//! The grammar that strategies for reading and for writing share: presets, parts and choices.

use super::CodecContext;

/// A strategy made of parts, each with a choice.
pub(super) trait Parts: Copy {
    /// What parts are set on when all of them are written out.
    const BASE: Self;
    /// The names of the parts.
    const PARTS: &'static [&'static str];
    /// The names of all presets, controls included.
    const PRESETS: &'static [&'static str];
    /// A preset with a part replaced, for messages.
    const EXAMPLE: &'static str;

    /// The preset of that name; none for a control.
    fn preset(name: &str) -> Option<Self>;

    /// Sets one of [`PARTS`](Self::PARTS).
    fn set(&mut self, part: &str, choice: &str) -> Result<(), StrategyError>;
}

/// Parses a strategy whose controls are found by `control` and whose other forms are made by `owned`.
pub(super) fn parse<P: Parts, S>(
    text: &str,
    control: impl Fn(&str) -> Option<S>,
    owned: impl Fn(P) -> S,
) -> Result<S, StrategyError> {
    let mut items = text.split(',').map(str::trim).peekable();
    let base = match items.peek() {
        None | Some(&"") => {
            return Err(StrategyError::Empty {
                presets: P::PRESETS,
            });
        }
        Some(item) if item.contains('=') => None,
        Some(&name) => {
            items.next();
            if let Some(strategy) = control(name) {
                return match items.next() {
                    None => Ok(strategy),
                    Some(_) => Err(StrategyError::UpstreamHasNoParts {
                        control: name.to_owned(),
                    }),
                };
            }
            Some(P::preset(name).ok_or_else(|| StrategyError::UnknownPreset {
                name: name.to_owned(),
                presets: P::PRESETS,
            })?)
        }
    };

    let mut parts = base.unwrap_or(P::BASE);
    let mut given = Vec::new();
    for item in items {
        let (part, choice) = item
            .split_once('=')
            .ok_or_else(|| StrategyError::NotAPart {
                item: item.to_owned(),
                example: P::EXAMPLE,
            })?;
        if !P::PARTS.contains(&part) {
            return Err(StrategyError::UnknownPart {
                part: part.to_owned(),
                parts: P::PARTS,
            });
        }
        if given.contains(&part) {
            return Err(StrategyError::PartTwice {
                part: part.to_owned(),
            });
        }
        parts.set(part, choice)?;
        given.push(part);
    }
    // Without a preset, a part left out would be a silent default.
    if base.is_none()
        && let Some(missing) = P::PARTS.iter().find(|part| !given.contains(part))
    {
        return Err(StrategyError::MissingPart {
            part: missing,
            parts: P::PARTS,
        });
    }
    Ok(owned(parts))
}

pub(super) const CODEC: [(&str, CodecContext); 2] = [
    ("per-column", CodecContext::PerColumn),
    ("shared", CodecContext::Shared),
];

pub(super) fn choose<C: Copy>(
    part: &str,
    choice: &str,
    choices: &[(&str, C)],
) -> Result<C, StrategyError> {
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

pub(super) fn name_of<C: Copy + PartialEq>(
    value: C,
    choices: &[(&'static str, C)],
) -> &'static str {
    choices
        .iter()
        .find(|(_, choice)| *choice == value)
        .map_or("", |(name, _)| name)
}

/// Why a strategy's text was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategyError {
    /// Nothing was given.
    #[error("the strategy is empty: name a preset ({}) or write out its parts", presets.join(", "))]
    Empty {
        /// The presets there are.
        presets: &'static [&'static str],
    },
    /// The first item is no preset.
    #[error("unknown strategy '{name}': the presets are {}", presets.join(", "))]
    UnknownPreset {
        /// What was given.
        name: String,
        /// The presets there are.
        presets: &'static [&'static str],
    },
    /// An item after the first is not of the form `part=choice`.
    #[error("'{item}' is not of the form part=choice (as in '{example}')")]
    NotAPart {
        /// What was given.
        item: String,
        /// How it is written.
        example: &'static str,
    },
    /// The left side of `part=choice` is no part.
    #[error("unknown part '{part}': the parts are {}", parts.join(", "))]
    UnknownPart {
        /// What was given.
        part: String,
        /// The parts there are.
        parts: &'static [&'static str],
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
    #[error("part '{part}' is missing: without a preset, write out {}", parts.join(", "))]
    MissingPart {
        /// The part.
        part: &'static str,
        /// The parts there are.
        parts: &'static [&'static str],
    },
    /// Two choices that cannot go together.
    #[error("{this} needs {needs}")]
    Needs {
        /// The choice.
        this: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// A control is the parquet crate's own code and has nothing to choose.
    #[error("'{control}' is the parquet crate's own code: it has no parts to replace")]
    UpstreamHasNoParts {
        /// The control.
        control: String,
    },
}
