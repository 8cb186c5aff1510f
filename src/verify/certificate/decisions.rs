//! Every closure against the lists of its own trees, and every decision made again.

use super::super::Finding;
use super::Ground;
use crate::certificate::{Certificate, Unit};
use crate::closure::{Closure, Found, Located};
use crate::json;
use crate::receipt::{Decision, Reason};
use crate::reuse::{self, Answer, Condition, Decided, Difference, Recorded};

/// What a unit is said to have read, and not to have found, is so in the lists of its own tree and toolchain; places of the
/// machine are the record's word here.
pub(super) fn closures(ground: &Ground<'_>) -> Vec<Finding> {
    let names = ground.certificate.names();
    let mut findings = Vec::new();
    for (i, unit) in ground.certificate.units.iter().enumerate() {
        let here = |field: &str| format!("/predicate/units/{i}/{field}");
        let Some(closure) = ground.certificate.closure(unit) else {
            let expected = "rows of the tables, one for each place";
            let field = stray(ground.certificate, unit);
            findings.push(Finding::mismatch("E-INPUT-ROW", here(field), expected, "other rows"));
            continue;
        };
        let invocation = ground.certificate.invocation(unit);
        let look = |at: &Located| look(ground, &unit.tree, &closure, at);
        let comparison = reuse::compare(&invocation, &closure, &invocation, &names, look);
        if let Some(Difference { condition, about, recorded, found: listed }) = comparison.differences.first()
        {
            let (code, field) = match condition {
                Condition::Content => ("E-HASH-INPUT", "files"),
                Condition::Mtime => ("E-INPUT-MTIME", "files"),
                Condition::Folder => ("E-CERT-FOLDER", "folders"),
                Condition::Listing => ("E-CERT-LISTING", "listed"),
                Condition::Link => ("E-CERT-LINK", "links"),
                _ => ("E-CERT-PROBE", "absent"),
            };
            let told = format!("{about}: {recorded}");
            findings.push(Finding::mismatch(code, here(field), format!("{about}: {listed}"), told));
        }
        if comparison.recorded != unit.closure_sha256 {
            let (expected, found) = (comparison.recorded, unit.closure_sha256);
            findings.push(Finding::mismatch("E-CERT-CLOSURE", here("closure_sha256"), expected, found));
        }
        if !closure.files.keys().any(|at| at.to_string() == format!("tree:{}", unit.source)) {
            findings.push(Finding::mismatch("E-INPUT-SOURCE", here("files"), &unit.source, "no such input"));
        }
    }
    findings
}

/// The field of `unit` that has a row beyond its table, or two of one place.
fn stray(certificate: &Certificate, unit: &Unit) -> &'static str {
    let Certificate { absent, folders, listed, links, .. } = certificate;
    let whole = [
        ("absent", unit.absent.of_table(absent).is_some()),
        ("folders", unit.folders.of_table(folders).is_some()),
        ("listed", unit.listed.of_table(listed).is_some()),
        ("links", unit.links.of_table(links).is_some()),
    ];
    whole.into_iter().find(|(_, whole)| !whole).map_or("files", |(field, _)| field)
}

/// What stands at `at` for a unit of `tree`; what `closure` says of places of the machine.
fn look(ground: &Ground<'_>, tree: &str, closure: &Closure, at: &Located) -> Found {
    ground.lists(tree).find(at).unwrap_or_else(|| closure.find(at).unwrap_or(Found::Absent))
}

/// Each decision as the rule makes it from the certificate and the lists.
pub(super) fn decisions(ground: &Ground<'_>) -> Vec<Finding> {
    let units = ground.certificate.units.iter().enumerate();
    units.flat_map(|(i, unit)| decision(ground, i, unit)).collect()
}

fn decision(ground: &Ground<'_>, i: usize, unit: &Unit) -> Vec<Finding> {
    let here = |field: &str| format!("/predicate/units/{i}/{field}");
    let reused = unit.decision == Decision::Reused;
    if reused != (unit.reason == Reason::ClosureEqual) {
        let expected = format!("a reason for {}", json::word(&unit.decision));
        return vec![Finding::mismatch("E-REUSE-REASON", here("reason"), expected, json::word(&unit.reason))];
    }
    let mut findings = details(ground, i, unit);
    findings.extend(again(ground, i, unit));
    findings
}

/// The decision made again.
fn again(ground: &Ground<'_>, i: usize, unit: &Unit) -> Vec<Finding> {
    let here = |field: &str| format!("/predicate/units/{i}/{field}");
    let reused = unit.decision == Decision::Reused;
    let Some((other, names)) = ground.counterpart(unit) else {
        let free = [Reason::NoCounterpart, Reason::NotConsidered];
        return match free.contains(&unit.reason) {
            true => vec![],
            false => vec![Finding::mismatch(
                "E-REUSE-COUNTERPART",
                here("reason"),
                json::word(&Reason::NoCounterpart),
                json::word(&unit.reason),
            )],
        };
    };
    let Some(closure) = ground.certificate.closure(other) else { return vec![] };
    let (invocation, bars) = (ground.certificate.invocation(other), ground.certificate.bars(other));
    let recorded = Recorded { invocation: &invocation, closure: &closure, bars: &bars };
    let wanted = ground.certificate.invocation(unit);
    let answer = reuse::decide(recorded, &wanted, &names, |at| look(ground, &unit.tree, &closure, at));
    match (answer, reused) {
        (Answer::Take { test_defines, .. }, true) => taken(ground, i, unit, other, test_defines),
        (Answer::Compile(decided), true) => {
            let pointer = here("decision");
            let found = format!("reused, although {}", told(&decided));
            vec![Finding::mismatch(refusal(&decided), pointer, "compiled", found)]
        }
        (Answer::Take { .. }, false) => not_taken(i, unit),
        (Answer::Compile(decided), false) => differently(i, unit, &decided),
    }
}

/// A reason says what it is about, and nothing where it is about nothing.
fn details(ground: &Ground<'_>, i: usize, unit: &Unit) -> Vec<Finding> {
    let here = |field: &str| format!("/predicate/units/{i}/{field}");
    let wrong = |field: &str, expected: &str| {
        vec![Finding::mismatch("E-REUSE-REASON", here(field), expected, json::word(&unit.reason))]
    };
    let about = unit.about.as_deref();
    let values = unit.recorded.is_some() || unit.found.is_some();
    let name = |about: &str| ground.counterpart(unit).is_some_and(|(_, names)| names.contains(about));
    let untold = match unit.reason {
        Reason::NoCounterpart | Reason::NotConsidered | Reason::AlreadyCompiled | Reason::ClosureEqual => {
            about.is_some() || values
        }
        Reason::NameDefineUsed => !about.is_some_and(name) || values,
        Reason::NameDefineUntold => about.is_none() || values,
        _ => about.is_none(),
    };
    if untold {
        return wrong("about", "what the reason is about, and nothing else");
    }
    if unit.decision == Decision::Compiled && !unit.unused.is_empty() {
        let told = unit.unused.iter().map(|name| name.to_string()).collect::<Vec<_>>().join(", ");
        return vec![Finding::mismatch("E-REUSE-DEFINE", here("unused"), "none of a compiled unit", told)];
    }
    let considered = ground.certificate.units.iter().any(|unit| unit.decision == Decision::Reused);
    if unit.reason == Reason::NotConsidered && considered {
        return wrong("reason", "a reason of a build that considered reuse");
    }
    vec![]
}

/// A reused object is its counterpart's, and names that differ were shown to be unused.
fn taken(ground: &Ground<'_>, i: usize, unit: &Unit, other: &Unit, test_defines: bool) -> Vec<Finding> {
    let here = |field: &str| format!("/predicate/units/{i}/{field}");
    let mut findings = Vec::new();
    if (unit.object_sha256, unit.size_bytes) != (other.object_sha256, other.size_bytes) {
        let expected = format!("{}, the object of {}", other.object_sha256, other.tree);
        findings.push(Finding::mismatch(
            "E-REUSE-OBJECT",
            here("object_sha256"),
            expected,
            unit.object_sha256,
        ));
    }
    let of_receipt = |unit: &Unit| {
        let mut all = ground.build.units.iter();
        let told = all.find(|told| told.tree == unit.tree && told.source == unit.source)?;
        Some((told.device_code_sha256, &told.targets, &told.kernels))
    };
    if of_receipt(unit) != of_receipt(other) {
        let expected = format!("device code, targets and kernels as of {}", other.tree);
        findings.push(Finding::mismatch("E-REUSE-OBJECT", here("object"), expected, "others in the receipt"));
    }
    if unit.closure_sha256 != other.closure_sha256 || other.decision != Decision::Compiled {
        let expected = format!("{}, compiled", other.closure_sha256);
        findings.push(Finding::mismatch(
            "E-REUSE-CLOSURE",
            here("closure_sha256"),
            expected,
            unit.closure_sha256,
        ));
    }
    let names: Vec<String> = match test_defines {
        true => ground.counterpart(unit).map(|(_, names)| names.into_iter().collect()).unwrap_or_default(),
        false => vec![],
    };
    let told: Vec<String> = unit.unused.iter().map(ToString::to_string).collect();
    if names != told {
        let shown = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        findings.push(Finding::mismatch("E-REUSE-DEFINE", here("unused"), shown(&names), shown(&told)));
    }
    findings
}

/// A unit that could have been taken was compiled for a reason that only the run could know.
fn not_taken(i: usize, unit: &Unit) -> Vec<Finding> {
    let known = [
        Reason::NotConsidered,
        Reason::AlreadyCompiled,
        Reason::NameDefineUsed,
        Reason::NameDefineUntold,
        Reason::ChangedAtUse,
    ];
    // A place of the machine may have changed within the run; the record of it is what is looked at here.
    let looked_at = [
        Reason::LinkDiffers,
        Reason::ListingDiffers,
        Reason::FolderGone,
        Reason::ProbeFound,
        Reason::ContentDiffers,
        Reason::MtimeDiffers,
    ];
    let of_machine = |about: &str| about.starts_with("system:") || about.starts_with("host:");
    let machine = looked_at.contains(&unit.reason) && unit.about.as_deref().is_some_and(of_machine);
    if known.contains(&unit.reason) || machine {
        return vec![];
    }
    let pointer = format!("/predicate/units/{i}/reason");
    let expected = "a difference that is there, or a reason that only the run could know";
    vec![Finding::mismatch("E-REUSE-REASON", pointer, expected, json::word(&unit.reason))]
}

/// The first condition that fails is the one that the certificate names.
fn differently(i: usize, unit: &Unit, decided: &Decided) -> Vec<Finding> {
    let text = |value: &Option<crate::receipt::Token>| value.as_ref().map(ToString::to_string);
    let own = (unit.reason, text(&unit.about), text(&unit.recorded), text(&unit.found));
    let again = (decided.reason, decided.about.clone(), decided.recorded.clone(), decided.found.clone());
    if own == again || unit.reason == Reason::NotConsidered {
        return vec![];
    }
    let pointer = format!("/predicate/units/{i}/reason");
    let (reason, about, ..) = own;
    let found = format!("{} {}", json::word(&reason), about.unwrap_or_default());
    vec![Finding::mismatch("E-REUSE-REASON", pointer, told(decided), found)]
}

fn told(decided: &Decided) -> String {
    let part = |value: &Option<String>| value.clone().unwrap_or_default();
    let (recorded, found) = (part(&decided.recorded), part(&decided.found));
    format!("{} {} {recorded} -> {found}", json::word(&decided.reason), part(&decided.about))
}

/// The code for a reuse that the rule refuses.
fn refusal(decided: &Decided) -> &'static str {
    match decided.reason {
        Reason::ArgumentDiffers => {
            let define = |value: &Option<String>| value.as_ref().is_some_and(|word| word.starts_with("-D"));
            if define(&decided.recorded) || define(&decided.found) {
                "E-REUSE-DEFINE"
            } else {
                "E-REUSE-FLAG"
            }
        }
        Reason::EnvironmentDiffers => "E-REUSE-ENVIRONMENT",
        Reason::ContentDiffers | Reason::MtimeDiffers => "E-REUSE-INPUT",
        Reason::ProbeFound | Reason::FolderGone | Reason::ListingDiffers | Reason::LinkDiffers => {
            "E-REUSE-PROBE"
        }
        _ => "E-REUSE-BARRED",
    }
}

/// The controls, tried again on the same unit.
pub(super) fn controls(ground: &Ground<'_>) -> Vec<Finding> {
    let told = &ground.certificate.controls;
    let pointer = "/predicate/controls";
    match ground.certificate.tried() {
        Ok(again) if again == *told => vec![],
        Ok(again) => {
            let shown = |controls: &crate::certificate::Controls| {
                format!("unit {}: {} tried, {} refused", controls.unit, controls.tried, controls.refused)
            };
            vec![Finding::mismatch("E-CONTROLS", pointer, shown(&again), shown(told))]
        }
        Err(why) => vec![Finding::mismatch("E-CONTROLS", pointer, "every control refused", why)],
    }
}
