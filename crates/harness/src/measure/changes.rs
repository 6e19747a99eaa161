//! What the workload `write` tells the writer otherwise than the dataset's definition, or the user's own file, does.
//!
//! The names are those of a definition. They are part of a workload's identity: two different sets of changes never
//! share a cell.

use std::fmt;
use std::num::NonZeroUsize;

use alloquet_datagen::{Compression, DataPageVersion, Encoding, Statistics};
use parquet::basic::{Encoding as ParquetEncoding, Type as Physical};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};
use serde::{Deserialize, Serialize};

/// The changes; what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Changes {
    /// Version of the data pages.
    pub(crate) data_page_version: Option<DataPageVersion>,
    /// Codec of every page.
    pub(crate) compression: Option<Compression>,
    /// Encoding of the columns whose type has it; the others keep theirs.
    pub(crate) encoding: Option<Encoding>,
    /// Whether every column has a dictionary, or none.
    pub(crate) dictionary: Option<bool>,
    /// Size in bytes at which a dictionary is given up.
    pub(crate) dictionary_page_bytes: Option<NonZeroUsize>,
    /// Size in bytes at which a data page is ended.
    pub(crate) page_bytes: Option<NonZeroUsize>,
    /// Most rows of a data page.
    pub(crate) page_row_limit: Option<NonZeroUsize>,
    /// Most rows of a row group.
    pub(crate) rows_per_row_group: Option<NonZeroUsize>,
    /// Which statistics are written.
    pub(crate) statistics: Option<Statistics>,
    /// Whether every column has a bloom filter, or none.
    pub(crate) bloom_filter: Option<bool>,
}

impl Changes {
    /// The changes by name, in a fixed order.
    fn pairs(&self) -> impl Iterator<Item = (&'static str, String)> {
        let text = |value: Option<&dyn fmt::Display>| value.map(ToString::to_string);
        let number = |value: &Option<NonZeroUsize>| value.map(|value| value.to_string());
        let version = self.data_page_version.map(i64::from);
        let statistics = self.statistics.map(|statistics| match statistics {
            Statistics::None => "none",
            Statistics::Chunk => "chunk",
            Statistics::Page => "page",
        });
        [
            ("data_page_version", version.map(|value| value.to_string())),
            (
                "compression",
                text(self.compression.as_ref().map(|codec| codec as _)),
            ),
            (
                "encoding",
                self.encoding.map(|encoding| encoding.name().to_owned()),
            ),
            (
                "dictionary",
                text(self.dictionary.as_ref().map(|on| on as _)),
            ),
            ("dictionary_page_bytes", number(&self.dictionary_page_bytes)),
            ("page_bytes", number(&self.page_bytes)),
            ("page_row_limit", number(&self.page_row_limit)),
            ("rows_per_row_group", number(&self.rows_per_row_group)),
            ("statistics", statistics.map(str::to_owned)),
            (
                "bloom_filter",
                text(self.bloom_filter.as_ref().map(|on| on as _)),
            ),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }

    /// The properties with the changes made, for a file of the columns of `schema`.
    ///
    /// A column that has a setting of its own keeps it in the map of such settings, with the new value: everything
    /// else goes into the defaults of all columns, so that the map, and the heap of whoever writes with it, stays small.
    pub(super) fn apply(
        &self,
        properties: WriterProperties,
        schema: &SchemaDescriptor,
    ) -> WriterProperties {
        let mut builder = properties.into_builder();
        if let Some(version) = self.data_page_version {
            builder = builder.set_writer_version(match version {
                DataPageVersion::V1 => WriterVersion::PARQUET_1_0,
                DataPageVersion::V2 => WriterVersion::PARQUET_2_0,
            });
        }
        if let Some(rows) = self.page_row_limit {
            builder = builder.set_data_page_row_count_limit(rows.get());
        }
        if let Some(rows) = self.rows_per_row_group {
            builder = builder.set_max_row_group_row_count(Some(rows.get()));
        }
        if let Some(codec) = self.compression.map(Compression::codec) {
            let setting = Setting {
                for_all: WriterPropertiesBuilder::set_compression,
                for_one: WriterPropertiesBuilder::set_column_compression,
                of: WriterProperties::compression,
            };
            builder = setting.set(builder, schema, codec);
        }
        if let Some(on) = self.dictionary {
            let setting = Setting {
                for_all: WriterPropertiesBuilder::set_dictionary_enabled,
                for_one: WriterPropertiesBuilder::set_column_dictionary_enabled,
                of: WriterProperties::dictionary_enabled,
            };
            builder = setting.set(builder, schema, on);
        }
        if let Some(bytes) = self.dictionary_page_bytes {
            let setting = Setting {
                for_all: WriterPropertiesBuilder::set_dictionary_page_size_limit,
                for_one: WriterPropertiesBuilder::set_column_dictionary_page_size_limit,
                of: WriterProperties::column_dictionary_page_size_limit,
            };
            builder = setting.set(builder, schema, bytes.get());
        }
        if let Some(bytes) = self.page_bytes {
            let setting = Setting {
                for_all: WriterPropertiesBuilder::set_data_page_size_limit,
                for_one: WriterPropertiesBuilder::set_column_data_page_size_limit,
                of: WriterProperties::column_data_page_size_limit,
            };
            builder = setting.set(builder, schema, bytes.get());
        }
        if let Some(statistics) = self.statistics {
            let setting = Setting {
                for_all: WriterPropertiesBuilder::set_statistics_enabled,
                for_one: WriterPropertiesBuilder::set_column_statistics_enabled,
                of: WriterProperties::statistics_enabled,
            };
            let enabled = match statistics {
                Statistics::None => EnabledStatistics::None,
                Statistics::Chunk => EnabledStatistics::Chunk,
                Statistics::Page => EnabledStatistics::Page,
            };
            builder = setting.set(builder, schema, enabled);
        }
        if let Some(on) = self.bloom_filter {
            let setting = Setting {
                for_all: WriterPropertiesBuilder::set_bloom_filter_enabled,
                for_one: WriterPropertiesBuilder::set_column_bloom_filter_enabled,
                of: |properties, column| properties.bloom_filter_properties(column).is_some(),
            };
            builder = setting.set(builder, schema, on);
        }
        if let Some(encoding) = self.encoding {
            builder = set_encoding(builder, schema, encoding);
        }
        builder.build()
    }
}

impl fmt::Display for Changes {
    /// As the CSV has it: `compression=zstd(1);page_bytes=65536`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, value)) in self.pairs().enumerate() {
            let between = if place == 0 { "" } else { ";" };
            write!(f, "{between}{name}={value}")?;
        }
        Ok(())
    }
}

/// How the parquet crate takes one setting.
struct Setting<T> {
    for_all: fn(WriterPropertiesBuilder, T) -> WriterPropertiesBuilder,
    for_one: fn(WriterPropertiesBuilder, ColumnPath, T) -> WriterPropertiesBuilder,
    of: fn(&WriterProperties, &ColumnPath) -> T,
}

impl<T: Copy + PartialEq> Setting<T> {
    fn set(
        &self,
        builder: WriterPropertiesBuilder,
        schema: &SchemaDescriptor,
        value: T,
    ) -> WriterPropertiesBuilder {
        let built = (self.for_all)(builder, value).build();
        let own: Vec<ColumnPath> = schema
            .columns()
            .iter()
            .map(|column| column.path())
            .filter(|path| (self.of)(&built, path) != value)
            .cloned()
            .collect();
        let builder = built.into_builder();
        own.into_iter().fold(builder, |builder, path| {
            (self.for_one)(builder, path, value)
        })
    }
}

fn set_encoding(
    mut builder: WriterPropertiesBuilder,
    schema: &SchemaDescriptor,
    encoding: Encoding,
) -> WriterPropertiesBuilder {
    let (encoding, fits) = parquet_encoding(encoding);
    let all = schema
        .columns()
        .iter()
        .all(|column| fits(column.physical_type()));
    if all {
        builder = builder.set_encoding(encoding);
    }
    let built = builder.build();
    let others: Vec<ColumnPath> = schema
        .columns()
        .iter()
        .filter(|column| fits(column.physical_type()))
        .map(|column| column.path())
        .filter(|path| built.encoding(path) != Some(encoding))
        .cloned()
        .collect();
    others
        .into_iter()
        .fold(built.into_builder(), |builder, path| {
            builder.set_column_encoding(path, encoding)
        })
}

/// The encoding in the parquet crate's terms, and whether it writes values of a type so.
fn parquet_encoding(encoding: Encoding) -> (ParquetEncoding, fn(Physical) -> bool) {
    use Physical::{BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64};
    match encoding {
        Encoding::Plain => (ParquetEncoding::PLAIN, |_| true),
        Encoding::Rle => (ParquetEncoding::RLE, |physical| physical == BOOLEAN),
        Encoding::DeltaBinaryPacked => (ParquetEncoding::DELTA_BINARY_PACKED, |physical| {
            matches!(physical, INT32 | INT64)
        }),
        Encoding::DeltaLengthByteArray => (ParquetEncoding::DELTA_LENGTH_BYTE_ARRAY, |physical| {
            physical == BYTE_ARRAY
        }),
        Encoding::DeltaByteArray => (ParquetEncoding::DELTA_BYTE_ARRAY, |physical| {
            matches!(physical, BYTE_ARRAY | FIXED_LEN_BYTE_ARRAY)
        }),
        Encoding::ByteStreamSplit => (ParquetEncoding::BYTE_STREAM_SPLIT, |physical| {
            matches!(
                physical,
                INT32 | INT64 | FLOAT | DOUBLE | FIXED_LEN_BYTE_ARRAY
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::Compression as Codec;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    fn changes(text: &str) -> Changes {
        toml::from_str(text).unwrap()
    }

    fn schema() -> SchemaDescriptor {
        let message =
            "message m { required int32 a; required binary b (UTF8); required double c; }";
        SchemaDescriptor::new(Arc::new(parse_message_type(message).unwrap()))
    }

    #[test]
    fn they_are_shown_in_one_order_whatever_they_were_given_in() {
        let one = changes("page_bytes = 65536\ncompression = 'zstd'\ndictionary = false");
        let other = changes("dictionary = false\ncompression = 'zstd(1)'\npage_bytes = 65536");
        assert_eq!(one, other);
        assert_eq!(
            one.to_string(),
            "compression=zstd(1);dictionary=false;page_bytes=65536"
        );
        assert_eq!(Changes::default().to_string(), "");
    }

    #[test]
    fn every_change_is_shown() {
        let all = "data_page_version = 2\ncompression = 'snappy'\nencoding = 'plain'\ndictionary = true\n\
            dictionary_page_bytes = 1\npage_bytes = 2\npage_row_limit = 3\nrows_per_row_group = 4\n\
            statistics = 'page'\nbloom_filter = true";
        let shown = changes(all).to_string();
        assert_eq!(shown.split(';').count(), all.lines().count(), "{shown}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| toml::from_str::<Changes>(text).unwrap_err().to_string();
        assert!(error("compresion = 'zstd'").contains("compresion"));
        assert!(error("compression = 'lzo'").contains("lzo"));
        assert!(error("data_page_version = 3").contains("data_page_version 3"));
        assert!(error("page_bytes = 0").contains("page_bytes"));
    }

    #[test]
    fn a_column_with_a_setting_of_its_own_is_changed_too() {
        let (a, b) = (ColumnPath::from("a"), ColumnPath::from("b"));
        let before = WriterProperties::builder()
            .set_column_compression(a.clone(), Codec::GZIP(Default::default()))
            .set_column_dictionary_enabled(b.clone(), false)
            .build();
        let after = changes("compression = 'snappy'\ndictionary = true\nbloom_filter = true")
            .apply(before, &schema());
        for column in [&a, &b] {
            assert_eq!(after.compression(column), Codec::SNAPPY);
            assert!(after.dictionary_enabled(column));
            assert!(after.bloom_filter_properties(column).is_some());
        }
    }

    #[test]
    fn an_encoding_goes_to_the_columns_that_have_it() {
        let (a, b, c) = ("a".into(), "b".into(), "c".into());
        let before = WriterProperties::builder()
            .set_column_encoding("b".into(), ParquetEncoding::DELTA_LENGTH_BYTE_ARRAY)
            .build();
        let after = changes("encoding = 'delta_binary_packed'").apply(before.clone(), &schema());
        assert_eq!(
            [&a, &b, &c].map(|column| after.encoding(column)),
            [
                Some(ParquetEncoding::DELTA_BINARY_PACKED),
                Some(ParquetEncoding::DELTA_LENGTH_BYTE_ARRAY),
                None
            ]
        );
        let after = changes("encoding = 'plain'").apply(before, &schema());
        for column in [&a, &b, &c] {
            assert_eq!(after.encoding(column), Some(ParquetEncoding::PLAIN));
        }
    }
}
