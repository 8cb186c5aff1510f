//! Units: environment, commands, inputs, targets and decisions.

use std::collections::{BTreeMap, BTreeSet};

use super::at;
use crate::grammar;
use crate::receipt::{Build, Decision, ENVIRONMENT, Reason, Root, RuntimeBuild, Unit};
use crate::target::Target;
use crate::verify::Finding;
use crate::{Digest, json};

/// Every variable is of the closed list.
pub(super) fn environment(receipt: &RuntimeBuild) -> Vec<Finding> {
    let variables = receipt.predicate.build.environment.iter().enumerate();
    let undeclared = variables.filter(|(_, variable)| !ENVIRONMENT.contains(&&*variable.name));
    undeclared
        .map(|(i, variable)| {
            let pointer = at(format_args!("environment/{i}/name"));
            Finding::mismatch(
                "E-ENV-UNDECLARED",
                pointer,
                format!("one of {}", ENVIRONMENT.join(", ")),
                &variable.name,
            )
        })
        .collect()
}

/// Each unit belongs to a tree, compiles a file of it, and has an object name of its own.
pub(super) fn units(receipt: &RuntimeBuild) -> Vec<Finding> {
    let build = &receipt.predicate.build;
    let files = files_by_tree(build);
    let mut findings = Vec::new();
    if build.units.is_empty() {
        findings.push(Finding::mismatch("E-COUNT", at("units"), "at least one unit", "none"));
    }
    let mut objects = BTreeSet::new();
    for (i, unit) in build.units.iter().enumerate() {
        let here = |field| at(format_args!("units/{i}/{field}"));
        match files.get(&*unit.tree) {
            None => {
                findings.push(Finding::mismatch("E-UNIT-TREE", here("tree"), "a declared tree", &unit.tree))
            }
            Some(files) if !files.contains_key(&*unit.source) => {
                findings.push(Finding::mismatch(
                    "E-UNIT-SOURCE",
                    here("source"),
                    "a file of the tree",
                    &unit.source,
                ));
            }
            Some(_) => {}
        }
        let expected = format!("{}.o", unit.source);
        if *unit.object != *expected {
            findings.push(Finding::mismatch("E-UNIT-OBJECT", here("object"), expected, &unit.object));
        }
        if !objects.insert((&unit.tree, &unit.object)) {
            findings.push(Finding::mismatch(
                "E-UNIT-OBJECT",
                here("object"),
                "an object of its own",
                &unit.object,
            ));
        }
    }
    findings
}

fn files_by_tree(build: &Build) -> BTreeMap<&str, BTreeMap<&str, (Digest, u64)>> {
    build
        .trees
        .iter()
        .map(|tree| {
            let files = tree.files.iter().map(|file| (file.path.as_str(), (file.sha256, file.size_bytes)));
            (&*tree.name, files.collect())
        })
        .collect()
}

/// Each command names its source and holds nothing opaque.
pub(super) fn argv(receipt: &RuntimeBuild) -> Vec<Finding> {
    let build = &receipt.predicate.build;
    let mut findings = Vec::new();
    for (i, unit) in build.units.iter().enumerate() {
        findings.extend(opaque(&format!("units/{i}/argv"), &unit.argv));
        let names =
            |token: &str| token.strip_suffix(&*unit.source).is_some_and(|b| b.is_empty() || b.ends_with('/'));
        if !unit.argv.iter().any(|token| names(token)) {
            let pointer = at(format_args!("units/{i}/argv"));
            findings.push(Finding::mismatch("E-ARGV-SOURCE", pointer, &unit.source, "a command without it"));
        }
    }
    for (i, module) in build.modules.iter().enumerate() {
        findings.extend(opaque(&format!("modules/{i}/link_argv"), &module.link_argv));
    }
    findings
}

fn opaque(field: &str, argv: &[crate::receipt::Token]) -> Vec<Finding> {
    let argv: Vec<_> = argv.iter().map(|token| token.to_string()).collect();
    let refusals = grammar::parse(&argv).refusals_at();
    let hidden = refusals.into_iter().filter(|(_, refusal)| refusal.kind.hides_input());
    hidden
        .map(|(j, refusal)| {
            let pointer = at(format_args!("{field}/{j}"));
            let found = format!("{} ({})", refusal.token, refusal.kind);
            Finding::mismatch("E-ARGV-OPAQUE", pointer, "no argument that hides input", found)
        })
        .collect()
}

/// Every row of the input table is used, and explained by the tree or the toolchain that it names.
pub(super) fn inputs(receipt: &RuntimeBuild) -> Vec<Finding> {
    let build = &receipt.predicate.build;
    let trees = files_by_tree(build);
    let toolchain: BTreeMap<_, _> = build
        .toolchain
        .files
        .iter()
        .map(|file| (file.path.as_str(), (file.sha256, file.size_bytes)))
        .collect();
    let mut used = vec![false; build.inputs.len()];
    let mut unexplained = BTreeSet::new();
    let mut findings = Vec::new();
    let of_units = build
        .units
        .iter()
        .enumerate()
        .map(|(i, unit)| (at(format_args!("units/{i}/inputs")), trees.get(&*unit.tree), &unit.inputs));
    // A link reads nothing of the tree but objects, and those are listed by name.
    let of_modules = build
        .modules
        .iter()
        .enumerate()
        .map(|(i, module)| (at(format_args!("modules/{i}/link_inputs")), None, &module.link_inputs));
    for (here, tree, rows) in of_units.chain(of_modules) {
        for (j, row) in rows.iter().enumerate() {
            let Some(input) = build.inputs.get(*row as usize) else {
                let expected = format!("less than {}", build.inputs.len());
                findings.push(Finding::mismatch("E-INPUT-ROW", format!("{here}/{j}"), expected, row));
                continue;
            };
            used[*row as usize] = true;
            let listed = match input.root {
                Root::Tree => tree.and_then(|files| files.get(&*input.path)),
                Root::Toolchain => toolchain.get(&*input.path),
                Root::Host | Root::System => continue,
            };
            if listed != Some(&(input.sha256, input.size_bytes)) && unexplained.insert(row) {
                let pointer = at(format_args!("inputs/{row}"));
                let expected = listed
                    .map_or("a listed file".to_owned(), |(sha256, size)| format!("{sha256}, {size} bytes"));
                let found = format!("{} {}, {} bytes", input.path, input.sha256, input.size_bytes);
                findings.push(Finding::mismatch("E-HASH-INPUT", pointer, expected, found));
            }
        }
    }
    for (i, unit) in build.units.iter().enumerate() {
        if !unit.inputs.iter().any(|row| is_source(build, unit, *row)) {
            let here = at(format_args!("units/{i}/inputs"));
            findings.push(Finding::mismatch(
                "E-INPUT-SOURCE",
                here,
                &unit.source,
                "inputs without the source",
            ));
        }
    }
    let unused = used.iter().enumerate().filter(|(_, used)| !**used);
    findings.extend(unused.map(|(row, _)| {
        Finding::mismatch("E-INPUT-UNUSED", at(format_args!("inputs/{row}")), "a step that read it", "none")
    }));
    findings
}

fn is_source(build: &Build, unit: &Unit, row: u32) -> bool {
    build.inputs.get(row as usize).is_some_and(|input| input.root == Root::Tree && input.path == unit.source)
}

/// Device code is of exactly the declared targets, and units without it say nothing about it.
pub(super) fn targets(receipt: &RuntimeBuild) -> Vec<Finding> {
    let build = &receipt.predicate.build;
    let mut findings = Vec::new();
    if build.targets.is_empty() {
        findings.push(Finding::mismatch("E-TARGETS", at("targets"), "at least one target", "none"));
    }
    for (i, unit) in build.units.iter().enumerate() {
        let here = |field: &str| at(format_args!("units/{i}/{field}"));
        let told = unit.targets == build.targets && unit.device_code_sha256.is_some();
        let silent = unit.targets.is_empty() && unit.device_code_sha256.is_none() && unit.kernels.is_empty();
        if told == silent {
            let found = format!("{}, digest {}", words(&unit.targets), unit.device_code_sha256.is_some());
            let expected = format!("{} with digest, or no word of device code", words(&build.targets));
            findings.push(Finding::mismatch("E-TARGETS", here("targets"), expected, found));
        }
        let kernels = unit.kernels.iter().enumerate();
        for (j, kernel) in kernels.filter(|(_, kernel)| !build.targets.contains(&kernel.target)) {
            let pointer = here(&format!("kernels/{j}/target"));
            findings.push(Finding::mismatch("E-TARGETS", pointer, words(&build.targets), kernel.target));
        }
    }
    findings
}

fn words(targets: &[Target]) -> String {
    match targets {
        [] => "no targets".to_owned(),
        _ => targets.iter().map(Target::to_string).collect::<Vec<_>>().join(" "),
    }
}

/// Each reason belongs to its decision.
pub(super) fn decisions(receipt: &RuntimeBuild) -> Vec<Finding> {
    let units = receipt.predicate.build.units.iter().enumerate();
    let wrong = units
        .filter(|(_, unit)| (unit.decision == Decision::Reused) != (unit.reason == Reason::ClosureEqual));
    wrong
        .map(|(i, unit)| {
            let expected = format!("a reason for {}", json::word(&unit.decision));
            Finding::mismatch(
                "E-REUSE-REASON",
                at(format_args!("units/{i}/reason")),
                expected,
                json::word(&unit.reason),
            )
        })
        .collect()
}
