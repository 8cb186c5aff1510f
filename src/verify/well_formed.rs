//! Level 0: each receipt is canonical JSON of a known type and keeps its schema.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Check, Finding, Kind, Level, State, files};
use crate::json::{self, Fault};
use crate::receipt::{FILE, PREDICATE_TYPE, RuntimeBuild, STATEMENT_TYPE};
use crate::{Failure, Outcome};

const RECEIPTS: Kind = Kind {
    id: "receipts-present",
    level: Level::WellFormed,
    why: "without a receipt nothing was verified",
    next: "give the folder that holds runtime-build.json",
};
const FORM: Kind = Kind {
    id: "runtime-build-form",
    level: Level::WellFormed,
    why: "bytes that are not the one canonical text of a record may hide a second meaning",
    next: "take the receipt again from the one who published it; no tool may rewrite it",
};
const SUBJECTS: Kind = Kind {
    id: "subjects-present",
    level: Level::WellFormed,
    why: "a statement about nothing proves nothing",
    next: "ask the one who published the receipt",
};
const UNKNOWN: Kind = Kind {
    id: "receipt-of-unknown-kind",
    level: Level::Consistent,
    why: "a receipt without a reader was not checked, and others may depend on it",
    next: "verify with a version that knows this file, or move it out of the folder",
};

/// The files of a receipts folder, each read once.
pub(super) struct Folder {
    files: BTreeMap<String, Vec<u8>>,
}

impl Folder {
    /// Reads every file that lies directly in `folder`; folders in it hold logs and are left to level 2.
    pub(super) fn read(folder: &Utf8Path) -> Outcome<Self> {
        let mut found = BTreeMap::new();
        let mut faults = Vec::new();
        for entry in fs_err::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().into_string().map_err(|name| {
                let what = format!("{folder} holds a file whose name is not UTF-8");
                Failure::bad_input("E-INPUT-TYPE", what).found(format!("{name:?}"))
            })?;
            if entry.file_type()?.is_dir() {
                continue;
            }
            match files::bytes(&folder.join(&name), json::LONGEST_BYTES as u64) {
                Ok(Some(bytes)) => drop(found.insert(name, bytes)),
                Ok(None) => {}
                Err(fault) => faults.push(fault),
            }
        }
        Failure::all(faults).map(|()| Self { files: found })
    }

    /// The bytes of the file `name`.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }
}

/// The first check, further ones, and the receipt if it could be read.
pub(super) fn check(folder: &Folder) -> (Check, Vec<Check>, Option<RuntimeBuild>) {
    let (first, mut rest, receipt) = receipt(folder);
    let certificate = receipt.as_ref().and_then(|receipt| receipt.predicate.build.certificate.as_ref());
    let read = |name: &str| name == FILE || certificate.is_some_and(|named| *named.file == *name);
    let unknown = folder.files.keys().filter(|name| !read(name) && looks_like_a_receipt(name));
    rest.extend(
        unknown
            .map(|name| UNKNOWN.unseen(State::NotRun, name, "E-RECEIPT-UNKNOWN", "no reader for this file")),
    );
    (first, rest, receipt)
}

fn receipt(folder: &Folder) -> (Check, Vec<Check>, Option<RuntimeBuild>) {
    let mut rest = Vec::new();
    let Some(bytes) = folder.get(FILE) else {
        let found = format!("no {FILE} among {} files", folder.files.len());
        return (RECEIPTS.unseen(State::Unverifiable, FILE, "E-RECEIPTS-NONE", found), rest, None);
    };
    match statement::<RuntimeBuild>(bytes, PREDICATE_TYPE) {
        Ok(receipt) => {
            let subjects = receipt.subject.len();
            rest.extend(SUBJECTS.judge(FILE, subjects, subject_findings(&receipt)));
            (FORM.check(State::Verified, FILE.to_owned(), 1), rest, Some(receipt))
        }
        Err(fault) => {
            let first = FORM.judge(FILE, 1, vec![form_finding(fault)]).remove(0);
            let next = Kind {
                id: "runtime-build-facts",
                level: Level::Consistent,
                why: "a receipt that cannot be read says nothing that could be checked",
                next: FORM.next,
            };
            rest.push(next.unseen(
                State::NotRun,
                FILE,
                "E-RECEIPT-UNREADABLE",
                "the receipt is not well-formed",
            ));
            (first, rest, None)
        }
    }
}

fn looks_like_a_receipt(name: &str) -> bool {
    [".json", ".json.gz", ".jsonl"].iter().any(|end| name.ends_with(end))
}

/// Reads the statement `bytes` of `predicate`; the types are judged before the schema, so that another statement is called by
/// its name.
pub(super) fn statement<T: Serialize + DeserializeOwned>(bytes: &[u8], predicate: &str) -> Result<T, Fault> {
    let value = json::read(bytes)?;
    let types = [("_type", "E-TYPE", STATEMENT_TYPE), ("predicateType", "E-TYPE-PREDICATE", predicate)];
    for (key, code, expected) in types {
        if let Some(found) = value.get(key).and_then(Value::as_str).filter(|found| *found != expected) {
            let found = found.to_owned();
            return Err(Fault { code, pointer: format!("/{key}"), expected: expected.to_owned(), found });
        }
    }
    json::record_of(&value)
}

/// What is wrong with the form of a record. Another version of it is no lie; it only has no reader here.
pub(super) fn form_finding(fault: Fault) -> Finding {
    let make = if fault.code == "E-TYPE-PREDICATE" { Finding::unverifiable } else { Finding::mismatch };
    make(fault.code, fault.pointer, fault.expected, fault.found)
}

fn subject_findings(receipt: &RuntimeBuild) -> Vec<Finding> {
    if receipt.subject.is_empty() {
        return vec![Finding::mismatch("E-SUBJECT-EMPTY", "/subject", "at least one subject", "none")];
    }
    let mut seen = BTreeSet::new();
    let repeated = receipt.subject.iter().enumerate().filter(|(_, subject)| !seen.insert(&*subject.name));
    repeated
        .map(|(i, subject)| {
            Finding::mismatch(
                "E-SUBJECT-TWICE",
                format!("/subject/{i}/name"),
                "each name once",
                &*subject.name,
            )
        })
        .collect()
}
