//! A hash of a whole file, by which damage anywhere in it is noticed, page bodies
//! included. No defence against intent: who can change a file can change its sidecar.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::Path;

use twox_hash::XxHash64;

use crate::progress::Progress;

/// All that is held of the file at once.
const BUFFER_BYTES: usize = 256 << 10;

/// XxHash64 (seed 0, in hex) of the file's bytes, or `None` if `progress` says to stop.
pub(super) fn hash(path: &Path, progress: &dyn Progress) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut hasher = XxHash64::with_seed(0);
    loop {
        if progress.is_cancelled() {
            return Ok(None);
        }
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Some(format!("{:016x}", hasher.finish()))),
            Ok(count) => hasher.write(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_byte_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let hash_of = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            hash(&path, &()).unwrap().unwrap()
        };
        assert_eq!(hash_of(b""), "ef46db3751d8e999");
        let mut bytes = vec![7; 3 * BUFFER_BYTES + 5];
        let whole = hash_of(&bytes);
        assert_eq!(
            whole,
            format!("{:016x}", XxHash64::oneshot(0, &bytes)),
            "in pieces as at once"
        );
        for at in [0, BUFFER_BYTES, 3 * BUFFER_BYTES + 4] {
            bytes[at] ^= 1;
            assert_ne!(hash_of(&bytes), whole, "byte {at}");
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn it_stops_when_told_to() {
        struct Stopped;
        impl Progress for Stopped {
            fn is_cancelled(&self) -> bool {
                true
            }
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(hash(file.path(), &Stopped).unwrap(), None);
    }
}
