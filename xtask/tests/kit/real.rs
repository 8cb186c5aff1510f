//! The real wheels and the toolchain that they unpack to, shared by all tests below `target/test-wheelhouse`.

use std::fs::File;

use camino::{Utf8Path, Utf8PathBuf};
use requal::Outcome;
use requal::lock::{Lock, Package};
use xtask::fetch::{Fetched, Origin, fetch};
use xtask::unpack::{Toolchain, toolchain_links, unpack};

/// The repository.
pub(crate) fn repository() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The committed lock.
pub(crate) fn lock() -> Lock {
    let text = fs_err::read_to_string(repository().join("toolchain.lock")).unwrap();
    Lock::parse("toolchain.lock", &text).unwrap()
}

/// Where the real wheels lie once [`real_wheels`] has fetched them.
pub(crate) fn wheelhouse() -> Utf8PathBuf {
    house().join("wheels")
}

/// The real wheels of `packages`, fetched by the project's own fetch by whichever test comes first; the others wait for
/// it.
pub(crate) fn real_wheels(packages: &[Package]) -> Outcome<Vec<Fetched>> {
    let _guard = hold(".lock")?;
    let settings = xtask::sys::env::pip_settings();
    fetch(packages, &Origin { scratch: house(), wheelhouse: None, offline: false, settings })
}

/// The toolchain unpacked from the real wheels, for cases that count only with them. It is not to be changed.
pub(crate) fn real_toolchain() -> Utf8PathBuf {
    unpacked().root
}

/// The same with its lists.
pub(crate) fn unpacked() -> Toolchain {
    let wheels = real_wheels(&lock().packages).unwrap();
    let wheels: Vec<_> = wheels.into_iter().map(|wheel| wheel.pinned).collect();
    let _guard = hold(".toolchain.lock").unwrap();
    unpack(&wheels, &toolchain_links(), &house().join("toolchain")).unwrap()
}

fn house() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("test-wheelhouse")
}

fn hold(name: &str) -> Outcome<File> {
    fs_err::create_dir_all(house())?;
    let guard = File::options().create(true).append(true).open(house().join(name))?;
    guard.lock()?;
    Ok(guard)
}
