//! A dictionary under construction, and the indices into it of the page at hand.
//!
//! Its entries lie as the dictionary page will hold them, PLAIN, so there is one copy of each distinct value; a hash
//! table of four-byte entry numbers finds them. Indices take as many bytes as the dictionary's size asks for.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::direct::Number;
use super::source::ByteValues;

/// Entry numbers, in the fewest bytes that hold the largest.
pub(crate) enum Indices {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
}

impl Indices {
    fn new() -> Self {
        Self::U8(Vec::new())
    }

    #[inline]
    fn push(&mut self, index: u32) {
        match self {
            Self::U8(indices) if index <= 0xff => indices.push(index as u8),
            Self::U16(indices) if index <= 0xffff => indices.push(index as u16),
            Self::U32(indices) => indices.push(index),
            _ => self.widen(index),
        }
    }

    #[cold]
    fn widen(&mut self, index: u32) {
        // What more there is room for stays so.
        match self {
            Self::U8(indices) if index <= 0xffff => {
                let mut wide = Vec::with_capacity(indices.capacity());
                wide.extend(indices.iter().map(|i| u16::from(*i)));
                *self = Self::U16(wide);
            }
            Self::U8(indices) => {
                let mut wide = Vec::with_capacity(indices.capacity());
                wide.extend(indices.iter().map(|i| u32::from(*i)));
                *self = Self::U32(wide);
            }
            Self::U16(indices) => {
                let mut wide = Vec::with_capacity(indices.capacity());
                wide.extend(indices.iter().map(|i| u32::from(*i)));
                *self = Self::U32(wide);
            }
            Self::U32(_) => {}
        }
        self.push(index);
    }

    fn reserve(&mut self, more: usize, exact: bool) {
        match (self, exact) {
            (Self::U8(v), false) => v.reserve(more),
            (Self::U16(v), false) => v.reserve(more),
            (Self::U32(v), false) => v.reserve(more),
            (Self::U8(v), true) => v.reserve_exact(more),
            (Self::U16(v), true) => v.reserve_exact(more),
            (Self::U32(v), true) => v.reserve_exact(more),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::U8(v) => v.clear(),
            Self::U16(v) => v.clear(),
            Self::U32(v) => v.clear(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::U8(v) => v.len(),
            Self::U16(v) => v.len(),
            Self::U32(v) => v.len(),
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::U8(v) => v.capacity(),
            Self::U16(v) => v.capacity() * 2,
            Self::U32(v) => v.capacity() * 4,
        }
    }
}

/// A dictionary that grows up to a limit, and the indices of the values of one page.
pub(crate) struct Dictionary {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The entries as the dictionary page holds them.
    page: Vec<u8>,
    /// Where each entry begins in `page`; empty where all are as wide.
    starts: Vec<u32>,
    /// Bytes of an entry, where all are as wide.
    width: Option<usize>,
    len: u32,
    /// Bytes that `page` may have.
    limit: usize,
    indices: Indices,
    /// Whether room for indices is reserved for the values at hand and no more.
    exact: bool,
}

impl Dictionary {
    pub(crate) fn new(width: Option<usize>, limit: usize, exact: bool) -> Self {
        Self {
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            page: Vec::new(),
            starts: Vec::new(),
            width,
            len: 0,
            // Starts of entries are kept in four bytes.
            limit: limit.min(u32::MAX as usize / 2),
            indices: Indices::new(),
            exact,
        }
    }

    /// Takes numbers up to the first new one that the dictionary has no room for; returns how many it
    /// took.
    pub(crate) fn put_numbers<T: Number>(&mut self, values: &[T]) -> usize {
        self.indices.reserve(values.len(), self.exact);
        let mut previous: Option<(u64, u32)> = None;
        for (taken, value) in values.iter().enumerate() {
            let bits = value.bits();
            // Runs of one value are what dictionaries are for.
            let index = match previous {
                Some((same, index)) if same == bits => index,
                _ => {
                    let Some(index) = self.number(*value, bits) else {
                        return taken;
                    };
                    previous = Some((bits, index));
                    index
                }
            };
            self.indices.push(index);
        }
        values.len()
    }

    #[inline]
    fn number<T: Number>(&mut self, value: T, bits: u64) -> Option<u32> {
        let page = &self.page;
        let hash = self.hasher.hash_one(bits);
        let stored = |index: u32| {
            let at = index as usize * T::WIDTH;
            &page[at..at + T::WIDTH]
        };
        if let Some(index) = self
            .table
            .find(hash, |index| stored(*index) == value.stored().as_ref())
        {
            return Some(*index);
        }
        if self.page.len() + T::WIDTH > self.limit {
            return None;
        }
        self.page.extend_from_slice(value.stored().as_ref());
        let index = self.len;
        self.len += 1;
        let (page, hasher) = (&self.page, &self.hasher);
        self.table.insert_unique(hash, index, |index| {
            let at = *index as usize * T::WIDTH;
            let mut bytes = [0; 8];
            bytes[..T::WIDTH].copy_from_slice(&page[at..at + T::WIDTH]);
            hasher.hash_one(u64::from_le_bytes(bytes))
        });
        Some(index)
    }

    /// The same for byte arrays: the values of `rows`.
    pub(crate) fn put_bytes(
        &mut self,
        values: &impl ByteValues,
        rows: impl ExactSizeIterator<Item = usize>,
    ) -> usize {
        self.indices.reserve(rows.len(), self.exact);
        let mut taken = 0;
        for row in rows {
            let Some(index) = self.entry(values.value(row)) else {
                break;
            };
            self.indices.push(index);
            taken += 1;
        }
        taken
    }

    #[inline]
    fn entry(&mut self, value: &[u8]) -> Option<u32> {
        let hash = hash(&self.hasher, value);
        let entries = Entries {
            page: &self.page,
            starts: &self.starts,
            width: self.width,
        };
        if let Some(index) = self.table.find(hash, |index| entries.get(*index) == value) {
            return Some(*index);
        }
        let prefix = if self.width.is_some() { 0 } else { 4 };
        if self.page.len() + prefix + value.len() > self.limit {
            return None;
        }
        if self.width.is_none() {
            self.starts.push(self.page.len() as u32);
            self.page
                .extend_from_slice(&(value.len() as u32).to_le_bytes());
        }
        self.page.extend_from_slice(value);
        let index = self.len;
        self.len += 1;
        let entries = Entries {
            page: &self.page,
            starts: &self.starts,
            width: self.width,
        };
        let hasher = &self.hasher;
        self.table
            .insert_unique(hash, index, |index| self::hash(hasher, entries.get(*index)));
        Some(index)
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The dictionary page, before compression.
    pub(crate) fn page(&self) -> &[u8] {
        &self.page
    }

    /// The entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &[u8]> {
        let entries = Entries {
            page: &self.page,
            starts: &self.starts,
            width: self.width,
        };
        (0..self.len).map(move |index| entries.get(index))
    }

    /// The indices of the values that came since [`clear_indices`](Self::clear_indices).
    pub(crate) fn indices(&self) -> &Indices {
        &self.indices
    }

    /// Bits of the largest index there can be after `more` new entries.
    pub(crate) fn index_width(&self, more: usize) -> u32 {
        let largest = (self.len as usize + more).saturating_sub(1);
        usize::BITS - largest.leading_zeros()
    }

    /// Begins a new page. Where room is not kept, it is given back.
    pub(crate) fn clear_indices(&mut self, keep: bool) {
        if keep {
            self.indices.clear();
        } else {
            self.indices = match self.indices {
                Indices::U8(_) => Indices::U8(Vec::new()),
                Indices::U16(_) => Indices::U16(Vec::new()),
                Indices::U32(_) => Indices::U32(Vec::new()),
            };
        }
    }

    /// Bytes in the heap that hold entries.
    pub(crate) fn entry_bytes(&self) -> usize {
        self.table.allocation_size() + self.page.capacity() + self.starts.capacity() * 4
    }

    /// Bytes in the heap that hold indices.
    pub(crate) fn index_bytes(&self) -> usize {
        self.indices.heap_bytes()
    }
}

/// The bytes of entries by their numbers.
#[derive(Clone, Copy)]
struct Entries<'a> {
    page: &'a [u8],
    starts: &'a [u32],
    width: Option<usize>,
}

impl<'a> Entries<'a> {
    #[inline]
    fn get(self, index: u32) -> &'a [u8] {
        match self.width {
            Some(width) => {
                let at = index as usize * width;
                &self.page[at..at + width]
            }
            None => {
                let at = self.starts[index as usize] as usize + 4;
                let next = index as usize + 1;
                let end = self
                    .starts
                    .get(next)
                    .map_or(self.page.len(), |start| *start as usize);
                &self.page[at..end]
            }
        }
    }
}

#[inline]
fn hash(hasher: &DefaultHashBuilder, value: &[u8]) -> u64 {
    // Without its length, which `Hash` of a slice would add.
    let mut state = hasher.build_hasher();
    std::hash::Hasher::write(&mut state, value);
    value.len().hash(&mut state);
    std::hash::Hasher::finish(&state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(indices: &Indices) -> Vec<u32> {
        match indices {
            Indices::U8(v) => v.iter().map(|i| u32::from(*i)).collect(),
            Indices::U16(v) => v.iter().map(|i| u32::from(*i)).collect(),
            Indices::U32(v) => v.clone(),
        }
    }

    #[test]
    fn numbers_are_found_again_across_widths() {
        let mut dictionary = Dictionary::new(Some(4), 1 << 20, false);
        let values: Vec<i32> = (0..100_000).map(|i| (i * 7) % 70_001).collect();
        assert_eq!(dictionary.put_numbers(&values), values.len());
        let indices = all(dictionary.indices());
        for (value, index) in values.iter().zip(indices) {
            let at = index as usize * 4;
            assert_eq!(dictionary.page()[at..at + 4], value.to_le_bytes());
        }
        assert_eq!(dictionary.len(), 70_001);
        assert_eq!(dictionary.index_width(0), 17);
    }

    #[test]
    fn the_first_value_without_room_is_not_taken() {
        let mut dictionary = Dictionary::new(Some(8), 24, false);
        assert_eq!(dictionary.put_numbers(&[1i64, 2, 1, 3, 3, 4, 1]), 5);
        assert_eq!(dictionary.put_numbers(&[2i64]), 1);
        assert_eq!(all(dictionary.indices()), [0, 1, 0, 2, 2, 1]);
        assert_eq!(dictionary.page().len(), 24);
    }

    #[test]
    fn byte_arrays_of_every_length_are_entries() {
        let values: &[&[u8]] = &[b"a", b"", b"a", b"ab", b"", b"b"];
        let mut dictionary = Dictionary::new(None, 100, true);
        assert_eq!(dictionary.put_bytes(&values, 0..6), 6);
        assert_eq!(all(dictionary.indices()), [0, 1, 0, 2, 1, 3]);
        let entries: Vec<&[u8]> = dictionary.entries().collect();
        assert_eq!(entries, [&b"a"[..], b"", b"ab", b"b"]);
    }
}
