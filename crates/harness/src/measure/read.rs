//! The workload `read`: a file's batches by a strategy, each folded and dropped before the next.
//!
//! Opening the file and reading its metadata come before the window: they are the same for every
//! strategy. Building the reader is in it, because buffers may be made there.
//!
//! Several threads decode the columns of one reader (core's strategies), or share the file by its row groups, each with a reader of
//! its own for a run of them (the control `upstream`, which knows no threads). Several readers at once open the file each for
//! itself, and each reads all of it.

mod lane;
mod shares;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use alloquet_core::strategy::Decode;
use alloquet_core::{ColumnReader, Ledger, PageInfo, ReadStrategy, Reader, ReaderBuilder};
use alloquet_report::sample::Kind;
use alloquet_report::verify::PAGES_NOT_LISTED;
use anyhow::{Context, Result, ensure};
use parquet::arrow::arrow_reader::ArrowReaderOptions;

pub(crate) use self::lane::ReadLane;
use self::shares::Shares;
use super::checksum::Checksum;
use super::conduct::take;
use super::explain;
use super::fold::Fold;
use super::job::Job;
use super::outcome::{Copying, LedgerFacts, Outcome, PageFacts, Work};
use super::task::{Facts, Task};

pub(super) fn measure(job: &Job) -> Result<Outcome> {
    let lane: ReadLane = job.strategy.parse()?;
    let name = job.file.display();
    let threads = job.conduct.threads;
    ensure!(
        lane != ReadLane::Limit || threads == 1,
        "the strategy {lane} has one page buffer, and so one thread, not {threads}"
    );

    let builder = configured(job, lane)?;
    let file_bytes = std::fs::metadata(&job.file)
        .with_context(|| format!("cannot read {name}"))?
        .len();
    let leaf_columns = builder.parquet_schema().num_columns() as u64;
    let num_rows = builder.metadata().file_metadata().num_rows();
    // Who has no threads is given some of the row groups in each.
    let of_file = if lane.has_threads() { 1 } else { threads };
    let shares = Shares::new(builder.metadata().num_row_groups(), of_file, &name)?;
    // The heap of an `explain` sample must be that of a `heap` sample, call by call.
    let is_checked = matches!(job.kind, Kind::Heap | Kind::Explain);
    let pages = is_checked.then(|| listed(builder.pages()));
    let mut opened = Opened::new(job, lane, of_file, builder)?;

    let count = of_file * job.conduct.concurrent;
    let taken = take(job, count, |number| {
        let builder = opened.builder(job, &shares, number)?;
        let checksum = is_checked.then(|| Checksum::new(builder.schema()));
        Ok(ReadTask {
            job,
            lane,
            checksum: checksum.transpose()?,
            builder: Some(builder),
            fold: Fold::default(),
            reader: None,
        })
    })?;
    let mut flags = taken.flags;
    if pages == Some(None) {
        flags.push(PAGES_NOT_LISTED.to_owned());
    }
    let readers: Vec<&[ReadFacts]> = taken.facts.chunks(shares.count()).collect();
    let (first, others) = readers.split_first().context("a read needs a reader")?;
    for reader in others {
        for (facts, expected) in reader.iter().zip(*first) {
            let same = facts.check_same(expected);
            same.with_context(|| format!("two readers of {name} at once read other values"))?;
        }
    }
    let mut fold = Fold::default();
    first.iter().for_each(|facts| fold.merge(&facts.fold));
    // A reader that stops early must not pass for a fast one.
    ensure!(
        i64::try_from(fold.rows()) == Ok(num_rows),
        "{name} gave {} rows with strategy {lane}, and its metadata says {num_rows}",
        fold.rows()
    );
    let checksum = match *first {
        [facts] => facts.checksum,
        of_shares if is_checked => Some(opened.verify(job, &shares, of_shares)?),
        _ => None,
    };

    let work = Work {
        measures: taken.measures,
        flags,
        fold,
        checksum,
        file_bytes,
        leaf_columns,
        memory_size_error: None,
        ledger: ledger_facts(&readers),
        copying: copying(lane, &taken.facts),
        pages: pages.flatten(),
        parts: taken
            .explanation
            .map_or_else(Vec::new, |explanation| explanation.parts),
        points: taken.points,
    };
    Ok(work.into())
}

/// The job's file, open and with its metadata read, for as many readers as there will be.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one of it, and a box would be freed in the window"
)]
enum Opened {
    /// One reader, once: it takes what was opened, and frees in the window what it does not need.
    Once(Option<ReaderBuilder<File>>),
    /// One for each reader of the whole file, for all its threads and cycles.
    Shared(Vec<ReaderBuilder<File>>),
}

impl Opened {
    fn new(job: &Job, lane: ReadLane, shares: usize, first: ReaderBuilder<File>) -> Result<Self> {
        let conduct = &job.conduct;
        if shares == 1 && conduct.concurrent == 1 && job.kind != Kind::Cycles {
            return Ok(Self::Once(Some(first)));
        }
        let others = (1..conduct.concurrent).map(|_| configured(job, lane));
        let all = std::iter::once(Ok(first)).chain(others);
        Ok(Self::Shared(all.collect::<Result<_>>()?))
    }

    /// What the task `number` reads with.
    fn builder(
        &mut self,
        job: &Job,
        shares: &Shares,
        number: usize,
    ) -> Result<ReaderBuilder<File>> {
        match self {
            Self::Once(builder) => builder.take().context("the file was read before"),
            Self::Shared(opened) => {
                let (reader, share) = (number / shares.count(), number % shares.count());
                let builder = another(job, opened.get(reader).context("one reader too many")?)?;
                Ok(match shares.of(share) {
                    Some(row_groups) => builder.with_row_groups(row_groups),
                    None => builder,
                })
            }
        }
    }

    /// Reads the shares once more, one after the other, with the parquet crate's own reader: each must have the checksum
    /// that its thread got. Gives that of the whole file.
    fn verify(&self, job: &Job, shares: &Shares, found: &[ReadFacts]) -> Result<u64> {
        let Self::Shared(opened) = self else {
            anyhow::bail!("the file was not kept open");
        };
        let opened = opened.first().context("the file was not kept open")?;
        let mut whole = Checksum::new(opened.schema())?;
        for (share, facts) in found.iter().enumerate() {
            let mut checksum = Checksum::new(opened.schema())?;
            let builder = another(job, opened)?.with_strategy(ReadStrategy::Upstream);
            let row_groups = shares.of(share).unwrap_or_default();
            for batch in builder.with_row_groups(row_groups).build()? {
                let batch = batch?;
                checksum.add(&batch)?;
                whole.add(&batch)?;
            }
            ensure!(
                facts.checksum == Some(checksum.finish()),
                "thread {share} got other values from {} with strategy {} than the parquet crate",
                job.file.display(),
                job.strategy
            );
        }
        Ok(whole.finish())
    }
}

/// The same file with a handle of its own: the parquet crate's readers move the place in a file that they share.
fn another(job: &Job, opened: &ReaderBuilder<File>) -> Result<ReaderBuilder<File>> {
    let file = File::open(&job.file);
    let file = file.with_context(|| format!("cannot open {}", job.file.display()))?;
    Ok(opened.with_source(file))
}

/// One reader's work: all of the file, or a thread's share of it.
struct ReadTask<'a> {
    job: &'a Job,
    lane: ReadLane,
    builder: Option<ReaderBuilder<File>>,
    checksum: Option<Checksum>,
    fold: Fold,
    reader: Option<OpenReader>,
}

/// What is read from: it is held until everything is dropped.
enum OpenReader {
    Batches(Reader),
    Columns(ColumnReader),
}

impl OpenReader {
    fn ledger(&self) -> Arc<Ledger> {
        match self {
            Self::Batches(reader) => reader.ledger(),
            Self::Columns(reader) => reader.ledger(),
        }
    }
}

impl ReadTask<'_> {
    fn read(&mut self) -> Result<()> {
        let builder = self.builder.take().context("it was read before")?;
        let rows = builder.metadata().file_metadata().num_rows();
        let reader = match self.lane {
            ReadLane::Core(_) => OpenReader::Batches(builder.build()?),
            ReadLane::Limit => OpenReader::Columns(builder.build_column_wise()?),
        };
        let reader = self.reader.insert(reader);
        explain::register(&reader.ledger());
        match reader {
            OpenReader::Batches(reader) => {
                for batch in reader {
                    let batch = batch?;
                    self.fold.add(&batch)?;
                    if let Some(checksum) = &mut self.checksum {
                        checksum.add(&batch)?;
                    }
                }
                Ok(())
            }
            OpenReader::Columns(reader) => {
                let mut last = Rows::default();
                for values in reader {
                    let values = values?;
                    last.add(values.column, values.array.len(), rows)?;
                    self.fold.add_column(values.column, &values.array)?;
                    if let Some(checksum) = &mut self.checksum {
                        checksum.add_column(values.column, &values.array)?;
                    }
                }
                last.end(rows)
            }
        }
    }
}

/// The rows of the column that is read, where columns come one after the other: each must have all rows of the file.
#[derive(Default)]
struct Rows {
    column: usize,
    rows: usize,
}

impl Rows {
    fn add(&mut self, column: usize, rows: usize, of_file: i64) -> Result<()> {
        if column != self.column {
            self.end(of_file)?;
            *self = Self { column, rows: 0 };
        }
        self.rows += rows;
        Ok(())
    }

    fn end(&self, of_file: i64) -> Result<()> {
        ensure!(
            i64::try_from(self.rows) == Ok(of_file),
            "column {} has {} rows, and the metadata says {of_file}",
            self.column,
            self.rows
        );
        Ok(())
    }
}

impl Task for ReadTask<'_> {
    type Facts = ReadFacts;

    fn perform(&mut self) -> Result<()> {
        let job = self.job;
        self.read().with_context(|| {
            let name = job.file.display();
            format!("cannot read {name} with strategy {}", job.strategy)
        })
    }

    fn finish(self) -> ReadFacts {
        ReadFacts {
            fold: self.fold,
            checksum: self.checksum.map(|checksum| checksum.finish()),
            ledger: self.reader.map(|reader| reader.ledger()),
        }
    }
}

/// What is left of a reader.
struct ReadFacts {
    fold: Fold,
    checksum: Option<u64>,
    ledger: Option<Arc<Ledger>>,
}

impl Facts for ReadFacts {
    fn check_same(&self, before: &Self) -> Result<()> {
        ensure!(
            (self.fold, self.checksum) == (before.fold, before.checksum),
            "it has the fold {:016x} and not {:016x}, or another checksum",
            self.fold.sum(),
            before.fold.sum()
        );
        Ok(())
    }

    fn shrink(&mut self) {
        self.ledger = None;
    }
}

/// What the ledgers of all readers say together, each at its own peak. Threads share their reader's metadata.
fn ledger_facts(readers: &[&[ReadFacts]]) -> Option<LedgerFacts> {
    let mut sum: Option<LedgerFacts> = None;
    for reader in readers {
        for (share, facts) in reader.iter().enumerate() {
            let facts = LedgerFacts::from(&facts.ledger.as_ref()?.peak());
            match &mut sum {
                None => sum = Some(facts),
                Some(sum) if share == 0 => sum.add(facts),
                Some(sum) => sum.add(facts.without_metadata()),
            }
        }
    }
    sum
}

/// What core's readers asked of the file and did with its values; of the control `upstream` nothing is known.
fn copying(lane: ReadLane, readers: &[ReadFacts]) -> Option<Copying> {
    let ReadStrategy::Owned(owners) = lane.strategy() else {
        return None;
    };
    let mut sum = Copying::default();
    for reader in readers {
        sum.add(reader.ledger.as_ref()?, owners.decode == Decode::Direct);
    }
    Some(sum)
}

/// What there is to say of a file's pages, if core can list them. `upstream` reads without core's page headers, so
/// that these cannot be listed must not fail it; every other strategy meets the same error when it reads.
fn listed<E>(pages: Result<Vec<PageInfo>, E>) -> Option<PageFacts> {
    pages.ok().as_deref().map(PageFacts::of)
}

/// The job's file, open and with all that it is to be read with.
fn configured(job: &Job, lane: ReadLane) -> Result<ReaderBuilder<File>> {
    let builder = open(job)?
        .with_strategy(lane.strategy())
        .with_batch_size(job.batch_rows);
    Ok(if lane.has_threads() {
        builder.with_threads(job.conduct.threads)
    } else {
        builder
    })
}

/// Opens the job's file and reads its metadata.
pub(super) fn open(job: &Job) -> Result<ReaderBuilder<File>> {
    let name = job.file.display();
    // A FIFO or a device would be waited for.
    let found = std::fs::metadata(&job.file).with_context(|| format!("cannot read {name}"))?;
    ensure!(found.is_file(), "cannot read {name}: it is no regular file");
    let file = File::open(&job.file).with_context(|| format!("cannot open {name}"))?;
    let builder = ReaderBuilder::try_new_with_options(file, options(job)?).with_context(|| {
        let hint = if job.keys.is_none() && is_encrypted(&job.file) {
            "; it is encrypted: give its keys with --key-file or ALLOQUET_KEYS"
        } else {
            ""
        };
        format!("cannot read the Parquet metadata of {name}{hint}")
    })?;
    let metadata = builder.metadata();
    let in_groups: i64 = metadata
        .row_groups()
        .iter()
        .map(|group| group.num_rows())
        .sum();
    ensure!(
        in_groups == metadata.file_metadata().num_rows(),
        "the metadata of {name} contradicts itself: {} rows, and {in_groups} in its row groups",
        metadata.file_metadata().num_rows()
    );
    Ok(builder)
}

/// Whether a file ends as one with an encrypted footer does.
fn is_encrypted(path: &Path) -> bool {
    let ending = || -> std::io::Result<[u8; 4]> {
        let mut file = File::open(path)?;
        let mut magic = [0; 4];
        file.seek(SeekFrom::End(-4))?;
        file.read_exact(&mut magic)?;
        Ok(magic)
    };
    ending().is_ok_and(|magic| magic == *b"PARE")
}

/// The options that the job's keys make.
pub(super) fn options(job: &Job) -> Result<ArrowReaderOptions> {
    let options = ArrowReaderOptions::new();
    Ok(match &job.keys {
        Some(keys) => {
            let keys = keys.decryption_properties();
            options
                .with_file_decryption_properties(keys.context("cannot use the keys of the file")?)
        }
        None => options,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_cannot_be_listed_are_no_error() {
        assert_eq!(listed(Err("a header that only upstream understands")), None);
        let none = PageFacts {
            largest_stored_bytes: 0,
            largest_bytes: 0,
        };
        assert_eq!(listed(Ok::<_, ()>(Vec::new())), Some(none));
    }
}
