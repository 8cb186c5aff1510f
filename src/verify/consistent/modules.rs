//! Modules: their objects, names, markers and loads.

use std::collections::{BTreeMap, BTreeSet};

use super::at;
use crate::receipt::{Module, Name, RuntimeBuild};
use crate::verify::Finding;

/// Each unit's object is in a module of its tree, each linked object comes from a unit, and the link command says so.
pub(super) fn links(receipt: &RuntimeBuild) -> Vec<Finding> {
    let build = &receipt.predicate.build;
    let mut findings = Vec::new();
    let mut linked = BTreeSet::new();
    let known: BTreeSet<_> = build.units.iter().map(|unit| (&unit.tree, &unit.object)).collect();
    for (i, module) in build.modules.iter().enumerate() {
        let mut own = BTreeSet::new();
        for (j, object) in module.objects.iter().enumerate() {
            let pointer = at(format_args!("modules/{i}/objects/{j}"));
            if !known.contains(&(&module.tree, object)) {
                findings.push(Finding::mismatch("E-LINK-UNKNOWN", pointer, "an object of a unit", object));
            } else if !own.insert(object) {
                findings.push(Finding::mismatch("E-COUNT", pointer, "each object once", object));
            }
            linked.insert((&module.tree, object));
        }
        findings.extend(command(i, module));
    }
    for (i, unit) in build.units.iter().enumerate() {
        if !linked.contains(&(&unit.tree, &unit.object)) {
            let pointer = at(format_args!("units/{i}/object"));
            findings.push(Finding::mismatch(
                "E-LINK-ORPHAN",
                pointer,
                "a module that links it",
                &unit.object,
            ));
        }
    }
    findings
}

/// The objects of the link command are the module's, in its order.
fn command(i: usize, module: &Module) -> Option<Finding> {
    let objects: Vec<_> = module.link_argv.iter().filter(|token| token.ends_with(".o")).collect();
    let same = |token: &str, object: &str| {
        token.strip_suffix(object).is_some_and(|b| b.is_empty() || b.ends_with('/'))
    };
    let equal = objects.len() == module.objects.len()
        && objects.iter().zip(&module.objects).all(|(token, object)| same(token, object));
    let pointer = at(format_args!("modules/{i}/link_argv"));
    let expected = format!("the {} objects in their order", module.objects.len());
    (!equal)
        .then(|| Finding::mismatch("E-LINK-ARGV", pointer, expected, format!("{} objects", objects.len())))
}

/// Names, files and markers are each module's own; its tree is declared; it exports something.
pub(super) fn identity(receipt: &RuntimeBuild) -> Vec<Finding> {
    let build = &receipt.predicate.build;
    let mut findings = Vec::new();
    if build.modules.is_empty() {
        findings.push(Finding::mismatch("E-COUNT", at("modules"), "at least one module", "none"));
    }
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (i, module) in build.modules.iter().enumerate() {
        for (field, value) in [("name", &*module.name), ("file", &*module.file), ("marker", &*module.marker)]
        {
            if let Some(first) = seen.insert((field, value), i) {
                let pointer = at(format_args!("modules/{i}/{field}"));
                let expected = format!("another {field} than that of module {first}");
                findings.push(Finding::mismatch("E-MODULE-TWIN", pointer, expected, value));
            }
        }
        if !build.trees.iter().any(|tree| tree.name == module.tree) {
            let pointer = at(format_args!("modules/{i}/tree"));
            findings.push(Finding::mismatch("E-UNIT-TREE", pointer, "a declared tree", &module.tree));
        }
        if module.exports.is_empty() {
            let pointer = at(format_args!("modules/{i}/exports"));
            findings.push(Finding::mismatch("E-MODULE-EXPORT", pointer, "at least one export", "none"));
        }
    }
    findings
}

/// Every module was loaded alone and, up to three of them, all together in every order; more of them forwards and back.
pub(super) fn loads(receipt: &RuntimeBuild) -> Vec<Finding> {
    let build = &receipt.predicate.build;
    let names: Vec<&Name> = build.modules.iter().map(|module| &module.name).collect();
    let found: Vec<Vec<&Name>> = build.load_checks.iter().map(|check| check.order.iter().collect()).collect();
    let missing = needed(&names).into_iter().filter(|order| !found.contains(order));
    let mut findings: Vec<_> = missing
        .map(|order| {
            let order = order.iter().map(|name| &***name).collect::<Vec<_>>().join(" ");
            Finding::mismatch("E-LOAD-ORDER", at("load_checks"), format!("a load of {order}"), "none")
        })
        .collect();
    for (i, order) in found.iter().enumerate() {
        if order.is_empty() || order.iter().any(|name| !names.contains(name)) || found[..i].contains(order) {
            let pointer = at(format_args!("load_checks/{i}/order"));
            findings.push(Finding::mismatch(
                "E-LOAD-ORDER",
                pointer,
                "modules of this build, each order once",
                "another",
            ));
        }
    }
    findings
}

fn needed<'a>(names: &[&'a Name]) -> Vec<Vec<&'a Name>> {
    let mut orders: Vec<Vec<_>> = names.iter().map(|name| vec![*name]).collect();
    if names.len() > 3 {
        orders.push(names.to_vec());
        orders.push(names.iter().rev().copied().collect());
    } else if names.len() > 1 {
        orders.extend(permutations(names));
    }
    orders
}

fn permutations<'a>(names: &[&'a Name]) -> Vec<Vec<&'a Name>> {
    if names.is_empty() {
        return vec![vec![]];
    }
    let with_first = |i: usize| {
        let mut rest = names.to_vec();
        let first = rest.remove(i);
        permutations(&rest).into_iter().map(move |order| [vec![first], order].concat())
    };
    (0..names.len()).flat_map(with_first).collect()
}
