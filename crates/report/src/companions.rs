//! The files beside a CSV of samples: what does not fit in a sample's row, namely its parts and its series.
//!
//! They are written before the row, so the row says that they are whole: what belongs to no row is left out. A run
//! that was killed between the two and resumed has written some of them twice; the later ones count.

mod row;

use crate::parts::{Part, PartRow};
use crate::rows::{RowWriter, columns, read_rows};
use crate::sample::{Sample, SampleError};
use crate::series::{Point, PointRow};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use row::{CompanionRow, Key};

/// The companion of a CSV: of `results/quick.csv` and `parts` it is `results/quick.parts.csv`.
#[must_use]
pub fn companion_path(csv: &Path, name: &str) -> PathBuf {
    let mut file = csv.file_stem().map_or_else(OsString::new, OsString::from);
    file.push(format!(".{name}.csv"));
    csv.with_file_name(file)
}

/// The columns of the companion with the parts.
#[must_use]
pub fn parts_columns() -> Vec<String> {
    columns::<PartRow>()
}

/// The columns of the companion with the series.
#[must_use]
pub fn series_columns() -> Vec<String> {
    columns::<PointRow>()
}

/// What samples have besides their rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Companions {
    parts: BTreeMap<Key, Vec<Part>>,
    series: BTreeMap<Key, Vec<Point>>,
}

impl Companions {
    /// Reads what stands beside `csv` of its `samples`, and what a reader should be told of it. Where there is no
    /// such file, there is nothing.
    ///
    /// # Errors
    ///
    /// Where a companion is there and cannot be read, or is not of this version.
    pub fn beside(csv: &Path, samples: &[Sample]) -> Result<(Self, Vec<String>), SampleError> {
        let known: BTreeSet<Key> = samples.iter().map(key).collect();
        let mut warnings = Vec::new();
        let parts = read::<PartRow>(csv, &known, &mut warnings)?;
        let series = read::<PointRow>(csv, &known, &mut warnings)?;
        Ok((Self { parts, series }, warnings))
    }

    /// Adds what one sample has, in the place of what it had before.
    pub fn insert(&mut self, sample: &Sample, parts: Vec<Part>, series: Vec<Point>) {
        if !parts.is_empty() {
            self.parts.insert(key(sample), parts);
        }
        if !series.is_empty() {
            self.series.insert(key(sample), series);
        }
    }

    /// The parts of a sample's RSS; empty where it has none.
    #[must_use]
    pub fn parts(&self, sample: &Sample) -> &[Part] {
        self.parts.get(&key(sample)).map_or(&[], Vec::as_slice)
    }

    /// A sample's points; empty where it has none.
    #[must_use]
    pub fn series(&self, sample: &Sample) -> &[Point] {
        self.series.get(&key(sample)).map_or(&[], Vec::as_slice)
    }
}

fn key(sample: &Sample) -> Key {
    (sample.run_id.clone(), sample.position)
}

/// What a companion has of the `known` samples, by sample.
fn read<R: CompanionRow>(
    csv: &Path,
    known: &BTreeSet<Key>,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<Key, Vec<R::Content>>, SampleError> {
    let path = companion_path(csv, R::NAME);
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    let read = read_rows::<R>(path)?;
    warnings.extend(read.warnings);
    let mut sets: BTreeMap<Key, Set<R::Content>> = BTreeMap::new();
    for row in read.rows {
        let (key, name) = (row.key(), row.name());
        if known.contains(&key) {
            sets.entry(key).or_default().add(name, row.content());
        }
    }
    let mut whole = BTreeMap::new();
    for (key, set) in sets {
        if R::are_whole(&set.contents) {
            whole.insert(key, set.contents);
        } else {
            warnings.push(format!(
                "{}: what it has of sample {} of run {} is not whole and is left out",
                companion_path(csv, R::NAME).display(),
                key.1,
                key.0
            ));
        }
    }
    Ok(whole)
}

/// What one sample has, as it is read row by row. A name that was there before begins it anew.
struct Set<C> {
    names: BTreeSet<(String, u32)>,
    contents: Vec<C>,
}

impl<C> Default for Set<C> {
    fn default() -> Self {
        Self {
            names: BTreeSet::new(),
            contents: Vec::new(),
        }
    }
}

impl<C> Set<C> {
    fn add(&mut self, name: (String, u32), content: C) {
        if self.names.contains(&name) {
            *self = Self::default();
        }
        self.names.insert(name);
        self.contents.push(content);
    }
}

/// The companions of a CSV, open for appending. A file is made when there is something to write to it.
#[derive(Debug)]
pub struct CompanionWriter {
    csv: PathBuf,
    parts: Option<RowWriter<PartRow>>,
    series: Option<RowWriter<PointRow>>,
}

impl CompanionWriter {
    /// Opens what there is beside `csv`.
    ///
    /// # Errors
    ///
    /// Where a companion cannot be opened, or is not of this version.
    pub fn beside(csv: &Path) -> Result<Self, SampleError> {
        Ok(Self {
            csv: csv.to_owned(),
            parts: open_existing(csv)?,
            series: open_existing(csv)?,
        })
    }

    /// Writes what one sample has, each kind in one piece. To be called before the sample's row is written.
    ///
    /// # Errors
    ///
    /// Where it cannot be written; the sample's row must then not be written either.
    pub fn write(
        &mut self,
        sample: &Sample,
        parts: &[Part],
        series: &[Point],
    ) -> Result<(), SampleError> {
        put(&self.csv, &mut self.parts, sample, parts)?;
        put(&self.csv, &mut self.series, sample, series)
    }

    /// Where unfinished rows that stood at a companion's end were moved to.
    #[must_use]
    pub fn torn(&self) -> Vec<&Path> {
        let parts = self.parts.as_ref().and_then(RowWriter::torn);
        let series = self.series.as_ref().and_then(RowWriter::torn);
        parts.into_iter().chain(series).collect()
    }
}

fn open_existing<R: CompanionRow>(csv: &Path) -> Result<Option<RowWriter<R>>, SampleError> {
    let path = companion_path(csv, R::NAME);
    path.exists().then(|| RowWriter::append(path)).transpose()
}

fn put<R: CompanionRow>(
    csv: &Path,
    writer: &mut Option<RowWriter<R>>,
    sample: &Sample,
    contents: &[R::Content],
) -> Result<(), SampleError> {
    if contents.is_empty() {
        return Ok(());
    }
    let writer = match writer {
        Some(writer) => writer,
        None => writer.insert(RowWriter::append(companion_path(csv, R::NAME))?),
    };
    let rows = contents.iter().map(|content| R::new(sample, content));
    writer.write_all(&rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::{LAST, Source};
    use crate::sample::{Kind, Workload};
    use std::fs;

    fn sample(kind: Kind, position: u32) -> Sample {
        Sample {
            run_id: "r1".to_owned(),
            position,
            ..Sample::new(kind, Workload::Read)
        }
    }

    fn part(part: &str, bytes: i64) -> Part {
        Part {
            part: part.to_owned(),
            bytes,
            source: Source::Derived,
            how: "committed, less live".to_owned(),
        }
    }

    fn points(rss: &[u64]) -> Vec<Point> {
        let points = rss.iter().enumerate();
        points
            .map(|(place, rss)| Point {
                phase: "cycle".to_owned(),
                point: place as u32,
                at_s: 0.5,
                rss_bytes: *rss,
                lazy_free_bytes: None,
                heap_live_bytes: Some(7),
            })
            .collect()
    }

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn csv(&self) -> PathBuf {
            self.0.path().join("quick.csv")
        }

        fn write(&self, sample: &Sample, parts: &[Part], series: &[Point]) {
            let mut writer = CompanionWriter::beside(&self.csv()).unwrap();
            writer.write(sample, parts, series).unwrap();
        }

        fn read(&self, samples: &[Sample]) -> Companions {
            Companions::beside(&self.csv(), samples).unwrap().0
        }
    }

    #[test]
    fn companions_stand_beside_their_csv() {
        let path = companion_path(Path::new("results/quick.csv"), "parts");
        assert_eq!(path, Path::new("results/quick.parts.csv"));
        let path = companion_path(Path::new("gh.46971.csv"), "series");
        assert_eq!(path, Path::new("gh.46971.series.csv"));
    }

    #[test]
    fn what_is_written_is_read_back_by_sample() {
        let folder = Folder::new();
        let (explain, cycles) = (sample(Kind::Explain, 3), sample(Kind::Cycles, 4));
        let parts = [part("live-page", 9), part(LAST, -4)];
        folder.write(&explain, &parts, &[]);
        folder.write(&cycles, &[], &points(&[1, 2]));
        let read = folder.read(&[explain.clone(), cycles.clone()]);
        assert_eq!(read.parts(&explain), parts);
        assert_eq!(read.series(&cycles), points(&[1, 2]));
        assert_eq!(read.parts(&cycles), []);
        let mut same = Companions::default();
        same.insert(&explain, parts.to_vec(), Vec::new());
        same.insert(&cycles, Vec::new(), points(&[1, 2]));
        assert_eq!(read, same);
    }

    #[test]
    fn what_is_cut_short_or_out_of_order_is_left_out_with_a_warning() {
        let folder = Folder::new();
        let (explain, cycles) = (sample(Kind::Explain, 3), sample(Kind::Cycles, 4));
        folder.write(&explain, &[part("live-page", 9)], &[]);
        let mut backwards = points(&[1, 2]);
        backwards[0].at_s = 9.0;
        folder.write(&cycles, &[], &backwards);
        let samples = [explain.clone(), cycles.clone()];
        let (read, warnings) = Companions::beside(&folder.csv(), &samples).unwrap();
        assert_eq!(
            (read.parts(&explain), read.series(&cycles)),
            (&[][..], &[][..])
        );
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("quick.parts.csv: what it has of sample 3 of run r1"));
    }

    #[test]
    fn no_file_is_made_for_nothing() {
        let folder = Folder::new();
        folder.write(&sample(Kind::Rss, 0), &[], &[]);
        assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 0);
        assert_eq!(folder.read(&[]), Companions::default());
    }

    #[test]
    fn what_belongs_to_no_sample_is_left_out() {
        let folder = Folder::new();
        folder.write(&sample(Kind::Explain, 3), &[part("live-page", 9)], &[]);
        assert_eq!(
            folder.read(&[sample(Kind::Explain, 2)]),
            Companions::default()
        );
    }

    #[test]
    fn of_what_was_written_twice_the_later_counts() {
        let folder = Folder::new();
        let (one, two) = (sample(Kind::Cycles, 1), sample(Kind::Cycles, 2));
        folder.write(&one, &[], &points(&[1, 2, 3]));
        folder.write(&one, &[], &points(&[4, 5]));
        folder.write(&two, &[], &points(&[6]));
        folder.write(&one, &[], &points(&[7, 8]));
        let read = folder.read(&[one.clone(), two.clone()]);
        assert_eq!(read.series(&one), points(&[7, 8]));
        assert_eq!(read.series(&two), points(&[6]));
    }

    #[test]
    fn what_a_killed_run_left_of_a_set_does_not_mix_with_the_next() {
        let folder = Folder::new();
        let one = sample(Kind::Cycles, 1);
        folder.write(&one, &[], &points(&[1, 2, 3, 4]));
        let path = companion_path(&folder.csv(), "series");
        let text = fs::read_to_string(&path).unwrap();
        // Cut inside the last row: two whole rows of an unfinished set stay, and a piece.
        for cut in [3, 30] {
            fs::write(&path, &text[..text.len() - cut]).unwrap();
            let mut writer = CompanionWriter::beside(&folder.csv()).unwrap();
            assert_eq!(writer.torn().len(), 1);
            writer.write(&one, &[], &points(&[5, 6])).unwrap();
            let read = folder.read(std::slice::from_ref(&one));
            assert_eq!(read.series(&one), points(&[5, 6]));
        }
    }

    #[test]
    fn a_companion_of_another_form_is_refused_before_anything_is_measured() {
        let folder = Folder::new();
        let path = companion_path(&folder.csv(), "parts");
        fs::write(&path, "schema_version,run\n").unwrap();
        let error = CompanionWriter::beside(&folder.csv()).unwrap_err();
        assert!(error.to_string().contains("column 2"), "{error}");
        let error = Companions::beside(&folder.csv(), &[]).unwrap_err();
        assert!(error.to_string().contains("quick.parts.csv"), "{error}");
    }

    #[test]
    fn a_row_that_is_not_understood_is_named() {
        let folder = Folder::new();
        let one = sample(Kind::Explain, 1);
        folder.write(&one, &[part("live-page", 9)], &points(&[1]));
        let refused = |name: &str, from: &str, to: &str| {
            let path = companion_path(&folder.csv(), name);
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace(from, to)).unwrap();
            let error = Companions::beside(&folder.csv(), std::slice::from_ref(&one));
            fs::write(&path, text).unwrap();
            error.unwrap_err().to_string()
        };
        let error = refused("parts", "derived", "guessed");
        assert!(error.contains("line 2, column source"), "{error}");
        let error = refused("series", ",0.5,", ",inf,");
        assert!(error.contains("column at_s: inf is no time"), "{error}");
    }
}
