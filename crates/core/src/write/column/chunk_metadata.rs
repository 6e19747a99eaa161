//! What is kept of a column chunk's pages while it is written, and what becomes of it in the footer.
//!
//! Page by page the column index is put down as it will be written, in Thrift: a page costs its bytes in the
//! file and no more. Sources: `ColumnMetaData`, `Statistics`, `ColumnIndex` and `OffsetIndex` in
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.

use std::collections::BTreeSet;

use parquet::basic::{Compression, Encoding};
use parquet::file::properties::EnabledStatistics;

use super::plan::{ColumnPlan, FilePlan, Physical, ValueOrder};
use super::statistics::{Boundary, Extremes, truncate_max, truncate_min};
use crate::format::compact_writer::{Element, Struct, binary_element, bool_element, int_element};

/// What a data page says of itself.
pub(crate) struct PageSummary {
    pub(crate) rows: u32,
    pub(crate) nulls: u32,
    pub(crate) encoding: Encoding,
    /// `None` if it has no values, or they have no order.
    pub(crate) extremes: Option<Extremes>,
    pub(crate) nans: u64,
    /// Bytes of byte arrays, without their lengths.
    pub(crate) variable_bytes: u64,
}

/// A page's place in its chunk.
struct Entry {
    /// Header included, bytes.
    stored: u32,
    rows: u32,
}

/// The data pages of one chunk so far.
#[derive(Default)]
pub(crate) struct ChunkMetadata {
    rows: u64,
    nulls: u64,
    nans: u64,
    variable_bytes: u64,
    /// Headers included, bytes.
    uncompressed: u64,
    stored: u64,
    extremes: Option<Extremes>,
    boundary: Boundary,
    entries: Vec<Entry>,
    /// Encoding and number of data pages, in file order.
    encodings: Vec<(Encoding, u32)>,
    dictionary: Option<DictionaryPage>,
    index: Index,
}

struct DictionaryPage {
    stored: u64,
}

/// The column index's lists so far, without their heads. Whether there is one is known at the end: a page whose values have no
/// order ends it.
#[derive(Default)]
struct Index {
    invalid: bool,
    null_pages: Vec<u8>,
    mins: Vec<u8>,
    maxs: Vec<u8>,
    null_counts: Vec<u8>,
    histograms: Vec<u8>,
    nan_counts: Vec<u8>,
    /// Of the offset index.
    variable_bytes: Vec<u8>,
}

impl ChunkMetadata {
    /// Takes in a data page of `uncompressed` and `stored` bytes, header included.
    pub(crate) fn add_page(
        &mut self,
        page: PageSummary,
        uncompressed: usize,
        stored: usize,
        plan: &ColumnPlan,
        file: &FilePlan,
    ) {
        if file.offset_index {
            self.entries.push(Entry {
                stored: stored as u32,
                rows: page.rows,
            });
        }
        self.uncompressed += uncompressed as u64;
        self.stored += stored as u64;
        self.rows += u64::from(page.rows);
        self.nulls += u64::from(page.nulls);
        self.nans += page.nans;
        self.variable_bytes += page.variable_bytes;
        match self.encodings.last_mut() {
            Some((encoding, pages)) if *encoding == page.encoding => *pages += 1,
            _ => self.encodings.push((page.encoding, 1)),
        }
        if file.offset_index && plan.physical == Physical::Bytes {
            int_element(&mut self.index.variable_bytes, page.variable_bytes as i64);
        }
        if plan.statistics == EnabledStatistics::Page {
            self.index_page(&page, plan, file);
        }
        if let Some(extremes) = page.extremes {
            Extremes::merge(&mut self.extremes, extremes, plan.order);
        }
    }

    fn index_page(&mut self, page: &PageSummary, plan: &ColumnPlan, file: &FilePlan) {
        let index = &mut self.index;
        if index.invalid {
            return;
        }
        let null_page = page.rows == page.nulls;
        match &page.extremes {
            Some(extremes) => {
                self.boundary.add(extremes, plan.order);
                extremes.min.with_bytes(|bytes| {
                    let cut = truncate_min(bytes, file.index_truncate, plan);
                    binary_element(&mut index.mins, cut.as_deref().unwrap_or(bytes));
                });
                extremes.max.with_bytes(|bytes| {
                    let cut = truncate_max(bytes, file.index_truncate, plan);
                    binary_element(&mut index.maxs, cut.as_deref().unwrap_or(bytes));
                });
            }
            None if null_page => {
                binary_element(&mut index.mins, b"");
                binary_element(&mut index.maxs, b"");
            }
            None => {
                *index = Index {
                    invalid: true,
                    variable_bytes: std::mem::take(&mut index.variable_bytes),
                    ..Index::default()
                };
                return;
            }
        }
        bool_element(&mut index.null_pages, null_page);
        int_element(&mut index.null_counts, i64::from(page.nulls));
        if plan.nullable {
            int_element(&mut index.histograms, i64::from(page.nulls));
            int_element(&mut index.histograms, i64::from(page.rows - page.nulls));
        }
        if has_nan_count(plan) {
            int_element(&mut index.nan_counts, page.nans as i64);
        }
    }

    /// Takes in the dictionary page.
    pub(crate) fn add_dictionary(&mut self, uncompressed: usize, stored: usize) {
        self.uncompressed += uncompressed as u64;
        self.stored += stored as u64;
        self.dictionary = Some(DictionaryPage {
            stored: stored as u64,
        });
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of the chunk in the file.
    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// Bytes of the chunk before compression, page headers included.
    pub(crate) fn uncompressed(&self) -> u64 {
        self.uncompressed
    }

    /// Whether a data page has its values in it rather than in the dictionary.
    pub(crate) fn has_direct_pages(&self) -> bool {
        self.encodings
            .iter()
            .any(|(encoding, _)| *encoding != Encoding::RLE_DICTIONARY)
    }

    /// Bytes in the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let index = &self.index;
        self.entries.capacity() * size_of::<Entry>()
            + self.encodings.capacity() * size_of::<(Encoding, u32)>()
            + self.extremes.as_ref().map_or(0, Extremes::heap_bytes)
            + self.boundary.heap_bytes()
            + index.null_pages.capacity()
            + index.mins.capacity()
            + index.maxs.capacity()
            + index.null_counts.capacity()
            + index.histograms.capacity()
            + index.nan_counts.capacity()
            + index.variable_bytes.capacity()
    }

    /// Appends the chunk's `ColumnMetaData`. The chunk begins at `offset` in the file; `bloom` is where its filter
    /// lies and how long it is.
    pub(crate) fn write_metadata(
        &self,
        out: &mut Vec<u8>,
        name: &str,
        offset: u64,
        bloom: Option<(u64, u32)>,
        plan: &ColumnPlan,
        file: &FilePlan,
    ) {
        let mut s = Struct::new(out);
        s.i32(1, plan.physical.code());
        let mut encodings = BTreeSet::from([Encoding::RLE as i32]);
        encodings.extend(self.encodings.iter().map(|(encoding, _)| *encoding as i32));
        if self.dictionary.is_some() {
            encodings.insert(Encoding::PLAIN as i32);
        }
        let list = s.list(2, Element::I32, encodings.len());
        for encoding in encodings {
            int_element(list, i64::from(encoding));
        }
        if file.path_in_schema {
            binary_element(s.list(3, Element::Binary, 1), name.as_bytes());
        }
        s.i32(4, codec_code(plan.compression));
        s.i64(5, self.rows as i64);
        s.i64(6, self.uncompressed as i64);
        s.i64(7, self.stored as i64);
        let dictionary = self.dictionary.as_ref().map_or(0, |page| page.stored);
        s.i64(9, (offset + dictionary) as i64);
        if self.dictionary.is_some() {
            s.i64(11, offset as i64);
        }
        if plan.statistics != EnabledStatistics::None {
            let statistics = s.nested(12);
            self.write_statistics(statistics, plan, file);
        }
        self.write_encoding_stats(&mut s, file);
        if let Some((at, len)) = bloom {
            s.i64(14, at as i64);
            s.i32(15, len as i32);
        }
        let size = plan.statistics != EnabledStatistics::None
            && (plan.physical == Physical::Bytes || plan.nullable);
        if size {
            let mut sizes = s.nested(16);
            if plan.physical == Physical::Bytes {
                sizes.i64(1, self.variable_bytes as i64);
            }
            if plan.nullable {
                let histogram = sizes.list(3, Element::I64, 2);
                int_element(histogram, self.nulls as i64);
                int_element(histogram, (self.rows - self.nulls) as i64);
            }
            sizes.end();
        }
        s.end();
    }

    fn write_statistics(&self, s: Struct<'_>, plan: &ColumnPlan, file: &FilePlan) {
        write_statistics(
            s,
            self.extremes.as_ref(),
            self.nulls,
            (has_nan_count(plan) && self.nulls < self.rows).then_some(self.nans),
            plan.signed,
            plan,
            file,
        );
    }

    fn write_encoding_stats(&self, s: &mut Struct<'_>, file: &FilePlan) {
        let dictionary = usize::from(self.dictionary.is_some());
        let stats = s.list(13, Element::Struct, self.encodings.len() + dictionary);
        let mut stat = |page_type: i32, encoding: Encoding, pages: u32| {
            let mut one = Struct::new(stats);
            one.i32(1, page_type);
            one.i32(2, encoding as i32);
            one.i32(3, pages as i32);
            one.end();
        };
        if dictionary == 1 {
            stat(2, Encoding::PLAIN, 1);
        }
        for (encoding, pages) in &self.encodings {
            stat(if file.v2 { 3 } else { 0 }, *encoding, *pages);
        }
    }

    /// Appends the `ColumnIndex`; nothing if the chunk has none.
    pub(crate) fn write_column_index(&self, out: &mut Vec<u8>, plan: &ColumnPlan) {
        let index = &self.index;
        let pages = index.null_pages.len();
        let len = index.mins.len() + index.maxs.len();
        // Its length is written in 31 bits; a chunk may go without one.
        let too_long = len > i32::MAX as usize / 2;
        if plan.statistics != EnabledStatistics::Page || index.invalid || too_long {
            return;
        }
        let mut s = Struct::new(out);
        s.list(1, Element::Bool, pages)
            .extend_from_slice(&index.null_pages);
        s.list(2, Element::Binary, pages)
            .extend_from_slice(&index.mins);
        s.list(3, Element::Binary, pages)
            .extend_from_slice(&index.maxs);
        s.i32(4, self.boundary.code());
        s.list(5, Element::I64, pages)
            .extend_from_slice(&index.null_counts);
        if plan.nullable {
            s.list(7, Element::I64, pages * 2)
                .extend_from_slice(&index.histograms);
        }
        if has_nan_count(plan) {
            s.list(8, Element::I64, pages)
                .extend_from_slice(&index.nan_counts);
        }
        s.end();
    }

    /// Appends the `OffsetIndex` of a chunk that begins at `offset`.
    pub(crate) fn write_offset_index(&self, out: &mut Vec<u8>, offset: u64, plan: &ColumnPlan) {
        let mut s = Struct::new(out);
        let list = s.list(1, Element::Struct, self.entries.len());
        let mut at = offset + self.dictionary.as_ref().map_or(0, |page| page.stored);
        let mut row = 0i64;
        for entry in &self.entries {
            let mut location = Struct::new(list);
            location.i64(1, at as i64);
            location.i32(2, entry.stored as i32);
            location.i64(3, row);
            location.end();
            at += u64::from(entry.stored);
            row += i64::from(entry.rows);
        }
        if plan.physical == Physical::Bytes {
            s.list(2, Element::I64, self.entries.len())
                .extend_from_slice(&self.index.variable_bytes);
        }
        s.end();
    }
}

/// Whether NaN is counted in a column: if it can have any.
pub(crate) fn has_nan_count(plan: &ColumnPlan) -> bool {
    matches!(plan.order, ValueOrder::Float | ValueOrder::Float16)
}

/// Writes a `Statistics`, of a chunk or of a page.
pub(crate) fn write_statistics(
    mut s: Struct<'_>,
    extremes: Option<&Extremes>,
    nulls: u64,
    nans: Option<u64>,
    deprecated: bool,
    plan: &ColumnPlan,
    file: &FilePlan,
) {
    let limit = file.statistics_truncate;
    let bounds = extremes.map(|extremes| {
        let min = extremes
            .min
            .with_bytes(|bytes| match truncate_min(bytes, limit, plan) {
                Some(cut) => (cut, false),
                None => (bytes.to_vec(), true),
            });
        let max = extremes
            .max
            .with_bytes(|bytes| match truncate_max(bytes, limit, plan) {
                Some(cut) => (cut, false),
                None => (bytes.to_vec(), true),
            });
        (min, max)
    });
    if deprecated && let Some(((min, _), (max, _))) = &bounds {
        s.binary(1, max);
        s.binary(2, min);
    }
    s.i64(3, nulls as i64);
    match &bounds {
        Some(((min, min_exact), (max, max_exact))) => {
            s.binary(5, max);
            s.binary(6, min);
            s.bool(7, *max_exact);
            s.bool(8, *min_exact);
        }
        None => {
            s.bool(7, false);
            s.bool(8, false);
        }
    }
    if let Some(nans) = nans {
        s.i64(9, nans as i64);
    }
    s.end();
}

/// The number that the format has for a codec (`CompressionCodec` in parquet.thrift).
fn codec_code(codec: Compression) -> i32 {
    match codec {
        Compression::UNCOMPRESSED => 0,
        Compression::SNAPPY => 1,
        Compression::GZIP(_) => 2,
        Compression::LZO => 3,
        Compression::BROTLI(_) => 4,
        Compression::LZ4 => 5,
        Compression::ZSTD(_) => 6,
        Compression::LZ4_RAW => 7,
    }
}
