//! The metadata at the end of a file: kept while writing as the bytes it will be, put together at the end.
//!
//! Everything that describes the schema is the parquet crate's: it writes the footer of a file without row groups, and
//! what this crate knows of row groups is set into that. A column chunk then costs what it takes in the footer and the page index, and no
//! structures besides.

use std::sync::Arc;

use parquet::basic::ColumnOrder;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, SortingColumn,
};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::SchemaDescPtr;

use crate::format::compact_writer::{Element, Struct};
use crate::format::thrift::{CompactReader, FieldType, ThriftError};

/// `FileMetaData` without its row groups.
pub(super) struct Footer {
    /// Up to and with the schema (fields 1 and 2).
    head: Vec<u8>,
    /// Key-value metadata as they are written, one pair after the other (of field 5).
    pairs: Vec<u8>,
    num_pairs: usize,
    /// What follows them (from field 6), the structure's end included.
    tail: Vec<u8>,
}

/// The columns and page indexes of a row group, as they are written.
#[derive(Default)]
pub(super) struct RowGroup {
    pub(super) rows: u64,
    /// Where its first chunk begins.
    pub(super) offset: u64,
    /// Of all chunks, bytes.
    pub(super) uncompressed: u64,
    pub(super) stored: u64,
    /// For each chunk its `ColumnMetaData`, its `ColumnIndex` and its `OffsetIndex`.
    blobs: Vec<u8>,
    chunks: Vec<ChunkLengths>,
}

#[derive(Clone, Copy)]
struct ChunkLengths {
    metadata: u32,
    column_index: u32,
    offset_index: u32,
}

impl RowGroup {
    pub(super) fn with_columns(columns: usize) -> Self {
        Self {
            chunks: Vec::with_capacity(columns),
            ..Self::default()
        }
    }

    /// Takes in a chunk whose structures are appended by the functions, in this order.
    pub(super) fn push(
        &mut self,
        metadata: impl FnOnce(&mut Vec<u8>),
        column_index: impl FnOnce(&mut Vec<u8>),
        offset_index: impl FnOnce(&mut Vec<u8>),
    ) {
        fn added(blobs: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> u32 {
            let start = blobs.len();
            write(blobs);
            (blobs.len() - start) as u32
        }
        let lengths = ChunkLengths {
            metadata: added(&mut self.blobs, metadata),
            column_index: added(&mut self.blobs, column_index),
            offset_index: added(&mut self.blobs, offset_index),
        };
        self.chunks.push(lengths);
    }

    /// Ends the row group: nothing more is pushed.
    pub(super) fn seal(&mut self) {
        self.blobs.shrink_to_fit();
    }

    /// Bytes in the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.blobs.capacity() + self.chunks.capacity() * size_of::<ChunkLengths>()
    }
}

impl Footer {
    /// The footer of a file with `schema`, under the properties' version, author and key-value metadata.
    ///
    /// # Errors
    /// None is known: the parquet crate writes to memory.
    pub(super) fn new(schema: &SchemaDescPtr, properties: &WriterProperties) -> Result<Self> {
        let orders = schema
            .columns()
            .iter()
            .map(|column| {
                ColumnOrder::column_order_for_type(
                    column.logical_type_ref(),
                    column.converted_type(),
                    column.physical_type(),
                )
            })
            .collect();
        let file = FileMetaData::new(
            properties.writer_version().as_num(),
            0,
            Some(properties.created_by().to_owned()),
            properties.key_value_metadata().cloned(),
            Arc::clone(schema),
            Some(orders),
        );
        let mut bytes = Vec::new();
        ParquetMetaDataWriter::new(&mut bytes, &ParquetMetaData::new(file, Vec::new())).finish()?;
        // Length and magic stand behind the structure.
        let end = bytes.len().saturating_sub(8);
        split(&bytes[..end]).map_err(|error| {
            ParquetError::General(format!(
                "the parquet crate wrote a footer that cannot be read: {error:?}"
            ))
        })
    }

    /// Bytes in the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.head.capacity() + self.pairs.capacity() + self.tail.capacity()
    }

    /// Adds a pair of key-value metadata.
    pub(super) fn append(&mut self, pair: KeyValue) {
        let mut s = Struct::new(&mut self.pairs);
        s.binary(1, pair.key.as_bytes());
        if let Some(value) = &pair.value {
            s.binary(2, value.as_bytes());
        }
        s.end();
        self.num_pairs += 1;
    }

    /// Appends the page indexes of all row groups and the footer, length and magic included, to `out`, which will stand
    /// at `offset` in the file. Returns where in `out` the `FileMetaData` lies.
    pub(super) fn write(
        self,
        row_groups: Vec<RowGroup>,
        sorting: Option<&[SortingColumn]>,
        offset: u64,
        out: &mut Vec<u8>,
    ) -> Result<std::ops::Range<usize>> {
        let bytes: usize = row_groups.iter().map(|group| group.blobs.len()).sum();
        let columns: usize = row_groups.iter().map(|group| group.chunks.len()).sum();
        // A chunk's structure around its metadata: two heads, an end, and up to four numbers.
        let fixed = self.head.len() + self.pairs.len() + self.tail.len();
        out.reserve_exact(bytes + columns * 32 + fixed + 64);
        // Index after index, so that a reader gets all of one kind in one read.
        let mut column_indexes = Vec::with_capacity(columns);
        let mut offset_indexes = Vec::with_capacity(columns);
        for group in &row_groups {
            group.each(|_, column_index, _| column_indexes.push(put(out, offset, column_index)));
        }
        for group in &row_groups {
            group.each(|_, _, offset_index| offset_indexes.push(put(out, offset, offset_index)));
        }

        let start = out.len();
        out.extend_from_slice(&self.head);
        drop(self.head);
        let rows: u64 = row_groups.iter().map(|group| group.rows).sum();
        let mut file = Struct::after(out, 2);
        file.i64(3, rows as i64);
        let groups = file.list(4, Element::Struct, row_groups.len());
        let ordinals = i16::try_from(row_groups.len()).is_ok();
        let mut at = 0;
        for (ordinal, group) in row_groups.into_iter().enumerate() {
            let mut s = Struct::new(groups);
            let chunks = s.list(1, Element::Struct, group.chunks.len());
            group.each(|metadata, _, _| {
                let mut chunk = Struct::new(chunks);
                chunk.i64(2, 0);
                chunk.encoded(3, metadata);
                if let Some((offset, len)) = offset_indexes[at] {
                    chunk.i64(4, offset as i64);
                    chunk.i32(5, len as i32);
                }
                if let Some((offset, len)) = column_indexes[at] {
                    chunk.i64(6, offset as i64);
                    chunk.i32(7, len as i32);
                }
                chunk.end();
                at += 1;
            });
            s.i64(2, group.uncompressed as i64);
            s.i64(3, group.rows as i64);
            if let Some(sorting) = sorting {
                let columns = s.list(4, Element::Struct, sorting.len());
                for column in sorting {
                    let mut one = Struct::new(columns);
                    one.i32(1, column.column_idx);
                    one.bool(2, column.descending);
                    one.bool(3, column.nulls_first);
                    one.end();
                }
            }
            s.i64(5, group.offset as i64);
            s.i64(6, group.stored as i64);
            if ordinals {
                s.i16(7, ordinal as i16);
            }
            s.end();
        }
        Struct::after(out, 4)
            .list(5, Element::Struct, self.num_pairs)
            .extend_from_slice(&self.pairs);
        out.extend_from_slice(&self.tail);
        let end = out.len();
        let len = u32::try_from(end - start).map_err(|_| {
            ParquetError::General(format!(
                "the footer takes {} bytes, and the format has room for 4 GiB: write fewer row groups",
                end - start
            ))
        })?;
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(b"PAR1");
        Ok(start..end)
    }
}

impl RowGroup {
    /// Calls `f` with the three structures of each chunk.
    fn each(&self, mut f: impl FnMut(&[u8], &[u8], &[u8])) {
        let mut rest = &self.blobs[..];
        let mut next = |len: u32| {
            let (one, after) = rest.split_at(len as usize);
            rest = after;
            one
        };
        for chunk in &self.chunks {
            let metadata = next(chunk.metadata);
            let column_index = next(chunk.column_index);
            f(metadata, column_index, next(chunk.offset_index));
        }
    }
}

/// Appends an index, if there is one; returns where it stands in the file and how long it is.
fn put(out: &mut Vec<u8>, offset: u64, index: &[u8]) -> Option<(u64, u32)> {
    if index.is_empty() {
        return None;
    }
    let at = offset + out.len() as u64;
    out.extend_from_slice(index);
    Some((at, index.len() as u32))
}

/// Splits a `FileMetaData` around its fields 3 to 5.
fn split(bytes: &[u8]) -> std::result::Result<Footer, ThriftError> {
    let mut reader = CompactReader::new(bytes);
    let mut footer = Footer {
        head: Vec::new(),
        pairs: Vec::new(),
        num_pairs: 0,
        tail: Vec::new(),
    };
    let mut last = 0;
    loop {
        let before = reader.position();
        let field = reader.field(last)?;
        match field {
            Some(field) if field.id == 5 => {
                footer.num_pairs = reader.list()?;
                let start = reader.position();
                for _ in 0..footer.num_pairs {
                    reader.pass(FieldType::Struct)?;
                }
                footer.pairs = bytes[start..reader.position()].to_vec();
            }
            Some(field) if field.id < 5 => {
                reader.pass(field.kind)?;
                if field.id == 2 {
                    footer.head = bytes[..reader.position()].to_vec();
                }
            }
            // Its head is the distance from field 5, which is there: the Arrow schema is in it.
            Some(field) if field.id == 6 && last == 5 => {
                footer.tail = bytes[before..].to_vec();
                return Ok(footer);
            }
            _ => {
                return Err(ThriftError::Invalid(
                    "no key-value metadata before the author",
                ));
            }
        }
        last = field.map_or(0, |field| field.id);
    }
}
