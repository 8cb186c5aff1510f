//! What the bytes of objects and modules hold, judged again by the build's own judge and compared with the receipt.

use super::compare;
use super::layout::Item;
use crate::judge::{self, DeclaredModule};
use crate::receipt::{Build, Module, Unit};
use crate::verify::Finding;
use crate::{Digest, parallel};

/// What came of a list of objects or modules, each read once.
pub(super) struct Judged {
    /// Findings of bytes that are not the recorded ones, or not there.
    pub(super) bytes: Vec<Finding>,
    /// Findings of what the recorded bytes hold.
    pub(super) contents: Vec<Finding>,
    /// How many were judged.
    pub(super) count: usize,
}

impl Judged {
    /// Compares `items` with their bytes and hands those that match to `judge`, with their number.
    fn of(items: &[Item], judge: impl Fn(usize, &Item, &[u8]) -> Vec<Finding> + Sync) -> Self {
        let numbered: Vec<(usize, &Item)> = items.iter().enumerate().collect();
        let looked =
            parallel::map(&numbered, |(i, item)| compare::bytes(item).map(|bytes| judge(*i, item, &bytes)));
        let mut judged = Self { bytes: vec![], contents: vec![], count: 0 };
        for look in looked {
            match look {
                Ok(findings) => {
                    judged.count += 1;
                    judged.contents.extend(findings);
                }
                Err(finding) => judged.bytes.push(finding),
            }
        }
        judged
    }
}

/// The objects of all units.
pub(super) fn objects(build: &Build, items: &[Item]) -> Judged {
    Judged::of(items, |i, item, bytes| object(i, &build.units[i], item, bytes))
}

/// The modules.
pub(super) fn modules(build: &Build, items: &[Item]) -> Judged {
    Judged::of(items, |i, item, bytes| module(build, i, &build.modules[i], item, bytes))
}

fn object(i: usize, unit: &Unit, item: &Item, bytes: &[u8]) -> Vec<Finding> {
    match judge::object(item.path.as_str(), bytes, &unit.targets) {
        Ok(found) => {
            let found = found.map(|code| code.sha256);
            let pointer = format!("/predicate/build/units/{i}/device_code_sha256");
            device_code(pointer, unit.device_code_sha256, found).into_iter().collect()
        }
        Err(failure) => Finding::refusals(&format!("/predicate/build/units/{i}"), *failure),
    }
}

fn module(build: &Build, i: usize, told: &Module, item: &Item, bytes: &[u8]) -> Vec<Finding> {
    let here = format!("/predicate/build/modules/{i}");
    let exports: Vec<String> = told.exports.iter().map(ToString::to_string).collect();
    let needed: Vec<String> = told.needed.iter().map(ToString::to_string).collect();
    let declared = DeclaredModule { targets: &build.targets, exports: &exports, libraries: &needed };
    let found = match judge::module(item.path.as_str(), bytes, declared) {
        Ok(found) => found,
        Err(failure) => return Finding::refusals(&here, *failure),
    };
    let mut findings = Vec::new();
    let pointer = format!("{here}/device_code_sha256");
    findings.extend(device_code(pointer, Some(told.device_code_sha256), Some(found.device_code.sha256)));
    let lists = [
        ("E-MODULE-EXPORTS", "exports", exports, found.exports),
        ("E-MODULE-NEEDED", "needed", needed, found.needed),
    ];
    for (code, field, told, found) in lists.into_iter().filter(|(_, _, told, found)| told != found) {
        let (told, found) = (told.join(", "), found.join(", "));
        findings.push(Finding::mismatch(code, format!("{here}/{field}"), told, found));
    }
    findings
}

fn device_code(pointer: String, told: Option<Digest>, found: Option<Digest>) -> Option<Finding> {
    let shown = |digest: Option<Digest>| digest.map_or("no device code".to_owned(), |it| it.to_string());
    (told != found).then(|| Finding::mismatch("E-DEVICE-CODE", pointer, shown(told), shown(found)))
}
