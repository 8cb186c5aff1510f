//! Wheels with every archive and RECORD fault are refused by name; their untampered twins pass.

mod kit;

use kit::{Entry, Zip, demo, pin, row, with_record, zip};
use requal::wheel::{Wheel, judge};
use requal::{Failure, Outcome};

fn judged(bytes: Vec<u8>) -> Outcome<Wheel> {
    let package = pin("demo", "1.0", &bytes);
    judge(bytes, &package)
}

fn refusal(bytes: Vec<u8>) -> Box<Failure> {
    judged(bytes).expect_err("must be refused")
}

/// Two files of the sample, one of them a tool.
fn sample() -> Vec<Entry> {
    demo(&[
        Entry::file("lib/x.h", b"int x;\n".repeat(20).as_slice()),
        Entry::file("bin/tool", b"#!/bin/sh\n").mode(0o100_744).stored(),
    ])
}

/// The sample with one more file called `name`, listed in RECORD.
fn named(name: &[u8]) -> Vec<u8> {
    let mut extra = Entry::file("placeholder", b"planted\n");
    extra.name = name.to_vec();
    zip(&demo(&[Entry::file("lib/x.h", b"int x;\n"), extra])).bytes
}

/// The sample's zip after `edit`.
fn edited(edit: impl Fn(&mut Zip)) -> Vec<u8> {
    let mut zip = zip(&sample());
    edit(&mut zip);
    zip.bytes
}

/// The sample's zip after one entry was changed before writing.
fn changed(index: usize, change: impl Fn(&mut Entry)) -> Vec<u8> {
    let mut entries = sample();
    change(&mut entries[index]);
    zip(&entries).bytes
}

/// Each faulty wheel is refused with its code, and names the file of the wheel.
fn all(cases: Vec<(&str, &str, Vec<u8>)>) {
    for (label, code, bytes) in cases {
        let failure = refusal(bytes);
        assert_eq!(failure.code, code, "{label}: {failure}");
        assert!(failure.what.starts_with("demo-1.0-py3-none-any.whl: "), "{label}: {failure}");
        assert_eq!(failure.exit.code(), 1, "{label}");
    }
}

#[test]
fn the_untampered_twin_passes() {
    let mut entries = demo(&[
        Entry::file("lib/x.h", b"int x;\n"),
        Entry::file("bin/tool", b"").mode(0o100_744),
        Entry::file("group.h", b"1").mode(0o100_664),
    ]);
    entries.insert(0, Entry::file("lib/", b"").stored().mode(0o40_755));
    let wheel = judged(zip(&entries).bytes).unwrap();
    let modes: Vec<_> = wheel.tree.files.iter().map(|file| (file.path.as_str(), file.mode)).collect();
    assert_eq!(modes[0], ("bin/tool", 0o755));
    assert_eq!(modes[4], ("group.h", 0o644));
    assert_eq!(wheel.tree.files.len(), 6);
}

#[test]
fn t058_names_that_leave_the_tree_are_errors() {
    for name in ["../../x", "lib/../../x", "..", "lib/.."] {
        assert_eq!(refusal(named(name.as_bytes())).code, "E-ZIP-PATH", "{name}");
    }
}

#[test]
fn t059_odd_names_are_errors() {
    let names: [&[u8]; 17] = [
        b"/etc/x",
        b"C:\\x",
        b"C:/x",
        b"a\\b",
        b"a\0b",
        b"a\x01b",
        b"a\nb",
        b"a\x7fb",
        b"",
        b"a\xffb",
        b"a//b",
        b"./a",
        b"a/./b",
        "a\u{202e}b".as_bytes(),
        "caf\u{e9}".as_bytes(),
        b"LIB/x.h",
        b"lib/X.H",
    ];
    for name in names {
        assert_eq!(refusal(named(name)).code, "E-ZIP-NAME", "{}", name.escape_ascii());
    }
    assert_eq!(refusal(named(&[b'a'; 300])).code, "E-ZIP-NAME");
    // A file that is also a folder.
    assert_eq!(refusal(named(b"lib")).code, "E-ZIP-NAME");
    assert_eq!(refusal(named(b"lib/x.h/y")).code, "E-ZIP-NAME");
    let unicode_path = changed(0, |entry| entry.extra = b"\x75\x70\x09\x00\x01\0\0\0\0evil".to_vec());
    assert_eq!(refusal(unicode_path).code, "E-ZIP-NAME");
}

#[test]
fn t060_links_and_devices_are_errors() {
    let through = |target: &[u8]| {
        zip(&demo(&[Entry::file("include", target).mode(0o120_777), Entry::file("include/x.h", b"1")])).bytes
    };
    for target in [&b"/etc"[..], b"../../.."] {
        assert_eq!(refusal(through(target)).code, "E-ZIP-SYMLINK");
    }
    for kind in [0o20_644, 0o60_644, 0o10_644, 0o140_644, 0o40_755, 0o644] {
        assert_eq!(refusal(changed(0, |entry| entry.mode = kind)).code, "E-ZIP-TYPE", "{kind:o}");
    }
    for mode in [0o104_755, 0o102_755, 0o101_755, 0o100_044] {
        assert_eq!(refusal(changed(0, |entry| entry.mode = mode)).code, "E-ZIP-MODE", "{mode:o}");
    }
    let mut folder = sample();
    folder.push(Entry::file("full/", b"content").mode(0o40_755));
    assert_eq!(refusal(zip(&folder).bytes).code, "E-ZIP-TYPE");
    let dos = edited(|zip| zip.bytes[zip.central[0] + 5] = 0);
    assert_eq!(refusal(dos).code, "E-ZIP-TYPE");
}

#[test]
fn t062_f54_headers_that_disagree_are_errors() {
    for (field, at) in
        [("version", 4), ("method", 8), ("time", 10), ("crc", 14), ("packed", 18), ("size", 22)]
    {
        let failure = refusal(edited(|zip| zip.bytes[zip.local[0] + at] ^= 1));
        assert_eq!(failure.code, "E-ZIP-DIFF", "{field}: {failure}");
        assert!(failure.what.contains("lib/x.h") && failure.expected.is_some(), "{failure}");
    }
    all(vec![
        ("name", "E-ZIP-DIFF", edited(|zip| zip.bytes[zip.local[0] + 30] = b'k')),
        ("length of the name", "E-ZIP-DIFF", edited(|zip| zip.bytes[zip.local[0] + 26] -= 1)),
        ("flags", "E-ZIP-DIFF", edited(|zip| zip.bytes[zip.local[0] + 6] ^= 8)),
        (
            "both CRCs",
            "E-ZIP-DATA",
            edited(|zip| {
                let (local, central) = (zip.local[0] + 14, zip.central[0] + 16);
                zip.bytes[local] ^= 1;
                zip.bytes[central] ^= 1;
            }),
        ),
        (
            "both sizes",
            "E-RECORD-SIZE",
            edited(|zip| {
                let (local, central) = (zip.local[0] + 22, zip.central[0] + 24);
                zip.bytes[local] ^= 1;
                zip.bytes[central] ^= 1;
            }),
        ),
    ]);
}

#[test]
fn t063_f54_an_entry_in_one_list_only_is_an_error() {
    let mut hidden = sample();
    hidden.insert(1, Entry { listed: false, ..Entry::file("hidden.h", b"1") });
    let last = [sample(), vec![Entry { listed: false, ..Entry::file("hidden.h", b"1") }]].concat();
    all(vec![
        ("local only", "E-ZIP-DIFF", zip(&hidden).bytes),
        ("local only, last", "E-ZIP-DIFF", zip(&last).bytes),
        ("central only", "E-ZIP-DIFF", edited(|zip| zip.bytes[zip.local[1]] = b'X')),
        (
            "count",
            "E-ZIP-FRAME",
            edited(|zip| {
                for at in [8, 10] {
                    zip.bytes[zip.end + at] += 1;
                }
            }),
        ),
    ]);
}

#[test]
fn f54_a_path_twice_is_an_error() {
    let twice = demo(&[Entry::file("x.h", b"1"), Entry::file("x.h", b"2")]);
    let record = with_record(twice, |text| text.replacen(&row("x.h", b"1"), "", 1));
    let failure = refusal(zip(&record).bytes);
    assert_eq!(failure.code, "E-ZIP-DUPLICATE");
    assert!(failure.what.contains("x.h"), "{failure}");
}

#[test]
fn t065_overlapping_entries_are_errors() {
    let reaching = edited(|zip| {
        for at in [zip.local[0] + 18, zip.central[0] + 20] {
            zip.bytes[at] += 1;
        }
    });
    assert_eq!(refusal(reaching).code, "E-ZIP-OVERLAP");
    let into_directory = edited(|zip| {
        for at in [zip.local[4] + 20, zip.central[4] + 22] {
            zip.bytes[at] += 1;
        }
    });
    assert_eq!(refusal(into_directory).code, "E-ZIP-OVERLAP");
    let quoted = {
        // A whole zip entry inside a stored one: both are listed.
        let inner = Entry::file("lib/inner.h", b"1").stored();
        let outer = Entry::file("lib/outer.h", &zip(std::slice::from_ref(&inner)).bytes[..42]).stored();
        let mut whole = zip(&demo(&[outer, inner]));
        let inside = u32::try_from(whole.local[0] + 30 + "lib/outer.h".len()).unwrap();
        let at = whole.central[1] + 42;
        whole.bytes[at..at + 4].copy_from_slice(&inside.to_le_bytes());
        whole.bytes
    };
    assert_eq!(refusal(quoted).code, "E-ZIP-OVERLAP");
}

#[test]
fn t066_f54_anything_around_the_archive_is_an_error() {
    let with_comment = |comment: &[u8]| {
        edited(|zip| {
            zip.bytes[zip.end + 20] = u8::try_from(comment.len()).unwrap();
            zip.bytes.extend(comment);
        })
    };
    all(vec![
        ("prefix", "E-ZIP-FRAME", [b"#!/bin/sh\n".to_vec(), zip(&sample()).bytes].concat()),
        ("trailing", "E-ZIP-FRAME", [zip(&sample()).bytes, vec![0]].concat()),
        ("comment", "E-ZIP-FRAME", with_comment(b"hello")),
        ("zip in comment", "E-ZIP-FRAME", with_comment(&zip(&[]).bytes)),
        ("two ends", "E-ZIP-FRAME", [zip(&sample()).bytes, zip(&[]).bytes].concat()),
        ("end twice", "E-ZIP-FRAME", edited(|zip| zip.bytes.extend_from_within(zip.end..))),
        ("disks", "E-ZIP-FRAME", edited(|zip| zip.bytes[zip.end + 4] = 1)),
        ("zip64", "E-ZIP-FRAME", edited(|zip| zip.bytes[zip.end + 12..zip.end + 20].fill(0xff))),
        ("empty", "E-ZIP-FRAME", vec![]),
        ("short", "E-ZIP-FRAME", zip(&sample()).bytes[..100].to_vec()),
        ("gap", "E-ZIP-FRAME", {
            let whole = zip(&sample());
            let at = whole.central[0];
            let mut bytes = whole.bytes;
            let directory = u32::try_from(at + 3).unwrap().to_le_bytes();
            let end = whole.end;
            bytes[end + 16..end + 20].copy_from_slice(&directory);
            bytes.splice(at..at, [1, 2, 3]);
            bytes
        }),
    ]);
}

#[test]
fn t068_other_methods_and_encryption_are_errors() {
    for method in [1, 12, 14, 93, 99] {
        assert_eq!(refusal(changed(0, |entry| entry.method = method)).code, "E-ZIP-METHOD", "{method}");
    }
    for flags in [1, 0x40, 0x2000, 8, 0x10, 0x8000] {
        assert_eq!(refusal(changed(0, |entry| entry.flags = flags)).code, "E-ZIP-METHOD", "{flags:#x}");
    }
}

#[test]
fn f54_extra_fields_and_entry_comments_are_errors() {
    let zip64 = [&b"\x01\0\x08\0"[..], &[0; 8], b"\x01\0\x08\0", &[0; 8]].concat();
    all(vec![
        ("two zip64 fields", "E-ZIP-EXTRA", changed(0, |entry| entry.extra.clone_from(&zip64))),
        ("a stub", "E-ZIP-EXTRA", changed(0, |entry| entry.extra = vec![1])),
        ("comment", "E-ZIP-EXTRA", changed(0, |entry| entry.comment = b"c".to_vec())),
    ]);
}

#[test]
fn deflate_streams_end_exactly() {
    let stream = |edit: fn(&mut Vec<u8>, usize)| {
        edited(|zip| {
            let data = zip.local[0] + 30 + "lib/x.h".len();
            edit(&mut zip.bytes, data);
        })
    };
    all(vec![
        ("damaged", "E-ZIP-DATA", stream(|bytes, data| bytes[data] = 0xff)),
        ("flipped", "E-ZIP-DATA", stream(|bytes, data| bytes[data + 3] ^= 0x10)),
        (
            "stored under another size",
            "E-ZIP-DIFF",
            edited(|zip| {
                for at in [zip.local[1] + 18, zip.central[1] + 20] {
                    zip.bytes[at] += 1;
                }
            }),
        ),
    ]);
}

#[test]
fn bombs_are_errors_before_anything_is_inflated() {
    let bomb = zip(&demo(&[Entry::file("zeros", &vec![0; 8 << 20])])).bytes;
    assert_eq!(refusal(bomb).code, "E-ZIP-BOMB");
    let claimed = edited(|zip| {
        for at in [zip.local[0] + 22, zip.central[0] + 24] {
            zip.bytes[at..at + 4].copy_from_slice(&0x9000_0000u32.to_le_bytes());
        }
    });
    assert_eq!(refusal(claimed).code, "E-ZIP-BOMB");
}

#[test]
fn t075_f58_the_lock_comes_first() {
    let old = zip(&sample()).bytes;
    let mut other = sample();
    other[0].content = b"int y;\n".repeat(20);
    let repacked = zip(&other).bytes;
    let package = pin("demo", "1.0", &old);
    // (i) repacked with one header changed and the old record: refused by the lock, and with the lock adapted by RECORD.
    if repacked.len() == old.len() {
        assert_eq!(judge(repacked.clone(), &package).unwrap_err().code, "E-HASH-WHEEL");
    } else {
        assert_eq!(judge(repacked.clone(), &package).unwrap_err().code, "E-LOCK-SIZE");
    }
    assert_eq!(refusal(repacked).code, "E-RECORD-HASH");
    // Another version's bytes under the pinned file name; no zip is looked at before the hash.
    let mut garbage = old;
    garbage.fill(0);
    let failure = judge(garbage, &package).unwrap_err();
    assert_eq!(failure.code, "E-HASH-WHEEL");
    assert!(failure.expected.unwrap().contains("toolchain.lock:7"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 2000, ..Default::default() })]

    /// Whatever bytes change, the judge answers; and what it accepts has the files that the wheel had.
    #[test]
    fn a_mutated_wheel_is_judged_without_panic(
        edits in proptest::collection::vec((0usize..4096, proptest::num::u8::ANY, 0u8..4), 1..6)
    ) {
        let mut bytes = zip(&sample()).bytes;
        let whole = judged(bytes.clone()).unwrap();
        for (at, value, kind) in edits {
            let at = at % bytes.len().max(1);
            match kind {
                0 if !bytes.is_empty() => bytes[at] = value,
                1 => bytes.insert(at, value),
                2 if !bytes.is_empty() => { bytes.remove(at); }
                _ => bytes.truncate(bytes.len() - at.min(3)),
            }
        }
        if let Ok(wheel) = judged(bytes) {
            let contents = |wheel: &Wheel| wheel.tree.files.iter().map(|f| (f.path.clone(), f.sha256)).collect::<Vec<_>>();
            proptest::prop_assert_eq!(contents(&wheel), contents(&whole));
        }
    }
}
