//! What lies in a folder: type, mode, size and mtime of each entry, without following any link.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use walkdir::WalkDir;

use crate::{Failure, Outcome};

/// The type of a found entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, with what it says.
    Link(String),
    /// A device, socket or pipe.
    Other,
}

/// One entry below a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Path relative to the root, with `/`.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Permission bits, 12 of them.
    pub mode: u32,
    /// Size of the content.
    pub size_bytes: u64,
    /// Modification time in whole seconds since 1970; only a time of 0 ns past the second is ours.
    pub mtime_s: i64,
    /// The part of the modification time below one second.
    pub mtime_ns: i64,
}

/// Everything below `root`, sorted by path; nothing if `root` does not exist.
///
/// # Errors
/// `E-TREE-LINK` or `E-TREE-TYPE` if `root` itself is a link or no folder (exit 1), `E-IO`, or `E-TREE-EXTRA` for a name
/// that is not UTF-8.
pub fn list(root: &Path) -> Outcome<Vec<Found>> {
    match std::fs::symlink_metadata(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(root, &error)),
        Ok(metadata) if metadata.is_symlink() => {
            let target = std::fs::read_link(root).unwrap_or_default();
            return Err(Failure::refused("E-TREE-LINK", format!("{} is a symbolic link", root.display()))
                .expected("a folder")
                .found(target.display())
                .hint(format!("rm {}", root.display())));
        }
        Ok(metadata) if !metadata.is_dir() => {
            return Err(Failure::refused("E-TREE-TYPE", format!("{} is no folder", root.display())));
        }
        Ok(_) => {}
    }
    let mut found = Vec::new();
    for entry in WalkDir::new(root).min_depth(1).follow_links(false) {
        let entry = entry.map_err(|error| Failure::could_not_judge("E-IO", error.to_string()))?;
        let metadata =
            entry.metadata().map_err(|error| Failure::could_not_judge("E-IO", error.to_string()))?;
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let Some(path) = relative.to_str() else {
            let what = format!("{} has a name that is not UTF-8", entry.path().display());
            return Err(Failure::refused("E-TREE-EXTRA", what));
        };
        found.push(one(entry.path(), path, &metadata)?);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn one(full: &Path, path: &str, metadata: &Metadata) -> Outcome<Found> {
    let kind = match metadata.file_type() {
        kind if kind.is_symlink() => {
            let target = std::fs::read_link(full).map_err(|error| io(full, &error))?;
            Kind::Link(target.to_string_lossy().into_owned())
        }
        kind if kind.is_dir() => Kind::Folder,
        kind if kind.is_file() => Kind::File,
        _ => Kind::Other,
    };
    Ok(Found {
        path: path.to_owned(),
        kind,
        mode: metadata.mode() & 0o7777,
        size_bytes: metadata.len(),
        mtime_s: metadata.mtime(),
        mtime_ns: metadata.mtime_nsec(),
    })
}

pub(super) fn io(path: &Path, error: &std::io::Error) -> Box<Failure> {
    Failure::could_not_judge("E-IO", format!("{}: {error}", path.display()))
}
