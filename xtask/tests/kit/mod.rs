//! What the end-to-end tests of wheels share: small wheels, a package index on 127.0.0.1, and the real wheels.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::allow_attributes,
    reason = "each test file uses a part of the kit"
)]

#[path = "../../../tests/kit/mod.rs"]
pub mod zip;

pub mod index;
mod real;

use camino::{Utf8Path, Utf8PathBuf};
use requal::wheel::Pinned;

#[allow(unused_imports, reason = "each test file uses a part of the kit")]
pub(crate) use real::{lock, real_wheels};

/// A fresh folder that goes with the test, as a UTF-8 path.
pub fn scratch() -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    (folder, path)
}

/// A wheel's bytes with their pin.
pub fn pinned(name: &str, version: &str, files: &[zip::Entry]) -> Pinned {
    let bytes = zip::zip(&zip::wheel(name, version, files)).bytes;
    let package = zip::pin(name, version, &bytes);
    Pinned::new(bytes, &package).unwrap()
}

/// Writes a file with the given bytes, as a user or an attacker would.
#[expect(clippy::disallowed_methods, reason = "a test plants what the tool must see")]
pub fn plant(path: &Utf8Path, bytes: &[u8]) {
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Flips one bit in the middle of a file.
pub fn flip(path: &Utf8Path) {
    let mut bytes = fs_err::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    plant(path, &bytes);
}
