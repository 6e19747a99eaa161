//! A matrix file: which datasets are worked on, how, and how often.

use std::path::Path;

use alloquet_report::sample::{Situation, Workload};
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Deserialize;

use super::{Bytes, Input, Plan, Settings, Watch, Work};
use crate::measure::{Changes, ReadLane, WriteLane, Writing};

/// Rows in a batch unless a matrix says otherwise.
const DEFAULT_BATCH_ROWS: usize = 65_536;

/// As many as `--reps` takes.
const MOST_REPETITIONS: usize = 1_000;

/// As many threads, or readers or writers at once, as one sample has.
pub(crate) const MOST_THREADS: usize = 256;

/// As often as one sample does its work.
pub(crate) const MOST_CYCLES: u32 = 10_000;

/// As far apart as the points of a timeline lie, in milliseconds.
pub(crate) const LONGEST_INTERVAL_MS: u32 = 100;

/// As many writers as one sample opens: each has one or two files open, and a process has 1,024.
pub(crate) const MOST_WRITERS: usize = 400;

/// A matrix as it stands in its file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Matrix {
    /// What the matrix is for, in a sentence.
    pub(crate) description: String,
    /// How often each cell is measured.
    #[serde(default)]
    pub(crate) repetitions: Repetitions,
    /// The settings that allocators are measured with; each allocator's defaults where there is no such table.
    #[serde(default)]
    allocator: Vec<AllocatorTable>,
    /// What is measured.
    work: Vec<WorkTable>,
}

/// One `[[allocator]]` table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct AllocatorTable {
    /// The allocator's name.
    name: String,
    /// Its settings, or several of them, each a column of the tables.
    #[serde(default)]
    settings: OneOrMore,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl Default for OneOrMore {
    fn default() -> Self {
        Self::One("default".to_owned())
    }
}

/// How often each cell is measured, by kind of sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repetitions {
    /// Samples with the allocator bare: times, RSS, faults.
    pub(crate) rss: usize,
    /// Samples with counting on and the checksum; at least one. Two that agree show that the figure repeats.
    pub(crate) heap: usize,
}

impl Default for Repetitions {
    fn default() -> Self {
        Self { rss: 3, heap: 2 }
    }
}

/// One `[[work]]` table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkTable {
    workload: Workload,
    datasets: Vec<String>,
    strategies: Vec<String>,
    #[serde(default = "default_batch_rows")]
    batch_rows: usize,
    #[serde(default)]
    scale: ScaleTable,
    situations: Option<Vec<Situation>>,
    writers: Option<usize>,
    properties: Option<Changes>,
    #[serde(default = "once")]
    threads: Vec<usize>,
    #[serde(default = "once")]
    concurrent: Vec<usize>,
    #[serde(default)]
    explain: bool,
    #[serde(default)]
    settle: bool,
    cycles: Option<u32>,
    timeline_ms: Option<u32>,
    memory_limit: Option<Bytes>,
    timeout_s: Option<u64>,
}

fn once() -> Vec<usize> {
    vec![1]
}

fn default_batch_rows() -> usize {
    DEFAULT_BATCH_ROWS
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ScaleTable {
    rows: f64,
    columns: f64,
}

impl Default for ScaleTable {
    fn default() -> Self {
        Self {
            rows: 1.0,
            columns: 1.0,
        }
    }
}

impl Matrix {
    /// Reads the matrix `name` from `folder`.
    ///
    /// # Errors
    ///
    /// There is no such file, or it is not such TOML. The message names the file, and the matrices there are.
    pub(crate) fn load(folder: &Path, name: &str) -> Result<Self> {
        ensure!(
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)),
            "'{name}' is no name of a matrix: it is a file's name in {} without .toml",
            folder.display()
        );
        let path = folder.join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&path).with_context(|| {
            let known = names(folder);
            format!(
                "cannot read matrix '{name}' from {}; {}",
                path.display(),
                if known.is_empty() {
                    "run at the root of the project, or pass --bench-data".to_owned()
                } else {
                    format!("the matrices there are: {}", known.join(", "))
                }
            )
        })?;
        toml::from_str(&text).map_err(|error| {
            // One line: toml's own text draws the place over several.
            let line = error
                .span()
                .map_or(0, |span| text[..span.start].lines().count().max(1));
            anyhow!(
                "{}, line {line}: {}",
                path.display(),
                error.message().replace('\n', ", ")
            )
        })
    }

    /// The plan of the matrix, checked.
    ///
    /// # Errors
    ///
    /// There is no heap sample, a strategy is unknown, a count is zero, or a scale is out of range. The message names the place.
    pub(crate) fn plan(&self, name: &str) -> Result<Plan> {
        ensure!(
            self.repetitions.heap > 0,
            "matrix '{name}' has repetitions.heap = 0: only heap samples carry the checksum that shows what was read; \
             set it to 1 at least, or 2 to see that the heap repeats"
        );
        ensure!(
            self.repetitions.rss.max(self.repetitions.heap) <= MOST_REPETITIONS,
            "matrix '{name}' asks for more than {MOST_REPETITIONS} repetitions"
        );
        let mut works: Vec<Work> = Vec::new();
        for table in &self.work {
            table
                .check()
                .with_context(|| format!("matrix '{name}', [[work]] of {:?}", table.datasets))?;
            works.extend(table.works());
        }
        ensure!(!works.is_empty(), "matrix '{name}' has no [[work]]");
        // Twice the same cell would pass for two repetitions.
        for (i, work) in works.iter().enumerate() {
            let same = |other: &&Work| {
                (
                    other.workload,
                    &other.input,
                    other.batch_rows,
                    &other.writing,
                    (other.threads, other.concurrent, other.memory_limit),
                ) == (
                    work.workload,
                    &work.input,
                    work.batch_rows,
                    &work.writing,
                    (work.threads, work.concurrent, work.memory_limit),
                )
            };
            ensure!(
                !works[..i].iter().any(|other| same(&other)),
                "matrix '{name}' has {work} twice with the same scale, batch_rows, writers, threads, memory_limit and properties"
            );
        }
        Ok(Plan {
            matrix: name.to_owned(),
            repetitions: self.repetitions,
            settings: self.settings(name)?,
            works,
        })
    }
}

impl Matrix {
    fn settings(&self, name: &str) -> Result<Settings> {
        let mut rows = Vec::new();
        for table in &self.allocator {
            let texts = match &table.settings {
                OneOrMore::One(text) => std::slice::from_ref(text),
                OneOrMore::More(texts) => texts,
            };
            ensure!(
                !texts.is_empty(),
                "matrix '{name}', [[allocator]] of {}: it names no settings; leave the key out for its defaults",
                table.name
            );
            rows.extend(texts.iter().map(|text| (table.name.clone(), text.clone())));
        }
        Ok(if rows.is_empty() {
            Settings::Defaults
        } else {
            Settings::Rows(rows)
        })
    }
}

impl WorkTable {
    fn check(&self) -> Result<()> {
        ensure!(!self.datasets.is_empty(), "it names no datasets");
        ensure!(!self.strategies.is_empty(), "it names no strategies");
        ensure!(self.batch_rows > 0, "batch_rows is 0");
        for (what, factor) in [("rows", self.scale.rows), ("columns", self.scale.columns)] {
            check_scale(&format!("scale.{what}"), factor)?;
        }
        if self.workload == Workload::Read {
            let keys = [
                ("situations", self.situations.is_some()),
                ("writers", self.writers.is_some()),
                ("properties", self.properties.is_some()),
            ];
            for (key, given) in keys {
                ensure!(!given, "{key} is for workload = \"write\" alone");
            }
        }
        if let Some(situations) = &self.situations {
            ensure!(!situations.is_empty(), "it names no situations");
        }
        if let Some(writers) = self.writers {
            ensure!(
                (1..=MOST_WRITERS).contains(&writers),
                "writers is {writers}: it must be 1 to {MOST_WRITERS}"
            );
        }
        for (what, counts) in [("threads", &self.threads), ("concurrent", &self.concurrent)] {
            ensure!(!counts.is_empty(), "{what} names no number");
            for count in counts {
                check_threads(what, *count)?;
            }
        }
        ensure!(
            self.workload == Workload::Read || self.threads == [1],
            "threads is for workload = \"read\" alone: several writers at once are concurrent, or writers in one thread"
        );
        if let Some(cycles) = self.cycles {
            ensure!(
                (2..=MOST_CYCLES).contains(&cycles),
                "cycles is {cycles}: it must be 2 to {MOST_CYCLES}"
            );
        }
        if let Some(interval) = self.timeline_ms {
            ensure!(
                (1..=LONGEST_INTERVAL_MS).contains(&interval),
                "timeline_ms is {interval}: it must be 1 to {LONGEST_INTERVAL_MS}"
            );
        }
        ensure!(self.timeout_s != Some(0), "timeout_s is 0");
        check_strategies(self.workload, &self.strategies)
    }

    /// What the table asks for: every dataset in every way, with each number of threads.
    fn works(&self) -> Vec<Work> {
        let mut works = Vec::new();
        for writing in self.writings() {
            for &threads in &self.threads {
                for &concurrent in &self.concurrent {
                    works.extend(self.datasets.iter().map(|dataset| Work {
                        writing: writing.clone(),
                        threads,
                        concurrent,
                        watch: Watch {
                            explain: self.explain,
                            settle: self.settle,
                            cycles: self.cycles,
                            timeline_ms: self.timeline_ms,
                        },
                        memory_limit: self.memory_limit,
                        timeout_s: self.timeout_s,
                        ..Work::new(
                            self.workload,
                            Input::Dataset {
                                name: dataset.clone(),
                                scale_rows: self.scale.rows,
                                scale_columns: self.scale.columns,
                            },
                            self.batch_rows,
                            self.strategies.clone(),
                        )
                    }));
                }
            }
        }
        works
    }

    /// Every way in which the table's datasets are written; one without meaning for a read.
    fn writings(&self) -> Vec<Writing> {
        let defaults = Writing::default();
        let situations = self.situations.clone();
        let situations = situations.unwrap_or_else(|| vec![defaults.situation]);
        situations
            .into_iter()
            .map(|situation| Writing {
                situation,
                writers: self.writers.unwrap_or(defaults.writers),
                changes: self.properties.clone().unwrap_or_default(),
            })
            .collect()
    }
}

/// Whether a sample can have so many threads.
///
/// # Errors
///
/// It cannot; the message names `what` was given.
pub(crate) fn check_threads(what: &str, count: usize) -> Result<()> {
    ensure!(
        (1..=MOST_THREADS).contains(&count),
        "{what} is {count}: it must be 1 to {MOST_THREADS}"
    );
    Ok(())
}

/// Whether a dataset can be scaled so.
///
/// # Errors
///
/// It cannot; the message names `what` was given.
pub(crate) fn check_scale(what: &str, factor: f64) -> Result<()> {
    ensure!(
        factor > 0.0 && factor <= 1.0,
        "{what} is {factor}: it must be above 0 and at most 1"
    );
    Ok(())
}

/// Whether a workload can be done with each of the strategies, and they are different ones, however they are written.
///
/// # Errors
///
/// One is unknown, and the message says which there are; or two are the same.
pub(crate) fn check_strategies(workload: Workload, strategies: &[String]) -> Result<()> {
    let mut seen: Vec<String> = Vec::new();
    for strategy in strategies {
        // It is a name in tables and in the CSV.
        ensure!(
            !strategy.contains(char::is_whitespace),
            "strategy {strategy:?} has spaces in it: write it without"
        );
        let same = match workload {
            Workload::Read => strategy.parse::<ReadLane>()?.to_string(),
            Workload::Write => strategy.parse::<WriteLane>()?.to_string(),
        };
        if let Some(at) = seen.iter().position(|other| *other == same) {
            bail!(
                "strategy '{strategy}' is given twice, first as '{}'",
                strategies[at]
            );
        }
        seen.push(same);
    }
    Ok(())
}

/// The names of the TOML files in a folder, sorted; none where it cannot be read.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let path = entry.path();
            let is_toml = path.extension().is_some_and(|ending| ending == "toml");
            is_toml.then(|| path.file_stem().map(|s| s.to_string_lossy().into_owned()))?
        })
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Plan> {
        toml::from_str::<Matrix>(text)?.plan("test")
    }

    const GOOD: &str = r#"
        description = "a test"
        repetitions = { rss = 3, heap = 2 }
        [[work]]
        workload = "read"
        datasets = ["a", "b"]
        strategies = ["pooled", "upstream"]
        scale = { columns = 0.5 }
        [[work]]
        workload = "write"
        datasets = ["a"]
        strategies = ["upstream"]
        batch_rows = 8192
    "#;

    #[test]
    fn a_matrix_becomes_works() {
        let plan = parse(GOOD).unwrap();
        assert_eq!(plan.works.len(), 3);
        assert_eq!(plan.samples(2), (2 * 2 + 1) * 2 * 5);
        assert_eq!(plan.works[0].batch_rows, DEFAULT_BATCH_ROWS);
        assert_eq!(plan.works[1].input.scale(), (1.0, 0.5));
    }

    #[test]
    fn errors_name_what_was_wrong() {
        let message = |from: &str, to: &str| {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD);
            format!("{:#}", parse(&text).unwrap_err())
        };
        assert!(message(r#"["pooled", "upstream"]"#, r#"["poled"]"#).contains("'poled'"));
        assert!(message("columns = 0.5", "columns = 0.0").contains("scale.columns is 0"));
        assert!(message("columns = 0.5", "colums = 0.5").contains("colums"));
        assert!(message("rss = 3, heap = 2", "rss = 3, heap = 0").contains("repetitions.heap = 0"));
        assert!(message("batch_rows = 8192", "batch_rows = 0").contains("batch_rows"));
        let strategies = r#"strategies = ["upstream"]"#;
        assert!(
            message(strategies, r#"strategies = ["temp-both"]"#).contains("eager, grow, exact")
        );
        assert!(message(r#"["a", "b"]"#, "[]").contains("no datasets"));
        let last = "batch_rows = 8192";
        assert!(message(last, "writers = 0").contains("writers is 0: it must be 1 to 400"));
        assert!(message(last, "situations = []").contains("no situations"));
        assert!(message(last, r#"situations = ["arrived"]"#).contains("`arrived`"));
        assert!(
            message(last, r#"situations = ["resident", "resident"]"#)
                .contains("write a (resident) twice")
        );
        assert!(message(last, "properties = { page = 1 }").contains("`page`"));
        assert!(message(last, "threads = [2]").contains("concurrent"));
        assert!(message(last, "concurrent = [0]").contains("concurrent is 0: it must be 1 to 256"));
        assert!(message(last, "cycles = 1").contains("cycles is 1: it must be 2 to 10000"));
        assert!(message(last, "timeline_ms = 0").contains("timeline_ms is 0"));
        assert!(message(last, "timeout_s = 0").contains("timeout_s is 0"));
        assert!(message(last, "memory_limit = '12 elephants'").contains("256MiB"));
        for key in ["situations = []", "writers = 2", "properties = {}"] {
            let error = message("scale = { columns = 0.5 }", key);
            assert!(error.contains("for workload = \"write\" alone"), "{error}");
        }
    }

    #[test]
    fn each_situation_is_a_work_of_its_own() {
        let text = GOOD.replace(
            "batch_rows = 8192",
            r#"situations = ["resident", "arriving"]
            writers = 3
            [work.properties]
            compression = "zstd""#,
        );
        let plan = parse(&text).unwrap();
        let writes: Vec<String> = plan.works[2..]
            .iter()
            .map(|work| format!("{work} {} {}", work.writing.writers, work.writing.changes))
            .collect();
        assert_eq!(
            writes,
            [
                "write a (resident) 3 compression=zstd(1)",
                "write a (arriving) 3 compression=zstd(1)"
            ]
        );
    }

    #[test]
    fn one_dataset_may_be_written_with_other_properties() {
        let more = r#"
            [[work]]
            workload = "write"
            datasets = ["a"]
            strategies = ["upstream"]
            batch_rows = 8192
            properties = { dictionary = false }
        "#;
        let plan = parse(&format!("{GOOD}{more}")).unwrap();
        assert_eq!(plan.works.len(), 4);
        let twice = parse(&format!("{GOOD}{more}{more}")).unwrap_err();
        assert!(twice.to_string().contains("twice"), "{twice}");
    }

    #[test]
    fn threads_and_what_is_watched_reach_the_works() {
        let text = GOOD.replace(
            "batch_rows = 8192",
            r#"concurrent = [1, 4]
            cycles = 50
            settle = true
            memory_limit = "256MiB""#,
        );
        let plan = parse(&text).unwrap();
        let writes = &plan.works[2..];
        assert_eq!(writes.len(), 2);
        assert_eq!((writes[0].concurrent, writes[1].concurrent), (1, 4));
        assert_eq!(writes[1].memory_limit, Some(Bytes(256 << 20)));
        let watch = &writes[1].watch;
        assert_eq!(
            (watch.cycles, watch.settle, watch.explain),
            (Some(50), true, false)
        );
    }

    #[test]
    fn allocators_and_their_settings_are_rows() {
        assert_eq!(parse(GOOD).unwrap().settings, Settings::Defaults);
        let rows = r#"
            [[allocator]]
            name = "system"
            [[allocator]]
            name = "jemalloc"
            settings = ["default", "dirty_decay_ms:0,muzzy_decay_ms:0"]
        "#;
        let plan = parse(&format!("{GOOD}{rows}")).unwrap();
        let row = |name: &str, settings: &str| (name.to_owned(), settings.to_owned());
        let expected = vec![
            row("system", "default"),
            row("jemalloc", "default"),
            row("jemalloc", "dirty_decay_ms:0,muzzy_decay_ms:0"),
        ];
        assert_eq!(plan.settings, Settings::Rows(expected));
        let none = parse(&format!(
            "{GOOD}[[allocator]]\nname = \"system\"\nsettings = []"
        ));
        assert!(none.unwrap_err().to_string().contains("no settings"));
    }
}
