//! [`ColumnWriter`]: takes arrays, cuts pages within their limits, and falls back from the dictionary.

mod pages;
mod values;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::Array;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use parquet::bloom_filter::Sbbf;
use parquet::errors::{ParquetError, Result};

use self::values::{count_valid, one_value, rows_before, source_bytes};
use super::super::compress::Compressor;
use super::super::encode::{DefinitionLevels, Growth, max_indices_len};
use super::super::pages::Stored;
use super::chunk_metadata::ChunkMetadata;
use super::context::Context;
use super::dictionary::Dictionary;
use super::direct::Direct;
use super::plan::{ColumnPlan, FilePlan, Physical};
use super::source::{Source, is_indirect, materialise};
use super::statistics::Extremes;
use crate::strategy::{Encode, EncoderBuffers, Fallback};

/// The page that values are put into.
#[derive(Default)]
struct PageState {
    rows: usize,
    nulls: usize,
    extremes: Option<Extremes>,
    nans: u64,
    variable_bytes: u64,
    /// Bytes of the page's first value, where it alone is above the limit: they do not count against it.
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
