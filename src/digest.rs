//! The one SHA-256 type: 64 lower-case hexadecimal digits in every record.

use std::fmt;
use std::io::{self, Read};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest (FIPS 180-4), 32 bytes; in text 64 lower-case hexadecimal digits without a prefix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^[0-9a-f]{64}$"))]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(bytes);
        hasher.finish()
    }

    /// The digest of everything that `reader` yields, and its length in bytes.
    ///
    /// # Errors
    /// Whatever the reader reports.
    pub fn of_reader(mut reader: impl Read) -> io::Result<(Self, u64)> {
        let mut hasher = Hasher::new();
        let mut buffer = vec![0; 1 << 17];
        let mut size_bytes = 0;
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok((hasher.finish(), size_bytes)),
                n => {
                    hasher.update(&buffer[..n]);
                    size_bytes += n as u64;
                }
            }
        }
    }

    /// The digest whose 32 bytes are `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// An incremental SHA-256.
#[derive(Clone)]
pub struct Hasher(Sha256);

impl Hasher {
    /// A hasher that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self(Sha256::new())
    }

    /// Appends `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Appends `part` behind its length, so that no two lists of parts give the same bytes.
    pub fn part(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.update(&(part.len() as u64).to_le_bytes());
        self.update(part);
    }

    /// Appends a list behind its length, each item as a [`part`](Self::part).
    pub fn list<T: AsRef<[u8]>>(&mut self, parts: impl ExactSizeIterator<Item = T>) {
        self.update(&(parts.len() as u64).to_le_bytes());
        parts.for_each(|part| self.part(part));
    }

    /// The digest of all appended bytes.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl Default for Hasher {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl std::str::FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a SHA-256: 64 lower-case hexadecimal digits are needed");
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(bad());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| bad())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4 example: SHA-256 of "abc".
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn known_answer_and_round_trip() {
        assert_eq!(Digest::of(b"abc").to_string(), ABC);
        assert_eq!(Digest::of_reader(&b"abc"[..]).unwrap(), (Digest::of(b"abc"), 3));
        assert_eq!(ABC.parse::<Digest>().unwrap(), Digest::of(b"abc"));
    }

    #[test]
    fn only_the_canonical_text_is_read() {
        for text in ["", "ab", &ABC.to_uppercase(), &ABC[1..], &format!("{ABC}0"), &ABC.replace('b', "g")] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
