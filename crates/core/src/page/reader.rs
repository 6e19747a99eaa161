//! One column chunk, or one page of it, as the [`PageReader`] that the parquet crate's decoders read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::Result;
use parquet::schema::types::ColumnDescPtr;

use super::chunk::ChunkCursor;
use super::trusted;
use crate::source::ReadAt;

/// How many pages one reader gives before it says that it is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// All pages of the chunk.
    Chunk,
    /// One data page.
    ///
    /// A decoder holds its page while it asks its reader for the next one, and two page buffers a
    /// column would be live. It drops the page when its reader is exhausted and before it asks the next
    /// reader. So a reader a page leaves exactly one page buffer a column. The next page is loaded when
    /// asked for and not before, because the next reader is made while the old page is still held.
    Page,
}

/// A [`PageReader`] over a [`ChunkCursor`] that successive readers share.
pub(crate) struct StrategyPageReader<T> {
    cursor: Arc<Mutex<ChunkCursor<T>>>,
    column: ColumnDescPtr,
    span: Span,
    /// Whether the decoder will pass over rows inside pages.
    skips: bool,
    exhausted: bool,
}

impl<T: ReadAt> StrategyPageReader<T> {
    /// `skips` says whether the decoder will pass over rows inside pages.
    pub(crate) fn new(
        cursor: Arc<Mutex<ChunkCursor<T>>>,
        column: ColumnDescPtr,
        span: Span,
        skips: bool,
    ) -> Self {
        Self {
            cursor,
            column,
            span,
            skips,
            exhausted: false,
        }
    }

    fn cursor(&self) -> MutexGuard<'_, ChunkCursor<T>> {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ReadAt + 'static> PageReader for StrategyPageReader<T> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        if self.exhausted {
            return Ok(None);
        }
        let page = self.cursor().next_page()?;
        if let Some(page) = &page {
            trusted::check(page, &self.column, self.skips)?;
        }
        self.exhausted = self.span == Span::Page && page.as_ref().is_some_and(Page::is_data_page);
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        if self.exhausted {
            return Ok(None);
        }
        self.cursor().peek()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        if self.exhausted {
            return Ok(());
        }
        let mut cursor = self.cursor();
        let is_data_page = cursor.peek()?.is_some_and(|page| !page.is_dict);
        cursor.skip_page()?;
        drop(cursor);
        self.exhausted = self.span == Span::Page && is_data_page;
        Ok(())
    }

    fn supports_deferred_dictionary(&self) -> bool {
        true
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        self.cursor().take_skipped_dictionary()
    }
}

impl<T: ReadAt + 'static> Iterator for StrategyPageReader<T> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
