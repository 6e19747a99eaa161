//! A writer of Thrift's compact protocol into a vector: what page headers and the metadata of written
//! files are made with.
//!
//! Source: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

/// The protocol's codes of types, where they are written.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// What the elements of a list are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Bool,
    I32,
    I64,
    Binary,
    Struct,
}

impl Element {
    const fn code(self) -> u8 {
        match self {
            Self::Bool => FALSE,
            Self::I32 => I32,
            Self::I64 => I64,
            Self::Binary => BINARY,
            Self::Struct => STRUCT,
        }
    }
}

/// An unsigned variable-length integer.
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// A list's head: `len` elements follow.
pub(crate) fn list(out: &mut Vec<u8>, element: Element, len: usize) {
    if len < 15 {
        out.push((len as u8) << 4 | element.code());
    } else {
        out.push(0xf0 | element.code());
        varint(out, len as u64);
    }
}

/// An element of a list of booleans.
pub(crate) fn bool_element(out: &mut Vec<u8>, value: bool) {
    out.push(if value { TRUE } else { FALSE });
}

/// An element of a list of integers.
pub(crate) fn int_element(out: &mut Vec<u8>, value: i64) {
    zigzag(out, value);
}

/// An element of a list of binary values.
pub(crate) fn binary_element(out: &mut Vec<u8>, value: &[u8]) {
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// A structure under construction: its fields in the order of their ids.
pub(crate) struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last: i16,
}

impl<'a> Struct<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, last: 0 }
    }

    /// A structure that goes on after field `last`, whose fields up to there are in `out`.
    pub(crate) fn after(out: &'a mut Vec<u8>, last: i16) -> Self {
        Self { out, last }
    }

    fn begin(&mut self, id: i16, kind: u8) {
        let delta = id - self.last;
        if (1..=15).contains(&delta) {
            self.out.push((delta as u8) << 4 | kind);
        } else {
            self.out.push(kind);
            zigzag(self.out, i64::from(id));
        }
        self.last = id;
    }

    pub(crate) fn bool(&mut self, id: i16, value: bool) {
        self.begin(id, if value { TRUE } else { FALSE });
    }

    pub(crate) fn i16(&mut self, id: i16, value: i16) {
        self.begin(id, I16);
        zigzag(self.out, i64::from(value));
    }

    pub(crate) fn i32(&mut self, id: i16, value: i32) {
        self.begin(id, I32);
        zigzag(self.out, i64::from(value));
    }

    pub(crate) fn i64(&mut self, id: i16, value: i64) {
        self.begin(id, I64);
        zigzag(self.out, value);
    }

    pub(crate) fn binary(&mut self, id: i16, value: &[u8]) {
        self.begin(id, BINARY);
        binary_element(self.out, value);
    }

    /// A list of `len` elements, which the caller appends to what is returned.
    pub(crate) fn list(&mut self, id: i16, element: Element, len: usize) -> &mut Vec<u8> {
        self.begin(id, LIST);
        list(self.out, element, len);
        self.out
    }

    /// A structure within this one; end it before this one goes on.
    pub(crate) fn nested(&mut self, id: i16) -> Struct<'_> {
        self.begin(id, STRUCT);
        Struct::new(self.out)
    }

    /// A structure within this one that is there already, its end included.
    pub(crate) fn encoded(&mut self, id: i16, bytes: &[u8]) {
        self.begin(id, STRUCT);
        self.out.extend_from_slice(bytes);
    }

    pub(crate) fn end(self) {
        self.out.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::thrift::{CompactReader, FieldType};

    #[test]
    fn what_is_written_is_read() {
        let mut out = Vec::new();
        let mut s = Struct::new(&mut out);
        s.i32(1, -7);
        s.bool(2, true);
        let items = s.list(5, Element::I64, 20);
        for i in 0..20 {
            int_element(items, i - 10);
        }
        let mut inner = s.nested(6);
        inner.binary(1, b"abc");
        inner.end();
        s.i64(40, i64::MIN);
        s.end();

        let mut reader = CompactReader::new(&out);
        let field = reader.field(0).unwrap().unwrap();
        assert_eq!((field.id, field.kind), (1, FieldType::I32));
        assert_eq!(reader.i32().unwrap(), -7);
        let field = reader.field(1).unwrap().unwrap();
        assert_eq!((field.id, field.kind), (2, FieldType::True));
        let field = reader.field(2).unwrap().unwrap();
        assert_eq!((field.id, field.kind), (5, FieldType::List));
        reader.pass(field.kind).unwrap();
        let field = reader.field(5).unwrap().unwrap();
        assert_eq!((field.id, field.kind), (6, FieldType::Struct));
        reader.pass(field.kind).unwrap();
        let field = reader.field(6).unwrap().unwrap();
        assert_eq!((field.id, field.kind), (40, FieldType::I64));
        reader.pass(field.kind).unwrap();
        assert!(reader.field(40).unwrap().is_none());
        assert_eq!(reader.position(), out.len());
    }
}
