//! From what was observed to the closure: each file lies under a declared root and is hashed, each other place is named by
//! root and path, and what no record can hold bars the unit from being certified.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use requal::closure::{Closure, Located, names_digest};
use requal::command::Place;
use requal::observation::Observation;
use requal::receipt::{LinkText, Reason, Root};
use requal::reuse::Bar;
use requal::{Failure, Outcome};

use super::stamps::Stamps;
use crate::sys::fs;

/// What the kernel makes up while it is read: no content of the machine.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// What the tools themselves look at there, whatever they compile; nothing of it gets into an object.
const KERNEL_SEEN: [&str; 4] =
    ["/dev/null", "/dev/urandom", "/proc/self/exe", "/proc/sys/vm/overcommit_memory"];
/// What every program of the machine reads at the real path; a room holds none of it.
const MACHINE: [&str; 2] = ["/etc/ld.so.cache", "/usr/share/zoneinfo"];
/// What makes an object depend on the time; found by a plain search, which pasting evades. The rule does not stand on it: the
/// clock is set by SOURCE_DATE_EPOCH, and times of files are compared.
const TIME_MACROS: [&str; 3] = ["__DATE__", "__TIME__", "__TIMESTAMP__"];

/// What a step is judged with.
pub(super) struct Ground<'a> {
    /// Where the step ran.
    pub(super) place: &'a Place,
    /// Files and folders of the host that may be read.
    pub(super) system: &'a [String],
    /// What this build made, and a link reads.
    pub(super) made: &'a [String],
    /// What the step makes, relative to the build folder.
    pub(super) output: &'a str,
}

/// A closure, and why it may not be certified.
pub(super) struct Judged {
    pub(super) closure: Closure,
    pub(super) bars: Vec<Bar>,
}

impl Ground<'_> {
    /// The closure of `observed`, whose opened files and those of the dependency file are `read`, by the names of the place.
    ///
    /// # Errors
    /// `E-INPUT-STRAY` with every file that lies under no declared root, `E-INPUT-NAME` for one that no record can hold.
    pub(super) fn judge(&self, read: &[String], observed: &Observation) -> Outcome<Judged> {
        let mut judged = Judged { closure: Closure::default(), bars: Vec::new() };
        self.files(read, &mut judged)?;
        let named = Names::of(self.place)?;
        self.places(observed, &named, &mut judged)?;
        for gap in &observed.gaps {
            judged.bar(gap);
        }
        let kernel = observed.opened.iter().chain(&observed.probes).chain(&observed.stats);
        let kernel = kernel.chain(&observed.listed).chain(observed.links.keys());
        let kernel = kernel.filter(|path| of_kernel(path) && !KERNEL_SEEN.contains(&path.as_str()));
        for path in observed.refused.keys().chain(&observed.written).chain(kernel) {
            judged.bar(path);
        }
        Ok(judged)
    }

    fn files(&self, read: &[String], judged: &mut Judged) -> Outcome<()> {
        let stamps = Stamps::of(Utf8Path::new(&self.place.build));
        let mut strays = Vec::new();
        for path in read.iter().filter(|path| !self.made.contains(path)) {
            let Some((root, relative)) = root(path, self.place, self.system) else {
                strays.push(self.stray(path));
                continue;
            };
            let at = Located::new(root, &relative).map_err(|why| unrecordable(&relative, &why))?;
            if root == Root::Tree {
                let text = fs_err::read(path)?;
                let names = |name: &&str| text.windows(name.len()).any(|part| part == name.as_bytes());
                if TIME_MACROS.iter().any(names) {
                    judged.bars.push(Bar { reason: Reason::TimeMacro, about: at.to_string() });
                }
            }
            judged.closure.files.insert(at, stamps.file(Utf8Path::new(path))?);
        }
        Failure::all(strays)
    }

    fn stray(&self, path: &str) -> Box<Failure> {
        let (tree, toolchain) = (&self.place.tree, &self.place.toolchain);
        Failure::build_failed("E-INPUT-STRAY", format!("{path} was read, and lies under no declared root"))
            .expected(format!("only {tree}, {toolchain} and the host compiler's own files"))
            .found(path)
            .hint("look for an absolute -I or #include in the unit")
    }

    /// Everything but opened files: failed probes, links, folders, and files that were only looked at.
    fn places(&self, observed: &Observation, named: &Names, judged: &mut Judged) -> Outcome<()> {
        for path in observed.probes.iter().filter(|path| self.counts(path)) {
            if let Some(at) = judged.at(named, path) {
                judged.closure.absent.insert(at);
            }
        }
        for (path, holds) in observed.links.iter().filter(|(path, _)| self.counts(path)) {
            match (judged.at(named, path), LinkText::new(holds.as_str())) {
                (Some(at), Ok(holds)) => drop(judged.closure.links.insert(at, holds)),
                (None, _) => {}
                (Some(_), Err(_)) => judged.bar(path),
            }
        }
        for path in observed.listed.iter().filter(|path| self.counts(path)) {
            let names = fs::names(Utf8Path::new(path))?;
            if let Some(at) = judged.at(named, path) {
                judged.closure.listed.insert(at, names_digest(names.iter().map(String::as_str)));
            }
        }
        let stamps = Stamps::of(Utf8Path::new(&self.place.build));
        for path in observed.stats.iter().filter(|path| self.counts(path)) {
            let Some(at) = judged.at(named, path) else { continue };
            match fs_err::symlink_metadata(path) {
                Ok(found) if found.is_dir() => drop(judged.closure.folders.insert(at)),
                Ok(found) if found.is_file() => {
                    judged.closure.files.insert(at, stamps.file(Utf8Path::new(path))?);
                }
                // Looked at without being followed.
                Ok(found) if found.is_symlink() => {
                    let holds = fs_err::read_link(path)?.into_os_string().into_string();
                    match holds.ok().and_then(|holds| LinkText::new(holds).ok()) {
                        Some(holds) => drop(judged.closure.links.insert(at, holds)),
                        None => judged.bar(path),
                    }
                }
                _ => judged.bar(path),
            }
        }
        Ok(())
    }

    /// Places above the step's own folder and above the roots are there because the step is; the kernel's say nothing.
    fn counts(&self, path: &str) -> bool {
        let place = self.place;
        let above = [&place.toolchain, &place.tree, &place.build, &place.host];
        let own = Utf8PathBuf::from(place.unit_folder(self.output));
        let above = above.into_iter().map(Utf8Path::new).chain([own.as_path()]);
        let real = |at: &Utf8Path| at.canonicalize_utf8().is_ok_and(|at| at.starts_with(path));
        !of_kernel(path) && !above.into_iter().any(|at| at.starts_with(path) || real(at))
    }
}

impl Judged {
    fn bar(&mut self, about: &str) {
        let plain = |c: char| if c.is_ascii_graphic() { c } else { '_' };
        self.bars.push(Bar { reason: Reason::NotObserved, about: about.chars().map(plain).collect() });
    }

    /// The place `path`; one that no record can hold bars the unit.
    fn at(&mut self, named: &Names, path: &str) -> Option<Located> {
        let at = named.located(path).ok();
        if at.is_none() {
            self.bar("unrecordable");
        }
        at
    }
}

fn unrecordable(path: &str, why: &str) -> Box<Failure> {
    Failure::build_failed("E-INPUT-NAME", format!("{path} was read, and cannot stand in a record"))
        .expected("a path of plain characters")
        .found(why)
        .hint("rename the file or folder")
}

/// The places by the paths that the kernel gives them, which differ where no room is and places may be links.
pub(super) struct Names(Vec<(Utf8PathBuf, Utf8PathBuf, Root)>);

impl Names {
    pub(super) fn of(place: &Place) -> Outcome<Self> {
        let mut names = Vec::new();
        let roots =
            [(&place.toolchain, Root::Toolchain), (&place.tree, Root::Tree), (&place.host, Root::Host)];
        for (at, root) in roots {
            names.push((Utf8Path::new(at).canonicalize_utf8()?, at.into(), root));
        }
        Ok(Self(names))
    }

    fn located(&self, path: &str) -> Result<Located, String> {
        let path = Utf8Path::new(path);
        for (real, at, root) in &self.0 {
            if let Ok(below) = path.strip_prefix(real).or_else(|_| path.strip_prefix(at)) {
                return Located::new(*root, below.as_str());
            }
        }
        Located::new(Root::System, path.as_str().trim_start_matches('/'))
    }
}

/// The observed files by the names of the places.
pub(super) fn opened(observed: &Observation, place: &Place) -> Outcome<BTreeSet<String>> {
    let mut real = Vec::new();
    for at in [&place.toolchain, &place.tree, &place.build] {
        real.push((Utf8Path::new(at).canonicalize_utf8()?, at));
    }
    let named = |path: &String| {
        let below = |(root, at): &(Utf8PathBuf, &String)| {
            Some(Utf8Path::new(at).join(Utf8Path::new(path).strip_prefix(root).ok()?).to_string())
        };
        real.iter().find_map(below).unwrap_or_else(|| path.clone())
    };
    Ok(observed.opened.iter().filter(|path| !of_kernel(path)).map(named).collect())
}

fn of_kernel(path: &str) -> bool {
    KERNEL.iter().any(|at| Utf8Path::new(path).starts_with(at))
}

/// Trees hold no other links, so what lies in them is found by name; the host's folders do, and are compared without.
fn root(path: &str, place: &Place, system: &[String]) -> Option<(Root, String)> {
    let ours = [(Root::Tree, &place.tree), (Root::Toolchain, &place.toolchain)];
    let below = |at: &String| Utf8Path::new(path).strip_prefix(at).ok().map(Utf8Path::to_string);
    if let (Some(relative), Ok(target)) = (below(&place.toolchain), fs_err::read_link(path)) {
        // The one link that we made there ourselves names a file beside it.
        let target = Utf8Path::new(&relative).with_file_name(target.to_str()?);
        return Some((Root::Toolchain, target.to_string()));
    }
    ours.into_iter().find_map(|(root, at)| below(at).map(|relative| (root, relative))).or_else(|| {
        let real = Utf8Path::new(path).canonicalize_utf8().ok()?;
        let is_at = |at: &str| {
            real.starts_with(at) || Utf8Path::new(at).canonicalize_utf8().is_ok_and(|at| at == real)
        };
        let declared = system.iter().map(String::as_str).chain(MACHINE).any(is_at);
        declared.then(|| (Root::System, real.as_str().trim_start_matches('/').to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f06_a_header_outside_the_declared_roots_is_named() {
        let place = Place::fixed();
        let system = ["/usr/include".to_owned()];
        let at = |path| root(path, &place, &system);
        assert_eq!(at("/requal/tree/units/a.cu"), Some((Root::Tree, "units/a.cu".to_owned())));
        assert_eq!(at("/requal/toolchain/x.h"), Some((Root::Toolchain, "x.h".to_owned())));
        let header = "/usr/include/stdio.h";
        assert_eq!(at(header), Some((Root::System, header[1..].to_owned())));
        for stray in ["/usr/bin/env", "/requal/tree2/a.h", "/usr/include/no-such.h", "a.h"] {
            assert_eq!(at(stray), None, "{stray}");
        }
        let both = ["/opt/cuda/a.h".to_owned(), "/opt/cuda/b.h".to_owned()];
        let ground = Ground { place: &place, system: &system, made: &[], output: "u" };
        let mut judged = Judged { closure: Closure::default(), bars: Vec::new() };
        let failure = ground.files(&both, &mut judged).unwrap_err();
        assert_eq!((failure.code, failure.related.len()), ("E-INPUT-STRAY", 1));
    }
}
