//! What was published together, read for a challenge or an explanation.

use camino::Utf8Path;

use super::{ReadCertificate, beside, certificate, files, well_formed};
use crate::lock::Lock;
use crate::manifest::Manifest;
use crate::receipt::RuntimeBuild;
use crate::{Failure, Outcome};

/// What was published, as far as a challenge needs it.
#[derive(Clone, Debug)]
pub struct Published {
    /// The build receipt.
    pub receipt: RuntimeBuild,
    /// The reuse certificate.
    pub certificate: ReadCertificate,
    /// The lock.
    pub lock: Lock,
    /// The manifest, with the receipt's targets.
    pub manifest: Manifest,
}

/// Reads what lies in the folder `receipts`.
///
/// # Errors
/// `E-CHALLENGE-RECEIPTS` (exit 3) if receipt, certificate, lock or manifest is not there or cannot be read; `E-INPUT-TYPE`.
pub fn published(receipts: &Utf8Path) -> Outcome<Published> {
    files::folder(receipts)?;
    let folder = well_formed::Folder::read(receipts)?;
    let lacks = |what: &str| {
        Failure::could_not_judge(
            "E-CHALLENGE-RECEIPTS",
            format!("{receipts} holds no {what} to compile from"),
        )
        .expected("receipt, certificate, lock and manifest, as they were published together")
        .found(format!("no {what} that could be read"))
        .hint(format!("cargo xtask verify {receipts} says what is wrong with them"))
    };
    let (_, _, receipt) = well_formed::check(&folder);
    let receipt = receipt.ok_or_else(|| lacks("build receipt"))?;
    let certificate = certificate::read(&receipt, &folder).ok().flatten();
    let certificate = certificate.ok_or_else(|| lacks("reuse certificate"))?;
    let lock = folder.get(&receipt.predicate.build.lock.file).map(String::from_utf8_lossy);
    let lock = lock.and_then(|text| Lock::parse(&receipt.predicate.build.lock.file, &text).ok());
    let lock = lock.ok_or_else(|| lacks("lock"))?;
    let (_, manifest) = beside::read(&receipt.predicate.build, &folder);
    let manifest = manifest.ok_or_else(|| lacks("manifest"))?;
    Ok(Published { receipt, certificate, lock, manifest })
}
