//! The kept dependency files: what the compiler said it read is in the closure.

use std::collections::BTreeSet;

use camino::Utf8Path;

use super::super::{Check, Finding, State, files};
use super::{DEPFILES, Ground};
use crate::certificate::{FILE, Unit};
use crate::closure::{Closure, Located};
use crate::command::Place;
use crate::depfile;

/// Largest dependency file: no unit reads a million files.
const LONGEST_BYTES: u64 = 16 << 20;

/// Each dependency file that the scratch `tree` keeps, against the closure of its unit. At a real path they name a place of
/// another machine, and say nothing here.
pub(super) fn check(ground: &Ground<'_>, tree: &Utf8Path) -> Vec<Check> {
    if !ground.build.place.sandboxed {
        let found = "dependency files of a build at a real path";
        return vec![DEPFILES.unseen(State::Asserted, FILE, "E-ASSERTED", found)];
    }
    let units = &ground.certificate.units;
    let findings: Vec<Finding> =
        units.iter().enumerate().filter_map(|(i, unit)| depfile(ground, tree, i, unit)).collect();
    DEPFILES.judge(FILE, units.len(), findings)
}

fn depfile(ground: &Ground<'_>, tree: &Utf8Path, i: usize, unit: &Unit) -> Option<Finding> {
    let pointer = format!("/predicate/units/{i}/files");
    let path = tree.join("build").join(&*unit.tree).join("dep").join(format!("{}.d", unit.object));
    let unseen = |found: String| {
        Some(Finding::unverifiable("E-EVIDENCE-ABSENT", pointer.clone(), "a kept dependency file", found))
    };
    let bytes = match files::bytes(&path, LONGEST_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return unseen(format!("no {path}")),
        Err(failure) => return unseen(failure.what),
    };
    let read = match depfile::read(&unit.object, &String::from_utf8_lossy(&bytes), &unit.object) {
        Ok(read) => read,
        Err(failure) => {
            let found = failure.found.clone().unwrap_or_default();
            return Some(Finding::mismatch(
                "E-DEPFILE",
                pointer,
                "a dependency file of this object",
                format!("{}: {found}", failure.what),
            ));
        }
    };
    let closure = ground.certificate.closure(unit)?;
    let known: BTreeSet<String> = closure.files.keys().map(ToString::to_string).collect();
    let place = Place::fixed();
    let at = |path: &String| real(&closure, located(&place, path));
    let missing = read.iter().map(at).find(|at| !known.contains(at))?;
    Some(Finding::mismatch("E-DEPFILE", pointer, missing, "a closure without it"))
}

/// The path that a compiler names, by root.
fn located(place: &Place, path: &str) -> String {
    let below = |at: &str| Utf8Path::new(path).strip_prefix(at).ok().map(Utf8Path::to_string);
    let roots = [("tree", &place.tree), ("toolchain", &place.toolchain), ("host", &place.host)];
    let ours = roots.into_iter().find_map(|(root, at)| Some(format!("{root}:{}", below(at)?)));
    ours.unwrap_or_else(|| format!("system:{}", path.trim_start_matches('/')))
}

/// Most links that one path leads through: a kernel's own limit.
const MOST_LINKS: usize = 40;

/// The place to which `at` leads through the links of `closure`, whose files are named without links.
fn real(closure: &Closure, mut at: String) -> String {
    for _ in 0..MOST_LINKS {
        let below = |link: &Located| {
            let rest = at.strip_prefix(&link.to_string())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
        };
        let led = closure.links.iter().find_map(|(link, holds)| Some((link, holds, below(link)?)));
        let Some((link, holds, rest)) = led else { break };
        at = match holds.strip_prefix('/') {
            Some(_) => {
                format!("system:{}", depfile::normalise(&format!("{holds}{rest}")).trim_start_matches('/'))
            }
            None => {
                let folder = link.path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let path = depfile::normalise(&format!("/{folder}/{holds}{rest}"));
                format!("{}:{}", link.root.word(), path.trim_start_matches('/'))
            }
        };
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::{LinkText, Root};

    #[test]
    fn a_path_leads_through_the_links_of_the_closure() {
        let place = Place::fixed();
        let mut closure = Closure::default();
        let links = [
            (Root::System, "lib", "usr/lib"),
            (Root::System, "usr/lib/a", "/usr/lib/b"),
            (Root::Toolchain, "lib/x.so", "x.so.1"),
            (Root::System, "usr/loop", "loop"),
        ];
        for (root, path, holds) in links {
            closure.links.insert(Located::new(root, path).unwrap(), LinkText::new(holds).unwrap());
        }
        for (path, expected) in [
            ("/requal/tree/a.h", "tree:a.h"),
            ("/requal/toolchain/lib/x.so", "toolchain:lib/x.so.1"),
            ("/requal/host/as", "host:as"),
            ("/lib/a/c.h", "system:usr/lib/b/c.h"),
            ("/library/c.h", "system:library/c.h"),
            ("/usr/loop", "system:usr/loop"),
        ] {
            assert_eq!(real(&closure, located(&place, path)), expected, "{path}");
        }
    }
}
