//! The command `fit`: does it fit in so much memory, and which knob gets it there?
//!
//! Every way is measured without a limit first, so that all have figures; those that seem to fit and are worth telling are
//! then tried with no more memory than the limit.

use std::process::ExitCode;

use alloquet_core::strategy::READ_PRESETS;
use alloquet_report::cell::LIMIT;
use alloquet_report::fit::{Candidate, Way, candidates, render, worth_telling};
use alloquet_report::format::mib;
use alloquet_report::sample::{Kind, Sample, Situation, Status, Workload};
use anyhow::{Result, bail, ensure};

use super::keys::keys;
use crate::cli::FitArgs;
use crate::interruption::INTERRUPTED;
use crate::measure::{Writing, write_strategies};
use crate::output::{print, remark};
use crate::plan::{Bytes, Input, Plan, Repetitions, Settings, Work, check_strategies};
use crate::run::{Binary, Folders, Session, Setup, note_unused_variables};
use crate::settings::presets;

/// What a user has without choosing anything.
const BASELINE: &str = "upstream";

/// Rows in a batch that are tried.
const BATCH_ROWS: [usize; 4] = [65_536, 16_384, 4_096, 1_024];

/// As many ways as are tried with no more memory than the limit.
const MOST_TRIED: usize = 4;

/// Runs the command.
///
/// # Errors
///
/// The file, its keys, a strategy, a setting or a binary is not what it must be.
pub(crate) fn run(args: &FitArgs) -> Result<ExitCode> {
    note_unused_variables();
    let search = Search {
        args,
        binaries: Binary::all(&args.with)?,
    };
    let texts = search.settings();
    if !texts.is_empty() {
        // What is wrong with them is said before anything is measured.
        Setup::all(&search.binaries, &Settings::Given(texts.clone()))?;
    }
    let first = search.measure(search.works(None)?, Settings::Defaults)?;
    let Some(mut samples) = first else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let baseline = samples
        .iter()
        .map(Way::of)
        .find(|way| search.is_baseline(way));
    let Some(baseline) = baseline else {
        bail!("nothing was measured of {}", args.file.display());
    };
    if let Some(unread) = unreadable(&samples) {
        bail!("{unread}");
    }

    // Settings come next: of what needs least, and of the baseline.
    if !texts.is_empty() {
        let works = search.works(Some(&lowest(&samples, &baseline)))?;
        match search.measure(works, Settings::Given(texts))? {
            Some(more) => samples.extend(more),
            None => return Ok(ExitCode::from(INTERRUPTED)),
        }
    }

    let found = candidates(&samples, &baseline);
    let limit = args.within.0;
    let table = samples.iter().find_map(|sample| sample.decoded_bytes);
    let table = table.filter(|_| args.write).unwrap_or(0);
    let to_try: Vec<Candidate> = worth_telling(&found, limit)
        .into_iter()
        .take(MOST_TRIED)
        .cloned()
        .collect();
    let mut limited_by = None;
    for candidate in to_try {
        let tried = search.try_within(&candidate.way, Bytes(limit + table))?;
        let Some(tried) = tried else {
            return Ok(ExitCode::from(INTERRUPTED));
        };
        limited_by = tried
            .iter()
            .map(|sample| sample.limited_by.clone())
            .find(|by| !by.is_empty())
            .or(limited_by);
        samples.extend(tried);
    }
    print(render(
        &candidates(&samples, &baseline),
        limit,
        limited_by.as_deref(),
    ))?;
    if args.write {
        remark(format_args!(
            "note: the batches are copied from a table of {} here; a service has none, so that it is not counted",
            mib(table)
        ));
    }
    let fits = candidates(&samples, &baseline)
        .iter()
        .any(|candidate| candidate.fits(limit));
    Ok(if fits {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Why nothing can be done with the file, where every sample failed.
fn unreadable(samples: &[Sample]) -> Option<&str> {
    let all_failed = samples.iter().all(|sample| sample.status == Status::Failed);
    let first = samples.first().filter(|_| all_failed)?;
    Some(&first.error)
}

/// The few ways that need least, and the baseline.
fn lowest(samples: &[Sample], baseline: &Way) -> Vec<Way> {
    /// As many ways as settings are tried with.
    const MOST: usize = 3;
    let mut by_rss: Vec<(u64, Way)> = samples
        .iter()
        .filter_map(|sample| Some((sample.max_rss_bytes?, Way::of(sample))))
        .collect();
    by_rss.sort();
    let mut ways = vec![baseline.clone()];
    for (_, way) in by_rss {
        let same =
            |other: &Way| (&other.strategy, other.batch_rows) == (&way.strategy, way.batch_rows);
        if ways.len() < MOST && !ways.iter().any(same) {
            ways.push(way);
        }
    }
    ways
}

struct Search<'a> {
    args: &'a FitArgs,
    binaries: Vec<Binary>,
}

impl Search<'_> {
    fn workload(&self) -> Workload {
        if self.args.write {
            Workload::Write
        } else {
            Workload::Read
        }
    }

    fn is_baseline(&self, way: &Way) -> bool {
        let first = self.batch_rows().first().copied();
        way.strategy == BASELINE
            && Some(way.batch_rows) == first.map(|rows| rows as u64)
            && way.setup.settings.is_empty()
            && way.setup.label == self.binaries[0].label
    }

    fn batch_rows(&self) -> Vec<usize> {
        if self.args.batch_rows.is_empty() {
            BATCH_ROWS.to_vec()
        } else {
            self.args.batch_rows.iter().map(|rows| rows.get()).collect()
        }
    }

    /// The settings to try: those asked for, or every preset of the allocators at hand.
    fn settings(&self) -> Vec<String> {
        let mut texts = self.args.set.clone();
        if texts.is_empty() {
            let names = self.binaries.iter();
            let names = names.flat_map(|binary| presets(&binary.environment.allocator.name));
            texts.extend(names.map(|preset| preset.name.to_owned()));
        }
        texts.retain(|text| text != "default");
        texts.dedup();
        if !texts.is_empty() {
            // Times are compared within a run, so the baseline is in each.
            texts.insert(0, "default".to_owned());
        }
        texts
    }

    /// Every strategy with every number of rows, or only `ways`.
    fn works(&self, ways: Option<&[Way]>) -> Result<Vec<Work>> {
        let mut strategies: Vec<String> = match (self.args.strategy.is_empty(), self.args.write) {
            (false, _) => self.args.strategy.clone(),
            (true, false) => READ_PRESETS.iter().map(|&name| name.to_owned()).collect(),
            (true, true) => write_strategies().into_iter().map(str::to_owned).collect(),
        };
        if !strategies.iter().any(|strategy| strategy == BASELINE) {
            strategies.push(BASELINE.to_owned());
        }
        ensure!(
            !strategies.iter().any(|strategy| strategy == LIMIT),
            "the strategy {LIMIT} makes no batches, so nothing can be read with it: leave it out"
        );
        check_strategies(self.workload(), &strategies)?;
        let mut works = Vec::new();
        for batch_rows in self.batch_rows() {
            let mut strategies = strategies.clone();
            if let Some(ways) = ways {
                strategies.retain(|strategy| {
                    ways.iter()
                        .any(|way| way.strategy == *strategy && way.batch_rows == batch_rows as u64)
                });
            }
            if !strategies.is_empty() {
                works.push(self.work(batch_rows, strategies));
            }
        }
        Ok(works)
    }

    fn work(&self, batch_rows: usize, strategies: Vec<String>) -> Work {
        Work {
            writing: Writing {
                // A service that writes has no table in memory.
                situation: Situation::Arriving,
                ..Writing::default()
            },
            ..Work::new(
                self.workload(),
                Input::File(self.args.file.clone()),
                batch_rows,
                strategies,
            )
        }
    }

    /// One way with no more memory than `limit`.
    fn try_within(&self, way: &Way, limit: Bytes) -> Result<Option<Vec<Sample>>> {
        let mut work = self.work(way.batch_rows as usize, vec![way.strategy.clone()]);
        work.memory_limit = Some(limit);
        let binaries = self.binaries.iter();
        let binaries = binaries.filter(|binary| binary.label == way.setup.label);
        let settings = match way.setup.settings.as_str() {
            "" => Settings::Defaults,
            text => Settings::Given(vec![text.to_owned()]),
        };
        self.measure_with(vec![work], settings, binaries.cloned().collect(), 1)
    }

    fn measure(&self, works: Vec<Work>, settings: Settings) -> Result<Option<Vec<Sample>>> {
        self.measure_with(works, settings, self.binaries.clone(), self.args.reps)
    }

    /// The samples; `None` where the user interrupted it.
    fn measure_with(
        &self,
        works: Vec<Work>,
        settings: Settings,
        binaries: Vec<Binary>,
        reps: usize,
    ) -> Result<Option<Vec<Sample>>> {
        let plan = Plan {
            matrix: "fit".to_owned(),
            repetitions: Repetitions { rss: reps, heap: 0 },
            settings,
            works,
        };
        let outcome = Session {
            plan,
            binaries,
            seed: None,
            folders: Folders::none(),
            results: self.args.results.clone(),
            resume: false,
            keys: keys(self.args.key_file.as_deref())?,
            limit: std::time::Duration::from_secs(self.args.timeout),
            budget: None,
            cpus: Vec::new(),
        }
        .run()?;
        if let Some(error) = outcome.not_written {
            bail!(error);
        }
        if outcome.interrupted {
            remark("interrupted");
            return Ok(None);
        }
        let samples = outcome.samples.into_iter();
        Ok(Some(samples.filter(|s| s.kind == Kind::Rss).collect()))
    }
}
