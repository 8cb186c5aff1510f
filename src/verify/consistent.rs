//! Level 1: what the receipt says agrees with itself, without a look at any other byte.

mod modules;
mod sources;
mod statement;
mod units;

use super::well_formed::Folder;
use super::{Check, Finding, Kind, Level, State};
use crate::receipt::{Build, FILE, RuntimeBuild};
use crate::{json, runtime_md};

/// One judgement of the whole receipt.
type Judge = fn(&RuntimeBuild) -> Vec<Finding>;

const fn kind(id: &'static str, why: &'static str) -> Kind {
    const NEXT: &str = "reject the receipt, or ask its producer to build again and publish the new one";
    Kind { id, level: Level::Consistent, why, next: NEXT }
}

/// All judgements of this level, in the order of the flow from wheels to modules.
const JUDGES: [(Kind, Judge); 17] = [
    (kind("order", "lists in one order leave no room for a second reading"), statement::order),
    (kind("subjects", "the statement must speak of the modules that it describes"), statement::subjects),
    (kind("paths", "a path that leaves its folder or has a twin names another file"), sources::paths),
    (kind("toolchain", "the toolchain must be what the wheels hold, no file more"), sources::toolchain),
    (kind("trees", "a tree's digest must be that of its listed files"), sources::trees),
    (kind("overlays", "a difference that is not listed is a hidden change of the source"), sources::overlays),
    (kind("environment", "an undeclared variable can change code"), units::environment),
    (kind("units", "each unit must compile a file of its tree to an object of its own"), units::units),
    (kind("argv", "an argument file or a forced include is an input that no list shows"), units::argv),
    (kind("inputs", "an input that no list explains could be anything"), units::inputs),
    (
        kind("targets", "device code for an undeclared target may run where it was never judged"),
        units::targets,
    ),
    (kind("decisions", "each decision needs its reason"), units::decisions),
    (kind("links", "a module must hold its tree's objects, each once, and no other"), modules::links),
    (kind("modules", "a module must be known by its own name and marker"), modules::identity),
    (kind("loads", "modules that clash do so in one order only"), modules::loads),
    (kind("run", "a run that contradicts itself did not happen as told"), statement::run),
    (kind("scope", "what was not done must be said"), statement::scope),
];

const REUSED: Kind = Kind {
    id: "reused-units",
    level: Level::Consistent,
    why: "a reused object stands on its certificate",
    next: "verify with the object-reuse certificate beside the receipt",
};
const CLAIMS: Kind = Kind {
    id: "claims",
    level: Level::Consistent,
    why: "only a rebuild can show a claim about rebuilds",
    next: "build the same inputs again and compare the receipts",
};
const RUN: Kind = Kind {
    id: "run-facts",
    level: Level::Consistent,
    why: "session, times, user and limits leave no trace in the bytes",
    next: "trust them as far as you trust the producer",
};
const PAGE: Kind = kind("runtime-md", "the page that people read must say what the receipt says");

/// Every check of this level.
pub(super) fn check(receipt: &RuntimeBuild, folder: &Folder) -> Vec<Check> {
    let mut checks: Vec<_> =
        JUDGES.iter().flat_map(|(kind, judge)| kind.judge(FILE, 1, judge(receipt))).collect();
    let build = &receipt.predicate.build;
    checks.extend(reused(build).filter(|_| build.certificate.is_none()));
    for (i, claim) in build.claims.iter().enumerate() {
        let pointer = format!("{FILE}#/predicate/build/claims/{i}");
        checks.push(CLAIMS.unseen(State::Asserted, &pointer, "E-ASSERTED", json::word(claim)));
    }
    let pointer = format!("{FILE}#/predicate/run");
    checks.push(RUN.unseen(State::Asserted, &pointer, "E-ASSERTED", "the producer's word"));
    if let Some(page) = folder.get(runtime_md::FILE) {
        let same = page == runtime_md::render(receipt).as_bytes();
        let differs =
            || Finding::mismatch("E-RUNTIME-MD", "", "the page made from this receipt", "another text");
        let findings = if same { vec![] } else { vec![differs()] };
        checks.extend(PAGE.judge(runtime_md::FILE, 1, findings));
    }
    checks
}

fn reused(build: &Build) -> Option<Check> {
    use crate::receipt::Decision;
    let units = build.units.iter().filter(|unit| unit.decision == Decision::Reused).count();
    let pointer = format!("{FILE}#/predicate/build/units");
    let found = format!("{units} reused units and no certificate");
    (units > 0).then(|| REUSED.unseen(State::Unverifiable, &pointer, "E-REUSE-CERTIFICATE", found))
}

/// The pointer of a field of the build part.
fn at(path: impl std::fmt::Display) -> String {
    format!("/predicate/build/{path}")
}

/// The first place where `items` is not strictly ascending, if there is one.
fn unordered<T: PartialOrd>(items: &[T]) -> Option<usize> {
    items.windows(2).position(|pair| pair[0] >= pair[1]).map(|i| i + 1)
}
