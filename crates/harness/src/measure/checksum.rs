//! The full checksum of decoded batches: any changed value, null, position, length, name or type
//! changes it.
//!
//! It covers logical content alone. Batch sizes, slices, what lies under nulls, and whether values
//! came as dictionaries, views, run ends or with 32- or 64-bit offsets make no difference; floats
//! count by their bits. Each node of the type tree has two running hashes, so batches stream
//! through and nothing is allocated after [`Checksum::new`].

use std::fmt::Write as _;
use std::hash::Hasher as _;

use anyhow::{Context, Result, bail};
use arrow_array::{Array, OffsetSizeTrait, RecordBatch};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Schema};
use twox_hash::XxHash64;

use super::walk::{Visitor, walk};

/// The running checksum.
pub(crate) struct Checksum {
    schema: XxHash64,
    columns: Vec<Node>,
    rows: u64,
}

/// One node of the type tree.
#[derive(Default)]
struct Node {
    /// Where nulls are, and how long strings and lists are.
    shape: XxHash64,
    /// The values' bytes.
    values: XxHash64,
    /// Slots seen so far.
    slots: u64,
    children: Vec<Node>,
}

impl Checksum {
    /// A checksum of no batch yet, for batches of `schema`.
    ///
    /// # Errors
    ///
    /// A field has a type that Parquet does not yield.
    pub(crate) fn new(schema: &Schema) -> Result<Self> {
        let mut text = String::new();
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            describe_name(field.name(), &mut text);
            columns.push(Node::new(field.data_type(), &mut text)?);
        }
        let mut schema = XxHash64::default();
        schema.write(text.as_bytes());
        Ok(Self {
            schema,
            columns,
            rows: 0,
        })
    }

    /// Adds a batch.
    ///
    /// # Errors
    ///
    /// The batch has not as many columns as the schema, or a type that Parquet does not yield.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.columns.len() {
            bail!(
                "a batch has {} columns where the schema has {}",
                batch.num_columns(),
                self.columns.len()
            );
        }
        self.rows += batch.num_rows() as u64;
        let mut columns = batch.columns().iter().zip(&mut self.columns);
        columns.try_for_each(|(column, node)| walk(column, 0..batch.num_rows(), node))
    }

    /// Adds values of column `index` alone, which come in the order of its rows. Each column has hashes of its own, so it makes no
    /// difference which column comes first. All columns must be added so, with the same rows.
    ///
    /// # Errors
    ///
    /// The schema has no such column, or it has a type that Parquet does not yield.
    pub(crate) fn add_column(&mut self, index: usize, values: &dyn Array) -> Result<()> {
        if index == 0 {
            self.rows += values.len() as u64;
        }
        let node = self.columns.get_mut(index);
        let node = node.with_context(|| format!("the schema has no column {index}"))?;
        walk(values, 0..values.len(), node)
    }

    /// The checksum of all batches so far.
    pub(crate) fn finish(&self) -> u64 {
        let mut hasher = self.schema.clone();
        put(&mut hasher, self.rows);
        self.columns
            .iter()
            .for_each(|column| column.finish(&mut hasher));
        hasher.finish()
    }
}

impl Node {
    /// The node of a type and those below it; writes the type's logical name to `text`.
    fn new(kind: &DataType, text: &mut String) -> Result<Self> {
        let mut children = Vec::new();
        match kind {
            DataType::Dictionary(_, values) => return Self::new(values, text),
            DataType::RunEndEncoded(_, values) => return Self::new(values.data_type(), text),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => text.push_str("string"),
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                text.push_str("binary")
            }
            // The names of items and entries differ between writers and say nothing.
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item) => {
                text.push_str("list ");
                children.push(Self::new(item.data_type(), text)?);
            }
            DataType::FixedSizeList(item, size) => {
                write!(text, "list of {size} ")?;
                children.push(Self::new(item.data_type(), text)?);
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(fields) = entries.data_type() else {
                    bail!("a map's entries are no structs")
                };
                text.push_str("map ");
                let parts = fields
                    .iter()
                    .map(|field| Self::new(field.data_type(), text))
                    .collect::<Result<_>>()?;
                children.push(Self {
                    children: parts,
                    ..Self::default()
                });
            }
            DataType::Struct(fields) => {
                write!(text, "struct of {} ", fields.len())?;
                for field in fields {
                    describe_name(field.name(), text);
                    children.push(Self::new(field.data_type(), text)?);
                }
            }
            DataType::Union(..) => {
                bail!("columns of type {kind} are not supported: Parquet does not yield them")
            }
            _ => write!(text, "{kind}")?,
        }
        text.push(';');
        Ok(Self {
            children,
            ..Self::default()
        })
    }

    fn finish(&self, hasher: &mut XxHash64) {
        for part in [self.shape.finish(), self.values.finish(), self.slots] {
            put(hasher, part);
        }
        self.children.iter().for_each(|child| child.finish(hasher));
    }

    fn length(&mut self, length: usize) {
        put(&mut self.shape, length as u64);
        self.slots += 1;
    }
}

/// Hashes a number by its little-endian bytes; `Hasher::write_u64` would take the machine's order.
fn put(hasher: &mut XxHash64, number: u64) {
    hasher.write(&number.to_le_bytes());
}

/// Length first, so that no name can look like two.
fn describe_name(name: &str, text: &mut String) {
    text.push_str(&format!("{} {name} ", name.len()));
}

impl Visitor for Node {
    fn child(&mut self, index: usize) -> &mut Self {
        &mut self.children[index]
    }

    fn nulls(&mut self, count: usize) {
        for _ in 0..count {
            // The slot's place, in a form that no length can have.
            put(&mut self.shape, !self.slots);
            self.slots += 1;
        }
    }

    fn entered(&mut self, count: usize) {
        self.slots += count as u64;
    }

    fn fixed(&mut self, _width: usize, count: usize, values: &[u8]) {
        self.values.write(values);
        self.slots += count as u64;
    }

    fn booleans(&mut self, values: &BooleanBuffer, nulls: Option<&NullBuffer>) {
        for index in 0..values.len() {
            if nulls.is_some_and(|nulls| nulls.is_null(index)) {
                self.nulls(1);
            } else {
                self.fixed(1, 1, &[u8::from(values.value(index))]);
            }
        }
    }

    fn bytes(&mut self, value: &[u8]) {
        self.length(value.len());
        self.values.write(value);
    }

    fn bytes_run<O: OffsetSizeTrait>(&mut self, offsets: &[O], data: &[u8]) {
        for pair in offsets.windows(2) {
            self.length(pair[1].as_usize() - pair[0].as_usize());
        }
        self.values
            .write(&data[offsets[0].as_usize()..offsets[offsets.len() - 1].as_usize()]);
    }

    fn list(&mut self, length: usize) {
        self.length(length);
    }
}

#[cfg(test)]
pub(super) mod tests;
