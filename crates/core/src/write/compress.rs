//! Compression of pages into a buffer that the caller owns, with contexts that can serve many columns.

use std::io::{Cursor, Write};

use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use zstd::zstd_safe;

/// Compression contexts, made when first needed. One can serve any number of columns and codecs.
#[derive(Default)]
pub(super) struct Compressor {
    zstd: Option<zstd_safe::CCtx<'static>>,
    snappy: Option<Box<snap::raw::Encoder>>,
    /// The longest input that the snappy encoder has seen, which decides on the size of its table.
    snappy_input: usize,
}

impl Compressor {
    /// Appends `input`, compressed, to `out`; returns `false`, with nothing appended, where the codec is to
    /// leave it as it is.
    ///
    /// # Errors
    /// The codec is not supported, or fails.
    pub(super) fn compress(
        &mut self,
        codec: Compression,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let start = out.len();
        match codec {
            Compression::UNCOMPRESSED => return Ok(false),
            Compression::SNAPPY => {
                let encoder = self
                    .snappy
                    .get_or_insert_with(|| Box::new(snap::raw::Encoder::new()));
                self.snappy_input = self.snappy_input.max(input.len());
                out.resize(start + snap::raw::max_compress_len(input.len()), 0);
                let len = encoder.compress(input, &mut out[start..])?;
                out.truncate(start + len);
            }
            Compression::ZSTD(level) => {
                let context = self.zstd.get_or_insert_with(zstd_safe::CCtx::create);
                out.reserve(zstd_safe::compress_bound(input.len()));
                let mut after = Cursor::new(&mut *out);
                after.set_position(start as u64);
                context
                    .compress(&mut after, input, level.compression_level())
                    .map_err(|code| {
                        ParquetError::General(format!("zstd: {}", zstd_safe::get_error_name(code)))
                    })?;
            }
            Compression::LZ4_RAW => {
                out.resize(
                    start + lz4_flex::block::get_maximum_output_size(input.len()),
                    0,
                );
                let len = lz4_flex::block::compress_into(input, &mut out[start..])
                    .map_err(|error| ParquetError::External(Box::new(error)))?;
                out.truncate(start + len);
            }
            Compression::GZIP(level) => {
                let level = flate2::Compression::new(level.compression_level());
                let mut encoder = flate2::write::GzEncoder::new(&mut *out, level);
                encoder.write_all(input)?;
                encoder.finish()?;
            }
            Compression::BROTLI(level) => {
                let mut encoder = brotli::CompressorWriter::new(
                    &mut *out,
                    BROTLI_BUFFER_LEN,
                    level.compression_level(),
                    BROTLI_WINDOW,
                );
                encoder.write_all(input)?;
                // The stream is ended by dropping it, which cannot fail into a vector.
                drop(encoder);
            }
            other => {
                return Err(ParquetError::NYI(format!(
                    "the codec {other} is not written: use LZ4_RAW for LZ4, or another"
                )));
            }
        }
        Ok(true)
    }

    /// Bytes of contexts in Rust's heap.
    pub(super) fn heap_bytes(&self) -> usize {
        match self.snappy {
            None => 0,
            // For a block that is longer than the table of 1,024 entries that is part of it, the encoder makes one of 16,384, of
            // two bytes each.
            Some(_) => {
                let table = if self.snappy_input > 1024 { 2 << 14 } else { 0 };
                size_of::<snap::raw::Encoder>() + table
            }
        }
    }

    /// Bytes of contexts in C's heap.
    pub(super) fn c_heap_bytes(&self) -> usize {
        self.zstd.as_ref().map_or(0, zstd_safe::CCtx::sizeof)
    }
}

/// Whether pages can be compressed with a codec.
pub(super) fn is_supported(codec: Compression) -> bool {
    !matches!(codec, Compression::LZO | Compression::LZ4)
}

/// Input buffer of the brotli encoder, bytes.
const BROTLI_BUFFER_LEN: usize = 4096;

/// The logarithm of brotli's window, as the parquet crate sets it.
const BROTLI_WINDOW: u32 = 22;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Decompressor;
    use crate::ledger::Ledger;
    use std::sync::Arc;

    #[test]
    fn one_context_serves_every_codec() {
        let input: Vec<u8> = (0..100_000u32)
            .flat_map(|i| (i / 7).to_le_bytes())
            .collect();
        let mut compressor = Compressor::default();
        let mut decompressor = Decompressor::new(Arc::new(Ledger::new(1)), None);
        for _ in 0..2 {
            for codec in [
                Compression::SNAPPY,
                Compression::LZ4_RAW,
                Compression::ZSTD(Default::default()),
                Compression::GZIP(Default::default()),
                Compression::BROTLI(Default::default()),
            ] {
                for input in [&input[..], &input[..100], b""] {
                    let mut out = b"before".to_vec();
                    assert!(compressor.compress(codec, input, &mut out).unwrap());
                    assert_eq!(&out[..6], b"before");
                    let mut back = vec![0; input.len()];
                    decompressor
                        .decompress(codec, &out[6..], &mut back)
                        .unwrap();
                    assert_eq!(back, input, "{codec}");
                }
            }
        }
        assert!(compressor.c_heap_bytes() > 100_000);
        assert!(
            compressor
                .compress(Compression::LZO, b"a", &mut Vec::new())
                .is_err()
        );
    }
}
