//! The mappings of this process and what of them is resident, by `/proc/self/smaps`.
//!
//! Nothing here allocates: it is read in the middle of what it measures.

use std::fs::File;
use std::io::{self, Read};

use super::mapping::Zeroable;

/// One mapping. Sizes are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// Its first address.
    pub(crate) start: u64,
    /// The address behind its last.
    pub(crate) end: u64,
    /// What it is a mapping of.
    pub(crate) of: Of,
    /// Whether it may be read, written or run at all; guards and reserved space may not.
    pub(crate) accessible: bool,
    /// Whether code in it may run.
    pub(crate) executable: bool,
    /// Device and inode of its file, or zeros.
    pub(crate) file: (u64, u64),
    /// Resident.
    pub(crate) rss: u64,
    /// Resident and marked to be dropped once memory is short (`LazyFree`).
    pub(crate) lazy_free: u64,
    /// Resident by huge pages (`AnonHugePages`).
    pub(crate) huge: u64,
    /// Swapped out.
    pub(crate) swap: u64,
}

/// What a mapping is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Of {
    /// Private memory that no file backs.
    #[default]
    Anonymous,
    /// The memory that the C library takes by `brk`.
    Brk,
    /// The main thread's stack.
    Stack,
    /// A file, or memory that can be shared like one.
    File,
    /// Pages of the kernel's own: vdso and its data.
    Kernel,
}

// SAFETY: zeros are the empty anonymous mapping: `Anonymous` is the first of `Of`, and `false` is zero.
unsafe impl Zeroable for Mapping {}

/// Reads all mappings in the order of their addresses. `buffer` is for reading, at least a few lines long.
///
/// # Errors
///
/// The file cannot be read or is not as Linux documents it.
pub(crate) fn read(buffer: &mut [u8], mut each: impl FnMut(Mapping)) -> io::Result<()> {
    let mut parser = Parser::default();
    lines("/proc/self/smaps", buffer, |line| {
        parser
            .line(line)
            .map(|done| done.into_iter().for_each(&mut each))
    })?;
    parser.current.into_iter().for_each(each);
    Ok(())
}

/// All that is resident, in bytes, by `/proc/self/smaps_rollup`: the sum over all mappings.
///
/// # Errors
///
/// The file cannot be read or is not as Linux documents it.
pub(crate) fn resident(buffer: &mut [u8]) -> io::Result<u64> {
    let mut rss = None;
    lines("/proc/self/smaps_rollup", buffer, |line| {
        if let Some(rest) = line.strip_prefix(b"Rss:") {
            rss = kib(rest);
        }
        Some(())
    })?;
    rss.ok_or(io::ErrorKind::InvalidData.into())
}

/// Hands each line of the file at `path` to `each`, which returns `None` for a line that cannot be.
fn lines(
    path: &str,
    buffer: &mut [u8],
    mut each: impl FnMut(&[u8]) -> Option<()>,
) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut filled = 0;
    loop {
        let count = file.read(&mut buffer[filled..])?;
        filled += count;
        let mut done = 0;
        while let Some(length) = buffer[done..filled].iter().position(|&byte| byte == b'\n') {
            each(&buffer[done..done + length]).ok_or(io::ErrorKind::InvalidData)?;
            done += length + 1;
        }
        buffer.copy_within(done..filled, 0);
        filled -= done;
        if count == 0 {
            return Ok(());
        }
        if filled == buffer.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// Makes mappings of lines.
#[derive(Debug, Default)]
struct Parser {
    current: Option<Mapping>,
}

impl Parser {
    /// Takes a line and returns the mapping that it ended, if it did; `None` for a line that cannot be.
    fn line(&mut self, line: &[u8]) -> Option<Option<Mapping>> {
        let first = line.split(|&byte| byte == b' ').next()?;
        if first.last() != Some(&b':') {
            return Some(self.current.replace(heading(line)?));
        }
        let Some(mapping) = &mut self.current else {
            return None;
        };
        let field = match first {
            b"Rss:" => &mut mapping.rss,
            b"LazyFree:" => &mut mapping.lazy_free,
            b"AnonHugePages:" => &mut mapping.huge,
            b"Swap:" => &mut mapping.swap,
            _ => return Some(None),
        };
        *field = kib(&line[first.len()..])?;
        Some(None)
    }
}

/// Reads a line such as `7f0c4a000000-7f0c4a021000 rw-p 00000000 00:00 0    [heap]`.
fn heading(line: &[u8]) -> Option<Mapping> {
    let mut words = line
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty());
    let mut addresses = words.next()?.split(|&byte| byte == b'-');
    let start = number(addresses.next()?, 16)?;
    let end = number(addresses.next()?, 16)?;
    let &[read, write, run, shared] = words.next()? else {
        return None;
    };
    let _offset = words.next()?;
    let mut device = words.next()?.split(|&byte| byte == b':');
    let device = number(device.next()?, 16)? << 32 | number(device.next()?, 16)?;
    let inode = number(words.next()?, 10)?;
    let of = match words.next() {
        None if shared == b's' => Of::File,
        None => Of::Anonymous,
        Some(b"[heap]") => Of::Brk,
        Some(b"[stack]") => Of::Stack,
        Some(name) if name.starts_with(b"[anon:") => Of::Anonymous,
        Some(name) if name.starts_with(b"[anon_shmem:") => Of::File,
        Some([b'[', ..]) => Of::Kernel,
        Some(_) => Of::File,
    };
    Some(Mapping {
        start,
        end,
        of,
        accessible: [read, write, run] != *b"---",
        executable: run == b'x',
        file: (device, inode),
        ..Mapping::default()
    })
}

/// Reads `    1776 kB`, in bytes.
fn kib(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii().strip_suffix(b" kB")?;
    number(text, 10)?.checked_mul(1024)
}

fn number(digits: &[u8], base: u32) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, base).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0                          [heap]
Size:                132 kB
Rss:                   8 kB
AnonHugePages:         0 kB
VmFlags: rd wr mr mw me ac 
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 
Rss:                4096 kB
LazyFree:             12 kB
AnonHugePages:      2048 kB
Swap:                 16 kB
7f0001000000-7f0001001000 ---p 00000000 00:00 0 
Rss:                   0 kB
7f0002000000-7f0002001000 r-xp 00001000 fe:01 4711                       /usr/lib/with space.so (deleted)
Rss:                   4 kB
";

    fn parsed(text: &str) -> Option<Vec<Mapping>> {
        let mut parser = Parser::default();
        let mut mappings = Vec::new();
        for line in text.lines() {
            mappings.extend(parser.line(line.as_bytes())?);
        }
        mappings.extend(parser.current);
        Some(mappings)
    }

    #[test]
    fn mappings_have_their_sizes() {
        let mappings = parsed(SMAPS).unwrap();
        assert_eq!(mappings.len(), 4);
        assert_eq!((mappings[0].of, mappings[0].rss), (Of::Brk, 8192));
        let expected = Mapping {
            start: 0x7f00_0000_0000,
            end: 0x7f00_0040_0000,
            accessible: true,
            rss: 4 << 20,
            lazy_free: 12 << 10,
            huge: 2 << 20,
            swap: 16 << 10,
            ..Mapping::default()
        };
        assert_eq!(mappings[1], expected);
        assert!(!mappings[2].accessible);
        assert_eq!(mappings[3].of, Of::File);
        assert!(mappings[3].executable);
        assert_eq!(mappings[3].file, (0xfe << 32 | 1, 4711));
    }

    #[test]
    fn what_a_mapping_is_of() {
        let of =
            |rest: &str| heading(format!("1000-2000 {rest}").as_bytes()).map(|mapping| mapping.of);
        assert_eq!(of("rw-p 00000000 00:00 0 "), Some(Of::Anonymous));
        assert_eq!(
            of("rw-p 00000000 00:00 0 [anon:mimalloc]"),
            Some(Of::Anonymous)
        );
        assert_eq!(
            of("rw-s 00000000 00:01 7 /dev/zero (deleted)"),
            Some(Of::File)
        );
        assert_eq!(of("rw-s 00000000 00:00 0 "), Some(Of::File));
        assert_eq!(of("r-xp 00000000 00:00 0 [vdso]"), Some(Of::Kernel));
        assert_eq!(of("rw-p 00000000 00:00 0 [stack]"), Some(Of::Stack));
    }

    #[test]
    fn lines_that_cannot_be_are_errors() {
        assert_eq!(parsed("Rss: 4 kB\n"), None);
        assert_eq!(parsed("1000-2000 rw-p 0 00:00 0\nRss: much\n"), None);
        assert_eq!(parsed("1000 rw-p 0 00:00 0\n"), None);
    }

    #[test]
    fn this_process_adds_up() {
        let mut buffer = vec![0; 64 << 10];
        let mut mappings = Vec::with_capacity(10_000);
        read(&mut buffer, |mapping| mappings.push(mapping)).unwrap();
        let sum: u64 = mappings.iter().map(|mapping| mapping.rss).sum();
        let all = resident(&mut buffer).unwrap();
        // Other tests allocate meanwhile.
        assert!(sum > 0 && all > 0, "{sum}, {all}");
        assert!(mappings.is_sorted_by_key(|mapping| mapping.start));
        assert!(mappings.iter().any(|mapping| mapping.of == Of::Stack));
    }
}
