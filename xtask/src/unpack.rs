//! Wheels to one tree: what is missing is written, what is there is checked, and nothing else may be there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use requal::tree::{Expected, Known, Link, State, Tree, TreeFile, mtime_s};
use requal::wheel::{Archive, MAX_UNPACKED_BYTES, Pinned, Wheel};
use requal::{Failure, Outcome, parallel};

use crate::sys::fs;

/// An unpacked and checked tree, and the wheels that it came from.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The tree's folder.
    pub root: Utf8PathBuf,
    /// Every file of the tree.
    pub tree: Tree,
    /// The links in it, made here; no wheel has them.
    pub links: Vec<Link>,
    /// The wheels in the lock's order, each with its own files.
    pub wheels: Vec<Wheel>,
    /// Files and links that this run wrote, because they were missing.
    pub written: Vec<String>,
}

impl Toolchain {
    /// The wheels that hold `path`; none for a link.
    pub fn owners(&self, path: &str) -> impl Iterator<Item = &Wheel> {
        self.wheels.iter().filter(move |wheel| wheel.tree.files.iter().any(|file| file.path == path))
    }
}

/// The one link that the pinned wheels lack: `-lcudart` looks for the name without a version.
#[must_use]
pub fn toolchain_links() -> Vec<Link> {
    vec![Link { path: "nvidia/cu13/lib/libcudart.so".into(), target: "libcudart.so.13".into() }]
}

/// Unpacks `wheels` into `root` and checks the whole tree. A link whose target is in no wheel is not made.
///
/// Equal files keep bytes, mode and mtime. Nothing comes into the tree before all wheels were judged and all that is there was
/// found right: while the wheels are judged, their bytes go to a private staging folder beside `root`, which a refusal
/// removes. From there files are renamed, so a file that has its name is whole; a run that was killed leaves missing files,
/// which the next run writes.
///
/// # Errors
/// `E-ZIP-*`, `E-RECORD-*`, `E-TREE-*` (exit 1), `E-IO`.
pub fn unpack(wheels: &[Pinned], links: &[Link], root: &Utf8Path) -> Outcome<Toolchain> {
    let opened = wheels.iter().map(Pinned::open);
    let archives = every(opened.collect())?;
    let expected = merge(&archives, links)?;
    let State { missing, mut known } = expected.check(root.as_std_path(), &Known::new())?;
    if !missing.is_empty() {
        let staging = fs::Staging::beside(root)?;
        let jobs = jobs(&archives, &missing);
        stage(&jobs, &expected, &missing, staging.folder())?;
        place(staging.folder(), root, &expected, &missing)?;
        let staged = jobs.iter().filter(|job| job.staged).map(Job::file);
        known.extend(staged.map(|file| (file.path.clone(), file.sha256)));
        whole(root, &expected, &known)?;
    }
    Ok(Toolchain {
        root: root.to_owned(),
        tree: expected.tree,
        links: expected.links,
        wheels: archives.into_iter().map(|archive| archive.wheel).collect(),
        written: missing,
    })
}

/// Checks that the finished tree is there as a whole.
fn whole(root: &Utf8Path, expected: &Expected, known: &Known) -> Outcome<()> {
    match expected.check(root.as_std_path(), known)?.missing.first() {
        None => Ok(()),
        Some(path) => {
            let what = format!("{path} was unpacked and is missing: something else changes {root}");
            Err(Failure::could_not_judge("E-TREE-MISSING", what))
        }
    }
}

/// All results, or all failures together.
pub(crate) fn every<T>(results: Vec<Outcome<T>>) -> Outcome<Vec<T>> {
    let (mut values, mut failures) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(failure) => failures.push(failure),
        }
    }
    Failure::all(failures)?;
    Ok(values)
}

/// The tree of all wheels together. Two wheels may own one path only with equal bytes and mode.
fn merge(archives: &[Archive<'_>], links: &[Link]) -> Outcome<Expected> {
    let mut owned: BTreeMap<&str, (&Wheel, &TreeFile)> = BTreeMap::new();
    let mut failures = Vec::new();
    for wheel in archives.iter().map(|archive| &archive.wheel) {
        for file in &wheel.tree.files {
            match owned.insert(&file.path, (wheel, file)) {
                Some((other, first)) if first != file => failures.push(collision(other, first, wheel, file)),
                _ => {}
            }
        }
    }
    let links = links.iter().filter(|link| {
        let folder = Utf8Path::new(&link.path).parent().unwrap_or(Utf8Path::new(""));
        owned.contains_key(folder.join(&link.target).as_str())
    });
    let links: Vec<Link> = links.cloned().collect();
    failures.extend(links.iter().filter_map(|link| {
        let (wheel, _) = owned.get(link.path.as_str())?;
        let what = format!("{} holds {}, where a link is declared", wheel.file, link.path);
        Some(Failure::refused("E-TREE-COLLISION", what))
    }));
    let spellings = owned.keys().copied().chain(links.iter().map(|link| link.path.as_str()));
    failures.extend(requal::tree::second_spelling(spellings).map(|(first, second)| {
        let owner = |path| owned.get(path).map_or("a declared link", |(wheel, _)| wheel.file.as_str());
        Failure::refused("E-TREE-COLLISION", "two wheels give one path different spellings or types")
            .expected(format!("{first}  ({})", owner(first)))
            .found(format!("{second}  ({})", owner(second)))
    }));
    let total_bytes: u64 = owned.values().map(|(_, file)| file.size_bytes).sum();
    if total_bytes > 2 * MAX_UNPACKED_BYTES {
        failures.push(Failure::refused("E-ZIP-BOMB", format!("the wheels unpack to {total_bytes} bytes")));
    }
    Failure::all(failures)?;
    let files = owned.into_values().map(|(_, file)| file.clone()).collect();
    Ok(Expected { tree: Tree::new(files), links })
}

fn collision(other: &Wheel, first: &TreeFile, wheel: &Wheel, file: &TreeFile) -> Box<Failure> {
    // Named in one order, whichever wheel came first.
    let mut sides = [(other, first), (wheel, file)];
    sides.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    let [a, b] = sides.map(|(wheel, file)| {
        format!("{} {}: {} mode {:04o}", wheel.name, wheel.version, file.sha256, file.mode)
    });
    let what = format!("{} and {} both hold {}, and differ", sides[0].0.name, sides[1].0.name, file.path);
    Failure::refused("E-TREE-COLLISION", what).expected(a).found(b).hint("cargo xtask lock --check")
}

/// One file of a wheel that is judged.
struct Job<'a> {
    archive: &'a Archive<'a>,
    index: usize,
    /// Whether it is staged; what is there already, or comes from another wheel too, is judged alone.
    staged: bool,
}

impl<'a> Job<'a> {
    fn file(&self) -> &'a TreeFile {
        &self.archive.wheel.tree.files[self.index]
    }
}

/// Every file of each wheel that holds one of `missing`, largest first so that all cores end together.
fn jobs<'a>(archives: &'a [Archive<'a>], missing: &[String]) -> Vec<Job<'a>> {
    let mut missing: BTreeSet<&str> = missing.iter().map(String::as_str).collect();
    let files = |archive: &'a Archive<'a>| archive.wheel.tree.files.iter();
    let wanted: Vec<_> = archives
        .iter()
        .filter(|archive| files(archive).any(|file| missing.contains(file.path.as_str())))
        .collect();
    let mut jobs = Vec::new();
    for archive in wanted {
        jobs.extend(files(archive).enumerate().map(|(index, file)| {
            let staged = missing.remove(file.path.as_str());
            Job { archive, index, staged }
        }));
    }
    jobs.sort_by_key(|job| std::cmp::Reverse(job.file().size_bytes));
    jobs
}

/// Judges every wheel that holds a file of `missing`, and puts those files and the missing links into `staged`.
fn stage(jobs: &[Job<'_>], expected: &Expected, missing: &[String], staged: &Utf8Path) -> Outcome<()> {
    for folder in expected.folders() {
        fs::make_folder(&staged.join(folder))?;
    }
    every(parallel::map(jobs, |Job { archive, index, staged: wanted }| {
        let file = &archive.wheel.tree.files[*index];
        if !wanted {
            return archive.content(*index, &mut io::sink());
        }
        let fill = |out: &mut fs_err::File| archive.content(*index, out);
        fs::new_file(&staged.join(&file.path), file.mode, mtime_s(&file.path), fill)
    }))?;
    for link in expected.links.iter().filter(|link| missing.contains(&link.path)) {
        fs_err::os::unix::fs::symlink(&link.target, staged.join(&link.path))?;
    }
    Ok(())
}

/// Gives what is staged its final names. A new tree gets its name whole, by one rename; into an old one each file is renamed.
fn place(staged: &Utf8Path, root: &Utf8Path, expected: &Expected, missing: &[String]) -> Outcome<()> {
    if !root.exists() {
        return fs::rename(staged, root);
    }
    for folder in expected.folders() {
        fs::make_folder(&root.join(folder))?;
    }
    missing.iter().try_for_each(|path| fs::rename(&staged.join(path), &root.join(path)))
}
