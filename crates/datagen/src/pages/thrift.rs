//! As much of thrift's compact protocol as it takes to find a few numbers in
//! page headers and footers: everything else is skipped.
//!
//! Input is a file that was just written, yet it is read as if it were not: no
//! length is trusted, nothing recurses without bound, nothing panics.

/// What a field holds, once read or skipped.
pub(super) enum Value<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
    /// Lists, structs and the like: skipped.
    Other,
}

/// Deeper than anything in Parquet's metadata.
const DEPTH: usize = 16;

/// Reads from a slice; every method returns `None` at its end or on nonsense.
pub(super) struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Compact<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let end = self.at.checked_add(usize::try_from(length).ok()?)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    /// Reads a struct to its end, giving every field's id and value to `field`.
    pub(super) fn fields(&mut self, mut field: impl FnMut(i16, Value<'a>)) -> Option<()> {
        let mut id = 0;
        while let Some(kind) = self.next_field(&mut id)? {
            let value = self.value(kind, DEPTH)?;
            field(id, value);
        }
        Some(())
    }

    /// Enters the struct that is the value of field `wanted` of this one.
    pub(super) fn enter(&mut self, wanted: i16) -> Option<()> {
        let mut id = 0;
        while let Some(kind) = self.next_field(&mut id)? {
            if id == wanted {
                return (kind == 12).then_some(());
            }
            self.value(kind, DEPTH)?;
        }
        None
    }

    /// The next field's type, or `Some(None)` at the end of the struct.
    fn next_field(&mut self, id: &mut i16) -> Option<Option<u8>> {
        let header = self.byte()?;
        if header == 0 {
            return Some(None);
        }
        *id = match header >> 4 {
            0 => i16::try_from(self.zigzag()?).ok()?,
            delta => id.checked_add(i16::from(delta))?,
        };
        Some(Some(header & 0x0f))
    }

    fn value(&mut self, kind: u8, depth: usize) -> Option<Value<'a>> {
        let depth = depth.checked_sub(1)?;
        Some(match kind {
            1 | 2 => Value::Other,
            3 => {
                self.byte()?;
                Value::Other
            }
            4..=6 => Value::Integer(self.zigzag()?),
            7 => {
                self.take(8)?;
                Value::Other
            }
            8 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            9 | 10 => {
                self.skip_list(depth)?;
                Value::Other
            }
            12 => {
                let mut id = 0;
                while let Some(kind) = self.next_field(&mut id)? {
                    self.value(kind, depth)?;
                }
                Value::Other
            }
            _ => return None,
        })
    }

    fn skip_list(&mut self, depth: usize) -> Option<()> {
        let header = self.byte()?;
        let length = match header >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        for _ in 0..length {
            match header & 0x0f {
                // In a list, unlike in a struct, a boolean is a byte.
                1 | 2 => {
                    self.byte()?;
                }
                kind => {
                    self.value(kind, depth)?;
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_integers_and_skips_the_rest() {
        // 1: i32 = 3, 2: binary "ab", 5: struct { 1: list<i32> [1, 2] }, 6: bool
        let bytes = [
            0x15, 0x06, 0x18, 0x02, b'a', b'b', 0x3c, 0x19, 0x25, 0x02, 0x04, 0x00, 0x11, 0x00,
            0xff,
        ];
        let mut seen = Vec::new();
        let mut thrift = Compact::new(&bytes);
        thrift
            .fields(|id, value| {
                seen.push((id, matches!(value, Value::Integer(3) | Value::Bytes(b"ab"))));
            })
            .unwrap();
        assert_eq!(seen, [(1, true), (2, true), (5, false), (6, false)]);
        assert_eq!(thrift.position(), bytes.len() - 1);
    }

    #[test]
    fn nonsense_is_none() {
        assert!(Compact::new(&[]).fields(|_, _| ()).is_none());
        assert!(
            Compact::new(&[0x18, 0xff, 0xff, 0x03])
                .fields(|_, _| ())
                .is_none()
        );
        assert!(Compact::new(&[0x1c; 100]).fields(|_, _| ()).is_none());
        assert!(Compact::new(&[0x15, 0xff]).fields(|_, _| ()).is_none());
    }
}
