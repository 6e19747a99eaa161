//! After the window: what was written must read back as what it was written from.

use std::fs::File;

use alloquet_core::ReaderBuilder;
use anyhow::{Result, ensure};
use arrow_array::RecordBatchReader;
use arrow_schema::Schema;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::super::checksum::Checksum;
use super::super::job::Job;
use super::super::outcome::PageFacts;
use super::super::read::options;
use super::input::Input;

/// Reads a written file with the parquet crate's own reader.
///
/// # Errors
///
/// It cannot be read, or has other types or values than the input.
pub(super) fn reads_back(job: &Job, file: File, input: &Input) -> Result<()> {
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options(job)?)?
        .with_batch_size(job.batch_rows)
        .build()?;
    let schema = reader.schema();
    if let Some(difference) = difference(&schema, &input.schema) {
        anyhow::bail!("{difference}");
    }
    let mut checksum = Checksum::new(&schema)?;
    for batch in reader {
        checksum.add(&batch?)?;
    }
    let (found, expected) = (checksum.finish(), input.checksum);
    ensure!(
        found == expected,
        "it has other values: {found:016x}, not {expected:016x}"
    );
    Ok(())
}

/// What there is to say of a written file's pages, if core can list them.
pub(super) fn pages(job: &Job, file: &File) -> Option<PageFacts> {
    let builder = ReaderBuilder::try_new_with_options(file.try_clone().ok()?, options(job).ok()?);
    builder.ok()?.pages().ok().as_deref().map(PageFacts::of)
}

/// The first column that is another one than was written. The checksum does not tell a dictionary or a view from
/// plain values; the Arrow schema in the file does, and it must be there.
fn difference(found: &Schema, expected: &Schema) -> Option<String> {
    let (found, expected) = (found.fields(), expected.fields());
    if found.len() != expected.len() {
        return Some(format!(
            "it has {} columns, not {}",
            found.len(),
            expected.len()
        ));
    }
    let mut both = found.iter().zip(expected);
    both.find_map(|(found, expected)| {
        let same = found.name() == expected.name()
            && found.is_nullable() == expected.is_nullable()
            && found.data_type().equals_datatype(expected.data_type());
        (!same).then(|| format!("a column reads back as {found}, not {expected}"))
    })
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field};

    use super::*;

    #[test]
    fn another_type_is_told() {
        let schema =
            |kind: DataType, nullable: bool| Schema::new(vec![Field::new("a", kind, nullable)]);
        let word = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let dictionary = schema(word, true);
        assert_eq!(difference(&dictionary, &dictionary), None);
        let plain = schema(DataType::Utf8, true);
        let told = difference(&plain, &dictionary).unwrap();
        assert!(
            told.contains("Utf8") && told.contains("Dictionary"),
            "{told}"
        );
        assert!(difference(&schema(DataType::Utf8, false), &plain).is_some());
        assert!(difference(&Schema::empty(), &plain).is_some());
    }
}
