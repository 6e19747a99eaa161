//! Options that a caller fills from another release's properties, and the properties made of them.

use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{
    DEFAULT_COMPRESSION, DEFAULT_DATA_PAGE_ROW_COUNT_LIMIT, DEFAULT_DICTIONARY_ENABLED,
    DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT, DEFAULT_MAX_ROW_GROUP_ROW_COUNT, DEFAULT_PAGE_SIZE,
    DEFAULT_STATISTICS_ENABLED, DEFAULT_WRITE_BATCH_SIZE, DEFAULT_WRITER_VERSION,
    EnabledStatistics, WriterProperties, WriterVersion,
};
use parquet::schema::types::ColumnPath;

/// How a file is written. The default is the release's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Version of the format, and with it of data pages.
    pub writer_version: WriterVersion,
    /// Who the file says wrote it; the release itself if absent.
    pub created_by: Option<String>,
    /// Most rows of a row group; no limit if absent.
    pub row_group_rows: Option<usize>,
    /// Most rows of a data page.
    pub page_rows: usize,
    /// How many values are encoded before the size of a page is looked at.
    pub write_batch_rows: usize,
    /// The options of the columns that [`columns`](Self::columns) does not name.
    pub every_column: ColumnOptions,
    /// The options of single columns, by the parts of their paths.
    pub columns: Vec<(Vec<String>, ColumnOptions)>,
}

/// How a column is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnOptions {
    /// Codec of its pages, with the level.
    pub compression: Compression,
    /// Encoding of its values, or of those after its dictionary overflowed; the release's choice if absent.
    pub encoding: Option<Encoding>,
    /// Whether it has a dictionary.
    pub dictionary: bool,
    /// Size in bytes at which its dictionary is given up.
    pub dictionary_page_bytes: usize,
    /// Size in bytes at which a data page is ended.
    pub page_bytes: usize,
    /// Which statistics are written.
    pub statistics: EnabledStatistics,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            writer_version: DEFAULT_WRITER_VERSION,
            created_by: None,
            row_group_rows: Some(DEFAULT_MAX_ROW_GROUP_ROW_COUNT),
            page_rows: DEFAULT_DATA_PAGE_ROW_COUNT_LIMIT,
            write_batch_rows: DEFAULT_WRITE_BATCH_SIZE,
            every_column: ColumnOptions::default(),
            columns: Vec::new(),
        }
    }
}

impl Default for ColumnOptions {
    fn default() -> Self {
        Self {
            compression: DEFAULT_COMPRESSION,
            encoding: None,
            dictionary: DEFAULT_DICTIONARY_ENABLED,
            dictionary_page_bytes: DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT,
            page_bytes: DEFAULT_PAGE_SIZE,
            statistics: DEFAULT_STATISTICS_ENABLED,
        }
    }
}

/// [`Options`] as the release's writer takes them: made before a measurement, so that they are not part of it.
#[derive(Debug, Clone)]
pub struct Properties(pub(crate) WriterProperties);

impl Options {
    /// The properties with these options.
    #[must_use]
    pub fn properties(&self) -> Properties {
        let every = &self.every_column;
        let mut builder = WriterProperties::builder()
            .set_writer_version(self.writer_version)
            .set_max_row_group_row_count(self.row_group_rows)
            .set_data_page_row_count_limit(self.page_rows)
            .set_write_batch_size(self.write_batch_rows)
            .set_compression(every.compression)
            .set_dictionary_enabled(every.dictionary)
            .set_dictionary_page_size_limit(every.dictionary_page_bytes)
            .set_data_page_size_limit(every.page_bytes)
            .set_statistics_enabled(every.statistics);
        if let Some(created_by) = &self.created_by {
            builder = builder.set_created_by(created_by.clone());
        }
        if let Some(encoding) = every.encoding {
            builder = builder.set_encoding(encoding);
        }
        for (path, column) in &self.columns {
            let path = ColumnPath::new(path.clone());
            builder = builder
                .set_column_compression(path.clone(), column.compression)
                .set_column_dictionary_enabled(path.clone(), column.dictionary)
                .set_column_dictionary_page_size_limit(path.clone(), column.dictionary_page_bytes)
                .set_column_data_page_size_limit(path.clone(), column.page_bytes)
                .set_column_statistics_enabled(path.clone(), column.statistics);
            if let Some(encoding) = column.encoding {
                builder = builder.set_column_encoding(path, encoding);
            }
        }
        Properties(builder.build())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_releases_own() {
        let built = Options::default().properties().0;
        let column = ColumnPath::from("a");
        let other = WriterProperties::default();
        assert_eq!(built.writer_version(), other.writer_version());
        assert_eq!(built.created_by(), other.created_by());
        assert_eq!(
            built.max_row_group_row_count(),
            other.max_row_group_row_count()
        );
        assert_eq!(built.encoding(&column), other.encoding(&column));
        assert_eq!(built.compression(&column), other.compression(&column));
        assert_eq!(
            built.dictionary_enabled(&column),
            other.dictionary_enabled(&column)
        );
        assert_eq!(built.data_page_size_limit(), other.data_page_size_limit());
    }

    #[test]
    fn a_column_has_its_own_options() {
        let mut options = Options::default();
        options.every_column.encoding = Some(Encoding::DELTA_BYTE_ARRAY);
        options.columns.push((
            vec!["a".to_owned(), "b".to_owned()],
            ColumnOptions {
                compression: Compression::SNAPPY,
                dictionary: false,
                page_bytes: 4096,
                statistics: EnabledStatistics::None,
                ..options.every_column
            },
        ));
        let properties = options.properties().0;
        let (own, other) = (ColumnPath::from(vec!["a".into(), "b".into()]), "c".into());
        assert_eq!(properties.compression(&own), Compression::SNAPPY);
        assert_eq!(properties.compression(&other), Compression::UNCOMPRESSED);
        assert!(!properties.dictionary_enabled(&own));
        assert!(properties.dictionary_enabled(&other));
        assert_eq!(properties.column_data_page_size_limit(&own), 4096);
        assert_eq!(
            properties.encoding(&own),
            Some(Encoding::DELTA_BYTE_ARRAY),
            "the one of every column"
        );
    }
}
