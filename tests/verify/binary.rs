//! The binary `requal verify`: usage, odd inputs and output forms.

use std::process::Output;

use crate::fixture::{Fixture, put};
use requal::json;
use serde_json::Value;

#[expect(clippy::disallowed_methods, reason = "the binary under test is started here")]
fn requal(args: &[&str]) -> Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_requal")).args(args).output().unwrap()
}

fn code(args: &[&str]) -> i32 {
    requal(args).status.code().unwrap()
}

#[test]
fn the_report_as_text_and_as_json_is_one_value() {
    let fixture = Fixture::new();
    let (receipts, scratch) = (fixture.receipts(), fixture.scratch.clone());
    let text = requal(&["verify", receipts.as_str(), "--tree", scratch.as_str(), "--level", "2"]);
    assert_eq!(text.status.code(), Some(0), "{text:?}");
    insta::assert_snapshot!(String::from_utf8(text.stdout).unwrap());
    let output = requal(&["verify", receipts.as_str(), "--tree", scratch.as_str(), "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["verdict"]["REACHED"], "HASHES-VERIFIED");
    assert_eq!((report["exit"].as_u64(), report["counts"]["mismatch"].as_u64()), (Some(0), Some(0)));
}

#[test]
fn a_rejection_says_where_why_and_what_next() {
    let mut fixture = Fixture::new();
    fixture.tamper(|v| v["predicate"]["run"]["finished_on"] = "2025-01-31T11:59:59Z".into());
    let output = requal(&["verify", fixture.receipts().as_str()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    insta::assert_snapshot!(
        text.lines().skip_while(|l| !l.contains("MISMATCH")).take(6).collect::<Vec<_>>().join("\n")
    );
    assert!(text.contains("REJECTED: "), "{text}");
}

#[test]
fn t096_nothing_to_verify() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for args in
        [&["verify", path][..], &["verify", path, "--level", "0"], &["verify", path, "--format", "json"]]
    {
        assert_eq!(code(args), 3, "{args:?}");
    }
    put(folder.path().join("notes.txt").to_str().unwrap().into(), b"no receipt");
    assert_eq!(code(&["verify", path]), 3);
}

#[test]
fn t097_usage_is_never_success() {
    let fixture = Fixture::new();
    let receipts = fixture.receipts();
    let receipts = receipts.as_str();
    for args in [
        &["verify", receipts, "--level", "2"][..],
        &["verify", receipts, "--level", "4"],
        &["verify", receipts, "--level", "5"],
        &["verify", receipts, "--level", "2", "--wheelhouse", receipts],
        &["verify", receipts, "--unknown"],
        &["verify"],
        &["verify", "/no/such/folder"],
        &["verify", receipts, "--tree", "/no/such/folder"],
        &[],
    ] {
        assert_eq!(code(args), 2, "{args:?}");
    }
    let output = requal(&["verify", receipts, "--level", "2", "--format", "json"]);
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(error["error"]["code"], "E-USAGE-EVIDENCE");
}

#[test]
fn t099_links_and_devices_are_not_receipts() {
    use std::os::unix::fs::symlink;
    let fixture = Fixture::new();
    let receipt = fixture.receipts().join("runtime-build.json");
    let kept = fixture.scratch.join("kept.json");
    fs_err::rename(&receipt, &kept).unwrap();
    for target in [kept.as_str(), "/dev/zero", "/dev/null", "/no/such/file"] {
        symlink(target, &receipt).unwrap();
        let output = requal(&["verify", fixture.receipts().as_str()]);
        assert_eq!(output.status.code(), Some(2), "{target}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("E-INPUT-TYPE"), "{target}");
        fs_err::remove_file(&receipt).unwrap();
    }
    let socket = std::os::unix::net::UnixListener::bind(&receipt).unwrap();
    assert_eq!(code(&["verify", fixture.receipts().as_str()]), 2);
    drop(socket);
    fs_err::remove_file(&receipt).unwrap();
    let large = fs_err::OpenOptions::new().write(true).create_new(true).open(receipt.as_std_path()).unwrap();
    large.set_len(json::LONGEST_BYTES as u64 + 1).unwrap();
    let output = requal(&["verify", fixture.receipts().as_str()]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("E-INPUT-SIZE"));
    assert_eq!(code(&["verify", "/dev/null"]), 2);
    let link = fixture.scratch.join("link");
    symlink(fixture.receipts(), &link).unwrap();
    assert_eq!(code(&["verify", link.as_str()]), 2);
}

#[test]
fn a_receipt_without_reader_keeps_level_1_from_being_reached() {
    let fixture = Fixture::new();
    put(&fixture.receipts().join("full-worker.json"), b"{}\n");
    let receipts = fixture.receipts();
    assert_eq!(code(&["verify", receipts.as_str()]), 0);
    assert_eq!(code(&["verify", receipts.as_str(), "--level", "1"]), 3);
    let output = requal(&["verify", receipts.as_str()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("E-RECEIPT-UNKNOWN at full-worker.json") && text.contains("WELL-FORMED: "),
        "{text}"
    );
}
