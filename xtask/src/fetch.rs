//! The pinned wheels: from the wheelhouse, from the scratch, or by pip into the scratch.

mod fault;

pub mod pip;

use std::thread;

use camino::{Utf8Path, Utf8PathBuf};
use requal::lock::Package;
use requal::wheel::Pinned;
use requal::{Failure, Outcome};

use crate::progress::{Download, while_downloading};
use crate::sys::env::Variables;
use crate::sys::fs;
use pip::{Pip, Work};

pub(crate) use fault::asked;

/// Where wheels may come from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The scratch, an absolute path: wheels lie in `wheels/`, pip works in `pip/`, its words go to `logs/`.
    pub scratch: Utf8PathBuf,
    /// A folder that holds every wheel; then nothing else is asked.
    pub wheelhouse: Option<Utf8PathBuf>,
    /// No network: what is not in the scratch is an error.
    pub offline: bool,
    /// The user's settings for pip, as [`crate::sys::env::pip_settings`] gives them.
    pub settings: Variables,
}

/// A wheel whose bytes have the pinned size and SHA-256, and how it came here.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Its bytes and its pin.
    pub pinned: Pinned,
    /// The file that the bytes were read from.
    pub path: Utf8PathBuf,
    /// Why the index withdrew the release, if it did and this run asked it; empty if it gave no reason.
    pub yanked: Option<String>,
    /// Why a file or a download before this one was thrown away.
    pub discarded: Vec<String>,
}

/// Fetches all `packages`, those of the index at once. The result has their order.
///
/// # Errors
/// `E-LOCK-SIZE`, `E-HASH-WHEEL` (exit 1) for a wheelhouse or offline file that is not the pinned one; `E-FETCH-*`,
/// `E-PIP-MISSING`, `E-TOOL-MISSING`, `E-IO` (exit 3). Those of several wheels together.
pub fn fetch(packages: &[Package], origin: &Origin) -> Outcome<Vec<Fetched>> {
    let mut largest_first: Vec<&Package> = packages.iter().collect();
    largest_first.sort_by_key(|package| std::cmp::Reverse(package.size_bytes));
    let local = requal::parallel::map(&largest_first, |package| local(package, origin));
    let (mut ready, mut wanted, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for (package, local) in largest_first.into_iter().zip(local) {
        match local {
            Ok(Local::Here(fetched)) => ready.push(*fetched),
            Ok(Local::Wanted(discarded)) => wanted.push((package, discarded)),
            Err(failure) => failures.push(failure),
        }
    }
    Failure::all(failures)?;
    if !wanted.is_empty() {
        let pip = Pip::find(&origin.settings)?;
        ready.extend(download_all(&pip, wanted, origin)?);
    }
    let place = |fetched: &Fetched| packages.iter().position(|package| package == fetched.pinned.package());
    ready.sort_by_key(place);
    Ok(ready)
}

/// A wheel that is on this machine, or one to download and why an earlier file was thrown away.
enum Local {
    Here(Box<Fetched>),
    Wanted(Vec<String>),
}

fn local(package: &Package, origin: &Origin) -> Outcome<Local> {
    let here = |path: Utf8PathBuf, pinned| {
        Local::Here(Box::new(Fetched { pinned, path, yanked: None, discarded: Vec::new() }))
    };
    if let Some(wheelhouse) = &origin.wheelhouse {
        let path = wheelhouse.join(&package.file);
        let Some(pinned) = read(&path, package)? else {
            return Err(absent(package, &path, "the wheelhouse lacks").hint(format!(
                "python3 -m pip download --no-deps -d {wheelhouse} {}=={}",
                package.name, package.version
            )));
        };
        let hint = format!("replace {path} by the pinned wheel, or leave --wheelhouse out");
        return Ok(here(path, pinned.map_err(|failure| failure.hint(hint))?));
    }
    let path = wheels(&origin.scratch).join(&package.file);
    match (read(&path, package)?, origin.offline) {
        (Some(Ok(pinned)), _) => Ok(here(path, pinned)),
        (Some(Err(failure)), true) => {
            Err(failure.hint("run again without --offline: only this wheel is fetched anew"))
        }
        (Some(Err(failure)), false) => {
            fs_err::remove_file(&path)?;
            Ok(Local::Wanted(vec![format!("{path} was no longer the pinned wheel: {}", failure.what)]))
        }
        (None, true) => Err(absent(package, &path, "no network is allowed and the scratch lacks")
            .hint("run again without --offline, or give a folder of wheels by --wheelhouse")),
        (None, false) => Ok(Local::Wanted(Vec::new())),
    }
}

fn wheels(scratch: &Utf8Path) -> Utf8PathBuf {
    scratch.join("wheels")
}

fn absent(package: &Package, path: &Utf8Path, what: &str) -> Box<Failure> {
    let expected = format!("{} bytes, SHA-256 {}", package.size_bytes, package.sha256);
    Failure::could_not_judge("E-FETCH-OFFLINE", format!("{what} {}", package.file))
        .expected(expected)
        .found(format!("no {path}"))
}

/// The file at `path` against its pin; `None` if there is none.
fn read(path: &Utf8Path, package: &Package) -> Outcome<Option<Outcome<Pinned>>> {
    let bytes = match fs_err::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let named = |mut failure: Box<Failure>| {
        failure.found = failure.found.map(|found| format!("{found}  ({path})"));
        failure
    };
    Ok(Some(Pinned::new(bytes, package).map_err(named)))
}

/// Runs one pip for each wheel, all at once, and shows progress on a terminal.
fn download_all(pip: &Pip, wanted: Vec<(&Package, Vec<String>)>, origin: &Origin) -> Outcome<Vec<Fetched>> {
    let work = |package: &Package| Work { folder: origin.scratch.join("pip").join(&package.name) };
    let shown: Vec<_> = wanted
        .iter()
        .map(|(package, _)| Download {
            folder: work(package).folder.join("tmp"),
            size_bytes: package.size_bytes,
        })
        .collect();
    let results = while_downloading(&shown, || {
        thread::scope(|scope| {
            let start = |(package, discarded)| {
                scope.spawn(move || download(pip, package, discarded, &work(package), origin))
            };
            let threads: Vec<_> = wanted.into_iter().map(start).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    });
    crate::unpack::every(results)
}

/// One wheel by pip. A download that was cut, or whose bytes have another hash, is started over once without the cache.
fn download(
    pip: &Pip,
    package: &Package,
    mut discarded: Vec<String>,
    work: &Work,
    origin: &Origin,
) -> Outcome<Fetched> {
    let log = origin.scratch.join("logs").join(format!("fetch-{}.log", package.name));
    let mut first = true;
    loop {
        match attempt(pip, package, work, origin, &log) {
            Ok((pinned, path, yanked)) => {
                work.clear()?;
                return Ok(Fetched { pinned, path, yanked, discarded });
            }
            Err(failure) if fault::worth_another_try(failure.code) && first => {
                first = false;
                discarded.push(format!("{}{}", failure.what, work.cached(package)));
                work.drop_cache()?;
            }
            Err(mut failure) => {
                let before = discarded.iter().map(|why| Failure::could_not_judge("E-FETCH-DISCARDED", why));
                failure.related.extend(before.map(|failure| *failure));
                work.clear()?;
                return Err(failure);
            }
        }
    }
}

type Attempt = (Pinned, Utf8PathBuf, Option<String>);

fn attempt(pip: &Pip, package: &Package, work: &Work, origin: &Origin, log: &Utf8Path) -> Outcome<Attempt> {
    let ended = pip.download(package, work)?;
    fs::write(log, ended.output.as_bytes())?;
    if ended.code != 0 {
        return Err(fault::of(package, &ended.output, log, &origin.scratch));
    }
    let arrived = work.out().join(&package.file);
    let Some(pinned) = read(&arrived, package)? else {
        let names = fs::names(&work.out())?;
        return Err(Failure::could_not_judge(
            "E-FETCH-NAME",
            format!("the index gives {} another file name", package.name),
        )
        .expected(&package.file)
        .found(names.join(", "))
        .hint("cargo xtask lock --check"));
    };
    let (pinned, path) = (pinned?, wheels(&origin.scratch).join(&package.file));
    fs_err::create_dir_all(wheels(&origin.scratch))?;
    fs::rename(&arrived, &path)?;
    Ok((pinned, path, fault::yanked(&ended.output)))
}
