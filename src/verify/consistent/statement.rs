//! The statement as a whole: order of lists, subjects, the run, scope and limitations.

use super::{at, unordered};
use crate::command;
use crate::json;
use crate::limits::{Applied, Limits};
use crate::receipt::{Limitation, Name, RuntimeBuild, SandboxMode, Scope};
use crate::verify::Finding;

/// Each list that the format sorts is strictly ascending.
pub(super) fn order(receipt: &RuntimeBuild) -> Vec<Finding> {
    let build = &receipt.predicate.build;
    let mut findings = Vec::new();
    let mut sorted = |pointer: String, first: Option<usize>| {
        if let Some(i) = first {
            findings.push(Finding::mismatch(
                "E-ORDER",
                format!("{pointer}/{i}"),
                "an ascending list",
                "a row out of order",
            ));
        }
    };
    macro_rules! by {
        ($list:expr, $pointer:expr, $key:expr) => {
            sorted($pointer, unordered(&$list.iter().map($key).collect::<Vec<_>>()))
        };
    }
    by!(build.wheels, at("wheels"), |wheel| &wheel.name);
    by!(build.toolchain.files, at("toolchain/files"), |file| &file.path);
    by!(build.toolchain.links, at("toolchain/links"), |link| &link.path);
    by!(build.versions, at("versions"), |row| (&row.component, &row.path));
    by!(build.host_compiler.programs, at("host_compiler/programs"), |program| &program.name);
    by!(build.environment, at("environment"), |variable| &variable.name);
    by!(build.inputs, at("inputs"), |input| (input.root, &input.path, input.sha256));
    for (i, tree) in build.trees.iter().enumerate() {
        by!(tree.files, at(format_args!("trees/{i}/files")), |file| &file.path);
    }
    let tree_at = |name: &Name| build.trees.iter().position(|tree| tree.name == *name);
    by!(build.units, at("units"), |unit| (tree_at(&unit.tree), &unit.source));
    for (i, unit) in build.units.iter().enumerate() {
        sorted(at(format_args!("units/{i}/inputs")), unordered(&unit.inputs));
        by!(unit.kernels, at(format_args!("units/{i}/kernels")), |kernel| (&kernel.target, &kernel.symbol));
    }
    for (i, module) in build.modules.iter().enumerate() {
        sorted(at(format_args!("modules/{i}/exports")), unordered(&module.exports));
        sorted(at(format_args!("modules/{i}/link_inputs")), unordered(&module.link_inputs));
    }
    sorted(at("targets"), unordered(&build.targets));
    sorted(at("scope"), unordered(&build.scope));
    sorted(at("claims"), unordered(&build.claims));
    sorted(at("limitations"), unordered(&build.limitations));
    sorted(
        "/predicate/run/replaced_environment".to_owned(),
        unordered(&receipt.predicate.run.replaced_environment),
    );
    findings
}

/// Subjects and modules are the same files in the same order.
pub(super) fn subjects(receipt: &RuntimeBuild) -> Vec<Finding> {
    let modules = &receipt.predicate.build.modules;
    if modules.len() != receipt.subject.len() {
        let (expected, found) = (modules.len(), receipt.subject.len());
        return vec![Finding::mismatch(
            "E-COUNT",
            "/subject",
            format!("{expected} modules"),
            format!("{found} subjects"),
        )];
    }
    let mut findings = Vec::new();
    for (i, (subject, module)) in receipt.subject.iter().zip(modules).enumerate() {
        if subject.name != module.file {
            let pointer = format!("/subject/{i}/name");
            findings.push(Finding::mismatch("E-SUBJECT-MODULE", pointer, &module.file, &subject.name));
        }
        if subject.digest.sha256 != module.sha256 {
            let pointer = format!("/subject/{i}/digest/sha256");
            findings.push(Finding::mismatch(
                "E-SUBJECT-MODULE",
                pointer,
                module.sha256,
                subject.digest.sha256,
            ));
        }
    }
    findings
}

/// Times, sandbox, place and limits do not contradict each other.
pub(super) fn run(receipt: &RuntimeBuild) -> Vec<Finding> {
    let (run, place) = (&receipt.predicate.run, &receipt.predicate.build.place);
    let mut findings = Vec::new();
    if run.finished_on < run.started_on {
        let expected = format!("not before {}", run.started_on);
        findings.push(Finding::mismatch("E-TIME", "/predicate/run/finished_on", expected, &run.finished_on));
    }
    let sandbox = &run.sandbox;
    let told = match (sandbox.mode, sandbox.entered) {
        (SandboxMode::Auto, false) => sandbox.refused_step.is_some(),
        (SandboxMode::Off, true) | (SandboxMode::Require, false) => false,
        _ => sandbox.refused_step.is_none(),
    };
    if !told || sandbox.entered != place.sandboxed || place.sandboxed == place.scratch_path_sha256.is_some() {
        let expected = "one account of whether compiles were fenced in, in mode, step and place";
        let step = sandbox.refused_step.as_deref().unwrap_or("no step");
        let found = format!(
            "mode {}, entered {}, {step} refused, place sandboxed {}",
            json::word(&sandbox.mode),
            sandbox.entered,
            place.sandboxed
        );
        findings.push(Finding::mismatch("E-SANDBOX", "/predicate/run/sandbox", expected, found));
    }
    findings.extend(place_findings(receipt));
    if let Some(applied) = &run.limits.applied {
        findings.extend(limits(&run.limits.requested, applied));
    }
    if let Some(expected) = run.limits.requested.jobs.filter(|jobs| *jobs != run.jobs) {
        findings.push(Finding::mismatch("E-LIMITS", "/predicate/run/jobs", expected, run.jobs));
    }
    let requested = run.limits.requested.cpu_affinity.as_ref();
    let applied = run.limits.applied.as_ref().map(|applied| &applied.cpu_affinity);
    for (side, cpus) in [("requested", requested), ("applied", applied)] {
        if cpus.is_some_and(|cpus| unordered(cpus).is_some()) {
            let pointer = format!("/predicate/run/limits/{side}/cpu_affinity");
            findings.push(Finding::mismatch(
                "E-PRIV-ARRAY",
                pointer,
                "ascending CPU numbers",
                "another list",
            ));
        }
    }
    findings
}

/// Fixed places in the sandbox, `${scratch}` without it.
fn place_findings(receipt: &RuntimeBuild) -> Vec<Finding> {
    let place = &receipt.predicate.build.place;
    let demanded = command::Place::recorded(place.sandboxed);
    let all = [
        ("toolchain", demanded.toolchain, &place.toolchain),
        ("tree", demanded.tree, &place.tree),
        ("build", demanded.build, &place.build),
    ];
    let wrong = all.into_iter().filter(|(_, demanded, told)| **demanded != ***told);
    wrong
        .map(|(field, demanded, told)| {
            Finding::mismatch("E-SANDBOX", at(format_args!("place/{field}")), demanded, told)
        })
        .collect()
}

/// Every limit that was asked for was applied; a process may be nicer than asked.
fn limits(requested: &Limits, applied: &Applied) -> Vec<Finding> {
    let cpus = requested.cpu_affinity.as_ref().filter(|cpus| **cpus != applied.cpu_affinity);
    let nice = requested.nice.filter(|nice| applied.nice < *nice);
    let space = requested.address_space_bytes.filter(|bytes| applied.address_space_bytes != Some(*bytes));
    let rows = [
        ("cpu_affinity", cpus.map(|c| format!("{c:?}")), format!("{:?}", applied.cpu_affinity)),
        ("nice", nice.map(|n| format!("{n} or more")), applied.nice.to_string()),
        (
            "address_space_bytes",
            space.map(|b| b.to_string()),
            applied.address_space_bytes.map_or("unlimited".to_owned(), |b| b.to_string()),
        ),
    ];
    rows.into_iter()
        .filter_map(|(field, missed, found)| {
            let pointer = format!("/predicate/run/limits/applied/{field}");
            Some(Finding::mismatch("E-LIMITS", pointer, missed?, found))
        })
        .collect()
}

/// What was done is said, and each limitation that follows from it.
pub(super) fn scope(receipt: &RuntimeBuild) -> Vec<Finding> {
    let build = &receipt.predicate.build;
    let mut findings = Vec::new();
    for scope in [Scope::Compiled, Scope::Linked, Scope::Loaded] {
        if !build.scope.contains(&scope) {
            findings.push(Finding::mismatch("E-SCOPE", at("scope"), json::word(&scope), "not said"));
        }
    }
    let rules = [
        (Limitation::ProbesNotRecorded, build.certificate.is_none()),
        (Limitation::NotSandboxed, !build.place.sandboxed),
        (Limitation::NotExecutedOnGpu, true),
        (Limitation::P2pNotExecuted, build.trees.iter().any(|tree| &*tree.name == "p2p")),
    ];
    for (limitation, needed) in rules {
        if build.limitations.contains(&limitation) != needed {
            let words =
                |yes: bool| format!("{} {}", json::word(&limitation), if yes { "said" } else { "not said" });
            findings.push(Finding::mismatch("E-SCOPE", at("limitations"), words(needed), words(!needed)));
        }
    }
    findings
}
