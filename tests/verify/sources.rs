//! What the fixture is built from: a toolchain of one wheel, and source trees.

use camino::Utf8Path;
use requal::Digest;
use requal::receipt::{OverlayChange, OverlayRecord, TreeRecord};
use requal::tree::{Tree, TreeFile};
use requal::wheel::{Pinned, Wheel};

use crate::fixture::{Size, name, path, put};
use crate::kit::{self, Entry};

/// A real wheel, unpacked into the toolchain, and the lock that pins it.
pub(crate) fn toolchain(scratch: &Utf8Path, size: Size) -> (Wheel, String) {
    let mut files = vec![
        ("bin/nvcc", "nvcc"),
        ("include/cuda.h", "#define CUDA 13000"),
        ("lib/libcudart.so.13", "cudart"),
    ];
    // The commands start this one.
    files.extend((size != Size::Plain).then_some(("nvidia/cu13/bin/nvcc", "nvcc")));
    let files: Vec<_> = files.iter().map(|(path, text)| Entry::file(path, text.as_bytes())).collect();
    let entries = kit::wheel("tools", "1.0", &files);
    let bytes = kit::zip(&entries).bytes;
    let package = kit::pin("tools", "1.0", &bytes);
    put(&scratch.join("wheels").join(&package.file), &bytes);
    let pinned = Pinned::new(bytes, &package).unwrap();
    let wheel = pinned.open().unwrap().wheel;
    for file in &wheel.tree.files {
        let entry = entries.iter().find(|entry| entry.name == file.path.as_bytes()).unwrap();
        plant(&scratch.join("toolchain").join(&file.path), &entry.content, file.mode);
    }
    std::os::unix::fs::symlink("libcudart.so.13", scratch.join("toolchain/lib/libcudart.so")).unwrap();
    let lock = format!(
        "version = 1\n\n[[package]]\nname = \"tools\"\nversion = \"1.0\"\nfile = \"{}\"\nsize_bytes = {}\nsha256 = \"{}\"\nrole = \"toolchain\"\n",
        package.file, package.size_bytes, package.sha256
    );
    (wheel, lock)
}

/// Name, base, and path and content of each file.
type SmallTree = (&'static str, Option<&'static str>, &'static [(&'static str, &'static str)]);

/// The trees `names`, laid below `scratch`.
pub(crate) fn trees(scratch: &Utf8Path, names: &[&str], size: Size) -> Vec<TreeRecord> {
    let all: [SmallTree; 3] = [
        ("stock", None, &[("acc.cuh", "half"), ("a.cu", "a"), ("b.cpp", "b")]),
        ("p2p", None, &[("p.cu", "p")]),
        ("facc", Some("stock"), &[("acc.cuh", "float"), ("a.cu", "a"), ("b.cpp", "b")]),
    ];
    let mut trees: Vec<TreeRecord> = Vec::new();
    for (own, base, files) in all.into_iter().filter(|(own, ..)| names.contains(own)) {
        let third = (size == Size::Certified && own != "p2p").then_some(("c.cpp", "c"));
        let files: Vec<_> = files.iter().copied().chain(third).collect();
        let tree = lay(&scratch.join("trees").join(own), &files);
        let change = OverlayChange {
            path: path("acc.cuh"),
            sha256_before: Some(Digest::of(b"half")),
            sha256_after: Digest::of(b"float"),
        };
        let overlay = base.map(|_| OverlayRecord {
            tree_sha256: Tree::new(
                tree.files.iter().filter(|file| file.path == "acc.cuh").cloned().collect(),
            )
            .digest(),
            changed: vec![change],
        });
        trees.push(TreeRecord {
            name: name(own),
            tree_sha256: tree.digest(),
            files: tree.files,
            base: base.map(name),
            overlay,
        });
    }
    trees
}

/// Writes a file of the fixture with `mode`.
fn plant(path: &Utf8Path, bytes: &[u8], mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    put(path, bytes);
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Writes `files` below `root` with mode 0644 and returns their records.
fn lay(root: &Utf8Path, files: &[(&str, &str)]) -> Tree {
    let record = |(path, text): &(&str, &str)| {
        plant(&root.join(path), text.as_bytes(), 0o644);
        let sha256 = Digest::of(text.as_bytes());
        TreeFile { path: (*path).to_owned(), mode: 0o644, size_bytes: text.len() as u64, sha256 }
    };
    Tree::new(files.iter().map(record).collect())
}
