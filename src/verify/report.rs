//! A verdict as text and as JSON, both from one value.

use std::fmt;

use serde::Serialize;

use super::{Check, Level, State, Verdict, Word};

/// What is printed.
#[derive(Clone, Debug, Serialize)]
pub struct Report<'a> {
    /// The verdict's word.
    pub verdict: Word,
    /// The highest complete level, if level 0 is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<Level>,
    /// The level that was asked for, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<Level>,
    /// The process exit code.
    pub exit: u8,
    /// How many checks ended in each state.
    pub counts: Counts,
    /// All checks, sorted by level.
    pub checks: &'a [Check],
}

/// How many checks ended in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// As the receipt says.
    pub verified: usize,
    /// Not as the receipt says.
    pub mismatch: usize,
    /// Could not be looked at.
    pub unverifiable: usize,
    /// Not asked for, or without a reader.
    pub not_run: usize,
    /// The producer's word.
    pub asserted: usize,
    /// Worth a look.
    pub warn: usize,
}

impl Verdict {
    /// The report of this verdict.
    #[must_use]
    pub fn report(&self) -> Report<'_> {
        let count = |state| self.checks.iter().filter(|check| check.state == state).count();
        Report {
            verdict: self.word(),
            reached: self.reached(),
            requested: self.requested,
            exit: self.exit().code(),
            counts: Counts {
                verified: count(State::Verified),
                mismatch: count(State::Mismatch),
                unverifiable: count(State::Unverifiable),
                not_run: count(State::NotRun),
                asserted: count(State::Asserted),
                warn: count(State::Warn),
            },
            checks: &self.checks,
        }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, level) in Level::ALL.into_iter().enumerate() {
            let checks: Vec<_> = self.checks.iter().filter(|check| check.level == level).collect();
            if !checks.is_empty() {
                writeln!(f, "level {number} {level}")?;
                checks.chunk_by(|a, b| a.id == b.id).try_for_each(|group| self::group(f, group))?;
            }
        }
        match self.verdict {
            Word::Rejected => write!(f, "REJECTED")?,
            Word::Inconclusive => write!(f, "INCONCLUSIVE")?,
            Word::Reached(level) => write!(f, "{level}")?,
        }
        let Counts { verified, mismatch, unverifiable, not_run, asserted, warn } = self.counts;
        writeln!(
            f,
            ": {verified} verified, {mismatch} mismatched, {unverifiable} unverifiable, {not_run} not run, \
             {asserted} asserted, {warn} warned"
        )
    }
}

/// The checks of one id: one line if all is well; else the first of each code with all that a reader needs, and how many
/// more are like it. JSON has all.
fn group(f: &mut fmt::Formatter<'_>, checks: &[&Check]) -> fmt::Result {
    let mut alike: Vec<(&Check, usize)> = Vec::new();
    for &check in checks {
        match alike.iter_mut().find(|(first, _)| (first.state, first.code) == (check.state, check.code)) {
            Some((_, count)) => *count += 1,
            None => alike.push((check, 1)),
        }
    }
    alike.into_iter().try_for_each(|(check, count)| entry(f, check, count - 1))
}

fn entry(f: &mut fmt::Formatter<'_>, check: &Check, more: usize) -> fmt::Result {
    let items = if check.items > 1 { format!(" ({} items)", check.items) } else { String::new() };
    writeln!(f, "  {:<12} {}{items}", check.state.to_string(), check.id)?;
    let Some(code) = check.code else { return Ok(()) };
    writeln!(f, "    {code} at {}", check.pointer)?;
    let lines = [("expected", check.expected.as_deref()), ("found", check.found.as_deref())];
    for (label, text) in lines.into_iter().chain([("why", Some(check.why)), ("next", check.next)]) {
        if let Some(text) = text {
            writeln!(f, "    {:<10}{text}", format!("{label}:"))?;
        }
    }
    if more > 0 {
        writeln!(f, "    and {more} more of this kind: --format json lists them")?;
    }
    Ok(())
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Verified => "VERIFIED",
            Self::Mismatch => "MISMATCH",
            Self::Unverifiable => "UNVERIFIABLE",
            Self::NotRun => "NOT-RUN",
            Self::Asserted => "ASSERTED",
            Self::Warn => "WARN",
        })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WellFormed => "WELL-FORMED",
            Self::Consistent => "CONSISTENT",
            Self::HashesVerified => "HASHES-VERIFIED",
            Self::StatisticsRederived => "STATISTICS-REDERIVED",
            Self::ObjectsReproduced => "OBJECTS-REPRODUCED",
        })
    }
}
