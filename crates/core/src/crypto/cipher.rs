//! AES-GCM over a module as the format frames it: length (4 bytes, little-endian, of what follows),
//! nonce (12), ciphertext, tag (16). Source: Encryption.md 5.1.

use std::ops::Range;

use parquet::errors::{ParquetError, Result};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::buffer::Buffer;

/// Bytes of the length in front of a module.
pub(crate) const LENGTH_LEN: usize = 4;
pub(super) const NONCE_LEN: usize = 12;
const TAG_LEN: usize = 16;
/// Bytes that encryption adds to a module.
pub(crate) const FRAMING_LEN: usize = LENGTH_LEN + NONCE_LEN + TAG_LEN;

/// One key, ready for use. It has no `Debug`: a key is never shown.
pub(super) struct Cipher {
    key: LessSafeKey,
}

impl Cipher {
    pub(super) fn new(key: &[u8]) -> Result<Self> {
        let algorithm = match key.len() {
            16 => &AES_128_GCM,
            32 => &AES_256_GCM,
            len => {
                return Err(ParquetError::General(format!(
                    "an AES key of {} bits was given: 128 and 256 bits are supported",
                    len * 8
                )));
            }
        };
        UnboundKey::new(algorithm, key)
            .map(|key| Self {
                key: LessSafeKey::new(key),
            })
            .map_err(|_| ParquetError::General("the key was refused".into()))
    }

    pub(super) fn open_in_place(&self, module: &mut [u8], aad: &[u8]) -> Result<Range<usize>> {
        let nonce = check_frame(module)?;
        let start = LENGTH_LEN + NONCE_LEN;
        let plain = self
            .key
            .open_in_place(nonce, Aad::from(aad), &mut module[start..])
            .map_err(|_| failed())?;
        Ok(start..start + plain.len())
    }

    pub(super) fn open_separate(&self, module: &[u8], aad: &[u8], out: &mut Buffer) -> Result<()> {
        let nonce = check_frame(module)?;
        out.copy_from(&module[LENGTH_LEN + NONCE_LEN..]);
        let plain = self
            .key
            .open_in_place(nonce, Aad::from(aad), out.as_mut_slice())
            .map_err(|_| failed())?
            .len();
        out.narrow(0..plain);
        Ok(())
    }
}

impl Cipher {
    /// The module of `plain`.
    pub(super) fn seal(&self, plain: &[u8], nonce: [u8; NONCE_LEN], aad: &[u8]) -> Result<Vec<u8>> {
        let mut body = plain.to_vec();
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(aad),
                &mut body,
            )
            .map_err(|_| too_long())?;
        let len = u32::try_from(NONCE_LEN + body.len()).map_err(|_| too_long())?;
        Ok([&len.to_le_bytes()[..], &nonce, &body].concat())
    }
}

fn too_long() -> ParquetError {
    ParquetError::General("a module is too long to be encrypted".into())
}

/// Checks that the framing fits the slice, and returns the nonce.
fn check_frame(module: &[u8]) -> Result<Nonce> {
    let (length, rest) = module
        .split_first_chunk::<LENGTH_LEN>()
        .ok_or_else(too_short)?;
    if module.len() < FRAMING_LEN {
        return Err(too_short());
    }
    if u32::from_le_bytes(*length) as usize != rest.len() {
        return Err(ParquetError::General(
            "an encrypted module's length does not fit its page".into(),
        ));
    }
    Nonce::try_assume_unique_for_key(&rest[..NONCE_LEN]).map_err(|_| too_short())
}

fn too_short() -> ParquetError {
    ParquetError::EOF("an encrypted module is shorter than its framing".into())
}

fn failed() -> ParquetError {
    ParquetError::General(
        "decryption failed: the key or AAD prefix is wrong, or the file was changed".into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{Home, Keep};
    use crate::ledger::{Ledger, Purpose};
    use std::sync::Arc;

    fn seal(key: &[u8], aad: &[u8], plain: &[u8]) -> Vec<u8> {
        Cipher::new(key)
            .unwrap()
            .seal(plain, [7; NONCE_LEN], aad)
            .unwrap()
    }

    #[test]
    fn both_key_lengths_open_both_ways() {
        for key in [&[1u8; 16][..], &[2u8; 32]] {
            let module = seal(key, b"aad", b"hello");
            let cipher = Cipher::new(key).unwrap();
            let ledger = Arc::new(Ledger::new(1));
            let home = Home::new(Keep::Nothing, Purpose::Decrypt, None, &ledger);
            let mut out = home.take_empty(0, module.len(), 0);
            cipher.open_separate(&module, b"aad", &mut out).unwrap();
            assert_eq!(out.as_ref(), b"hello");
            let mut here = module.clone();
            let range = cipher.open_in_place(&mut here, b"aad").unwrap();
            assert_eq!(&here[range], b"hello");
        }
    }

    #[test]
    fn any_changed_byte_is_refused() {
        let module = seal(&[1; 16], b"aad", b"hello");
        let cipher = Cipher::new(&[1; 16]).unwrap();
        for i in 0..module.len() {
            let mut bad = module.clone();
            bad[i] ^= 1;
            assert!(cipher.open_in_place(&mut bad, b"aad").is_err(), "byte {i}");
        }
        for len in 0..module.len() {
            assert!(
                cipher
                    .open_in_place(&mut module[..len].to_vec(), b"aad")
                    .is_err()
            );
        }
        assert!(cipher.open_in_place(&mut module.clone(), b"AAD").is_err());
    }

    #[test]
    fn other_key_lengths_are_refused_without_showing_the_key() {
        let Err(error) = Cipher::new(b"secretsecret") else {
            panic!("a 96 bit key was taken");
        };
        assert!(error.to_string().contains("96 bits"));
        assert!(!error.to_string().contains("secret"));
    }
}
