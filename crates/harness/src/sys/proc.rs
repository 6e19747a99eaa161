//! Reading the text files of `/proc`. Nothing here allocates: a measurement must not show up in what it measures.

use std::fs::File;
use std::io::{self, Read};

/// Reads as much of a file as `buffer` holds.
pub(super) fn read_into<'a>(path: &str, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut file = File::open(path)?;
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(&buffer[..filled])
}

/// What is wrong with a file that is not what Linux documents; needs no memory.
pub(super) fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// The number that follows `key` at the start of a line.
pub(super) fn field(status: &[u8], key: &[u8]) -> Option<u64> {
    let line = status
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(key))?;
    number(line)
}

/// The first number in `text`.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    let mut digits = text
        .iter()
        .skip_while(|byte| !byte.is_ascii_digit())
        .take_while(|byte| byte.is_ascii_digit());
    let first = u64::from(*digits.next()? - b'0');
    digits.try_fold(first, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}
