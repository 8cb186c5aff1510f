//! Fetching by the user's pip from an index on 127.0.0.1: cut, lying, withdrawn, damaged, absent.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod kit;

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use kit::index::{Index, Range, Served};
use kit::zip::Entry;
use kit::{flip, plant, scratch};
use requal::lock::{Lock, Package};
use requal::{Failure, Outcome};
use xtask::fetch::{Fetched, Origin, fetch};
use xtask::lock_command;
use xtask::sys::env::Variables;

/// A wheel large enough to be cut, and its pin; `salt` makes other bytes of the same size.
fn wheel(name: &str, version: &str, salt: u64) -> (Package, Vec<u8>) {
    let mut state = salt;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u8::try_from(state >> 56).unwrap()
    });
    let noise = noise.take(300_000).collect::<Vec<u8>>();
    let bytes = kit::zip::zip(&kit::zip::wheel(name, version, &[Entry::file("data", &noise).stored()])).bytes;
    (kit::zip::pin(name, version, &bytes), bytes)
}

fn served(package: &Package, bytes: &[u8]) -> Served {
    Served { project: package.name.clone(), file: package.file.clone(), bytes: bytes.to_vec(), yanked: None }
}

fn origin(scratch: &Utf8Path, settings: Variables) -> Origin {
    Origin { scratch: scratch.to_owned(), wheelhouse: None, offline: false, settings }
}

fn one(package: &Package, origin: &Origin) -> Outcome<Fetched> {
    Ok(fetch(std::slice::from_ref(package), origin)?.remove(0))
}

fn refusal(package: &Package, origin: &Origin) -> Box<Failure> {
    one(package, origin).expect_err("must be refused")
}

/// Every file below a folder, by relative path.
fn files(folder: &Utf8Path) -> BTreeSet<String> {
    let entries = walkdir::WalkDir::new(folder).into_iter().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_file());
    files.map(|entry| entry.path().strip_prefix(folder).unwrap().display().to_string()).collect()
}

#[test]
fn several_wheels_arrive_at_once_and_are_asked_for_only_once() {
    let (_folder, base) = scratch();
    let wheels = [wheel("one", "1.0", 1), wheel("two", "2.0", 2), wheel("three", "3.0", 3)];
    let index = Index::serve(
        wheels.iter().map(|(package, bytes)| served(package, bytes)).collect(),
        Range::Ignored,
        0,
    );
    let packages: Vec<Package> = wheels.iter().map(|(package, _)| package.clone()).collect();
    let home = base.join("home");
    fs_err::create_dir(&home).unwrap();
    let mut settings = index.settings();
    settings.insert("HOME".into(), home.to_string());
    let origin = origin(&base.join("scratch"), settings);
    let fetched = fetch(&packages, &origin).unwrap();
    assert_eq!(
        fetched.iter().map(|f| f.pinned.package().name.as_str()).collect::<Vec<_>>(),
        ["one", "two", "three"]
    );
    for Fetched { path, pinned, yanked, discarded } in &fetched {
        assert_eq!(*path, base.join("scratch/wheels").join(&pinned.package().file));
        assert_eq!((yanked, discarded.len()), (&None, 0));
    }
    assert_eq!(index.requests().len(), 3);
    fetch(&packages, &Origin { offline: true, ..origin }).unwrap();
    assert_eq!(index.requests().len(), 3, "what lies in the scratch is not asked for again");
    assert_eq!(files(&home), BTreeSet::new(), "nothing is written to HOME");
    assert!(!base.join("scratch/pip/one/tmp").exists() && !base.join("scratch/pip/one/out").exists());
}

#[test]
fn f62_a_cut_download_ends_with_the_right_bytes() {
    for range in [Range::Ignored, Range::RoundedDown] {
        let (_folder, base) = scratch();
        let (package, bytes) = wheel("demo", "1.0", 1);
        let index = Index::serve(vec![served(&package, &bytes)], range, 1);
        let fetched = one(&package, &origin(&base, index.settings())).unwrap();
        assert_eq!(fs_err::read(&fetched.path).unwrap(), bytes, "{range:?}");
        assert_eq!(files(&base.join("wheels")).len(), 1);
        assert!(index.requests().len() >= 2, "{:?}", index.requests());
    }
}

#[test]
fn f62_a_download_that_is_always_cut_leaves_no_file() {
    let (_folder, base) = scratch();
    let (package, bytes) = wheel("demo", "1.0", 1);
    let index = Index::serve(vec![served(&package, &bytes)], Range::Ignored, usize::MAX);
    let failure = refusal(&package, &origin(&base, index.settings()));
    assert!(matches!(failure.code, "E-FETCH-CUT" | "E-FETCH-HASH"), "{failure}");
    assert_eq!(files(&base.join("wheels")), BTreeSet::new());
    let Failure { hint, found, .. } = *failure;
    assert!(hint.unwrap().contains("logs/fetch-demo.log") && found.is_some());
}

#[test]
fn f64_a_withdrawn_release_is_used_and_its_reason_kept() {
    let (_folder, base) = scratch();
    let (package, bytes) = wheel("demo", "1.0", 1);
    let withdrawn = Served { yanked: Some("broken on tuesdays".into()), ..served(&package, &bytes) };
    let index = Index::serve(vec![withdrawn], Range::Ignored, 0);
    let fetched = one(&package, &origin(&base, index.settings())).unwrap();
    assert_eq!(fetched.yanked.as_deref(), Some("broken on tuesdays"));
}

#[test]
fn f64_an_absent_release_is_an_error_and_no_other_is_taken() {
    let (_folder, base) = scratch();
    let (package, _) = wheel("demo", "1.0", 1);
    let (next, bytes) = wheel("demo", "1.0.1", 1);
    let index = Index::serve(vec![served(&next, &bytes)], Range::Ignored, 0);
    let failure = refusal(&package, &origin(&base, index.settings()));
    assert_eq!((failure.code, failure.exit.code()), ("E-FETCH-ABSENT", 3));
    assert!(failure.what.contains("demo 1.0"), "{failure}");
    assert_eq!(files(&base.join("wheels")), BTreeSet::new());
    assert_eq!(index.requests(), Vec::<String>::new());
}

#[test]
fn other_bytes_under_the_pinned_name_are_refused() {
    let (_folder, base) = scratch();
    let (package, _) = wheel("demo", "1.0", 1);
    let (_, other) = wheel("demo", "1.0", 2);
    let index = Index::serve(vec![served(&package, &other)], Range::Ignored, 0);
    let failure = refusal(&package, &origin(&base, index.settings()));
    assert_eq!((failure.code, failure.exit.code()), ("E-FETCH-HASH", 1), "{failure}");
    assert_eq!(index.requests().len(), 2, "it is fetched once more before it is refused");
    assert_eq!(files(&base.join("wheels")), BTreeSet::new());
}

#[test]
fn no_index_is_no_judgement() {
    let (_folder, base) = scratch();
    let (package, _) = wheel("demo", "1.0", 1);
    let settings = Index::serve(vec![], Range::Ignored, 0).settings();
    let failure = refusal(&package, &origin(&base, settings));
    assert_eq!((failure.code, failure.exit.code()), ("E-FETCH-NETWORK", 3), "{failure}");
}

#[test]
fn f66_a_damaged_wheel_is_fetched_anew_or_named() {
    let (_folder, base) = scratch();
    let (package, bytes) = wheel("demo", "1.0", 1);
    let index = Index::serve(vec![served(&package, &bytes)], Range::Ignored, 0);
    let origin = origin(&base, index.settings());
    let path = one(&package, &origin).unwrap().path;
    flip(&path);
    let failure = refusal(&package, &Origin { offline: true, ..origin.clone() });
    assert_eq!((failure.code, failure.exit.code()), ("E-HASH-WHEEL", 1));
    assert!(failure.found.unwrap().contains(path.as_str()));
    let fetched = one(&package, &origin).unwrap();
    assert!(fetched.discarded[0].contains(path.as_str()), "{:?}", fetched.discarded);
    assert_eq!(fs_err::read(path).unwrap(), bytes);
}

/// The file of pip's private cache that holds a wheel.
fn cache_entry(base: &Utf8Path, size: usize) -> Utf8PathBuf {
    let cache = base.join("pip/demo/cache");
    let large = files(&cache)
        .into_iter()
        .find(|file| fs_err::metadata(cache.join(file)).unwrap().len() >= size as u64);
    cache.join(large.expect("pip keeps the wheel in its cache"))
}

#[test]
fn f66_a_damaged_cache_entry_is_dropped_and_fetched_once_more() {
    let (_folder, base) = scratch();
    let (package, bytes) = wheel("demo", "1.0", 1);
    let index = Index::serve(vec![served(&package, &bytes)], Range::Ignored, 0);
    let origin = origin(&base, index.settings());
    let path = one(&package, &origin).unwrap().path;
    let entry = cache_entry(&base, bytes.len());
    flip(&entry);
    fs_err::remove_file(&path).unwrap();
    let fetched = one(&package, &origin).unwrap();
    assert_eq!(fs_err::read(&path).unwrap(), bytes);
    assert!(fetched.discarded[0].contains(entry.as_str()), "{:?}", fetched.discarded);
    assert_eq!(index.requests().len(), 2);
}

#[test]
fn a_wheelhouse_is_the_only_source_and_must_match_the_lock() {
    let (_folder, base) = scratch();
    let (package, bytes) = wheel("demo", "1.0", 1);
    let house = base.join("house");
    let origin =
        Origin { wheelhouse: Some(house.clone()), ..origin(&base.join("scratch"), Variables::new()) };
    assert_eq!(refusal(&package, &origin).code, "E-FETCH-OFFLINE");
    plant(&house.join(&package.file), &bytes);
    assert_eq!(one(&package, &origin).unwrap().path, house.join(&package.file));
    plant(&house.join(&package.file), &bytes[1..]);
    assert_eq!(refusal(&package, &origin).code, "E-LOCK-SIZE");
    // T075: another version's bytes under the pinned name, cut or filled to the pinned size.
    let mut other = wheel("demo", "1.1", 1).1;
    other.resize(bytes.len(), 0);
    plant(&house.join(&package.file), &other);
    assert_eq!(refusal(&package, &origin).code, "E-HASH-WHEEL");
    assert!(!base.join("scratch").exists());
}

#[test]
fn offline_without_the_file_is_a_clear_error() {
    let (_folder, base) = scratch();
    let (package, _) = wheel("demo", "1.0", 1);
    let failure = refusal(&package, &Origin { offline: true, ..origin(&base, Variables::new()) });
    assert_eq!((failure.code, failure.exit.code()), ("E-FETCH-OFFLINE", 3));
    assert!(failure.found.unwrap().contains("wheels/demo-1.0-py3-none-any.whl"));
}

/// A lock of one package at a fresh path.
fn lock_of(base: &Utf8Path, package: &Package) -> (Utf8PathBuf, Lock) {
    let lock = Lock { version: 1, packages: vec![package.clone()] };
    let path = base.join("toolchain.lock");
    plant(&path, lock.to_text().as_bytes());
    (path, lock)
}

#[test]
fn the_lock_is_compared_with_the_index() {
    let (_folder, base) = scratch();
    let (package, bytes) = wheel("demo", "1.0", 1);
    let index = Index::serve(vec![served(&package, &bytes)], Range::Ignored, 0);
    let origin = origin(&base.join("scratch"), index.settings());
    let (_, lock) = lock_of(&base, &package);
    assert_eq!(lock_command::check(&lock, &origin).unwrap()[0].package, package);
    let (_, other) = lock_of(&base, &Package { sha256: requal::Digest::of(b""), ..package });
    let failure = lock_command::check(&other, &origin).unwrap_err();
    assert_eq!((failure.code, failure.exit.code()), ("E-LOCK-INDEX", 1), "{failure}");
}

#[test]
fn lock_update_writes_the_newest_release_in_canonical_form() {
    let (_folder, base) = scratch();
    let (old, old_bytes) = wheel("demo", "1.0", 1);
    let (new, new_bytes) = wheel("demo", "1.1", 1);
    let index = Index::serve(vec![served(&old, &old_bytes), served(&new, &new_bytes)], Range::Ignored, 0);
    let origin = origin(&base.join("scratch"), index.settings());
    let (path, _) = lock_of(&base, &old);
    let wrote = lock_command::update(&path, "demo", &origin).unwrap();
    assert_eq!((&wrote.version, &wrote.file, wrote.sha256), (&new.version, &new.file, new.sha256));
    let text = fs_err::read_to_string(&path).unwrap();
    assert_eq!(Lock::parse("toolchain.lock", &text).unwrap().to_text(), text);
    lock_command::update(&path, "demo==1.0", &origin).unwrap();
    let back = Lock::parse("toolchain.lock", &fs_err::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(back.packages[0].sha256, old.sha256);
    assert_eq!(lock_command::update(&path, "other", &origin).unwrap_err().code, "E-LOCK-NAME");
}

#[test]
fn the_committed_lock_agrees_with_the_index() {
    let (_folder, base) = scratch();
    let lock = kit::lock();
    let checked = lock_command::check(&lock, &origin(&base, xtask::sys::env::pip_settings())).unwrap();
    assert_eq!(checked.into_iter().map(|checked| checked.package).collect::<Vec<_>>(), lock.packages);
}
