//! `cargo xtask lock`: the lock against the index, and the only writer of the lock.

use camino::Utf8Path;
use requal::lock::{Lock, Package, normalised};
use requal::{Digest, Failure, Outcome};
use serde::Deserialize;

use crate::fetch::pip::{Pip, Work, tag_args};
use crate::fetch::{Origin, asked};
use crate::sys::fs;

/// pip's installation report, as far as it is read (format version 1).
#[derive(Deserialize)]
struct Report {
    install: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
    download_info: Download,
    #[serde(default)]
    is_yanked: bool,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
}

#[derive(Deserialize)]
struct Download {
    url: String,
    archive_info: Archive,
}

#[derive(Deserialize)]
struct Archive {
    hashes: std::collections::BTreeMap<String, String>,
}

/// What the index says about one pinned package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The pin that the index confirms.
    pub package: Package,
    /// Whether the release was withdrawn.
    pub yanked: bool,
}

/// Asks the index for each pinned name and version and compares file name and SHA-256. (The index's reports have no sizes.)
///
/// # Errors
/// `E-LOCK-INDEX` (exit 1) for each package that the index gives otherwise; `E-FETCH-*`, `E-PIP-MISSING` (exit 3).
pub fn check(lock: &Lock, origin: &Origin) -> Outcome<Vec<Checked>> {
    let pip = Pip::find(&origin.settings)?;
    let results = requal::parallel::map(&lock.packages, |package| {
        let requirement = format!("{}=={}", package.name, package.version);
        let item = ask(&pip, package, &requirement, &tag_args(package), origin)?;
        compare(package, &item)
    });
    crate::unpack::every(results)
}

fn compare(package: &Package, item: &Item) -> Outcome<Checked> {
    let file = file_of(&item.download_info.url);
    let sha256 = item.download_info.archive_info.hashes.get("sha256").cloned().unwrap_or_default();
    let found = (normalised(&item.metadata.name), &item.metadata.version, &file, &sha256);
    if found == (package.name.clone(), &package.version, &package.file, &package.sha256.to_string()) {
        return Ok(Checked { package: package.clone(), yanked: item.is_yanked });
    }
    let shown = |name: &str, version: &str, file: &str, sha256: &str| {
        format!("{name} {version}, {file}, SHA-256 {sha256}")
    };
    Err(Failure::refused("E-LOCK-INDEX", format!("the index gives {} otherwise than the lock", package.name))
        .expected(shown(&package.name, &package.version, &package.file, &package.sha256.to_string()))
        .found(shown(&found.0, found.1, &file, &sha256))
        .hint(format!("cargo xtask lock --update {}", package.name)))
}

/// The last component of a wheel's address, percent signs decoded as far as file names of wheels need it.
fn file_of(url: &str) -> String {
    let path = url.split(['#', '?']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().replace("%2B", "+").replace("%2b", "+")
}

/// What pip would take for `requirement`, without installing anything.
fn ask(pip: &Pip, package: &Package, requirement: &str, tags: &[String], origin: &Origin) -> Outcome<Item> {
    let work = Work { folder: origin.scratch.join("pip").join(format!("lock-{}", package.name)) };
    fs::remove(&work.folder)?;
    let mut args = vec!["install", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:"];
    args.extend(["--report", "report.json", "--target", "target"]);
    args.extend(tags.iter().map(String::as_str));
    args.push(requirement);
    let ended = pip.run(&args, &work)?;
    let log = origin.scratch.join("logs").join(format!("lock-{}.log", package.name));
    fs::write(&log, ended.output.as_bytes())?;
    asked(package, ended.code, &ended.output, &log, &origin.scratch)?;
    let text = fs_err::read_to_string(work.folder.join("report.json"))?;
    fs::remove(&work.folder)?;
    let report: Report = serde_json::from_str(&text).map_err(|error| {
        Failure::could_not_judge("E-FETCH-PIP", "pip's report has another form than version 1").found(error)
    })?;
    let mut items = report.install.into_iter();
    match (items.next(), items.next()) {
        (Some(item), None) => Ok(item),
        _ => Err(Failure::could_not_judge(
            "E-FETCH-PIP",
            format!("pip's report for {requirement} has not one package"),
        )),
    }
}

/// Writes the newest release of `name` (or `name==version`) that fits this machine into the lock at `path`. The wheel is
/// downloaded, so that size and SHA-256 are those of its bytes.
///
/// # Errors
/// `E-LOCK-*` (exit 2), `E-FETCH-*`, `E-PIP-MISSING`, `E-IO` (exit 3).
pub fn update(path: &Utf8Path, requirement: &str, origin: &Origin) -> Outcome<Package> {
    let mut lock = Lock::parse(path.as_str(), &fs_err::read_to_string(path)?)?;
    let name = normalised(requirement.split("==").next().unwrap_or_default());
    let known: Vec<&str> = lock.packages.iter().map(|package| package.name.as_str()).collect();
    let Some(pin) = lock.packages.iter().find(|package| package.name == name) else {
        return Err(
            Failure::bad_input("E-LOCK-NAME", format!("{path} pins no {name}")).expected(known.join(", "))
        );
    };
    let new = newest(pin, requirement, origin)?;
    for package in &mut lock.packages {
        if package.name == name {
            package.clone_from(&new);
        }
    }
    let text = lock.to_text();
    Lock::parse(path.as_str(), &text)?;
    fs::write(path, text.as_bytes())?;
    Ok(new)
}

fn newest(pin: &Package, requirement: &str, origin: &Origin) -> Outcome<Package> {
    let pip = Pip::find(&origin.settings)?;
    let work = Work { folder: origin.scratch.join("pip").join(format!("update-{}", pin.name)) };
    fs::remove(&work.folder)?;
    let out = work.out();
    let ended =
        pip.run(&["download", "--no-deps", "--only-binary=:all:", "-d", out.as_str(), requirement], &work)?;
    let log = origin.scratch.join("logs").join(format!("update-{}.log", pin.name));
    fs::write(&log, ended.output.as_bytes())?;
    asked(pin, ended.code, &ended.output, &log, &origin.scratch)?;
    let names = fs::names(&out)?;
    let [file] = &names[..] else {
        return Err(Failure::could_not_judge(
            "E-FETCH-PIP",
            format!("pip gave {} files for {requirement}", names.len()),
        ));
    };
    let bytes = fs_err::read(out.join(file))?;
    fs::remove(&work.folder)?;
    let version = file.split('-').nth(1).unwrap_or_default().to_owned();
    let (size_bytes, sha256) = (bytes.len() as u64, Digest::of(&bytes));
    Ok(Package { version, file: file.clone(), size_bytes, sha256, ..pin.clone() })
}
