//! What a second run finds good, what it makes anew, and that it decides by content.

use camino::Utf8Path;
use serde_json::Value;

use crate::kit::build::{Fixture, HEADER, MANIFEST, files};
use crate::kit::{copy, file, script};

/// The two units of tree `one`.
const UNITS: [&str; 2] = ["units/module.cu.o", "units/scale.cu.o"];

/// Runs a script in `folder`.
fn sh(folder: &Utf8Path, text: &str) {
    let mut call = script(text);
    folder.clone_into(&mut call.cwd);
    let ended = call.run().unwrap();
    assert_eq!(ended.code, 0, "{text}: {}", ended.output);
}

/// A tree that is built, and what stands there.
fn built() -> (Fixture, std::collections::BTreeMap<String, requal::Digest>) {
    let fixture = Fixture::new(&["one"]);
    let digests = fixture.build(&[]);
    (fixture, digests)
}

#[test]
fn f51_a_second_run_makes_nothing_and_touches_nothing() {
    let fixture = Fixture::new(&["one", "over", "three"]);
    let first = fixture.run(&[]);
    assert!(first.made().values().all(|made| *made == (2, true)));
    let before = fixture.untouched();
    let receipt = fixture.receipt();
    let second = fixture.run(&["--jobs", "1"]);
    assert!(second.made().values().all(|made| *made == (0, false)), "{:#}", second.said);
    assert_eq!(fixture.untouched(), before);
    assert_eq!(requal::receipt::differences(&receipt, &fixture.receipt()), Vec::<String>::new());
    // No output and no dependency file is an input.
    for unit in UNITS {
        let rule = fs_err::read_to_string(fixture.built(&format!("one/dep/{unit}.d"))).unwrap();
        let (target, inputs) = rule.split_once(':').unwrap();
        assert_eq!(target, unit);
        assert!(!inputs.contains("/requal/build/"), "{rule}");
    }
}

#[test]
fn f11_a_deleted_library_is_restored_and_nothing_else_is_touched() {
    let (fixture, _) = built();
    for path in ["lib/libcudart.so.13", "bin/ptxas", "nvvm/bin/cicc"] {
        let before = fixture.untouched();
        fs_err::remove_file(fixture.toolkit(path)).unwrap();
        assert_eq!(fixture.run(&[]).made()["one"], (0, false));
        let after = fixture.untouched();
        let changed: Vec<_> = before.iter().filter(|(name, state)| after.get(*name) != Some(state)).collect();
        let name = format!("toolchain/nvidia/cu13/{path}");
        assert_eq!(changed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [name.as_str()]);
        // Only its inode: the mtime is the one of its path.
        assert_eq!(before[&name].1, after[&name].1);
        assert_eq!(before.len(), after.len());
    }
}

#[test]
fn f53_f37_what_a_tree_holds_decides_and_no_date() {
    let (fixture, digests) = built();
    let header = fixture.repository.join(HEADER);
    sh(&fixture.root, &format!("touch -d '2 days' {header}"));
    assert_eq!(fixture.run(&[]).made()["one"], (0, false), "a date ahead is no change");

    sh(&fixture.root, &format!("touch -r {header} date"));
    fixture.edit(HEADER, "2.0f", "4.0f");
    sh(&fixture.root, &format!("touch -r date {header}"));
    assert_eq!(fixture.run(&[]).made()["one"], (2, true), "other bytes under the old date");
    let scale = "build/one/units/scale.cu.o";
    let edited = fixture.digests();
    assert_ne!(edited[scale], digests[scale]);

    // Found before include/one/factor.h, because it lies beside the source.
    let shadow = fixture.repository.join("kernels/one/units/one/factor.h");
    file(&shadow, "#define FACTOR 5.0f\n", 0o644);
    assert_eq!(fixture.run(&[]).made()["one"], (2, true), "a shadowing header");
    assert!(![&digests, &edited].iter().any(|before| before[scale] == fixture.digests()[scale]));
    let rule = fixture.built("one/dep/units/scale.cu.o.d");
    assert!(fs_err::read_to_string(&rule).unwrap().contains("units/one/factor.h"));

    fs_err::remove_file(&shadow).unwrap();
    fixture.edit(HEADER, "4.0f", "2.0f");
    assert_eq!(fixture.run(&[]).made()["one"], (2, true), "a header that is gone");
    assert_eq!(fixture.digests(), digests);
    assert!(!fs_err::read_to_string(&rule).unwrap().contains("units/one/factor.h"));
    assert!(!files(&fixture.scratch.join("trees/one")).iter().any(|path| path == "units/one/factor.h"));
    assert_eq!(fixture.run(&[]).made()["one"], (0, false));

    fixture.edit(MANIFEST, "value = \"-O3\"", "value = \"-O2\"");
    assert_eq!(fixture.run(&[]).made()["one"].0, 2, "another flag");
}

/// What is changed, how, and what is then compiled and linked.
type Case<'a> = (&'static str, &'a dyn Fn(), (u64, bool));

/// Changes in the build folder; each is seen by content, and only what it concerns is made anew.
#[test]
fn f26_f49_what_is_not_what_its_record_says_is_made_anew() {
    let (fixture, digests) = built();
    let build = fixture.built("one");
    let host_header_changed = || {
        let path = build.join("record/units/scale.cu.o.json");
        let mut record: Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
        let files = record["closure"]["files"].as_object_mut().unwrap();
        let (_, header) = files.iter_mut().find(|(at, _)| at.starts_with("system:usr/include")).unwrap();
        header["sha256"] = "0".repeat(64).into();
        file(&path, &record.to_string(), 0o644);
    };
    let cases: [Case<'_>; 8] = [
        ("a flipped byte", &|| flip(&build.join(UNITS[1])), (1, false)),
        (
            "f26: the object of another unit",
            &|| copy(&build.join(UNITS[0]), &build.join(UNITS[1]), "644"),
            (1, false),
        ),
        ("a removed object", &|| fs_err::remove_file(build.join(UNITS[0])).unwrap(), (1, false)),
        ("f49: records of two units swapped", &|| swap(&build, "record/units", ".json"), (2, false)),
        ("f49: dependency files of two units swapped", &|| swap(&build, "dep/units", ".d"), (2, false)),
        ("another host header", &host_header_changed, (1, false)),
        (
            "a record cut short",
            &|| file(&build.join("record/units/module.cu.o.json"), "{\"key\":", 0o644),
            (1, false),
        ),
        ("a flipped byte in the module", &|| flip(&build.join("one.so")), (0, true)),
    ];
    for (name, change, made) in cases {
        change();
        assert_eq!(fixture.run(&[]).made()["one"], made, "{name}");
        assert_eq!(fixture.digests(), digests, "{name}");
    }
}

fn flip(path: &Utf8Path) {
    let mut bytes = fs_err::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    xtask::sys::fs::write(path, &bytes).unwrap();
}

fn swap(build: &Utf8Path, folder: &str, ending: &str) {
    let [a, b] = ["module.cu.o", "scale.cu.o"].map(|name| build.join(folder).join(format!("{name}{ending}")));
    sh(build, &format!("mv {a} kept && mv {b} {a} && mv kept {b}"));
}

#[test]
fn f23_a_module_under_another_ones_name_is_replaced() {
    let fixture = Fixture::new(&["one", "three"]);
    let digests = fixture.build(&[]);
    copy(&fixture.built("three/three.so"), &fixture.scratch.join("modules/one.so"), "644");
    let run = fixture.run(&[]);
    assert_eq!((run.made()["one"], fixture.digests()), ((0, false), digests.clone()), "placed again");
    copy(&fixture.built("three/three.so"), &fixture.built("one/one.so"), "644");
    copy(&fixture.built("three/units/module.cu.o"), &fixture.built("one/units/module.cu.o"), "644");
    let run = fixture.run(&[]);
    assert_eq!((run.made()["one"], run.made()["three"]), ((1, true), (0, false)), "made again");
    assert_eq!(fixture.digests(), digests);
}

#[test]
fn f47_odd_characters_of_a_scratch_are_hidden_by_the_sandbox_or_refused() {
    let mut fixture = Fixture::new(&["one"]);
    let digests = fixture.build(&[]);
    fixture.scratch = fixture.root.join("a b$c#d:e%f");
    for (odd, path) in
        [(" ", "a b"), ("$", "a$b"), ("#", "a#b"), (":", "a:b"), ("%", "a%b"), ("\\\\", "a\\b")]
    {
        let scratch = std::mem::replace(&mut fixture.scratch, fixture.root.join(path));
        fixture.run(&["--sandbox", "off"]).refused(2, "E-SCRATCH-NAME", &[&format!("holds `{odd}`")]);
        fixture.scratch = scratch;
    }
    assert_eq!(fixture.build(&[]), digests);
    file(&fixture.repository.join("kernels/one/units/a b.h"), "", 0o644);
    fixture.run(&[]).refused(2, "E-TREE-SOURCE", &["units/a b.h"]);
}

#[test]
fn f16_f100_the_job_count_comes_from_the_configuration() {
    let fixture = Fixture::new(&["one"]);
    fixture.edit(MANIFEST, "[[tree]]\n", "[limits]\njobs = 3\nthreads = 1\n\n[[tree]]\n");
    fixture.build(&[]);
    let run = fixture.receipt().predicate.run;
    assert_eq!((run.jobs, run.limits.requested.jobs), (3, Some(3)));
    fixture.build(&["--jobs", "2"]);
    let run = fixture.receipt().predicate.run;
    assert_eq!((run.jobs, run.limits.requested.jobs), (2, Some(2)));
}
