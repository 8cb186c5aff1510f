//! Why units were reused or compiled, told from the certificate alone: root causes first, then counts.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::certificate::{Certificate, Unit};
use crate::receipt::{Decision, Reason};
use crate::{Failure, Outcome, json};

/// Why the units of a module, or one unit, were reused or compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What was asked for.
    pub of: String,
    /// Root causes: the one that touches most units first.
    pub causes: Vec<Cause>,
    /// Units that were reused.
    pub reused: usize,
    /// Units that were compiled.
    pub compiled: usize,
}

/// A reason and what it is about, with the units that it touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// What was done.
    pub decision: Decision,
    /// Why.
    pub reason: Reason,
    /// Which file, flag, identifier or probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// What the other tree's compile had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// What this tree has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// For something that stands where nothing stood: the input of the same name that it would hide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hides: Option<String>,
    /// Name defines that were shown to be unused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
    /// The units, as `TREE/SOURCE`.
    pub units: Vec<String>,
}

/// Explains `name`: a tree, a unit's source or object, or `TREE/SOURCE`; `trees` gives the tree of a module's name.
///
/// # Errors
/// `E-EXPLAIN` (exit 2) if the certificate has no such unit.
pub fn explain(
    certificate: &Certificate,
    name: &str,
    trees: &BTreeMap<String, String>,
) -> Outcome<Explanation> {
    let tree = trees.get(name).map_or(name, String::as_str);
    let named = |unit: &&Unit| {
        let full = format!("{}/{}", unit.tree, unit.source);
        *unit.tree == *tree
            || [&*unit.source, &*unit.object, &*full].contains(&name)
            || format!("{}/{}", unit.tree, unit.object) == name
    };
    let units: Vec<&Unit> = certificate.units.iter().filter(named).collect();
    if units.is_empty() {
        let mut known: Vec<&str> = certificate.units.iter().map(|unit| &*unit.tree).collect();
        known.dedup();
        let known: Vec<&str> = trees.keys().map(String::as_str).chain(known).collect();
        return Err(Failure::bad_input("E-EXPLAIN", format!("no unit or module `{name}` was built"))
            .expected(format!(
                "one of {}, or a unit such as {}",
                known.join(", "),
                certificate.units[0].source
            ))
            .found(name)
            .hint("name a module, a tree, or a unit by its source path"));
    }
    let reused = units.iter().filter(|unit| unit.decision == Decision::Reused).count();
    let mut causes: Vec<Cause> = Vec::new();
    for unit in &units {
        let cause = cause(certificate, unit);
        match causes.iter_mut().find(|known| known.is(&cause)) {
            Some(known) => known.units.extend(cause.units),
            None => causes.push(cause),
        }
    }
    // What made compiles necessary comes first.
    causes.sort_by_key(|cause| (cause.decision == Decision::Reused, std::cmp::Reverse(cause.units.len())));
    Ok(Explanation { of: name.to_owned(), causes, reused, compiled: units.len() - reused })
}

fn cause(certificate: &Certificate, unit: &Unit) -> Cause {
    let text = |value: &Option<crate::receipt::Token>| value.as_ref().map(ToString::to_string);
    let about = text(&unit.about);
    let hides = about.as_deref().filter(|_| unit.reason == Reason::ProbeFound);
    Cause {
        decision: unit.decision,
        reason: unit.reason,
        hides: hides.and_then(|about| hidden(certificate, unit, about)),
        about,
        recorded: text(&unit.recorded),
        found: text(&unit.found),
        unused: unit.unused.iter().map(ToString::to_string).collect(),
        units: vec![format!("{}/{}", unit.tree, unit.source)],
    }
}

/// The input that shares the longest end of its path with `probe`, its file name at least.
fn hidden(certificate: &Certificate, unit: &Unit, probe: &str) -> Option<String> {
    let shared = |path: &str| {
        let parts = path.rsplit(['/', ':']).zip(probe.rsplit(['/', ':']));
        parts.take_while(|(a, b)| a == b).count()
    };
    let pair = certificate.pairs.iter().find(|pair| pair.tree == unit.tree)?;
    let other = |other: &&Unit| other.tree == pair.counterpart && other.source == unit.source;
    let files = certificate.units.iter().find(other)?.files.of_table(&certificate.files)?;
    let places = files.into_iter().map(|row| row.at.to_string());
    places.filter(|at| shared(at) > 0).max_by_key(|at| shared(at))
}

impl Cause {
    fn is(&self, other: &Self) -> bool {
        let key = |cause: &Self| (cause.decision, cause.reason, cause.about.clone(), cause.found.clone());
        key(self) == key(other)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for cause in &self.causes {
            write!(f, "{} {}", cause.units.len(), json::word(&cause.decision))?;
            write!(f, ": {}", json::word(&cause.reason))?;
            if let Some(about) = &cause.about {
                write!(f, " {about}")?;
            }
            writeln!(f)?;
            if let (Some(recorded), Some(found)) = (&cause.recorded, &cause.found) {
                writeln!(f, "    {recorded} -> {found}")?;
            }
            if let Some(hides) = &cause.hides {
                writeln!(f, "    would be found in place of {hides}")?;
            }
            if !cause.unused.is_empty() {
                writeln!(f, "    unused in every pass: {}", cause.unused.join(", "))?;
            }
            let shown = cause.units.iter().take(3).cloned().collect::<Vec<_>>().join(" ");
            let more = cause.units.len().saturating_sub(3);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            writeln!(f, "    {shown}{more}")?;
        }
        write!(f, "{}: {} reused, {} compiled", self.of, self.reused, self.compiled)
    }
}
