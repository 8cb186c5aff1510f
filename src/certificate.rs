//! The reuse certificate `object-reuse.json.gz`: for every unit of every module how it was called, what its compile depended
//! on, what was decided and why, and what came out. An in-toto statement about the objects.
//!
//! Places stand once, in sorted tables; units name their rows. The record is the same between two builds of equal inputs.

mod rows;
mod table;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use rows::Rows;
pub use table::{Parts, UnitParts};

use crate::Digest;
use crate::closure::Located;
use crate::receipt::{
    Decision, LinkText, Name, Reason, RelativePath, StatementType, Subject, Token, Variable,
};
use crate::reuse::ControlRow;

/// File name of the certificate in a receipts folder.
pub const FILE: &str = "object-reuse.json.gz";
/// The predicate type of this record; its last part is the format's version.
pub const PREDICATE_TYPE: &str = "urn:requal:object-reuse:v1";

/// The certificate of one build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectReuse {
    /// Always [`crate::receipt::STATEMENT_TYPE`].
    #[serde(rename = "_type")]
    pub statement_type: StatementType,
    /// Always [`PREDICATE_TYPE`].
    #[serde(rename = "predicateType")]
    pub predicate_type: PredicateType,
    /// The objects as `TREE/OBJECT`, in the order of the units.
    pub subject: Vec<Subject>,
    /// What is said about them.
    pub predicate: Certificate,
}

/// The predicate's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PredicateType {
    /// Version 1 of the certificate.
    #[serde(rename = "urn:requal:object-reuse:v1")]
    ObjectReuseV1,
}

/// What is said about the objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// SHA-256 of the rule's text ([`crate::reuse::RULE`]).
    pub rule_sha256: Digest,
    /// Where compilers saw things, for which tokens such as `${tree}` stand.
    pub place: Place,
    /// The whole environment of each compile, naming places, sorted by name.
    pub environment: Vec<Variable>,
    /// Trees that may take another's objects, sorted by name.
    pub pairs: Vec<Pair>,
    /// How many units were reused and compiled.
    pub totals: Totals,
    /// What the rule was shown to refuse in this run.
    pub controls: Controls,
    /// Files that compiles opened or looked at, sorted by place, then digest; two trees may have two files in one place.
    pub files: Vec<FileRow>,
    /// Places where something was looked for and not found, sorted.
    pub absent: Vec<Located>,
    /// Folders that were looked at, sorted.
    pub folders: Vec<Located>,
    /// Folders whose names were read, sorted by place.
    pub listed: Vec<ListedRow>,
    /// Symbolic links that were followed, sorted by place.
    pub links: Vec<LinkRow>,
    /// Every unit of every module, in the order of the build receipt.
    pub units: Vec<Unit>,
}

/// Paths at which compilers saw things; without a sandbox they begin with `${scratch}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The toolchain tree.
    pub toolchain: Token,
    /// The source tree, the same place for each.
    pub tree: Token,
    /// The build folder.
    pub build: Token,
    /// The folder of the host's programs.
    pub host: Token,
}

/// A tree and the tree whose objects it may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The tree.
    pub tree: Name,
    /// The other.
    pub counterpart: Name,
    /// Names of the defines that may differ, if they are unused, ascending.
    pub name_defines: Vec<Name>,
}

/// Counts over `units`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Units whose object was taken.
    pub reused: u32,
    /// Units that were compiled.
    pub compiled: u32,
}

/// The negative controls: one unit against itself with one thing changed, for each kind of change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Controls {
    /// Row of the unit.
    pub unit: u32,
    /// How many changes were tried.
    pub tried: u32,
    /// How many of them were refused: all.
    pub refused: u32,
    /// Each change, and why it was refused.
    pub rows: Vec<ControlRow>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRow {
    /// Where it lies.
    pub at: Located,
    /// SHA-256 of its content.
    pub sha256: Digest,
    /// Size of its content.
    pub size_bytes: u64,
    /// Time of its last change, seconds since 1970; for files of trees and toolchain it follows from the path.
    pub mtime_s: i64,
}

/// A folder whose names were read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListedRow {
    /// Where it lies.
    pub at: Located,
    /// Digest of its names ([`crate::closure::names_digest`]).
    pub names_sha256: Digest,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRow {
    /// Where it lies.
    pub at: Located,
    /// What it holds.
    pub holds: LinkText,
}

/// One unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Name of its tree.
    pub tree: Name,
    /// Source path in the tree.
    pub source: RelativePath,
    /// Object path in the tree's object folder.
    pub object: RelativePath,
    /// The whole command, naming places, program first.
    pub argv: Vec<Token>,
    /// Rows of `files`.
    pub files: Rows,
    /// Rows of `absent`.
    pub absent: Rows,
    /// Rows of `folders`.
    pub folders: Rows,
    /// Rows of `listed`.
    pub listed: Rows,
    /// Rows of `links`.
    pub links: Rows,
    /// Why its object may not be taken by another tree, whatever is compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<BarRow>,
    /// Digest of everything that the rule compares, name defines left out.
    pub closure_sha256: Digest,
    /// What was done.
    pub decision: Decision,
    /// Why: the first condition that failed, or that all held.
    pub reason: Reason,
    /// What the reason is about: a place, an argument, a variable, a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Token>,
    /// What the counterpart's compile had there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Token>,
    /// What this one would have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Token>,
    /// Name defines that were shown to be unused in every pass; empty where the commands are equal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<Name>,
    /// SHA-256 of the object.
    pub object_sha256: Digest,
    /// Size of the object.
    pub size_bytes: u64,
}

/// Something that bars a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BarRow {
    /// Why.
    pub reason: Reason,
    /// What it is about.
    pub about: Token,
}
