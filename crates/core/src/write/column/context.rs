//! What the columns of a writer share while they are encoded: plans, buffers, and where pages go.

use std::io::Write;

use super::super::compress::Compressor;
use super::super::encode::Growth;
use super::super::pages::Spill;
use super::plan::FilePlan;
use crate::strategy::{CodecContext, EncoderBuffers, PageSink};

/// What a file has one of, for all its columns.
pub(crate) struct Shared {
    pub(crate) file: FilePlan,
    pub(crate) buffers: EncoderBuffers,
    pub(crate) growth: Growth,
    pub(crate) scratch: Scratch,
    pub(crate) compressor: Compressor,
    pub(crate) spill: Spill,
}

impl Shared {
    /// What a column is encoded with. Its pages can go straight to `output`, where it is given and the strategy lets them.
    pub(crate) fn context<'a>(&'a mut self, output: Option<&'a mut dyn Write>) -> Context<'a> {
        let pages = match (self.buffers.sink, output) {
            (PageSink::Direct, Some(output)) => ChunkPages::File(output),
            (PageSink::Spill, _) => ChunkPages::Spill(&mut self.spill),
            _ => ChunkPages::Memory,
        };
        let shared = self.buffers.codec == CodecContext::Shared;
        Context {
            file: &self.file,
            buffers: self.buffers,
            growth: &self.growth,
            scratch: &mut self.scratch,
            compressor: shared.then_some(&mut self.compressor),
            pages,
        }
    }
}

/// What the columns of a writer share while they are encoded.
pub(crate) struct Context<'a> {
    pub(crate) file: &'a FilePlan,
    pub(crate) buffers: EncoderBuffers,
    pub(crate) growth: &'a Growth,
    pub(crate) scratch: &'a mut Scratch,
    /// The compressor of all columns; `None` if each has its own.
    pub(crate) compressor: Option<&'a mut Compressor>,
    pub(crate) pages: ChunkPages<'a>,
}

/// Where pages go.
pub(crate) enum ChunkPages<'a> {
    Memory,
    Spill(&'a mut Spill),
    /// Straight to the file, once the chunk's dictionary is.
    File(&'a mut dyn Write),
}

/// Buffers in which pages are put together.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) i32s: Vec<i32>,
    pub(crate) i64s: Vec<i64>,
    pub(crate) f32s: Vec<f32>,
    pub(crate) f64s: Vec<f64>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) rows: Vec<u32>,
    pub(crate) header: Vec<u8>,
    pub(crate) levels: Vec<u8>,
    /// A page before compression.
    pub(crate) body: Vec<u8>,
    pub(crate) compressed: Vec<u8>,
    /// The most bytes that `body` and `compressed` had since this was last asked.
    peak: usize,
}

impl Scratch {
    /// Bytes in the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        (self.i32s.capacity() + self.f32s.capacity() + self.rows.capacity()) * 4
            + (self.i64s.capacity() + self.f64s.capacity()) * 8
            + self.bytes.capacity()
            + self.header.capacity()
            + self.levels.capacity()
            + self.page_bytes()
    }

    /// Of these, the buffers in which pages are put together.
    pub(crate) fn page_bytes(&self) -> usize {
        self.body.capacity() + self.compressed.capacity()
    }

    /// The most bytes that pages took while they were put together, since this was last asked.
    pub(crate) fn take_peak(&mut self) -> usize {
        std::mem::take(&mut self.peak)
    }

    /// Gives the buffers of a page back, where they are not kept for the next.
    pub(crate) fn page_done(&mut self, keep: bool) {
        self.peak = self.peak.max(self.page_bytes());
        if !keep {
            self.body = Vec::new();
            self.compressed = Vec::new();
            self.levels = Vec::new();
        }
    }
}
