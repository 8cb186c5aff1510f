//! What a manifest that can be read may still not say.

use std::collections::BTreeMap;

use super::{Flag, Manifest, Module};
use crate::grammar::{self, RefusalKind};
use crate::tree::is_clean_path;
use crate::{Failure, Failures, Outcome};

/// Options that the build sets itself, or that would move what it sets: nvcc's long names, and gcc's. What keeps a build
/// closed besides is in the grammar of commands.
const RESERVED: [&str; 30] = [
    "output-file",
    "o",
    "compile",
    "c",
    "compiler-bindir",
    "gpu-architecture",
    "gpu-code",
    "generate-code",
    "objdir-as-tempdir",
    "frandom-seed",
    "generate-dependencies-with-compile",
    "MD",
    "dependency-output",
    "MF",
    "dependency-target-name",
    "MT",
    "MQ",
    "generate-dependency-targets",
    "MP",
    "output-directory",
    "threads",
    "x",
    "Ofast-compile",
    "relocatable-device-code",
    "input-drive-prefix",
    "dependency-drive-prefix",
    "drive-prefix",
    "forward-unknown-to-host-compiler",
    "forward-unknown-to-host-linker",
    "forward-unknown-opts",
];

/// Collects every fault of `manifest`; `path` is named in each.
pub(super) fn check(path: &str, manifest: &Manifest) -> Outcome<()> {
    let mut faults = Faults { path, found: Vec::new() };
    if manifest.version != 1 {
        faults.add("version", "1, the only version that this tool reads", &manifest.version.to_string());
    }
    if manifest.targets.is_empty() {
        faults.add("targets", "at least one target", "none");
    }
    for (key, flags) in [("flag", &manifest.flags), ("link_flag", &manifest.link_flags)] {
        flags.iter().for_each(|flag| check_flag(&mut faults, key, flag));
    }
    check_trees(&mut faults, manifest);
    manifest.modules.iter().for_each(|module| check_module(&mut faults, module));
    check_names(&mut faults, manifest);
    Failure::all(faults.found)
}

struct Faults<'a> {
    path: &'a str,
    found: Failures,
}

impl Faults<'_> {
    fn add(&mut self, key: &str, expected: &str, found: &str) {
        let failure =
            Failure::bad_input("E-MANIFEST", format!("{} says what cannot be at `{key}`", self.path));
        self.found.push(failure.expected(expected).found(found).hint("see docs/manifest.md"));
    }
}

fn check_flag(faults: &mut Faults<'_>, key: &str, flag: &Flag) {
    let program = if key == "flag" { "nvcc" } else { "g++" };
    let command = grammar::parse(&[program.to_owned(), flag.value.clone()]);
    // A flag that no table knows, or that is recorded, costs certificates; it does not open the build.
    let closed = |kind: RefusalKind| matches!(kind, RefusalKind::UnknownFlag | RefusalKind::RecordedSwitches);
    let opens = command.refusals_at().iter().any(|(word, refusal)| *word == 1 && !closed(refusal.kind));
    if opens || command.sets(&RESERVED) || !flag.value.starts_with('-') || flag.value == "-Xptxas=-v" {
        faults.add(key, "a flag that the build does not set itself, and that keeps it closed", &flag.value);
    }
    if flag.value.is_empty() || !flag.value.chars().all(|c| c.is_ascii_graphic()) {
        faults.add(key, "one plain argument without blanks", &flag.value);
    }
    if flag.reason.trim().is_empty() {
        faults.add(key, "a reason for each flag", &flag.value);
    }
}

fn check_trees(faults: &mut Faults<'_>, manifest: &Manifest) {
    for tree in &manifest.trees {
        if !is_name(&tree.name) {
            faults.add("tree.name", NAME, &tree.name);
        }
        for folder in std::iter::once(&tree.source).chain(&tree.overlay) {
            if !is_clean_path(folder) {
                faults.add("tree", CLEAN, folder);
            }
        }
        if let Some(counterpart) = &tree.counterpart
            && (counterpart == &tree.name
                || manifest.tree(counterpart).is_none_or(|other| other.counterpart.is_some()))
        {
            faults.add(
                "tree.counterpart",
                "the name of another tree, without a counterpart of its own",
                counterpart,
            );
        }
        let users = manifest.modules.iter().filter(|module| module.tree == tree.name).count();
        if users != 1 {
            faults.add(
                "tree",
                "a tree that exactly one module is built from",
                &format!("{}: {users}", tree.name),
            );
        }
    }
    for module in manifest.modules.iter().filter(|module| manifest.tree(&module.tree).is_none()) {
        faults.add("module.tree", "the name of a tree", &module.tree);
    }
}

fn check_module(faults: &mut Faults<'_>, module: &Module) {
    if !is_name(&module.name) {
        faults.add("module.name", NAME, &module.name);
    }
    if module.units.is_empty() || module.exports.is_empty() {
        faults.add("module", "at least one unit and one export", &module.name);
    }
    for unit in &module.units {
        let (folder, file) = unit.rsplit_once('/').unwrap_or(("", unit));
        let pattern = file.strip_prefix("*.").unwrap_or(file);
        if folder.contains('*') || pattern.contains('*') || !is_clean_path(&unit.replace('*', "x")) {
            faults.add("module.units", "paths relative to the tree, or `folder/*.ext`", unit);
        }
    }
    for folder in module.include.iter().filter(|folder| folder.as_str() != "." && !is_clean_path(folder)) {
        faults.add("module.include", CLEAN, folder);
    }
    for (name, value) in &module.name_defines {
        let identifier = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || value.is_empty() || !name.chars().chain(value.chars()).all(identifier) {
            faults.add(
                "module.name_defines",
                "an identifier and a value of letters, digits and _",
                &format!("{name}={value}"),
            );
        }
    }
}

/// Names of trees and modules are unique, and no two modules give one name define one value.
fn check_names(faults: &mut Faults<'_>, manifest: &Manifest) {
    let trees = manifest.trees.iter().map(|tree| ("tree.name", tree.name.clone()));
    let modules = manifest.modules.iter().map(|module| ("module.name", module.name.clone()));
    let defines = manifest.modules.iter().flat_map(|module| &module.name_defines);
    let defines = defines.map(|(name, value)| ("module.name_defines", format!("{name}={value}")));
    let mut seen: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for item in trees.chain(modules).chain(defines) {
        *seen.entry(item).or_default() += 1;
    }
    for ((key, value), count) in seen {
        if count > 1 {
            faults.add(&format!("{key} ({value})"), "each name once", &format!("{count} times"));
        }
    }
}

const NAME: &str = "a name of lower-case letters, digits, `_` and `-`";
const CLEAN: &str = "a relative path without `..`, of letters, digits, `_`, `-`, `.`, `+` and `/`";

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    text.chars().all(allowed) && text.starts_with(|c: char| c.is_ascii_lowercase())
}
