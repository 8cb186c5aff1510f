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

use std::fs::File;

use camino::{Utf8Path, Utf8PathBuf};
use requal::Outcome;
use requal::lock::{Lock, Package};
use requal::wheel::Pinned;
use xtask::fetch::{Fetched, Origin, fetch};

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

/// The committed lock.
pub fn lock() -> Lock {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolchain.lock");
    Lock::parse("toolchain.lock", &fs_err::read_to_string(path).unwrap()).unwrap()
}

/// The real wheels of `packages`, fetched by the project's own fetch into `target/test-wheelhouse` by whichever test comes
/// first; the others wait for it.
pub fn real_wheels(packages: &[Package]) -> Outcome<Vec<Fetched>> {
    let target = Utf8Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let house = target.join("test-wheelhouse");
    fs_err::create_dir_all(&house)?;
    let guard = File::options().create(true).append(true).open(house.join(".lock"))?;
    guard.lock()?;
    let settings = xtask::sys::env::pip_settings();
    fetch(packages, &Origin { scratch: house, wheelhouse: None, offline: false, settings })
}
