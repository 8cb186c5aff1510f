//! Verification of the build receipt: one tampering a test row, beside an untampered twin that passes.

use std::collections::BTreeMap;

use crate::edit;
use crate::fixture::{Fixture, put};
use requal::verify::{Level, State, Word};
use requal::{Digest, Exit};
use serde_json::{Value, json};

/// A published or own case of tests/cases/runtime-build.toml.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    level: usize,
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    remove: Vec<String>,
    reverse: Option<String>,
    code: String,
    at: String,
}

impl Case {
    fn apply(&self, receipt: &mut Value) {
        edit::apply(receipt, &self.set, &self.remove, self.reverse.as_deref());
    }
}

#[test]
fn every_tampering_with_the_meaning_is_rejected_with_its_code_and_pointer() {
    let cases: BTreeMap<String, Vec<Case>> =
        toml::from_str(include_str!("../cases/runtime-build.toml")).unwrap();
    for case in &cases["case"] {
        let mut fixture = Fixture::new();
        assert_eq!(
            fixture.verdict(case.level).unwrap().exit(),
            Exit::Success,
            "{}: the untampered twin",
            case.id
        );
        let before = fixture.value.clone();
        fixture.tamper(|receipt| case.apply(receipt));
        assert_ne!(fixture.value, before, "{}: the case changes something", case.id);
        let open = fixture.open(case.level);
        let found: Vec<_> = open.iter().map(|check| (check.code.unwrap(), check.pointer.as_str())).collect();
        let pointer = format!("runtime-build.json#{}", case.at);
        assert!(
            found.contains(&(&case.code, &pointer)),
            "{}: {} at {pointer} is not in {found:#?}",
            case.id,
            case.code
        );
        assert_eq!(fixture.verdict(case.level).unwrap().word(), Word::Rejected, "{}", case.id);
        assert_eq!(fixture.verdict(case.level).unwrap().exit(), Exit::Refused, "{}", case.id);
    }
}

fn build(value: &mut Value) -> &mut Value {
    &mut value["predicate"]["build"]
}

#[test]
fn an_untampered_build_reaches_level_2() {
    let fixture = Fixture::new();
    for level in 0..=2 {
        assert_eq!(fixture.open(level), vec![]);
    }
    assert_eq!(fixture.verdict(2).unwrap().word(), Word::Reached(Level::HashesVerified));
    let levels_above = fixture.verdict(3).unwrap();
    assert_eq!((levels_above.exit(), levels_above.word()), (Exit::CouldNotJudge, Word::Inconclusive));
}

/// Bytes that are not canonical: published as they are, not written again.
#[test]
fn encodings_of_the_same_receipt() {
    let text = String::from_utf8(Fixture::new().bytes()).unwrap();
    let swapped = text.replacen("\"jobs\": 2,\n", "\"jobs\": 2,\n      \"jobs\": 190,\n", 1);
    let escaped = text.replacen("\"marker\": \"stock\"", "\"marker\": \"\\ud800\"", 1);
    let reordered = text.replacen(
        "\"name\": \"requal\",\n        \"version\": \"0.1.0\"",
        "\"version\": \"0.1.0\",\n        \"name\": \"requal\"",
        1,
    );
    let number = |new: &str| text.replacen("\"registers\": 32", &format!("\"registers\": {new}"), 1);
    let cases = [
        ("t013", swapped, "E-JSON-DUPKEY"),
        ("t015 fraction", number("82.0"), "E-JSON-NUMBER"),
        ("t015 exponent", number("8.2e1"), "E-JSON-NUMBER"),
        ("t015 zero", number("-0"), "E-JSON-NUMBER"),
        ("t015 large", number("9007199254740993"), "E-JSON-NUMBER"),
        ("t016 spaces", format!("{text} "), "E-JSON-NOTCANONICAL"),
        ("t016 order", reordered, "E-JSON-NOTCANONICAL"),
        ("t017 mark", format!("\u{feff}{text}"), "E-JSON-ENCODING"),
        ("t017 lines", text.replace('\n', "\r\n"), "E-JSON-ENCODING"),
        ("t017 surrogate", escaped, "E-JSON-ENCODING"),
    ];
    for (id, tampered, code) in cases {
        assert_ne!(tampered, text, "{id} changes something");
        let fixture = Fixture::new();
        put(&fixture.receipts().join("runtime-build.json"), tampered.as_bytes());
        assert_eq!(fixture.open(0)[0].code, Some(code), "{id}");
        assert_eq!(fixture.verdict(0).unwrap().exit(), Exit::Refused, "{id}");
    }
}

#[test]
fn hashes_against_a_scratch() {
    let rows: &[(&str, &str, &[u8], &str, &str)] = &[
        (
            "t073 toolchain",
            "toolchain/include/crt.h",
            b"planted",
            "E-TREE-EXTRA",
            "/predicate/build/toolchain/files",
        ),
        ("t073 tree", "trees/stock/extra.h", b"planted", "E-TREE-EXTRA", "/predicate/build/trees/0/files"),
        (
            "wheel",
            "wheels/tools-1.0-py3-none-any.whl",
            b"A wheel",
            "E-HASH-WHEEL",
            "/predicate/build/wheels/0",
        ),
        (
            "toolchain",
            "toolchain/bin/nvcc",
            b"NVCC",
            "E-HASH-TOOLCHAIN",
            "/predicate/build/toolchain/files/0",
        ),
        ("tree", "trees/facc/a.cu", b"longer", "E-HASH-TREE", "/predicate/build/trees/2/files/0"),
        (
            "object",
            "build/p2p/p.cu.o",
            b"object of p.cu in P2P",
            "E-HASH-OBJECT",
            "/predicate/build/units/2/object_sha256",
        ),
        ("module", "modules/facc.so", b"MODULE facc", "E-HASH-MODULE", "/predicate/build/modules/1/sha256"),
        ("log", "receipts/logs/build.log", b"all went wrong", "E-HASH-LOG", "/predicate/run/logs/0"),
        ("lock", "receipts/toolchain.lock", b"version = 1", "E-HASH-LOCK", "/predicate/build/lock/sha256"),
        (
            "manifest",
            "receipts/runtime.toml",
            b"version = 2\n",
            "E-HASH-LOCK",
            "/predicate/build/manifest/sha256",
        ),
    ];
    for (id, file, bytes, code, pointer) in rows {
        let fixture = Fixture::new();
        put(&fixture.scratch.join(file), bytes);
        let found: Vec<_> = fixture.open(2).into_iter().map(|c| (c.code.unwrap(), c.pointer)).collect();
        assert_eq!(found, [(*code, format!("runtime-build.json#{pointer}"))], "{id}");
        assert_eq!(fixture.verdict(2).unwrap().exit(), Exit::Refused, "{id}");
        assert_eq!(fixture.verdict(1).unwrap().exit() == Exit::Refused, *code == "E-HASH-LOCK", "{id}");
    }
}

#[test]
fn modes_links_and_lost_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::new();
    let nvcc = fixture.scratch.join("toolchain/bin/nvcc");
    fs_err::set_permissions(&nvcc, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(fixture.open(2)[0].code, Some("E-TREE-MODE"));

    let fixture = Fixture::new();
    fs_err::remove_file(fixture.scratch.join("toolchain/lib/libcudart.so")).unwrap();
    std::os::unix::fs::symlink("../bin/nvcc", fixture.scratch.join("toolchain/lib/libcudart.so")).unwrap();
    assert_eq!(fixture.open(2)[0].code, Some("E-TREE-EXTRA"));

    let fixture = Fixture::new();
    fs_err::remove_file(fixture.scratch.join("modules/p2p.so")).unwrap();
    let open = fixture.open(2);
    assert_eq!(
        (open[0].code, open[0].state, open.len()),
        (Some("E-EVIDENCE-ABSENT"), State::Unverifiable, 1)
    );
    assert_eq!(fixture.verdict(2).unwrap().exit(), Exit::CouldNotJudge);
}

#[test]
fn t036_a_wheel_that_the_lock_lacks_and_a_package_that_no_wheel_fills() {
    let mut fixture = Fixture::new();
    let lock = fs_err::read_to_string(fixture.receipts().join("toolchain.lock")).unwrap();
    let more = lock.clone() + &lock.split_once("\n\n").unwrap().1.replace("tools", "utils");
    put(&fixture.receipts().join("toolchain.lock"), more.as_bytes());
    fixture.tamper(|v| build(v)["lock"]["sha256"] = json!(Digest::of(more.as_bytes())));
    assert_eq!(fixture.open(1)[0].code, Some("E-LOCK-BIJECTION"));

    let mut fixture = Fixture::new();
    fixture.tamper(|v| build(v)["wheels"][0]["version"] = json!("1.1"));
    assert_eq!(fixture.open(1)[0].code, Some("E-LOCK-BIJECTION"));
    assert_eq!(fixture.verdict(1).unwrap().exit(), Exit::Refused);
}

#[test]
fn another_system_is_no_lie() {
    let system = |sha256: Digest, size_bytes: u64| {
        let mut fixture = Fixture::new();
        fixture.tamper(|v| {
            let program = json!({"name": "env", "path": "/usr/bin/env", "sha256": sha256});
            build(v)["host_compiler"]["programs"] = json!([program]);
            let rows = build(v)["inputs"].as_array_mut().unwrap();
            rows.push(
                json!({"root": "system", "path": "usr/bin/env", "sha256": sha256, "size_bytes": size_bytes}),
            );
            let last = rows.len() - 1;
            build(v)["units"][0]["inputs"].as_array_mut().unwrap().push(json!(last));
        });
        fixture
    };
    let bytes = fs_err::read("/usr/bin/env").unwrap();
    let here = system(Digest::of(&bytes), bytes.len() as u64);
    assert_eq!(here.verdict(2).unwrap().exit(), Exit::Success);
    let elsewhere = system(Digest::of(b"another env"), bytes.len() as u64);
    assert!(elsewhere.open(2).iter().all(|check| check.code == Some("E-SYSTEM-OTHER")));
    assert_eq!(elsewhere.verdict(2).unwrap().exit(), Exit::CouldNotJudge);
    assert_eq!(elsewhere.verdict(1).unwrap().exit(), Exit::Success);
}

#[test]
fn a_reused_unit_needs_its_certificate() {
    let mut fixture = Fixture::new();
    fixture.tamper(|v| {
        build(v)["units"][2]["decision"] = json!("reused");
        build(v)["units"][2]["reason"] = json!("CLOSURE_EQUAL");
    });
    assert_eq!(fixture.open(1)[0].code, Some("E-REUSE-CERTIFICATE"));
    assert_eq!(fixture.verdict(1).unwrap().exit(), Exit::CouldNotJudge);
}

#[test]
fn the_page_must_be_the_receipts_own() {
    let fixture = Fixture::new();
    let receipt = requal::json::read_record(&fixture.bytes()).unwrap();
    let page = requal::runtime_md::render(&receipt);
    insta::assert_snapshot!(page);
    let path = fixture.receipts().join("RUNTIME.md");
    put(&path, page.as_bytes());
    assert_eq!(fixture.verdict(1).unwrap().exit(), Exit::Success);
    put(&path, page.replace("sm_86", "sm_90").as_bytes());
    assert_eq!(fixture.open(1)[0].code, Some("E-RUNTIME-MD"));
}

#[test]
fn another_version_is_not_judged() {
    let mut fixture = Fixture::new();
    fixture.tamper(|v| v["predicateType"] = json!("urn:requal:runtime-build:v2"));
    assert_eq!(fixture.open(0)[0].code, Some("E-TYPE-PREDICATE"));
    assert_eq!(fixture.verdict(0).unwrap().exit(), Exit::CouldNotJudge);
}

/// A receipt as large as one of the real trees: 190 units that read 1,350 files each.
#[test]
fn a_quarter_of_a_million_inputs_stay_within_the_limits() {
    let mut fixture = Fixture::of(&["p2p"]);
    fixture.tamper(|v| {
        let rows: Vec<Value> = (0..1350)
            .map(|i| json!({"root": "system", "path": format!("usr/include/{i:04}.h"), "sha256": Digest::of(b"h"), "size_bytes": 1}))
            .collect();
        build(v)["inputs"].as_array_mut().unwrap().extend(rows);
        let all: Vec<u32> = (0..1352).collect();
        build(v)["units"][0]["inputs"] = json!(all);
        let unit = build(v)["units"][0].clone();
        build(v)["units"] = vec![unit; 190].into();
    });
    let codes: std::collections::BTreeSet<_> =
        fixture.open(1).iter().filter_map(|check| check.code).collect();
    // The copies are no units of their own; what is shown here is that the reader takes such a receipt.
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), ["E-ORDER", "E-UNIT-OBJECT"]);
    assert!(fixture.bytes().len() < requal::json::LONGEST_BYTES / 4);
}
