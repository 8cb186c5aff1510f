//! The format of records: committed schemas, golden files and the comparison rule.

use crate::certified::Certified;
use crate::fixture::Fixture;
use requal::certificate::ObjectReuse;
use requal::receipt::{RuntimeBuild, differences};
use requal::{Digest, json, schema};
use serde_json::{Value, json};

fn root(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Compares a committed file with what it is made from; with REQUAL_BLESS=1 it is written anew.
fn committed(path: &str, made: &str) {
    if std::env::var_os("REQUAL_BLESS").is_some() {
        crate::fixture::put(root(path).as_str().into(), made.as_bytes());
    }
    let found = fs_err::read_to_string(root(path)).unwrap_or_default();
    assert!(
        found == made,
        "{path} is not what the code makes; look at the difference, then REQUAL_BLESS=1 cargo test"
    );
}

#[test]
fn committed_schemas_are_those_of_the_types() {
    for (name, text) in schema::receipts().into_iter().chain(schema::manifests()) {
        committed(&format!("manifests/schemas/{name}"), &text);
    }
}

/// Every leaf of a receipt's schema is bounded: an enum, a constant, a pattern, an integer or a truth value.
#[test]
fn no_schema_has_room_for_free_text() {
    fn walk(value: &Value, place: &str) {
        if let Some(fields) = value.as_object() {
            if fields.get("type") == Some(&json!("string")) {
                let bounded = ["pattern", "enum", "const"].iter().any(|bound| fields.contains_key(*bound));
                assert!(bounded, "{place} is free text");
            }
            assert_ne!(fields.get("type"), Some(&json!("number")), "{place} is no integer");
            if fields.get("type") == Some(&json!("object")) {
                assert_eq!(fields.get("additionalProperties"), Some(&json!(false)), "{place} is open");
            }
            fields.iter().for_each(|(key, value)| walk(value, &format!("{place}/{key}")));
        }
        value.as_array().into_iter().flatten().for_each(|item| walk(item, place));
    }
    for (name, text) in schema::receipts() {
        walk(&serde_json::from_str(&text).unwrap(), name);
    }
}

/// A receipt with every optional field, as version 1 of the format was first written. It is kept for ever.
#[test]
fn the_first_golden_receipt_still_reads() {
    let path = "tests/golden/runtime-build.v1.json";
    if std::env::var_os("REQUAL_BLESS").is_some() && !fs_err::exists(root(path)).unwrap() {
        committed(path, &String::from_utf8(json::write(&full()).unwrap()).unwrap());
    }
    let bytes = fs_err::read(root(path)).unwrap();
    let receipt: RuntimeBuild = json::read_record(&bytes).unwrap();
    assert_eq!(json::write(&receipt).unwrap(), bytes);
}

/// A certificate with every optional field, and the receipt that names it, as the first versions were written.
#[test]
fn the_first_golden_certificate_and_its_receipt_still_read() {
    let (certificate, receipt) =
        ("tests/golden/object-reuse.v1.json", "tests/golden/runtime-build.v1.certified.json");
    if std::env::var_os("REQUAL_BLESS").is_some() && !fs_err::exists(root(certificate)).unwrap() {
        let mut certified = Certified::new();
        certified.tamper(|certificate, _| {
            let bars = json!([{"about": "tree:p.cu", "reason": "TIME_MACRO"}]);
            certificate["predicate"]["units"][3]["bars"] = bars;
        });
        for (path, value) in [(certificate, &certified.certificate), (receipt, &certified.fixture.value)] {
            committed(path, &String::from_utf8(json::write(value).unwrap()).unwrap());
        }
    }
    let bytes = fs_err::read(root(certificate)).unwrap();
    let record: ObjectReuse = json::read_record(&bytes).unwrap();
    assert_eq!(json::write(&record).unwrap(), bytes);
    let receipt: RuntimeBuild = json::read_record(&fs_err::read(root(receipt)).unwrap()).unwrap();
    let named = receipt.predicate.build.certificate.unwrap();
    assert_eq!((named.sha256, named.size_bytes), (Digest::of(&bytes), bytes.len() as u64));
    // What was decided by the first rule is known as such, and its digests are made the same way for ever.
    let names = record.predicate.names();
    for unit in &record.predicate.units {
        assert_eq!(record.predicate.closure_sha256(unit, &names), Some(unit.closure_sha256));
    }
}

fn full() -> Value {
    let mut value = Fixture::new().value;
    let sha256 = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let build = &mut value["predicate"]["build"];
    build["place"] = json!({"sandboxed": false, "toolchain": "${scratch}/toolchain", "tree": "${scratch}/tree",
        "build": "${scratch}/build", "scratch_path_sha256": sha256});
    build["host_compiler"]["programs"] = json!([{"name": "as", "path": "/usr/bin/as", "sha256": sha256}]);
    build["claims"] = json!(["REBUILD_IS_BIT_IDENTICAL", "NOTHING_WRITTEN_OUTSIDE_SCRATCH"]);
    build["limitations"] =
        json!(["PROBES_NOT_RECORDED", "NOT_SANDBOXED", "NOT_EXECUTED_ON_GPU", "P2P_NOT_EXECUTED"]);
    let run = &mut value["predicate"]["run"];
    run["sandbox"] = json!({"mode": "auto", "entered": false, "refused_step": "id-map"});
    let limits = json!({"cpu_affinity": [0, 1], "nice": 19, "jobs": 2, "threads": 1, "address_space_bytes": 51539607552_u64});
    let inherited = json!({"core_bytes": 0, "cpu_s": 1, "data_bytes": 2, "file_size_bytes": 3, "locked_memory_bytes": 4,
        "open_files": 5, "processes": 6, "stack_bytes": 7});
    let applied = json!({"cpu_affinity": [0, 1], "nice": 19, "address_space_bytes": 51539607552_u64, "inherited": inherited});
    run["limits"] = json!({"requested": limits, "applied": applied});
    run["attempts"] = json!([{"file": "logs/attempt-1.log", "sha256": sha256, "size_bytes": 17, "exit": 4}]);
    value
}

#[test]
fn equal_builds_differ_in_the_run_alone() {
    let fixture = Fixture::new();
    let a: RuntimeBuild = json::read_record(&fixture.bytes()).unwrap();
    let mut b = a.clone();
    b.predicate.run.jobs = 1;
    b.predicate.run.logs.clear();
    assert_eq!(differences(&a, &b), Vec::<String>::new());
    b.predicate.build.units[1].size_bytes += 1;
    b.predicate.build.trees[2].base = None;
    b.predicate.build.modules.pop();
    b.subject[0].digest.sha256 = requal::Digest::of(b"other");
    let expected = [
        "/predicate/build/modules/2",
        "/predicate/build/trees/2/base",
        "/predicate/build/units/1/size_bytes",
        "/subject/0/digest/sha256",
    ];
    assert_eq!(differences(&a, &b), expected);
}
