//! A table in the release's own arrays, and writing it.

use std::io::Write;

use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_data::transform::{Capacities, MutableArrayData};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::ArrowWriter;

use crate::error::Result;
use crate::options::Properties;

/// A table that is in memory.
#[derive(Debug, Clone)]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// Reads an Arrow IPC stream. The arrays of a batch share one buffer, which is a copy: nothing of `stream` is held.
    ///
    /// # Errors
    /// The bytes are no such stream, or one with types that this release does not have.
    pub fn from_ipc(stream: &[u8]) -> Result<Self> {
        let reader = StreamReader::try_new(stream, None)?;
        let schema = reader.schema();
        let batches = reader.collect::<std::result::Result<_, ArrowError>>()?;
        Ok(Self { schema, batches })
    }

    /// Rows of the table.
    #[must_use]
    pub fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Columns of the table, a nested one counted once.
    #[must_use]
    pub fn num_columns(&self) -> usize {
        self.schema.fields().len()
    }

    /// Writes the table, batch after batch, and gives the file's length in bytes: what is held is the table,
    /// which is the caller's anyway, and what the writer has.
    ///
    /// # Errors
    /// A type that Parquet does not have, or a failing sink.
    ///
    /// # Panics
    /// As the release does: for an encoding that a column's type does not have.
    pub fn write(&self, sink: impl Write + Send, properties: &Properties) -> Result<u64> {
        self.write_each(sink, properties, |writer, batch| Ok(writer.write(batch)?))
    }

    /// The same for batches that arrive and are dropped: of each a copy is made, written and dropped.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Panics
    /// As [`write`](Self::write).
    pub fn write_copies(&self, sink: impl Write + Send, properties: &Properties) -> Result<u64> {
        self.write_each(sink, properties, |writer, batch| {
            Ok(writer.write(&copy(batch)?)?)
        })
    }

    fn write_each<W: Write + Send>(
        &self,
        sink: W,
        properties: &Properties,
        mut each: impl FnMut(&mut ArrowWriter<W>, &RecordBatch) -> Result<()>,
    ) -> Result<u64> {
        let schema = SchemaRef::clone(&self.schema);
        let mut writer = ArrowWriter::try_new(sink, schema, Some(properties.0.clone()))?;
        for batch in &self.batches {
            each(&mut writer, batch)?;
        }
        writer.finish()?;
        Ok(writer.bytes_written() as u64)
    }
}

/// A batch with buffers of its own, as large as its values are.
fn copy(batch: &RecordBatch) -> std::result::Result<RecordBatch, ArrowError> {
    let columns = batch
        .columns()
        .iter()
        .map(|column| copy_of(column))
        .collect::<std::result::Result<_, _>>()?;
    RecordBatch::try_new(batch.schema(), columns)
}

fn copy_of(array: &dyn Array) -> std::result::Result<ArrayRef, ArrowError> {
    let data = array.to_data();
    let rows = data.len();
    // Without the number of bytes, those of strings would be gathered in a buffer that doubles.
    let capacities = match data.data_type() {
        DataType::Utf8 | DataType::Binary => {
            let offsets: &[i32] = data.buffer(0);
            Capacities::Binary(
                rows,
                offsets.get(rows).map(|end| (end - offsets[0]) as usize),
            )
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            let offsets: &[i64] = data.buffer(0);
            Capacities::Binary(
                rows,
                offsets.get(rows).map(|end| (end - offsets[0]) as usize),
            )
        }
        _ => Capacities::Array(rows),
    };
    let mut copy = MutableArrayData::with_capacities(vec![&data], false, capacities);
    copy.try_extend(0, 0, rows)?;
    Ok(make_array(copy.freeze()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, StringDictionaryBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{
        BooleanArray, Float64Array, Int32Array, LargeStringArray, ListArray, RecordBatchReader,
        StringArray, StringViewArray,
    };
    use arrow_ipc::writer::StreamWriter;
    use bytes::Bytes;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::{Error, Options, WriterVersion};

    fn batch(first: i32) -> RecordBatch {
        let mut lists = ListBuilder::new(arrow_array::builder::Int64Builder::new());
        lists.append_value([Some(1), None]);
        lists.append_null();
        lists.append_value([]);
        let lists: ListArray = lists.finish();
        let mut words = StringDictionaryBuilder::<Int32Type>::new();
        words.extend([Some("x"), None, Some("x")]);
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "i",
                Arc::new(Int32Array::from_iter_values(first..first + 3)),
            ),
            (
                "f",
                Arc::new(Float64Array::from(vec![Some(0.5), None, None])),
            ),
            ("b", Arc::new(BooleanArray::from(vec![true, false, true]))),
            (
                "s",
                Arc::new(StringArray::from(vec![Some("a"), None, Some("bcd")])),
            ),
            ("l", Arc::new(LargeStringArray::from(vec!["", "e", "fgh"]))),
            (
                "v",
                Arc::new(StringViewArray::from(vec![
                    "short",
                    "longer than twelve bytes",
                    "",
                ])),
            ),
            ("list", Arc::new(lists)),
            ("words", Arc::new(words.finish())),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)))
            .unwrap()
    }

    fn stream(batches: &[RecordBatch]) -> Vec<u8> {
        let mut stream = Vec::new();
        let mut writer = StreamWriter::try_new(&mut stream, &batches[0].schema()).unwrap();
        for batch in batches {
            writer.write(batch).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        stream
    }

    #[test]
    fn what_is_written_reads_back_equal() {
        // The second batch is the middle of a larger one.
        let batches = [batch(0), batch(3), batch(6).slice(1, 2)];
        let table = Table::from_ipc(&stream(&batches)).unwrap();
        assert_eq!((table.num_rows(), table.num_columns()), (8, 8));
        let options = Options {
            row_group_rows: Some(4),
            writer_version: WriterVersion::PARQUET_2_0,
            ..Options::default()
        };
        let properties = options.properties();
        for copies in [false, true] {
            let mut file = Vec::new();
            let bytes = match copies {
                false => table.write(&mut file, &properties),
                true => table.write_copies(&mut file, &properties),
            };
            assert_eq!(bytes.unwrap(), file.len() as u64);
            let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file))
                .unwrap()
                .build()
                .unwrap();
            let schema = reader.schema();
            assert_eq!(schema, batches[0].schema());
            let mut row = 0;
            for read in reader {
                let read = read.unwrap();
                for at in 0..read.num_rows() {
                    let (from, offset) = if row < 6 {
                        (row / 3, row % 3)
                    } else {
                        (2, row - 6)
                    };
                    assert_eq!(
                        read.slice(at, 1),
                        batches[from].slice(offset, 1),
                        "row {row}"
                    );
                    row += 1;
                }
            }
            assert_eq!(row, 8);
        }
    }

    #[test]
    fn it_is_the_release_that_it_says() {
        let table = Table::from_ipc(&stream(&[batch(0)])).unwrap();
        let mut file = Vec::new();
        table
            .write(&mut file, &Options::default().properties())
            .unwrap();
        let reader = SerializedFileReader::new(Bytes::from(file)).unwrap();
        let metadata = reader.metadata().file_metadata();
        assert_eq!(metadata.created_by(), Some("parquet-rs version 59.3.2"));
    }

    #[test]
    fn errors_say_what_failed() {
        let error = Table::from_ipc(b"no stream").unwrap_err();
        assert!(matches!(error, Error::Ipc(_)), "{error}");
        assert!(error.to_string().contains("cannot take the table over"));

        let table = Table::from_ipc(&stream(&[batch(0)])).unwrap();
        let mut full = [0_u8; 100];
        let error = table
            .write(&mut full[..], &Options::default().properties())
            .unwrap_err();
        assert!(
            error.to_string().contains("cannot write the table"),
            "{error}"
        );
    }
}
