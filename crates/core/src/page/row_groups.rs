//! The column chunks of a file, as the parquet crate's array readers ask for them.

use std::sync::{Arc, Mutex, PoisonError};
use std::vec;

use parquet::arrow::arrow_reader::RowGroups;
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::Result;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use super::chunk::ChunkCursor;
use super::file::FileShared;
use super::owners::{ColumnOwners, ReaderOwners};
use super::reader::{Span, StrategyPageReader};
use crate::source::ReadAt;

/// The chosen row groups of a file, read with the chosen owners.
pub(crate) struct StrategyRowGroups<T> {
    pub(crate) file: Arc<FileShared<T>>,
    pub(crate) owners: ReaderOwners,
    pub(crate) row_groups: Vec<usize>,
    /// Whether rows inside pages will be passed over.
    pub(crate) skips: bool,
}

impl<T: ReadAt + 'static> RowGroups for StrategyRowGroups<T> {
    fn num_rows(&self) -> usize {
        self.row_groups()
            .map(|row_group| usize::try_from(row_group.num_rows()).unwrap_or(0))
            .sum()
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        Ok(Box::new(ColumnPages {
            file: Arc::clone(&self.file),
            owners: self.owners.column(column),
            column,
            row_groups: self.row_groups.clone().into_iter(),
            skips: self.skips,
            page_by_page: None,
        }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(
            self.row_groups
                .iter()
                .map(|row_group| self.file.metadata.row_group(*row_group)),
        )
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.file.metadata
    }
}

/// The pages of one column over the chosen row groups: readers of a whole chunk or of one page each.
struct ColumnPages<T> {
    file: Arc<FileShared<T>>,
    owners: ColumnOwners,
    column: usize,
    row_groups: vec::IntoIter<usize>,
    skips: bool,
    /// The chunk that is being read page by page.
    page_by_page: Option<Arc<Mutex<ChunkCursor<T>>>>,
}

impl<T: ReadAt + 'static> ColumnPages<T> {
    fn next_reader(&mut self) -> Result<Option<StrategyPageReader<T>>> {
        if let Some(cursor) = self.page_by_page.take() {
            let exhausted = cursor
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_exhausted();
            if !exhausted {
                self.page_by_page = Some(Arc::clone(&cursor));
                return Ok(Some(self.reader(cursor, Span::Page)));
            }
        }
        let Some(row_group) = self.row_groups.next() else {
            return Ok(None);
        };
        let mut cursor = ChunkCursor::try_new(
            Arc::clone(&self.file),
            self.owners.clone(),
            row_group,
            self.column,
        )?;
        // A dictionary must outlive its data pages, and a record may span pages where values repeat:
        // then the decoder has to see the chunk as a whole.
        let repeats = self
            .file
            .metadata
            .row_group(row_group)
            .column(self.column)
            .column_descr()
            .max_rep_level()
            > 0;
        let has_dictionary = !repeats && cursor.peek()?.is_some_and(|page| page.is_dict);
        let cursor = Arc::new(Mutex::new(cursor));
        let span = if repeats || has_dictionary {
            Span::Chunk
        } else {
            self.page_by_page = Some(Arc::clone(&cursor));
            Span::Page
        };
        Ok(Some(self.reader(cursor, span)))
    }

    fn reader(&self, cursor: Arc<Mutex<ChunkCursor<T>>>, span: Span) -> StrategyPageReader<T> {
        let schema = self.file.metadata.file_metadata().schema_descr();
        StrategyPageReader::new(cursor, schema.column(self.column), span, self.skips)
    }
}

impl<T: ReadAt + 'static> Iterator for ColumnPages<T> {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_reader()
            .map(|reader| reader.map(|r| Box::new(r) as Box<dyn PageReader>))
            .transpose()
    }
}

impl<T: ReadAt + 'static> PageIterator for ColumnPages<T> {}
