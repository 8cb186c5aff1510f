//! The kept dependency files: what the compiler said it read is in the closure.

use std::collections::BTreeSet;

use camino::Utf8Path;

use super::super::{Check, Finding, State, files};
use super::{DEPFILES, Ground};
use crate::certificate::{FILE, Unit};
use crate::command::Place;
use crate::depfile;

/// Largest dependency file: no unit reads a million files.
const LONGEST_BYTES: u64 = 16 << 20;

/// Each dependency file that the scratch `tree` keeps, against the closure of its unit. At a real path they name a place of
/// another machine, and say nothing here.
pub(super) fn check(ground: &Ground<'_>, tree: &Utf8Path) -> Vec<Check> {
    if !ground.build.place.sandboxed {
        let found = "dependency files of a build at a real path";
        return vec![DEPFILES.unseen(State::Asserted, FILE, "E-ASSERTED", found)];
    }
    let units = &ground.certificate.units;
    let findings: Vec<Finding> =
        units.iter().enumerate().filter_map(|(i, unit)| depfile(ground, tree, i, unit)).collect();
    DEPFILES.judge(FILE, units.len(), findings)
}

fn depfile(ground: &Ground<'_>, tree: &Utf8Path, i: usize, unit: &Unit) -> Option<Finding> {
    let pointer = format!("/predicate/units/{i}/files");
    let path = tree.join("build").join(&*unit.tree).join("dep").join(format!("{}.d", unit.object));
    let unseen = |found: String| {
        Some(Finding::unverifiable("E-EVIDENCE-ABSENT", pointer.clone(), "a kept dependency file", found))
    };
    let bytes = match files::bytes(&path, LONGEST_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return unseen(format!("no {path}")),
        Err(failure) => return unseen(failure.what),
    };
    let read = match depfile::read(&unit.object, &String::from_utf8_lossy(&bytes), &unit.object) {
        Ok(read) => read,
        Err(failure) => {
            let found = failure.found.clone().unwrap_or_default();
            return Some(Finding::mismatch(
                "E-DEPFILE",
                pointer,
                "a dependency file of this object",
                format!("{}: {found}", failure.what),
            ));
        }
    };
    let closure = ground.certificate.closure(unit)?;
    let known: BTreeSet<String> = closure.files.keys().map(ToString::to_string).collect();
    let place = Place::fixed();
    let named = |path: &String| {
        let below = |at: &str| Utf8Path::new(path).strip_prefix(at).ok().map(Utf8Path::to_string);
        below(&place.tree)
            .map(|path| format!("tree:{path}"))
            .or_else(|| below(&place.toolchain).map(|path| format!("toolchain:{path}")))
    };
    let missing = read.iter().filter_map(named).find(|at| !known.contains(at))?;
    Some(Finding::mismatch("E-DEPFILE", pointer, missing, "a closure without it"))
}
