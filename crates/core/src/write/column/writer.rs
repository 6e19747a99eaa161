//! [`ColumnWriter`]: takes arrays, cuts pages within their limits, and falls back from the dictionary.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::Array;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use parquet::basic::Encoding;
use parquet::bloom_filter::Sbbf;
use parquet::data_type::AsBytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::EnabledStatistics;

use super::super::compress::Compressor;
use super::super::encode::DefinitionLevels;
use super::super::encode::Growth;
use super::super::encode::{encode_indices, max_indices_len};
use super::super::page_header::{self, Page};
use super::super::pages::{Spill, Stored};
use super::chunk_metadata::{ChunkMetadata, PageSummary, has_nan_count, write_statistics};
use super::dictionary::{Dictionary, Indices, Number};
use super::direct::Direct;
use super::plan::{ColumnPlan, FilePlan, Physical, ValueOrder};
use super::source::{ByteValues, Numbers, Source, Strided, is_indirect, materialise, valid_runs};
use super::statistics::{
    Extremes, Value, compare_bytes, extremes_f32, extremes_f64, extremes_i32, extremes_i64,
    is_nan16,
};
use crate::format::compact_writer::Struct;
use crate::strategy::{Encode, EncoderBuffers, Fallback};

/// What the columns of a writer share while they are encoded.
pub(crate) struct Context<'a> {
    pub(crate) file: &'a FilePlan,
    pub(crate) buffers: EncoderBuffers,
    pub(crate) growth: &'a Growth,
    pub(crate) scratch: &'a mut Scratch,
    /// The compressor of all columns; `None` if each has its own.
    pub(crate) compressor: Option<&'a mut Compressor>,
    pub(crate) pages: ChunkPages<'a>,
}

/// Where pages go.
pub(crate) enum ChunkPages<'a> {
    Memory,
    Spill(&'a mut Spill),
    /// Straight to the file, once the chunk's dictionary is.
    File(&'a mut dyn std::io::Write),
}

/// Buffers in which pages are put together.
#[derive(Default)]
pub(crate) struct Scratch {
    i32s: Vec<i32>,
    i64s: Vec<i64>,
    f32s: Vec<f32>,
    f64s: Vec<f64>,
    bytes: Vec<u8>,
    rows: Vec<u32>,
    header: Vec<u8>,
    levels: Vec<u8>,
    /// A page before compression.
    body: Vec<u8>,
    compressed: Vec<u8>,
    /// The most bytes that `body` and `compressed` had since this was last asked.
    peak: usize,
}

impl Scratch {
    /// Bytes in the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        (self.i32s.capacity() + self.f32s.capacity() + self.rows.capacity()) * 4
            + (self.i64s.capacity() + self.f64s.capacity()) * 8
            + self.bytes.capacity()
            + self.header.capacity()
            + self.levels.capacity()
            + self.page_bytes()
    }

    fn page_bytes(&self) -> usize {
        self.body.capacity() + self.compressed.capacity()
    }

    /// The most bytes that pages took while they were put together, since this was last asked.
    pub(crate) fn take_peak(&mut self) -> usize {
        std::mem::take(&mut self.peak)
    }

    /// Gives the buffers of a page back, where they are not kept for the next.
    fn page_done(&mut self, keep: bool) {
        self.peak = self.peak.max(self.page_bytes());
        if !keep {
            self.body = Vec::new();
            self.compressed = Vec::new();
            self.levels = Vec::new();
        }
    }
}

/// The page that values are put into.
#[derive(Default)]
struct PageState {
    rows: usize,
    nulls: usize,
    extremes: Option<Extremes>,
    nans: u64,
    variable_bytes: u64,
    /// Bytes that the page's first value takes above the limit.
    exempt: usize,
}

/// One column chunk under construction.
pub(crate) struct ColumnWriter {
    plan: Arc<ColumnPlan>,
    levels: DefinitionLevels,
    dictionary: Option<Box<Dictionary>>,
    direct: Option<Box<Direct>>,
    page: PageState,
    metadata: ChunkMetadata,
    /// Data pages that wait for the dictionary, or for the chunk's turn.
    waiting: Vec<Stored>,
    dictionary_page: Option<Stored>,
    compressor: Option<Compressor>,
    bloom: Option<Sbbf>,
}

impl ColumnWriter {
    /// # Errors
    /// The bloom filter asked for is too large.
    pub(crate) fn new(
        plan: Arc<ColumnPlan>,
        buffers: EncoderBuffers,
        growth: &Growth,
    ) -> Result<Self> {
        let width = match plan.physical {
            Physical::I32 | Physical::F32 => Some(4),
            Physical::I64 | Physical::F64 => Some(8),
            Physical::Fixed(width) => Some(width),
            Physical::Bool | Physical::Bytes => None,
        };
        let dictionary = plan.dictionary.then(|| {
            let exact = buffers.encode == Encode::Exact;
            Box::new(Dictionary::new(width, plan.dictionary_limit, exact))
        });
        // With a dictionary the encoder it falls back to is one more; without, it is the only one.
        let eager = buffers.fallback == Fallback::Eager || dictionary.is_none();
        let direct = eager.then(|| Box::new(Direct::new(&plan, growth)));
        // A dictionary holds the distinct values already: its filter can wait for them.
        let bloom = match plan.bloom {
            Some((values, fpp)) if dictionary.is_none() => {
                Some(Sbbf::new_with_ndv_fpp(values, fpp)?)
            }
            _ => None,
        };
        Ok(Self {
            plan,
            levels: DefinitionLevels::default(),
            dictionary,
            direct,
            page: PageState::default(),
            metadata: ChunkMetadata::default(),
            waiting: Vec::new(),
            dictionary_page: None,
            compressor: None,
            bloom,
        })
    }

    /// Encodes `rows` of an array.
    ///
    /// # Errors
    /// The array does not fit the column (the message has its type), or the pages cannot be stored.
    pub(crate) fn write(
        &mut self,
        array: &dyn Array,
        mut rows: Range<usize>,
        context: &mut Context<'_>,
    ) -> Result<()> {
        if !is_indirect(array) {
            return self.write_rows(array, rows, context);
        }
        while !rows.is_empty() {
            let end = rows.end.min(rows.start + context.file.batch_rows);
            let piece = materialise(array, rows.start..end)?;
            self.write_rows(piece.as_ref(), 0..piece.len(), context)?;
            rows.start = end;
        }
        Ok(())
    }

    fn write_rows(
        &mut self,
        array: &dyn Array,
        mut rows: Range<usize>,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let source = Source::new(array, self.plan.physical)?;
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let all_null = array.data_type() == &DataType::Null;
        if !self.plan.nullable
            && !rows.is_empty()
            && (all_null || nulls.is_some_and(|n| n.slice(rows.start, rows.len()).null_count() > 0))
        {
            return Err(ParquetError::General(
                "a column that is not nullable has a null".into(),
            ));
        }
        while !rows.is_empty() {
            if self.page.rows >= self.plan.page_rows {
                self.end_page(context)?;
            }
            let room = self.plan.page_rows - self.page.rows;
            let count = rows.len().min(room).min(context.file.batch_rows);
            let taken = self.put(&source, nulls, rows.start..rows.start + count, context)?;
            rows.start += taken;
        }
        if self.page.rows >= self.plan.page_rows {
            self.end_page(context)?;
        }
        Ok(())
    }

    /// Takes the first of `rows`, as many as the page and the dictionary have room for; returns how
    /// many. It can be none where the dictionary is given up.
    fn put(
        &mut self,
        source: &Source<'_>,
        nulls: Option<&NullBuffer>,
        rows: Range<usize>,
        context: &mut Context<'_>,
    ) -> Result<usize> {
        let whole = rows;
        let mut rows = whole.clone();
        let mut valid = count_valid(source, nulls, &rows);
        while !self.fits(source, &rows, valid) {
            // Bounds are of the worst case, so fewer rows may fit. The last few of a page are not worth the search, but where
            // values are stored by what they have in common with the one before: a new page stores its first in full.
            let few = rows.len() * SEARCH <= whole.len() && !self.shares_prefixes();
            if self.page.rows > 0 && (rows.len() == 1 || few) {
                self.end_page(context)?;
                rows = whole.clone();
            } else if rows.len() > 1 {
                rows.end = rows.start + rows.len() / 2;
            } else {
                // One value that is larger than a page has a page to itself.
                break;
            }
            valid = count_valid(source, nulls, &rows);
        }
        let first = self.page.rows == 0 && valid == 1;
        let taken = self.put_values(source, nulls, rows.clone(), valid, context);
        let refused = taken < valid;
        if refused {
            rows.end = rows.start + rows_before(source, nulls, &rows, taken);
            valid = taken;
        }
        if self.plan.nullable {
            match nulls {
                _ if matches!(source, Source::Null) => {
                    self.levels.put_run(context.growth, false, rows.len());
                }
                None => self.levels.put_run(context.growth, true, rows.len()),
                Some(nulls) => {
                    let bits = nulls.inner();
                    self.levels.put_validity(
                        context.growth,
                        bits.values(),
                        bits.offset() + rows.start,
                        rows.len(),
                    );
                }
            }
        }
        self.page.rows += rows.len();
        self.page.nulls += rows.len() - valid;
        if refused {
            self.give_up_dictionary(context)?;
        } else if first {
            self.exempt_first_value();
        }
        Ok(rows.len())
    }

    /// Whether the page keeps within its bytes if it takes `rows`, `valid` of which have a value.
    fn fits(&self, source: &Source<'_>, rows: &Range<usize>, valid: usize) -> bool {
        let levels = if self.plan.nullable {
            // The length that stands before the levels of a v1 page is one of them.
            4 + self.levels.max_len_with(rows.len())
        } else {
            0
        };
        let values = match (&self.dictionary, &self.direct) {
            (Some(dictionary), _) => {
                let values = dictionary.indices().len() + valid;
                1 + max_indices_len(values, dictionary.index_width(valid))
            }
            (None, Some(direct)) => match one_value(source, rows) {
                Some(value) if valid == 1 => direct.max_len_with_value(value, &self.plan),
                _ => {
                    let bytes = source_bytes(source, rows, valid, self.plan.physical);
                    direct.max_len_with(valid, bytes, &self.plan)
                }
            },
            (None, None) => 0,
        };
        levels + values - self.page.exempt.min(values) <= self.plan.page_bytes
    }

    /// Whether values are stored by what they have in common with the one before.
    fn shares_prefixes(&self) -> bool {
        let direct = self.direct.as_deref();
        self.dictionary.is_none() && matches!(direct, Some(Direct::DeltaBytes(_)))
    }

    /// A value that is larger than a page, and begins one, leaves the whole page to those that follow it where they are stored
    /// by what they have in common with the one before: a page each would store each in full.
    fn exempt_first_value(&mut self) {
        if self.shares_prefixes()
            && let Some(direct) = &self.direct
        {
            let size = direct.max_len(&self.plan);
            if size >= self.plan.page_bytes {
                self.page.exempt = size;
            }
        }
    }

    /// Puts the values of `rows` into the dictionary or the encoder, and takes them into the statistics;
    /// returns how many of them it took.
    fn put_values(
        &mut self,
        source: &Source<'_>,
        nulls: Option<&NullBuffer>,
        rows: Range<usize>,
        valid: usize,
        context: &mut Context<'_>,
    ) -> usize {
        let growth = context.growth;
        let scratch = &mut *context.scratch;
        match source {
            Source::Null => 0,
            Source::Bool(values) => {
                if let Some(direct) = &mut self.direct {
                    direct.put_bits(values, rows.clone(), nulls);
                }
                let counted = self.plan.statistics != EnabledStatistics::None;
                if (counted || self.bloom.is_some()) && valid > 0 {
                    let trues = match nulls {
                        None => values.slice(rows.start, rows.len()).count_set_bits(),
                        Some(nulls) => valid_runs(nulls, rows.clone())
                            .map(|run| {
                                values
                                    .slice(rows.start + run.start, run.len())
                                    .count_set_bits()
                            })
                            .sum(),
                    };
                    if let Some(bloom) = &mut self.bloom {
                        for (value, count) in [(true, trues), (false, valid - trues)] {
                            if count > 0 {
                                bloom.insert(&value);
                            }
                        }
                    }
                    let extremes = Extremes {
                        min: Value::Bool(trues == valid),
                        max: Value::Bool(trues > 0),
                    };
                    if counted {
                        Extremes::merge(&mut self.page.extremes, extremes, self.plan.order);
                    }
                }
                valid
            }
            Source::I32(numbers) => {
                let order = self.plan.order;
                self.put_numbers(numbers, rows, nulls, &mut scratch.i32s, growth, |values| {
                    extremes_i32(values, order).map(|extremes| (extremes, 0))
                })
            }
            Source::I64(numbers) => {
                let order = self.plan.order;
                self.put_numbers(numbers, rows, nulls, &mut scratch.i64s, growth, |values| {
                    extremes_i64(values, order).map(|extremes| (extremes, 0))
                })
            }
            Source::F32(numbers) => self.put_numbers(
                numbers,
                rows,
                nulls,
                &mut scratch.f32s,
                growth,
                extremes_f32,
            ),
            Source::F64(numbers) => self.put_numbers(
                numbers,
                rows,
                nulls,
                &mut scratch.f64s,
                growth,
                extremes_f64,
            ),
            Source::Small(values) => {
                self.put_byte_rows(values, rows, nulls, &mut scratch.rows, growth)
            }
            Source::Large(values) => {
                self.put_byte_rows(values, rows, nulls, &mut scratch.rows, growth)
            }
            Source::TextView(values) => {
                self.put_byte_rows(values, rows, nulls, &mut scratch.rows, growth)
            }
            Source::BytesView(values) => {
                self.put_byte_rows(values, rows, nulls, &mut scratch.rows, growth)
            }
            Source::Fixed(data) => {
                let values = Strided {
                    data,
                    width: fixed_width(self.plan.physical),
                };
                self.put_byte_rows(&values, rows, nulls, &mut scratch.rows, growth)
            }
            Source::ConvertFixed(array, fill) => {
                let width = fixed_width(self.plan.physical);
                scratch.bytes.clear();
                fill(*array, rows.clone(), &mut scratch.bytes, width);
                let nulls = nulls.map(|nulls| nulls.slice(rows.start, rows.len()));
                let values = Strided {
                    data: &scratch.bytes,
                    width,
                };
                let rows = 0..rows.len();
                self.put_byte_rows(&values, rows, nulls.as_ref(), &mut scratch.rows, growth)
            }
        }
    }

    fn put_numbers<T: Number + AsBytes>(
        &mut self,
        numbers: &Numbers<'_, T>,
        rows: Range<usize>,
        nulls: Option<&NullBuffer>,
        scratch: &mut Vec<T>,
        growth: &Growth,
        extremes: impl Fn(&[T]) -> Option<(Extremes, u64)>,
    ) -> usize {
        let values = numbers.valid(rows, nulls, scratch);
        let taken = match (&mut self.dictionary, &mut self.direct) {
            (Some(dictionary), _) => dictionary.put_numbers(values),
            (None, Some(direct)) => {
                direct.put_numbers(values, growth);
                values.len()
            }
            (None, None) => 0,
        };
        let values = &values[..taken];
        if self.dictionary.is_none()
            && let Some(bloom) = &mut self.bloom
        {
            for value in values {
                bloom.insert(value);
            }
        }
        if self.plan.statistics != EnabledStatistics::None
            && let Some((extremes, nans)) = extremes(values)
        {
            self.page.nans += nans;
            Extremes::merge(&mut self.page.extremes, extremes, self.plan.order);
        }
        taken
    }

    fn put_byte_rows(
        &mut self,
        values: &impl ByteValues,
        rows: Range<usize>,
        nulls: Option<&NullBuffer>,
        scratch: &mut Vec<u32>,
        growth: &Growth,
    ) -> usize {
        let Some(nulls) = nulls else {
            return self.put_bytes(values, rows, growth);
        };
        scratch.clear();
        for run in valid_runs(nulls, rows.clone()) {
            scratch.extend(run.map(|row| row as u32));
        }
        let start = rows.start;
        self.put_bytes(
            values,
            scratch.iter().map(move |row| start + *row as usize),
            growth,
        )
    }

    fn put_bytes(
        &mut self,
        values: &impl ByteValues,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        growth: &Growth,
    ) -> usize {
        let taken = match (&mut self.dictionary, &mut self.direct) {
            (Some(dictionary), _) => dictionary.put_bytes(values, rows.clone()),
            (None, Some(direct)) => {
                direct.put_bytes(values, rows.clone(), &self.plan, growth);
                rows.len()
            }
            (None, None) => 0,
        };
        if self.dictionary.is_none()
            && let Some(bloom) = &mut self.bloom
        {
            for row in rows.clone().take(taken) {
                bloom.insert(values.value(row));
            }
        }
        let rows = rows.take(taken);
        if self.plan.physical == Physical::Bytes {
            let bytes: usize = rows.clone().map(|row| values.value(row).len()).sum();
            self.page.variable_bytes += bytes as u64;
        }
        if self.plan.statistics != EnabledStatistics::None && self.plan.order != ValueOrder::None {
            self.byte_extremes(rows.map(|row| values.value(row)));
        }
        taken
    }

    fn byte_extremes<'v>(&mut self, mut values: impl Iterator<Item = &'v [u8]>) {
        let order = self.plan.order;
        let mut least = None;
        if order == ValueOrder::Float16 {
            // NaN is no extreme, unless there is nothing else.
            let (mut nan_least, mut nans) = (None, 0);
            for value in values {
                let into = if is_nan16(value) {
                    nans += 1;
                    &mut nan_least
                } else {
                    &mut least
                };
                widen(into, value, order);
            }
            self.page.nans += nans;
            least = least.or(nan_least);
        } else if let Some(first) = values.next() {
            let (mut min, mut max) = (first, first);
            for value in values {
                if compare_bytes(value, min, order).is_lt() {
                    min = value;
                } else if compare_bytes(value, max, order).is_gt() {
                    max = value;
                }
            }
            least = Some((min, max));
        }
        if let Some((min, max)) = least {
            Extremes::merge_bytes(&mut self.page.extremes, min, max, order);
        }
    }

    /// From here on values are encoded without the dictionary, which has outgrown its limit.
    fn give_up_dictionary(&mut self, context: &mut Context<'_>) -> Result<()> {
        if self.page.rows > 0 {
            self.end_page(context)?;
        }
        self.end_dictionary(false, context)?;
        if self.direct.is_none() {
            self.direct = Some(Box::new(Direct::new(&self.plan, context.growth)));
        }
        Ok(())
    }

    /// Ends the page that has begun, if one has.
    fn end_page(&mut self, context: &mut Context<'_>) -> Result<()> {
        if self.page.rows == 0 {
            return Ok(());
        }
        let page = std::mem::take(&mut self.page);
        let (growth, keep) = (context.growth, context.buffers.encode == Encode::Pooled);
        let v2 = context.file.v2;
        let scratch = &mut *context.scratch;
        scratch.header.clear();
        scratch.levels.clear();
        scratch.body.clear();
        scratch.compressed.clear();

        if self.plan.nullable {
            if v2 {
                self.levels.finish(growth, &mut scratch.levels);
            } else {
                scratch.body.extend_from_slice(&[0; 4]);
                self.levels.finish(growth, &mut scratch.body);
                let len = (scratch.body.len() - 4) as u32;
                scratch.body[..4].copy_from_slice(&len.to_le_bytes());
            }
        }
        let encoding = if self.dictionary.is_some() {
            Encoding::RLE_DICTIONARY
        } else {
            self.plan.encoding
        };
        // Values that lie as they are stored need no copy before they are compressed.
        let in_place = match (&mut self.dictionary, &mut self.direct) {
            (Some(dictionary), _) => {
                let width = dictionary.index_width(0);
                let values = dictionary.indices().len();
                let room = 1 + max_indices_len(values, width);
                growth.reserve(&mut scratch.body, room);
                scratch.body.push(width as u8);
                match dictionary.indices() {
                    Indices::U8(indices) => encode_indices(indices, width, &mut scratch.body),
                    Indices::U16(indices) => encode_indices(indices, width, &mut scratch.body),
                    Indices::U32(indices) => encode_indices(indices, width, &mut scratch.body),
                }
                dictionary.clear_indices(!keep);
                None
            }
            (None, Some(direct)) if scratch.body.is_empty() && direct.in_place().is_some() => {
                direct.in_place()
            }
            (None, Some(direct)) => {
                growth.reserve(&mut scratch.body, direct.max_len(&self.plan));
                direct.finish(growth, &mut scratch.body);
                None
            }
            (None, None) => None,
        };
        let values = in_place.unwrap_or(&scratch.body);
        let uncompressed = scratch.levels.len() + values.len();

        let compressor = match &mut context.compressor {
            Some(shared) => &mut **shared,
            None => self.compressor.get_or_insert_default(),
        };
        let mut compressed =
            compressor.compress(self.plan.compression, values, &mut scratch.compressed)?;
        // Compressed values that are not smaller are not kept; v1 has no way to say so.
        if compressed
            && v2
            && scratch.compressed.len() as f64
                >= uncompressed as f64 * self.plan.compression_threshold
        {
            compressed = false;
        }
        let body = if compressed {
            &scratch.compressed
        } else {
            values
        };
        let stored = scratch.levels.len() + body.len();

        let mut statistics = Vec::new();
        if self.plan.header_statistics
            && self.plan.statistics == EnabledStatistics::Page
            && page.extremes.is_some()
        {
            write_statistics(
                Struct::new(&mut statistics),
                page.extremes.as_ref(),
                page.nulls as u64,
                has_nan_count(&self.plan).then_some(page.nans),
                false,
                &self.plan,
                context.file,
            );
        }
        let statistics = (!statistics.is_empty()).then_some(statistics.as_slice());
        let (rows, nulls) = (page.rows as u32, page.nulls as u32);
        let header = if v2 {
            Page::V2 {
                values: rows,
                nulls,
                encoding,
                levels_len: scratch.levels.len(),
                compressed,
                statistics,
            }
        } else {
            Page::V1 {
                values: rows,
                encoding,
                statistics,
            }
        };
        page_header::write(&mut scratch.header, &header, uncompressed, stored)?;
        let parts = [&scratch.header[..], &scratch.levels, body];
        let waits = self.dictionary.is_some();
        match &mut context.pages {
            ChunkPages::File(file) if !waits => {
                for part in parts {
                    file.write_all(part)?;
                }
            }
            ChunkPages::File(_) | ChunkPages::Memory => {
                self.waiting.push(Stored::copy_of(&parts));
            }
            ChunkPages::Spill(spill) => self.waiting.push(spill.store(&parts)?),
        }
        self.metadata.add_page(
            PageSummary {
                rows,
                nulls,
                encoding,
                extremes: page.extremes,
                nans: page.nans,
                variable_bytes: page.variable_bytes,
            },
            scratch.header.len() + uncompressed,
            scratch.header.len() + stored,
            &self.plan,
            context.file,
        );
        if let Some(direct) = &mut self.direct {
            direct.page_done(growth);
        }
        scratch.page_done(keep);
        Ok(())
    }

    /// Ends the dictionary: its page is made, and pages that waited for it go on. `last` says that no
    /// value comes after.
    fn end_dictionary(&mut self, last: bool, context: &mut Context<'_>) -> Result<()> {
        let Some(dictionary) = self.dictionary.take() else {
            return Ok(());
        };
        if let Some((values, fpp)) = self.plan.bloom {
            // More values than the dictionary has can still come, unless the chunk ends here.
            let values = if last {
                values.min(u64::from(dictionary.len()))
            } else {
                values
            };
            let mut bloom = Sbbf::new_with_ndv_fpp(values.max(1), fpp)?;
            for entry in dictionary.entries() {
                bloom.insert(entry);
            }
            self.bloom = Some(bloom);
        }
        // No page has an index into a dictionary without entries, unless it has nothing but nulls.
        if self.metadata.rows() == 0 {
            return Ok(());
        }
        let scratch = &mut *context.scratch;
        scratch.header.clear();
        scratch.compressed.clear();
        let values = dictionary.page();
        let compressor = match &mut context.compressor {
            Some(shared) => &mut **shared,
            None => self.compressor.get_or_insert_default(),
        };
        let compressed =
            compressor.compress(self.plan.compression, values, &mut scratch.compressed)?;
        let body = if compressed {
            &scratch.compressed
        } else {
            values
        };
        let page = Page::Dictionary {
            values: dictionary.len(),
        };
        page_header::write(&mut scratch.header, &page, values.len(), body.len())?;
        let parts = [&scratch.header[..], body];
        match &mut context.pages {
            ChunkPages::File(file) => {
                for part in parts {
                    file.write_all(part)?;
                }
                for page in self.waiting.drain(..) {
                    if let Stored::Memory(page) = page {
                        file.write_all(&page)?;
                    }
                }
                self.waiting = Vec::new();
            }
            ChunkPages::Memory => self.dictionary_page = Some(Stored::copy_of(&parts)),
            ChunkPages::Spill(spill) => self.dictionary_page = Some(spill.store(&parts)?),
        }
        self.metadata.add_dictionary(
            scratch.header.len() + values.len(),
            scratch.header.len() + body.len(),
        );
        scratch.page_done(context.buffers.encode == Encode::Pooled);
        Ok(())
    }

    /// Ends the chunk: every page is with the others.
    ///
    /// # Errors
    /// The pages cannot be stored.
    pub(crate) fn finish(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.end_page(context)?;
        self.end_dictionary(true, context)?;
        self.direct = None;
        self.compressor = None;
        Ok(())
    }

    /// The chunk's pages in the order of the file, where they waited for the chunk's turn.
    pub(crate) fn take_pages(&mut self) -> impl Iterator<Item = Stored> + use<> {
        let pages = std::mem::take(&mut self.waiting);
        self.dictionary_page.take().into_iter().chain(pages)
    }

    /// The chunk's bloom filter, if it has one to write.
    pub(crate) fn take_bloom(&mut self, file: &FilePlan) -> Option<Sbbf> {
        let (_, fpp) = self.plan.bloom?;
        let mut bloom = self.bloom.take()?;
        if !file.bloom_for_dictionaries && !self.metadata.has_direct_pages() {
            return None;
        }
        bloom.fold_to_target_fpp(fpp);
        Some(bloom)
    }

    pub(crate) fn metadata(&self) -> &ChunkMetadata {
        &self.metadata
    }

    pub(crate) fn plan(&self) -> &ColumnPlan {
        &self.plan
    }

    /// Bytes that the chunk takes in the file so far, with what is not in a page yet at its largest.
    pub(crate) fn size(&self) -> u64 {
        if self.page.rows == 0 && self.dictionary.is_none() {
            return self.metadata.stored();
        }
        // Without its header, and with that of the dictionary page if there is one.
        let levels = self.levels.max_len_with(0) + 4;
        let open = match (&self.dictionary, &self.direct) {
            (Some(dictionary), _) => {
                let values = dictionary.indices().len();
                HEADER_BYTES
                    + dictionary.page().len()
                    + max_indices_len(values, dictionary.index_width(0))
            }
            (None, Some(direct)) => direct.max_len(&self.plan),
            (None, None) => 0,
        };
        self.metadata.stored() + (HEADER_BYTES + levels + open) as u64
    }

    /// What the chunk holds in the heap, bytes.
    pub(crate) fn heap(&self) -> ChunkHeap {
        let dictionary = self.dictionary.as_deref();
        let direct = self.direct.as_deref();
        ChunkHeap {
            encoder: self.levels.heap_bytes()
                + dictionary.map_or(0, |d| size_of::<Dictionary>() + d.index_bytes())
                + direct.map_or(0, |d| size_of::<Direct>() + d.heap_bytes())
                + self.page.extremes.as_ref().map_or(0, Extremes::heap_bytes)
                + self.compressor.as_ref().map_or(0, Compressor::heap_bytes),
            dictionary: dictionary.map_or(0, Dictionary::entry_bytes),
            page_store: self
                .waiting
                .iter()
                .chain(&self.dictionary_page)
                .map(Stored::heap_bytes)
                .sum::<usize>(),
            metadata: self.metadata.heap_bytes()
                + self.waiting.capacity() * size_of::<Stored>()
                + self
                    .bloom
                    .as_ref()
                    .map_or(0, |bloom| bloom.num_blocks() * 32),
            codec: self.compressor.as_ref().map_or(0, Compressor::c_heap_bytes),
        }
    }
}

/// A page ends rather than that less than one part in so many of the rows at hand is put into it.
const SEARCH: usize = 8;

/// A page's header without statistics takes about as many bytes.
const HEADER_BYTES: usize = 40;

/// What a chunk holds, bytes by purpose. `codec` is in C's heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChunkHeap {
    pub(crate) encoder: usize,
    pub(crate) dictionary: usize,
    pub(crate) page_store: usize,
    pub(crate) metadata: usize,
    pub(crate) codec: usize,
}

fn widen<'v>(extremes: &mut Option<(&'v [u8], &'v [u8])>, value: &'v [u8], order: ValueOrder) {
    match extremes {
        None => *extremes = Some((value, value)),
        Some((min, max)) => {
            if compare_bytes(value, min, order).is_lt() {
                *min = value;
            }
            if compare_bytes(value, max, order).is_gt() {
                *max = value;
            }
        }
    }
}

fn fixed_width(physical: Physical) -> usize {
    match physical {
        Physical::Fixed(width) => width,
        _ => 0,
    }
}

/// How many of `rows` have a value.
fn count_valid(source: &Source<'_>, nulls: Option<&NullBuffer>, rows: &Range<usize>) -> usize {
    match (source, nulls) {
        (Source::Null, _) => 0,
        (_, None) => rows.len(),
        (_, Some(nulls)) => rows.len() - nulls.slice(rows.start, rows.len()).null_count(),
    }
}

/// The number of `rows` that stand before the one whose value is number `value`, counted from 0.
fn rows_before(
    source: &Source<'_>,
    nulls: Option<&NullBuffer>,
    rows: &Range<usize>,
    value: usize,
) -> usize {
    match (source, nulls) {
        (Source::Null, _) => rows.len(),
        (_, None) => value,
        (_, Some(nulls)) => nulls
            .inner()
            .slice(rows.start, rows.len())
            .set_indices()
            .nth(value)
            .unwrap_or(rows.len()),
    }
}

/// The value of `rows`, if they are one row of byte arrays.
fn one_value<'s>(source: &'s Source<'_>, rows: &Range<usize>) -> Option<&'s [u8]> {
    if rows.len() != 1 {
        return None;
    }
    Some(match source {
        Source::Small(values) => values.value(rows.start),
        Source::Large(values) => values.value(rows.start),
        Source::TextView(values) => ByteValues::value(values, rows.start),
        Source::BytesView(values) => ByteValues::value(values, rows.start),
        _ => return None,
    })
}

/// Bytes of the values of `rows`, at most; of byte arrays without their lengths.
fn source_bytes(
    source: &Source<'_>,
    rows: &Range<usize>,
    valid: usize,
    physical: Physical,
) -> usize {
    match source {
        Source::Null | Source::Bool(_) => 0,
        Source::I32(_) | Source::F32(_) => valid * 4,
        Source::I64(_) | Source::F64(_) => valid * 8,
        Source::Small(values) => values.bytes_of(rows.clone()),
        Source::Large(values) => values.bytes_of(rows.clone()),
        Source::TextView(values) => values.bytes_of(rows.clone()),
        Source::BytesView(values) => values.bytes_of(rows.clone()),
        Source::Fixed(_) | Source::ConvertFixed(..) => valid * fixed_width(physical),
    }
}
