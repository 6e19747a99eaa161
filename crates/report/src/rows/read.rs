//! Reads a CSV file of rows, strictly: a row that is not understood is an error, not a gap.
//!
//! The one thing that is forgiven is a last line without its line break, which a killed process
//! leaves behind. It may be cut short anywhere, even inside a number, so it is never believed.

use super::error::check_header;
use super::{Row, RowError, columns, whole_lines};
use crate::sample::SCHEMA_VERSION;
use csv::{ErrorKind, StringRecord};
use std::fs;
use std::path::Path;

/// What a file of rows holds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Rows<R> {
    /// The rows, in the order of the file.
    pub rows: Vec<R>,
    /// What a reader should be told, one sentence each; such as a last row that was left out.
    pub warnings: Vec<String>,
}

/// Reads every whole row of `path`. Rows of the version before become rows of the present one.
///
/// A last line without a line break is left out and becomes a warning.
///
/// # Errors
///
/// Where the file cannot be read, has other columns or another schema version than ours, or where a
/// row cannot be understood. The error names file, line and column.
pub fn read_rows<R: Row>(path: impl AsRef<Path>) -> Result<Rows<R>, RowError> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(RowError::io::<R>(path, "read"))?;
    let (whole, rest) = bytes.split_at(whole_lines(&bytes));

    let mut reader = csv::Reader::from_reader(whole);
    let header = reader
        .headers()
        .map_err(|error| row_error(path, &error))?
        .clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| row_error(path, &error))?;
        rows.push(row(path, &header, &record)?);
    }
    if rows.is_empty() {
        let found: Vec<&str> = header.iter().collect();
        // Without a row nothing says which version it is.
        let mut known = R::known_columns().into_iter();
        if !known.any(|(_, known)| known == found) {
            check_header(path, &found, &columns::<R>(), R::REMEDY)?;
        }
    }

    let mut warnings = Vec::new();
    if !rest.is_empty() {
        let line = whole.iter().filter(|byte| **byte == b'\n').count() + 1;
        warnings.push(format!(
            "{}: line {line} is left out: it has no line break at its end, so its writer was \
             stopped before the row was whole",
            path.display()
        ));
    }
    Ok(Rows { rows, warnings })
}

fn row<R: Row>(path: &Path, header: &StringRecord, record: &StringRecord) -> Result<R, RowError> {
    let line = record.position().map_or(0, csv::Position::line);
    // First of all, so that a newer file is called that, and not one with unknown columns.
    let version = header
        .iter()
        .position(|name| name == "schema_version")
        .and_then(|place| record.get(place)?.parse::<u32>().ok());
    let version = version.unwrap_or(SCHEMA_VERSION);
    let known = R::known_columns();
    let expected = known.iter().find(|(known, _)| *known == version);
    let Some((_, expected)) = expected else {
        return Err(RowError::Version {
            path: path.to_owned(),
            line,
            found: version,
            remedy: if version > SCHEMA_VERSION {
                "read it with a newer alloquet"
            } else {
                "read it with the alloquet that wrote it"
            },
        });
    };
    check_header(
        path,
        &header.iter().collect::<Vec<_>>(),
        expected,
        R::REMEDY,
    )?;
    let row: R = record
        .deserialize(Some(header))
        .map_err(|error| field_error(path, line, &error, header, record))?;
    row.check().map_err(|(column, problem)| RowError::Row {
        path: path.to_owned(),
        line,
        column: Some(column.to_owned()),
        problem,
    })?;
    Ok(row.upgraded())
}

fn field_error(
    path: &Path,
    line: u64,
    error: &csv::Error,
    header: &StringRecord,
    record: &StringRecord,
) -> RowError {
    let (place, problem) = match error.kind() {
        ErrorKind::Deserialize { err, .. } => (err.field(), err.kind().to_string()),
        _ => (None, error.to_string()),
    };
    let place = place.and_then(|place| usize::try_from(place).ok());
    // csv does not tell where an unknown variant stood.
    let place = place.or_else(|| {
        header.iter().zip(record).position(|(name, field)| {
            matches!(
                name,
                "kind" | "status" | "workload" | "situation" | "source"
            ) && problem.starts_with(&format!("unknown variant `{field}`"))
        })
    });
    let text = place.and_then(|place| record.get(place));
    RowError::Row {
        path: path.to_owned(),
        line,
        column: place.and_then(|place| header.get(place)).map(str::to_owned),
        problem: match text {
            Some(text) => format!("{text:?}: {problem}"),
            None => problem,
        },
    }
}

fn row_error(path: &Path, error: &csv::Error) -> RowError {
    let problem = match error.kind() {
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("it has {len} fields where the header has {expected_len}"),
        ErrorKind::Utf8 { .. } => "it is not UTF-8".to_owned(),
        _ => error.to_string(),
    };
    RowError::Row {
        path: path.to_owned(),
        line: error.position().map_or(1, csv::Position::line),
        column: None,
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Kind, Sample, SampleWriter, Workload, read_samples};
    use std::path::PathBuf;

    /// A file with the header and one row, its fields changed as `change` says.
    fn file_with(dir: &tempfile::TempDir, change: impl Fn(&str, &str) -> String) -> PathBuf {
        let path = dir.path().join("samples.csv");
        let sample = Sample::new(Kind::Rss, Workload::Read);
        SampleWriter::append(&path).unwrap().write(&sample).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let (header, row) = text.trim_end().split_once('\n').unwrap();
        let fields: Vec<String> = header
            .split(',')
            .zip(row.split(','))
            .map(|(name, field)| change(name, field))
            .collect();
        fs::write(&path, format!("{header}\n{}\n", fields.join(","))).unwrap();
        path
    }

    fn error_with(column: &'static str, value: &'static str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = file_with(&dir, |name, field| {
            if name == column { value } else { field }.to_owned()
        });
        let text = read_samples(&path).unwrap_err().to_string();
        text.replace(&*path.to_string_lossy(), "FILE")
    }

    #[test]
    fn an_error_names_file_line_column_and_remedy() {
        assert_eq!(
            error_with("max_rss_bytes", "many"),
            "FILE: line 2, column max_rss_bytes: \"many\": invalid digit found in string; \
             mend or remove the line"
        );
        assert_eq!(
            error_with("kind", "speed"),
            "FILE: line 2, column kind: \"speed\": unknown variant `speed`, expected one of \
             `heap`, `rss`, `explain`, `settle`, `cycles`, `timeline`; mend or remove the line"
        );
    }

    #[test]
    fn a_newer_schema_is_refused_as_newer() {
        assert_eq!(
            error_with("schema_version", "99"),
            "FILE: line 2: schema version 99, but this program knows 5; \
             read it with a newer alloquet"
        );
    }

    #[test]
    fn impossible_values_are_refused() {
        assert!(error_with("wall_s", "NaN").contains("column wall_s: NaN is no time"));
        assert!(error_with("user_s", "-1").contains("column user_s"));
        assert!(error_with("scale_rows", "0").contains("column scale_rows: 0 is no scale"));
        assert!(
            error_with("status", "failed")
                .contains("column error: a sample that is not ok must say")
        );
    }

    #[test]
    fn a_row_of_another_length_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = file_with(&dir, |_, field| field.to_owned());
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("1,short\n");
        fs::write(&path, text).unwrap();
        let error = read_samples(&path).unwrap_err().to_string();
        assert!(error.contains("line 3: it has 2 fields"), "{error}");
    }

    #[test]
    fn a_last_line_without_a_line_break_is_left_out_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = file_with(&dir, |_, field| field.to_owned());
        let text = fs::read_to_string(&path).unwrap();
        let row = text.lines().nth(1).unwrap();
        // Whole but for its line break: the last number could still be a part of a longer one.
        fs::write(&path, format!("{text}{row}")).unwrap();
        let samples = read_samples(&path).unwrap();
        assert_eq!(samples.rows.len(), 1);
        assert_eq!(samples.warnings.len(), 1);
        assert!(samples.warnings[0].contains("line 3 is left out"));
    }

    #[test]
    fn another_file_is_no_file_of_samples() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.csv");
        fs::write(&path, "a,b\n1,2\n").unwrap();
        let error = read_samples(&path).unwrap_err().to_string();
        assert!(
            error.contains("column 1 is \"a\" where \"schema_version\" is expected"),
            "{error}"
        );
        fs::write(&path, "").unwrap();
        assert!(read_samples(&path).is_err());
        assert!(read_samples(dir.path().join("missing.csv")).is_err());
    }
}
