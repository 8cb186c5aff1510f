//! A tree: a source folder with a digest. Names, modes, sizes and contents count; mtimes follow from names.

mod check;
mod listing;
mod paths;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Hasher};
use crate::receipt::{RelativePath, checked_path};

pub use check::{Expected, Known, State};
pub use listing::{Found, Kind, list};
pub use paths::second_spelling;

/// One regular file of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeFile {
    /// Path relative to the tree's root, with `/`, no `.` or `..`.
    #[serde(with = "checked_path")]
    #[schemars(with = "RelativePath")]
    pub path: String,
    /// Permission bits, such as 0o755 = 493.
    pub mode: u32,
    /// Size of the content.
    pub size_bytes: u64,
    /// SHA-256 of the content.
    pub sha256: Digest,
}

/// A symbolic link of a tree that the tool itself makes, because no package has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Path of the link, relative to the tree's root.
    #[serde(with = "checked_path")]
    #[schemars(with = "RelativePath")]
    pub path: String,
    /// What the link says, relative to its own folder.
    #[serde(with = "checked_path")]
    #[schemars(with = "RelativePath")]
    pub target: String,
}

/// All files of a tree, sorted by path (byte order), each path once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The files.
    pub files: Vec<TreeFile>,
}

/// The fixed epoch of all mtimes that we set: 2000-01-01T00:00:00Z.
pub const EPOCH_S: i64 = 946_684_800;

impl Tree {
    /// A tree of `files`, which are sorted here.
    #[must_use]
    pub fn new(mut files: Vec<TreeFile>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Self { files }
    }

    /// SHA-256 over a domain tag and, for each file, length-prefixed path, mode and content digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new();
        hasher.update(b"urn:requal:tree:v1\0");
        for file in &self.files {
            hasher.part(&file.path);
            hasher.update(&file.mode.to_le_bytes());
            hasher.update(file.sha256.as_bytes());
        }
        hasher.finish()
    }
}

/// The mtime (seconds since 1970) that every file of every tree gets: [`EPOCH_S`] plus 0 to 2^28 - 1 s from a hash of
/// the tree-relative path. Equal on every machine, different between paths, because gcc takes `#pragma once` files
/// of equal bytes, size and mtime for one file (facts/nvcc-and-reuse.md, section 9).
#[must_use]
pub fn mtime_s(path: &str) -> i64 {
    let digest = Digest::of(path.as_bytes());
    let [a, b, c, d, ..] = *digest.as_bytes();
    EPOCH_S + i64::from(u32::from_le_bytes([a, b, c, d & 0x0f]))
}

/// Whether `path` is relative, without `.`, `..` or empty parts, and of characters that neither a shell nor Ninja nor a
/// dependency file reads otherwise: letters, digits, `_`, `-`, `.`, `+`.
#[must_use]
pub fn is_clean_path(path: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
    path.split('/').all(|part| !matches!(part, "" | "." | "..") && part.chars().all(allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, mode: u32, content: &[u8]) -> TreeFile {
        TreeFile { path: path.into(), mode, size_bytes: content.len() as u64, sha256: Digest::of(content) }
    }

    #[test]
    fn every_ingredient_changes_the_digest() {
        let tree = Tree::new(vec![file("b", 0o644, b"1"), file("a", 0o644, b"2")]);
        assert_eq!(tree, Tree::new(vec![file("a", 0o644, b"2"), file("b", 0o644, b"1")]));
        for other in [
            vec![file("a", 0o644, b"2")],
            vec![file("a", 0o755, b"2"), file("b", 0o644, b"1")],
            vec![file("a", 0o644, b"3"), file("b", 0o644, b"1")],
            vec![file("a", 0o644, b"2"), file("c", 0o644, b"1")],
        ] {
            assert_ne!(tree.digest(), Tree::new(other).digest());
        }
    }

    #[test]
    fn mtimes_follow_from_paths_alone_and_lie_in_the_past() {
        assert_eq!(mtime_s("include/x.h"), mtime_s("include/x.h"));
        assert_ne!(mtime_s("include/x.h"), mtime_s("include/y.h"));
        assert!(mtime_s("include/x.h") < EPOCH_S + (1 << 28));
    }
}
