//! The record that a compile leaves beside its object: what it was, what it read and what came out.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::closure::Closure;
use crate::digest::Hasher;
use crate::receipt::Kernel;
use crate::reuse::{Bar, Decided, Invocation, Recorded};
use crate::target::Target;

/// The record of one compile, kept beside the object in the build folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitRecord {
    /// Digest of everything that the compile is a function of ([`key`]).
    pub key: Digest,
    /// How it was called.
    pub invocation: Invocation,
    /// What it depended on, as it was observed and by its dependency file; of a reused object what the other tree's compile
    /// depended on, found equal for this one.
    pub closure: Closure,
    /// Why it may not be certified.
    pub bars: Vec<Bar>,
    /// Whether it was compiled or reused, and why.
    pub decided: Decided,
    /// SHA-256 of the kept copy of the dependency file that Ninja was given.
    pub depfile_sha256: Digest,
    /// SHA-256 of the object.
    pub object_sha256: Digest,
    /// Size of the object.
    pub size_bytes: u64,
    /// Digest of the device code; absent for a unit without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_code_sha256: Option<Digest>,
    /// Targets that the object holds.
    pub targets: Vec<Target>,
    /// What ptxas said of each kernel.
    pub kernels: Vec<Kernel>,
}

/// The record of one link, kept beside the module in the build folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleRecord {
    /// Digest of everything that the link is a function of ([`key`]), the objects' digests among it.
    pub key: Digest,
    /// What it depended on besides the objects, as it was observed and by its dependency file.
    pub closure: Closure,
    /// Why that may not be all.
    pub bars: Vec<Bar>,
    /// SHA-256 of the kept copy of the dependency file that Ninja was given.
    pub depfile_sha256: Digest,
    /// SHA-256 of the module.
    pub sha256: Digest,
    /// Size of the module.
    pub size_bytes: u64,
    /// Digest of its device code.
    pub device_code_sha256: Digest,
    /// Its exports, sorted.
    pub exports: Vec<String>,
    /// Its DT_NEEDED entries, in file order.
    pub needed: Vec<String>,
}

impl UnitRecord {
    /// What the reuse rule needs of it.
    #[must_use]
    pub fn recorded(&self) -> Recorded<'_> {
        Recorded { invocation: &self.invocation, closure: &self.closure, bars: &self.bars }
    }
}

/// What the wrapper of one compile is told: to compile, or to take another tree's object if its closure still holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offer {
    /// Compile, for this reason.
    Compile(Decided),
    /// Take the object.
    Take(Box<Taking>),
}

/// An object of another tree that may be taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taking {
    /// The record of the object's compile.
    pub record: UnitRecord,
    /// Path of the object, as the wrapper sees it.
    pub object: String,
    /// Names of the name defines.
    pub names: BTreeSet<String>,
}

/// What a compile is a function of, as far as it is compared before a compile is skipped: everything. Reuse of single
/// objects within a changed tree needs the observed closure.
#[derive(Clone, Copy, Debug)]
pub struct KeyParts<'a> {
    /// Tokens of the command, naming places.
    pub argv: &'a [String],
    /// Environment, naming places.
    pub environment: &'a [(String, String)],
    /// Digests of toolchain tree, source tree and host compiler.
    pub trees: [Digest; 3],
    /// Paths of the place.
    pub place: [&'a str; 4],
}

/// The digest of `parts`, each length-prefixed.
#[must_use]
pub fn key(parts: KeyParts<'_>) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(b"urn:requal:unit-key:v1\0");
    hasher.list(parts.argv.iter());
    hasher.list(parts.environment.iter().map(|(name, _)| name));
    hasher.list(parts.environment.iter().map(|(_, value)| value));
    hasher.list(parts.place.iter());
    for digest in parts.trees {
        hasher.update(digest.as_bytes());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ingredient_changes_the_key() {
        let argv = ["a".to_owned(), "b".to_owned()];
        let joined = ["ab".to_owned(), String::new()];
        let environment = [("N".to_owned(), "V".to_owned())];
        let other_environment = [("N".to_owned(), "W".to_owned())];
        let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
        let base = KeyParts {
            argv: &argv,
            environment: &environment,
            trees: [one, one, one],
            place: ["t", "s", "b", "h"],
        };
        let keys = [
            key(base),
            key(KeyParts { argv: &joined, ..base }),
            key(KeyParts { argv: &argv[..1], ..base }),
            key(KeyParts { environment: &other_environment, ..base }),
            key(KeyParts { trees: [two, one, one], ..base }),
            key(KeyParts { trees: [one, two, one], ..base }),
            key(KeyParts { trees: [one, one, two], ..base }),
            key(KeyParts { place: ["t", "s", "b", "i"], ..base }),
        ];
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }
}
