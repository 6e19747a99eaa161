//! Appends rows to a CSV file: whole rows, and those that belong together at once.
//!
//! Nothing that was measured is ever overwritten, and a file whose columns are not exactly ours is
//! refused. A process may be killed while it writes: what it left of a row is moved aside, so that
//! the next row does not grow out of it.

use super::error::check_header;
use super::{Row, RowError, columns, line, whole_lines};
use crate::sample::SCHEMA_VERSION;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// What to do about a file that is not of this version.
const REMEDY: &str = "nothing was written: name another file, or move this one away";

/// A CSV file that is open for appending.
#[derive(Debug)]
pub struct RowWriter<R> {
    file: File,
    path: PathBuf,
    torn: Option<PathBuf>,
    rows: PhantomData<fn(R)>,
}

impl<R: Row> RowWriter<R> {
    /// Opens `path`, creating it with the header where it does not exist.
    ///
    /// If the file ends in the middle of a row, that piece goes to `<path>.torn` and the file then
    /// ends with its last whole row; see [`RowWriter::torn`].
    ///
    /// # Errors
    ///
    /// Where the file cannot be opened, or has other columns or another schema version than ours:
    /// rows of two forms never share a file.
    pub fn append(path: impl AsRef<Path>) -> Result<Self, RowError> {
        let path = path.as_ref();
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(RowError::io::<R>(path, "open"))?;
        // Until it is known what the file holds, no other run may add to it: what was read would be cut off.
        file.lock().map_err(RowError::io::<R>(path, "lock"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(RowError::io::<R>(path, "read"))?;

        let mut writer = Self {
            file,
            path: path.to_owned(),
            torn: None,
            rows: PhantomData,
        };
        let header = header_line::<R>();
        if header.starts_with(&bytes) {
            // New, empty, or its very header was cut short: there is no row in it.
            writer.cut_to(0)?;
            writer.put_locked(&header)?;
            return writer.unlocked();
        }
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or(&bytes);
        let first = String::from_utf8_lossy(first);
        check_header(
            path,
            &first.split(',').collect::<Vec<_>>(),
            &columns::<R>(),
            REMEDY,
        )?;
        let whole = whole_lines(&bytes);
        check_version(path, &bytes[..whole])?;
        if whole < bytes.len() {
            writer.move_aside(&bytes[whole..], whole)?;
        }
        writer.unlocked()
    }

    fn unlocked(self) -> Result<Self, RowError> {
        self.file
            .unlock()
            .map_err(RowError::io::<R>(&self.path, "unlock"))?;
        Ok(self)
    }

    /// Writes one row, in one piece, and hands it to the operating system before it returns.
    ///
    /// Line breaks inside a text become spaces: a row is always one line.
    ///
    /// # Errors
    ///
    /// Where the row cannot be written, such as when the disk is full; the file is then cut back to
    /// its last whole row.
    pub fn write(&mut self, row: &R) -> Result<(), RowError> {
        self.write_all(std::slice::from_ref(row))
    }

    /// Writes rows that belong together, in one piece, as [`RowWriter::write`] writes one.
    ///
    /// # Errors
    ///
    /// Where they cannot be written; the file is then cut back to what it was before.
    pub fn write_all(&mut self, rows: &[R]) -> Result<(), RowError> {
        let mut lines = Vec::new();
        for row in rows {
            let line = line(row)
                .map_err(|source| RowError::io::<R>(&self.path, "put in writing")(source.into()))?;
            lines.extend_from_slice(&line);
        }
        self.put(&lines)
    }

    /// Where an unfinished row that stood at the end of the file was moved to, if there was one.
    #[must_use]
    pub fn torn(&self) -> Option<&Path> {
        self.torn.as_deref()
    }

    /// The file that is appended to.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn put(&mut self, line: &[u8]) -> Result<(), RowError> {
        self.file
            .lock()
            .map_err(RowError::io::<R>(&self.path, "lock"))?;
        let put = self.put_locked(line);
        self.file
            .unlock()
            .map_err(RowError::io::<R>(&self.path, "unlock"))?;
        put
    }

    fn put_locked(&mut self, line: &[u8]) -> Result<(), RowError> {
        let before = self.length()?;
        let written = self.file.write_all(line).and_then(|()| self.file.flush());
        if let Err(error) = written {
            // A disk that filled up took a part of the row. Should the cut fail too, the next
            // run moves that part aside.
            let _ = self.file.set_len(before);
            return Err(RowError::io::<R>(&self.path, "add to")(error));
        }
        Ok(())
    }

    fn length(&mut self) -> Result<u64, RowError> {
        self.file
            .seek(SeekFrom::End(0))
            .map_err(RowError::io::<R>(&self.path, "find the end of"))
    }

    fn cut_to(&mut self, length: usize) -> Result<(), RowError> {
        self.file.set_len(length as u64).map_err(RowError::io::<R>(
            &self.path,
            "cut off an unfinished row of",
        ))
    }

    /// Keeps the unfinished row in a file of its own, then ends the file before it.
    fn move_aside(&mut self, piece: &[u8], whole: usize) -> Result<(), RowError> {
        let mut name = self.path.clone().into_os_string();
        name.push(".torn");
        let torn = PathBuf::from(name);
        keep(&torn, piece).map_err(RowError::io::<R>(&torn, "keep an unfinished row of"))?;
        self.cut_to(whole)?;
        self.torn = Some(torn);
        Ok(())
    }
}

fn keep(path: &Path, piece: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(piece)?;
    file.write_all(b"\n")?;
    file.sync_all()
}

fn header_line<R: Row>() -> Vec<u8> {
    let mut line = columns::<R>().join(",").into_bytes();
    line.push(b'\n');
    line
}

/// The columns may be the same and their meaning not: look at the newest row.
fn check_version(path: &Path, whole: &[u8]) -> Result<(), RowError> {
    let text = String::from_utf8_lossy(whole);
    let Some((line, last)) = text.lines().enumerate().skip(1).last() else {
        return Ok(());
    };
    let line = line as u64 + 1;
    let field = last.split(',').next().unwrap_or_default();
    match field.parse::<u32>() {
        Ok(SCHEMA_VERSION) => Ok(()),
        Ok(found) => Err(RowError::Version {
            path: path.to_owned(),
            line,
            found,
            remedy: REMEDY,
        }),
        Err(_) => Err(RowError::Row {
            path: path.to_owned(),
            line,
            column: Some("schema_version".to_owned()),
            problem: format!("{field:?} is no version"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Kind, Sample, SampleWriter, Workload, read_samples};
    use std::fs;

    fn sample(strategy: &str) -> Sample {
        Sample {
            strategy: strategy.to_owned(),
            wall_s: Some(0.25),
            max_rss_bytes: Some(12_345_678),
            fold: Some("00000000000000ff".to_owned()),
            seed: u64::MAX,
            ..Sample::new(Kind::Rss, Workload::Read)
        }
    }

    fn write(path: &Path, sample: &Sample) {
        SampleWriter::append(path).unwrap().write(sample).unwrap();
    }

    fn strategies(path: &Path) -> Vec<String> {
        let samples = read_samples(path).unwrap();
        samples.rows.into_iter().map(|row| row.strategy).collect()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        let samples = [
            sample("pooled"),
            Sample {
                settings: "A=1;B=\"x,y\"".to_owned(),
                heap_peak_bytes: Some(0),
                ..Sample::new(Kind::Heap, Workload::Write)
            },
            sample("upstream").failed("no such page\nin column 3,\r\n  \"x\""),
        ];
        for sample in &samples {
            write(&path, sample);
        }
        let read = read_samples(&path).unwrap();
        assert_eq!(read.rows, samples);
        assert_eq!(read.warnings, Vec::<String>::new());
        assert_eq!(read.rows[2].error, "no such page in column 3, \"x\"");
        assert_eq!(read.rows[2].max_rss_bytes, None);
    }

    #[test]
    fn what_is_not_measured_is_an_empty_field() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        write(&path, &Sample::new(Kind::Heap, Workload::Read));
        let text = fs::read_to_string(&path).unwrap();
        let row = text.lines().nth(1).unwrap();
        assert!(row.contains(",ok,,,,,,"), "{row}");
    }

    #[test]
    fn a_line_break_in_a_text_stays_out_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        let mut sample = sample("pooled");
        sample.settings = "A=1\nB=2".to_owned();
        write(&path, &sample);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
        assert_eq!(read_samples(&path).unwrap().rows[0].settings, "A=1 B=2");
    }

    #[test]
    fn a_file_with_other_columns_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        let text = String::from_utf8(header_line::<Sample>())
            .unwrap()
            .replace("matrix", "plan");
        fs::write(&path, &text).unwrap();
        let error = SampleWriter::append(&path).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "not the columns of this version: column 3 is \"plan\" where \"matrix\" is \
                 expected; nothing was written: name another file, or move this one away"
            ),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn a_file_of_another_version_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        let mut sample = sample("pooled");
        sample.schema_version = SCHEMA_VERSION + 1;
        write(&path, &sample);
        let error = SampleWriter::append(&path).unwrap_err().to_string();
        assert!(error.contains("line 2: schema version 6"), "{error}");
    }

    #[test]
    fn an_unfinished_row_is_moved_aside_and_no_row_grows_out_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        write(&path, &sample("retained"));
        write(&path, &sample("pooled"));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 20]).unwrap();

        let mut writer = SampleWriter::append(&path).unwrap();
        writer.write(&sample("upstream")).unwrap();
        assert_eq!(strategies(&path), ["retained", "upstream"]);
        let torn = fs::read_to_string(writer.torn().unwrap()).unwrap();
        assert!(torn.contains("pooled") && !torn.contains("retained"));
        assert_eq!(SampleWriter::append(&path).unwrap().torn(), None);
    }

    #[test]
    fn an_unfinished_header_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        fs::write(&path, "schema_version,run").unwrap();
        write(&path, &sample("pooled"));
        assert_eq!(strategies(&path), ["pooled"]);
    }

    #[test]
    fn a_whole_file_that_is_only_a_header_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        SampleWriter::append(&path).unwrap();
        write(&path, &sample("pooled"));
        assert_eq!(strategies(&path), ["pooled"]);
    }

    #[test]
    fn two_writers_do_not_disturb_one_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        let mut one = SampleWriter::append(&path).unwrap();
        let mut two = SampleWriter::append(&path).unwrap();
        one.write(&sample("a")).unwrap();
        two.write(&sample("b")).unwrap();
        one.write(&sample("c")).unwrap();
        assert_eq!(strategies(&path), ["a", "b", "c"]);
    }

    #[test]
    fn a_folder_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let error = SampleWriter::append(dir.path()).unwrap_err().to_string();
        assert!(error.starts_with(&*dir.path().to_string_lossy()), "{error}");
        assert!(error.contains("cannot open the samples"), "{error}");
    }
}
