//! Progress, and generation that does not come to its end.

use std::cell::Cell;
use std::fs;

use alloquet_datagen::{Error, Progress, generate};

use crate::support::{files, kitchen_sink};

/// Stops after some values.
struct StopAfter(Cell<u64>);

impl Progress for StopAfter {
    fn advance(&self, values: u64) {
        self.0.set(self.0.get().saturating_sub(values));
    }
    fn is_cancelled(&self) -> bool {
        self.0.get() == 0
    }
}

#[test]
fn stopping_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let stop = StopAfter(Cell::new(40_000));
    let error = generate(&kitchen_sink(1, "none"), folder.path(), &stop).unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    assert!(files(&folder).is_empty(), "{:?}", files(&folder));
}

#[test]
fn an_unwritable_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = generate(&kitchen_sink(1, "none"), &file, &())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(&format!("cannot write {}", file.display())),
        "{error}"
    );
}

#[test]
fn progress_counts_every_value() {
    struct Count(Cell<(u64, u64)>);
    impl Progress for Count {
        fn start(&self, total: u64) {
            self.0.set((total, 0));
        }
        fn advance(&self, values: u64) {
            let (total, so_far) = self.0.get();
            self.0.set((total, so_far + values));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let count = Count(Default::default());
    generate(&kitchen_sink(1, "none"), folder.path(), &count).unwrap();
    assert_eq!(count.0.get(), (6_000 * 13, 6_000 * 13));
}
