//! Source trees: collected from the repository, overlaid, and laid out with deterministic modes and mtimes.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use requal::manifest;
use requal::tree::{Tree, TreeFile, is_clean_path};
use requal::{Digest, Failure, Outcome};

use crate::sys::layout;

/// Permission bits of every source file.
const MODE: u32 = 0o644;

/// A source tree that is ready to be built.
#[derive(Clone, Debug)]
pub struct SourceTree {
    /// The manifest's name for it.
    pub name: String,
    /// Its files and digest.
    pub tree: Tree,
    /// The tree below it and the overlay's own files, if there is an overlay.
    pub overlay: Option<Overlay>,
    contents: Contents,
}

/// What lies over another tree.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// Name of the tree below.
    pub base: String,
    /// The overlay's own files.
    pub tree: Tree,
}

type Contents = BTreeMap<String, Vec<u8>>;

/// Collects every tree of `manifest` from the repository `repo`, bases first.
///
/// # Errors
/// `E-TREE-SOURCE` if a folder is missing or holds what no tree may hold, `E-TREE-BASE` if an overlay has no tree below.
pub fn collect(repo: &Utf8Path, manifest: &manifest::Manifest) -> Outcome<Vec<SourceTree>> {
    let mut trees: Vec<SourceTree> = Vec::new();
    for spec in manifest.bases_first() {
        let mut contents = read_folder(&repo.join(&spec.source))?;
        let overlay = match &spec.overlay {
            None => None,
            Some(folder) => {
                let own = read_folder(&repo.join(folder))?;
                let base = base_of(manifest, spec)?;
                let tree = tree_of(&own);
                contents.extend(own);
                Some(Overlay { base, tree })
            }
        };
        trees.push(SourceTree { name: spec.name.clone(), tree: tree_of(&contents), overlay, contents });
    }
    Ok(trees)
}

impl SourceTree {
    /// Lays the tree out in `folder`: what is equal stays untouched, what does not belong there is removed.
    ///
    /// # Errors
    /// `E-IO`, `E-TREE-LINK` if something in the way is no plain file or folder.
    pub fn lay_out(&self, folder: &Utf8Path) -> Outcome<()> {
        fs_err::create_dir_all(folder)?;
        for (path, content) in &self.contents {
            layout::put(folder, path, content, MODE, requal::tree::mtime_s(path))?;
        }
        layout::remove_others(folder, |path| self.contents.contains_key(path))
    }
}

fn base_of(manifest: &manifest::Manifest, spec: &manifest::Tree) -> Outcome<String> {
    manifest.base_of(spec).map(|base| base.name.clone()).ok_or_else(|| {
        Failure::bad_input("E-TREE-BASE", format!("tree {} is an overlay over no tree", spec.name))
            .expected(format!("a tree with source = \"{}\" and no overlay", spec.source))
            .found("none")
            .hint("add that tree to the manifest: an overlay is stated as a difference from it")
    })
}

fn tree_of(contents: &Contents) -> Tree {
    let file = |(path, content): (&String, &Vec<u8>)| TreeFile {
        path: path.clone(),
        mode: MODE,
        size_bytes: content.len() as u64,
        sha256: Digest::of(content),
    };
    Tree::new(contents.iter().map(file).collect())
}

fn read_folder(folder: &Utf8Path) -> Outcome<Contents> {
    let fault = |path: &Utf8Path, why: &str| {
        Failure::bad_input("E-TREE-SOURCE", format!("{path} cannot be part of a source tree"))
            .expected("plain files with names of letters, digits, `_`, `-`, `.` and `+`")
            .found(why)
            .hint("rename or remove it")
    };
    let mut contents = Contents::new();
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        let entry = entry.map_err(|error| fault(folder, &error.to_string()))?;
        let path = Utf8PathBuf::from_path_buf(entry.path().to_owned())
            .map_err(|path| fault(folder, &format!("a name that is not UTF-8: {}", path.display())))?;
        if entry.file_type().is_dir() {
            continue;
        }
        let relative = path.strip_prefix(folder).unwrap_or(&path).to_string();
        if !entry.file_type().is_file() {
            return Err(fault(&path, "a link or a special file"));
        }
        if !is_clean_path(&relative) {
            return Err(fault(&path, "a name with other characters"));
        }
        contents.insert(relative, fs_err::read(&path)?);
    }
    if contents.is_empty() {
        return Err(fault(folder, "an empty folder"));
    }
    Ok(contents)
}
