//! One file at a time against what the receipt says of it.

use std::collections::BTreeSet;

use camino::Utf8Path;
use walkdir::WalkDir;

use super::layout::Item;
use crate::tree::{Link, TreeFile};
use crate::verify::Finding;
use crate::verify::files::{self, Unseen};
use crate::{Digest, Outcome, parallel};

/// Findings of everything among `items` that is not as the receipt says; largest files first, on all cores. `system`
/// files may be links, and another one is no lie.
pub(super) fn differences(items: &[Item], system: bool) -> Vec<Finding> {
    let mut largest_first: Vec<&Item> = items.iter().collect();
    largest_first.sort_by_key(|item| std::cmp::Reverse(item.size_bytes));
    parallel::map(&largest_first, |item| difference(item, system)).into_iter().flatten().collect()
}

/// Listed links that are not there; another link in the place of one is extra.
pub(super) fn lost(root: &Utf8Path, links: &[Link], pointer: &str) -> Vec<Finding> {
    let lost = links.iter().enumerate();
    let lost = lost.filter(|(_, link)| fs_err::symlink_metadata(root.join(&link.path)).is_err());
    lost.map(|(i, link)| {
        Finding::unverifiable("E-EVIDENCE-ABSENT", format!("{pointer}/{i}"), &link.path, "nothing")
    })
    .collect()
}

/// Files and links below `root` that no list names.
pub(super) fn extra(
    root: &Utf8Path,
    files: &[TreeFile],
    links: &[Link],
    pointer: &str,
) -> Outcome<Vec<Finding>> {
    if fs_err::symlink_metadata(root).is_err() {
        return Ok(vec![]);
    }
    let files: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut findings = Vec::new();
    for entry in WalkDir::new(root).follow_links(false).sort_by_file_name() {
        let entry = entry.map_err(std::io::Error::from)?;
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_string_lossy().into_owned();
        let kind = entry.file_type();
        let known = if kind.is_symlink() {
            let target = fs_err::read_link(entry.path())?;
            links.iter().any(|link| link.path == path && target.to_str() == Some(&*link.target))
        } else {
            kind.is_dir() || files.contains(path.as_str())
        };
        if !known {
            findings.push(Finding::mismatch("E-TREE-EXTRA", pointer, "no file that the list lacks", path));
        }
    }
    Ok(findings)
}

fn difference(item: &Item, system: bool) -> Option<Finding> {
    let seen = match files::hash(&item.path, item.size_bytes, system) {
        Ok(seen) => seen,
        Err(why) => return Some(unseen(item, why, system)),
    };
    if seen.sha256 != item.sha256 {
        return Some(other(item, item.sha256, seen.sha256, system));
    }
    if let Some(size) = item.size_bytes.filter(|size| *size != seen.size_bytes) {
        return Some(other(item, bytes_of(size), bytes_of(seen.size_bytes), system));
    }
    let mode = item.mode.filter(|mode| *mode != seen.mode)?;
    let found = format!("mode {:o}  ({})", seen.mode, item.path);
    let pointer = format!("{}/mode", item.pointer);
    Some(Finding::mismatch("E-TREE-MODE", pointer, format!("mode {mode:o}"), found))
}

/// The bytes of `item` if they are the recorded ones, for a judgement of the same bytes.
pub(super) fn bytes(item: &Item) -> Result<Vec<u8>, Finding> {
    let size_bytes = item.size_bytes.unwrap_or_default();
    let bytes = files::read(&item.path, size_bytes).map_err(|why| unseen(item, why, false))?;
    let sha256 = Digest::of(&bytes);
    if sha256 == item.sha256 { Ok(bytes) } else { Err(other(item, item.sha256, sha256, false)) }
}

fn bytes_of(size: u64) -> String {
    format!("{size} bytes")
}

/// The finding that `item` is there and another one.
pub(super) fn other(item: &Item, expected: impl ToString, found: impl ToString, system: bool) -> Finding {
    // Another system's file is no lie of the receipt: this machine is not the builder's.
    let make = if system { Finding::unverifiable } else { Finding::mismatch };
    let found = format!("{}  ({})", found.to_string(), item.path);
    make(item.code, item.pointer.clone(), expected.to_string(), found)
}

/// The finding that `item` was not read.
pub(super) fn unseen(item: &Item, why: Unseen, system: bool) -> Finding {
    let absent = |found: String| {
        let found = format!("{found}  ({})", item.path);
        Finding::unverifiable("E-EVIDENCE-ABSENT", item.pointer.clone(), item.sha256, found)
    };
    match why {
        Unseen::Size(found) => {
            other(item, bytes_of(item.size_bytes.unwrap_or_default()), bytes_of(found), system)
        }
        Unseen::Type(found) => other(item, "a regular file", found, system),
        Unseen::Absent => absent("nothing".to_owned()),
        Unseen::Error(error) => absent(error.to_string()),
    }
}
