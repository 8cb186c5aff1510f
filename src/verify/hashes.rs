//! Level 2: every digest of the receipt against bytes, on all cores, each file read once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use walkdir::WalkDir;

use super::files::{self, Unseen};
use super::well_formed::Folder;
use super::{Check, Finding, Kind, Level, Request, State};
use crate::lock::{Lock, Role};
use crate::receipt::{Build, FILE, Link, Root, RuntimeBuild};
use crate::tree::TreeFile;
use crate::{Digest, Outcome};

const fn kind(id: &'static str, why: &'static str, next: &'static str) -> Kind {
    Kind { id, level: Level::HashesVerified, why, next }
}

const LOCK: Kind = kind(
    "lock",
    "the lock alone says which wheels were to be used",
    "put the lock and the manifest of the build beside the receipt",
);
const WHEELS: Kind = kind(
    "wheel-bytes",
    "another wheel is another compiler",
    "fetch the wheels of the lock and give their folder: --wheelhouse DIR",
);
const TOOLCHAIN: Kind = kind(
    "toolchain-bytes",
    "a changed or added file of the toolchain changes code",
    "give the scratch of the build, or unpack the wheels into a fresh one: --tree DIR",
);
const TREES: Kind =
    kind("tree-bytes", "a changed or added source changes code", "give the scratch of the build: --tree DIR");
const OBJECTS: Kind =
    kind("object-bytes", "a module is made of its objects", "give the scratch of the build: --tree DIR");
const MODULES: Kind = kind(
    "module-bytes",
    "the modules are what the receipt is about",
    "give the scratch of the build: --tree DIR",
);
const LOGS: Kind = kind(
    "log-bytes",
    "a log that changed tells of another build",
    "give the scratch of the build: --tree DIR",
);
const SYSTEM: Kind = kind(
    "system-bytes",
    "system headers and the host compiler are inputs too",
    "verify on a system with the packages of the builder",
);
const CONTENTS: Kind = kind(
    "object-contents",
    "targets, device code, exports and markers are read from the bytes by the build's judge",
    "compile again and compare: cargo xtask verify --recompile",
);

/// Where a scratch keeps what a receipt names. The one place that knows.
struct Layout<'a>(&'a Utf8Path);

impl Layout<'_> {
    fn wheels(&self) -> Utf8PathBuf {
        self.0.join("wheels")
    }

    fn toolchain(&self) -> Utf8PathBuf {
        self.0.join("toolchain")
    }

    fn tree(&self, name: &str) -> Utf8PathBuf {
        self.0.join("trees").join(name)
    }

    fn object(&self, tree: &str, object: &str) -> Utf8PathBuf {
        self.0.join("build").join(tree).join(object)
    }

    fn module(&self, file: &str) -> Utf8PathBuf {
        self.0.join("modules").join(file)
    }

    fn log(&self, file: &str) -> Utf8PathBuf {
        self.0.join("receipts").join(file)
    }
}

/// One file and what the receipt says of it.
struct Item {
    path: Utf8PathBuf,
    sha256: Digest,
    size_bytes: Option<u64>,
    mode: Option<u32>,
    pointer: String,
    code: &'static str,
}

/// Every check of this level; without a tree those that need one are NOT-RUN.
pub(super) fn check(receipt: &RuntimeBuild, folder: &Folder, request: &Request) -> Outcome<Vec<Check>> {
    let build = &receipt.predicate.build;
    let mut checks = LOCK.judge(FILE, 2, lock(build, folder));
    let layout = request.tree.as_deref().map(Layout);
    let wheels = request.wheelhouse.clone().or_else(|| layout.as_ref().map(Layout::wheels));
    match wheels {
        Some(wheels) => checks.extend(compare(WHEELS, &wheel_items(build, &wheels), false, vec![])),
        None => checks.push(not_run(WHEELS)),
    }
    let Some(layout) = layout else {
        checks.extend([TOOLCHAIN, TREES, OBJECTS, MODULES, SYSTEM].map(not_run));
        return Ok(checks);
    };
    let root = layout.toolchain();
    let extra =
        extra(&root, &build.toolchain.files, &build.toolchain.links, "/predicate/build/toolchain/files")?;
    let items =
        file_items(&root, &build.toolchain.files, "/predicate/build/toolchain/files", "E-HASH-TOOLCHAIN");
    checks.extend(compare(TOOLCHAIN, &items, false, extra));
    let (mut items, mut more) = (vec![], vec![]);
    for (i, tree) in build.trees.iter().enumerate() {
        let (root, pointer) = (layout.tree(&tree.name), format!("/predicate/build/trees/{i}/files"));
        more.extend(self::extra(&root, &tree.files, &[], &pointer)?);
        items.extend(file_items(&root, &tree.files, &pointer, "E-HASH-TREE"));
    }
    checks.extend(compare(TREES, &items, false, more));
    checks.extend(compare(OBJECTS, &object_items(build, &layout), false, vec![]));
    checks.extend(compare(MODULES, &module_items(build, &layout), false, vec![]));
    let logs = log_items(receipt, &layout);
    if !logs.is_empty() {
        checks.extend(compare(LOGS, &logs, false, vec![]));
    }
    let system = system_items(build);
    if !system.is_empty() {
        checks.extend(compare(SYSTEM, &system, true, vec![]));
    }
    let pointer = format!("{FILE}#/predicate/build/units");
    checks.push(CONTENTS.unseen(
        State::Asserted,
        &pointer,
        "E-ASSERTED",
        "the build's judgement, not repeated here",
    ));
    Ok(checks)
}

fn not_run(kind: Kind) -> Check {
    kind.unseen(State::NotRun, FILE, "E-EVIDENCE-NONE", "no folder was given to compare with")
}

/// Lock and manifest beside the receipt, and the lock's packages against the wheels.
fn lock(build: &Build, folder: &Folder) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (field, named) in [("lock", &build.lock), ("manifest", &build.manifest)] {
        let pointer = format!("/predicate/build/{field}/sha256");
        match folder.get(&named.file).map(Digest::of) {
            Some(found) if found == named.sha256 => {}
            Some(found) => findings.push(Finding::mismatch("E-HASH-LOCK", pointer, named.sha256, found)),
            None => {
                let found = format!("no {} beside the receipt", named.file);
                findings.push(Finding::unverifiable("E-EVIDENCE-ABSENT", pointer, named.sha256, found));
            }
        }
    }
    if !findings.is_empty() {
        return findings;
    }
    let text = folder.get(&build.lock.file).map(String::from_utf8_lossy).unwrap_or_default();
    match Lock::parse(&build.lock.file, &text) {
        Ok(lock) => bijection(build, &lock),
        Err(failure) => {
            let found = failure.found.unwrap_or(failure.what);
            vec![Finding::mismatch(failure.code, "/predicate/build/lock", "a readable lock", found)]
        }
    }
}

/// Every wheel is pinned as it is, and every package of the toolchain was used.
fn bijection(build: &Build, lock: &Lock) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (i, wheel) in build.wheels.iter().enumerate() {
        let pinned = lock.packages.iter().any(|package| {
            (package.name.as_str(), package.version.as_str(), package.file.as_str())
                == (&*wheel.name, &*wheel.version, &*wheel.file)
                && (package.size_bytes, package.sha256) == (wheel.size_bytes, wheel.sha256)
        });
        if !pinned {
            let pointer = format!("/predicate/build/wheels/{i}");
            findings.push(Finding::mismatch(
                "E-LOCK-BIJECTION",
                pointer,
                "a package of the lock",
                &wheel.file,
            ));
        }
    }
    let needed = lock.packages.iter().filter(|package| package.role != Role::Source);
    for package in needed.filter(|package| !build.wheels.iter().any(|wheel| *wheel.name == *package.name)) {
        let pointer = "/predicate/build/wheels";
        findings.push(Finding::mismatch("E-LOCK-BIJECTION", pointer, &package.name, "no such wheel"));
    }
    findings
}

fn wheel_items(build: &Build, wheels: &Utf8Path) -> Vec<Item> {
    let of = |(i, wheel): (usize, &crate::receipt::Archive)| Item {
        path: wheels.join(&*wheel.file),
        sha256: wheel.sha256,
        size_bytes: Some(wheel.size_bytes),
        mode: None,
        pointer: format!("/predicate/build/wheels/{i}"),
        code: "E-HASH-WHEEL",
    };
    build.wheels.iter().enumerate().map(of).collect()
}

fn file_items(root: &Utf8Path, files: &[TreeFile], pointer: &str, code: &'static str) -> Vec<Item> {
    let of = |(i, file): (usize, &TreeFile)| Item {
        path: root.join(&file.path),
        sha256: file.sha256,
        size_bytes: Some(file.size_bytes),
        mode: Some(file.mode),
        pointer: format!("{pointer}/{i}"),
        code,
    };
    files.iter().enumerate().map(of).collect()
}

fn object_items(build: &Build, layout: &Layout<'_>) -> Vec<Item> {
    let of = |(i, unit): (usize, &crate::receipt::Unit)| Item {
        path: layout.object(&unit.tree, &unit.object),
        sha256: unit.object_sha256,
        size_bytes: Some(unit.size_bytes),
        mode: None,
        pointer: format!("/predicate/build/units/{i}/object_sha256"),
        code: "E-HASH-OBJECT",
    };
    build.units.iter().enumerate().map(of).collect()
}

fn module_items(build: &Build, layout: &Layout<'_>) -> Vec<Item> {
    let of = |(i, module): (usize, &crate::receipt::Module)| Item {
        path: layout.module(&module.file),
        sha256: module.sha256,
        size_bytes: Some(module.size_bytes),
        mode: None,
        pointer: format!("/predicate/build/modules/{i}/sha256"),
        code: "E-HASH-MODULE",
    };
    build.modules.iter().enumerate().map(of).collect()
}

fn log_items(receipt: &RuntimeBuild, layout: &Layout<'_>) -> Vec<Item> {
    let run = &receipt.predicate.run;
    let logs = run
        .logs
        .iter()
        .enumerate()
        .map(|(i, log)| (format!("logs/{i}"), &log.file, log.sha256, log.size_bytes));
    let attempts = run.attempts.iter().enumerate();
    let attempts = attempts.map(|(i, log)| (format!("attempts/{i}"), &log.file, log.sha256, log.size_bytes));
    let of = |(at, file, sha256, size_bytes): (String, &crate::receipt::RelativePath, Digest, u64)| Item {
        path: layout.log(file),
        sha256,
        size_bytes: Some(size_bytes),
        mode: None,
        pointer: format!("/predicate/run/{at}"),
        code: "E-HASH-LOG",
    };
    logs.chain(attempts).map(of).collect()
}

fn system_items(build: &Build) -> Vec<Item> {
    let item = |path: Utf8PathBuf, sha256, size_bytes, pointer| Item {
        path,
        sha256,
        size_bytes,
        mode: None,
        pointer,
        code: "E-SYSTEM-OTHER",
    };
    let inputs = build.inputs.iter().enumerate().filter(|(_, input)| input.root == Root::System);
    let inputs = inputs.map(|(i, input)| {
        let pointer = format!("/predicate/build/inputs/{i}");
        item(Utf8Path::new("/").join(&*input.path), input.sha256, Some(input.size_bytes), pointer)
    });
    let programs = build.host_compiler.programs.iter().enumerate().map(|(i, program)| {
        let pointer = format!("/predicate/build/host_compiler/programs/{i}");
        item(Utf8PathBuf::from(&*program.path), program.sha256, None, pointer)
    });
    inputs.chain(programs).collect()
}

/// Files and links below `root` that no list names.
fn extra(root: &Utf8Path, files: &[TreeFile], links: &[Link], pointer: &str) -> Outcome<Vec<Finding>> {
    if fs_err::symlink_metadata(root).is_err() {
        return Ok(vec![]);
    }
    let files: BTreeMap<_, _> = files.iter().map(|file| (file.path.as_str(), ())).collect();
    let mut findings = Vec::new();
    for entry in WalkDir::new(root).follow_links(false).sort_by_file_name() {
        let entry = entry.map_err(std::io::Error::from)?;
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_string_lossy().into_owned();
        let kind = entry.file_type();
        let known = if kind.is_symlink() {
            let target = fs_err::read_link(entry.path())?;
            links.iter().any(|link| *link.path == *path && target.to_str() == Some(&*link.target))
        } else {
            kind.is_dir() || files.contains_key(path.as_str())
        };
        if !known {
            findings.push(Finding::mismatch("E-TREE-EXTRA", pointer, "no file that the list lacks", path));
        }
    }
    Ok(findings)
}

/// Compares all `items` with the bytes on disk; `more` are findings of the same kind made before.
fn compare(kind: Kind, items: &[Item], system: bool, mut more: Vec<Finding>) -> Vec<Check> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut findings = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            findings.extend(compare_one(item, system));
        }
        findings
    };
    // A thread for a handful of files costs more than it saves.
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len().div_ceil(16));
    std::thread::scope(|scope| {
        let running: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        more.extend(work());
        for thread in running {
            match thread.join() {
                Ok(findings) => more.extend(findings),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    more.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    kind.judge(FILE, items.len(), more)
}

fn compare_one(item: &Item, system: bool) -> Option<Finding> {
    let other = |expected: String, found: String| {
        // Another system's file is no lie of the receipt: this machine is not the builder's.
        let make = if system { Finding::unverifiable } else { Finding::mismatch };
        Some(make(item.code, item.pointer.clone(), expected, format!("{found}  ({})", item.path)))
    };
    let unseen = |found: String| {
        Some(Finding::unverifiable(
            "E-EVIDENCE-ABSENT",
            item.pointer.clone(),
            item.sha256,
            format!("{found}  ({})", item.path),
        ))
    };
    match files::hash(&item.path, item.size_bytes, system) {
        Ok(seen) if seen.sha256 != item.sha256 => other(item.sha256.to_string(), seen.sha256.to_string()),
        Ok(seen) if item.size_bytes.is_some_and(|size| size != seen.size_bytes) => {
            other(format!("{:?} bytes", item.size_bytes), format!("{} bytes", seen.size_bytes))
        }
        Ok(seen) if item.mode.is_some_and(|mode| mode != seen.mode) => {
            let mode = item.mode.unwrap_or_default();
            let found = format!("mode {:o}  ({})", seen.mode, item.path);
            Some(Finding::mismatch(
                "E-TREE-MODE",
                format!("{}/mode", item.pointer),
                format!("mode {mode:o}"),
                found,
            ))
        }
        Ok(_) => None,
        Err(Unseen::Size(found)) => {
            other(format!("{} bytes", item.size_bytes.unwrap_or_default()), format!("{found} bytes"))
        }
        Err(Unseen::Type(found)) => other("a regular file".to_owned(), found.to_owned()),
        Err(Unseen::Absent) => unseen("nothing".to_owned()),
        Err(Unseen::Error(error)) => unseen(error.to_string()),
    }
}
