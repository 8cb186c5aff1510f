//! Negative controls: a unit against itself, once as it is and once for each kind of change; the rule must take the first
//! and refuse every other. A rule that certifies everything shows here, in every run.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Recorded, decide};
use crate::Digest;
use crate::closure::{File, Found, Located};
use crate::receipt::{Reason, Root};

/// What was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Control {
    /// One bit of a file of the tree.
    HeaderByte,
    /// A flag was added.
    Flag,
    /// A variable was added to the environment.
    EnvironmentVariable,
    /// A header appeared where one was looked for first and not found.
    ShadowingHeader,
    /// A header appeared where one was looked for last: `crt/host_runtime.h` in a folder of the tree, if it was looked for
    /// there, which only the last host pass includes.
    LateHeader,
    /// Another program in the toolchain.
    SwappedTool,
}

impl Control {
    /// All controls, in the order of a certificate.
    pub const ALL: [Self; 6] = [
        Self::HeaderByte,
        Self::Flag,
        Self::EnvironmentVariable,
        Self::ShadowingHeader,
        Self::LateHeader,
        Self::SwappedTool,
    ];

    /// The reason for which the rule refuses it.
    #[must_use]
    pub fn refused_by(self) -> Reason {
        match self {
            Self::HeaderByte | Self::SwappedTool => Reason::ContentDiffers,
            Self::Flag => Reason::ArgumentDiffers,
            Self::EnvironmentVariable => Reason::EnvironmentDiffers,
            Self::ShadowingHeader | Self::LateHeader => Reason::ProbeFound,
        }
    }
}

/// A control and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControlRow {
    /// What was changed.
    pub control: Control,
    /// Why the rule refused it.
    pub refused_by: Reason,
}

/// Tries every control on a unit.
///
/// # Errors
/// A sentence that says which change was taken, or that the unchanged unit was refused, or that the unit has nothing to
/// change: then the rule, or the record that it was given, is not to be trusted.
pub fn controls(unit: Recorded<'_>) -> Result<Vec<ControlRow>, String> {
    match answer(unit, None)? {
        Answer::Take { test_defines: false, .. } => {}
        other => return Err(format!("the unit as it is was not taken: {other:?}")),
    }
    let row = |control: Control| match answer(unit, Some(control))? {
        Answer::Compile(decided) if decided.reason == control.refused_by() => {
            Ok(ControlRow { control, refused_by: decided.reason })
        }
        other => Err(format!("{control:?} ended as {other:?}")),
    };
    Control::ALL.into_iter().map(row).collect()
}

/// The rule's answer to the unit with one thing changed.
fn answer(unit: Recorded<'_>, control: Option<Control>) -> Result<Answer, String> {
    let mut wanted = unit.invocation.clone();
    let mut changed = None;
    match control {
        None => {}
        Some(Control::Flag) => wanted.argv.insert(1, "-O1".to_owned()),
        Some(Control::EnvironmentVariable) => {
            wanted.environment.push(("PTXAS_FLAGS".to_owned(), "-O1".to_owned()));
        }
        Some(control) => {
            let at = target(unit, control).ok_or_else(|| format!("the unit has nothing for {control:?}"))?;
            changed = Some(at);
        }
    }
    let look = |at: &Located| if changed == Some(at) { other(unit, at) } else { recorded(unit, at) };
    Ok(decide(unit, &wanted, &BTreeSet::new(), look))
}

/// A file that is not what the record says of the place: one bit of its digest is another.
fn other(unit: Recorded<'_>, at: &Located) -> Found {
    let Some(known) = unit.closure.files.get(at) else {
        return Found::File(File { sha256: Digest::of(b""), size_bytes: 0, mtime_s: 0 });
    };
    let mut bytes = *known.sha256.as_bytes();
    bytes[0] ^= 1;
    Found::File(File { sha256: Digest::from_bytes(bytes), ..*known })
}

/// The place that `control` changes.
fn target(unit: Recorded<'_>, control: Control) -> Option<&Located> {
    let mut files = unit.closure.files.keys();
    let mut probes = unit.closure.absent.iter();
    match control {
        Control::HeaderByte => files.find(|at| at.root == Root::Tree),
        Control::SwappedTool => files.find(|at| at.root == Root::Toolchain && at.path.contains("/bin/")),
        Control::ShadowingHeader => probes.next(),
        Control::LateHeader => {
            let late = |at: &&Located| at.root == Root::Tree && at.path.ends_with("crt/host_runtime.h");
            probes.clone().find(late).or_else(|| probes.next_back())
        }
        Control::Flag | Control::EnvironmentVariable => None,
    }
}

/// What the record says of a place.
fn recorded(unit: Recorded<'_>, at: &Located) -> Found {
    unit.closure.find(at).unwrap_or(Found::Absent)
}
