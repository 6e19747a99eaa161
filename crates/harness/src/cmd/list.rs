//! The command `list`: what there is to measure, and how.

use std::fmt::Write as _;

use alloquet_core::strategy::READ_PRESETS;
use alloquet_datagen::Dataset;
use alloquet_report::cell::LIMIT;
use anyhow::Result;

use crate::allocator;
use crate::cli::ListArgs;
use crate::measure::write_strategies;
use crate::output::print;
use crate::plan::{Matrix, names};
use crate::run::Folders;
use crate::settings::PRESETS;

/// Runs the command.
///
/// # Errors
///
/// A definition is wrong.
pub(crate) fn run(args: &ListArgs) -> Result<()> {
    let folders = Folders {
        root: args.data.bench_data.clone(),
    };
    let mut text = String::new();
    writeln!(text, "Matrices in {}", folders.matrices().display())?;
    for name in names(&folders.matrices()) {
        let matrix = Matrix::load(&folders.matrices(), &name)?;
        writeln!(text, "  {name:<28} {}", matrix.description)?;
    }
    writeln!(text, "\nDatasets in {}", folders.datasets().display())?;
    for name in names(&folders.datasets()) {
        let dataset = Dataset::load(&folders.definition(&name))?;
        writeln!(text, "  {name:<28} {}", dataset.description())?;
    }
    writeln!(text, "\nStrategies")?;
    writeln!(
        text,
        "  {:<28} {}, {LIMIT}",
        "read",
        READ_PRESETS.join(", ")
    )?;
    writeln!(
        text,
        "  {:<28} a preset with parts replaced, as in temp-both,codec=shared",
        ""
    )?;
    writeln!(text, "  {:<28} {}", "write", write_strategies().join(", "))?;
    writeln!(
        text,
        "  {:<28} a preset with parts replaced, as in grow,sink=spill",
        ""
    )?;
    if !cfg!(feature = "upstream-eager") {
        writeln!(
            text,
            "  {:<28} upstream-eager, the parquet crate before arrow-rs #11149, is in a build with --features \
             upstream-eager",
            ""
        )?;
    }
    writeln!(text, "\nSettings of allocators (thp=off goes with each)")?;
    for (i, (_, presets)) in PRESETS.iter().enumerate() {
        // Builds of one library have the same.
        if PRESETS[..i].iter().any(|(_, before)| before == presets) {
            continue;
        }
        let same: Vec<&str> = PRESETS
            .iter()
            .filter(|(_, others)| others == presets)
            .map(|(name, _)| *name)
            .collect();
        writeln!(text, "  {}", same.join(", "))?;
        for preset in *presets {
            writeln!(text, "    {:<26} {}", preset.name, preset.purpose)?;
            if !preset.text.is_empty() {
                writeln!(text, "    {:<26} {}", "", preset.text)?;
            }
        }
    }
    writeln!(text, "\nAllocator of this build")?;
    writeln!(
        text,
        "  {:<28} {}",
        allocator::name(),
        allocator::version().version
    )?;
    print(text)
}
