//! RECORD and the wheel's files must match both ways, row by row.

mod kit;

use kit::{Entry, INFO, demo, pin, row, with_record, zip};
use requal::Failure;
use requal::wheel::judge;

/// The refusal of a wheel that has the hash of its pin.
fn refusal(bytes: Vec<u8>) -> Box<Failure> {
    let package = pin("demo", "1.0", &bytes);
    judge(bytes, &package).expect_err("must be refused")
}

/// Two files of the sample, one of them a tool.
fn sample() -> Vec<Entry> {
    demo(&[
        Entry::file("lib/x.h", b"int x;\n"),
        Entry::file("bin/tool", b"#!/bin/sh\n").mode(0o100_744).stored(),
    ])
}

/// Each faulty wheel is refused with its code.
fn all(cases: Vec<(&str, &str, Vec<u8>)>) {
    for (label, code, bytes) in cases {
        let failure = refusal(bytes);
        assert_eq!(failure.code, code, "{label}: {failure}");
        assert!(failure.what.starts_with("demo-1.0-py3-none-any.whl: "), "{label}: {failure}");
    }
}

#[test]
fn the_untampered_twin_passes() {
    let bytes = zip(&sample()).bytes;
    let package = pin("demo", "1.0", &bytes);
    assert_eq!(judge(bytes, &package).unwrap().tree.files.len(), 5);
}

/// The sample with an edited RECORD.
fn record(edit: impl Fn(&str) -> String) -> Vec<u8> {
    zip(&with_record(sample(), edit)).bytes
}

#[test]
fn t070_f59_record_and_files_must_match_both_ways() {
    let own = format!("{INFO}/RECORD,,\n");
    let tool = row("bin/tool", b"#!/bin/sh\n");
    all(vec![
        ("file without row", "E-RECORD-SET", record(|text| text.replace(&tool, ""))),
        ("row without file", "E-RECORD-SET", record(|text| text.to_owned() + &row("ghost.h", b""))),
        ("no own row", "E-RECORD-SET", record(|text| text.replace(&own, ""))),
        ("row twice", "E-RECORD-SET", record(|text| text.to_owned() + &tool)),
        ("path in another spelling", "E-RECORD-SET", record(|text| text.replace("bin/tool", "./bin/tool"))),
        ("empty", "E-RECORD-SET", record(|_| String::new())),
        ("other package's folder", "E-RECORD-SET", {
            zip(&demo(&[Entry::file("other-1.0.dist-info/METADATA", b"")])).bytes
        }),
        ("no RECORD", "E-RECORD-SET", zip(&sample()[..4]).bytes),
    ]);
    let failure = refusal(record(|text| text.replace(&tool, "") + &row("ghost.h", b"")));
    assert_eq!(failure.related.len(), 1, "both problems at once: {failure}");
}

#[test]
fn f59_a_wrong_row_is_named_with_its_line() {
    for (code, from, to) in [
        ("E-RECORD-SIZE", ",10\n", ",11\n"),
        ("E-RECORD-FORMAT", ",10\n", ",10,a,b,c\n"),
        ("E-RECORD-FORMAT", ",10\n", "\n"),
        ("E-RECORD-FORMAT", ",10\n", ",+10\n"),
        ("E-RECORD-FORMAT", ",10\n", ",\n"),
        ("E-RECORD-FORMAT", "RECORD,,\n", "RECORD,,0\n"),
    ] {
        let failure = refusal(record(|text| text.replacen(from, to, 1)));
        assert_eq!(failure.code, code, "{to:?}: {failure}");
        let line = if from.contains("RECORD") { "RECORD:5:" } else { "RECORD:2:" };
        assert!(failure.what.contains(line), "{failure}");
    }
}

#[test]
fn t071_hashes_have_one_form_and_are_right() {
    let right = row("bin/tool", b"#!/bin/sh\n");
    let hex = format!("bin/tool,sha256={},10\n", requal::Digest::of(b"#!/bin/sh\n"));
    for wrong in [
        row("bin/tool", b"#!/bin/zz\n"),
        hex,
        "bin/tool,md5=TSIPXnYEpgXQ25u5kkAIxA,10\n".to_owned(),
        right.replace("=", "=="),
        right.replace(",10", "=,10"),
        right.replace("sha256", "SHA256"),
        "bin/tool,,10\n".to_owned(),
    ] {
        let failure = refusal(record(|text| text.replace(&right, &wrong)));
        assert_eq!(failure.code, "E-RECORD-HASH", "{wrong}: {failure}");
        assert!(failure.what.contains("bin/tool"), "{failure}");
    }
}
