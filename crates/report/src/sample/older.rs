//! Files of the versions before: recorded runs are never measured again, so they stay readable.
//!
//! A version that only adds columns at the end can be read as the present one. Appending to such a file is refused all the same.

use super::{SCHEMA_VERSION, Sample, Situation, Workload, columns};

/// The oldest version that is read.
const OLDEST_VERSION: u32 = 2;

/// The last column of each older version.
const LAST_COLUMNS: [(u32, &str); 3] = [
    (OLDEST_VERSION, "disk_read_bytes"),
    (3, "ledger_upstream_bytes"),
    (4, "libc_free_after_bytes"),
];

/// The columns of each version that is read, the present one last.
pub(super) fn known_columns() -> Vec<(u32, Vec<String>)> {
    let columns = columns();
    let older = LAST_COLUMNS.iter().filter_map(|(version, last)| {
        let last = columns.iter().position(|name| name == last)?;
        Some((*version, columns[..=last].to_vec()))
    });
    let mut known: Vec<_> = older.collect();
    known.push((SCHEMA_VERSION, columns));
    known
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

    fn columns_of(version: u32) -> Option<Vec<String>> {
        let known = known_columns().into_iter();
        let mut found = known.filter(|(known, _)| *known == version);
        found.next().map(|(_, columns)| columns)
    }

    /// A file of an older version with one row.
    fn file_of(folder: &tempfile::TempDir, sample: &Sample) -> PathBuf {
        let text = to_csv(std::slice::from_ref(sample)).unwrap();
        let known = columns_of(sample.schema_version).unwrap().len();
        let cut = |line: &str| line.split(',').take(known).collect::<Vec<_>>().join(",") + "\n";
        let path = folder.path().join("samples.csv");
        std::fs::write(&path, text.lines().map(cut).collect::<String>()).unwrap();
        path
    }

    fn version_2(folder: &tempfile::TempDir, workload: Workload) -> PathBuf {
        let sample = Sample {
            schema_version: 2,
            strategy: "upstream".to_owned(),
            disk_read_bytes: Some(7),
            ..Sample::new(Kind::Rss, workload)
        };
        file_of(folder, &sample)
    }

    #[test]
    fn version_3_is_read_as_the_present_one() {
        let folder = tempfile::tempdir().unwrap();
        let written = Sample {
            strategy: "bounded".to_owned(),
            situation: Some(Situation::Arriving),
            writers: Some(4),
            properties: "dictionary=false".to_owned(),
            ledger_upstream_bytes: Some(9),
            ..Sample::new(Kind::Heap, Workload::Write)
        };
        let older = Sample {
            schema_version: 3,
            ..written.clone()
        };
        let path = file_of(&folder, &older);
        let header = std::fs::read_to_string(&path).unwrap();
        assert!(
            header
                .lines()
                .next()
                .unwrap()
                .ends_with(",ledger_upstream_bytes")
        );
        // One reader or writer at once, and no limit: what version 3 always was.
        assert_eq!(read_samples(&path).unwrap().rows, [written]);
        let error = SampleWriter::append(&path).unwrap_err().to_string();
        assert!(error.contains("\"concurrent\", is missing"), "{error}");
    }

    #[test]
    fn version_4_is_read_as_the_present_one() {
        let folder = tempfile::tempdir().unwrap();
        let written = Sample {
            strategy: "pooled".to_owned(),
            concurrent: 2,
            libc_free_after_bytes: Some(9),
            ..Sample::new(Kind::Rss, Workload::Read)
        };
        let older = Sample {
            schema_version: 4,
            ..written.clone()
        };
        let path = file_of(&folder, &older);
        let text = std::fs::read_to_string(&path).unwrap();
        let header = text.lines().next().unwrap();
        assert!(header.ends_with(",libc_free_after_bytes"), "{header}");
        assert_eq!(read_samples(&path).unwrap().rows, [written]);
        let error = SampleWriter::append(&path).unwrap_err().to_string();
        assert!(
            error.contains("\"ledger_kept_bytes\", is missing"),
            "{error}"
        );
    }

    #[test]
    fn an_older_file_without_a_row_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        for version in [2, 3, 4] {
            std::fs::write(&path, columns_of(version).unwrap().join(",") + "\n").unwrap();
            assert_eq!(read_samples(&path).unwrap().rows, []);
        }
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
