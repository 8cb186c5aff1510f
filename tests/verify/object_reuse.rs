//! Verification of the certificate: one tampering a test row, beside an untampered twin that passes.

use std::collections::BTreeMap;
use std::io::Write as _;

use requal::verify::{Level, State, Word};
use requal::{Digest, Exit, gzip};
use serde_json::{Value, json};

use crate::certified::Certified;
use crate::edit;
use crate::fixture::put;

/// A published or own case of tests/cases/object-reuse.toml.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    level: usize,
    #[serde(default)]
    follow: bool,
    #[serde(default)]
    certificate: Edit,
    #[serde(default)]
    receipt: Edit,
    code: String,
    at: String,
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Edit {
    set: BTreeMap<String, Value>,
    remove: Vec<String>,
    reverse: Option<String>,
}

impl Edit {
    fn apply(&self, record: &mut Value) {
        edit::apply(record, &self.set, &self.remove, self.reverse.as_deref());
    }
}

/// Codes and pointers of what is not as it should be.
fn found(certified: &Certified, level: usize) -> Vec<(&'static str, String)> {
    let open = certified.fixture.open(level);
    open.into_iter().map(|check| (check.code.unwrap(), check.pointer)).collect()
}

#[test]
fn an_untampered_certificate_reaches_level_2() {
    let certified = Certified::new();
    for level in 0..=2 {
        assert_eq!(certified.fixture.open(level), vec![]);
    }
    let verdict = certified.fixture.verdict(2).unwrap();
    assert_eq!(verdict.word(), Word::Reached(Level::HashesVerified));
    for id in ["closures", "reuse-decisions", "negative-controls", "reuse-pairs", "dependency-files"] {
        let check = verdict.checks().iter().find(|check| check.id == id).unwrap();
        assert!(check.state == State::Verified && check.items > 0, "{check:?}");
    }
    let mut followed = Certified::new();
    followed.follow();
    assert_eq!(followed.certificate, certified.certificate, "what follows is what is written");
}

#[test]
fn every_tampering_with_the_certificate_is_rejected_with_its_code_and_pointer() {
    let cases: BTreeMap<String, Vec<Case>> =
        toml::from_str(include_str!("../cases/object-reuse.toml")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases["case"] {
        let mut certified = Certified::new();
        let id = &case.id;
        let before = (certified.certificate.clone(), certified.fixture.value.clone());
        case.certificate.apply(&mut certified.certificate);
        case.receipt.apply(&mut certified.fixture.value);
        assert_ne!(before, (certified.certificate.clone(), certified.fixture.value.clone()), "{id}");
        if case.follow {
            certified.follow();
        }
        certified.publish();
        let found = found(&certified, case.level);
        if !found.iter().any(|(code, at)| (*code, at) == (&case.code, &case.at)) {
            wrong.push(format!("{id}: {} at {} is not in {found:#?}", case.code, case.at));
        }
        let verdict = certified.fixture.verdict(case.level).unwrap();
        assert_eq!((verdict.word(), verdict.exit()), (Word::Rejected, Exit::Refused), "{id}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Texts that are not canonical: published as they are, with their own digests in the receipt.
#[test]
fn encodings_of_the_same_certificate() {
    let text = String::from_utf8(Certified::new().text()).unwrap();
    let totals = "\"compiled\": 6,\n      \"reused\": 1";
    let number = |new: &str| text.replacen("\"reused\": 1", &format!("\"reused\": {new}"), 1);
    let cases = [
        ("t013", number("1,\n      \"reused\": 190"), "E-JSON-DUPKEY"),
        ("t015 fraction", number("82.0"), "E-JSON-NUMBER"),
        ("t015 exponent", number("8.2e1"), "E-JSON-NUMBER"),
        ("t015 zero", number("-0"), "E-JSON-NUMBER"),
        ("t015 large", number("9007199254740993"), "E-JSON-NUMBER"),
        ("t016 spaces", format!("{text} "), "E-JSON-NOTCANONICAL"),
        (
            "t016 order",
            text.replacen(totals, "\"reused\": 1,\n      \"compiled\": 6", 1),
            "E-JSON-NOTCANONICAL",
        ),
        ("t017 mark", format!("\u{feff}{text}"), "E-JSON-ENCODING"),
        ("t017 lines", text.replace('\n', "\r\n"), "E-JSON-ENCODING"),
        (
            "t017 surrogate",
            text.replacen("\"tree\": \"stock\"", "\"tree\": \"\\ud800\"", 1),
            "E-JSON-ENCODING",
        ),
    ];
    for (id, tampered, code) in cases {
        assert_ne!(tampered, text, "{id} changes something");
        let mut certified = Certified::new();
        certified.publish_text(tampered.as_bytes());
        let open = certified.fixture.open(0);
        assert_eq!((open[0].code, open[0].id), (Some(code), "certificate-form"), "{id}");
        assert_eq!(certified.fixture.verdict(0).unwrap().exit(), Exit::Refused, "{id}");
    }
}

#[test]
fn t031_the_digest_of_the_compressed_file_is_no_digest_of_the_certificate() {
    let mut certified = Certified::new();
    let compressed = fs_err::read(certified.file()).unwrap();
    certified.fixture.tamper(|receipt| {
        let named = &mut receipt["predicate"]["build"]["certificate"];
        named["sha256"] = json!(Digest::of(&compressed));
        named["size_bytes"] = json!(compressed.len());
    });
    assert_eq!(found(&certified, 1), [("E-CERT-DIGEST", "object-reuse.json.gz#".to_owned())]);
    let open = certified.fixture.open(1);
    assert!(open[0].found.as_ref().unwrap().contains("digest of the compressed file"), "{open:?}");
    assert_eq!(certified.fixture.verdict(1).unwrap().exit(), Exit::Refused);
}

#[test]
fn t032_the_same_text_compressed_again_is_accepted_with_a_warning() {
    let certified = Certified::new();
    let mut packer =
        flate2::GzBuilder::new().operating_system(3).write(Vec::new(), flate2::Compression::fast());
    packer.write_all(&certified.text()).unwrap();
    let again = packer.finish().unwrap();
    assert_ne!(again, gzip::write(&certified.text()));
    put(&certified.file(), &again);
    let verdict = certified.fixture.verdict(2).unwrap();
    assert_eq!((verdict.exit(), verdict.word()), (Exit::Success, Word::Reached(Level::HashesVerified)));
    let warned: Vec<_> = verdict.checks().iter().filter(|check| check.state == State::Warn).collect();
    assert_eq!((warned.len(), warned[0].code), (1, Some("E-CERT-COMPRESSED")));
}

#[test]
fn t033_the_certificate_of_another_build() {
    let (certified, mut other) = (Certified::new(), Certified::new());
    other.tamper(|certificate, _| certificate["predicate"]["units"][3]["size_bytes"] = json!(7));
    put(&certified.file(), &fs_err::read(other.file()).unwrap());
    let found = found(&certified, 1);
    assert!(found.contains(&("E-CERT-DIGEST", "object-reuse.json.gz#".to_owned())), "{found:?}");
    assert_eq!(certified.fixture.verdict(1).unwrap().exit(), Exit::Refused);
}

#[test]
fn a_certificate_that_is_not_there_or_of_another_version_is_not_judged() {
    let certified = Certified::new();
    fs_err::remove_file(certified.file()).unwrap();
    assert_eq!(found(&certified, 1), [("E-EVIDENCE-ABSENT", "object-reuse.json.gz".to_owned())]);
    assert_eq!(certified.fixture.verdict(0).unwrap().exit(), Exit::CouldNotJudge);

    let mut certified = Certified::new();
    certified.tamper(|certificate, _| certificate["predicateType"] = json!("urn:requal:object-reuse:v2"));
    assert_eq!(
        found(&certified, 1),
        [("E-TYPE-PREDICATE", "object-reuse.json.gz#/predicateType".to_owned())]
    );
    assert_eq!(certified.fixture.verdict(0).unwrap().exit(), Exit::CouldNotJudge);
}

/// Another rule has other digests of closures, other decisions, other controls; none of them is a lie.
#[test]
fn another_rule_is_not_judged() {
    let mut certified = Certified::new();
    certified.tamper(|certificate, _| {
        let other = json!(Digest::of(b"another rule"));
        certificate["predicate"]["rule_sha256"] = other.clone();
        for unit in certificate["predicate"]["units"].as_array_mut().unwrap() {
            unit["closure_sha256"] = other.clone();
        }
    });
    let open = certified.fixture.open(2);
    assert!(open.iter().all(|c| (c.code, c.state) == (Some("E-CERT-RULE"), State::Unverifiable)), "{open:?}");
    assert_eq!(open.len(), 4);
    let verdict = certified.fixture.verdict(2).unwrap();
    assert_eq!((verdict.exit(), verdict.word()), (Exit::CouldNotJudge, Word::Inconclusive));
}

#[test]
fn t050_the_object_of_another_unit() {
    let mut certified = Certified::new();
    certified.tamper(|certificate, receipt| {
        for units in ["/predicate/units", "/predicate/build/units"] {
            let record = if units.contains("build") { &mut *receipt } else { &mut *certificate };
            let other = record.pointer(&format!("{units}/6")).unwrap().clone();
            let unit = record.pointer_mut(&format!("{units}/5")).unwrap();
            unit["object_sha256"] = other["object_sha256"].clone();
            unit["size_bytes"] = other["size_bytes"].clone();
        }
    });
    certified.follow();
    certified.publish();
    put(
        &certified.fixture.scratch.join("build/facc/b.cpp.o"),
        &fs_err::read(certified.fixture.scratch.join("build/facc/c.cpp.o")).unwrap(),
    );
    let at = "object-reuse.json.gz#/predicate/units/5/object_sha256".to_owned();
    assert_eq!(found(&certified, 2), [("E-REUSE-OBJECT", at)]);
}

#[test]
fn a_unit_that_the_receipt_lacks_and_a_row_twice() {
    let mut certified = Certified::new();
    certified.tamper(|certificate, _| {
        let units = certificate["predicate"]["units"].as_array_mut().unwrap();
        units.push(units[6].clone());
    });
    certified.follow();
    certified.publish();
    assert_eq!(found(&certified, 1), [("E-CERT-UNITS", "object-reuse.json.gz#/predicate/units".to_owned())]);

    let mut certified = Certified::new();
    certified.tamper(|certificate, _| {
        let files = certificate["predicate"]["files"].as_array_mut().unwrap();
        files.push(files[8].clone());
        certificate["predicate"]["units"][0]["files"] = json!([0, 1, 2, 1, 6, 2, 9, 1]);
    });
    certified.follow();
    certified.publish();
    assert_eq!(found(&certified, 1), [("E-ORDER", "object-reuse.json.gz#/predicate/files/9".to_owned())]);
}

#[test]
fn a_dependency_file_that_is_lost_or_another_units() {
    let certified = Certified::new();
    let kept = certified.fixture.scratch.join("build/facc/dep/b.cpp.o.d");
    let at = "object-reuse.json.gz#/predicate/units/5/files".to_owned();
    put(&kept, b"c.cpp.o: /requal/tree/b.cpp\n");
    assert_eq!(found(&certified, 2), [("E-DEPFILE", at.clone())]);
    assert_eq!(certified.fixture.verdict(2).unwrap().exit(), Exit::Refused);
    fs_err::remove_file(&kept).unwrap();
    assert_eq!(found(&certified, 2), [("E-EVIDENCE-ABSENT", at)]);
    assert_eq!(certified.fixture.verdict(2).unwrap().exit(), Exit::CouldNotJudge);
    assert_eq!(certified.fixture.verdict(1).unwrap().exit(), Exit::Success);
}

#[test]
fn t099_a_link_to_a_certificate_is_no_certificate() {
    let certified = Certified::new();
    let kept = certified.fixture.scratch.join("kept.gz");
    fs_err::rename(certified.file(), &kept).unwrap();
    std::os::unix::fs::symlink(&kept, certified.file()).unwrap();
    let failure = certified.fixture.verdict(1).unwrap_err();
    assert_eq!((failure.code, failure.exit), ("E-INPUT-TYPE", Exit::BadInput));
}
