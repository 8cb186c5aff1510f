//! A tree on disk against what it must be: every file's content, mode and mtime, every link, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use super::listing::{Found, Kind, io, list};
use super::{Link, Tree, TreeFile, mtime_s};
use crate::{Digest, Failure, Failures, Outcome, parallel};

/// What a tree must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Its files.
    pub tree: Tree,
    /// Its links.
    pub links: Vec<Link>,
}

/// Content digests that are known already, by path, because this process wrote or read the file: each byte is read once.
pub type Known = BTreeMap<String, Digest>;

/// A tree without a wrong entry; what is missing may be put there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Paths of files and links that must be there and are not.
    pub missing: Vec<String>,
    /// Content digests of the files that are there, each equal to the expected one.
    pub known: Known,
}

impl Expected {
    /// Compares the tree at `root` with this. Content is hashed on all cores, except where `known` has its digest.
    ///
    /// # Errors
    /// `E-TREE-EXTRA`, `E-TREE-HASH`, `E-TREE-MODE`, `E-TREE-MTIME`, `E-TREE-LINK`, `E-TREE-TYPE` (exit 1) for everything
    /// that is there and wrong, together; `E-IO`.
    pub fn check(&self, root: &Path, known: &Known) -> Outcome<State> {
        let found = list(root)?;
        let files: BTreeMap<&str, &TreeFile> =
            self.tree.files.iter().map(|file| (file.path.as_str(), file)).collect();
        let links: BTreeMap<&str, &Link> = self.links.iter().map(|link| (link.path.as_str(), link)).collect();
        let folders = self.folders();
        let (mut failures, mut present) = (Vec::new(), Vec::new());
        for entry in &found {
            let path = entry.path.as_str();
            let problem = match (files.get(path), links.get(path), folders.contains(path)) {
                (Some(file), _, _) => {
                    present.push((entry, *file));
                    file_problem(entry, file)
                }
                (_, Some(link), _) => link_problem(entry, link),
                (_, _, true) => kind_problem(entry, &Kind::Folder),
                _ => Some(
                    Failure::refused("E-TREE-EXTRA", format!("{path} is in no RECORD"))
                        .found(shown(&entry.kind)),
                ),
            };
            failures.extend(problem.map(|failure| failure.hint(mend(root, path))));
        }
        let readable = present
            .into_iter()
            .filter(|(entry, file)| entry.kind == Kind::File && entry.size_bytes == file.size_bytes);
        let (now, wrong) = contents(root, &readable.map(|(_, file)| file).collect::<Vec<_>>(), known)?;
        failures.extend(wrong);
        Failure::all(failures)?;
        let there: BTreeSet<&str> = found.iter().map(|entry| entry.path.as_str()).collect();
        let wanted = files.keys().chain(links.keys());
        let missing = wanted.filter(|path| !there.contains(**path)).map(ToString::to_string).collect();
        Ok(State { missing, known: now })
    }

    /// The folders that files and links lie in, outermost first.
    #[must_use]
    pub fn folders(&self) -> BTreeSet<&str> {
        let paths =
            self.tree.files.iter().map(|file| &file.path).chain(self.links.iter().map(|link| &link.path));
        paths.flat_map(|path| path.match_indices('/').map(|(end, _)| &path[..end])).collect()
    }
}

/// Digests of `files` below `root`, and a refusal for each that differs.
fn contents(root: &Path, files: &[&TreeFile], known: &Known) -> Outcome<(Known, Failures)> {
    let mut largest_first: Vec<&TreeFile> = files.to_vec();
    largest_first.sort_by_key(|file| std::cmp::Reverse(file.size_bytes));
    let digests = parallel::map(&largest_first, |file| match known.get(&file.path) {
        Some(digest) => Ok(*digest),
        None => {
            let path = root.join(&file.path);
            let read = File::open(&path).and_then(Digest::of_reader);
            read.map(|(digest, _)| digest).map_err(|error| io(&path, &error))
        }
    });
    let (mut now, mut wrong) = (Known::new(), Vec::new());
    for (file, digest) in largest_first.into_iter().zip(digests) {
        let digest = digest?;
        if digest != file.sha256 {
            let what = format!("content of {} differs from its RECORD", file.path);
            let failure = Failure::refused("E-TREE-HASH", what).expected(file.sha256).found(digest);
            wrong.push(failure.hint(mend(root, &file.path)));
        }
        now.insert(file.path.clone(), digest);
    }
    Ok((now, wrong))
}

fn file_problem(entry: &Found, file: &TreeFile) -> Option<Box<Failure>> {
    let path = &entry.path;
    if let Some(problem) = kind_problem(entry, &Kind::File) {
        return Some(problem);
    }
    if entry.size_bytes != file.size_bytes {
        let failure = Failure::refused("E-TREE-HASH", format!("content of {path} differs from its RECORD"));
        let expected = format!("{} bytes, SHA-256 {}", file.size_bytes, file.sha256);
        return Some(failure.expected(expected).found(format!("{} bytes", entry.size_bytes)));
    }
    if entry.mode != file.mode {
        let failure = Failure::refused("E-TREE-MODE", format!("mode of {path} is not the unpacked one"));
        return Some(failure.expected(format!("{:04o}", file.mode)).found(format!("{:04o}", entry.mode)));
    }
    if (entry.mtime_s, entry.mtime_ns) != (mtime_s(path), 0) {
        let failure = Failure::refused("E-TREE-MTIME", format!("mtime of {path} is not the one of its path"));
        let found = format!("{}.{:09} s", entry.mtime_s, entry.mtime_ns);
        return Some(failure.expected(format!("{}.{:09} s", mtime_s(path), 0)).found(found));
    }
    None
}

fn link_problem(entry: &Found, link: &Link) -> Option<Box<Failure>> {
    kind_problem(entry, &Kind::Link(link.target.clone()))
}

fn kind_problem(entry: &Found, wanted: &Kind) -> Option<Box<Failure>> {
    if entry.kind == *wanted {
        return None;
    }
    let code = if matches!(entry.kind, Kind::Link(_)) { "E-TREE-LINK" } else { "E-TREE-TYPE" };
    let failure = Failure::refused(code, format!("{} is of another type", entry.path));
    Some(failure.expected(shown(wanted)).found(shown(&entry.kind)))
}

fn shown(kind: &Kind) -> String {
    match kind {
        Kind::File => "a regular file".into(),
        Kind::Folder => "a folder".into(),
        Kind::Link(target) => format!("a symbolic link to {target}"),
        Kind::Other => "a device, socket or pipe".into(),
    }
}

fn mend(root: &Path, path: &str) -> String {
    let path = root.join(path);
    format!(
        "find out who changed it, then remove {} and run again: what a wheel has is put back",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    /// A tree of two files below a fresh folder, as [`Expected`] wants it.
    fn sample() -> (tempfile::TempDir, Expected) {
        let folder = tempfile::tempdir().unwrap();
        let files = ["a/x.h", "b"].map(|path| {
            let (full, bytes) = (folder.path().join(path), path.repeat(3));
            std::fs::create_dir_all(full.parent().unwrap()).unwrap();
            put(&full, bytes.as_bytes());
            stamp(&full, path);
            let mode =
                fs_err::metadata(&full).map(|m| std::os::unix::fs::MetadataExt::mode(&m)).unwrap() & 0o7777;
            TreeFile {
                path: path.into(),
                mode,
                size_bytes: bytes.len() as u64,
                sha256: Digest::of(bytes.as_bytes()),
            }
        });
        symlink("x.h", folder.path().join("a/y.h")).unwrap();
        let links = vec![Link { path: "a/y.h".into(), target: "x.h".into() }];
        (folder, Expected { tree: Tree::new(files.to_vec()), links })
    }

    #[expect(clippy::disallowed_methods, reason = "a test plants what the check must see")]
    fn put(path: &Path, bytes: &[u8]) {
        std::fs::write(path, bytes).unwrap();
    }

    fn stamp(full: &Path, path: &str) {
        let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(mtime_s(path)).unwrap());
        File::options().append(true).open(full).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn a_whole_tree_passes_and_what_is_missing_is_listed() {
        let (folder, expected) = sample();
        let state = expected.check(folder.path(), &Known::new()).unwrap();
        assert_eq!((state.missing.len(), state.known.len()), (0, 2));
        std::fs::remove_file(folder.path().join("a/x.h")).unwrap();
        std::fs::remove_file(folder.path().join("a/y.h")).unwrap();
        assert_eq!(expected.check(folder.path(), &Known::new()).unwrap().missing, ["a/x.h", "a/y.h"]);
        assert_eq!(expected.check(Path::new("/nowhere/at/all"), &Known::new()).unwrap().missing.len(), 3);
    }

    /// Damages the tree at the path that it is given.
    type Damage = fn(&Path);

    #[test]
    fn every_wrong_entry_is_refused_by_its_own_code() {
        let cases: [(&str, Damage); 9] = [
            ("E-TREE-EXTRA", |root| put(&root.join("a/extra.h"), b"")),
            ("E-TREE-EXTRA", |root| std::fs::create_dir(root.join("empty")).unwrap()),
            ("E-TREE-HASH", |root| {
                put(&root.join("b"), b"bbc");
                stamp(&root.join("b"), "b");
            }),
            ("E-TREE-HASH", |root| put(&root.join("b"), b"bbbb")),
            ("E-TREE-MTIME", |root| stamp(&root.join("b"), "other")),
            ("E-TREE-MODE", |root| {
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
                std::fs::set_permissions(root.join("b"), mode).unwrap();
            }),
            ("E-TREE-LINK", |root| {
                std::fs::remove_file(root.join("b")).unwrap();
                symlink("/etc/passwd", root.join("b")).unwrap();
            }),
            ("E-TREE-LINK", |root| {
                std::fs::rename(root.join("a"), root.with_extension("moved")).unwrap();
                symlink(root.with_extension("moved"), root.join("a")).unwrap();
            }),
            ("E-TREE-TYPE", |root| {
                std::fs::remove_file(root.join("a/y.h")).unwrap();
                std::fs::create_dir(root.join("a/y.h")).unwrap();
            }),
        ];
        for (code, damage) in cases {
            let (folder, expected) = sample();
            let root = folder.path().join("root");
            std::fs::create_dir(&root).unwrap();
            for name in ["a", "b"] {
                std::fs::rename(folder.path().join(name), root.join(name)).unwrap();
            }
            expected.check(&root, &Known::new()).unwrap();
            damage(&root);
            assert_eq!(expected.check(&root, &Known::new()).unwrap_err().code, code);
        }
    }
}
