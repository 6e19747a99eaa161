//! A matrix file: which datasets are worked on, how, and how often.

use std::path::Path;

use alloquet_core::ReadStrategy;
use alloquet_report::sample::{Situation, Workload};
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Deserialize;

use super::{Input, Plan, Work};
use crate::measure::{Changes, WriteLane, Writing};

/// Rows in a batch unless a matrix says otherwise.
const DEFAULT_BATCH_ROWS: usize = 65_536;

/// As many as `--reps` takes.
const MOST_REPETITIONS: usize = 1_000;

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
    /// What is measured.
    work: Vec<WorkTable>,
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
            for writing in table.writings() {
                works.extend(table.datasets.iter().map(|dataset| Work {
                    workload: table.workload,
                    input: Input::Dataset {
                        name: dataset.clone(),
                        scale_rows: table.scale.rows,
                        scale_columns: table.scale.columns,
                    },
                    batch_rows: table.batch_rows,
                    writing: writing.clone(),
                    strategies: table.strategies.clone(),
                }));
            }
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
                ) == (work.workload, &work.input, work.batch_rows, &work.writing)
            };
            ensure!(
                !works[..i].iter().any(|other| same(&other)),
                "matrix '{name}' has {work} twice with the same scale, batch_rows, writers and properties"
            );
        }
        Ok(Plan {
            matrix: name.to_owned(),
            repetitions: self.repetitions,
            works,
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
        check_strategies(self.workload, &self.strategies)
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
            Workload::Read => strategy.parse::<ReadStrategy>()?.to_string(),
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
}
