//! Tamperings that keep every digest honest: only what the bytes hold, or what the manifest demands, shows them.

use requal::Digest;
use requal::verify::State;
use serde_json::{Value, json};

use crate::elf;
use crate::fixture::{Fixture, put};

fn build(value: &mut Value) -> &mut Value {
    &mut value["predicate"]["build"]
}

/// Codes and pointers of what is not as it should be at level 2.
fn found(fixture: &Fixture) -> Vec<(&'static str, String)> {
    let open = fixture.open(2);
    open.into_iter()
        .map(|check| (check.code.unwrap(), check.pointer.replace("runtime-build.json#", "")))
        .collect()
}

/// Puts `bytes` in the place of stock's `a.cu.o` and refreshes its digest and size.
fn with_object(bytes: &[u8]) -> Fixture {
    let mut fixture = Fixture::new();
    put(&fixture.scratch.join("build/stock/a.cu.o"), bytes);
    fixture.tamper(|v| {
        build(v)["units"][0]["object_sha256"] = json!(Digest::of(bytes));
        build(v)["units"][0]["size_bytes"] = json!(bytes.len());
    });
    fixture
}

#[test]
fn t050_another_trees_object_under_an_honest_digest() {
    let fixture = with_object(elf::object("facc", "a.cu"));
    assert_eq!(found(&fixture), [("E-DEVICE-CODE", "/predicate/build/units/0/device_code_sha256".into())]);
}

#[test]
fn an_object_for_another_target_without_device_code_or_of_no_known_form() {
    for (bytes, code) in [
        (elf::object_for_another_target(), "E-OBJECT-TARGETS"),
        (elf::object("stock", "b.cpp"), "E-OBJECT-TARGETS"),
        (elf::module("stock"), "E-OBJECT-FORMAT"),
        (b"no object", "E-OBJECT-FORMAT"),
    ] {
        assert_eq!(found(&with_object(bytes)), [(code, "/predicate/build/units/0".into())]);
    }
}

#[test]
fn another_module_under_an_honest_digest() {
    let mut fixture = Fixture::new();
    let bytes = elf::module("facc");
    put(&fixture.scratch.join("modules/stock.so"), bytes);
    fixture.tamper(|v| {
        v["subject"][0]["digest"]["sha256"] = json!(Digest::of(bytes));
        build(v)["modules"][0]["sha256"] = json!(Digest::of(bytes));
        build(v)["modules"][0]["size_bytes"] = json!(bytes.len());
    });
    assert_eq!(found(&fixture), [("E-DEVICE-CODE", "/predicate/build/modules/0/device_code_sha256".into())]);
}

/// Changes the manifest beside the receipt and refreshes its digest.
fn with_manifest(change: impl Fn(&str) -> String) -> Fixture {
    let mut fixture = Fixture::new();
    let path = fixture.receipts().join("runtime.toml");
    let before = fs_err::read_to_string(&path).unwrap();
    let text = change(&before);
    assert_ne!(text, before);
    put(&path, text.as_bytes());
    fixture.tamper(|v| build(v)["manifest"]["sha256"] = json!(Digest::of(text.as_bytes())));
    fixture
}

#[test]
fn t041_a_manifest_that_names_two_modules_alike() {
    let fixture = with_manifest(|text| text.replacen("NAME = \"facc\"", "NAME = \"stock\"", 1));
    assert_eq!(found(&fixture), [("E-MANIFEST", "/predicate/build/manifest".into())]);
    let verdict = fixture.verdict(1).unwrap();
    let not_run: Vec<_> = verdict
        .checks()
        .iter()
        .filter(|check| check.state == State::NotRun && check.code == Some("E-EVIDENCE-NONE"))
        .map(|check| check.id)
        .collect();
    assert!(not_run.starts_with(&["declared", "derived-commands"]), "{not_run:?}");
}

#[test]
fn t040_a_manifest_with_another_flag_tree_or_module() {
    type Change = fn(&str) -> String;
    let cases: [(Change, &str, &str); 5] = [
        (|text| text.replacen("-O3", "-O2", 1), "E-ARGV-DERIVED", "/predicate/build/units/0/argv/11"),
        (
            |text| text.replacen("overlay = \"kernels/f\"\n", "", 1),
            "E-TREE-SET",
            "/predicate/build/trees/1/name",
        ),
        (
            |text| text.replacen("\"a.cu\", \"b.cpp\"", "\"*.cu\"", 1),
            "E-UNIT-SET",
            "/predicate/build/units/1/source",
        ),
        (
            |text| text.replacen("\"a.cu\", \"b.cpp\"", "\"z.cu\"", 1),
            "E-PLAN-UNITS",
            "/predicate/build/modules/0",
        ),
        (
            |text| text.replacen("[[module]]\nname = \"p2p\"", "[[module]]\nname = \"exchange\"", 1),
            "E-MODULE-SET",
            "/predicate/build/modules/2/name",
        ),
    ];
    for (change, code, pointer) in cases {
        let found = found(&with_manifest(change));
        assert!(found.contains(&(code, pointer.to_owned())), "{code} at {pointer} is not in {found:?}");
    }
}

#[test]
fn t045_a_file_of_the_toolchain_that_no_wheel_holds() {
    let mut fixture = Fixture::new();
    put(&fixture.scratch.join("toolchain/bin/nvcc"), b"NVCC");
    fixture.tamper(|v| {
        build(v)["toolchain"]["files"][0]["sha256"] = json!(Digest::of(b"NVCC"));
        let files = serde_json::from_value(build(v)["toolchain"]["files"].clone()).unwrap();
        let digest = json!(requal::tree::Tree::new(files).digest());
        build(v)["toolchain"]["tree_sha256"] = digest.clone();
        build(v)["wheels"][0]["tree_sha256"] = digest;
    });
    assert_eq!(
        found(&fixture),
        [
            ("E-TOOLCHAIN-UNION", "/predicate/build/toolchain/files/0".into()),
            ("E-TREE-DIGEST", "/predicate/build/wheels/0/tree_sha256".into()),
        ]
    );
}

#[test]
fn a_lost_link_and_a_lost_manifest_are_no_mismatch() {
    let fixture = Fixture::new();
    fs_err::remove_file(fixture.scratch.join("toolchain/lib/libcudart.so")).unwrap();
    assert_eq!(found(&fixture), [("E-EVIDENCE-ABSENT", "/predicate/build/toolchain/links/0".into())]);
    let fixture = Fixture::new();
    fs_err::remove_file(fixture.receipts().join("runtime.toml")).unwrap();
    assert_eq!(found(&fixture), [("E-EVIDENCE-ABSENT", "/predicate/build/manifest/sha256".into())]);
    assert_eq!(fixture.verdict(2).unwrap().exit(), requal::Exit::CouldNotJudge);
}
