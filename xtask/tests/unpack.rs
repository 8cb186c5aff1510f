//! Unpacking: one tree from several wheels, idempotent, strict about what is there already.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod kit;

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use kit::zip::Entry;
use kit::{flip, pinned, plant, scratch};
use requal::Outcome;
use requal::tree::{Link, mtime_s};
use requal::wheel::Pinned;
use xtask::unpack::{Toolchain, toolchain_links, unpack};

const LIB: &str = "nvidia/cu13/lib/libcudart.so.13";

/// Two wheels that share nothing.
fn two() -> Vec<Pinned> {
    vec![
        pinned("one", "1.0", &[Entry::file("nvidia/cu13/bin/tool", b"#!/bin/sh\n").mode(0o100_744)]),
        pinned(
            "two",
            "2.0",
            &[Entry::file(LIB, b"library"), Entry::file("nvidia/cu13/include/x.h", b"int x;\n")],
        ),
    ]
}

fn run(wheels: &[Pinned], root: &Utf8Path) -> Outcome<Toolchain> {
    unpack(wheels, &toolchain_links(), root)
}

/// Type, mode, inode, mtime and content of everything below `root`.
fn snapshot(root: &Utf8Path) -> BTreeMap<String, String> {
    let entries = walkdir::WalkDir::new(root).into_iter().map(|entry| {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        let content = match metadata.is_file() {
            true => requal::Digest::of(&fs_err::read(entry.path()).unwrap()).to_string(),
            false => format!("{:?}", std::fs::read_link(entry.path()).ok()),
        };
        let (mode, inode) = (metadata.mode(), metadata.ino());
        (entry.path().display().to_string(), format!("{mode:o} {inode} {} {content}", metadata.mtime()))
    });
    entries.collect()
}

#[test]
fn a_tree_is_made_once_and_then_only_checked() {
    let (_folder, base) = scratch();
    let root = base.join("deep/toolchain");
    let first = run(&two(), &root).unwrap();
    assert_eq!(first.written.len(), 10, "{:?}", first.written);
    assert_eq!(first.links, toolchain_links());
    assert_eq!(
        std::fs::read_link(root.join("nvidia/cu13/lib/libcudart.so")).unwrap().to_str(),
        Some("libcudart.so.13")
    );
    let tool = fs_err::metadata(root.join("nvidia/cu13/bin/tool")).unwrap();
    assert_eq!((tool.mode() & 0o7777, tool.mtime()), (0o755, mtime_s("nvidia/cu13/bin/tool")));
    assert_eq!(first.owners(LIB).map(|wheel| wheel.name.as_str()).collect::<Vec<_>>(), ["two"]);
    let before = snapshot(&base);
    let second = run(&two(), &root).unwrap();
    assert_eq!((second.written.len(), &second.tree), (0, &first.tree));
    assert_eq!(snapshot(&base), before, "the second run changes nothing, not even an inode or an mtime");
    // The same tree elsewhere, whatever the order of the wheels.
    let mut reversed = two();
    reversed.reverse();
    let elsewhere = run(&reversed, &base.join("t")).unwrap();
    assert_eq!(elsewhere.tree.digest(), first.tree.digest());
    assert!(!base.join(".staging-t").exists());
}

#[test]
fn a_link_is_made_only_for_a_file_that_is_there() {
    let (_folder, base) = scratch();
    let toolchain = run(&two()[..1], &base.join("t")).unwrap();
    assert_eq!(toolchain.links, []);
    let over = vec![Link { path: LIB.into(), target: LIB.rsplit('/').next().unwrap().into() }];
    assert_eq!(unpack(&two(), &over, &base.join("u")).unwrap_err().code, "E-TREE-COLLISION");
}

#[test]
fn f10_t074_two_wheels_may_own_one_path_only_with_equal_bytes() {
    let shared =
        |name: &str, content: &[u8]| pinned(name, "1.0", &[Entry::file("nvidia/cu13/include/x.h", content)]);
    let (_folder, base) = scratch();
    for wheels in [[shared("a", b"1"), shared("b", b"2")], [shared("b", b"2"), shared("a", b"1")]] {
        let failure = run(&wheels, &base.join("t")).unwrap_err();
        assert_eq!(failure.code, "E-TREE-COLLISION");
        for word in ["a and b", "nvidia/cu13/include/x.h"] {
            assert!(failure.what.contains(word), "{failure}");
        }
        assert!(
            failure.expected.as_ref().unwrap().contains(&requal::Digest::of(b"1").to_string()),
            "{failure}"
        );
        assert!(failure.found.as_ref().unwrap().contains(&requal::Digest::of(b"2").to_string()), "{failure}");
        assert_eq!(std::fs::read_dir(&base).unwrap().count(), 0, "nothing is written at all");
    }
    let one = run(&[shared("a", b"1"), shared("b", b"1")], &base.join("t")).unwrap();
    let other = run(&[shared("b", b"1"), shared("a", b"1")], &base.join("u")).unwrap();
    assert_eq!(one.tree.digest(), other.tree.digest());
    assert_eq!(one.owners("nvidia/cu13/include/x.h").count(), 2);
    for (path, content) in [("NVIDIA/cu13/y.h", "1"), ("nvidia/cu13", "1")] {
        let wheels = [shared("a", b"1"), pinned("b", "1.0", &[Entry::file(path, content.as_bytes())])];
        assert_eq!(run(&wheels, &base.join("v")).unwrap_err().code, "E-TREE-COLLISION", "{path}");
    }
}

#[test]
fn f11_a_missing_file_is_restored_and_nothing_else_touched() {
    let (_folder, base) = scratch();
    let root = base.join("t");
    run(&two(), &root).unwrap();
    let before = snapshot(&root);
    fs_err::remove_file(root.join(LIB)).unwrap();
    let again = run(&two(), &root).unwrap();
    assert_eq!(again.written, [LIB]);
    let inodeless = |tree: &BTreeMap<String, String>| {
        let key = root.join(LIB).into_string();
        tree.iter()
            .filter(|(path, _)| **path != key && !path.ends_with("/lib"))
            .map(|(p, s)| (p.clone(), s.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(inodeless(&snapshot(&root)), inodeless(&before));
    assert_eq!(fs_err::read(root.join(LIB)).unwrap(), b"library");
    // The whole folder gone, link and metadata left or not.
    fs_err::remove_dir_all(root.join("nvidia/cu13")).unwrap();
    assert_eq!(run(&two(), &root).unwrap().written.len(), 4);
}

#[test]
fn a_killed_run_leaves_nothing_that_passes_and_the_next_one_finishes() {
    let (_folder, base) = scratch();
    let whole = run(&two(), &base.join("whole")).unwrap();
    let paths: Vec<_> = whole.tree.files.iter().map(|file| file.path.clone()).collect();
    for renamed in 0..paths.len() {
        let root = base.join(format!("t{renamed}"));
        run(&two(), &root).unwrap();
        // What a kill after so many renames leaves: the first files, made folders, and a staging folder.
        fs_err::remove_file(root.join("nvidia/cu13/lib/libcudart.so")).unwrap();
        for path in &paths[renamed..] {
            fs_err::remove_file(root.join(path)).unwrap();
        }
        plant(&base.join(format!(".staging-t{renamed}/3")), b"half a fi");
        let finished = run(&two(), &root).unwrap();
        assert_eq!(finished.written.len(), paths.len() - renamed + 1);
        assert_eq!(finished.tree.digest(), whole.tree.digest());
        assert!(!base.join(format!(".staging-t{renamed}")).exists());
    }
}

/// Changes a good tree at the path that it is given.
type Damage = fn(&Utf8Path);

#[test]
fn f56_f58_t073_whatever_is_wrong_in_the_tree_is_named_and_nothing_is_written() {
    let restored_mtime: Damage = |root| {
        let path = root.join("nvidia/cu13/include/x.h");
        let before = fs_err::metadata(&path).unwrap().modified().unwrap();
        flip(&path);
        std::fs::File::options().append(true).open(&path).unwrap().set_modified(before).unwrap();
    };
    let cases: [(&str, &str, Damage); 6] = [
        ("E-TREE-HASH", "nvidia/cu13/include/x.h", restored_mtime),
        ("E-TREE-EXTRA", "nvidia/cu13/include/early.h", |root| {
            plant(&root.join("nvidia/cu13/include/early.h"), b"")
        }),
        ("E-TREE-EXTRA", "one-1.0.dist-info/x", |root| plant(&root.join("one-1.0.dist-info/x"), b"")),
        ("E-TREE-LINK", "nvidia/cu13/include", |root| {
            fs_err::remove_dir_all(root.join("nvidia/cu13/include")).unwrap();
            symlink(root.parent().unwrap().join("outside"), root.join("nvidia/cu13/include")).unwrap();
        }),
        ("E-TREE-LINK", LIB, |root| {
            fs_err::remove_file(root.join(LIB)).unwrap();
            symlink("../../../../outside/target", root.join(LIB)).unwrap();
        }),
        ("E-TREE-MODE", "nvidia/cu13/bin/tool", |root| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            fs_err::set_permissions(root.join("nvidia/cu13/bin/tool"), mode).unwrap();
        }),
    ];
    for (code, path, damage) in cases {
        let (_folder, base) = scratch();
        let root = base.join("t");
        run(&two(), &root).unwrap();
        fs_err::create_dir(base.join("outside")).unwrap();
        damage(&root);
        let before = snapshot(&base);
        let failure = run(&two(), &root).unwrap_err();
        assert_eq!((failure.code, failure.exit.code()), (code, 1), "{failure}");
        assert!(failure.what.contains(path), "{failure}");
        assert_eq!(snapshot(&base), before, "{code} {path}");
    }
}

#[test]
fn f58_the_changed_byte_is_named_with_both_hashes() {
    let (_folder, base) = scratch();
    let root = base.join("t");
    run(&two(), &root).unwrap();
    let path = root.join("nvidia/cu13/include/x.h");
    let before = fs_err::metadata(&path).unwrap().modified().unwrap();
    flip(&path);
    std::fs::File::options().append(true).open(&path).unwrap().set_modified(before).unwrap();
    let failure = run(&two(), &root).unwrap_err();
    assert_eq!(failure.expected, Some(requal::Digest::of(b"int x;\n").to_string()));
    assert_eq!(failure.found, Some(requal::Digest::of(&fs_err::read(&path).unwrap()).to_string()));
    assert!(failure.hint.unwrap().contains(path.as_str()));
}

#[test]
fn f56_a_root_that_is_a_link_is_not_followed() {
    let (_folder, base) = scratch();
    fs_err::create_dir(base.join("outside")).unwrap();
    symlink(base.join("outside"), base.join("t")).unwrap();
    assert_eq!(run(&two(), &base.join("t")).unwrap_err().code, "E-TREE-LINK");
    assert_eq!(std::fs::read_dir(base.join("outside")).unwrap().count(), 0);
}

#[test]
fn t060_f54_a_wheel_with_any_fault_writes_nothing_of_any_wheel() {
    let (_folder, base) = scratch();
    let mut entries = kit::zip::demo(&[Entry::file("a.h", b"1"), Entry::file("b.h", b"2")]);
    let good = demo(&entries);
    entries[1].content = b"3".to_vec();
    let bad = demo(&entries);
    let with = |last: &Pinned| two().into_iter().chain([last.clone()]).collect::<Vec<_>>();
    let failure = run(&with(&bad), &base.join("t")).unwrap_err();
    assert_eq!(failure.code, "E-RECORD-HASH", "{failure}");
    assert_eq!(std::fs::read_dir(&base).unwrap().count(), 0);
    // Nor is what is missing from an older tree put there.
    run(&with(&good), &base.join("t")).unwrap();
    for path in ["a.h", LIB] {
        fs_err::remove_file(base.join("t").join(path)).unwrap();
    }
    let before = snapshot(&base);
    assert_eq!(run(&with(&bad), &base.join("t")).unwrap_err().code, "E-RECORD-HASH");
    assert_eq!(snapshot(&base), before);
}

fn demo(entries: &[Entry]) -> Pinned {
    let bytes = kit::zip::zip(entries).bytes;
    Pinned::new(bytes.clone(), &kit::zip::pin("demo", "1.0", &bytes)).unwrap()
}

#[test]
fn real_wheels_become_one_tree() {
    let lock = kit::lock();
    let fetched = kit::real_wheels(&lock.packages).unwrap();
    let pinned: Vec<Pinned> = fetched.into_iter().map(|fetched| fetched.pinned).collect();
    let (_folder, base) = scratch();
    let root: Utf8PathBuf = base.join("toolchain");
    let toolchain = run(&pinned, &root).unwrap();
    let rows: Vec<_> =
        toolchain.wheels.iter().map(|wheel| (wheel.name.as_str(), wheel.tree.files.len())).collect();
    let expected = [
        ("ninja", 12),
        ("nvidia-cuda-cccl", 1718),
        ("nvidia-cuda-crt", 30),
        ("nvidia-cuda-nvcc", 16),
        ("nvidia-cuda-runtime", 99),
        ("nvidia-nvvm", 9),
    ];
    assert_eq!(rows, expected);
    assert_eq!(
        toolchain.owners("nvidia/cu13/bin/nvcc").map(|wheel| wheel.name.as_str()).collect::<Vec<_>>(),
        ["nvidia-cuda-nvcc"]
    );
    let tools = toolchain.tree.files.iter().filter(|file| file.mode == 0o755);
    assert!(toolchain.tree.files.iter().all(|file| matches!(file.mode, 0o755 | 0o644)));
    assert_eq!(tools.filter(|file| file.path.starts_with("nvidia/")).count(), 8);
    assert_eq!(run(&pinned, &root).unwrap().written.len(), 0);
}
