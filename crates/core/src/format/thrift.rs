//! A reader of Thrift's compact protocol over a byte slice: no allocation, every length bounded by
//! the slice, nesting bounded.
//!
//! Source: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

/// Why a value could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThriftError {
    /// The slice ended: with more bytes it may be valid.
    Eof,
    /// The bytes are no valid value, however many follow.
    Invalid(&'static str),
}

type Result<T> = std::result::Result<T, ThriftError>;

/// Structures nest at most this deep when skipped: deeper input is hostile.
const MAX_DEPTH: usize = 32;

/// The compact protocol's type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldType {
    True,
    False,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Set,
    Map,
    Struct,
    Uuid,
}

impl FieldType {
    fn from_code(code: u8) -> Result<Self> {
        Ok(match code {
            1 => Self::True,
            2 => Self::False,
            3 => Self::Byte,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::Binary,
            9 => Self::List,
            10 => Self::Set,
            11 => Self::Map,
            12 => Self::Struct,
            13 => Self::Uuid,
            _ => return Err(ThriftError::Invalid("unknown field type")),
        })
    }
}

/// A field's number and type, as they stand before its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) id: i16,
    pub(crate) kind: FieldType,
}

/// A position in a slice of compact-protocol bytes.
#[derive(Debug, Clone)]
pub(crate) struct CompactReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> CompactReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).ok_or(ThriftError::Eof)?;
        self.at += 1;
        Ok(byte)
    }

    /// An unsigned variable-length integer.
    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ThriftError::Invalid(
            "a variable-length integer is too long",
        ))
    }

    fn zigzag(&mut self) -> Result<i64> {
        let raw = self.varint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// An integer value of any width.
    pub(crate) fn int(&mut self) -> Result<i64> {
        self.zigzag()
    }

    /// A list's head: the number of its elements, at most as many as there are bytes left.
    pub(crate) fn list(&mut self) -> Result<usize> {
        let head = self.byte()?;
        let len = match head >> 4 {
            15 => usize::try_from(self.varint()?)
                .map_err(|_| ThriftError::Invalid("a list is too long"))?,
            short => usize::from(short),
        };
        if len > self.bytes.len() - self.at {
            return Err(ThriftError::Eof);
        }
        Ok(len)
    }

    /// An i32 value.
    pub(crate) fn i32(&mut self) -> Result<i32> {
        i32::try_from(self.zigzag()?).map_err(|_| ThriftError::Invalid("an i32 is out of range"))
    }

    /// A string or binary value.
    pub(crate) fn binary(&mut self) -> Result<&'a [u8]> {
        let len = usize::try_from(self.varint()?)
            .map_err(|_| ThriftError::Invalid("a binary value is too long"))?;
        self.take(len)
    }

    /// `len` bytes that are no value of the protocol.
    pub(crate) fn bytes(&mut self, len: u64) -> Result<&'a [u8]> {
        self.take(usize::try_from(len).map_err(|_| ThriftError::Eof)?)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len).ok_or(ThriftError::Eof)?;
        let taken = self.bytes.get(self.at..end).ok_or(ThriftError::Eof)?;
        self.at = end;
        Ok(taken)
    }

    /// The next field of a structure, or `None` at its end. `last` is the id of the field before.
    pub(crate) fn field(&mut self, last: i16) -> Result<Option<Field>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let kind = FieldType::from_code(head & 0x0f)?;
        let id = match head >> 4 {
            0 => i16::try_from(self.zigzag()?)
                .map_err(|_| ThriftError::Invalid("a field number is out of range"))?,
            delta => last
                .checked_add(i16::from(delta))
                .ok_or(ThriftError::Invalid("a field number is out of range"))?,
        };
        Ok(Some(Field { id, kind }))
    }

    /// Reads a structure: `each` is called before every field and says whether it consumed the value;
    /// what it did not consume is skipped.
    pub(crate) fn structure(
        &mut self,
        mut each: impl FnMut(&mut Self, Field) -> Result<bool>,
    ) -> Result<()> {
        let mut last = 0;
        while let Some(field) = self.field(last)? {
            last = field.id;
            if !each(self, field)? {
                self.skip(field.kind, 0)?;
            }
        }
        Ok(())
    }

    /// Passes over a field's value.
    pub(crate) fn pass(&mut self, kind: FieldType) -> Result<()> {
        self.skip(kind, 0)
    }

    fn skip(&mut self, kind: FieldType, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(ThriftError::Invalid("structures nest too deeply"));
        }
        match kind {
            FieldType::True | FieldType::False => {}
            FieldType::Byte => {
                self.byte()?;
            }
            FieldType::I16 | FieldType::I32 | FieldType::I64 => {
                self.varint()?;
            }
            FieldType::Double => {
                self.take(8)?;
            }
            FieldType::Uuid => {
                self.take(16)?;
            }
            FieldType::Binary => {
                self.binary()?;
            }
            FieldType::List | FieldType::Set => {
                let head = self.byte()?;
                // Some writers give an empty list no type.
                if head == 0 {
                    return Ok(());
                }
                let element = FieldType::from_code(head & 0x0f)?;
                let count = match head >> 4 {
                    15 => self.varint()?,
                    few => u64::from(few),
                };
                self.skip_elements(&[element], count, depth)?;
            }
            FieldType::Map => {
                let count = self.varint()?;
                if count > 0 {
                    let kinds = self.byte()?;
                    let key = FieldType::from_code(kinds >> 4)?;
                    let value = FieldType::from_code(kinds & 0x0f)?;
                    self.skip_elements(&[key, value], count, depth)?;
                }
            }
            FieldType::Struct => {
                let mut last = 0;
                while let Some(field) = self.field(last)? {
                    last = field.id;
                    self.skip(field.kind, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn skip_elements(&mut self, kinds: &[FieldType], count: u64, depth: usize) -> Result<()> {
        // Every element takes at least one byte, booleans included, so `Eof` ends a lying count.
        for _ in 0..count {
            for kind in kinds {
                match kind {
                    FieldType::True | FieldType::False => {
                        self.byte()?;
                    }
                    other => self.skip(*other, depth + 1)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_are_zigzag_varints() {
        for (bytes, expected) in [
            (&[0x00][..], 0),
            (&[0x01], -1),
            (&[0x02], 1),
            (&[0xfe, 0xff, 0xff, 0xff, 0x0f], i32::MAX),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], i32::MIN),
        ] {
            assert_eq!(CompactReader::new(bytes).i32(), Ok(expected));
        }
        assert!(matches!(
            CompactReader::new(&[0xff, 0xff, 0xff, 0xff, 0x7f]).i32(),
            Err(ThriftError::Invalid(_))
        ));
        assert!(matches!(
            CompactReader::new(&[0xff; 11]).i32(),
            Err(ThriftError::Invalid(_))
        ));
    }

    #[test]
    fn a_lying_length_is_the_end_of_the_slice() {
        assert_eq!(
            CompactReader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1]).binary(),
            Err(ThriftError::Eof)
        );
    }

    #[test]
    fn nesting_is_bounded() {
        // Field 1 is a structure whose field 1 is a structure …
        let bytes = [0x1c; 4096];
        assert!(matches!(
            CompactReader::new(&bytes).structure(|_, _| Ok(false)),
            Err(ThriftError::Invalid("structures nest too deeply"))
        ));
    }

    proptest! {
        /// Any bytes give a value, an error or "more, please": no panic, no endless loop.
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let mut reader = CompactReader::new(&bytes);
            let _ = reader.structure(|_, _| Ok(false));
            prop_assert!(reader.position() <= bytes.len());
        }
    }
}
