//! Certificate and receipt tell of the same units, each of them, in the same way.

use std::collections::BTreeSet;

use super::super::Finding;
use crate::certificate::{Certificate, FileRow, ObjectReuse, Unit};
use crate::command::Place;
use crate::json;
use crate::manifest::Manifest;
use crate::receipt::{Build, Input, Limitation, Reason, Unit as Told};
use crate::tree::second_spelling;

/// Everything that both say, and the form of the certificate's own tables.
pub(super) fn check(build: &Build, record: &ObjectReuse) -> Vec<Finding> {
    let certificate = &record.predicate;
    let mut findings = statement(record);
    findings.extend(place(build, certificate));
    findings.extend(tables(certificate));
    let told = build.units.len();
    if certificate.units.len() != told {
        let pointer = "/predicate/units";
        findings.push(Finding::mismatch("E-CERT-UNITS", pointer, told, certificate.units.len()));
    }
    for (i, (unit, told)) in certificate.units.iter().zip(&build.units).enumerate() {
        findings.extend(same_unit(build, certificate, i, unit, told));
    }
    findings
}

/// Subjects, counts and the rule.
fn statement(record: &ObjectReuse) -> Vec<Finding> {
    let certificate = &record.predicate;
    let mut findings = Vec::new();
    if record.subject.is_empty() {
        findings.push(Finding::mismatch("E-SUBJECT-EMPTY", "/subject", "at least one object", "none"));
    }
    let expected = certificate.units.iter().map(|u| (format!("{}/{}", u.tree, u.object), u.object_sha256));
    let told = record.subject.iter().map(|subject| (subject.name.to_string(), subject.digest.sha256));
    if !expected.clone().eq(told.clone()) {
        let differs = expected.zip(told).position(|(a, b)| a != b);
        let at = differs.map_or("/subject".to_owned(), |i| format!("/subject/{i}"));
        findings.push(Finding::mismatch("E-SUBJECT", at, "the objects of the units", "another list"));
    }
    let (counted, told) = (certificate.counted(), certificate.totals);
    if counted != told {
        let words = |totals: crate::certificate::Totals| {
            format!("{} reused, {} compiled", totals.reused, totals.compiled)
        };
        findings.push(Finding::mismatch("E-COUNT", "/predicate/totals", words(counted), words(told)));
    }
    let rule = super::rule();
    if certificate.rule_sha256 != rule {
        let pointer = "/predicate/rule_sha256";
        findings.push(Finding::unverifiable("E-CERT-RULE", pointer, rule, certificate.rule_sha256));
    }
    findings
}

/// The places and the environment are the receipt's, under their names.
fn place(build: &Build, certificate: &Certificate) -> Vec<Finding> {
    let demanded = Place::recorded(build.place.sandboxed);
    let told = &certificate.place;
    let all = [
        ("toolchain", &demanded.toolchain, &told.toolchain),
        ("tree", &demanded.tree, &told.tree),
        ("build", &demanded.build, &told.build),
        ("host", &demanded.host, &told.host),
    ];
    let mut findings: Vec<_> = all
        .into_iter()
        .filter(|(_, demanded, told)| ***demanded != ***told)
        .map(|(field, demanded, told)| {
            Finding::mismatch("E-CERT-PLACE", format!("/predicate/place/{field}"), demanded, told)
        })
        .collect();
    for i in 0..certificate.environment.len().max(build.environment.len()) {
        let own = certificate.environment.get(i);
        let own = own.map(|v| format!("{}={}", v.name, v.value));
        let told = build.environment.get(i);
        let told = told.map(|v| format!("{}={}", v.name, demanded.named(&v.value, "${object}")));
        if own != told {
            let shown = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
            let pointer = format!("/predicate/environment/{i}");
            findings.push(Finding::mismatch("E-ENV-UNDECLARED", pointer, shown(told), shown(own)));
            break;
        }
    }
    findings
}

/// Tables are sorted, each row is used, and no two places differ by case alone.
fn tables(certificate: &Certificate) -> Vec<Finding> {
    fn sorted<T: Ord>(name: &str, items: &[T]) -> Option<Finding> {
        let at = items.windows(2).position(|pair| pair[0] >= pair[1])? + 1;
        Some(Finding::mismatch(
            "E-ORDER",
            format!("/predicate/{name}/{at}"),
            "ascending rows",
            "another order",
        ))
    }
    let Certificate { files, absent, folders, listed, links, units, .. } = certificate;
    let mut findings: Vec<Finding> = [
        sorted("files", files),
        sorted("absent", absent),
        sorted("folders", folders),
        sorted("listed", listed),
        sorted("links", links),
    ]
    .into_iter()
    .flatten()
    .collect();
    fn unused<'a, T: 'a>(
        name: &str,
        table: &'a [T],
        units: &'a [Unit],
        rows: impl Fn(&'a Unit) -> Option<Vec<&'a T>>,
    ) -> Option<Finding> {
        let used: BTreeSet<*const T> =
            units.iter().filter_map(rows).flatten().map(std::ptr::from_ref).collect();
        let at = table.iter().position(|row| !used.contains(&std::ptr::from_ref(row)))?;
        let pointer = format!("/predicate/{name}/{at}");
        Some(Finding::mismatch("E-INPUT-UNUSED", pointer, "a unit that names the row", "none"))
    }
    findings.extend(unused("files", files, units, |unit| unit.files.of_table(files)));
    findings.extend(unused("absent", absent, units, |unit| unit.absent.of_table(absent)));
    findings.extend(unused("folders", folders, units, |unit| unit.folders.of_table(folders)));
    findings.extend(unused("listed", listed, units, |unit| unit.listed.of_table(listed)));
    findings.extend(unused("links", links, units, |unit| unit.links.of_table(links)));
    let places: BTreeSet<String> = files.iter().map(|row| row.at.to_string()).collect();
    if let Some((one, other)) = second_spelling(places.iter().map(String::as_str)).next() {
        let at = files.iter().position(|row| row.at.to_string() == other).unwrap_or_default();
        let pointer = format!("/predicate/files/{at}/at");
        findings.push(Finding::mismatch("E-PATH-CASE", pointer, format!("no twin of {one}"), other));
    }
    findings
}

fn same_unit(build: &Build, certificate: &Certificate, i: usize, unit: &Unit, told: &Told) -> Vec<Finding> {
    let here = |field: &str| format!("/predicate/units/{i}/{field}");
    let place = Place::recorded(build.place.sandboxed);
    // Places are named, not spelled: two spellings of one command would seem to differ.
    let argv = told.argv.iter().map(|word| place.named(word, &told.object)).collect::<Vec<_>>().join(" ");
    let own_argv = unit.argv.iter().map(|word| word.to_string()).collect::<Vec<_>>().join(" ");
    let rows = [
        ("tree", told.tree.to_string(), unit.tree.to_string()),
        ("source", told.source.to_string(), unit.source.to_string()),
        ("object", told.object.to_string(), unit.object.to_string()),
        ("argv", argv, own_argv),
        ("decision", json::word(&told.decision), json::word(&unit.decision)),
        ("reason", json::word(&told.reason), json::word(&unit.reason)),
        ("object_sha256", told.object_sha256.to_string(), unit.object_sha256.to_string()),
        ("size_bytes", told.size_bytes.to_string(), unit.size_bytes.to_string()),
    ];
    let differs = rows.into_iter().filter(|(_, told, own)| told != own);
    let mut findings: Vec<_> =
        differs.map(|(field, told, own)| Finding::mismatch("E-CERT-UNIT", here(field), told, own)).collect();
    let unseen = unit.bars.iter().any(|bar| bar.reason == Reason::NotObserved);
    let limitation = Limitation::ObservationIncomplete;
    if unseen && !build.limitations.contains(&limitation) {
        let expected = format!("{} said in the receipt", json::word(&limitation));
        findings.push(Finding::mismatch("E-SCOPE", here("bars"), expected, "not said"));
    }
    let Some(files) = unit.files.of_table(&certificate.files) else {
        let pointer = here("files");
        findings.push(Finding::mismatch("E-INPUT-ROW", pointer, "rows of the table", "a row beyond it"));
        return findings;
    };
    let of_row = |row: &&FileRow| Input {
        root: row.at.root,
        path: row.at.path.clone(),
        sha256: row.sha256,
        size_bytes: row.size_bytes,
    };
    let own: BTreeSet<Input> = files.iter().map(of_row).collect();
    let told: BTreeSet<Input> =
        told.inputs.iter().filter_map(|row| build.inputs.get(*row as usize)).cloned().collect();
    if let Some(input) = own.symmetric_difference(&told).next() {
        let expected = format!("{} inputs, as in the receipt", told.len());
        let found = format!("{} inputs; {} is in one list alone", own.len(), input.path);
        findings.push(Finding::mismatch("E-DEPFILE", here("files"), expected, found));
    }
    findings
}

/// Pairs are those of the manifest.
pub(super) fn pairs(certificate: &Certificate, manifest: &Manifest) -> Vec<Finding> {
    let expected = manifest.pairs();
    let told: Vec<(&str, &str, Vec<&str>)> = certificate
        .pairs
        .iter()
        .map(|pair| (&*pair.tree, &*pair.counterpart, pair.name_defines.iter().map(|name| &**name).collect()))
        .collect();
    if expected == told {
        return vec![];
    }
    let shown = |pairs: &[(&str, &str, Vec<&str>)]| {
        let one = |(tree, other, names): &(&str, &str, Vec<&str>)| {
            format!("{tree} from {other} but for {}", names.join(", "))
        };
        pairs.iter().map(one).collect::<Vec<_>>().join("; ")
    };
    vec![Finding::mismatch("E-REUSE-PAIR", "/predicate/pairs", shown(&expected), shown(&told))]
}
