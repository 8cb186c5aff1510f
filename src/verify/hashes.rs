//! Level 2: every digest of the receipt against bytes, and what the bytes hold against what is said of them; on all
//! cores, each file read once.

mod compare;
mod contents;
mod layout;
mod wheels;

use camino::Utf8Path;

use layout::{Item, Layout};

use super::{Check, Finding, Kind, Level, Request, State};
use crate::Outcome;
use crate::receipt::{Build, FILE, RuntimeBuild};

const fn kind(id: &'static str, why: &'static str, next: &'static str) -> Kind {
    Kind { id, level: Level::HashesVerified, why, next }
}

const GIVE_SCRATCH: &str = "give the scratch of the build: --tree DIR";
const WHEELS: Kind = kind(
    "wheel-bytes",
    "another wheel is another compiler",
    "fetch the wheels of the lock and give their folder: --wheelhouse DIR",
);
const WHEEL_CONTENTS: Kind = kind(
    "wheel-contents",
    "a file of the toolchain that no wheel holds came from elsewhere",
    "reject the receipt: its toolchain is not that of its wheels",
);
const TOOLCHAIN: Kind = kind(
    "toolchain-bytes",
    "a changed or added file of the toolchain changes code",
    "give the scratch of the build, or unpack the wheels into a fresh one: --tree DIR",
);
const TREES: Kind = kind("tree-bytes", "a changed or added source changes code", GIVE_SCRATCH);
const OBJECTS: Kind = kind("object-bytes", "a module is made of its objects", GIVE_SCRATCH);
const OBJECT_CONTENTS: Kind = kind(
    "object-contents",
    "an honest digest of an object for other targets is still of an object for other targets",
    "reject the receipt: its objects are not what it says of them",
);
const MODULES: Kind = kind("module-bytes", "the modules are what the receipt is about", GIVE_SCRATCH);
const MODULE_CONTENTS: Kind = kind(
    "module-contents",
    "what a module exports, needs and runs on the GPU is in its bytes, whatever the receipt says",
    "reject the receipt: its modules are not what it says of them",
);
const LOGS: Kind = kind("log-bytes", "a log that changed tells of another build", GIVE_SCRATCH);
const SYSTEM: Kind = kind(
    "system-bytes",
    "system headers and the host compiler are inputs too",
    "verify on a system with the packages of the builder",
);
const FACTS: Kind = kind(
    "build-facts",
    "markers show at a load alone, the rest of these when the components are asked or the sources compiled again",
    "build again from the same inputs and compare the receipts",
);

/// Every check of this level that needs bytes; without a folder those that need one are NOT-RUN.
pub(super) fn check(receipt: &RuntimeBuild, request: &Request) -> Outcome<Vec<Check>> {
    let build = &receipt.predicate.build;
    let layout = request.tree.as_deref().map(Layout);
    let wheels = request.wheelhouse.clone().or_else(|| layout.as_ref().map(Layout::wheels));
    let mut checks = Vec::new();
    match wheels {
        Some(wheels) => {
            let opened = wheels::open(build, &wheels);
            checks.extend(judged(WHEELS, build.wheels.len(), opened.bytes));
            checks.extend(judged(WHEEL_CONTENTS, opened.count, opened.contents));
        }
        None => checks.extend([WHEELS, WHEEL_CONTENTS].map(not_run)),
    }
    match layout {
        Some(layout) => checks.extend(scratch(receipt, &layout, &request.receipts)?),
        None => checks.extend(
            [TOOLCHAIN, TREES, OBJECTS, OBJECT_CONTENTS, MODULES, MODULE_CONTENTS, SYSTEM].map(not_run),
        ),
    }
    let pointer = format!("{FILE}#/predicate/build");
    let told = "what modules answer at a load, versions by the components' own word, resources by ptxas's, and lists of inputs";
    checks.push(FACTS.unseen(State::Asserted, &pointer, "E-ASSERTED", told));
    Ok(checks)
}

/// Every check that needs the scratch.
fn scratch(receipt: &RuntimeBuild, layout: &Layout<'_>, receipts: &Utf8Path) -> Outcome<Vec<Check>> {
    let build = &receipt.predicate.build;
    let mut checks = toolchain(build, layout)?;
    checks.extend(trees(build, layout)?);
    let objects = contents::objects(build, &layout::object_items(build, layout));
    checks.extend(judged(OBJECTS, build.units.len(), objects.bytes));
    checks.extend(judged(OBJECT_CONTENTS, objects.count, objects.contents));
    let modules = contents::modules(build, &layout::module_items(build, layout));
    checks.extend(judged(MODULES, build.modules.len(), modules.bytes));
    checks.extend(judged(MODULE_CONTENTS, modules.count, modules.contents));
    let lists =
        [(LOGS, layout::log_items(receipt, receipts), false), (SYSTEM, layout::system_items(build), true)];
    for (kind, items, system) in lists.into_iter().filter(|(_, items, _)| !items.is_empty()) {
        checks.extend(compared(kind, &items, system, vec![]));
    }
    Ok(checks)
}

fn toolchain(build: &Build, layout: &Layout<'_>) -> Outcome<Vec<Check>> {
    const LIST: &str = "/predicate/build/toolchain/files";
    let (root, toolchain) = (layout.toolchain(), &build.toolchain);
    let mut extra = compare::extra(&root, &toolchain.files, &toolchain.links, LIST)?;
    extra.extend(compare::lost(&root, &toolchain.links, "/predicate/build/toolchain/links"));
    let items = layout::file_items(&root, &toolchain.files, LIST, "E-HASH-TOOLCHAIN");
    Ok(compared(TOOLCHAIN, &items, false, extra))
}

fn trees(build: &Build, layout: &Layout<'_>) -> Outcome<Vec<Check>> {
    let (mut items, mut extra) = (vec![], vec![]);
    for (i, tree) in build.trees.iter().enumerate() {
        let (root, pointer) = (layout.tree(&tree.name), format!("/predicate/build/trees/{i}/files"));
        extra.extend(compare::extra(&root, &tree.files, &[], &pointer)?);
        items.extend(layout::file_items(&root, &tree.files, &pointer, "E-HASH-TREE"));
    }
    Ok(compared(TREES, &items, false, extra))
}

fn not_run(kind: Kind) -> Check {
    without_evidence(kind, "no folder was given to compare with")
}

/// What is missing is evidence, whatever a finding of this kind would advise.
fn without_evidence(kind: Kind, found: &str) -> Check {
    let kind =
        Kind { next: "give what the check looks at: --tree DIR, and --wheelhouse DIR for wheels", ..kind };
    kind.unseen(State::NotRun, FILE, "E-EVIDENCE-NONE", found)
}

/// Compares all `items` with the bytes on disk; `more` are findings of the same kind made before.
fn compared(kind: Kind, items: &[Item], system: bool, mut more: Vec<Finding>) -> Vec<Check> {
    more.extend(compare::differences(items, system));
    judged(kind, items.len(), more)
}

/// The checks of `items` things with `findings`; nothing to look at is no verification.
fn judged(kind: Kind, items: usize, mut findings: Vec<Finding>) -> Vec<Check> {
    if items == 0 && findings.is_empty() {
        return vec![without_evidence(kind, "nothing was there to look at")];
    }
    findings.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    kind.judge(FILE, items, findings)
}
