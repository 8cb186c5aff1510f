//! RECORD: one row a file, read both ways, with SHA-256 and size. No row and no file is left over.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Fault;
use super::content::{self, Stop};
use super::frame::Entry;
use crate::lock::Package;
use crate::{Digest, Failure, Failures, Outcome};

/// Largest RECORD that is read.
const MAX_RECORD_BYTES: usize = 1 << 26;

/// A row's content; `None` for RECORD's own row.
struct Row {
    line: u64,
    claim: Option<(Digest, u64)>,
}

/// SHA-256 of each file among `entries` (folders left out, in their order) as RECORD claims it, and RECORD's own.
pub(super) fn read(package: &Package, entries: &[Entry<'_>]) -> Outcome<(Vec<Digest>, Digest)> {
    let folder = format!("{}-{}.dist-info", package.escaped_name(), package.version);
    let path = format!("{folder}/RECORD");
    let refuse = |code, what: String| Failure::refused(code, format!("{}: {what}", package.file));
    let foreign = entries
        .iter()
        .filter_map(|entry| entry.path.split('/').next())
        .find(|top| top.to_ascii_lowercase().ends_with(".dist-info") && *top != folder);
    if let Some(top) = foreign {
        return Err(refuse("E-RECORD-SET", format!("{top} is another package's folder")).expected(folder));
    }
    let Some(own) = entries.iter().find(|entry| entry.path == path && !entry.folder) else {
        return Err(refuse("E-RECORD-SET", format!("the wheel has no {path}")));
    };
    if own.packed.size_bytes > MAX_RECORD_BYTES {
        return Err(refuse("E-ZIP-BOMB", format!("{path} has {} bytes", own.packed.size_bytes)));
    }
    let mut bytes = Vec::new();
    let own_sha256 = content::unpack(&own.packed, &mut bytes).map_err(|stop| match stop {
        Stop::Damaged(fault) => fault.at("E-ZIP-DATA", &package.file, &path),
        Stop::Write(error) => error.into(),
    })?;
    let at = |line: u64| format!("{}: {path}:{line}", package.file);
    let (mut rows, mut failures) = rows(&bytes, &path, at);
    let mut digests = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.folder) {
        match rows.remove(&entry.path) {
            None => failures.push(Failure::refused(
                "E-RECORD-SET",
                format!("{}: {} is not in RECORD", package.file, entry.path),
            )),
            Some(Row { claim: None, .. }) => digests.push(own_sha256),
            Some(Row { line, claim: Some((_, size_bytes)) })
                if size_bytes != entry.packed.size_bytes as u64 =>
            {
                let what = format!("{}: size of {} differs from the zip's headers", at(line), entry.path);
                let failure = Failure::refused("E-RECORD-SIZE", what);
                failures.push(failure.expected(entry.packed.size_bytes).found(size_bytes));
            }
            Some(Row { claim: Some((sha256, _)), .. }) => digests.push(sha256),
        }
    }
    for (path, row) in rows {
        failures
            .push(Failure::refused("E-RECORD-SET", format!("{}: {path} is not in the wheel", at(row.line))));
    }
    Failure::all(failures)?;
    Ok((digests, own_sha256))
}

/// All rows by path, and what is wrong with the others.
fn rows(bytes: &[u8], own: &str, at: impl Fn(u64) -> String) -> (BTreeMap<String, Row>, Failures) {
    let (mut rows, mut failures) = (BTreeMap::new(), Vec::new());
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                failures.push(Failure::refused("E-RECORD-FORMAT", format!("{}: {error}", at(line))));
                continue;
            }
        };
        let line = record.position().map_or(0, csv::Position::line);
        match row(&record, own) {
            Ok((path, claim)) => {
                if let Some(first) = rows.insert(path.clone(), Row { line, claim }) {
                    let what = format!("{}: {path} has a row already, in line {}", at(line), first.line);
                    failures.push(Failure::refused("E-RECORD-SET", what));
                }
            }
            Err((code, fault)) => failures.push(fault.at(code, &at(line), &record[0])),
        }
    }
    (rows, failures)
}

type RowFault = (&'static str, Fault);

/// Path and claim of one row: three fields; `sha256=` and 43 URL-safe digits; a decimal size.
fn row(record: &csv::StringRecord, own: &str) -> Result<(String, Option<(Digest, u64)>), RowFault> {
    let [path, hash, size] = record.iter().collect::<Vec<_>>()[..] else {
        return Err(("E-RECORD-FORMAT", Fault::differs("a row has exactly three fields", 3, record.len())));
    };
    if path == own {
        return match hash.is_empty() && size.is_empty() {
            true => Ok((path.to_owned(), None)),
            false => Err(("E-RECORD-FORMAT", Fault::new("RECORD's own row has neither hash nor size"))),
        };
    }
    let form = || {
        (
            "E-RECORD-HASH",
            Fault::differs("the hash has another form", "sha256= and 43 digits of URL-safe base64", hash),
        )
    };
    let digits = hash.strip_prefix("sha256=").filter(|digits| digits.len() == 43).ok_or_else(form)?;
    let bytes: [u8; 32] =
        URL_SAFE_NO_PAD.decode(digits).ok().and_then(|bytes| bytes.try_into().ok()).ok_or_else(form)?;
    let size_bytes = size.parse().ok().filter(|bytes: &u64| bytes.to_string() == size);
    let size_bytes = size_bytes.ok_or_else(|| {
        ("E-RECORD-FORMAT", Fault::differs("the size has another form", "decimal digits", size))
    })?;
    Ok((path.to_owned(), Some((Digest::from_bytes(bytes), size_bytes))))
}
