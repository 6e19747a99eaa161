//! The hidden command `plant`: does one thing with memory, of which it is known where it must show, and explains this
//! process's memory before and after. What tests hold `explain` against.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::cli::{PlantArgs, PlantCase};
use crate::measure::explain::{self, Explanation};
use crate::output;
use crate::sys::machine::Thp;
use crate::sys::mapping::{Advice, MappedFile, Region};
use crate::sys::plant::c_leak;

const HUGE_PAGE: usize = 2 << 20;

/// What is printed.
#[derive(Debug, Serialize)]
struct Planted {
    case: PlantCase,
    /// Bytes that must show where the case belongs.
    bytes: u64,
    baseline: Explanation,
    explanation: Explanation,
}

/// Why there is nothing to print.
#[derive(Debug, Serialize)]
struct Skipped {
    case: PlantCase,
    skipped: &'static str,
}

/// Runs the command.
pub(crate) fn run(args: &PlantArgs) -> Result<()> {
    let case = args.case;
    let thp = Thp::now();
    if case == PlantCase::Thp && (thp.enabled == "never" || thp.process_enabled == Some(false)) {
        let skipped = "this process is allowed no huge pages";
        return print(&Skipped { case, skipped });
    }
    let bytes =
        usize::try_from(args.bytes).context("--bytes is more than this system can address")?;
    // The first brings in what the explanation itself needs.
    explain::here()?;
    let baseline = explain::here()?;
    let (bytes, explanation) = plant(case, bytes)?;
    print(&Planted {
        case,
        bytes: bytes as u64,
        baseline,
        explanation,
    })
}

fn print(value: &impl Serialize) -> Result<()> {
    let json = serde_json::to_string(value)?;
    output::print(format_args!("{json}\n"))
}

/// Does it, with about so many bytes, and explains while it lasts. Says with how many exactly.
fn plant(case: PlantCase, bytes: usize) -> Result<(usize, Explanation)> {
    match case {
        PlantCase::Leak => {
            // Half of it in one block, half in small ones.
            std::mem::forget(black_box(vec![1_u8; bytes / 2]));
            for _ in 0..bytes / 2 / 1000 {
                std::mem::forget(black_box(vec![1_u8; 1000]));
            }
            Ok((bytes / 2 + bytes / 2 / 1000 * 1000, explain::here()?))
        }
        PlantCase::Keep => {
            const BLOCK: usize = 512;
            let mut blocks = Vec::<Box<[u8; BLOCK]>>::with_capacity(bytes / BLOCK);
            blocks.extend((0..bytes / BLOCK).map(|_| black_box(Box::new([1; BLOCK]))));
            let held: Vec<_> = blocks.into_iter().step_by(128).collect();
            let explanation = explain::here()?;
            Ok((bytes - held.len() * BLOCK, explanation))
        }
        PlantCase::Lazy => {
            let mut region = Region::new(bytes).context("cannot map memory")?;
            region.bytes_mut().fill(1);
            region
                .advise(Advice::Free)
                .context("this kernel cannot free lazily")?;
            Ok((bytes, explain::here()?))
        }
        PlantCase::LazyBlock => {
            // jemalloc keeps nothing of blocks above 8 MiB, however it is set.
            let blocks: Vec<_> = (0..bytes >> 20).map(|_| vec![1_u8; 1 << 20]).collect();
            drop(black_box(blocks));
            // jemalloc lets memory decay step by step, as time goes by and calls come in.
            for _ in 0..40 {
                thread::sleep(Duration::from_millis(5));
                for _ in 0..5000 {
                    drop(black_box(Vec::<u8>::with_capacity(40_000)));
                }
            }
            Ok((bytes >> 20 << 20, explain::here()?))
        }
        PlantCase::Reserve => {
            let reserved = black_box(Vec::<u8>::with_capacity(bytes));
            let explanation = explain::here()?;
            Ok((reserved.capacity(), explanation))
        }
        PlantCase::C => {
            let size = NonZeroUsize::new(bytes).context("--bytes is 0")?;
            ensure!(c_leak(size), "C's malloc has no {bytes} bytes");
            Ok((bytes, explain::here()?))
        }
        PlantCase::CSmall => {
            let size = NonZeroUsize::MIN.saturating_add(999);
            for _ in 0..bytes / size {
                ensure!(c_leak(size), "C's malloc has no {bytes} bytes");
            }
            Ok((bytes / size * size.get(), explain::here()?))
        }
        PlantCase::Map => {
            let file = file_of(bytes).context("cannot make a temporary file in TMPDIR")?;
            let mapped = MappedFile::new(&file).context("cannot map a temporary file")?;
            black_box(mapped.touch());
            Ok((bytes, explain::here()?))
        }
        PlantCase::Thp => {
            // The region need not begin at a huge page.
            let mut region = Region::new(bytes + HUGE_PAGE).context("cannot map memory")?;
            region
                .advise(Advice::HugePages)
                .context("this kernel takes no advice on huge pages")?;
            let memory = region.bytes_mut();
            let skipped = memory.as_ptr().align_offset(HUGE_PAGE);
            for byte in memory[skipped..][..bytes].iter_mut().step_by(HUGE_PAGE) {
                *byte = 1;
            }
            Ok((bytes, explain::here()?))
        }
        PlantCase::Stack => {
            let (say, hear) = channel();
            let (end, wait) = channel();
            let thread = thread::Builder::new().stack_size(bytes + (1 << 20));
            let thread = thread
                .spawn(move || descend(bytes, &say, &wait))
                .context("cannot make a thread with such a stack")?;
            hear.recv()
                .context("the thread with the deep stack ended")?;
            let explanation = explain::here()?;
            drop(end);
            // It ends by itself, and has nothing to say.
            let _ = thread.join();
            Ok((bytes, explanation))
        }
        PlantCase::Metadata => {
            const BLOCK: usize = 33;
            let mut blocks = Vec::<Box<[u8; BLOCK]>>::with_capacity(bytes / BLOCK);
            blocks.extend((0..bytes / BLOCK).map(|_| black_box(Box::new([1; BLOCK]))));
            let explanation = explain::here()?;
            Ok((blocks.len() * BLOCK, explanation))
        }
    }
}

/// Goes down so many bytes of the stack, says so at the bottom, and comes back once `wait` is closed.
fn descend(bytes: usize, say: &Sender<()>, wait: &Receiver<()>) -> u8 {
    let mut frame = [1_u8; 16 << 10];
    black_box(&mut frame);
    if bytes > frame.len() {
        let below = descend(bytes - frame.len(), say, wait);
        return below.wrapping_add(frame[0]);
    }
    // Nobody to hear it means that nobody waits for this thread.
    let _ = say.send(());
    let _ = wait.recv();
    frame[0]
}

/// A nameless file of so many bytes.
fn file_of(bytes: usize) -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    let portion = vec![1; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let count = left.min(portion.len());
        file.write_all(&portion[..count])?;
        left -= count;
    }
    Ok(file)
}
