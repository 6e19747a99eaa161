//! The command `list`: what there is to measure, and how.

use alloquet_core::strategy::PRESETS;
use alloquet_datagen::Dataset;
use anyhow::Result;

use crate::allocator;
use crate::cli::ListArgs;
use crate::plan::{Matrix, WRITE_STRATEGIES, names};
use crate::run::Folders;

/// Runs the command.
///
/// # Errors
///
/// A definition is wrong.
pub(crate) fn run(args: &ListArgs) -> Result<()> {
    let folders = Folders {
        root: args.data.bench_data.clone(),
    };
    println!("Matrices in {}", folders.matrices().display());
    for name in names(&folders.matrices()) {
        let matrix = Matrix::load(&folders.matrices(), &name)?;
        println!("  {name:<28} {}", matrix.description);
    }
    println!("\nDatasets in {}", folders.datasets().display());
    for name in names(&folders.datasets()) {
        let dataset = Dataset::load(&folders.definition(&name))?;
        println!("  {name:<28} {}", dataset.description());
    }
    println!("\nStrategies");
    println!("  {:<28} {}", "read", PRESETS.join(", "));
    println!(
        "  {:<28} a preset with parts replaced, as in temp-both,codec=shared",
        ""
    );
    println!("  {:<28} {}", "write", WRITE_STRATEGIES.join(", "));
    println!("\nAllocator of this build");
    println!(
        "  {:<28} {}",
        allocator::name(),
        allocator::version().version
    );
    Ok(())
}
