//! What the lists of a source tree and a toolchain say of a place: no file is opened, and the auditor sees the same.

use crate::closure::{File, Found, Located, names_digest};
use crate::receipt::Root;
use crate::tree::{Link, TreeFile, mtime_s};

/// A source tree and the toolchain, as lists sorted by path. Every file of theirs has the mtime that its path gives.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    /// Files of the source tree.
    pub tree: &'a [TreeFile],
    /// Files of the toolchain.
    pub toolchain: &'a [TreeFile],
    /// Links of the toolchain.
    pub links: &'a [Link],
}

impl Lists<'_> {
    /// What stands at `at`; nothing is known of places below other roots.
    #[must_use]
    pub fn find(&self, at: &Located) -> Option<Found> {
        match at.root {
            Root::Tree => Some(find(self.tree, &[], &at.path)),
            Root::Toolchain => Some(find(self.toolchain, self.links, &at.path)),
            Root::Host | Root::System => None,
        }
    }
}

fn find(files: &[TreeFile], links: &[Link], path: &str) -> Found {
    if let Some(link) = links.iter().find(|link| link.path == path) {
        return Found::Link(link.target.clone());
    }
    match files.binary_search_by(|file| file.path.as_str().cmp(path)) {
        Ok(at) => {
            let TreeFile { sha256, size_bytes, .. } = files[at];
            Found::File(File { sha256, size_bytes, mtime_s: mtime_s(path) })
        }
        Err(_) => folder(files, links, path),
    }
}

fn folder(files: &[TreeFile], links: &[Link], path: &str) -> Found {
    let prefix = format!("{path}/");
    let from = files.partition_point(|file| file.path.as_str() < prefix.as_str());
    let files = files[from..].iter().map(|file| file.path.as_str());
    let below = files.take_while(|path| path.starts_with(&prefix));
    let all = below.chain(links.iter().map(|link| link.path.as_str()));
    let mut names = all.filter_map(|path| path.strip_prefix(&prefix)?.split('/').next()).peekable();
    match names.peek() {
        Some(_) => Found::Folder(Some(names_digest(names))),
        None => Found::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    #[test]
    fn files_folders_links_and_nothing_are_told_apart() {
        let file = |path: &str| TreeFile {
            path: path.to_owned(),
            mode: 0o644,
            size_bytes: 1,
            sha256: Digest::of(path.as_bytes()),
        };
        let tree = ["a-b/x.h", "a.h", "a/b.h", "a/c/d.h"].map(file);
        let link = Link { path: "lib/libx.so".into(), target: "libx.so.1".into() };
        let lists = Lists { tree: &tree, toolchain: &[file("lib/libx.so.1")], links: &[link] };
        let at = |root, path| lists.find(&Located::new(root, path).unwrap());
        let found = File { sha256: tree[1].sha256, size_bytes: 1, mtime_s: mtime_s("a.h") };
        assert_eq!(at(Root::Tree, "a.h"), Some(Found::File(found)));
        assert_eq!(at(Root::Tree, "a"), Some(Found::Folder(Some(names_digest(["b.h", "c"].into_iter())))));
        assert_eq!(at(Root::Tree, "a/c"), Some(Found::Folder(Some(names_digest(["d.h"].into_iter())))));
        for nothing in ["a-", "a.h/x", "b", "a/c/d"] {
            assert_eq!(at(Root::Tree, nothing), Some(Found::Absent), "{nothing}");
        }
        assert_eq!(at(Root::Toolchain, "lib/libx.so"), Some(Found::Link("libx.so.1".to_owned())));
        let names = names_digest(["libx.so", "libx.so.1"].into_iter());
        assert_eq!(at(Root::Toolchain, "lib"), Some(Found::Folder(Some(names))));
        assert_eq!(at(Root::System, "usr"), None);
    }
}
