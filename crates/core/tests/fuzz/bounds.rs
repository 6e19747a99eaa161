//! How much memory reading may take, from the file's size and its metadata.
//!
//! Metadata (`footer` is the footer's length, or the file's where that is not known):
//!
//! ```text
//! 64 KiB + 512 · footer
//! ```
//!
//! The parquet crate reserves a list's elements once they could follow, one byte each; the largest structure of its own per
//! element is a column chunk's.
//!
//! One column chunk, its pages walked one after the other:
//!
//! ```text
//! stored = min(total_compressed_size, what the file has behind the chunk's start)
//! plain  = min(total_uncompressed_size where it says one, what the codec can make of `stored`)
//! context + 2 · stored + 3 · plain
//! ```
//!
//! Two of stored bytes: fetched, decrypted. Three of plain ones: the dictionary, the page, and a page that
//! is held while the next is made. `context` is what the codecs keep: windows of brotli (16 MiB) and of LZ4 frames.
//!
//! Batches:
//!
//! ```text
//! Σ over columns (the largest chunk's bound + 4 · plain + 64 KiB)
//! + 8 · batch_size · Σ over columns (width of a value + 8)
//! + 8 · Σ over columns whose values repeat (values of the chunk · (width + 8))
//! ```
//!
//! Four of plain ones: a decoded dictionary and the arrays. The 64 KiB: the decoders themselves.

use parquet::basic::{Compression, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

/// Bytes that any step may take, whatever the file.
const FIXED: u64 = 64 << 10;

pub(crate) fn of_metadata(file_len: usize) -> u64 {
    FIXED + 512 * file_len as u64
}

fn context(codec: Compression) -> u64 {
    match codec {
        Compression::BROTLI(_) => 20 << 20,
        Compression::LZ4 => 20 << 20,
        Compression::GZIP(_) => 128 << 10,
        _ => 0,
    }
}

/// What a codec can make of `stored` bytes.
fn expands(codec: Compression, stored: u64) -> u64 {
    match codec {
        Compression::UNCOMPRESSED => stored,
        Compression::SNAPPY => stored.saturating_mul(22),
        Compression::LZ4 | Compression::LZ4_RAW => stored.saturating_mul(255),
        Compression::GZIP(_) => stored.saturating_mul(1032),
        Compression::ZSTD(_) => stored.saturating_mul(32 << 10),
        _ => u64::MAX,
    }
}

/// Bytes of a chunk: stored, and decompressed.
fn sizes(chunk: &ColumnChunkMetaData, file_len: usize) -> (u64, u64) {
    let start = chunk
        .dictionary_page_offset()
        .unwrap_or_else(|| chunk.data_page_offset());
    let behind = (file_len as u64).saturating_sub(start.max(0) as u64);
    let stored = behind.min(chunk.compressed_size().max(0) as u64);
    let says = match chunk.uncompressed_size() {
        ..=0 => u64::MAX,
        size => size as u64,
    };
    (stored, says.min(expands(chunk.compression(), stored)))
}

/// For walking the pages of a chunk.
pub(crate) fn of_chunk(chunk: &ColumnChunkMetaData, file_len: usize) -> u64 {
    let (stored, plain) = sizes(chunk, file_len);
    FIXED
        .saturating_add(context(chunk.compression()))
        .saturating_add(stored.saturating_mul(2))
        .saturating_add(plain.saturating_mul(3))
}

/// For walking the headers of all chunks: a window that grows until a header fits, and what is known of each page.
pub(crate) fn of_headers(file_len: usize) -> u64 {
    FIXED + 64 * file_len as u64
}

/// For reading all columns in batches of `batch_size` rows.
pub(crate) fn of_batches(metadata: &ParquetMetaData, file_len: usize, batch_size: usize) -> u64 {
    let schema = metadata.file_metadata().schema_descr();
    let mut bound = FIXED;
    for (i, column) in schema.columns().iter().enumerate() {
        let width = 8 + match column.physical_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::BYTE_ARRAY => 16,
            Type::FIXED_LEN_BYTE_ARRAY => column.type_length().max(0) as u64,
        };
        let mut largest = 0;
        for row_group in metadata.row_groups() {
            let chunk = row_group.column(i);
            let (_, plain) = sizes(chunk, file_len);
            let mut this = of_chunk(chunk, file_len).saturating_add(plain.saturating_mul(4));
            if column.max_rep_level() > 0 {
                let values = chunk.num_values().max(0) as u64;
                this = this.saturating_add(values.saturating_mul(8 * width));
            }
            largest = largest.max(this);
        }
        bound = bound
            .saturating_add(largest)
            .saturating_add(8 * width.saturating_mul(batch_size as u64));
    }
    bound
}
