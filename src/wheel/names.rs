//! Entry names: printable ASCII, relative, without a second spelling of any path.

use std::collections::BTreeMap;

use super::Fault;
use super::frame::Entry;
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
        return name(&format!("the name holds {odd:?}: names here are printable ASCII, each with one spelling"));
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
    if text.len() > MAX_PATH_BYTES || components.clone().any(|component| component.len() > MAX_COMPONENT_BYTES) {
        return name("the name is too long");
    }
    None
}

/// No path twice, none that differs in letter case only, none that is a file here and a folder there.
pub(super) fn check(file: &str, entries: &[Entry<'_>]) -> Outcome<()> {
    let mut failures = Vec::new();
    let mut known = Paths::default();
    for entry in entries {
        if let Err((code, fault)) = known.add(&entry.path, entry.folder) {
            failures.push(fault.at(code, file, &entry.path));
        }
    }
    Failure::all(failures)
}

/// The paths of one or more wheels, with the folders that they imply.
#[derive(Default)]
pub(crate) struct Paths {
    /// Lower-case path to the path as first seen, and whether it is a folder.
    seen: BTreeMap<String, (String, bool)>,
}

impl Paths {
    /// Adds the path of a file or folder, unless it collides.
    pub(super) fn add(&mut self, path: &str, folder: bool) -> Result<(), (&'static str, Fault)> {
        for (end, _) in path.match_indices('/') {
            self.collide(&path[..end], true)?;
        }
        let before = self.seen.len();
        self.collide(path, folder)?;
        match folder || self.seen.len() > before {
            true => Ok(()),
            false => Err(("E-ZIP-DUPLICATE", Fault::new("the path stands twice in the archive"))),
        }
    }

    fn collide(&mut self, path: &str, folder: bool) -> Result<(), (&'static str, Fault)> {
        let (first, was_folder) =
            self.seen.entry(path.to_ascii_lowercase()).or_insert_with(|| (path.to_owned(), folder));
        if first != path {
            return Err(("E-ZIP-NAME", Fault::new(format!("differs from {first} in letter case only"))));
        }
        match *was_folder == folder {
            true => Ok(()),
            false => Err(("E-ZIP-NAME", Fault::new(format!("{path} is a file and a folder")))),
        }
    }
}
