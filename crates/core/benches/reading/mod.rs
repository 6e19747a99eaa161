//! What the benches of reading share: one column in each encoding, in memory, and the one function that reads it.

use std::hint::black_box;
use std::sync::Arc;

use alloquet_core::{ReadStrategy, ReaderBuilder, SharedBytes};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float32Array, Int32Array, Int64Array, RecordBatch,
    StringArray,
};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::Encoding;
use parquet::file::properties::WriterProperties;

/// The control first, then the strategies that are compared with it.
pub(crate) const LANES: [&str; 3] = ["upstream", "pooled", "direct"];

const BATCH_ROWS: usize = 65_536;

/// A column in one encoding. Its pages are not compressed, so that decoding is what is seen.
pub(crate) struct Case {
    /// Type, encoding, and whether every tenth row is null.
    pub(crate) id: String,
    encoding: Option<Encoding>,
    nulls: bool,
    make: fn(u64) -> ArrayRef,
}

/// A number without a pattern for each row.
fn mixed(row: u64) -> u64 {
    row.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

fn floats(rows: u64) -> ArrayRef {
    Arc::new(Float32Array::from_iter_values(
        (0..rows).map(|row| mixed(row) as f32),
    ))
}

fn integers(rows: u64) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(
        (0..rows).map(|row| (mixed(row) % 1_000) as i32),
    ))
}

fn long_integers(rows: u64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(
        (0..rows).map(|row| (mixed(row) % 1_000) as i64),
    ))
}

fn booleans(rows: u64) -> ArrayRef {
    Arc::new(BooleanArray::from_iter(
        (0..rows).map(|row| Some(mixed(row).is_multiple_of(2))),
    ))
}

fn strings(rows: u64) -> ArrayRef {
    let text = |row| format!("value {:06}", mixed(row) % 1_000);
    Arc::new(StringArray::from_iter_values((0..rows).map(text)))
}

fn binaries(rows: u64) -> ArrayRef {
    let bytes = |row| format!("value {:06}", mixed(row) % 1_000);
    Arc::new(BinaryArray::from_iter_values((0..rows).map(bytes)))
}

/// Every case.
pub(crate) fn cases() -> impl Iterator<Item = Case> {
    let plain = Some(Encoding::PLAIN);
    let delta = Some(Encoding::DELTA_BINARY_PACKED);
    type Column = (&'static str, fn(u64) -> ArrayRef, Option<Encoding>);
    let columns: [Column; 13] = [
        ("float/plain", floats, plain),
        ("float/split", floats, Some(Encoding::BYTE_STREAM_SPLIT)),
        ("bool/plain", booleans, plain),
        ("int32/delta", integers, delta),
        ("int32/dictionary", integers, None),
        ("int64/delta", long_integers, delta),
        ("int64/dictionary", long_integers, None),
        ("binary/plain", binaries, plain),
        ("binary/dictionary", binaries, None),
        ("string/plain", strings, plain),
        ("string/dictionary", strings, None),
        (
            "string/delta_length",
            strings,
            Some(Encoding::DELTA_LENGTH_BYTE_ARRAY),
        ),
        ("string/delta", strings, Some(Encoding::DELTA_BYTE_ARRAY)),
    ];
    let with_nulls = |(name, make, encoding): Column| {
        [("", false), ("_nulls", true)].map(|(ending, nulls)| Case {
            id: format!("reader/{name}{ending}"),
            encoding,
            nulls,
            make,
        })
    };
    columns.into_iter().flat_map(with_nulls)
}

impl Case {
    /// A file of so many rows.
    pub(crate) fn file(&self, rows: u64) -> Bytes {
        let array = (self.make)(rows);
        let array = match self.nulls {
            true => {
                let is_null =
                    BooleanArray::from_iter((0..rows).map(|row| Some(row.is_multiple_of(10))));
                let nulls = arrow_buffer::NullBuffer::new(!is_null.values());
                let data = array.to_data().into_builder().nulls(Some(nulls)).build();
                arrow_array::make_array(data.expect("an array with nulls is valid"))
            }
            false => array,
        };
        let batch = RecordBatch::try_from_iter_with_nullable([("c", array, self.nulls)])
            .expect("one column is a batch");
        let properties = WriterProperties::builder();
        let properties = match self.encoding {
            Some(encoding) => properties
                .set_dictionary_enabled(false)
                .set_encoding(encoding),
            None => properties,
        };
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties.build()))
            .expect("the properties are valid");
        writer.write(&batch).expect("memory takes it");
        writer.close().expect("memory takes it");
        file.into()
    }
}

/// Reads all rows of `file`, and gives how many there were. Pages are used where they lie in memory, in every lane.
pub(crate) fn read(file: &Bytes, strategy: ReadStrategy) -> usize {
    let reader = ReaderBuilder::try_new(SharedBytes(file.clone()))
        .expect("the file is whole")
        .with_strategy(strategy)
        .with_batch_size(BATCH_ROWS)
        .build()
        .expect("the file can be read");
    let rows = reader.map(|batch| black_box(batch.expect("the file is whole")).num_rows());
    rows.sum()
}
