//! What the benches of writing share: cases with upstream's names, shapes and sizes, and the one function that
//! writes a case. Times are the business of `arrow_writer` and `writer_overhead`, heap that of `writer_peak_heap`.

mod arrow_writer;
mod data;
mod writer_overhead;

use std::cell::OnceCell;
use std::hint::black_box;
use std::io::Empty;

use alloquet_core::{WriteStrategy, Writer};
use arrow_array::RecordBatch;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;

/// The control first, then the strategies that are compared with it.
const LANES: [&str; 5] = ["upstream", "grow", "exact", "bounded", "pooled"];

/// Rows that are enough to see whether a strategy can write a case at all.
const FEW_ROWS: usize = 4;

/// One of upstream's benchmarks. Its data is made when it is needed: some of it takes 256 MiB.
pub(crate) struct Case {
    /// Upstream's file, group and function, as in `arrow_writer/string/parquet_2`.
    pub(crate) id: String,
    pub(crate) rows: usize,
    /// The length of its values, or 0 where they have several.
    pub(crate) value_bytes: usize,
    /// Under `--test`, where only running through matters.
    rows_for_test: usize,
    /// How often the batch is written into the one row group.
    writes: usize,
    /// Makes so many rows of values of such a length.
    make: Box<dyn Fn(usize, usize) -> RecordBatch>,
    properties: WriterProperties,
}

/// A strategy by its name.
pub(crate) struct Lane {
    pub(crate) name: &'static str,
    strategy: WriteStrategy,
}

/// The cases of upstream's file `file`, in upstream's order.
pub(crate) fn cases_of(file: &str) -> impl Iterator<Item = Case> {
    cases().filter(move |case| case.id.split('/').next() == Some(file))
}

fn cases() -> impl Iterator<Item = Case> {
    arrow_writer::cases()
        .into_iter()
        .chain(writer_overhead::cases())
}

impl Case {
    /// The lanes whose benchmarks are wanted, by their full names, and that can write the case; of one that cannot a
    /// line says why it is left out.
    pub(crate) fn lanes(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Lane> {
        let few = OnceCell::new();
        let wanted = LANES
            .iter()
            .filter(|name| is_wanted(&format!("{}/{name}", self.id)));
        let lanes = wanted.filter_map(|&name| {
            let few = few.get_or_init(|| self.made_of(FEW_ROWS));
            let strategy = name.parse().expect("a lane is a preset");
            match self.write_as(few, strategy) {
                Ok(_) => Some(Lane { name, strategy }),
                Err(ParquetError::NYI(why)) => {
                    println!("{}/{name}: left out: {why}", self.id);
                    None
                }
                Err(error) => panic!("{}/{name}: {error}", self.id),
            }
        });
        lanes.collect()
    }

    /// What is written.
    pub(crate) fn batch(&self) -> RecordBatch {
        let is_test = std::env::args().any(|argument| argument == "--test");
        self.made_of(if is_test {
            self.rows_for_test
        } else {
            self.rows
        })
    }

    fn made_of(&self, rows: usize) -> RecordBatch {
        (self.make)(rows, self.value_bytes)
    }

    /// Writes a file to nowhere, and gives its length in bytes.
    pub(crate) fn write(&self, batch: &RecordBatch, lane: &Lane) -> u64 {
        self.write_as(batch, lane.strategy)
            .unwrap_or_else(|error| panic!("{}/{}: {error}", self.id, lane.name))
    }

    fn write_as(&self, batch: &RecordBatch, strategy: WriteStrategy) -> Result<u64> {
        let properties = Some(self.properties.clone());
        let mut writer = Writer::try_new(Empty::default(), batch.schema(), properties)?
            .with_strategy(strategy)?;
        if self.writes == 1 {
            // The table is in memory, so nothing needs to hold it.
            writer.write_table(std::slice::from_ref(black_box(batch)))?;
        } else {
            // What each call costs is the question.
            for _ in 0..self.writes {
                writer.write(black_box(batch))?;
            }
        }
        Ok(black_box(writer.close()?).bytes_written())
    }
}
