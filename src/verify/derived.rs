//! What the manifest demands is derived again: trees, modules, units, environment and every argument of every command.

use std::collections::BTreeMap;

use super::{Check, Finding, Kind, Level, State};
use crate::command::{self, Place};
use crate::manifest::{self, Manifest};
use crate::plan::{self, ModulePlan};
use crate::receipt::{Build, FILE, Module, RuntimeBuild, Token, Unit};
use crate::tree::Tree;

const fn kind(id: &'static str, why: &'static str) -> Kind {
    const NEXT: &str = "reject the receipt: what was built is not what its manifest demands";
    Kind { id, level: Level::HashesVerified, why, next: NEXT }
}

const DECLARED: Kind =
    kind("declared", "trees, modules and what they offer are to be those of the manifest, each of them");
const COMMANDS: Kind =
    kind("derived-commands", "a flag that the manifest lacks gives another object under an honest digest");

/// Every check against the manifest; without one they are NOT-RUN.
pub(super) fn check(receipt: &RuntimeBuild, manifest: Option<&Manifest>) -> Vec<Check> {
    let build = &receipt.predicate.build;
    let Some(manifest) = manifest else {
        let found = "the recorded manifest does not lie beside the receipt, or cannot be read";
        let not_run = |kind: Kind| {
            let kind = Kind { next: "put the manifest of the build beside the receipt", ..kind };
            kind.unseen(State::NotRun, FILE, "E-EVIDENCE-NONE", found)
        };
        return [DECLARED, COMMANDS].map(not_run).into();
    };
    let mut declared = trees(build, manifest);
    declared.extend(modules(build, manifest));
    let mut commands: Vec<_> = environment(receipt).into_iter().collect();
    for (i, module) in build.modules.iter().enumerate() {
        commands.extend(steps(build, manifest, i, module));
    }
    let steps = build.units.len() + build.modules.len();
    let mut checks = DECLARED.judge(FILE, build.trees.len() + build.modules.len(), declared);
    checks.extend(COMMANDS.judge(FILE, steps, commands));
    checks
}

/// Trees are the manifest's, bases first, each over the base that the manifest gives it.
fn trees(build: &Build, manifest: &Manifest) -> Vec<Finding> {
    let names: Vec<&str> = manifest.bases_first().map(|tree| tree.name.as_str()).collect();
    let told: Vec<&str> = build.trees.iter().map(|tree| &*tree.name).collect();
    let mut findings: Vec<_> = same_list("E-TREE-SET", "trees", "name", &names, &told).into_iter().collect();
    for (i, tree) in build.trees.iter().enumerate() {
        let Some(declared) = manifest.tree(&tree.name) else { continue };
        let base = manifest.base_of(declared).map(|base| base.name.as_str());
        if base != tree.base.as_deref() {
            let pointer = format!("/predicate/build/trees/{i}/base");
            let shown = |base: Option<&str>| base.unwrap_or("no base").to_owned();
            findings.push(Finding::mismatch("E-TREE-SET", pointer, shown(base), shown(tree.base.as_deref())));
        }
    }
    findings
}

/// Modules are the manifest's, in its order, with the files, markers and exports that it gives them; each needs no other
/// library than the manifest allows. That no two share a name define was judged when the manifest was read.
fn modules(build: &Build, manifest: &Manifest) -> Vec<Finding> {
    let names: Vec<&str> = manifest.modules.iter().map(|module| module.name.as_str()).collect();
    let told: Vec<&str> = build.modules.iter().map(|module| &*module.name).collect();
    let mut findings: Vec<_> =
        same_list("E-MODULE-SET", "modules", "name", &names, &told).into_iter().collect();
    for (i, told) in build.modules.iter().enumerate() {
        let Some(declared) = declared(manifest, told) else { continue };
        let at = |field: &str| format!("/predicate/build/modules/{i}/{field}");
        let file = format!("{}.so", declared.name);
        let fields = [
            ("tree", &declared.tree, &*told.tree),
            ("file", &file, &*told.file),
            ("marker", &declared.name, &*told.marker),
        ];
        for (field, expected, found) in fields.into_iter().filter(|(_, expected, found)| expected != found) {
            findings.push(Finding::mismatch("E-MODULE-SET", at(field), expected, found));
        }
        let mut exports = words(&declared.exports);
        exports.sort_unstable();
        let found: Vec<&str> = told.exports.iter().map(|symbol| &**symbol).collect();
        if exports != found {
            let (expected, found) = (exports.join(", "), found.join(", "));
            findings.push(Finding::mismatch("E-MODULE-EXPORTS", at("exports"), expected, found));
        }
        for (j, library) in told.needed.iter().enumerate() {
            if !declared.libraries.iter().any(|allowed| **allowed == **library) {
                let expected = format!("only {}", declared.libraries.join(", "));
                findings.push(Finding::mismatch(
                    "E-MODULE-NEEDED",
                    at(&format!("needed/{j}")),
                    expected,
                    library,
                ));
            }
        }
    }
    findings
}

fn declared<'a>(manifest: &'a Manifest, told: &Module) -> Option<&'a manifest::Module> {
    manifest.modules.iter().find(|module| *module.name == *told.name)
}

/// The first place where two lists differ.
fn same_list(
    code: &'static str,
    list: &str,
    field: &str,
    expected: &[&str],
    found: &[&str],
) -> Option<Finding> {
    let (i, expected, found) = first_difference(expected, found)?;
    let pointer = match found {
        "nothing" => format!("/predicate/build/{list}"),
        _ => format!("/predicate/build/{list}/{i}/{field}"),
    };
    Some(Finding::mismatch(code, pointer, expected, found))
}

fn words(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

/// Where two lists of words differ first, and what stands there in each.
fn first_difference<'a>(a: &[&'a str], b: &[&'a str]) -> Option<(usize, &'a str, &'a str)> {
    let i = (0..a.len().max(b.len())).find(|i| a.get(*i) != b.get(*i))?;
    let word = |list: &[&'a str]| list.get(i).copied().unwrap_or("nothing");
    Some((i, word(a), word(b)))
}

/// The environment is the one that the format and the limits give, the temporary folder a pattern for all units.
fn environment(receipt: &RuntimeBuild) -> Option<Finding> {
    let build = &receipt.predicate.build;
    let place = Place::recorded(build.place.sandboxed);
    let line = |name: &str, value: &str| format!("{name}={value}");
    let derived = command::environment(&receipt.predicate.run.limits.requested);
    let expected: Vec<String> =
        derived.iter().map(|(name, value)| line(name, &place.resolve(value, "${object}"))).collect();
    let told: Vec<String> =
        build.environment.iter().map(|variable| line(&variable.name, &variable.value)).collect();
    let (i, expected, found) = first_difference(&words(&expected), &words(&told))?;
    let pointer = format!("/predicate/build/environment/{i}");
    Some(Finding::mismatch("E-ENV-DERIVED", pointer, expected, found))
}

/// The units and commands of module `i` are those that the manifest gives over the listed files of its tree.
fn steps(build: &Build, manifest: &Manifest, i: usize, told: &Module) -> Vec<Finding> {
    let Some(declared) = declared(manifest, told) else { return vec![] };
    let Some(tree) = build.trees.iter().find(|tree| *tree.name == *declared.tree) else { return vec![] };
    let host = &build.host_compiler.path;
    let plan = match plan::module(manifest, declared, &Tree::new(tree.files.clone()), host) {
        Ok(plan) => plan,
        Err(failure) => return Finding::refusals(&format!("/predicate/build/modules/{i}"), *failure),
    };
    let place = Place::recorded(build.place.sandboxed);
    let mut findings = units(build, &plan, &place);
    let link: Vec<String> = plan.link_argv.iter().map(|word| place.resolve(word, &told.file)).collect();
    findings.extend(argv(format!("/predicate/build/modules/{i}/link_argv"), &link, &told.link_argv));
    findings
}

fn units(build: &Build, plan: &ModulePlan, place: &Place) -> Vec<Finding> {
    let own = build.units.iter().enumerate().filter(|(_, unit)| *unit.tree == *plan.module.tree);
    let mut told: BTreeMap<&str, (usize, &Unit)> = own.map(|(i, unit)| (&*unit.source, (i, unit))).collect();
    let mut findings = Vec::new();
    for unit in &plan.units {
        let Some((i, found)) = told.remove(unit.source.as_str()) else {
            let expected = format!("{} of tree {}", unit.source, plan.module.tree);
            findings.push(Finding::mismatch(
                "E-UNIT-SET",
                "/predicate/build/units",
                expected,
                "no such unit",
            ));
            continue;
        };
        let expected: Vec<String> = unit.argv.iter().map(|word| place.resolve(word, &unit.object)).collect();
        findings.extend(argv(format!("/predicate/build/units/{i}/argv"), &expected, &found.argv));
    }
    findings.extend(told.into_values().map(|(i, unit)| {
        let pointer = format!("/predicate/build/units/{i}/source");
        Finding::mismatch("E-UNIT-SET", pointer, "a source that the module's `units` match", &unit.source)
    }));
    findings
}

/// The first argument in which a recorded command differs from the derived one.
fn argv(pointer: String, expected: &[String], found: &[Token]) -> Option<Finding> {
    let found: Vec<&str> = found.iter().map(|token| &**token).collect();
    let (j, expected, found) = first_difference(&words(expected), &found)?;
    Some(Finding::mismatch("E-ARGV-DERIVED", format!("{pointer}/{j}"), expected, found))
}
