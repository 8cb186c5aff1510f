//! What a build was made from: wheels, toolchain, host compiler and source trees.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::{Name, RelativePath, Token};
use crate::Digest;
use crate::tree::{Link, TreeFile};
use crate::wheel::Wheel;

/// A file and its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedFile {
    /// File name beside the receipt.
    pub file: RelativePath,
    /// SHA-256 of the content.
    pub sha256: Digest,
}

/// A wheel: what it was, and the digests of what it held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WheelRow {
    /// Normalised project name.
    pub name: Name,
    /// Exact version.
    pub version: Name,
    /// File name of the wheel.
    pub file: RelativePath,
    /// Size of the wheel.
    pub size_bytes: u64,
    /// SHA-256 of the wheel.
    pub sha256: Digest,
    /// SHA-256 of its RECORD.
    pub record_sha256: Digest,
    /// Number of files in it, RECORD included.
    pub files: u64,
    /// Digest of the tree of its files.
    pub tree_sha256: Digest,
    /// Whether the index marked it as withdrawn when it was fetched.
    pub yanked: bool,
}

impl WheelRow {
    /// The row of `wheel`; `yanked` says whether its index has withdrawn it.
    ///
    /// # Errors
    /// A sentence that begins with the error code, if a name cannot stand in a receipt.
    pub fn of(wheel: &Wheel, yanked: bool) -> Result<Self, String> {
        Ok(Self {
            name: Name::new(&*wheel.name)?,
            version: Name::new(&*wheel.version)?,
            file: RelativePath::new(&*wheel.file)?,
            size_bytes: wheel.size_bytes,
            sha256: wheel.sha256,
            record_sha256: wheel.record_sha256,
            files: wheel.tree.files.len() as u64,
            tree_sha256: wheel.tree.digest(),
            yanked,
        })
    }
}

/// The toolchain tree: all wheels' files under one root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Toolchain {
    /// Digest of the tree of `files`.
    pub tree_sha256: Digest,
    /// Every regular file, sorted by path.
    pub files: Vec<TreeFile>,
    /// Links made after unpacking, sorted by path.
    pub links: Vec<Link>,
}

/// One row of the preflight's table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComponentVersion {
    /// Component, such as `ptxas`.
    pub component: Name,
    /// The version by its own word, such as `13.0.88`.
    pub version: Name,
    /// Where it lies, relative to the toolchain's root.
    pub path: RelativePath,
}

/// The host compiler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostCompiler {
    /// Path at which nvcc was told to find it.
    pub path: Token,
    /// Its version.
    pub version: Name,
    /// The programs that stand behind it, sorted by name.
    pub programs: Vec<Program>,
}

/// A program of the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its role, such as `as` or `cc1plus`.
    pub name: Name,
    /// Path on the system.
    pub path: Token,
    /// SHA-256 of the file.
    pub sha256: Digest,
}

/// A source tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeRecord {
    /// The manifest's name for it.
    pub name: Name,
    /// Digest of the tree of `files`.
    pub tree_sha256: Digest,
    /// Every file, sorted by path.
    pub files: Vec<TreeFile>,
    /// The tree over which this one is laid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Name>,
    /// What lies over the base; present with `base`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<OverlayRecord>,
}

/// Files laid over a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverlayRecord {
    /// Digest of the tree of the overlay's own files.
    pub tree_sha256: Digest,
    /// Every path whose content differs from the base, sorted by path: the complete difference.
    pub changed: Vec<OverlayChange>,
}

/// One difference from the base. An overlay adds and replaces; it cannot remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverlayChange {
    /// Path in both trees.
    pub path: RelativePath,
    /// SHA-256 in the base; absent if the file is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256_before: Option<Digest>,
    /// SHA-256 here.
    pub sha256_after: Digest,
}
