//! The part of the receipt that may differ between two builds of equal inputs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::{Name, RelativePath, Time};
use crate::Digest;
use crate::limits::{Applied, Limits};

/// When, where and how one build ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// 32 random bytes drawn at the start of the build, in the notation of a digest; all receipts of one campaign
    /// repeat them, so that receipts of different campaigns cannot be mixed.
    pub session: Digest,
    /// Start of the build.
    pub started_on: Time,
    /// End of the build, when the receipt was written.
    pub finished_on: Time,
    /// How the compiles were fenced in.
    pub sandbox: SandboxRun,
    /// Limits of the build.
    pub limits: RunLimits,
    /// Compiles at one time.
    pub jobs: u32,
    /// Who ran the build.
    pub user: User,
    /// Names of variables that were set where the build was started and that no compiler saw; ascending.
    pub replaced_environment: Vec<Name>,
    /// The certificate as it was compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Artifact>,
    /// Logs of the successful build.
    pub logs: Vec<Artifact>,
    /// Earlier attempts in the same scratch that failed.
    pub attempts: Vec<Attempt>,
}

/// How the compiles were fenced in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxRun {
    /// What was asked for.
    pub mode: SandboxMode,
    /// Whether the compiles ran inside.
    pub entered: bool,
    /// The step that the system refused, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_step: Option<Name>,
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Use it if the system allows it.
    Auto,
    /// Fail without it.
    Require,
    /// Do without it.
    Off,
}

/// Limits as asked for and as read back in the child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunLimits {
    /// What the profile or the command line asked for.
    pub requested: Limits,
    /// What the child read back after they were set; absent if nothing had to be compiled or linked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Applied>,
}

/// The kind of user, never a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum User {
    /// User id 0.
    Root,
    /// Any other.
    Ordinary,
}

/// A file kept beside the receipt in the scratch, such as a log: digest and size only, its content stays private.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Path relative to the scratch's receipts folder.
    pub file: RelativePath,
    /// SHA-256 of the content.
    pub sha256: Digest,
    /// Size of the content.
    pub size_bytes: u64,
}

/// An earlier attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// Path of its log relative to the scratch's receipts folder.
    pub file: RelativePath,
    /// SHA-256 of the log.
    pub sha256: Digest,
    /// Size of the log.
    pub size_bytes: u64,
    /// The exit code with which it ended.
    pub exit: u8,
}
