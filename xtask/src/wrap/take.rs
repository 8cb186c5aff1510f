//! Taking another tree's object at the time of use: everything that its compile depended on is looked at again, here and
//! now; the object is hashed and copied from one opened file.

use std::collections::BTreeMap;
use std::io::Read as _;

use camino::Utf8Path;
use requal::closure::{Closure, Found, Located, names_digest};
use requal::receipt::{Reason, Root};
use requal::reuse::{Answer, Decided, decide};
use requal::unit::{Taking, UnitRecord};
use requal::{Digest, Outcome, judge};

use super::stamps::Stamps;
use super::{Step, log_path, unused};
use crate::sys::fs;

/// How it ended.
pub(super) enum Taken {
    /// The object lies in the step's folder, and this is its record.
    Object(Box<UnitRecord>),
    /// It must be compiled, for this reason.
    Not(Decided),
}

/// Takes the object of `taking` if the rule still holds.
///
/// # Errors
/// `E-IO`, and what judging the object refuses.
pub(super) fn take(step: &Step, taking: &Taking) -> Outcome<Taken> {
    let record = &taking.record;
    let (invocation, bar) = step.invocation()?;
    if let Some(bar) = bar {
        return Ok(Taken::Not(Decided::compiled_about(bar.reason, bar.about)));
    }
    let (stamps, links) = (Stamps::of(step.build()), BTreeMap::new());
    let mut eye = Eye { step, closure: &record.closure, stamps, links };
    let answer = decide(record.recorded(), &invocation, &taking.names, |at| eye.look(at));
    let (closure_sha256, test_defines) = match answer {
        Answer::Take { closure_sha256, test_defines } => (closure_sha256, test_defines),
        Answer::Compile(decided) => {
            let about = decided.about.unwrap_or_default();
            return Ok(Taken::Not(Decided { about: Some(about), reason: Reason::ChangedAtUse, ..decided }));
        }
    };
    let temporary = step.fresh_temporary()?;
    if test_defines {
        let pair = unused::Pair { recorded: &record.invocation.argv, wanted: &invocation.argv };
        if let Some(decided) = unused::test(step, &temporary, pair, &taking.names, closure_sha256)? {
            return Ok(Taken::Not(decided));
        }
    }
    let bytes = opened_once(Utf8Path::new(&taking.object));
    let Some(bytes) = bytes.filter(|bytes| Digest::of(bytes) == record.object_sha256) else {
        return Ok(Taken::Not(Decided::compiled_about(Reason::ChangedAtUse, &step.output)));
    };
    judge::object(&step.output, &bytes, &step.targets)?;
    fs::write(&step.result(), &bytes)?;
    fs::write(&log_path(step.build(), &step.output), b"taken from the other tree: nothing ran\n")?;
    let names = if test_defines { taking.names.iter().cloned().collect() } else { Vec::new() };
    let read: Vec<String> = record.closure.files.keys().map(|at| eye.path(at)).collect();
    let depfile_sha256 = step.keep_rule(&read)?;
    let decided = Decided::reused(names);
    let own = UnitRecord { key: step.key, invocation, decided, depfile_sha256, ..record.clone() };
    Ok(Taken::Object(Box::new(own)))
}

/// The object's bytes, read from one descriptor: what is hashed is what is copied.
fn opened_once(path: &Utf8Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fs_err::File::open(path).ok()?.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// What stands at places now.
struct Eye<'a> {
    step: &'a Step,
    closure: &'a Closure,
    stamps: Stamps,
    /// Places that were looked at for a link, with what it holds.
    links: BTreeMap<Located, Option<String>>,
}

impl Eye<'_> {
    fn path(&self, at: &Located) -> String {
        let place = &self.step.place;
        match at.root {
            Root::Tree => format!("{}/{}", place.tree, at.path),
            Root::Toolchain => format!("{}/{}", place.toolchain, at.path),
            Root::Host => format!("{}/{}", place.host, at.path),
            Root::System => format!("/{}", at.path),
        }
    }

    fn look(&mut self, at: &Located) -> Found {
        if let Some(holds) = self.new_link(at) {
            return Found::Link(holds);
        }
        let path = self.path(at);
        let path = Utf8Path::new(&path);
        look(path, As::of(self.closure, at), &self.stamps)
    }

    /// What a link holds at `at` or on the way there, where the other compile followed none. Even if it leads to the same
    /// bytes: nvcc makes identifiers from the path that it leads to.
    fn new_link(&mut self, at: &Located) -> Option<String> {
        let ends = at.path.match_indices('/').map(|(end, _)| end).chain([at.path.len()]);
        ends.map(|end| &at.path[..end]).find_map(|part| {
            let part = Located::new(at.root, part).ok()?;
            if self.closure.links.contains_key(&part) {
                return None;
            }
            let path = self.path(&part);
            let read = || Some(fs_err::read_link(path).ok()?.to_string_lossy().into_owned());
            self.links.entry(part).or_insert_with(read).clone()
        })
    }
}

/// As what a place is looked at. A file that a room shows where the machine has a link is a file all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum As {
    /// As a link, unfollowed.
    Link,
    /// As a folder whose names count.
    Listing,
    /// As whatever a compile would open there.
    Opened,
}

impl As {
    /// As what `closure` holds the place `at`.
    pub(crate) fn of(closure: &Closure, at: &Located) -> Self {
        if closure.links.contains_key(at) {
            Self::Link
        } else if closure.listed.contains_key(at) {
            Self::Listing
        } else {
            Self::Opened
        }
    }
}

/// What stands at `path`.
pub(crate) fn look(path: &Utf8Path, seen_as: As, stamps: &Stamps) -> Found {
    let found = match seen_as {
        As::Link => fs_err::symlink_metadata(path),
        As::Listing | As::Opened => fs_err::metadata(path),
    };
    let found = match found {
        Ok(found) => found,
        Err(error) if absent(&error) => return Found::Absent,
        Err(error) => return Found::Other(format!("{:?}", error.kind())),
    };
    let names = || fs::names(path).ok().map(|names| names_digest(names.iter().map(String::as_str)));
    let seen = if found.is_symlink() {
        fs_err::read_link(path)
            .ok()
            .and_then(|holds| holds.into_os_string().into_string().ok())
            .map(Found::Link)
    } else if found.is_file() {
        stamps.file(path).ok().map(Found::File)
    } else if found.is_dir() {
        Some(Found::Folder(if seen_as == As::Listing { names() } else { None }))
    } else {
        None
    };
    seen.unwrap_or_else(|| Found::Other("unreadable".to_owned()))
}

fn absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}
