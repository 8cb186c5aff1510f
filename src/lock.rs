//! `toolchain.lock`: the pinned packages, one file and one SHA-256 each.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, Failure, Outcome};

/// The lock file: TOML, `version = 1`, then one `[[package]]` table a wheel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Version of the lock format; 1.
    pub version: u32,
    /// The packages, sorted by name.
    #[serde(rename = "package")]
    pub packages: Vec<Package>,
}

/// One pinned wheel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Normalised project name (PEP 503), such as `nvidia-cuda-nvcc`.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// File name of the wheel; its tags say which platforms pip is asked for.
    pub file: String,
    /// Size of the wheel file.
    pub size_bytes: u64,
    /// SHA-256 of the wheel file: the only source of the expected hash.
    pub sha256: Digest,
    /// What the package is for.
    pub role: Role,
}

/// What a pinned package is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Part of the CUDA compiler, its headers or its run-time library: unpacked into the toolchain tree.
    Toolchain,
    /// The scheduler of compiles: unpacked into the toolchain tree too.
    Ninja,
    /// A third-party source tree.
    Source,
}

/// A value of the lock and the line it stands on.
impl Lock {
    /// Reads and checks a lock file; `path` is named in errors.
    ///
    /// # Errors
    /// `E-LOCK-*` (exit 2), naming line, expected and found.
    pub fn parse(path: &str, text: &str) -> Outcome<Self> {
        let lock: Self = toml::from_str(text).map_err(|error| {
            Failure::bad_input("E-LOCK-SYNTAX", format!("{path} cannot be read{}", at(text, error.span())))
                .found(error.message())
                .hint("git diff toolchain.lock")
        })?;
        Ok(lock)
    }
}

fn at(text: &str, span: Option<Range<usize>>) -> String {
    span.map_or(String::new(), |span| format!(" at line {}", text[..span.start].lines().count().max(1)))
}
