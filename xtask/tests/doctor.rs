//! `doctor` on this machine, on one with nothing installed, and that it changes nothing.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "kit/room.rs"]
mod kit;

use kit::toolchain::{Fixture, says};
use requal::Exit;
use requal::lock::Lock;
use xtask::doctor::{Findings, State, run};

fn lock() -> Lock {
    Fixture::around(None).lock()
}

fn state(findings: &Findings, name: &str) -> State {
    findings.lines.iter().find(|line| line.name == name).unwrap().state
}

#[test]
fn this_machine_can_build() {
    let (_folder, path) = kit::folder();
    let caller = xtask::sys::env::all();
    let findings = run(&kit::own(), &path.join("not/yet"), &lock(), &caller).unwrap();
    assert_eq!(findings.exit(), Exit::Success, "{findings}");
    assert_eq!(state(&findings, "sandbox"), State::Good);
    assert!(
        findings.lines.iter().all(|line| !line.found.is_empty() && !line.needed.is_empty()),
        "{findings}"
    );
    assert!(fs_err::read_dir(&path).unwrap().next().is_none(), "nothing is written");
}

#[test]
fn a_machine_with_nothing_installed_is_told_what_mends_it() {
    let (_folder, path) = kit::folder();
    let caller = kit::variables(&[("PATH", "/nonexistent"), ("PTXAS_FLAGS", "-O1"), ("CPATH", "/x")]);
    let findings = run(&kit::own(), &path, &lock(), &caller).unwrap();
    assert_eq!(findings.exit(), Exit::CouldNotJudge);
    for name in ["cargo", "rustc", "python3 and pip", "host compiler", "environment"] {
        let line = findings.lines.iter().find(|line| line.name == name).unwrap();
        assert!(
            line.state == State::Missing && line.mend.as_ref().is_some_and(|mend| !mend.is_empty()),
            "{line:?}"
        );
    }
    let text = findings.to_string();
    assert!(
        text.contains("mend:   apt-get install python3-pip") && text.contains("unset PTXAS_FLAGS"),
        "{text}"
    );
    let json = serde_json::to_value(&findings).unwrap();
    assert_eq!(json["lines"][2]["state"], "missing");
}

#[test]
fn a_compiler_out_of_range_and_a_python_without_pip_are_named() {
    let (_folder, path) = kit::folder();
    kit::toolchain::fake_gxx(&path.join("g++"), "16.1.0");
    kit::program(&path.join("python3"), "#!/bin/sh\necho \"No module named 'pip'\"; exit 1\n");
    let findings = run(&kit::own(), &path, &lock(), &kit::variables(&[("PATH", path.as_str())])).unwrap();
    let text = findings.to_string();
    assert!(text.contains("16.1.0") && text.contains("gcc 6 to 15"), "{text}");
    assert!(text.contains("No module named 'pip'"), "{text}");
}

#[test]
fn an_unpacked_toolchain_says_its_versions_or_what_is_wrong() {
    let fixture = Fixture::new();
    let scratch = fixture.toolchain.parent().unwrap();
    let caller = xtask::sys::env::all();
    let findings = run(&kit::own(), scratch, &fixture.lock(), &caller).unwrap();
    assert!(findings.to_string().contains("nvcc 13.0.88, cicc 13.0.88, ptxas 13.0.88"), "{findings}");
    kit::program(&fixture.toolkit("nvvm/bin/cicc"), &says("13.3", "13.3.33"));
    let findings = run(&kit::own(), scratch, &fixture.lock(), &caller).unwrap();
    assert_eq!(state(&findings, "toolchain"), State::Missing);
    assert!(findings.to_string().contains("cicc 13.3.33 of nvidia-nvvm"), "{findings}");
}

/// Not a test by itself: what this binary does when a test starts it in a role.
#[test]
#[ignore = "a role, started by other tests"]
fn role() {
    let scratch = std::env::var("KIT_FOLDER").unwrap();
    let findings = run(&kit::own(), scratch.as_str().into(), &lock(), &xtask::sys::env::all()).unwrap();
    print!("{findings}[exit {}]", findings.exit().code());
}

#[test]
fn a_machine_that_refuses_namespaces_or_execution_is_told_so() {
    let (_folder, path) = kit::folder();
    let here = path.join("noexec");
    fs_err::create_dir(&here).unwrap();
    let script =
        "mount -t tmpfs -o noexec tmpfs $0 && echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let prefix = ["unshare", "-Urm", "sh", "-c", script, here.as_str()];
    let output = kit::role(&prefix, "doctor", &path).env("KIT_FOLDER", &here).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("unshare namespaces: No space left") && text.contains("sysctl -w user.max_user"),
        "{text}"
    );
    assert!(text.contains("is mounted noexec") && text.contains("[exit 3]"), "{text}");
}
