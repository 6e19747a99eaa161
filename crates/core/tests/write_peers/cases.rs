//! What is written, and how: a set of cases in which each choice meets each other choice of another
//! kind at least once.

use std::collections::BTreeSet;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{Compression, Encoding, Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

use crate::nested::with_nested;
use crate::support::{Nulls, Random, STRATEGIES, batch};

/// How values are encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Values {
    /// In a dictionary that holds them all.
    Dictionary,
    /// In a dictionary that most columns outgrow, and then as the version has it.
    Outgrown,
    /// As [`Outgrown`](Self::Outgrown), but then as [`Delta`](Self::Delta) has it.
    OutgrownToDelta,
    /// As the version has it where there is no dictionary.
    Version,
    Plain,
    /// Differences: of integers, of lengths; runs of booleans.
    Delta,
    /// Bytes apart, where values are of fixed length; byte arrays by what they share.
    Split,
}

/// How a file is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// A page a column chunk, one row group.
    Whole,
    /// Many pages, one row group.
    Pages,
    /// Many pages, several row groups.
    Groups,
    /// What limits are by default, with rows enough to meet those of pages and dictionaries.
    Default,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Statistics {
    /// None, and no page index.
    None,
    /// Of column chunks; the page index says only where pages are.
    Chunk,
    /// Of pages: the whole page index.
    Page,
    /// As [`Page`](Self::Page), and in page headers too.
    PageHeader,
}

const CODECS: [&str; 7] = [
    "uncompressed",
    "snappy",
    "gzip",
    "brotli",
    "lz4raw",
    "lz4",
    "zstd",
];
const VERSIONS: [WriterVersion; 2] = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
const VALUES: [Values; 7] = [
    Values::Dictionary,
    Values::Outgrown,
    Values::OutgrownToDelta,
    Values::Version,
    Values::Plain,
    Values::Delta,
    Values::Split,
];
const NULLS: [Nulls; 4] = [Nulls::Required, Nulls::None, Nulls::Some, Nulls::All];
const LAYOUTS: [Layout; 3] = [Layout::Whole, Layout::Pages, Layout::Groups];
const STATISTICS: [Statistics; 4] = [
    Statistics::None,
    Statistics::Chunk,
    Statistics::Page,
    Statistics::PageHeader,
];

/// How many choices there are of each kind, in the order of [`Case::of`].
const CHOICES: [usize; 8] = [
    STRATEGIES.len(),
    VERSIONS.len(),
    CODECS.len(),
    VALUES.len(),
    NULLS.len(),
    LAYOUTS.len(),
    STATISTICS.len(),
    // Bloom filters or none.
    2,
];

/// One file.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) strategy: &'static str,
    version: WriterVersion,
    codec: &'static str,
    values: Values,
    pub(crate) nulls: Nulls,
    layout: Layout,
    pub(crate) statistics: Statistics,
    pub(crate) bloom: bool,
    seed: u64,
}

impl Case {
    fn of(choice: &[usize; 8], seed: u64) -> Self {
        Self {
            strategy: STRATEGIES[choice[0]],
            version: VERSIONS[choice[1]],
            codec: CODECS[choice[2]],
            values: VALUES[choice[3]],
            nulls: NULLS[choice[4]],
            layout: LAYOUTS[choice[5]],
            statistics: STATISTICS[choice[6]],
            bloom: choice[7] == 1,
            seed,
        }
    }

    /// What it is, as a file's name without its extension; names sort as cases do.
    pub(crate) fn name(&self) -> String {
        let version = match self.version {
            WriterVersion::PARQUET_1_0 => "v1",
            WriterVersion::PARQUET_2_0 => "v2",
        };
        format!(
            "{:03} {} {version} {} {:?} nulls={:?} {:?} statistics={:?} bloom={}",
            self.seed,
            self.strategy,
            self.codec,
            self.values,
            self.nulls,
            self.layout,
            self.statistics,
            self.bloom,
        )
    }

    /// Columns of every flat type, and nested ones among them.
    pub(crate) fn batches(&self) -> Vec<RecordBatch> {
        let (batches, rows, distinct) = match self.layout {
            Layout::Default => (3, 8_200, 20_000),
            _ => (3, 500, 400),
        };
        (0..batches)
            .map(|i| {
                let seed = self.seed * 10 + i;
                with_nested(&batch(rows, self.nulls, distinct, seed), self.nulls, seed)
            })
            .collect()
    }

    pub(crate) fn row_groups(&self) -> usize {
        match self.layout {
            Layout::Groups => 3,
            _ => 1,
        }
    }

    pub(crate) fn properties(&self, schema: &Schema) -> WriterProperties {
        let mut properties = WriterProperties::builder()
            .set_writer_version(self.version)
            .set_compression(self.compression())
            .set_dictionary_enabled(matches!(
                self.values,
                Values::Dictionary | Values::Outgrown | Values::OutgrownToDelta
            ))
            .set_statistics_enabled(match self.statistics {
                Statistics::None => EnabledStatistics::None,
                Statistics::Chunk => EnabledStatistics::Chunk,
                Statistics::Page | Statistics::PageHeader => EnabledStatistics::Page,
            })
            .set_offset_index_disabled(self.statistics == Statistics::None)
            .set_write_page_header_statistics(self.statistics == Statistics::PageHeader)
            .set_bloom_filter_enabled(self.bloom);
        if matches!(self.values, Values::Outgrown | Values::OutgrownToDelta) {
            properties = properties.set_dictionary_page_size_limit(900);
        }
        if matches!(self.layout, Layout::Pages | Layout::Groups) {
            properties = properties
                .set_data_page_row_count_limit(150)
                .set_data_page_size_limit(2_000);
        }
        if self.layout == Layout::Groups {
            properties = properties.set_max_row_group_row_count(Some(600));
        }
        let leaves = ArrowSchemaConverter::new().convert(schema).unwrap();
        for leaf in leaves.columns() {
            if let Some(encoding) = self.encoding(leaf.physical_type()) {
                properties = properties.set_column_encoding(leaf.path().clone(), encoding);
            }
        }
        properties.build()
    }

    fn compression(&self) -> Compression {
        match self.codec {
            "snappy" => Compression::SNAPPY,
            "gzip" => Compression::GZIP(Default::default()),
            "brotli" => Compression::BROTLI(Default::default()),
            "lz4raw" => Compression::LZ4_RAW,
            "lz4" => Compression::LZ4,
            "zstd" => Compression::ZSTD(Default::default()),
            _ => Compression::UNCOMPRESSED,
        }
    }

    fn encoding(&self, physical: Type) -> Option<Encoding> {
        let encoding = match (self.values, physical) {
            (Values::Plain, _) => Encoding::PLAIN,
            (Values::Delta | Values::OutgrownToDelta, Type::INT32 | Type::INT64) => {
                Encoding::DELTA_BINARY_PACKED
            }
            (Values::Delta | Values::OutgrownToDelta, Type::BYTE_ARRAY) => {
                Encoding::DELTA_LENGTH_BYTE_ARRAY
            }
            (Values::Delta | Values::OutgrownToDelta, Type::FIXED_LEN_BYTE_ARRAY)
            | (Values::Split, Type::BYTE_ARRAY) => Encoding::DELTA_BYTE_ARRAY,
            (Values::Delta | Values::Split, Type::BOOLEAN) => Encoding::RLE,
            (
                Values::Split,
                Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE | Type::FIXED_LEN_BYTE_ARRAY,
            ) => Encoding::BYTE_STREAM_SPLIT,
            _ => return None,
        };
        Some(encoding)
    }
}

/// Two choices of different kinds: kind and choice, and the same of the later kind.
type Pair = (usize, usize, usize, usize);

fn pairs(choice: &[usize; 8]) -> impl Iterator<Item = Pair> {
    (0..choice.len())
        .flat_map(move |a| (a + 1..choice.len()).map(move |b| (a, choice[a], b, choice[b])))
}

/// Every pair of choices, in as few files as picking the best of some at random gives; and a file with
/// the limits that writers have by default for each preset.
pub(crate) fn cases() -> Vec<Case> {
    let mut missing: BTreeSet<Pair> = BTreeSet::new();
    for (a, choices) in CHOICES.into_iter().enumerate() {
        for (b, others) in CHOICES.into_iter().enumerate().skip(a + 1) {
            for x in 0..choices {
                missing.extend((0..others).map(|y| (a, x, b, y)));
            }
        }
    }
    let mut random = Random::new(17);
    let mut cases = Vec::new();
    while let Some(&(a, x, b, y)) = missing.first() {
        let candidates = (0..60).map(|_| {
            let mut choice = CHOICES.map(|count| random.below(count as u64) as usize);
            (choice[a], choice[b]) = (x, y);
            choice
        });
        let news =
            |choice: &[usize; 8]| pairs(choice).filter(|pair| missing.contains(pair)).count();
        let best = candidates.max_by_key(news).unwrap();
        for pair in pairs(&best) {
            missing.remove(&pair);
        }
        cases.push(Case::of(&best, cases.len() as u64));
    }
    for (i, preset) in ["eager", "grow", "exact", "bounded", "pooled"]
        .into_iter()
        .enumerate()
    {
        let values = [Values::Dictionary, Values::Version][i % 2];
        let mut case = Case::of(&[0, 1, 1 + i, 0, 2, 0, 2, 1], cases.len() as u64);
        case.strategy = preset;
        case.layout = Layout::Default;
        case.values = values;
        cases.push(case);
    }
    cases
}
