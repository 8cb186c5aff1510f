//! Lock and manifest, which lie beside the receipt under the names that it gives.

use super::well_formed::Folder;
use super::{Check, Finding, Kind, Level};
use crate::lock::{Lock, Role};
use crate::manifest::Manifest;
use crate::receipt::{Build, FILE, NamedFile};
use crate::{Digest, Failure, Outcome};

const BESIDE: Kind = Kind {
    id: "lock-and-manifest",
    level: Level::HashesVerified,
    why: "the lock alone says which wheels were to be used, the manifest alone what was to be built",
    next: "put the lock and the manifest of the build beside the receipt",
};

/// The checks of both files, and the manifest if it is the recorded one and can be read; its targets are the receipt's,
/// because a profile or the command line may have chosen others than the file names.
pub(super) fn read(build: &Build, folder: &Folder) -> (Vec<Check>, Option<Manifest>) {
    let lock = parsed(folder, "lock", &build.lock, Lock::parse);
    let manifest = parsed(folder, "manifest", &build.manifest, Manifest::parse);
    let (mut findings, mut chosen) = (Vec::new(), None);
    match lock {
        Ok(lock) => findings.extend(bijection(build, &lock)),
        Err(found) => findings.extend(found),
    }
    match manifest {
        Ok(manifest) => chosen = Some(Manifest { targets: build.targets.clone(), ..manifest }),
        Err(found) => findings.extend(found),
    }
    (BESIDE.judge(FILE, 2, findings), chosen)
}

/// What `parse` makes of the file that `named` names, if its bytes are the recorded ones.
fn parsed<T>(
    folder: &Folder,
    field: &str,
    named: &NamedFile,
    parse: impl Fn(&str, &str) -> Outcome<T>,
) -> Result<T, Vec<Finding>> {
    let pointer = format!("/predicate/build/{field}/sha256");
    let Some(bytes) = folder.get(&named.file) else {
        let found = format!("no {} beside the receipt", named.file);
        return Err(vec![Finding::unverifiable("E-EVIDENCE-ABSENT", pointer, named.sha256, found)]);
    };
    let found = Digest::of(bytes);
    if found != named.sha256 {
        return Err(vec![Finding::mismatch("E-HASH-LOCK", pointer, named.sha256, found)]);
    }
    let here = format!("/predicate/build/{field}");
    parse(&named.file, &String::from_utf8_lossy(bytes))
        .map_err(|failure: Box<Failure>| Finding::refusals(&here, *failure))
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
