//! Footers whose numbers are lies: what the parquet crate reserves by them, and what is refused before it does.

use alloquet_core::ReaderBuilder;
use bytes::Bytes;

use crate::bounds;
use crate::engine::{Outcome, alone};

/// A varint.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A file that is a footer and nothing else.
fn file(footer: &[u8]) -> Bytes {
    let len = (footer.len() as u32).to_le_bytes();
    Bytes::from([b"PAR1", footer, &len, b"PAR1"].concat())
}

/// Version 1 and the start of a schema of so many elements.
fn schema(elements: u64) -> Vec<u8> {
    [&[0x15, 2, 0x19, 0xfc][..], &varint(elements)].concat()
}

/// A group of the schema with so many children: repetition (required), name, number of children.
fn group(children: u64) -> Vec<u8> {
    let children = varint(children << 1);
    [&[0x35, 0, 0x18, 1, b'g', 0x15][..], &children, &[0]].concat()
}

/// An optional INT32.
const LEAF: [u8; 8] = [0x15, 2, 0x25, 2, 0x18, 1, b'l', 0];

fn open(footer: &[u8]) -> Result<(), String> {
    let opened = ReaderBuilder::try_new(file(footer));
    opened.map(drop).map_err(|error| error.to_string())
}

/// Without the check each of these would end the process, and this test with it.
#[test]
fn a_schema_that_would_end_the_process_is_refused() {
    alone(lying_schemas);
}

fn lying_schemas() {
    let reserve = [schema(2), group(i32::MAX as u64), LEAF.to_vec()].concat();
    let error = open(&reserve).unwrap_err();
    assert!(error.contains("more children"), "{error}");

    let depth = 1_000_000;
    let mut recurse = schema(depth + 1);
    for _ in 0..depth {
        recurse.extend(group(1));
    }
    recurse.extend(LEAF);
    let error = open(&recurse).unwrap_err();
    assert!(error.contains("nests too deeply"), "{error}");
}

/// Lists that say they are as long as what follows them has bytes.
#[test]
fn lists_that_lie_take_a_bounded_multiple_of_the_footer() {
    const LEN: usize = 1 << 20;
    let valid = [schema(2), group(1), LEAF.to_vec()].concat();
    let num_rows = [0x16, 0];
    // The list's head: field, type, and that the length is a varint.
    let lists: [(&str, Vec<u8>); 4] = [
        ("schema", schema(LEN as u64 - 16)[..4].to_vec()),
        (
            "row groups",
            [&valid[..], &num_rows, &[0x19, 0xfc]].concat(),
        ),
        ("key-value", [&valid[..], &num_rows, &[0x29, 0xfc]].concat()),
        (
            "column orders",
            [&valid[..], &num_rows, &[0x49, 0xfc]].concat(),
        ),
    ];
    alone(|| {
        for (name, head) in lists {
            let mut footer = head;
            footer.extend(varint((LEN - footer.len() - 8) as u64));
            footer.resize(LEN, 0);
            let file = file(&footer);
            let mut outcome = Outcome::default();
            let opened = outcome.step(
                "open",
                || ReaderBuilder::try_new(file.clone()).map(drop),
                |_| bounds::of_metadata(file.len()),
            );
            assert!(opened.is_err(), "{name}");
            let (_, growth, bound) = outcome.growth[0];
            println!(
                "a list of {name} that lies: {:.1} bytes for each of the footer's",
                growth as f64 / LEN as f64
            );
            assert!(growth > LEN as u64 && growth <= bound, "{name}: {growth}");
        }
    });
}
