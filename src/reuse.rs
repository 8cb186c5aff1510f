//! The one reuse rule: tree B may take A's object when everything that A's compile depended on is the same for B.
//!
//! [`compare`] walks A's command and closure once; that one walk gives the digest of what A had, the digest of what B would
//! have, and each difference, so that the three cannot drift apart. [`decide`] adds what refuses a unit whatever the walk says.
//! Sound because a compile asks the machine only what its closure holds: if each answer is the same, so is the next question.

mod controls;
mod lists;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use controls::{Control, ControlRow, controls};
pub use lists::Lists;

use crate::closure::{Closure, Found, Located};
use crate::command::Place;
use crate::digest::{Digest, Hasher};
use crate::grammar;
use crate::receipt::{Decision, Reason};

/// The rule in words; its digest stands in each certificate, so that a decision made by another rule is known as such.
pub const RULE: &str = "urn:requal:reuse-rule:v1
An object may be taken when, walked in this order, each of these is the same for the other tree:
1. the arguments, token by token, but for name defines; 2. the environment; 3. the place;
4. what every followed link holds; 5. the names in every listed folder; 6. that every folder is one;
7. that every place where something was looked for and not found is empty;
8. content and time of last change of every file that was opened or looked at;
and when the compile was observed completely, nothing in either command is on the refusal list,
and, where the arguments are not equal, every name define is unused in every pass that is given it.
";

/// A compile as it is asked for: whatever is the same in two of these and in their closures gives the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invocation {
    /// Tokens naming places, program first, response and options files expanded.
    pub argv: Vec<String>,
    /// The whole environment, naming places, sorted by name.
    pub environment: Vec<(String, String)>,
    /// Where compilers see things.
    pub place: Place,
}

/// What was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Condition {
    /// An argument of the command.
    Argument,
    /// An environment variable.
    Environment,
    /// A path of the place.
    Place,
    /// What a symbolic link holds.
    Link,
    /// The names in a folder.
    Listing,
    /// That a folder is there.
    Folder,
    /// That nothing is there.
    Probe,
    /// The content of a file.
    Content,
    /// The time of a file's last change.
    Mtime,
}

/// One thing that is not the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// What kind of thing.
    pub condition: Condition,
    /// Which: a place, a variable's name, or `argv/7`.
    pub about: String,
    /// What A's compile had.
    pub recorded: String,
    /// What B's would have.
    pub found: String,
}

/// The outcome of the walk. `differences` is empty if and only if the digests are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Digest of everything that A's compile had.
    pub recorded: Digest,
    /// Digest of what B's would have in the same places.
    pub found: Digest,
    /// Everything that differs, in the order of [`RULE`].
    pub differences: Vec<Difference>,
}

/// What nothing has.
pub const ABSENT: &str = "absent";

/// Walks command and closure of A: what each holds by the record, and what `look` finds for B. Tokens that set one of
/// `names` are left out on both sides; whether they matter is for the test of unused defines.
pub fn compare(
    recorded: &Invocation,
    closure: &Closure,
    wanted: &Invocation,
    names: &BTreeSet<String>,
    mut look: impl FnMut(&Located) -> Found,
) -> Comparison {
    let mut walk = Walk::new();
    let argv = |of: &Invocation| grammar::parse(&of.argv).without_defines(names);
    walk.argv(&argv(recorded), &argv(wanted));
    walk.environment(recorded, wanted);
    let places = |of: &Place| [&of.toolchain, &of.tree, &of.build, &of.host].map(Clone::clone);
    for ((about, one), other) in
        ["toolchain", "tree", "build", "host"].iter().zip(places(&recorded.place)).zip(places(&wanted.place))
    {
        walk.fact(Condition::Place, about, &one, &other);
    }
    for (at, holds) in &closure.links {
        walk.fact(Condition::Link, at, holds, &link(look(at)));
    }
    for (at, names) in &closure.listed {
        walk.fact(Condition::Listing, at, &names.to_string(), &listing(look(at)));
    }
    for at in &closure.folders {
        walk.fact(Condition::Folder, at, "folder", kind(&look(at)));
    }
    for at in &closure.absent {
        walk.fact(Condition::Probe, at, ABSENT, kind(&look(at)));
    }
    for (at, file) in &closure.files {
        let (content, mtime) = match look(at) {
            Found::File(found) => (found.sha256.to_string(), found.mtime_s.to_string()),
            other => (kind(&other).to_owned(), kind(&other).to_owned()),
        };
        walk.fact(Condition::Content, at, &file.sha256.to_string(), &content);
        walk.fact(Condition::Mtime, at, &file.mtime_s.to_string(), &mtime);
    }
    walk.finish()
}

/// What is known of A's compile.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// How it was called.
    pub invocation: &'a Invocation,
    /// What it depended on.
    pub closure: &'a Closure,
    /// Why it may not be certified, whatever is compared.
    pub bars: &'a [Bar],
}

/// Something about a compile that bars it from being certified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// Why.
    pub reason: Reason,
    /// What it is about.
    pub about: String,
}

/// What was done for a unit and why, as the ledger keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// Reused or compiled.
    pub decision: Decision,
    /// The reason.
    pub reason: Reason,
    /// What the reason is about: a place, an argument, a variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// What A's compile had there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// What B's would have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The name defines that were shown to be unused; empty where the arguments are equal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
}

impl Decided {
    /// Compiled for `reason`, which is about nothing in particular.
    #[must_use]
    pub fn compiled(reason: Reason) -> Self {
        let decision = Decision::Compiled;
        Self { decision, reason, about: None, recorded: None, found: None, unused: Vec::new() }
    }

    /// Compiled for `reason`, which is about `about`.
    #[must_use]
    pub fn compiled_about(reason: Reason, about: impl ToString) -> Self {
        Self { about: Some(about.to_string()), ..Self::compiled(reason) }
    }

    /// Reused: everything was the same, and `unused` have no say.
    #[must_use]
    pub fn reused(unused: Vec<String>) -> Self {
        Self { decision: Decision::Reused, unused, ..Self::compiled(Reason::ClosureEqual) }
    }

    /// Compiled because of `difference`.
    #[must_use]
    pub fn differs(difference: &Difference) -> Self {
        let reason = match difference.condition {
            Condition::Argument => Reason::ArgumentDiffers,
            Condition::Environment => Reason::EnvironmentDiffers,
            Condition::Place => Reason::PlaceDiffers,
            Condition::Link => Reason::LinkDiffers,
            Condition::Listing => Reason::ListingDiffers,
            Condition::Folder => Reason::FolderGone,
            Condition::Probe => Reason::ProbeFound,
            Condition::Content => Reason::ContentDiffers,
            Condition::Mtime => Reason::MtimeDiffers,
        };
        let (recorded, found) = (Some(difference.recorded.clone()), Some(difference.found.clone()));
        Self { recorded, found, ..Self::compiled_about(reason, &difference.about) }
    }
}

/// What the rule says before anything is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The object may be taken; where the arguments are not equal, only if the name defines are unused.
    Take {
        /// Digest of everything that was compared.
        closure_sha256: Digest,
        /// Whether the test of unused name defines is needed.
        test_defines: bool,
    },
    /// It must be compiled, for this reason.
    Compile(Decided),
}

/// Applies the rule: the refusal list first, then the walk; the first condition that fails is the reason.
pub fn decide(
    recorded: Recorded<'_>,
    wanted: &Invocation,
    names: &BTreeSet<String>,
    look: impl FnMut(&Located) -> Found,
) -> Answer {
    if let Some(bar) = recorded.bars.first() {
        return Answer::Compile(Decided::compiled_about(bar.reason, &bar.about));
    }
    for invocation in [recorded.invocation, wanted] {
        if let Some(refusal) = grammar::parse(&invocation.argv).refusals().into_iter().next() {
            return Answer::Compile(Decided::compiled_about(Reason::FlagRefused, refusal.token));
        }
    }
    let comparison = compare(recorded.invocation, recorded.closure, wanted, names, look);
    match comparison.differences.first() {
        Some(difference) => Answer::Compile(Decided::differs(difference)),
        None => Answer::Take {
            closure_sha256: comparison.found,
            test_defines: recorded.invocation.argv != wanted.argv,
        },
    }
}

fn kind(found: &Found) -> &str {
    match found {
        Found::Absent => ABSENT,
        Found::File(_) => "file",
        Found::Folder(_) => "folder",
        Found::Link(_) => "link",
        Found::Other(what) => what,
    }
}

fn link(found: Found) -> String {
    match found {
        Found::Link(holds) => holds,
        other => kind(&other).to_owned(),
    }
}

fn listing(found: Found) -> String {
    match found {
        Found::Folder(Some(names)) => names.to_string(),
        Found::Folder(None) => "unread".to_owned(),
        other => kind(&other).to_owned(),
    }
}

struct Walk {
    recorded: Hasher,
    found: Hasher,
    differences: Vec<Difference>,
}

impl Walk {
    fn new() -> Self {
        let mut hasher = Hasher::new();
        hasher.update(RULE.as_bytes());
        Self { recorded: hasher.clone(), found: hasher, differences: Vec::new() }
    }

    /// The one door: what is hashed is what is compared.
    fn fact(&mut self, condition: Condition, about: impl ToString, recorded: &str, found: &str) {
        let about = about.to_string();
        for (hasher, value) in [(&mut self.recorded, recorded), (&mut self.found, found)] {
            hasher.update(&[condition as u8]);
            for part in [about.as_str(), value] {
                hasher.part(part);
            }
        }
        if recorded != found {
            let (recorded, found) = (recorded.to_owned(), found.to_owned());
            self.differences.push(Difference { condition, about, recorded, found });
        }
    }

    /// Arguments are hashed by number; differences are told without the equal ones at both ends, so that one that was added
    /// does not seem to change all that follow.
    fn argv(&mut self, recorded: &[String], found: &[String]) {
        self.recorded.list(recorded.iter());
        self.found.list(found.iter());
        let same = |pair: &(&String, &String)| pair.0 == pair.1;
        let head = recorded.iter().zip(found).take_while(same).count();
        let (one, other) = (&recorded[head..], &found[head..]);
        let tail = one.iter().rev().zip(other.iter().rev()).take_while(same).count();
        let (one, other) = (&one[..one.len() - tail], &other[..other.len() - tail]);
        let word = |of: &[String], i| of.get(i).map_or(ABSENT.to_owned(), |word: &String| word.clone());
        self.differences.extend((0..one.len().max(other.len())).map(|i| Difference {
            condition: Condition::Argument,
            about: format!("argv/{}", head + i),
            recorded: word(one, i),
            found: word(other, i),
        }));
    }

    fn environment(&mut self, recorded: &Invocation, wanted: &Invocation) {
        let all = recorded.environment.iter().chain(&wanted.environment);
        let names: BTreeSet<&str> = all.map(|(name, _)| name.as_str()).collect();
        for name in names {
            let value = |of: &Invocation| {
                let set = of.environment.iter().filter(|(own, _)| own == name);
                let set: Vec<String> = set.map(|(_, value)| format!("={value}")).collect();
                if set.is_empty() { ABSENT.to_owned() } else { set.join("\n") }
            };
            self.fact(Condition::Environment, name, &value(recorded), &value(wanted));
        }
    }

    fn finish(self) -> Comparison {
        let Self { recorded, found, differences } = self;
        Comparison { recorded: recorded.finish(), found: found.finish(), differences }
    }
}

#[cfg(test)]
mod tests;
