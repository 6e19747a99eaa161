//! The arguments of `write`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use alloquet_datagen::{Compression, DataPageVersion, Encoding, Statistics};
use alloquet_report::sample::Situation;
use clap::{ArgGroup, Args, ValueEnum};
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::{DataArgs, MeasuringArgs, OutputFormat};
use crate::measure::Changes;
use crate::plan::MOST_WRITERS;

/// Arguments of `write`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("input").required(true).args(["file", "dataset"]))]
pub(crate) struct WriteArgs {
    /// The Parquet file whose contents are written anew. It stays as it is.
    pub(crate) file: Option<PathBuf>,
    /// A dataset instead, generated where it is missing.
    #[arg(long, value_name = "NAME")]
    pub(crate) dataset: Option<String>,
    /// A strategy, such as bounded or grow,sink=spill; can be repeated. All presets if not given.
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Vec<String>,
    /// Where the batches come from: a table in memory (resident), or one by one, dropped once written (arriving); can be
    /// repeated.
    #[arg(long, value_enum, default_values_t = [SituationArg::Resident])]
    pub(crate) situation: Vec<SituationArg>,
    /// Writers that are open at once, each writing the whole table to a file of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = writers)]
    pub(crate) writers: usize,
    /// Rows in a batch.
    #[arg(long, value_name = "N", default_value = "65536")]
    pub(crate) batch_rows: NonZeroUsize,
    /// A TOML file with the keys of an encrypted file: footer_key, aad_prefix and the table column_keys. The variable
    /// ALLOQUET_KEYS can hold the same text. It is written encrypted too.
    #[arg(long, value_name = "FILE", conflicts_with = "dataset")]
    pub(crate) key_file: Option<PathBuf>,
    /// Scale of the dataset's rows, above 0 and at most 1.
    #[arg(
        long,
        value_name = "FACTOR",
        default_value_t = 1.0,
        conflicts_with = "file"
    )]
    pub(crate) scale_rows: f64,
    /// Scale of the dataset's columns, above 0 and at most 1.
    #[arg(
        long,
        value_name = "FACTOR",
        default_value_t = 1.0,
        conflicts_with = "file"
    )]
    pub(crate) scale_columns: f64,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
    /// Append the samples to write.csv in this folder. They are only printed if not given.
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// What to print.
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    // Last, because its heading stands over all that follows.
    #[command(flatten)]
    properties: PropertyArgs,
}

impl WriteArgs {
    /// What the writer is told otherwise than the file or the dataset says.
    pub(crate) fn changes(&self) -> Changes {
        let told = &self.properties;
        Changes {
            data_page_version: told.data_page_version,
            compression: told.compression,
            encoding: told.encoding,
            dictionary: told.dictionary.map(|switch| switch == Switch::On),
            dictionary_page_bytes: told.dictionary_page_bytes,
            page_bytes: told.page_bytes,
            page_row_limit: told.page_row_limit,
            rows_per_row_group: told.rows_per_row_group,
            statistics: told.statistics,
            bloom_filter: told.bloom_filter.map(|switch| switch == Switch::On),
        }
    }
}

/// What the writer is told. Each is as in the file, or as the dataset's definition says, if not given.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "What the writer is told otherwise than the file or the dataset says"
)]
struct PropertyArgs {
    /// Version of the data pages, 1 or 2.
    #[arg(long, visible_alias = "page-version", value_name = "VERSION", value_parser = page_version)]
    data_page_version: Option<DataPageVersion>,
    /// Codec: none, snappy, lz4_raw, zstd, gzip or brotli, the last three also with a level, as in zstd(3).
    #[arg(long, value_name = "CODEC")]
    compression: Option<Compression>,
    /// Encoding of the columns whose type has it, such as delta_byte_array.
    #[arg(long, value_name = "NAME", value_parser = named::<Encoding>)]
    encoding: Option<Encoding>,
    /// Whether every column has a dictionary, or none.
    #[arg(long, value_enum, value_name = "ON|OFF")]
    dictionary: Option<Switch>,
    /// Bytes at which a dictionary is given up.
    #[arg(long, value_name = "N")]
    dictionary_page_bytes: Option<NonZeroUsize>,
    /// Bytes at which a data page is ended.
    #[arg(long, value_name = "N")]
    page_bytes: Option<NonZeroUsize>,
    /// Most rows of a data page.
    #[arg(long, visible_alias = "page-rows", value_name = "N")]
    page_row_limit: Option<NonZeroUsize>,
    /// Most rows of a row group.
    #[arg(long, visible_alias = "row-group-rows", value_name = "N")]
    rows_per_row_group: Option<NonZeroUsize>,
    /// Statistics: none, chunk or page.
    #[arg(long, value_name = "WHICH", value_parser = named::<Statistics>)]
    statistics: Option<Statistics>,
    /// Whether every column has a bloom filter, or none.
    #[arg(long, value_enum, value_name = "ON|OFF")]
    bloom_filter: Option<Switch>,
}

/// A situation on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SituationArg {
    /// The table is in memory anyway.
    Resident,
    /// Batches come one by one and are dropped.
    Arriving,
}

impl From<SituationArg> for Situation {
    fn from(situation: SituationArg) -> Self {
        match situation {
            SituationArg::Resident => Self::Resident,
            SituationArg::Arriving => Self::Arriving,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

fn writers(text: &str) -> Result<usize, String> {
    let range = 1..=MOST_WRITERS;
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("it must be 1 to {MOST_WRITERS}"))
}

fn page_version(text: &str) -> Result<DataPageVersion, String> {
    let number = text.parse::<i64>().map_err(|error| error.to_string())?;
    DataPageVersion::try_from(number)
}

/// What a dataset's definition calls so.
fn named<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let text: StrDeserializer<'_, Error> = text.into_deserializer();
    T::deserialize(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;

    fn parse(arguments: &[&str]) -> Result<WriteArgs, String> {
        let all = ["alloquet", "write"].iter().chain(arguments);
        let parsed = Cli::try_parse_from(all).map_err(|error| error.to_string())?;
        match parsed.command {
            Some(Command::Write(args)) => Ok(args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn what_is_told_is_what_a_matrix_would_say() {
        let args = parse(&[
            "a.parquet",
            "--page-version=2",
            "--compression=zstd(3)",
            "--encoding=delta_byte_array",
            "--dictionary=off",
            "--dictionary-page-bytes=1",
            "--page-bytes=2",
            "--page-rows=3",
            "--row-group-rows=4",
            "--statistics=page",
            "--bloom-filter=on",
        ])
        .unwrap();
        assert_eq!(
            args.changes().to_string(),
            "data_page_version=2;compression=zstd(3);encoding=delta_byte_array;dictionary=false;\
             dictionary_page_bytes=1;page_bytes=2;page_row_limit=3;rows_per_row_group=4;statistics=page;\
             bloom_filter=true"
        );
        assert_eq!(parse(&["a.parquet"]).unwrap().changes(), Changes::default());
    }

    #[test]
    fn the_input_is_a_file_or_a_dataset() {
        assert!(parse(&[]).unwrap_err().contains("--dataset"));
        assert!(parse(&["a.parquet", "--dataset", "b"]).is_err());
        assert!(parse(&["a.parquet", "--scale-rows", "0.5"]).is_err());
        assert!(parse(&["--dataset", "b", "--scale-rows", "0.5"]).is_ok());
        assert!(parse(&["--dataset", "b", "--key-file", "k"]).is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (argument, said) in [
            ("--writers=0", "1 to 400"),
            ("--writers=401", "1 to 400"),
            ("--situation=arrived", "resident, arriving"),
            ("--encoding=delta", "delta_byte_array"),
            ("--compression=lzo", "lzo"),
            ("--data-page-version=3", "expected 1 or 2"),
            ("--page-bytes=0", "--page-bytes"),
            ("--dictionary=yes", "on, off"),
            ("--statistics=all", "chunk"),
        ] {
            let error = parse(&["a.parquet", argument]).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
