//! Writes one column chunk, a slice of rows at a time: no more than a slice of
//! its values is ever in memory.

use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type,
};
use parquet::errors::Result as ParquetResult;
use parquet::file::writer::SerializedColumnWriter;

use super::source::{self, ByteValue, Integer, Source};
use crate::column::{ColumnGroup, Encoding, List};
use crate::definition::Layout;
use crate::distribution::Distribution;
use crate::progress::Progress;
use crate::random::{Purpose, Stream};
use crate::value_type::Physical;

/// Most rows of a slice.
const SLICE_ROWS: usize = 1 << 16;
/// Most bytes of a slice's values, unless a single row has more.
const SLICE_BYTES: usize = 1 << 20;

/// Why a chunk was not finished.
#[derive(Debug)]
pub(crate) enum ChunkError {
    Parquet(parquet::errors::ParquetError),
    /// The distribution cannot give what was asked for.
    Values(String),
    Cancelled,
}

impl From<parquet::errors::ParquetError> for ChunkError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Parquet(error)
    }
}

/// Which column chunk to write.
#[derive(Clone, Copy)]
pub(crate) struct Chunk<'a> {
    pub(crate) seed: u64,
    pub(crate) layout: &'a Layout,
    pub(crate) group: &'a ColumnGroup,
    pub(crate) column: &'a str,
    pub(crate) row_group: usize,
    pub(crate) progress: &'a dyn Progress,
}

impl Chunk<'_> {
    /// Draws and writes all values of the chunk; the caller closes the column.
    pub(crate) fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ChunkError> {
        match self.group.value_type.physical() {
            Physical::Boolean => self.rows(
                writer.typed::<BoolType>(),
                self.pooled(source::booleans(self.group, self.first_row()), |value| {
                    vec![u8::from(*value)]
                })?,
            ),
            Physical::Int32 => self.rows(
                writer.typed::<Int32Type>(),
                self.pooled(self.integers(), |value: &i32| value.to_le_bytes().to_vec())?,
            ),
            Physical::Int64 => self.rows(
                writer.typed::<Int64Type>(),
                self.pooled(self.integers(), |value: &i64| value.to_le_bytes().to_vec())?,
            ),
            Physical::Float => self.rows(
                writer.typed::<FloatType>(),
                self.pooled(
                    source::floats(self.group, self.first_row(), |value| value as f32),
                    |value| value.to_le_bytes().to_vec(),
                )?,
            ),
            Physical::Double => self.rows(
                writer.typed::<DoubleType>(),
                self.pooled(
                    source::floats(self.group, self.first_row(), |value| value),
                    |value: &f64| value.to_le_bytes().to_vec(),
                )?,
            ),
            Physical::ByteArray => self.rows(writer.typed::<ByteArrayType>(), self.texts()?),
            Physical::FixedLenByteArray => {
                self.rows(writer.typed::<FixedLenByteArrayType>(), self.texts()?)
            }
        }
    }

    fn stream(&self, purpose: Purpose) -> Stream {
        let row_group = match purpose {
            Purpose::Pool | Purpose::Prefix => 0,
            Purpose::Values | Purpose::Nulls | Purpose::Lengths => self.row_group,
        };
        Stream::new(self.seed, self.column, row_group, purpose)
    }

    fn integers<T: Integer>(&self) -> Box<dyn Source<T>> {
        let range = self.group.value_type.integer_range();
        source::integers(self.group, range.unwrap_or((0, 0)), self.first_row())
    }

    /// Where the row group begins in the file.
    fn first_row(&self) -> u64 {
        self.row_group as u64 * self.layout.rows_per_row_group as u64
    }

    fn texts<T: ByteValue>(&self) -> Result<Box<dyn Source<T>>, ChunkError> {
        let source = source::texts(self.group, self.first_row(), self.stream(Purpose::Prefix));
        self.pooled(source, |value: &T| value.as_bytes().to_vec())
    }

    fn pooled<T: Clone + 'static>(
        &self,
        source: Box<dyn Source<T>>,
        key: impl Fn(&T) -> Vec<u8>,
    ) -> Result<Box<dyn Source<T>>, ChunkError> {
        match self.group.distinct {
            None => Ok(source),
            Some(distinct) => source::pool(source, self.stream(Purpose::Pool), distinct, key)
                .map_err(|problem| {
                    ChunkError::Values(format!("column {}: {problem}", self.column))
                }),
        }
    }

    fn rows<T: DataType>(
        &self,
        writer: &mut ColumnWriterImpl<'_, T>,
        mut source: Box<dyn Source<T::T>>,
    ) -> Result<(), ChunkError> {
        let mut stream = self.stream(Purpose::Values);
        let mut levels = Levels::new(self);
        let mut values = Vec::new();
        let slices = Slices::new(self.layout, self.group);
        let mut row = 0;
        while row < self.layout.rows_per_row_group {
            if self.progress.is_cancelled() {
                return Err(ChunkError::Cancelled);
            }
            let count = slices.rows_from(row);
            values.clear();
            levels.draw(count);
            source.fill(&mut stream, levels.values, &mut values);
            levels.drop_nulls(&mut values);
            levels.write(writer, &values)?;
            self.progress.advance(count as u64);
            row += count;
        }
        Ok(())
    }
}

/// How many rows go into a slice.
struct Slices {
    rows: usize,
    most: usize,
    /// Where pages end, as far as that is known before values are encoded: a
    /// slice ends there too, because the parquet crate looks at a page's size
    /// and row count only between batches.
    page_rows: Option<usize>,
}

impl Slices {
    fn new(layout: &Layout, group: &ColumnGroup) -> Self {
        let widest = match (&group.values, group.value_type.plain_width()) {
            (_, Some(width)) => width,
            (Some(Distribution::Text { max_length, .. }), _) => *max_length,
            (None, None) if group.value_type.is_bytes() => crate::distribution::DEFAULT_TEXT.1,
            _ => 1,
        };
        let items = group.list.as_ref().map_or(1, |list| list.max_items);
        let row_bytes = widest.saturating_mul(items).max(1);

        let whole_values = group.list.is_none() && group.nulls == 0.0 && !group.dictionary;
        let by_bytes = match group.value_type.plain_width() {
            Some(width) if whole_values && group.encoding == Encoding::Plain => {
                Some(layout.page_bytes.div_ceil(width))
            }
            _ => None,
        };
        let page_rows = [by_bytes, layout.page_row_limit]
            .into_iter()
            .flatten()
            .min();
        Self {
            rows: layout.rows_per_row_group,
            most: (SLICE_BYTES / row_bytes).clamp(1, SLICE_ROWS),
            page_rows,
        }
    }

    fn rows_from(&self, row: usize) -> usize {
        let mut count = self.most.min(self.rows - row);
        if let Some(page_rows) = self.page_rows {
            count = count.min(page_rows - row % page_rows);
        }
        count
    }
}

/// Definition and repetition levels of a slice.
struct Levels<'a> {
    optional: bool,
    /// A row is null where 32 random bits are below this.
    null_below: u64,
    list: Option<&'a List>,
    nulls: Stream,
    lengths: Stream,
    definition: Vec<i16>,
    repetition: Vec<i16>,
    /// Values to draw for the slice, those under nulls included.
    values: usize,
}

impl<'a> Levels<'a> {
    fn new(chunk: &Chunk<'a>) -> Self {
        Self {
            optional: chunk.group.optional,
            null_below: (chunk.group.nulls * (1_u64 << 32) as f64) as u64,
            list: chunk.group.list.as_ref(),
            nulls: chunk.stream(Purpose::Nulls),
            lengths: chunk.stream(Purpose::Lengths),
            definition: Vec::new(),
            repetition: Vec::new(),
            values: 0,
        }
    }

    fn next_is_null(&mut self) -> bool {
        self.null_below > 0 && self.nulls.bits() >> 32 < self.null_below
    }

    fn draw(&mut self, rows: usize) {
        self.definition.clear();
        self.repetition.clear();
        match self.list {
            None => {
                self.values = rows;
                if self.optional {
                    for _ in 0..rows {
                        let level = i16::from(!self.next_is_null());
                        self.definition.push(level);
                    }
                }
            }
            Some(list) => self.draw_lists(list, rows),
        }
    }

    fn draw_lists(&mut self, list: &List, rows: usize) {
        let empty = i16::from(self.optional);
        let present = empty + 1 + i16::from(list.optional_items);
        let spread = (list.max_items - list.min_items) as u64 + 1;
        self.values = 0;
        for _ in 0..rows {
            let items = list.min_items + self.lengths.below(spread) as usize;
            self.repetition.push(0);
            if self.next_is_null() {
                self.definition.push(0);
            } else if items == 0 {
                self.definition.push(empty);
            } else {
                self.repetition.extend(std::iter::repeat_n(1, items - 1));
                self.definition.extend(std::iter::repeat_n(present, items));
                self.values += items;
            }
        }
    }

    /// Of a flat column, values were drawn for null rows too.
    fn drop_nulls<V>(&self, values: &mut Vec<V>) {
        if self.null_below > 0 && self.list.is_none() {
            let mut levels = self.definition.iter();
            values.retain(|_| levels.next() == Some(&1));
        }
    }

    fn write<T: DataType>(
        &self,
        writer: &mut ColumnWriterImpl<'_, T>,
        values: &[T::T],
    ) -> ParquetResult<usize> {
        let definition = (!self.definition.is_empty()).then_some(self.definition.as_slice());
        let repetition = self.list.map(|_| self.repetition.as_slice());
        writer.write_batch(values, definition, repetition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dataset;

    fn slices(columns: &str) -> Vec<usize> {
        let dataset = Dataset::parse(
            "t",
            &format!(
                "description = ''\nseed = 1\n[file]\nrow_groups = 1\nrows_per_row_group = 300_000\npage_bytes = 1_048_576\ncompression = 'none'\n[[columns]]\n{columns}"
            ),
        )
        .unwrap();
        let slices = Slices::new(dataset.layout(), &dataset.columns()[0]);
        let mut row = 0;
        let mut counts = Vec::new();
        while row < 300_000 {
            counts.push(slices.rows_from(row));
            row += slices.rows_from(row);
        }
        counts
    }

    #[test]
    fn a_slice_ends_where_a_plain_page_does() {
        let counts = slices("name = 'f'\ntype = 'float32'");
        assert_eq!(counts, [65_536, 65_536, 65_536, 65_536, 37_856]);
        let counts = slices("name = 'f'\ntype = 'fixed-binary(1000)'");
        assert_eq!(counts[0], 1_048);
        assert_eq!(counts[1], 1, "the page's 1,049th value fills it");
    }

    #[test]
    fn a_slice_of_large_values_is_small() {
        let counts = slices(
            "name = 's'\ntype = 'string'\nvalues = { kind = 'text', min_length = 1, max_length = 65_536 }",
        );
        assert_eq!(counts[0], 16);
        let counts =
            slices("name = 'l'\ntype = 'uint8'\nlist = { min_items = 0, max_items = 25_000 }");
        assert_eq!(counts[0], 10);
    }
}
