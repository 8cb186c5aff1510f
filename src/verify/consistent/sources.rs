//! Wheels, toolchain and source trees: paths, digests and differences.

use std::collections::BTreeMap;

use super::at;
use crate::Digest;
use crate::receipt::{Root, RuntimeBuild, TreeRecord};
use crate::tree::{Tree, TreeFile};
use crate::verify::Finding;

/// No two paths differ in case alone, and every mode is one. The paths themselves were judged when they were read.
pub(super) fn paths(receipt: &RuntimeBuild) -> Vec<Finding> {
    let build = &receipt.predicate.build;
    let trees =
        build.trees.iter().enumerate().map(|(i, tree)| (at(format_args!("trees/{i}/files")), &tree.files));
    let lists = std::iter::once((at("toolchain/files"), &build.toolchain.files)).chain(trees);
    let mut findings = Vec::new();
    for (pointer, files) in lists {
        for (i, file) in files.iter().enumerate() {
            if file.mode > 0o7777 {
                findings.push(Finding::mismatch(
                    "E-TREE-MODE",
                    format!("{pointer}/{i}/mode"),
                    "at most 4095",
                    file.mode,
                ));
            }
        }
        findings.extend(twins(&pointer, files.iter().map(|file| file.path.as_str())));
    }
    let inputs = build.inputs.iter().enumerate().filter(|(_, input)| input.root != Root::System);
    let mut seen = BTreeMap::new();
    for (i, input) in inputs {
        let first = seen.entry((input.root, input.path.to_lowercase())).or_insert(&input.path);
        if **first != input.path {
            findings.push(Finding::mismatch(
                "E-PATH-CASE",
                at(format_args!("inputs/{i}/path")),
                *first,
                &input.path,
            ));
        }
    }
    findings
}

fn twins<'a>(pointer: &str, paths: impl Iterator<Item = &'a str>) -> Vec<Finding> {
    let mut seen = BTreeMap::new();
    let mut findings = Vec::new();
    for (i, path) in paths.enumerate() {
        if let Some(first) = seen.insert(path.to_lowercase(), path) {
            let expected = format!("no second spelling of {first}");
            findings.push(Finding::mismatch("E-PATH-CASE", format!("{pointer}/{i}/path"), expected, path));
        }
    }
    findings
}

/// Digest of a record's list of files, whatever its order.
fn digest(files: &[TreeFile]) -> Digest {
    Tree::new(files.to_vec()).digest()
}

/// The toolchain's digest is that of its files, and the wheels can hold them all.
pub(super) fn toolchain(receipt: &RuntimeBuild) -> Vec<Finding> {
    let build = &receipt.predicate.build;
    let toolchain = &build.toolchain;
    let mut findings = Vec::new();
    if build.wheels.is_empty() {
        findings.push(Finding::mismatch("E-COUNT", at("wheels"), "at least one wheel", "none"));
    }
    let found = digest(&toolchain.files);
    if found != toolchain.tree_sha256 {
        findings.push(Finding::mismatch(
            "E-TREE-DIGEST",
            at("toolchain/tree_sha256"),
            found,
            toolchain.tree_sha256,
        ));
    }
    // Wheels may share a path with equal bytes, so the tree can be smaller than their sum, never larger.
    let files = toolchain.files.len() as u64;
    let most = build.wheels.iter().fold(0_u64, |sum, wheel| sum.saturating_add(wheel.files));
    let least = build.wheels.iter().map(|wheel| wheel.files).max().unwrap_or(0);
    if files < least || files > most {
        let found = format!("{files} files");
        findings.push(Finding::mismatch(
            "E-COUNT",
            at("toolchain/files"),
            format!("{least} to {most} files"),
            found,
        ));
    }
    if let [wheel] = build.wheels.as_slice()
        && wheel.tree_sha256 != found
    {
        findings.push(Finding::mismatch(
            "E-TREE-DIGEST",
            at("wheels/0/tree_sha256"),
            found,
            wheel.tree_sha256,
        ));
    }
    let known = |path: &str| toolchain.files.binary_search_by(|file| file.path.as_str().cmp(path)).is_ok();
    for (i, link) in toolchain.links.iter().enumerate() {
        let folder = link.path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        if known(&link.path) || !known(&format!("{folder}{}", link.target)) {
            let expected = "a new name for a file of the toolchain";
            findings.push(Finding::mismatch(
                "E-TREE-LINK",
                at(format_args!("toolchain/links/{i}")),
                expected,
                &link.target,
            ));
        }
    }
    for (i, row) in build.versions.iter().enumerate() {
        let linked = toolchain.links.iter().any(|link| link.path == *row.path);
        if !known(&row.path) && !linked {
            let pointer = at(format_args!("versions/{i}/path"));
            findings.push(Finding::mismatch("E-VERSION-PATH", pointer, "a file of the toolchain", &row.path));
        }
    }
    findings
}

/// Each tree's digest is that of its files, and its name is its own.
pub(super) fn trees(receipt: &RuntimeBuild) -> Vec<Finding> {
    let trees = &receipt.predicate.build.trees;
    let mut findings = Vec::new();
    if trees.is_empty() {
        findings.push(Finding::mismatch("E-COUNT", at("trees"), "at least one tree", "none"));
    }
    for (i, tree) in trees.iter().enumerate() {
        let found = digest(&tree.files);
        if found != tree.tree_sha256 {
            let pointer = at(format_args!("trees/{i}/tree_sha256"));
            findings.push(Finding::mismatch("E-TREE-DIGEST", pointer, found, tree.tree_sha256));
        }
        if trees[..i].iter().any(|other| other.name == tree.name) {
            let pointer = at(format_args!("trees/{i}/name"));
            findings.push(Finding::mismatch("E-TREE-NAME", pointer, "a name of its own", &tree.name));
        }
    }
    findings
}

/// Each overlay's list of changes is the complete difference from its base.
pub(super) fn overlays(receipt: &RuntimeBuild) -> Vec<Finding> {
    let trees = &receipt.predicate.build.trees;
    trees.iter().enumerate().filter_map(|(i, tree)| overlay(&trees[..i], i, tree).err()).map(|f| *f).collect()
}

fn overlay(earlier: &[TreeRecord], i: usize, tree: &TreeRecord) -> Result<(), Box<Finding>> {
    let fail = |field: &str, expected: String, found: String| {
        let pointer = at(format_args!("trees/{i}/{field}"));
        Err(Box::new(Finding::mismatch("E-OVERLAY", pointer, expected, found)))
    };
    let (base, overlay) = match (&tree.base, &tree.overlay) {
        (None, None) => return Ok(()),
        (Some(base), Some(overlay)) => (base, overlay),
        _ => return fail("overlay", "base and overlay together".into(), "one alone".into()),
    };
    let Some(base) = earlier.iter().find(|other| other.name == *base) else {
        return fail("base", "a tree listed before".into(), base.to_string());
    };
    let before: BTreeMap<_, _> = base.files.iter().map(|file| (file.path.as_str(), file)).collect();
    let differs = |file: &&TreeFile| before.get(file.path.as_str()).is_none_or(|b| b.sha256 != file.sha256);
    let changed: Vec<_> = tree.files.iter().filter(differs).cloned().collect();
    if let Some(lost) = base.files.iter().find(|b| !tree.files.iter().any(|file| file.path == b.path)) {
        return fail("files", format!("{} of the base", lost.path), "a removed file".into());
    }
    let expected =
        changed.iter().map(|f| (f.path.as_str(), before.get(f.path.as_str()).map(|b| b.sha256), f.sha256));
    let expected: Vec<_> = expected.collect();
    let listed: Vec<_> =
        overlay.changed.iter().map(|c| (&*c.path, c.sha256_before, c.sha256_after)).collect();
    if expected != listed {
        let first = expected
            .iter()
            .zip(&listed)
            .position(|(a, b)| a != b)
            .unwrap_or(expected.len().min(listed.len()));
        let show = |rows: &[(&str, Option<Digest>, Digest)]| {
            rows.get(first).map_or("nothing".into(), |(path, before, after)| {
                let before = before.map_or("no file".into(), |digest| digest.to_string());
                format!("{path}: {before} before, {after} after")
            })
        };
        return fail(&format!("overlay/changed/{first}"), show(&expected), show(&listed));
    }
    let found = digest(&changed);
    if overlay.tree_sha256 != found {
        return fail("overlay/tree_sha256", found.to_string(), overlay.tree_sha256.to_string());
    }
    Ok(())
}
