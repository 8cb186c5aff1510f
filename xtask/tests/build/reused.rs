//! Reuse from end to end: which objects are taken, that they are the very ones that a compile gives, and what an auditor sees.

use std::collections::BTreeSet;

use requal::certificate::{FILE, ObjectReuse};
use requal::closure::Located;
use requal::receipt::{Decision, Reason, Root};
use requal::unit::UnitRecord;
use requal::{Digest, gzip, json, judge};
use serde_json::Value;
use xtask::sys::proc::Call;

use crate::kit::build::{Ended, Fixture, HEADER, ended};
use crate::kit::{file, real};

/// The nonce of an auditor.
const NONCE: &str = "5e1f00d5e1f00d5e1f00d5e1f00d5e1f";

/// A unit that does not reach the header that `over` lays over `one`.
const PLAIN: &str = "namespace requal_one {
namespace {
__global__ void plain_kernel(float* values) { values[threadIdx.x] += 1.0f; }
}  // namespace
int plain(float* values) {
  plain_kernel<<<1, 32>>>(values);
  return static_cast<int>(cudaGetLastError());
}
}  // namespace requal_one
";

fn pair() -> Fixture {
    let fixture = Fixture::new(&["one", "over"]);
    file(&fixture.repository.join("kernels/one/units/plain.cu"), PLAIN, 0o644);
    fixture
}

fn certificate(fixture: &Fixture) -> ObjectReuse {
    let bytes = fs_err::read(fixture.scratch.join("receipts").join(FILE)).unwrap();
    serde_json::from_slice(&gzip::read(&bytes, json::LONGEST_BYTES).unwrap()).unwrap()
}

fn decisions(fixture: &Fixture, tree: &str) -> Vec<(String, Reason)> {
    let units = certificate(fixture).predicate.units.into_iter().filter(|unit| *unit.tree == *tree);
    units.map(|unit| (unit.source.to_string(), unit.reason)).collect()
}

/// Runs `verify` on the fixture's receipts with `more` arguments, in an auditor's own scratch.
fn verify(fixture: &Fixture, more: &[&str]) -> Ended {
    let receipts = fixture.scratch.join("receipts");
    let mut args = vec!["verify", receipts.as_str(), "-q", "--format", "json"];
    args.extend(["--wheelhouse", fixture.wheelhouse.as_str()]);
    args.extend(more);
    let call = Call::new(&fixture.root.join("xtask"), &args, &fixture.root);
    ended(&Call { env: fixture.caller.clone(), ..call })
}

fn codes(ended: &Ended) -> BTreeSet<String> {
    let open = ended.said["checks"].as_array().unwrap().iter();
    let open = open.filter(|check| check["state"] == "MISMATCH" || check["state"] == "UNVERIFIABLE");
    open.map(|check| check["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_the_overlay_does_not_reach_is_taken_and_is_what_a_compile_gives() {
    let fixture = pair();
    let first = fixture.run(&[]);
    assert_eq!(first.made()["over"], (2, true));
    let expected = [
        ("units/module.cu".to_owned(), Reason::NameDefineUsed),
        ("units/plain.cu".to_owned(), Reason::ClosureEqual),
        ("units/scale.cu".to_owned(), Reason::ContentDiffers),
    ];
    assert_eq!(decisions(&fixture, "over"), expected);
    let taken = fixture.digests();
    assert_eq!(taken["build/over/units/plain.cu.o"], taken["build/one/units/plain.cu.o"]);
    let receipt = fixture.receipt();
    assert_eq!(fixture.run(&[]).made()["over"], (0, false), "what was taken is still good");
    assert_eq!(requal::receipt::differences(&receipt, &fixture.receipt()), Vec::<String>::new());

    assert_eq!(fixture.run(&["--no-reuse"]).made()["over"], (1, false), "a taken object is compiled");
    assert_eq!(fixture.digests(), taken, "bit for bit what was taken");
    let reasons: Vec<Reason> = decisions(&fixture, "over").into_iter().map(|(_, reason)| reason).collect();
    assert_eq!(reasons, [Reason::NotConsidered; 3]);

    // The other tree changes where both have one file: neither is good, and what is taken again is the new object.
    fixture.edit("kernels/one/units/plain.cu", "1.0f", "2.0f");
    fixture.run(&[]).succeeded();
    let changed = fixture.digests();
    assert_eq!(changed["build/over/units/plain.cu.o"], changed["build/one/units/plain.cu.o"]);
    assert_ne!(changed["build/over/units/plain.cu.o"], taken["build/over/units/plain.cu.o"]);
    fixture.edit(HEADER, "2.0f", "2.5f");
    fixture.run(&[]).succeeded();
    assert_eq!(decisions(&fixture, "over")[1].1, Reason::ClosureEqual);
}

#[test]
fn the_same_at_the_real_path() {
    let fixture = pair();
    fixture.run(&["--sandbox", "off"]).succeeded();
    let reasons: Vec<Reason> = decisions(&fixture, "over").into_iter().map(|(_, reason)| reason).collect();
    assert_eq!(reasons, [Reason::NameDefineUsed, Reason::ClosureEqual, Reason::ContentDiffers]);
    let taken = fixture.digests();
    fixture.run(&["--sandbox", "off", "--no-reuse"]).succeeded();
    assert_eq!(fixture.digests(), taken);
}

#[test]
fn a28_every_run_shows_what_its_rule_refuses() {
    let fixture = pair();
    fixture.run(&[]).succeeded();
    let controls = certificate(&fixture).predicate.controls;
    assert_eq!((controls.tried, controls.refused, controls.rows.len()), (6, 6, 6));
}

#[test]
fn a24_a_swapped_object_passes_every_hash_and_fails_the_challenge() {
    let fixture = pair();
    fixture.run(&[]).succeeded();
    let auditor = fixture.root.join("auditor");
    let challenge = ["--recompile", "all", "--nonce", NONCE, "--scratch", auditor.as_str()];
    let honest = verify(&fixture, &challenge);
    assert_eq!((honest.code, codes(&honest)), (0, BTreeSet::new()), "{:#}", honest.said);

    swap(&fixture);
    let tree = ["--tree", fixture.scratch.as_str(), "--level", "2"];
    let hashes = verify(&fixture, &tree);
    assert_eq!((hashes.code, codes(&hashes)), (0, BTreeSet::new()), "{:#}", hashes.said);
    let caught = verify(&fixture, &challenge);
    assert_eq!((caught.code, codes(&caught)), (1, BTreeSet::from(["E-REPRODUCED".to_owned()])));
    // Without the swapped units in the sample nothing is seen: a sample has only the power that it states.
    let sampled = verify(&fixture, &["--recompile", "1", "--nonce", NONCE, "--scratch", auditor.as_str()]);
    let stated = sampled.said["checks"].as_array().unwrap().iter().find(|check| check["id"] == "sample");
    assert!(stated.unwrap()["found"].as_str().unwrap().contains("1 bad of 6"), "{:#}", sampled.said);
}

/// Puts the object of `scale` in the place of `plain`'s in both trees, and updates every digest that says so.
fn swap(fixture: &Fixture) {
    let bytes = fs_err::read(fixture.built("one/units/scale.cu.o")).unwrap();
    let receipts = fixture.scratch.join("receipts");
    let mut receipt = serde_json::to_value(fixture.receipt()).unwrap();
    let mut certificate = serde_json::to_value(certificate(fixture)).unwrap();
    let (sha256, size_bytes) = (Digest::of(&bytes).to_string(), bytes.len());
    let told = receipt["predicate"]["build"]["units"].as_array_mut().unwrap();
    let scale = told.iter().find(|unit| unit["source"] == "units/scale.cu").unwrap().clone();
    let targets: Vec<requal::target::Target> = serde_json::from_value(scale["targets"].clone()).unwrap();
    assert!(judge::object("scale", &bytes, &targets).unwrap().is_some());
    for unit in told.iter_mut().filter(|unit| unit["source"] == "units/plain.cu") {
        for field in ["object_sha256", "size_bytes", "device_code_sha256", "kernels"] {
            unit[field] = scale[field].clone();
        }
    }
    let units = certificate["predicate"]["units"].as_array_mut().unwrap();
    let mut subjects = Vec::new();
    for unit in units.iter_mut() {
        if unit["source"] == "units/plain.cu" {
            unit["object_sha256"] = sha256.clone().into();
            unit["size_bytes"] = size_bytes.into();
        }
        subjects.push(unit["object_sha256"].clone());
    }
    for (subject, sha256) in certificate["subject"].as_array_mut().unwrap().iter_mut().zip(subjects) {
        subject["digest"]["sha256"] = sha256;
    }
    for tree in ["one", "over"] {
        xtask::sys::fs::write(&fixture.built(&format!("{tree}/units/plain.cu.o")), &bytes).unwrap();
    }
    publish(&receipts, &mut receipt, &certificate);
}

/// Writes both receipts in their one form, the receipt with the digests of the certificate.
fn publish(receipts: &camino::Utf8Path, receipt: &mut Value, certificate: &Value) {
    let text = json::write(certificate).unwrap();
    let compressed = gzip::write(&text);
    let named = &mut receipt["predicate"]["build"]["certificate"];
    named["sha256"] = Digest::of(&text).to_string().into();
    named["size_bytes"] = text.len().into();
    let artifact = &mut receipt["predicate"]["run"]["certificate"];
    artifact["sha256"] = Digest::of(&compressed).to_string().into();
    artifact["size_bytes"] = compressed.len().into();
    xtask::sys::fs::write(&receipts.join(FILE), &compressed).unwrap();
    xtask::sys::fs::write(&receipts.join("runtime-build.json"), &json::write(receipt).unwrap()).unwrap();
    fs_err::remove_file(receipts.join("RUNTIME.md")).unwrap();
}

/// The repository's own kernels: what facc takes is derived from what the compiles of stock were seen to read.
#[test]
fn facc_takes_exactly_the_stock_objects_that_the_overlay_does_not_reach() {
    let mut fixture = Fixture::new(&["one"]);
    let repository = real::repository();
    fixture.caller.insert("CARGO_MANIFEST_DIR".to_owned(), repository.join("xtask").into_string());
    fixture.run(&[]).succeeded();
    let overlay: BTreeSet<Located> = crate::kit::build::files(&repository.join("kernels/exl3-facc"))
        .iter()
        .map(|path| Located::new(Root::Tree, path).unwrap())
        .collect();
    let certificate = certificate(&fixture).predicate;
    let (mut taken, mut compiled) = (0, 0);
    for unit in certificate.units.iter().filter(|unit| &*unit.tree == "exl3-facc") {
        let record = fixture.built(&format!("exl3-stock/record/{}.json", unit.object));
        let stock: UnitRecord = serde_json::from_slice(&fs_err::read(record).unwrap()).unwrap();
        let reached = overlay.iter().any(|at| stock.closure.find(at).is_some());
        let source = fs_err::read_to_string(repository.join("kernels/exl3").join(&*unit.source)).unwrap();
        let named = source.contains("REQUAL_MODULE_NAME");
        let expected = if reached || named { Decision::Compiled } else { Decision::Reused };
        assert_eq!(unit.decision, expected, "{}: {:?} {:?}", unit.source, unit.reason, unit.about);
        *(if expected == Decision::Reused { &mut taken } else { &mut compiled }) += 1;
    }
    assert!(taken > 0 && compiled > 0, "{taken} taken, {compiled} compiled");
    let with_reuse = fixture.digests();
    assert_eq!(fixture.run(&["--no-reuse"]).made()["requal_exl3_facc"].0, taken);
    assert_eq!(fixture.digests(), with_reuse, "{taken} objects and the module, bit for bit");
}
