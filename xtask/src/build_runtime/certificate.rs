//! The certificate: the records of all units, written beside the receipt.

use camino::Utf8Path;
use requal::certificate::{FILE, ObjectReuse, Pair, Parts, UnitParts};
use requal::command::{self, Place};
use requal::receipt::{Artifact, CertificateFile};
use requal::{Digest, Exit, Failure, Outcome, gzip, json};

use super::Results;
use super::receipt::{name, path, units_in_order};
use crate::sys::fs;

/// What the receipt says of the certificate.
pub(super) struct Written {
    /// In its part that is equal between two builds of equal inputs.
    pub(super) named: CertificateFile,
    /// In the other: the file as it was compressed.
    pub(super) artifact: Artifact,
}

/// Writes the certificate of `results` to the receipts' `folder`.
///
/// # Errors
/// `E-CONTROLS` if the rule took what it must refuse: then nothing that it decided is worth anything.
pub(super) fn write(results: &Results, folder: &Utf8Path) -> Outcome<Written> {
    let units = units_in_order(results).into_iter().map(|(tree, unit, record)| UnitParts {
        tree,
        source: &unit.source,
        object: &unit.object,
        record,
    });
    let parts = Parts {
        place: Place::recorded(results.site.sandboxed),
        environment: command::environment(&results.site.limits),
        pairs: pairs(results)?,
        units: units.collect(),
    };
    let certificate = ObjectReuse::of(&parts).map_err(|why| {
        Failure::new(Exit::CouldNotJudge, "E-CONTROLS", "the certificate of this build cannot be written")
            .expected("texts that a receipt can hold, and every negative control refused")
            .found(why)
            .hint("report this; --no-reuse builds without the rule")
    })?;
    let text = json::write(&certificate)?;
    let compressed = gzip::write(&text);
    fs::write(&folder.join(FILE), &compressed)?;
    let (sha256, size_bytes) = (Digest::of(&text), text.len() as u64);
    let named = CertificateFile { file: path(FILE)?, sha256, size_bytes };
    let (sha256, size_bytes) = (Digest::of(&compressed), compressed.len() as u64);
    Ok(Written { named, artifact: Artifact { file: path(FILE)?, sha256, size_bytes } })
}

/// Trees that may take another's objects, with the names that may differ.
fn pairs(results: &Results) -> Outcome<Vec<Pair>> {
    let pair = |(tree, counterpart, names): (&str, &str, Vec<&str>)| {
        let name_defines = names.into_iter().map(name).collect::<Outcome<_>>()?;
        Ok(Pair { tree: name(tree)?, counterpart: name(counterpart)?, name_defines })
    };
    results.inputs.manifest.pairs().into_iter().map(pair).collect()
}
