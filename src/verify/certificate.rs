//! The reuse certificate: well-formed, bound to the build receipt both ways, and every decision in it made again.

mod bound;
mod decisions;
mod depfiles;

use std::collections::BTreeMap;

use super::well_formed::{Folder, form_finding, statement};
use super::{Check, Finding, Kind, Level, Request, State};
use crate::certificate::{Certificate, FILE, ObjectReuse, PREDICATE_TYPE, Unit};
use crate::json::{self, Fault};
use crate::manifest::Manifest;
use crate::receipt::{self, Build, CertificateFile, RuntimeBuild, TreeRecord};
use crate::reuse::{self, Lists};
use crate::{Digest, gzip};

const FORM: Kind = Kind {
    id: "certificate-form",
    level: Level::WellFormed,
    why: "bytes that are not the one text of a record may hide a second meaning",
    next: "take the certificate again from the one who published it; no tool may rewrite it",
};
const BOUND: Kind = Kind {
    id: "certificate-digest",
    level: Level::Consistent,
    why: "a certificate of another build proves nothing about this one",
    next: "put the certificate of this build beside its receipt",
};
const COMPRESSED: Kind = Kind {
    id: "certificate-compressed",
    level: Level::Consistent,
    why: "the same text was compressed again by somebody else",
    next: "nothing: the text is what counts",
};
const UNITS: Kind = consistent(
    "certificate-units",
    "a unit that the certificate leaves out, or tells otherwise, was decided in the dark",
);
const CLOSURES: Kind = consistent(
    "closures",
    "what a compile is said to have read, and not to have found, must be so in its own trees",
);
const DECISIONS: Kind = consistent(
    "reuse-decisions",
    "a reuse is worth what its rule is: made again, the rule must give the same answer",
);
const CONTROLS: Kind =
    consistent("negative-controls", "a rule that was not seen to refuse may certify everything");
const PAIRS: Kind = Kind {
    id: "reuse-pairs",
    level: Level::HashesVerified,
    why: "which trees may share objects, and which names may differ, is for the manifest to say",
    next: "reject the receipt: the certificate allows what its manifest does not",
};
const DEPFILES: Kind = Kind {
    id: "dependency-files",
    level: Level::HashesVerified,
    why: "an input that the compiler named and the closure lacks was not compared",
    next: "reject the receipt, or give the scratch of the build: --tree DIR",
};

const fn consistent(id: &'static str, why: &'static str) -> Kind {
    const NEXT: &str = "reject the receipt, or ask its producer to build again and publish the new one";
    Kind { id, level: Level::Consistent, why, next: NEXT }
}

/// The certificate with the digest of its text.
#[derive(Clone, Debug)]
pub struct Read {
    /// The record.
    pub record: ObjectReuse,
    /// SHA-256 of the uncompressed text.
    pub sha256: Digest,
}

/// Every check of the certificate that `receipt` names; none if it names none.
pub(super) fn check(
    receipt: &RuntimeBuild,
    folder: &Folder,
    manifest: Option<&Manifest>,
    request: &Request,
) -> Vec<Check> {
    let build = &receipt.predicate.build;
    let mut checks = files(receipt);
    let Some(named) = &build.certificate else { return checks };
    let Some(bytes) = folder.get(&named.file) else {
        let found = format!("no {} beside the receipt", named.file);
        checks.push(FORM.unseen(State::Unverifiable, FILE, "E-EVIDENCE-ABSENT", found));
        return checks;
    };
    let (text, record) = match text(bytes).and_then(|text| Ok((record(&text)?, text))) {
        Ok((record, text)) => (text, record),
        Err(fault) => {
            checks.extend(FORM.judge(FILE, 1, vec![form_finding(fault)]));
            return checks;
        }
    };
    checks.push(FORM.check(State::Verified, FILE.to_owned(), 1));
    checks.extend(BOUND.judge(FILE, 1, digest(named, bytes, &text)));
    let compressed = receipt.predicate.run.certificate.as_ref();
    let packed = (Digest::of(bytes), bytes.len() as u64);
    if let Some(told) = compressed.filter(|told| (told.sha256, told.size_bytes) != packed) {
        let found = format!("{}, compressed as {}", told.sha256, packed.0);
        checks.push(COMPRESSED.unseen(State::Warn, FILE, "E-CERT-COMPRESSED", found));
    }
    let ground = Ground::of(build, &record.predicate);
    let units = record.predicate.units.len();
    checks.extend(UNITS.judge(FILE, units, bound::check(build, &record)));
    if record.predicate.rule_sha256 != rule() {
        // Its digests and decisions are not lies; they only have no reader here.
        let found = "decided by another rule";
        let unseen = |kind: Kind| kind.unseen(State::Unverifiable, FILE, "E-CERT-RULE", found);
        checks.extend([CLOSURES, DECISIONS, CONTROLS].map(unseen));
        return checks;
    }
    checks.extend(CLOSURES.judge(FILE, units, decisions::closures(&ground)));
    checks.extend(DECISIONS.judge(FILE, units, decisions::decisions(&ground)));
    checks.extend(CONTROLS.judge(FILE, record.predicate.controls.rows.len(), decisions::controls(&ground)));
    if let Some(manifest) = manifest {
        checks.extend(PAIRS.judge(FILE, 1, bound::pairs(&record.predicate, manifest)));
    }
    if let Some(tree) = &request.tree {
        checks.extend(depfiles::check(&ground, tree));
    }
    checks
}

/// Digest of the rule by which decisions are made here.
fn rule() -> Digest {
    Digest::of(reuse::RULE.as_bytes())
}

/// Both parts of the receipt name the one file, or neither names any.
fn files(receipt: &RuntimeBuild) -> Vec<Check> {
    let (build, run) = (&receipt.predicate.build.certificate, &receipt.predicate.run.certificate);
    let told = [
        ("/predicate/build/certificate", build.as_ref().map(|named| &*named.file)),
        ("/predicate/run/certificate", run.as_ref().map(|told| &*told.file)),
    ];
    let any = build.is_some() || run.is_some();
    let wrong = told.into_iter().filter(|(_, file)| any && *file != Some(FILE));
    let finding = |(pointer, file): (&str, Option<&str>)| {
        Finding::mismatch("E-CERT-FILE", pointer, FILE, file.unwrap_or("no file"))
    };
    let findings: Vec<_> = wrong.map(finding).collect();
    if findings.is_empty() { vec![] } else { BOUND.judge(receipt::FILE, 1, findings) }
}

/// The certificate beside `receipt`, if it is there and can be read.
pub(super) fn read(receipt: &RuntimeBuild, folder: &Folder) -> Result<Option<Read>, Fault> {
    let Some(named) = &receipt.predicate.build.certificate else { return Ok(None) };
    let Some(bytes) = folder.get(&named.file) else { return Ok(None) };
    let text = text(bytes)?;
    Ok(Some(Read { record: record(&text)?, sha256: Digest::of(&text) }))
}

fn text(bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    gzip::read(bytes, json::LONGEST_BYTES)
}

fn record(text: &[u8]) -> Result<ObjectReuse, Fault> {
    statement(text, PREDICATE_TYPE)
}

fn digest(named: &CertificateFile, bytes: &[u8], text: &[u8]) -> Vec<Finding> {
    let (found, size_bytes) = (Digest::of(text), text.len() as u64);
    if (found, size_bytes) == (named.sha256, named.size_bytes) {
        return vec![];
    }
    let expected =
        format!("{}, {} bytes, the receipt's /predicate/build/certificate", named.sha256, named.size_bytes);
    let what = if named.sha256 == Digest::of(bytes) {
        "; the receipt has the digest of the compressed file"
    } else {
        ""
    };
    vec![Finding::mismatch("E-CERT-DIGEST", "", expected, format!("{found}, {size_bytes} bytes{what}"))]
}

/// What the judges of the certificate look at.
struct Ground<'a> {
    build: &'a Build,
    certificate: &'a Certificate,
    trees: BTreeMap<&'a str, &'a TreeRecord>,
}

impl<'a> Ground<'a> {
    fn of(build: &'a Build, certificate: &'a Certificate) -> Self {
        let trees = build.trees.iter().map(|tree| (&*tree.name, tree)).collect();
        Self { build, certificate, trees }
    }

    /// The listed files that a unit of `tree` could see.
    fn lists(&self, tree: &str) -> Lists<'a> {
        let toolchain = &self.build.toolchain;
        let tree = self.trees.get(tree).map_or(&[][..], |tree| &tree.files);
        Lists { tree, toolchain: &toolchain.files, links: &toolchain.links }
    }

    /// The unit of the other tree whose object `unit` could take, and the names that may differ.
    fn counterpart(&self, unit: &Unit) -> Option<(&'a Unit, std::collections::BTreeSet<String>)> {
        let pair = self.certificate.pairs.iter().find(|pair| pair.tree == unit.tree)?;
        let same = |other: &&Unit| other.tree == pair.counterpart && other.source == unit.source;
        let other = self.certificate.units.iter().find(same)?;
        Some((other, pair.name_defines.iter().map(ToString::to_string).collect()))
    }
}
