//! Pages out: put together, compressed, and handed on or kept.

use parquet::basic::Encoding;
use parquet::bloom_filter::Sbbf;
use parquet::errors::Result;
use parquet::file::properties::EnabledStatistics;

use super::super::super::encode::{encode_indices, max_indices_len};
use super::super::super::page_header::{self, Page};
use super::super::super::pages::Stored;
use super::super::chunk_metadata::{PageSummary, has_nan_count, write_statistics};
use super::super::context::{ChunkPages, Context};
use super::super::dictionary::Indices;
use super::ColumnWriter;
use crate::format::compact_writer::Struct;
use crate::strategy::Encode;

impl ColumnWriter {
    /// Ends the page that has begun, if one has.
    pub(super) fn end_page(&mut self, context: &mut Context<'_>) -> Result<()> {
        if self.page.rows == 0 {
            return Ok(());
        }
        let page = std::mem::take(&mut self.page);
        let (growth, keep) = (context.growth, context.buffers.encode == Encode::Pooled);
        let v2 = context.file.v2;
        let scratch = &mut *context.scratch;
        scratch.header.clear();
        scratch.levels.clear();
        scratch.body.clear();
        scratch.compressed.clear();

        if self.plan.nullable {
            if v2 {
                self.levels.finish(growth, &mut scratch.levels);
            } else {
                scratch.body.extend_from_slice(&[0; 4]);
                self.levels.finish(growth, &mut scratch.body);
                let len = (scratch.body.len() - 4) as u32;
                scratch.body[..4].copy_from_slice(&len.to_le_bytes());
            }
        }
        let encoding = if self.dictionary.is_some() {
            Encoding::RLE_DICTIONARY
        } else {
            self.plan.encoding
        };
        // Values that lie as they are stored need no copy before they are compressed.
        let in_place = match (&mut self.dictionary, &mut self.direct) {
            (Some(dictionary), _) => {
                let width = dictionary.index_width(0);
                let values = dictionary.indices().len();
                let room = 1 + max_indices_len(values, width);
                growth.reserve(&mut scratch.body, room);
                scratch.body.push(width as u8);
                match dictionary.indices() {
                    Indices::U8(indices) => encode_indices(indices, width, &mut scratch.body),
                    Indices::U16(indices) => encode_indices(indices, width, &mut scratch.body),
                    Indices::U32(indices) => encode_indices(indices, width, &mut scratch.body),
                }
                dictionary.clear_indices(!keep);
                None
            }
            (None, Some(direct)) if scratch.body.is_empty() && direct.in_place().is_some() => {
                direct.in_place()
            }
            (None, Some(direct)) => {
                growth.reserve(&mut scratch.body, direct.max_len(&self.plan));
                direct.finish(growth, &mut scratch.body);
                None
            }
            (None, None) => None,
        };
        let values = in_place.unwrap_or(&scratch.body);
        let uncompressed = scratch.levels.len() + values.len();

        let compressor = match &mut context.compressor {
            Some(shared) => &mut **shared,
            None => self.compressor.get_or_insert_default(),
        };
        let mut compressed =
            compressor.compress(self.plan.compression, values, &mut scratch.compressed)?;
        // Compressed values that are not smaller are not kept; v1 has no way to say so.
        if compressed
            && v2
            && scratch.compressed.len() as f64
                >= uncompressed as f64 * self.plan.compression_threshold
        {
            compressed = false;
        }
        let body = if compressed {
            &scratch.compressed
        } else {
            values
        };
        let stored = scratch.levels.len() + body.len();

        let mut statistics = Vec::new();
        if self.plan.header_statistics
            && self.plan.statistics == EnabledStatistics::Page
            && page.extremes.is_some()
        {
            write_statistics(
                Struct::new(&mut statistics),
                page.extremes.as_ref(),
                page.nulls as u64,
                has_nan_count(&self.plan).then_some(page.nans),
                false,
                &self.plan,
                context.file,
            );
        }
        let statistics = (!statistics.is_empty()).then_some(statistics.as_slice());
        let (rows, nulls) = (page.rows as u32, page.nulls as u32);
        let header = if v2 {
            Page::V2 {
                values: rows,
                nulls,
                encoding,
                levels_len: scratch.levels.len(),
                compressed,
                statistics,
            }
        } else {
            Page::V1 {
                values: rows,
                encoding,
                statistics,
            }
        };
        page_header::write(&mut scratch.header, &header, uncompressed, stored)?;
        let parts = [&scratch.header[..], &scratch.levels, body];
        let waits = self.dictionary.is_some();
        match &mut context.pages {
            ChunkPages::File(file) if !waits => {
                for part in parts {
                    file.write_all(part)?;
                }
            }
            ChunkPages::File(_) | ChunkPages::Memory => {
                self.waiting.push(Stored::copy_of(&parts));
            }
            ChunkPages::Spill(spill) => self.waiting.push(spill.store(&parts)?),
        }
        self.metadata.add_page(
            PageSummary {
                rows,
                nulls,
                encoding,
                extremes: page.extremes,
                nans: page.nans,
                variable_bytes: page.variable_bytes,
            },
            scratch.header.len() + uncompressed,
            scratch.header.len() + stored,
            &self.plan,
            context.file,
        );
        if let Some(direct) = &mut self.direct {
            direct.page_done(growth);
        }
        scratch.page_done(keep);
        Ok(())
    }

    /// Ends the dictionary: its page is made, and pages that waited for it go on. `last` says that no
    /// value comes after.
    pub(super) fn end_dictionary(&mut self, last: bool, context: &mut Context<'_>) -> Result<()> {
        let Some(dictionary) = self.dictionary.take() else {
            return Ok(());
        };
        if let Some((values, fpp)) = self.plan.bloom {
            // More values than the dictionary has can still come, unless the chunk ends here.
            let values = if last {
                values.min(u64::from(dictionary.len()))
            } else {
                values
            };
            let mut bloom = Sbbf::new_with_ndv_fpp(values.max(1), fpp)?;
            for entry in dictionary.entries() {
                bloom.insert(entry);
            }
            self.bloom = Some(bloom);
        }
        // No page has an index into a dictionary without entries, unless it has nothing but nulls.
        if self.metadata.rows() == 0 {
            return Ok(());
        }
        let scratch = &mut *context.scratch;
        scratch.header.clear();
        scratch.compressed.clear();
        let values = dictionary.page();
        let compressor = match &mut context.compressor {
            Some(shared) => &mut **shared,
            None => self.compressor.get_or_insert_default(),
        };
        let compressed =
            compressor.compress(self.plan.compression, values, &mut scratch.compressed)?;
        let body = if compressed {
            &scratch.compressed
        } else {
            values
        };
        let page = Page::Dictionary {
            values: dictionary.len(),
        };
        page_header::write(&mut scratch.header, &page, values.len(), body.len())?;
        let parts = [&scratch.header[..], body];
        match &mut context.pages {
            ChunkPages::File(file) => {
                for part in parts {
                    file.write_all(part)?;
                }
                for page in self.waiting.drain(..) {
                    if let Stored::Memory(page) = page {
                        file.write_all(&page)?;
                    }
                }
                self.waiting = Vec::new();
            }
            ChunkPages::Memory => self.dictionary_page = Some(Stored::copy_of(&parts)),
            ChunkPages::Spill(spill) => self.dictionary_page = Some(spill.store(&parts)?),
        }
        self.metadata.add_dictionary(
            scratch.header.len() + values.len(),
            scratch.header.len() + body.len(),
        );
        scratch.page_done(context.buffers.encode == Encode::Pooled);
        Ok(())
    }
}
