//! What is run on changed bytes: a header, a module, the pages of a chunk, their decoding, a whole file.

use std::sync::Arc;

use alloquet_core::stages::{Buffers, ModuleKind, Opener, chunk, parse_header};
use alloquet_core::strategy::READ_PRESETS;
use alloquet_core::{ReadStrategy, ReaderBuilder};
use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::column::page::PageReader;

use crate::bounds;
use crate::engine::{Case, Outcome, Target, alone, campaign};
use crate::mutate::{Random, mutate};
use crate::seeds::{self, Seed};

/// The presets that read with this crate's buffers.
pub(crate) fn strategies() -> Vec<ReadStrategy> {
    let all = READ_PRESETS.iter().map(|name| name.parse().unwrap());
    all.filter(|strategy| *strategy != ReadStrategy::Upstream)
        .collect()
}

fn case(seed: usize, bytes: Vec<u8>, random: &mut Random) -> Case {
    Case {
        seed,
        bytes,
        strategy: *random.pick(&strategies()),
        batch_size: *random.pick(&[1, 7, 1024]),
        verify_checksums: random.below(4) == 0,
        select: random.below(4) == 0,
        choice: random.below(1 << 16),
    }
}

/// A seed with changes in the part that `region` names.
fn changed(
    region: impl Fn(&Seed, &mut Random) -> std::ops::Range<usize>,
    random: &mut Random,
) -> Case {
    let all = seeds::all();
    let i = random.below(all.len());
    let donor = &random.pick(all).bytes;
    let mut bytes = all[i].bytes.clone();
    let keep_len = random.below(2) == 0;
    mutate(&mut bytes, region(&all[i], random), donor, keep_len, random);
    case(i, bytes, random)
}

fn original(case: &Case) -> (&'static [u8], &'static str) {
    let seed = &seeds::all()[case.seed];
    (&seed.bytes, &seed.name)
}

/// A page header alone.
struct Header;

impl Target for Header {
    fn name(&self) -> &'static str {
        "header"
    }

    fn default_runs(&self) -> u64 {
        200_000
    }

    fn case(&self, random: &mut Random) -> Case {
        let headers = seeds::headers();
        let i = random.below(headers.len());
        let mut bytes = headers[i].clone();
        mutate(
            &mut bytes,
            0..usize::MAX,
            random.pick(headers).as_slice(),
            false,
            random,
        );
        case(i, bytes, random)
    }

    fn run(&self, case: &Case) -> Outcome {
        let mut outcome = Outcome::default();
        let parsed = outcome.step("parse", || parse_header(&case.bytes), |_| 0);
        if let Ok(Some(header)) = parsed {
            assert!(header.len <= case.bytes.len());
            assert!(header.stored_bytes.max(header.uncompressed_bytes) <= i32::MAX as usize);
        }
        outcome.error = parsed.err().map(str::to_owned);
        outcome
    }

    fn original(&self, case: &Case) -> (&'static [u8], &'static str) {
        (&seeds::headers()[case.seed], "a header")
    }
}

/// An encrypted module: a header that was changed before it was encrypted, and the module changed afterwards.
struct Module;

impl Module {
    fn opener() -> Opener {
        Opener::new(b"0123456789012345", b"a file's AAD", 1, 2).unwrap()
    }
}

impl Target for Module {
    fn name(&self) -> &'static str {
        "module"
    }

    fn default_runs(&self) -> u64 {
        100_000
    }

    fn case(&self, random: &mut Random) -> Case {
        let headers = seeds::headers();
        let i = random.below(headers.len());
        let mut bytes = headers[i].clone();
        mutate(
            &mut bytes,
            0..usize::MAX,
            random.pick(headers).as_slice(),
            false,
            random,
        );
        case(i, bytes, random)
    }

    fn run(&self, case: &Case) -> Outcome {
        let mut outcome = Outcome::default();
        let (opener, buffers) = (Self::opener(), Buffers::temporary());
        let kind = ModuleKind::ALL[case.choice % 4];
        let page = case.choice >> 2;
        let sealed = opener
            .seal(&case.bytes, kind, page, [case.choice as u8; 12])
            .unwrap();

        // Opened as it is, it gives what was sealed, and that is parsed.
        let opened = opener.open_separate(&sealed, kind, page, &buffers).unwrap();
        assert_eq!(opened.as_ref(), case.bytes);
        outcome.error = parse_header(opened.as_ref()).err().map(str::to_owned);
        drop(opened);

        // Changed in any way, it is refused both ways, and takes no more than its own length.
        let mut changed = sealed.clone();
        let mut random = Random::new(case.choice as u64, case.bytes.len() as u64);
        mutate(&mut changed, 0..usize::MAX, &case.bytes, false, &mut random);
        if changed == sealed {
            return outcome;
        }
        let bound = 1024 + changed.len() as u64;
        let refused = outcome.step(
            "open",
            || {
                opener
                    .open_separate(&changed, kind, page, &buffers)
                    .is_err()
            },
            |_| bound,
        );
        assert!(refused, "a changed module was opened");
        assert!(opener.open_in_place(&mut changed, kind, page).is_err());
        outcome
    }

    fn original(&self, case: &Case) -> (&'static [u8], &'static str) {
        (&seeds::headers()[case.seed], "a header")
    }
}

/// Changes among the pages, the metadata being as it was.
fn in_pages(seed: &Seed, _: &mut Random) -> std::ops::Range<usize> {
    4..seed.footer_start()
}

/// The pages of one chunk, fetched, decrypted, decompressed and checked.
struct Pages;

impl Target for Pages {
    fn name(&self) -> &'static str {
        "pages"
    }

    fn default_runs(&self) -> u64 {
        100_000
    }

    fn case(&self, random: &mut Random) -> Case {
        let all = seeds::all();
        let i = random.below(all.len());
        let seed = &all[i];
        let chunks = chunks(seed);
        let choice = random.below(chunks.len());
        let (row_group, column) = chunks[choice];
        let metadata = seed.metadata.metadata();
        let (start, len) = metadata.row_group(row_group).column(column).byte_range();
        let mut bytes = seed.bytes.clone();
        let region = start as usize..(start + len) as usize;
        let keep_len = random.below(2) == 0;
        mutate(
            &mut bytes,
            region,
            &random.pick(all).bytes,
            keep_len,
            random,
        );
        Case {
            choice,
            ..case(i, bytes, random)
        }
    }

    fn run(&self, case: &Case) -> Outcome {
        let seed = &seeds::all()[case.seed];
        let place = chunks(seed)[case.choice];
        let metadata = seed.metadata.metadata();
        let described = metadata.row_group(place.0).column(place.1);
        let bytes = Bytes::from(case.bytes.clone());
        let len = bytes.len();
        let ReadStrategy::Owned(owners) = case.strategy else {
            return Outcome::default();
        };
        let walk = || -> parquet::errors::Result<usize> {
            let keys = seed.keys.clone();
            let mut pages = chunk(bytes, len as u64, Arc::clone(metadata), keys, owners, place)?;
            let mut held = None;
            let mut count = 0;
            loop {
                if case.select && count % 3 == 1 {
                    pages.skip_next_page()?;
                    count += 1;
                    continue;
                }
                let _ = pages.peek_next_page()?;
                match pages.get_next_page()? {
                    // As decoders do: a page is held while the next is made.
                    Some(page) => held = Some(page),
                    None => break,
                }
                count += 1;
            }
            drop(held);
            Ok(count)
        };
        let mut outcome = Outcome::default();
        let walked = outcome.step("walk", walk, |_| bounds::of_chunk(described, len));
        outcome.error = walked.err().map(|error| error.to_string());
        outcome
    }

    fn original(&self, case: &Case) -> (&'static [u8], &'static str) {
        original(case)
    }
}

/// Every chunk of a file: row group, leaf column.
fn chunks(seed: &Seed) -> Vec<(usize, usize)> {
    let row_groups = seed.metadata.metadata().row_groups().iter().enumerate();
    row_groups
        .flat_map(|(i, row_group)| (0..row_group.num_columns()).map(move |column| (i, column)))
        .collect()
}

/// Reads a file's batches, each dropped when the next is asked for.
pub(crate) fn read(
    builder: ReaderBuilder<Bytes>,
    case: &Case,
    mut each: impl FnMut(RecordBatch),
) -> Result<(), String> {
    let mut builder = builder
        .with_strategy(case.strategy)
        .with_batch_size(case.batch_size)
        .with_page_checksum_verification(case.verify_checksums);
    if case.select {
        let selectors = [(3, true), (2, false), (5, true), (1, false), (9, true)];
        let selectors = selectors.map(|(rows, skip)| RowSelector {
            row_count: rows,
            skip,
        });
        builder = builder.with_row_selection(RowSelection::from(selectors.to_vec()));
    }
    for batch in builder.build().map_err(|error| error.to_string())? {
        each(batch.map_err(|error| error.to_string())?);
    }
    Ok(())
}

/// The batches of a file whose pages are changed.
struct Decode;

impl Target for Decode {
    fn name(&self) -> &'static str {
        "decode"
    }

    fn default_runs(&self) -> u64 {
        20_000
    }

    fn case(&self, random: &mut Random) -> Case {
        changed(in_pages, random)
    }

    fn run(&self, case: &Case) -> Outcome {
        let seed = &seeds::all()[case.seed];
        let bytes = Bytes::from(case.bytes.clone());
        let len = bytes.len();
        let mut builder = ReaderBuilder::new_with_metadata(bytes, seed.metadata.clone());
        if let Some(keys) = &seed.keys {
            builder = builder.with_file_decryption_properties(Arc::clone(keys));
        }
        let mut outcome = Outcome::default();
        let result = outcome.step(
            "decode",
            || read(builder, case, drop),
            |_| bounds::of_batches(seed.metadata.metadata(), len, case.batch_size),
        );
        outcome.error = result.err();
        outcome
    }

    fn original(&self, case: &Case) -> (&'static [u8], &'static str) {
        original(case)
    }
}

/// A whole file, its footer too.
pub(crate) struct WholeFile;

impl Target for WholeFile {
    fn name(&self) -> &'static str {
        "file"
    }

    fn default_runs(&self) -> u64 {
        20_000
    }

    fn case(&self, random: &mut Random) -> Case {
        changed(
            |seed, random| {
                // Mostly the footer: what changes among pages, `decode` sees.
                let start = seed.footer_start() * usize::from(random.below(4) != 0);
                start..seed.bytes.len()
            },
            random,
        )
    }

    fn run(&self, case: &Case) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.error = read_whole(case, &mut outcome, drop).err();
        outcome
    }

    fn original(&self, case: &Case) -> (&'static [u8], &'static str) {
        original(case)
    }
}

/// Opens, looks through and reads a file.
pub(crate) fn read_whole(
    case: &Case,
    outcome: &mut Outcome,
    each: impl FnMut(RecordBatch),
) -> Result<(), String> {
    let seed = &seeds::all()[case.seed];
    let bytes = Bytes::from(case.bytes.clone());
    let len = bytes.len();
    let builder = outcome
        .step(
            "open",
            || ReaderBuilder::try_new_with_options(bytes, seed.options()),
            |_| bounds::of_metadata(len),
        )
        .map_err(|error| error.to_string())?;
    let pages = outcome.step("headers", || builder.pages(), |_| bounds::of_headers(len));
    let metadata = Arc::clone(builder.metadata());
    let result = outcome.step(
        "read",
        || read(builder, case, each),
        |_| bounds::of_batches(&metadata, len, case.batch_size),
    );
    result.and(pages.map(drop).map_err(|error| error.to_string()))
}

#[test]
fn headers() {
    alone(|| drop(campaign(&Header)));
}

#[test]
fn modules() {
    alone(|| drop(campaign(&Module)));
}

#[test]
fn pages() {
    alone(|| drop(campaign(&Pages)));
}

#[test]
fn decoding() {
    alone(|| drop(campaign(&Decode)));
}

#[test]
fn whole_files() {
    alone(|| drop(campaign(&WholeFile)));
}
