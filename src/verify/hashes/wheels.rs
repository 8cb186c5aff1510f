//! The wheels' own bytes: each opened as the build opened it, and the toolchain exactly the files of all of them.

use std::collections::BTreeMap;

use camino::Utf8Path;

use crate::lock::{Package, Role};
use crate::parallel;
use crate::receipt::{Build, WheelRow};
use crate::tree::TreeFile;
use crate::verify::Finding;
use crate::verify::files;
use crate::wheel::{Pinned, Wheel};

use super::compare;
use super::layout::Item;

/// What came of all wheels, each read once.
pub(super) struct Opened {
    /// Findings of bytes that are not the recorded ones, or not there.
    pub(super) bytes: Vec<Finding>,
    /// Findings of what the recorded bytes hold.
    pub(super) contents: Vec<Finding>,
    /// How many wheels were opened.
    pub(super) count: usize,
}

/// Opens every wheel of `build` in the folder `wheels`. The files in them are known by RECORD, which the zip's headers
/// must match both ways; they are not inflated, for the toolchain's files are hashed where they were unpacked.
pub(super) fn open(build: &Build, wheels: &Utf8Path) -> Opened {
    let rows: Vec<(usize, &WheelRow)> = build.wheels.iter().enumerate().collect();
    let results = parallel::map(&rows, |(i, row)| one(*i, row, wheels));
    let mut opened = Opened { bytes: vec![], contents: vec![], count: 0 };
    let mut whole = Vec::new();
    for result in results {
        match result {
            Ok((wheel, findings)) => {
                opened.count += 1;
                opened.contents.extend(findings);
                whole.push(wheel);
            }
            Err(Refused::Bytes(finding)) => opened.bytes.push(finding),
            Err(Refused::Contents(findings)) => opened.contents.extend(findings),
        }
    }
    if whole.len() == build.wheels.len() {
        opened.contents.extend(union(build, &whole));
    }
    opened
}

/// Why a wheel was not opened.
enum Refused {
    Bytes(Finding),
    Contents(Vec<Finding>),
}

/// Opens the wheel of row `i`; findings are what its row says otherwise.
fn one(i: usize, row: &WheelRow, wheels: &Utf8Path) -> Result<(Wheel, Vec<Finding>), Refused> {
    let pointer = format!("/predicate/build/wheels/{i}");
    let item = Item {
        path: wheels.join(&*row.file),
        sha256: row.sha256,
        size_bytes: Some(row.size_bytes),
        mode: None,
        pointer: pointer.clone(),
        code: "E-HASH-WHEEL",
    };
    let bytes = files::read(&item.path, row.size_bytes)
        .map_err(|why| Refused::Bytes(compare::unseen(&item, why, false)))?;
    let package = Package {
        name: row.name.to_string(),
        version: row.version.to_string(),
        file: row.file.to_string(),
        size_bytes: row.size_bytes,
        sha256: row.sha256,
        role: Role::Toolchain,
        line: 0,
    };
    let pinned = Pinned::new(bytes, &package).map_err(|failure| {
        let found = failure.found.unwrap_or(failure.what);
        Refused::Bytes(compare::other(&item, row.sha256, found, false))
    })?;
    let refused = |failure| Refused::Contents(Finding::refusals(&pointer, failure));
    let wheel = pinned.open().map_err(|failure| refused(*failure))?.wheel;
    let (files, tree_sha256) = (wheel.tree.files.len() as u64, wheel.tree.digest());
    let at = |field: &str| format!("{pointer}/{field}");
    let mut findings = Vec::new();
    if row.record_sha256 != wheel.record_sha256 {
        let pointer = at("record_sha256");
        findings.push(Finding::mismatch("E-HASH-RECORD", pointer, row.record_sha256, wheel.record_sha256));
    }
    if row.files != files {
        findings.push(Finding::mismatch("E-COUNT", at("files"), row.files, files));
    }
    if row.tree_sha256 != tree_sha256 {
        findings.push(Finding::mismatch("E-TREE-DIGEST", at("tree_sha256"), row.tree_sha256, tree_sha256));
    }
    Ok((wheel, findings))
}

/// The toolchain's list is exactly the files of all wheels.
fn union(build: &Build, wheels: &[Wheel]) -> Vec<Finding> {
    const LIST: &str = "/predicate/build/toolchain/files";
    let mut owned: BTreeMap<&str, (&Wheel, &TreeFile)> = BTreeMap::new();
    let mut findings = Vec::new();
    for wheel in wheels {
        for file in &wheel.tree.files {
            match owned.insert(&file.path, (wheel, file)) {
                Some((first, other)) if other != file => {
                    let expected = format!("{} as in {}", file.path, first.file);
                    let found = format!("another file in {}", wheel.file);
                    findings.push(Finding::mismatch("E-TREE-COLLISION", LIST, expected, found));
                }
                _ => {}
            }
        }
    }
    for (i, listed) in build.toolchain.files.iter().enumerate() {
        let pointer = format!("{LIST}/{i}");
        let found = shown(listed);
        match owned.remove(listed.path.as_str()) {
            Some((_, file)) if file == listed => {}
            Some((_, file)) => {
                findings.push(Finding::mismatch("E-TOOLCHAIN-UNION", pointer, shown(file), found));
            }
            None => {
                findings.push(Finding::mismatch("E-TOOLCHAIN-UNION", pointer, "a file of a wheel", found))
            }
        }
    }
    findings.extend(owned.into_values().map(|(wheel, file)| {
        let expected = format!("{} of {}", file.path, wheel.file);
        Finding::mismatch("E-TOOLCHAIN-UNION", LIST, expected, "a list without it")
    }));
    findings
}

fn shown(file: &TreeFile) -> String {
    format!("{} {}, {} bytes, mode {:o}", file.path, file.sha256, file.size_bytes, file.mode)
}
