//! The closure of a compile: every file that it read, every place where it found nothing, and what else of the machine
//! decided something, each named by a root and a path.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::receipt::{Input, LinkText, RelativePath, Root};

/// A place below a root; its text is `tree:include/a.h`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^(tree|toolchain|host|system):[A-Za-z0-9_.+~=,%/-]+$"))]
pub struct Located {
    /// The root.
    pub root: Root,
    /// The path below it.
    pub path: RelativePath,
}

/// A file of a closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// SHA-256 of the content.
    pub sha256: Digest,
    /// Size of the content.
    pub size_bytes: u64,
    /// Time of the last change, seconds since 1970: line tables hold it, and gcc compares it between `#pragma once` files.
    pub mtime_s: i64,
}

/// What stands at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Absent,
    /// A regular file.
    File(File),
    /// A folder, and the digest of its names ([`names_digest`]).
    Folder(Option<Digest>),
    /// A symbolic link, and what it holds.
    Link(String),
    /// Something else, or something that could not be looked at: no compile may depend on it.
    Other(String),
}

/// What a compile depended on besides its command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closure {
    /// Files that were opened, started, or looked at.
    pub files: BTreeMap<Located, File>,
    /// Places where something was looked for and not found.
    pub absent: BTreeSet<Located>,
    /// Folders that were looked at.
    pub folders: BTreeSet<Located>,
    /// Folders whose entries were read, with the digest of their names.
    pub listed: BTreeMap<Located, Digest>,
    /// Symbolic links that were followed, with what they hold.
    pub links: BTreeMap<Located, LinkText>,
}

impl Located {
    /// The place `path` below `root`.
    ///
    /// # Errors
    /// A sentence, if no record can hold the path.
    pub fn new(root: Root, path: &str) -> Result<Self, String> {
        Ok(Self { root, path: RelativePath::new(path)? })
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.root.word(), self.path)
    }
}

impl From<Located> for String {
    fn from(at: Located) -> Self {
        at.to_string()
    }
}

impl TryFrom<String> for Located {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let refused = || format!("E-PATH: {text:?} is no place such as tree:include/a.h");
        let (word, path) = text.split_once(':').ok_or_else(refused)?;
        let root = Root::ALL.into_iter().find(|root| root.word() == word).ok_or_else(refused)?;
        Self::new(root, path)
    }
}

impl Closure {
    /// The files as rows of a receipt, sorted.
    #[must_use]
    pub fn inputs(&self) -> Vec<Input> {
        let row = |(at, file): (&Located, &File)| Input {
            root: at.root,
            path: at.path.clone(),
            sha256: file.sha256,
            size_bytes: file.size_bytes,
        };
        self.files.iter().map(row).collect()
    }

    /// What it holds of a place; of a folder whose names were not read only that it is there.
    #[must_use]
    pub fn find(&self, at: &Located) -> Option<Found> {
        if let Some(file) = self.files.get(at) {
            return Some(Found::File(*file));
        }
        if let Some(holds) = self.links.get(at) {
            return Some(Found::Link(holds.to_string()));
        }
        if let Some(names) = self.listed.get(at) {
            return Some(Found::Folder(Some(*names)));
        }
        if self.folders.contains(at) {
            return Some(Found::Folder(None));
        }
        self.absent.contains(at).then_some(Found::Absent)
    }

    /// Every place in it.
    pub fn places(&self) -> impl Iterator<Item = &Located> {
        let maps = self.files.keys().chain(self.listed.keys()).chain(self.links.keys());
        maps.chain(&self.absent).chain(&self.folders)
    }
}

/// Digest of the names in a folder: files, links and folders alike.
#[must_use]
pub fn names_digest<'a>(names: impl Iterator<Item = &'a str>) -> Digest {
    let sorted: BTreeSet<&str> = names.collect();
    let mut hasher = crate::digest::Hasher::new();
    hasher.update(b"urn:requal:names:v1\0");
    for name in sorted {
        hasher.part(name);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_one_text() {
        let at = Located::new(Root::Tree, "include/a.h").unwrap();
        assert_eq!(String::from(at.clone()), "tree:include/a.h");
        assert_eq!(Located::try_from("tree:include/a.h".to_owned()), Ok(at));
        for text in
            ["include/a.h", "tree:", "tree:../a", "tree:/a", "forest:a", "tree:a b", "system:home/x/a"]
        {
            assert!(Located::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_framed() {
        let of = |names: &[&str]| names_digest(names.iter().copied());
        assert_eq!(of(&["a", "b"]), of(&["b", "a"]));
        assert_ne!(of(&["ab"]), of(&["a", "b"]));
        assert_ne!(of(&[]), of(&[""]));
    }
}
