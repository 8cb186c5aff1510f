//! The record that a compile leaves beside its object: what it was, what it read and what came out.

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::digest::Hasher;
use crate::observation::Observation;
use crate::receipt::{Input, Kernel};
use crate::target::Target;

/// The record of one compile, kept beside the object in the build folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitRecord {
    /// Digest of everything that the compile is a function of ([`key`]).
    pub key: Digest,
    /// Files that it read, as it was observed and by its dependency file, sorted.
    pub inputs: Vec<Input>,
    /// What it asked of the file system outside of its own folder. With a gap in it nothing may be certified.
    pub observed: Observation,
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
    /// Files that it read besides the objects, as it was observed and by its dependency file, sorted.
    pub inputs: Vec<Input>,
    /// What it asked of the file system outside of its own folder.
    pub observed: Observation,
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
    let mut list = |words: &mut dyn ExactSizeIterator<Item = &str>| {
        hasher.update(&(words.len() as u64).to_le_bytes());
        for word in words {
            hasher.update(&(word.len() as u64).to_le_bytes());
            hasher.update(word.as_bytes());
        }
    };
    list(&mut parts.argv.iter().map(String::as_str));
    list(&mut parts.environment.iter().map(|(name, _)| name.as_str()));
    list(&mut parts.environment.iter().map(|(_, value)| value.as_str()));
    list(&mut parts.place.iter().copied());
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
