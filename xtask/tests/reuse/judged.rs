//! What the pure rule says of a world, from lists and from an eye of the tests' own, beside what the wrapper did.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use requal::closure::{Closure, File, Found, Located, names_digest};
use requal::command::Place;
use requal::receipt::{Decision, ENVIRONMENT, Reason, Root};
use requal::reuse::{Answer, Decided, Invocation, Lists, decide};
use requal::{Digest, grammar};

use crate::place::{Ended, Ground, Made, names};
use crate::world::{Entry, World};

/// Compiled or reused, and why.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) reused: bool,
    pub(crate) reason: Reason,
    pub(crate) about: String,
}

impl Ground {
    /// The verdict on `world`, which is laid out, with `made` on offer, given what the wrapper did.
    ///
    /// # Errors
    /// A sentence, if the pure rule and the wrapper do not agree.
    pub(crate) fn verdict(&self, world: &World, made: &Made, did: &Ended) -> Result<Verdict, String> {
        let wanted = invocation(world);
        let (recorded, names) = (made.record.recorded(), names());
        let closure = &made.record.closure;
        let seen = decide(recorded, &wanted, &names, |at| self.see(world, closure, at));
        if let Some(tree) = world.listed().filter(|_| world.tools.is_empty()) {
            let lists = Lists {
                tree: &tree.files,
                toolchain: &self.toolchain.tree.files,
                links: &self.toolchain.links,
            };
            let outside = |at: &Located| self.see(world, closure, at);
            let listed =
                decide(recorded, &wanted, &names, |at| lists.find(at).unwrap_or_else(|| outside(at)));
            if listed != seen {
                return Err(format!("by lists {listed:?}, by the eye {seen:?}"));
            }
        }
        let did = did.as_ref().ok().map(|own| &own.record.decided);
        match (seen, did) {
            (Answer::Take { .. }, None) => Err("the rule takes it, and the wrapper failed".to_owned()),
            (Answer::Take { test_defines, .. }, Some(did)) => taken(test_defines, did),
            (Answer::Compile(decided), Some(did)) if did.decision == Decision::Reused => {
                Err(format!("the rule compiles for {decided:?}, and the wrapper took it"))
            }
            (Answer::Compile(decided), Some(did)) if did.about != decided.about => {
                Err(format!("the rule compiles for {decided:?}, the wrapper for {did:?}"))
            }
            (Answer::Compile(decided), _) => Ok(verdict(&decided)),
        }
    }

    /// What stands at `at` in `world`.
    fn see(&self, world: &World, closure: &Closure, at: &Located) -> Found {
        // A link where the other compile followed none is what stands there.
        let parts = at.path.match_indices('/').map(|(end, _)| end).chain([at.path.len()]);
        let parts = parts.map(|end| Located::new(at.root, &at.path[..end]).unwrap());
        for part in parts.filter(|part| !closure.links.contains_key(part)) {
            let holds = self.changeable(world, &part).and_then(|path| fs_err::read_link(path).ok());
            if let Some(holds) = holds {
                return Found::Link(holds.to_str().unwrap().to_owned());
            }
        }
        let Some(path) = self.changeable(world, at) else { return closure.find(at).unwrap_or(Found::Absent) };
        if closure.links.contains_key(at) {
            return match fs_err::read_link(&path) {
                Ok(holds) => Found::Link(holds.to_str().unwrap().to_owned()),
                Err(_) if path.exists() => Found::Other("no link".to_owned()),
                Err(_) => Found::Absent,
            };
        }
        if path.is_dir() {
            let listed = || xtask::sys::fs::names(&path).unwrap();
            let names = closure.listed.contains_key(at).then(listed);
            return Found::Folder(names.map(|names| names_digest(names.iter().map(String::as_str))));
        }
        let Ok(bytes) = fs_err::read(&path) else { return Found::Absent };
        let since_1970 = fs_err::metadata(&path).unwrap().modified().unwrap();
        let since_1970 = since_1970.duration_since(std::time::UNIX_EPOCH).unwrap();
        let mtime_s = i64::try_from(since_1970.as_secs()).unwrap();
        Found::File(File { sha256: Digest::of(&bytes), size_bytes: bytes.len() as u64, mtime_s })
    }

    /// Where on this machine a place lies that `world` has a say in.
    fn changeable(&self, world: &World, at: &Located) -> Option<Utf8PathBuf> {
        match (at.root, at.path.strip_prefix("opt/outside/")) {
            (Root::Tree, _) => Some(self.on_machine("tree").join(&*at.path)),
            (Root::System, Some(path)) => Some(self.on_machine("outside").join(path)),
            (Root::Toolchain, _) if world.tools.contains_key(&*at.path) => Some(self.tool(world, &at.path)),
            _ => None,
        }
    }
}

fn taken(test_defines: bool, did: &Decided) -> Result<Verdict, String> {
    let at_test = [Reason::NameDefineUsed, Reason::NameDefineUntold].contains(&did.reason);
    if did.decision == Decision::Reused || (test_defines && at_test) {
        return Ok(verdict(did));
    }
    Err(format!("the rule takes it, and the wrapper compiled for {did:?}"))
}

fn verdict(decided: &Decided) -> Verdict {
    let about = decided.about.clone().unwrap_or_default();
    Verdict { reused: decided.decision == Decision::Reused, reason: decided.reason, about }
}

/// The command of `world` as the rule compares it.
fn invocation(world: &World) -> Invocation {
    let mut read = |path: &str| match world.tree.get(path.strip_prefix("${tree}/")?)? {
        Entry::File(text, _) => Some(text.clone().into_bytes()),
        _ => None,
    };
    let argv = grammar::expand(&world.argv, &mut read).unwrap_or_else(|_| world.argv.clone());
    let known = world.environment.iter().filter(|(name, _)| ENVIRONMENT.contains(&name.as_str()));
    let mut environment: BTreeMap<_, _> = known.map(|(name, value)| (name.clone(), value.clone())).collect();
    // The wrapper sets this one itself.
    environment.insert("TMPDIR".to_owned(), "${unit}/tmp".to_owned());
    Invocation { argv, environment: environment.into_iter().collect(), place: Place::fixed() }
}
