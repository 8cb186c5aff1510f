//! A killed run leaves no process, nothing outside the scratch, and a scratch that the next run finishes.

use std::os::unix::fs::MetadataExt as _;
use std::process::Child;
use std::thread;
use std::time::Duration;

use camino::Utf8Path;

use crate::kit::build::{Fixture, files};

/// How long a condition is waited for; far more than it ever takes.
const PATIENCE: u32 = 120_000;

/// Waits until `met`; gives up after [`PATIENCE`] steps of a millisecond.
fn until(what: &str, mut met: impl FnMut() -> bool) {
    for _ in 0..PATIENCE {
        if met() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("{what} did not come");
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Every process that runs a program of this fixture or has one of its units on the command line.
fn processes(fixture: &Fixture, unit: &str) -> Vec<String> {
    let identity = |path: &Utf8Path| fs_err::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let toolchain = fixture.scratch.join("toolchain");
    let ours: Vec<_> = files(&toolchain).into_iter().map(|path| toolchain.join(path)).collect();
    let ours: Vec<_> =
        ours.iter().chain([&fixture.root.join("xtask")]).filter_map(|path| identity(path)).collect();
    let all = Utf8Path::new("/proc").read_dir_utf8().unwrap().flatten();
    let numbers = all.filter(|entry| entry.file_name().parse::<u32>().is_ok());
    let ours = numbers.filter(|entry| {
        let program = identity(&entry.path().join("exe")).is_some_and(|program| ours.contains(&program));
        let words = fs_err::read(entry.path().join("cmdline")).unwrap_or_default();
        program || String::from_utf8_lossy(&words).contains(unit)
    });
    ours.map(|entry| entry.path().to_string()).collect()
}

/// Everything around the scratch, with sizes and mtimes.
fn outside(fixture: &Fixture) -> Vec<(String, u64, i64, i64)> {
    let all = files(&fixture.root).into_iter().filter(|path| !path.starts_with("scratch/"));
    let state = |path: String| {
        let found = fs_err::symlink_metadata(fixture.root.join(&path)).unwrap();
        (path, found.size(), found.mtime(), found.mtime_nsec())
    };
    all.map(state).collect()
}

#[test]
fn a_run_that_is_killed_anywhere_is_finished_by_the_next_one() {
    let reference = Fixture::new(&["one"]);
    let fixture = Fixture::new(&["one"]);
    // A name that no other process has on its command line.
    let unit = format!("scale_{}.cu", std::process::id());
    for repository in [&reference.repository, &fixture.repository] {
        let units = repository.join("kernels/one/units");
        fs_err::rename(units.join("scale.cu"), units.join(&unit)).unwrap();
    }
    let digests = reference.build(&[]);
    let around = outside(&fixture);
    // What is there at the moment of the kill.
    let moments = [
        ".staging-toolchain/nvidia".to_owned(),
        "toolchain/nvidia".to_owned(),
        format!("build/one/unit/units/{unit}.o.d/tmp"),
        "build/one/units/module.cu.o".to_owned(),
        "build/one/unit/one.so.d".to_owned(),
    ];
    for moment in moments {
        let child = fixture.start();
        let there = fixture.scratch.join(&moment);
        until(&moment, || there.exists());
        end(child);
        until("the end of every process", || processes(&fixture, &unit).is_empty());
        assert_eq!(outside(&fixture), around, "{moment}");
        for file in fixture.digests() {
            assert_eq!(digests.get(&file.0), Some(&file.1), "{moment}: what has its name is whole");
        }
    }
    assert_eq!(fixture.build(&[]), digests);
    assert_eq!(outside(&fixture), around);
    assert!(!fixture.scratch.join(".staging-toolchain").exists());
}

#[test]
fn a_second_run_on_one_scratch_is_refused_and_names_the_holder() {
    let fixture = Fixture::new(&["one"]);
    let child = fixture.start();
    let holder = format!("process {}", child.id());
    let lock = fixture.scratch.join(".lock");
    until("the holder", || fs_err::read_to_string(&lock).is_ok_and(|text| text.contains(&holder)));
    fixture.run(&[]).refused(3, "E-SCRATCH-HELD", &[&format!("held by {holder}"), "another --scratch"]);
    end(child);
    fixture.build(&[]);
}
