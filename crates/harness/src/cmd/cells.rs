//! Chooses cells among recorded samples.

use alloquet_report::cell::Cell;
use alloquet_report::sample::Sample;

use crate::cli::CellArgs;

/// Those of `samples` that the arguments ask for.
pub(super) fn chosen<'a>(args: &CellArgs, samples: &[&'a Sample]) -> Vec<&'a Sample> {
    let samples = samples.iter().filter(|sample| is_chosen(args, sample));
    samples.copied().collect()
}

fn is_chosen(args: &CellArgs, sample: &Sample) -> bool {
    let among =
        |asked: &[String], found: &str| asked.is_empty() || asked.iter().any(|a| a == found);
    let settings: Vec<String> = args
        .settings
        .iter()
        .map(|text| if text == "default" { "" } else { text }.to_owned())
        .collect();
    (among(&args.allocator, &sample.allocator) || among(&args.allocator, &sample.label))
        && among(&args.dataset, &sample.dataset)
        && among(&args.strategy, &sample.strategy)
        && among(&settings, &sample.settings)
        && among(&args.properties, &sample.properties)
}

/// A sample's cell in words.
pub(super) fn name(sample: &Sample) -> String {
    let cell = Cell::of(sample);
    let properties = if sample.properties.is_empty() {
        String::new()
    } else {
        format!(" ({})", sample.properties)
    };
    format!(
        "{} {}{properties} by {}",
        sample.workload, sample.dataset, cell.lane
    )
}

/// All of them in words.
pub(super) fn names(samples: &[&Sample]) -> String {
    let names: Vec<String> = samples.iter().map(|sample| name(sample)).collect();
    names.join("; ")
}
