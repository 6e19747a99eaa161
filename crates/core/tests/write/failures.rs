//! What goes wrong is an error that says so, and never a file that passes for a whole one.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alloquet_core::{WriteStrategy, Writer};
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Encoding;
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::file::properties::{
    BloomFilterPosition, CdcOptions, WriterProperties, WriterPropertiesBuilder,
};

use crate::support::{Nulls, STRATEGIES, batch};

/// Takes a number of bytes, and then fails as a full disk does. What it took stays to be looked at.
struct Full {
    taken: Arc<std::sync::Mutex<Vec<u8>>>,
    room: usize,
    refusals: Arc<AtomicUsize>,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = self.taken.lock().unwrap();
        let room = self.room - taken.len();
        if room == 0 {
            self.refusals.fetch_add(1, Ordering::Relaxed);
            return Err(io::ErrorKind::StorageFull.into());
        }
        let len = room.min(bytes.len());
        taken.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn all_strategies() -> impl Iterator<Item = &'static str> {
    let controls = ["upstream", "upstream-column-wise", "upstream-exact-store"];
    STRATEGIES.into_iter().chain(controls)
}

/// However early the disk is full, the first error is told, everything after is refused, and what lies on the
/// disk does not open.
#[test]
fn a_full_disk_leaves_nothing_that_opens() {
    let batches: Vec<_> = (0..3).map(|i| batch(200, Nulls::Some, 100, i)).collect();
    let whole = crate::support::write(&batches, &WriterProperties::default(), "grow").len();
    for strategy in all_strategies() {
        for room in [
            0,
            3,
            4,
            1000,
            whole / 3,
            whole / 2,
            whole - 9000,
            whole - 300,
        ] {
            let taken = Arc::default();
            let refusals = Arc::default();
            let sink = Full {
                taken: Arc::clone(&taken),
                room,
                refusals: Arc::clone(&refusals),
            };
            let properties = WriterProperties::builder()
                .set_max_row_group_row_count(Some(300))
                .build();
            let mut writer = Writer::try_new(sink, batches[0].schema(), Some(properties))
                .unwrap()
                .with_strategy(strategy.parse().unwrap())
                .unwrap();
            let mut failed = false;
            for batch in &batches {
                match writer.write(batch) {
                    Ok(()) => assert!(!failed, "{strategy} {room}: a poisoned writer took a batch"),
                    Err(error) => {
                        let text = error.to_string();
                        assert_eq!(
                            failed,
                            text.contains("failed before"),
                            "{strategy} {room}: {text}"
                        );
                        failed = true;
                    }
                }
            }
            let error = writer.close().unwrap_err().to_string();
            assert_eq!(
                failed,
                error.contains("failed before"),
                "{strategy} {room}: {error}"
            );
            let file = Bytes::from(taken.lock().unwrap().clone());
            assert!(file.len() <= room);
            assert!(
                ParquetRecordBatchReaderBuilder::try_new(file).is_err(),
                "{strategy} {room}"
            );
        }
    }
}

#[test]
fn a_file_has_its_name_only_when_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    let entries = || std::fs::read_dir(folder.path()).unwrap().count();
    for strategy in all_strategies() {
        let batches = [batch(100, Nulls::Some, 50, 1)];
        let create = || {
            Writer::create(&path, batches[0].schema(), None)
                .unwrap()
                .with_strategy(strategy.parse().unwrap())
                .unwrap()
        };
        // Given up half way, and failed.
        let mut writer = create();
        writer.write(&batches[0]).unwrap();
        drop(writer);
        let mut writer = create();
        let other =
            RecordBatch::try_from_iter([("a", Arc::new(Int32Array::from(vec![1])) as ArrayRef)])
                .unwrap();
        writer.write(&other).unwrap_err();
        writer.close().unwrap_err();
        assert_eq!(entries(), 0, "{strategy}");

        let mut writer = create();
        writer.write(&batches[0]).unwrap();
        assert!(!path.exists(), "{strategy}");
        let written = writer.close().unwrap();
        assert_eq!(entries(), 1, "{strategy}");
        let file = Bytes::from(std::fs::read(&path).unwrap());
        assert_eq!(written.bytes_written(), file.len() as u64);
        assert_eq!(written.metadata().unwrap().file_metadata().num_rows(), 100);
        crate::support::assert_same(&batches, &crate::support::read(&file, true), strategy);
        std::fs::remove_file(&path).unwrap();
    }
}

fn one(array: ArrayRef, nullable: bool) -> RecordBatch {
    let field = Field::new("the column", array.data_type().clone(), nullable);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap()
}

fn error_of(batch: &RecordBatch, properties: WriterPropertiesBuilder, strategy: &str) -> String {
    let mut file = Vec::new();
    let strategy: WriteStrategy = strategy.parse().unwrap();
    let mut writer = Writer::try_new(&mut file, batch.schema(), Some(properties.build()))
        .unwrap()
        .with_strategy(strategy)
        .unwrap();
    let error = writer
        .write(batch)
        .and_then(|()| writer.flush())
        .unwrap_err()
        .to_string();
    drop(writer);
    assert!(ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).is_err());
    error
}

#[test]
fn what_is_not_done_is_refused_by_name() {
    let batch = one(Arc::new(StringArray::from(vec!["a", "b"])), false);
    let new = WriterProperties::builder;
    for strategy in STRATEGIES {
        let error = |properties| error_of(&batch, properties, strategy);
        let key = b"0123456789abcdef".to_vec();
        let encryption = FileEncryptionProperties::builder(key).build().unwrap();
        let text = error(new().with_file_encryption_properties(encryption));
        assert!(
            text.contains("file_encryption_properties") && text.contains("upstream"),
            "{text}"
        );
        assert!(!text.contains("0123456789"));
        assert!(
            error(new().set_content_defined_chunking(Some(CdcOptions::default())))
                .contains("content_defined_chunking")
        );
        assert!(
            error(
                new()
                    .set_bloom_filter_enabled(true)
                    .set_bloom_filter_position(BloomFilterPosition::End)
            )
            .contains("bloom_filter_position")
        );
        let text = error(new().set_encoding(Encoding::DELTA_BINARY_PACKED));
        assert!(
            text.contains("the column") && text.contains("DELTA_BINARY_PACKED"),
            "{text}"
        );
    }
    for strategy in ["pooled", "upstream-column-wise"] {
        let text = error_of(&batch, new().set_max_row_group_bytes(Some(1000)), strategy);
        assert!(text.contains("max_row_group_bytes"), "{text}");
    }
}

#[test]
fn a_batch_that_does_not_fit_names_the_column() {
    let ints = one(Arc::new(Int64Array::from(vec![Some(1), None])), true);
    for strategy in ["grow", "bounded", "pooled"] {
        let start = |field: Field| {
            Writer::try_new(io::sink(), Arc::new(Schema::new(vec![field])), None)
                .unwrap()
                .with_strategy(strategy.parse().unwrap())
                .unwrap()
        };
        let mut writer = start(Field::new("text", DataType::Utf8, true));
        let text = writer
            .write(&ints)
            .and_then(|()| writer.flush())
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("column text") && text.contains("Int64"),
            "{text}"
        );
        let mut writer = start(Field::new("required", DataType::Int64, false));
        let text = writer
            .write(&ints)
            .and_then(|()| writer.flush())
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("column required") && text.contains("null"),
            "{text}"
        );
    }
}

#[test]
fn a_folder_that_takes_no_spill_file_is_named() {
    let batch = batch(100, Nulls::None, 50, 1);
    let mut writer = Writer::try_new(io::sink(), batch.schema(), None)
        .unwrap()
        .with_strategy("bounded".parse().unwrap())
        .unwrap()
        .with_spill_folder("/no/such/folder");
    let text = writer
        .write(&batch)
        .and_then(|()| writer.flush())
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("/no/such/folder") && text.contains("with_spill_folder"),
        "{text}"
    );
}

/// A crate's user may give a writer a strategy only while nothing was written.
#[test]
fn the_strategy_is_set_first() {
    let batch = batch(10, Nulls::None, 5, 1);
    let mut writer = Writer::try_new(io::sink(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    assert!(writer.with_strategy(WriteStrategy::Upstream).is_err());
}

#[test]
fn an_empty_file_is_whole() {
    for strategy in all_strategies() {
        let batch = batch(0, Nulls::Some, 5, 1);
        for write in [false, true] {
            let mut file = Vec::new();
            let mut writer = Writer::try_new(&mut file, batch.schema(), None)
                .unwrap()
                .with_strategy(strategy.parse().unwrap())
                .unwrap();
            if write {
                writer.write(&batch).unwrap();
            }
            writer.close().unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).unwrap();
            assert_eq!(
                reader.metadata().file_metadata().num_rows(),
                0,
                "{strategy}"
            );
            let upstream = parquet::arrow::parquet_to_arrow_schema(
                reader.parquet_schema(),
                reader.metadata().file_metadata().key_value_metadata(),
            );
            assert_eq!(upstream.unwrap().fields().len(), batch.num_columns());
        }
    }
}

/// Fails once and then takes everything again, as a disk does that was full for a while.
struct FailsOnce {
    taken: Arc<std::sync::Mutex<Vec<u8>>>,
    fails_at: usize,
    failed: bool,
}

impl Write for FailsOnce {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = self.taken.lock().unwrap();
        if !self.failed && taken.len() + bytes.len() > self.fails_at {
            self.failed = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        taken.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_sink_that_fails_for_a_while_gets_no_footer() {
    let batches = [batch(300, Nulls::Some, 100, 1)];
    let whole = crate::support::write(&batches, &WriterProperties::default(), "grow").len();
    for strategy in all_strategies() {
        for fails_at in [0, 100, whole / 2, whole - 5000, whole - 100] {
            let taken = Arc::default();
            let sink = FailsOnce {
                taken: Arc::clone(&taken),
                fails_at,
                failed: false,
            };
            let mut writer = Writer::try_new(sink, batches[0].schema(), None)
                .unwrap()
                .with_strategy(strategy.parse().unwrap())
                .unwrap();
            let written = writer.write(&batches[0]);
            let closed = writer.close();
            if written.is_ok() && closed.is_ok() {
                // Its file is shorter than the other one.
                assert_eq!(fails_at, whole - 100, "{strategy}");
                continue;
            }
            let file = Bytes::from(taken.lock().unwrap().clone());
            assert!(
                ParquetRecordBatchReaderBuilder::try_new(file).is_err(),
                "{strategy} {fails_at}"
            );
        }
    }
}

/// As many columns, of types that are stored alike but mean something else.
#[test]
fn a_type_that_only_looks_alike_is_refused() {
    use arrow_array::{Decimal64Array, Decimal128Array, TimestampNanosecondArray, UInt32Array};
    use arrow_schema::TimeUnit;
    let cases: [(DataType, ArrayRef); 5] = [
        (
            DataType::Timestamp(TimeUnit::Microsecond, None),
            Arc::new(TimestampNanosecondArray::from(vec![1])),
        ),
        (DataType::Int32, Arc::new(UInt32Array::from(vec![1]))),
        (DataType::Int64, Arc::new(Int32Array::from(vec![1]))),
        (
            DataType::Decimal128(38, 2),
            Arc::new(
                Decimal64Array::from(vec![1])
                    .with_precision_and_scale(10, 2)
                    .unwrap(),
            ),
        ),
        (
            DataType::Decimal128(10, 2),
            Arc::new(
                Decimal128Array::from(vec![1])
                    .with_precision_and_scale(10, 4)
                    .unwrap(),
            ),
        ),
    ];
    for (column, array) in cases {
        for strategy in all_strategies() {
            let schema = Schema::new(vec![Field::new("the column", column.clone(), true)]);
            let mut writer = Writer::try_new(io::sink(), Arc::new(schema), None)
                .unwrap()
                .with_strategy(strategy.parse().unwrap())
                .unwrap();
            let text = writer
                .write(&one(Arc::clone(&array), true))
                .unwrap_err()
                .to_string();
            assert!(text.contains("the column"), "{strategy}: {text}");
        }
    }
}

#[test]
fn what_cannot_be_a_file_is_refused() {
    let width_0 = Schema::new(vec![Field::new(
        "empty",
        DataType::FixedSizeBinary(0),
        true,
    )]);
    for schema in [Schema::empty(), width_0] {
        for strategy in STRATEGIES {
            let writer = Writer::try_new(io::sink(), Arc::new(schema.clone()), None)
                .unwrap()
                .with_strategy(strategy.parse().unwrap())
                .unwrap();
            assert!(writer.close().is_err(), "{strategy}");
        }
    }
}
