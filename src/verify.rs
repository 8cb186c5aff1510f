//! Verification: checks are data, a verdict is judged from at least one of them, and nothing unseen is called verified.

mod beside;
mod certificate;
mod consistent;
mod derived;
mod files;
mod hashes;
mod published;
mod report;
mod reproduced;
mod well_formed;

pub use certificate::Read as ReadCertificate;
pub use published::{Published, published};
pub use report::Report;
pub use reproduced::{Drawn, Reproduced, ReproducedUnit};

use camino::Utf8PathBuf;
use serde::Serialize;

use crate::{Exit, Failure, Outcome};

/// How far a verdict reaches. Levels are cumulative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum Level {
    /// 0: each receipt is canonical and keeps its schema.
    WellFormed,
    /// 1: what the receipts say agrees with itself.
    Consistent,
    /// 2: every digest was computed again from the bytes.
    HashesVerified,
    /// 3: every statistic was computed again from the samples.
    StatisticsRederived,
    /// 4: objects were compiled again and compared.
    ObjectsReproduced,
}

impl Level {
    /// All levels, ascending; the place in the list is the number on the command line.
    pub const ALL: [Self; 5] = [
        Self::WellFormed,
        Self::Consistent,
        Self::HashesVerified,
        Self::StatisticsRederived,
        Self::ObjectsReproduced,
    ];
}

/// What became of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum State {
    /// Looked at, and as the receipt says.
    Verified,
    /// Looked at, and not as the receipt says.
    Mismatch,
    /// Could not be looked at, for the reason in `found`.
    Unverifiable,
    /// Was not asked for, or has no reader here.
    NotRun,
    /// The producer's word; no check of this level could show it.
    Asserted,
    /// As the receipt says, and yet worth a look.
    Warn,
}

/// One check and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name of the check.
    pub id: &'static str,
    /// The level that needs it.
    pub level: Level,
    /// What became of it.
    pub state: State,
    /// How many things it looked at.
    pub items: u64,
    /// Stable code, listed in docs/errors.md; absent when verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// File, and JSON pointer in it, such as `runtime-build.json#/subject/0`.
    pub pointer: String,
    /// What the receipt or the format demands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What was found, or why nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Why the check matters.
    pub why: &'static str,
    /// What to do next; absent when verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<&'static str>,
}

/// A kind of check: what its checks share.
#[derive(Clone, Copy, Debug)]
struct Kind {
    id: &'static str,
    level: Level,
    why: &'static str,
    next: &'static str,
}

/// One thing that is not as it should be, or could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    state: State,
    code: &'static str,
    pointer: String,
    expected: String,
    found: String,
}

impl Finding {
    fn mismatch(
        code: &'static str,
        pointer: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        Self { state: State::Mismatch, code, pointer: pointer.into(), expected, found }
    }

    fn unverifiable(
        code: &'static str,
        pointer: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        Self { state: State::Unverifiable, ..Self::mismatch(code, pointer, expected, found) }
    }

    /// What a judge of the build refused, and all that it refused with it, as findings at `pointer`.
    fn refusals(pointer: &str, failure: Failure) -> Vec<Self> {
        let Failure { code, exit, what, expected, found, related, .. } = failure;
        let make = if exit == Exit::CouldNotJudge { Self::unverifiable } else { Self::mismatch };
        let expected = expected.unwrap_or_else(|| "what the build's own judge takes".to_owned());
        let found = found.map_or(what.clone(), |found| format!("{what}: {found}"));
        let mut findings = vec![make(code, pointer, expected, found)];
        findings.extend(related.into_iter().flat_map(|failure| Self::refusals(pointer, failure)));
        findings
    }
}

impl Kind {
    /// One check for each finding; without findings one check that says how many `items` were verified.
    fn judge(self, file: &str, items: usize, findings: Vec<Finding>) -> Vec<Check> {
        if findings.is_empty() {
            return vec![self.check(State::Verified, file.to_owned(), items)];
        }
        let of = |finding: Finding| Check {
            code: Some(finding.code),
            expected: Some(finding.expected),
            found: Some(finding.found),
            next: Some(self.next),
            ..self.check(finding.state, format!("{file}#{}", finding.pointer), 1)
        };
        findings.into_iter().map(of).collect()
    }

    /// A check that says `found` without having looked.
    fn unseen(self, state: State, pointer: &str, code: &'static str, found: impl Into<String>) -> Check {
        Check {
            code: Some(code),
            found: Some(found.into()),
            next: Some(self.next),
            ..self.check(state, pointer.to_owned(), 0)
        }
    }

    fn check(self, state: State, pointer: String, items: usize) -> Check {
        let Self { id, level, why, .. } = self;
        let items = items as u64;
        Check { id, level, state, items, code: None, pointer, expected: None, found: None, why, next: None }
    }
}

/// What to verify and with what evidence.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folder of receipts.
    pub receipts: Utf8PathBuf,
    /// The level that must be reached; the highest reachable one without it.
    pub level: Option<Level>,
    /// A scratch, for level 2.
    pub tree: Option<Utf8PathBuf>,
    /// A folder of wheels; the scratch's own without it.
    pub wheelhouse: Option<Utf8PathBuf>,
}

/// The outcome of a verification. There is no way to make one without a check.
#[derive(Clone, Debug)]
pub struct Verdict {
    checks: Vec<Check>,
    requested: Option<Level>,
}

/// The verdict's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum Word {
    /// Something is not as the receipts say.
    Rejected,
    /// The requested level, or level 0, was not reached.
    Inconclusive,
    /// Every check up to this level was seen and agreed.
    Reached(Level),
}

impl Verdict {
    /// The verdict on `first` and `rest`; `requested` is the level that must be reached.
    #[must_use]
    pub fn judge(first: Check, rest: Vec<Check>, requested: Option<Level>) -> Self {
        let mut checks = vec![first];
        checks.extend(rest);
        checks.sort_by_key(|check| check.level);
        Self { checks, requested }
    }

    /// The checks, sorted by level.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// The highest level of which something was really verified, with no check open up to it. Statistics alone may be missing
    /// below it: a build without a measurement has none.
    #[must_use]
    pub fn reached(&self) -> Option<Level> {
        let of = |level: Level| self.checks.iter().filter(move |check| check.level == level);
        let open =
            |check: &Check| matches!(check.state, State::Mismatch | State::Unverifiable | State::NotRun);
        let seen = |level: Level| of(level).any(|check| check.state == State::Verified && check.items > 0);
        let passes = |level: &Level| {
            let silent = *level == Level::StatisticsRederived && of(*level).next().is_none();
            silent || (!of(*level).any(open) && seen(*level))
        };
        Level::ALL.into_iter().take_while(passes).filter(|level| seen(*level)).last()
    }

    /// The verdict's word.
    #[must_use]
    pub fn word(&self) -> Word {
        if self.checks.iter().any(|check| check.state == State::Mismatch) {
            return Word::Rejected;
        }
        match (self.reached(), self.requested) {
            (Some(reached), Some(requested)) if reached < requested => Word::Inconclusive,
            (Some(reached), _) => Word::Reached(reached),
            (None, _) => Word::Inconclusive,
        }
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self.word() {
            Word::Rejected => Exit::Refused,
            Word::Inconclusive => Exit::CouldNotJudge,
            Word::Reached(_) => Exit::Success,
        }
    }
}

/// Verifies the receipts of a folder as far as the evidence allows.
///
/// # Errors
/// `E-USAGE-EVIDENCE` (exit 2) when the requested level needs evidence that was not given, `E-INPUT-TYPE` (exit 2)
/// when a path is a link, a device or otherwise not what it should be, `E-INPUT-SIZE` (exit 2), `E-IO` (exit 3).
pub fn verify(request: &Request) -> Outcome<Verdict> {
    judged(request, None)
}

/// The same with what an auditor's own compiles gave, for level 4.
///
/// # Errors
/// As [`verify`].
pub fn with_challenge(request: &Request, reproduced: &Reproduced) -> Outcome<Verdict> {
    judged(request, Some(reproduced))
}

fn judged(request: &Request, reproduced: Option<&Reproduced>) -> Outcome<Verdict> {
    if request.level == Some(Level::ObjectsReproduced) && reproduced.is_none() {
        return Err(Failure::bad_input("E-USAGE-EVIDENCE", "level 4 compiles objects again")
            .expected("--recompile N|all and --nonce HEX")
            .found("no --recompile")
            .hint("cargo xtask verify RECEIPTS --recompile all --nonce $(openssl rand -hex 16)"));
    }
    if request.level >= Some(Level::HashesVerified) && request.tree.is_none() {
        return Err(Failure::bad_input("E-USAGE-EVIDENCE", "level 2 and above compare hashes with bytes")
            .expected("--tree DIR, a scratch that holds what was built")
            .found("no --tree")
            .hint("give --tree, or ask for --level 1"));
    }
    for folder in [Some(&request.receipts), request.tree.as_ref(), request.wheelhouse.as_ref()] {
        folder.map_or(Ok(()), |folder| files::folder(folder))?;
    }
    let folder = well_formed::Folder::read(&request.receipts)?;
    let (first, mut rest, receipt) = well_formed::check(&folder);
    if let Some(receipt) = &receipt {
        rest.extend(consistent::check(receipt, &folder));
        let (beside, manifest) = beside::read(&receipt.predicate.build, &folder);
        rest.extend(beside);
        rest.extend(derived::check(receipt, manifest.as_ref()));
        rest.extend(certificate::check(receipt, &folder, manifest.as_ref(), request));
        let read = reproduced.and_then(|_| certificate::read(receipt, &folder).ok().flatten());
        if let (Some(reproduced), Some(read)) = (reproduced, read) {
            rest.extend(reproduced::check(&read.record.predicate, reproduced));
        }
        rest.extend(hashes::check(receipt, request)?);
    }
    Ok(Verdict::judge(first, rest, request.level))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind { id: "x", level: Level::WellFormed, why: "it matters", next: "look" };

    fn at(level: Level, state: State) -> Check {
        Kind { level, ..KIND }.check(state, String::new(), 1)
    }

    #[test]
    fn t100_no_verdict_is_better_than_its_checks() {
        let states = [
            State::Verified,
            State::Mismatch,
            State::Unverifiable,
            State::NotRun,
            State::Asserted,
            State::Warn,
        ];
        for state in states {
            for requested in [None, Some(Level::WellFormed), Some(Level::Consistent)] {
                let verdict = Verdict::judge(at(Level::WellFormed, state), vec![], requested);
                let success = verdict.exit() == Exit::Success;
                assert_eq!(
                    success,
                    state == State::Verified && requested != Some(Level::Consistent),
                    "{state:?}"
                );
                assert_eq!(success, matches!(verdict.word(), Word::Reached(_)));
                assert_eq!(verdict.exit() == Exit::Refused, state == State::Mismatch);
            }
        }
    }

    #[test]
    fn a_level_needs_each_level_below_it_and_something_seen() {
        let of = |checks: &[(Level, State)]| {
            let all: Vec<_> = checks.iter().map(|(level, state)| at(*level, *state)).collect();
            Verdict::judge(all[0].clone(), all[1..].to_vec(), None).reached()
        };
        use Level::{Consistent as L1, HashesVerified as L2, WellFormed as L0};
        use State::{Asserted, NotRun, Unverifiable, Verified};
        assert_eq!(of(&[(L0, Verified), (L1, Verified), (L2, Verified)]), Some(L2));
        assert_eq!(of(&[(L0, Verified), (L1, Verified), (L2, Unverifiable), (L2, Verified)]), Some(L1));
        assert_eq!(of(&[(L0, Verified), (L2, Verified)]), Some(L0));
        assert_eq!(of(&[(L0, Verified), (L1, Asserted)]), Some(L0));
        assert_eq!(of(&[(L0, NotRun), (L1, Verified)]), None);
    }

    #[test]
    fn a_check_of_nothing_is_not_verification() {
        let nothing = KIND.judge("f", 0, vec![]).remove(0);
        assert_eq!(Verdict::judge(nothing, vec![], None).exit(), Exit::CouldNotJudge);
    }
}
