//! Files of the versions before: recorded runs are never measured again, so they stay readable.
//!
//! A version that only adds columns at the end can be read as the present one. Appending to such a file is refused all the same.

use super::{SCHEMA_VERSION, Sample, Situation, Workload, columns};

/// The oldest version that is read.
pub(super) const OLDEST_VERSION: u32 = 2;

/// The last column of each older version.
const LAST_COLUMNS: [(u32, &str); 2] = [
    (OLDEST_VERSION, "disk_read_bytes"),
    (3, "ledger_upstream_bytes"),
];

/// The columns of a version; `None` for one that is not read.
pub(super) fn columns_of(version: u32) -> Option<Vec<String>> {
    let mut columns = columns();
    if version != SCHEMA_VERSION {
        let (_, last) = LAST_COLUMNS.iter().find(|(older, _)| *older == version)?;
        let last = columns.iter().position(|name| name == last);
        columns.truncate(last? + 1);
    }
    Some(columns)
}

/// A row of any version that is read, as the present version would have it.
pub(super) fn upgraded(sample: Sample) -> Sample {
    if sample.schema_version > OLDEST_VERSION {
        return Sample {
            schema_version: SCHEMA_VERSION,
            ..sample
        };
    }
    // Version 2 wrote with one writer, from batches that were in memory.
    let is_write = sample.workload == Workload::Write;
    Sample {
        schema_version: SCHEMA_VERSION,
        situation: is_write.then_some(Situation::Resident),
        writers: is_write.then_some(1),
        ..sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Kind, SampleWriter, read_samples, to_csv};
    use std::path::PathBuf;

    /// A file of version 2 with one row.
    fn version_2(folder: &tempfile::TempDir, workload: Workload) -> PathBuf {
        let sample = Sample {
            schema_version: 2,
            strategy: "upstream".to_owned(),
            disk_read_bytes: Some(7),
            ..Sample::new(Kind::Rss, workload)
        };
        let text = to_csv(&[sample]).unwrap();
        let known = columns_of(2).unwrap().len();
        let cut = |line: &str| line.split(',').take(known).collect::<Vec<_>>().join(",") + "\n";
        let path = folder.path().join("samples.csv");
        std::fs::write(&path, text.lines().map(cut).collect::<String>()).unwrap();
        path
    }

    #[test]
    fn version_2_is_read_as_the_present_one() {
        let folder = tempfile::tempdir().unwrap();
        let read = |workload| {
            let samples = read_samples(version_2(&folder, workload)).unwrap();
            samples.rows[0].clone()
        };
        let expected = Sample {
            strategy: "upstream".to_owned(),
            disk_read_bytes: Some(7),
            ..Sample::new(Kind::Rss, Workload::Read)
        };
        assert_eq!(read(Workload::Read), expected);
        let written = read(Workload::Write);
        assert_eq!(
            (written.situation, written.writers, written.schema_version),
            (Some(Situation::Resident), Some(1), SCHEMA_VERSION)
        );
    }

    #[test]
    fn nothing_is_appended_to_version_2() {
        let folder = tempfile::tempdir().unwrap();
        let path = version_2(&folder, Workload::Read);
        let before = std::fs::read(&path).unwrap();
        let error = SampleWriter::append(&path).unwrap_err().to_string();
        assert!(error.contains("\"situation\", is missing"), "{error}");
        assert!(error.ends_with("move this one away"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn an_older_file_with_other_columns_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = version_2(&folder, Workload::Read);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("matrix", "plan")).unwrap();
        let error = read_samples(&path).unwrap_err().to_string();
        assert!(error.contains("column 3 is \"plan\""), "{error}");
        assert_eq!(columns_of(1), None);
    }
}
