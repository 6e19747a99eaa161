//! The schema in a footer, held against itself before the parquet crate makes a tree of it.
//!
//! That crate reserves room for as many children as an element says it has, and goes one call deeper for every
//! level: a footer of a few bytes could ask for 16 GiB, and one of some hundred kilobytes could use up the stack. Neither is
//! an error that could be caught: both end the process.
//!
//! Source: `FileMetaData` and `SchemaElement` in
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>: the tree is stored flat, each
//! group before its children.

use super::thrift::{CompactReader, FieldType, ThriftError};

/// Groups nest at most this deep: one or two per level of a value, and no writer's values nest more than some ten.
const MAX_DEPTH: usize = 128;

/// Number of the schema's field in `FileMetaData`, and of the children's in `SchemaElement`.
const SCHEMA: i16 = 2;
const NUM_CHILDREN: i16 = 5;

/// Checks every schema in the bytes of a `FileMetaData`.
pub(super) fn check(footer: &[u8]) -> Result<(), ThriftError> {
    CompactReader::new(footer).structure(|r, field| {
        if field.id != SCHEMA || field.kind != FieldType::List {
            return Ok(false);
        }
        elements(r)?;
        Ok(true)
    })
}

fn elements(r: &mut CompactReader<'_>) -> Result<(), ThriftError> {
    let mut left = r.list()?;
    // Of each open group, the children that have not come yet.
    let mut open: Vec<usize> = Vec::new();
    while left > 0 {
        left -= 1;
        let children = num_children(r)?;
        if let Some(of_parent) = open.last_mut() {
            *of_parent -= 1;
        }
        if children > left {
            return Err(ThriftError::Invalid(
                "a schema element says that it has more children than there are elements",
            ));
        }
        if children > 0 {
            open.push(children);
        }
        if open.len() > MAX_DEPTH {
            return Err(ThriftError::Invalid("the schema nests too deeply"));
        }
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    Ok(())
}

fn num_children(r: &mut CompactReader<'_>) -> Result<usize, ThriftError> {
    let mut children = 0;
    r.structure(|r, field| {
        if field.id != NUM_CHILDREN || field.kind != FieldType::I32 {
            return Ok(false);
        }
        children = usize::try_from(r.i32()?)
            .map_err(|_| ThriftError::Invalid("a number of children is negative"))?;
        Ok(true)
    })?;
    Ok(children)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A varint of `value`, zigzag.
    fn zigzag(value: u32) -> Vec<u8> {
        let mut rest = u64::from(value) << 1;
        let mut bytes = Vec::new();
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    }

    /// A footer whose schema has elements with these numbers of children.
    fn footer(children: &[u32]) -> Vec<u8> {
        // Field 2: a list of structures, its length as a varint of two bytes.
        let len = children.len();
        let mut bytes = vec![0x29, 0xfc, len as u8 & 0x7f | 0x80, (len >> 7) as u8];
        for count in children {
            bytes.push(0x55);
            bytes.extend(zigzag(*count));
            bytes.push(0);
        }
        bytes.push(0);
        bytes
    }

    #[test]
    fn trees_that_fit_their_elements_are_fine() {
        for children in [
            &[2, 0, 0][..],
            &[0],
            &[1, 1, 1, 0],
            &[3, 2, 0, 0, 0, 1, 0],
            &[],
        ] {
            assert_eq!(check(&footer(children)), Ok(()), "{children:?}");
        }
    }

    #[test]
    fn more_children_than_elements_are_refused() {
        for children in [&[3, 0, 0][..], &[i32::MAX as u32, 0], &[2, 2, 0]] {
            assert!(
                matches!(
                    check(&footer(children)),
                    Err(ThriftError::Invalid(why)) if why.contains("more children")
                ),
                "{children:?}"
            );
        }
        // -1 in zigzag.
        let mut negative = footer(&[0]);
        negative[5] = 1;
        assert!(
            matches!(check(&negative), Err(ThriftError::Invalid(why)) if why.contains("negative"))
        );
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| {
            let mut children = vec![1; depth];
            children.push(0);
            check(&footer(&children))
        };
        assert_eq!(nested(MAX_DEPTH), Ok(()));
        assert_eq!(
            nested(MAX_DEPTH + 1),
            Err(ThriftError::Invalid("the schema nests too deeply"))
        );
    }
}
