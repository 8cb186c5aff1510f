//! Randomness's one door.

use std::io::Read as _;

use requal::{Digest, Outcome};

/// 32 bytes of the system's randomness, in the notation of a digest.
///
/// # Errors
/// `E-IO`.
pub fn session() -> Outcome<Digest> {
    let mut bytes = [0; 32];
    fs_err::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(Digest::from_bytes(bytes))
}
