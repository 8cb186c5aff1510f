//! Entry names: printable ASCII, relative, without a second spelling of any path.

use std::collections::BTreeSet;

use super::Fault;
use super::frame::Entry;
use crate::tree::second_spelling;
use crate::{Failure, Outcome};

/// Longest path and longest component of an entry.
const MAX_PATH_BYTES: usize = 1024;
const MAX_COMPONENT_BYTES: usize = 255;

/// The fault of one raw entry name, if it has one, and the code of its kind. A folder's name ends in `/`.
pub(super) fn fault(raw: &[u8]) -> Option<(&'static str, Fault)> {
    let name = |what: &str| Some(("E-ZIP-NAME", Fault::new(what)));
    let Ok(text) = std::str::from_utf8(raw) else { return name("the name is not UTF-8") };
    if text.is_empty() {
        return name("the name is empty");
    }
    if text.starts_with('/') {
        return name("the name is absolute");
    }
    if let Some(odd) = text.chars().find(|c| !matches!(c, ' '..='~')) {
        return name(&format!(
            "the name holds {odd:?}: names here are printable ASCII, each with one spelling"
        ));
    }
    if let Some(odd) = text.chars().find(|c| "\\:\"*?<>|".contains(*c)) {
        return name(&format!("the name holds {odd:?}: a drive, a pattern or another system's separator"));
    }
    let components = text.strip_suffix('/').unwrap_or(text).split('/');
    if components.clone().any(|component| component == "..") {
        return Some(("E-ZIP-PATH", Fault::new("the name leads out of the tree")));
    }
    if components.clone().any(|component| component.is_empty() || component == ".") {
        return name("the name has an empty or a `.` component");
    }
    if text.len() > MAX_PATH_BYTES
        || components.clone().any(|component| component.len() > MAX_COMPONENT_BYTES)
    {
        return name("the name is too long");
    }
    None
}

/// No path twice, none that differs in letter case only, none that is a file here and a folder there.
pub(super) fn check(file: &str, entries: &[Entry<'_>]) -> Outcome<()> {
    let mut failures = Vec::new();
    let mut paths = BTreeSet::new();
    for entry in entries {
        if !paths.insert(&entry.path) {
            let fault = Fault::new("the path stands twice in the archive");
            failures.push(fault.at("E-ZIP-DUPLICATE", file, &entry.path));
        }
    }
    // A folder is written as its own first entry would be, so that both kinds obey one rule.
    let spelled: Vec<String> =
        entries.iter().map(|e| if e.folder { format!("{}/", e.path) } else { e.path.clone() }).collect();
    failures.extend(second_spelling(spelled.iter().map(String::as_str)).map(|(first, second)| {
        let fault = Fault::differs("one path has two spellings or types", first, second);
        fault.at("E-ZIP-NAME", file, second)
    }));
    Failure::all(failures)
}
