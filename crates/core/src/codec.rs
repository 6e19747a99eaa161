//! Decompression into a buffer that the caller owns, with contexts that can serve many columns.
//!
//! The parquet crate's codecs allocate their own output and are one per column; here the buffer and
//! the context both follow the strategy.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use zstd::zstd_safe;

use crate::ledger::{Ledger, Purpose};

/// The contexts of one column or of all of them: as many as decompress at once, so one for each thread at most.
pub(crate) struct Contexts {
    idle: Mutex<Vec<Decompressor>>,
    ledger: Arc<Ledger>,
    column: Option<usize>,
}

impl Contexts {
    /// For leaf column `column`, or for all of them.
    pub(crate) fn new(ledger: Arc<Ledger>, column: Option<usize>) -> Self {
        Self {
            idle: Mutex::default(),
            ledger,
            column,
        }
    }

    /// Lends a context that nobody else uses meanwhile.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Decompressor) -> R) -> R {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let found = idle().pop();
        let mut context =
            found.unwrap_or_else(|| Decompressor::new(Arc::clone(&self.ledger), self.column));
        let result = f(&mut context);
        idle().push(context);
        result
    }
}

/// Decompression contexts, made when first needed. One can serve any number of columns and codecs.
pub(crate) struct Decompressor {
    snappy: snap::raw::Decoder,
    zstd: Option<zstd_safe::DCtx<'static>>,
    zstd_bytes: u64,
    ledger: Arc<Ledger>,
    column: Option<usize>,
}

impl Decompressor {
    /// A context for leaf column `column`, or for all of them.
    pub(crate) fn new(ledger: Arc<Ledger>, column: Option<usize>) -> Self {
        Self {
            snappy: snap::raw::Decoder::new(),
            zstd: None,
            zstd_bytes: 0,
            ledger,
            column,
        }
    }

    /// Decompresses `input` into all of `output`.
    ///
    /// # Errors
    /// Where the codec is not supported, `input` is damaged, or it gives another number of bytes.
    pub(crate) fn decompress(
        &mut self,
        codec: Compression,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<()> {
        let written = match codec {
            Compression::SNAPPY => self.snappy.decompress(input, output)?,
            Compression::ZSTD(_) => self.zstd(input, output)?,
            Compression::LZ4_RAW => lz4_raw(input, output)?,
            Compression::LZ4 => lz4_any(input, output)?,
            // Members can be concatenated; a writer may split a page into several.
            Compression::GZIP(_) => fill(flate2::bufread::MultiGzDecoder::new(input), output)?,
            Compression::BROTLI(_) => {
                fill(brotli::Decompressor::new(input, BROTLI_BUFFER_LEN), output)?
            }
            other => {
                return Err(ParquetError::NYI(format!(
                    "the codec {other} is not supported"
                )));
            }
        };
        if written == output.len() {
            Ok(())
        } else {
            Err(ParquetError::General(format!(
                "a page decompressed to {written} bytes where its header says {}",
                output.len()
            )))
        }
    }

    fn zstd(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize> {
        let context = self.zstd.get_or_insert_with(zstd_safe::DCtx::create);
        let written = context.decompress(output, input).map_err(|code| {
            ParquetError::General(format!("zstd: {}", zstd_safe::get_error_name(code)))
        })?;
        let bytes = context.sizeof() as u64;
        if bytes != self.zstd_bytes {
            self.ledger
                .release(Purpose::Codec, self.column, self.zstd_bytes);
            self.ledger.charge(Purpose::Codec, self.column, bytes);
            self.zstd_bytes = bytes;
        }
        Ok(written)
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        self.ledger
            .release(Purpose::Codec, self.column, self.zstd_bytes);
    }
}

/// Input buffer of the brotli decoder, bytes.
const BROTLI_BUFFER_LEN: usize = 4096;

/// The most that `input_len` bytes can decompress to, where the codec has such a bound.
///
/// A page header is not authenticated when its size is believed, so this and the chunk's metadata
/// bound it before anything is allocated.
pub(crate) fn max_decompressed_len(codec: Compression, input: &[u8]) -> Option<usize> {
    match codec {
        // The stream starts with its decompressed length, which is believed as far as copies can go: 64
        // bytes from 3.
        Compression::SNAPPY => {
            let said = snap::raw::decompress_len(input).ok()?;
            Some(said.min(input.len().saturating_mul(22)))
        }
        // A match's length grows by at most 255 for every further byte.
        Compression::LZ4 | Compression::LZ4_RAW => Some(input.len().saturating_mul(255)),
        // Deflate: 258 bytes from a match of two bits at best, so 1032 for a byte.
        Compression::GZIP(_) => Some(input.len().saturating_mul(1032)),
        // A block of at most 128 KiB takes at least 4 bytes (RFC 8878, 3.1.1.2).
        Compression::ZSTD(_) => Some(input.len().saturating_mul(128 * 1024 / 4)),
        // Brotli has none.
        _ => None,
    }
}

/// Reads until `output` is full, and then checks that nothing follows.
fn fill(mut from: impl Read, output: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < output.len() {
        match from.read(&mut output[filled..])? {
            0 => return Ok(filled),
            n => filled += n,
        }
    }
    // The end must be reached, or checksums at the end of the stream would go unread.
    if from.read(&mut [0u8; 1])? != 0 {
        return Err(ParquetError::General(
            "a page decompresses to more bytes than its header says".into(),
        ));
    }
    Ok(filled)
}

fn lz4_raw(input: &[u8], output: &mut [u8]) -> Result<usize> {
    lz4_flex::block::decompress_into(input, output).map_err(|e| ParquetError::External(Box::new(e)))
}

/// The deprecated codec `LZ4`: Hadoop's frames, and what writers wrote in their place, the LZ4 frame
/// format (parquet-rs before 33) and bare blocks (parquet-cpp before 0.8).
fn lz4_any(input: &[u8], output: &mut [u8]) -> Result<usize> {
    if let Some(written) = lz4_hadoop(input, output)
        && written == output.len()
    {
        return Ok(written);
    }
    match fill(lz4_flex::frame::FrameDecoder::new(input), output) {
        Ok(written) if written == output.len() => Ok(written),
        _ => lz4_raw(input, output),
    }
}

/// Hadoop's framing: each frame is its decompressed and its compressed length (4 bytes big-endian
/// each), then one LZ4 block. `None` where `input` is not so framed.
fn lz4_hadoop(mut input: &[u8], output: &mut [u8]) -> Option<usize> {
    let mut filled = 0usize;
    while !input.is_empty() {
        let (plain_len, rest) = input.split_first_chunk::<4>()?;
        let (block_len, rest) = rest.split_first_chunk::<4>()?;
        let plain_len = u32::from_be_bytes(*plain_len) as usize;
        let (block, rest) = rest.split_at_checked(u32::from_be_bytes(*block_len) as usize)?;
        let into = output.get_mut(filled..filled.checked_add(plain_len)?)?;
        if lz4_flex::block::decompress_into(block, into).ok()? != plain_len {
            return None;
        }
        filled += plain_len;
        input = rest;
    }
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::basic::{BrotliLevel, GzipLevel, ZstdLevel};
    use proptest::prelude::*;
    use std::io::Write;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn brotli(data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        brotli::CompressorReader::new(data, 4096, 1, 20)
            .read_to_end(&mut out)
            .unwrap();
        out
    }

    fn lz4_frame(data: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn hadoop(parts: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for part in parts {
            let block = lz4_flex::block::compress(part);
            out.extend((part.len() as u32).to_be_bytes());
            out.extend((block.len() as u32).to_be_bytes());
            out.extend(block);
        }
        out
    }

    /// Every codec with `data` compressed by it.
    fn compressed(data: &[u8]) -> Vec<(Compression, Vec<u8>)> {
        let (left, right) = data.split_at(data.len() / 2);
        vec![
            (
                Compression::SNAPPY,
                snap::raw::Encoder::new().compress_vec(data).unwrap(),
            ),
            (
                Compression::ZSTD(ZstdLevel::default()),
                zstd::bulk::compress(data, 1).unwrap(),
            ),
            (Compression::LZ4_RAW, lz4_flex::block::compress(data)),
            (Compression::LZ4, hadoop(&[left, right])),
            (Compression::LZ4, lz4_frame(data)),
            (Compression::LZ4, lz4_flex::block::compress(data)),
            (Compression::GZIP(GzipLevel::default()), gzip(data)),
            (
                Compression::GZIP(GzipLevel::default()),
                [gzip(left), gzip(right)].concat(),
            ),
            (Compression::BROTLI(BrotliLevel::default()), brotli(data)),
        ]
    }

    fn decompressor() -> Decompressor {
        Decompressor::new(Arc::new(Ledger::new(0)), None)
    }

    #[test]
    fn one_context_serves_every_codec() {
        let data: Vec<u8> = (0..100_000u32)
            .flat_map(|i| (i / 7).to_le_bytes())
            .collect();
        let mut context = decompressor();
        for (codec, bytes) in compressed(&data) {
            let mut out = vec![0; data.len()];
            context.decompress(codec, &bytes, &mut out).unwrap();
            assert_eq!(out, data, "{codec}");
            let bound = max_decompressed_len(codec, &bytes);
            assert!(
                bound.is_none_or(|bound| bound >= data.len()),
                "{codec}: {bound:?}"
            );
        }
    }

    #[test]
    fn another_length_than_said_is_an_error() {
        let data = vec![5u8; 10_000];
        let mut context = decompressor();
        for (codec, bytes) in compressed(&data) {
            for len in [data.len() - 1, data.len() + 1] {
                let mut out = vec![0; len];
                assert!(
                    context.decompress(codec, &bytes, &mut out).is_err(),
                    "{codec} {len}"
                );
            }
        }
    }

    #[test]
    fn bounds_hold_for_what_compresses_best() {
        let zeros = vec![0u8; 1 << 20];
        for (codec, bytes) in compressed(&zeros) {
            let bound = max_decompressed_len(codec, &bytes);
            assert!(
                bound.is_none_or(|bound| bound >= zeros.len()),
                "{codec}: {bound:?}"
            );
        }
    }

    #[test]
    fn the_ledger_knows_the_zstd_context() {
        let ledger = Arc::new(Ledger::new(1));
        let mut context = Decompressor::new(Arc::clone(&ledger), Some(0));
        let bytes = zstd::bulk::compress(&[1, 2, 3], 1).unwrap();
        let zstd = Compression::ZSTD(ZstdLevel::default());
        context.decompress(zstd, &bytes, &mut [0; 3]).unwrap();
        assert!(ledger.peak().column_bytes(0, Purpose::Codec) > 50_000);
        drop(context);
        assert_eq!(ledger.live_bytes(), 0);
    }

    proptest! {
        /// Damaged input gives an error or some bytes, never a panic.
        #[test]
        fn damage_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), len in 0..400usize) {
            let mut context = decompressor();
            for (codec, _) in compressed(&[1; 8]) {
                let _ = context.decompress(codec, &bytes, &mut vec![0; len]);
                let _ = max_decompressed_len(codec, &bytes);
            }
        }
    }
}
