//! What preflight found: the version of each component by its own word, and the host compiler.

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Digest;

/// One line of the version table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The component, such as `cicc` or `runtime headers`.
    pub component: String,
    /// The pinned package that holds it; absent for the host compiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The version that it says of itself.
    pub version: String,
    /// Where it was read: relative to the toolchain for pinned packages, absolute for the host compiler.
    pub path: String,
}

/// A program that the host compiler runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The name by which the compiler looks for it, such as `cc1plus`.
    pub name: String,
    /// Where it was found, without symbolic links.
    #[schemars(with = "String")]
    pub path: Utf8PathBuf,
    /// SHA-256 of the file.
    pub sha256: Digest,
}

/// The host compiler that nvcc is given by `-ccbin`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostCompiler {
    /// The driver's absolute path as it was found; the name counts, so links are kept.
    #[schemars(with = "String")]
    pub path: Utf8PathBuf,
    /// The first line of its `--version`.
    pub version_line: String,
    /// Its version, such as `12.2.0`.
    pub version: String,
    /// The highest major version that the toolchain's own headers accept.
    pub highest_major: u32,
    /// The driver and every program that it runs, sorted by name.
    pub programs: Vec<Program>,
    /// The files and folders of the machine that a compile with it reads, sorted; shown read-only in the sandbox.
    #[schemars(with = "Vec<String>")]
    pub mounts: Vec<Utf8PathBuf>,
}

/// What held before the first compile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Preflight {
    /// The version table, in a fixed order.
    pub versions: Vec<Row>,
    /// The host compiler.
    pub host: HostCompiler,
    /// Variables of the caller's environment that had no effect, sorted by name.
    pub replaced_environment: Vec<String>,
}
