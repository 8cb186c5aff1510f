//! Level 4: what an auditor's own compiles gave, against the certificate. The compiles ran elsewhere; this judges them.

use super::{Check, Finding, Kind, Level, State};
use crate::certificate::{Certificate, FILE, Unit};
use crate::challenge::{Drawn, Grade, Graded, Nonce, detection_per_mille};
use crate::receipt::Reason;
use crate::reuse::Decided;

const fn kind(id: &'static str, why: &'static str, next: &'static str) -> Kind {
    Kind { id, level: Level::ObjectsReproduced, why, next }
}

const OBJECTS: Kind = kind(
    "objects-reproduced",
    "only a compile shows that an object came out of its command and its sources",
    "reject the receipt, or compare the two compilers: --format json lists what was compiled",
);
const CLOSURES: Kind = kind(
    "closures-observed",
    "a closure that leaves out what a compile read or looked for certifies too much",
    "reject the certificate: its closure is not that of this compile",
);
const DEFINES: Kind = kind(
    "defines-unused",
    "a name that a pass expands or asks for changes the object",
    "reject the certificate: the two objects are of different sources",
);
const SAMPLE: Kind = kind(
    "sample",
    "a sample finds a bad object with a probability, not for certain",
    "--recompile all leaves no chance",
);

/// What the challenge gave.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// The auditor's nonce.
    pub nonce: Nonce,
    /// Reused and compiled units, and how many of each were drawn.
    pub kinds: [Drawn; 2],
    /// Each drawn unit.
    pub units: Vec<ReproducedUnit>,
    /// Each reused unit whose command differs from its counterpart's, with the reason for which it should have been compiled.
    pub defines: Vec<(usize, Option<Decided>)>,
}

/// One unit that was compiled again.
#[derive(Clone, Debug)]
pub struct ReproducedUnit {
    /// Its row in the certificate.
    pub unit: usize,
    /// Its object against the published one.
    pub graded: Graded,
    /// The first thing in which the observed closure differs from the certified one.
    pub closure_differs: Option<String>,
}

/// The checks of `reproduced`.
pub(super) fn check(certificate: &Certificate, reproduced: &Reproduced) -> Vec<Check> {
    let at = |unit: usize, field: &str| format!("/predicate/units/{unit}/{field}");
    let named = |unit: usize| {
        certificate
            .units
            .get(unit)
            .map_or(String::new(), |unit: &Unit| format!("{}/{}", unit.tree, unit.object))
    };
    let object = |one: &ReproducedUnit| {
        let sections = one.graded.sections.join(" ");
        let found = format!("{}: another object; {sections} differ", named(one.unit));
        let expected = "the published bytes";
        match one.graded.grade {
            Grade::BitIdentical => None,
            Grade::CodeIdentical => Some(Finding {
                state: State::Warn,
                ..Finding::mismatch("E-REPRODUCED-CODE", at(one.unit, "object_sha256"), expected, found)
            }),
            Grade::Differs => {
                Some(Finding::mismatch("E-REPRODUCED", at(one.unit, "object_sha256"), expected, found))
            }
        }
    };
    let closure = |one: &ReproducedUnit| {
        let found = format!("{}: {}", named(one.unit), one.closure_differs.as_ref()?);
        let expected = "what the compile was seen to depend on";
        Some(Finding::mismatch("E-CLOSURE-OBSERVED", at(one.unit, "files"), expected, found))
    };
    let define = |(unit, decided): &(usize, Option<Decided>)| {
        let decided = decided.as_ref()?;
        let about = decided.about.as_deref().unwrap_or_default();
        let found = format!("{}: {about}", named(*unit));
        let used = decided.reason == Reason::NameDefineUsed;
        let make = if used { Finding::mismatch } else { Finding::unverifiable };
        Some(make(
            "E-REUSE-IDENTIFIER",
            at(*unit, "unused"),
            "a name that no pass expands or asks for",
            found,
        ))
    };
    let units = &reproduced.units;
    let mut checks = OBJECTS.judge(FILE, units.len(), units.iter().filter_map(object).collect());
    checks.extend(CLOSURES.judge(FILE, units.len(), units.iter().filter_map(closure).collect()));
    if !reproduced.defines.is_empty() {
        let found = reproduced.defines.iter().filter_map(define).collect();
        checks.extend(DEFINES.judge(FILE, reproduced.defines.len(), found));
    }
    checks.push(SAMPLE.unseen(State::Asserted, FILE, "E-SAMPLE", power(reproduced)));
    checks
}

/// What the sample was, and what it would have shown.
fn power(reproduced: &Reproduced) -> String {
    let [reused, compiled] = reproduced.kinds;
    let all = reused.population + compiled.population;
    let chance = |bad: usize| {
        let per_mille = detection_per_mille(reproduced.kinds, bad);
        format!("{bad} bad of {all}: found with {}.{} %", per_mille / 10, per_mille % 10)
    };
    let mut bad: Vec<usize> = [1, all / 100, all / 20, all / 10].into_iter().filter(|bad| *bad > 0).collect();
    bad.dedup();
    let chances: Vec<String> = bad.into_iter().map(chance).collect();
    format!(
        "{} of {} reused and {} of {} compiled units by nonce {}; {}",
        reused.sample,
        reused.population,
        compiled.sample,
        compiled.population,
        reproduced.nonce,
        chances.join(", ")
    )
}
