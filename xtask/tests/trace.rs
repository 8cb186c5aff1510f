//! Observation on this machine: each family of system calls and each trick, in and out of a room, and a real compiler.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "kit/calls.rs"]
mod calls;
#[path = "kit/room.rs"]
mod kit;

use std::io::{BufRead as _, BufReader};

use camino::{Utf8Path, Utf8PathBuf};
use requal::depfile;
use requal::limits::Limits;
use requal::observation::Observation;
use xtask::sys::proc::Call;
use xtask::sys::sandbox::{Mount, run};
use xtask::sys::trace::observe;

/// Observes a shell script that runs in `folder`.
fn shell(folder: &Utf8Path, text: &str) -> (xtask::sys::proc::Ended, Observation) {
    let call = Call { cwd: folder.to_owned(), ..kit::script(text) };
    observe(&kit::own(), &call).unwrap()
}

/// Not a test by itself: what this binary does when a test starts it in a role.
#[test]
#[ignore = "a role, started by other tests"]
fn role() {
    match std::env::var("KIT_ROLE").unwrap().as_str() {
        "calls" => calls::check(),
        "sleepers" => {
            let call = kit::script("sleep 1010 & echo up; sleep 1011")
                .log(Utf8Path::new(&std::env::var("KIT_LOG").unwrap()));
            observe(&kit::own(), &call).unwrap();
        }
        "print" => {
            let call: Call = serde_json::from_str(&std::env::var("KIT_CALL").unwrap()).unwrap();
            let (ended, seen) = observe(&kit::own(), &call).unwrap();
            eprintln!("{}", ended.how());
            println!("{}", serde_json::to_string_pretty(&seen).unwrap());
        }
        other => panic!("{other}"),
    }
}

#[test]
fn every_call_is_seen_and_judged_by_its_result() {
    calls::check();
}

#[test]
fn an_ordinary_user_observes_the_same() {
    if !rustix::process::geteuid().is_root() {
        return; // The test above ran as one.
    }
    let (_folder, path) = kit::folder();
    let user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let output = kit::role(&user, "calls", &path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[test]
fn the_same_is_observed_in_a_room() {
    let (_folder, path) = kit::folder();
    let test = path.join("test");
    let this = Utf8PathBuf::from_path_buf(std::env::current_exe().unwrap()).unwrap();
    kit::copy(&this, &test, "755");
    let mut room = kit::room();
    for (name, from) in [("test", &test), ("xtask", &kit::own())] {
        let to = Utf8PathBuf::from(format!("/requal/bin/{name}"));
        room.mounts.push(Mount { to, from: from.clone(), writable: false });
    }
    let words = ["role", "--exact", "--ignored", "--nocapture"];
    let call = Call::new("/requal/bin/test".into(), &words, "/".into())
        .env("KIT_ROLE", "calls")
        .env("KIT_XTASK", "/requal/bin/xtask")
        .env("PATH", "/usr/bin");
    let ended = run(&kit::own(), &call, Some(&room), &Limits::default()).unwrap().ended;
    assert!(ended.code == 0 && ended.output.contains("1 passed"), "{}", ended.output);
}

#[test]
fn programs_scripts_and_their_arguments_are_listed() {
    let (_folder, path) = kit::folder();
    let shell_file = Utf8Path::new("/bin/sh").canonicalize_utf8().unwrap();
    kit::program(&path.join("inner"), "#!/bin/sh\nexec cat \"$1\"\n");
    kit::program(&path.join("outer"), &format!("#!{path}/inner\n"));
    let (ended, seen) = shell(&path, "./outer; no-such-program; /usr/bin/env true x");
    assert!(ended.output.starts_with(&format!("#!{path}/inner\n")), "{}", ended.output);
    let argv: Vec<String> = seen.executed.iter().map(|one| one.argv.join(" ")).collect();
    assert_eq!(argv[1..], ["./outer", "cat ./outer", "/usr/bin/env true x", "true x"]);
    let programs = |at: usize| seen.executed[at].program.rsplit('/').next().unwrap();
    assert_eq!(
        (programs(1), programs(2)),
        (shell_file.file_name().unwrap(), "cat"),
        "a script is started by its interpreter"
    );
    for opened in [path.join("inner").as_str(), path.join("outer").as_str(), "/usr/bin/env"] {
        assert!(seen.opened.contains(opened), "{opened}: {:?}", seen.opened);
    }
    assert!(seen.opened.iter().any(|file| file.contains("ld-linux")), "{:?}", seen.opened);
    assert!(seen.probes.contains("/usr/sbin/no-such-program"), "{:?}", seen.probes);
    assert!(seen.is_complete(), "{:?}", seen.gaps);
}

#[test]
fn signals_reach_the_program_and_its_end_is_kept() {
    let (_folder, path) = kit::folder();
    let text = "trap 'echo usr' USR1; kill -USR1 $$; kill -KILL $$";
    let (ended, seen) = shell(&path, text);
    assert_eq!((ended.code, ended.output.contains("usr")), (137, true), "{}", ended.output);
    assert!(seen.is_complete(), "{:?}", seen.gaps);
    let (ended, _) = shell(&path, "(sleep 0.1; kill -CONT $$) & kill -STOP $$; wait; echo on; exit 3");
    assert_eq!((ended.code, ended.output.as_str()), (3, "on\n"));
}

#[test]
fn a_process_that_outlives_the_program_is_killed_and_a_gap() {
    let (_folder, path) = kit::folder();
    let (ended, seen) = shell(&path, "setsid sleep 1012 & exit 4");
    assert_eq!(ended.code, 4);
    assert!(seen.gaps.iter().any(|gap| gap.contains("outlived")), "{:?}", seen.gaps);
    assert!(!sleeps("1012"));
}

#[test]
fn the_end_of_the_observer_ends_the_tree() {
    let (_folder, path) = kit::folder();
    let log = path.join("log");
    rustix::fs::mknodat(rustix::fs::CWD, log.as_str(), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut child = kit::role(&[], "sleepers", &path).env("KIT_LOG", &log).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(fs_err::File::open(&log).unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    while !(sleeps("1010") && sleeps("1011")) {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    while sleeps("1010") || sleeps("1011") {
        std::thread::yield_now();
    }
}

/// Whether any process of this machine sleeps for `seconds`.
fn sleeps(seconds: &str) -> bool {
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| fs_err::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line == format!("sleep\0{seconds}\0").as_bytes())
}

/// What is observed already cannot be observed by another.
#[test]
fn a_refused_observation_runs_the_program_and_says_so() {
    let (_folder, path) = kit::folder();
    let inner = serde_json::to_string(&kit::script("echo inner; exit 5")).unwrap();
    let script = format!(
        "KIT_ROLE=print KIT_XTASK={} KIT_CALL='{}' {} role --exact --ignored --nocapture",
        kit::own(),
        inner.replace('\'', "'\\''"),
        std::env::current_exe().unwrap().display()
    );
    let (ended, seen) = shell(&path, &script);
    assert!(ended.output.contains("exit code 5"), "{}", ended.output);
    assert!(ended.output.contains("ptrace was refused: Operation not permitted"), "{}", ended.output);
    assert!(seen.gaps.iter().any(|gap| gap.contains("another process")), "{:?}", seen.gaps);
}

#[test]
fn a_missing_program_is_named() {
    let call = Call::new("/usr/bin/requal-no-such".into(), &[], "/".into());
    let failure = observe(&kit::own(), &call).unwrap_err();
    assert!(failure.code == "E-PROC-START" && failure.to_string().contains("requal-no-such"), "{failure}");
}

#[test]
fn a_real_compile_is_covered_by_what_was_opened_and_looked_for() {
    let (_folder, path) = kit::folder();
    for (name, text) in [
        ("one/.keep", ""),
        ("two/a.h", "#include <stdint.h>\n#if __has_include(\"late.h\")\n#endif\n"),
        ("u.c", "#include \"a.h\"\n#include <string>\nint f(void) { return 0; }\n"),
        ("table.bin", "1"),
    ] {
        kit::file(&path.join(name), text, 0o644);
    }
    let unit = "#include \"a.h\"\n#include <string>\nasm(\".inc\" \"bin \\\"table.bin\\\"\");\n";
    kit::file(&path.join("u.cc"), unit, 0o644);
    let mut call = kit::script("exec g++ -c -Ione -Itwo -MD -MF u.d -o u.o u.cc");
    call.cwd.clone_from(&path);
    let (ended, seen) = observe(&kit::own(), &call).unwrap();
    assert_eq!(ended.code, 0, "{}", ended.output);
    assert!(seen.is_complete(), "{:?}", seen.gaps);
    let rule = fs_err::read_to_string(path.join("u.d")).unwrap();
    let listed = depfile::read("u.d", &rule, "u.o").unwrap();
    assert!(listed.len() > 50);
    for file in listed {
        let real = path.join(&file).canonicalize_utf8().unwrap();
        assert!(seen.opened.contains(real.as_str()), "{real}");
    }
    for absent in ["one/a.h", "one/a.h.gch", "two/a.h.gch", "two/late.h", "one/string"] {
        assert!(seen.probes.contains(path.join(absent).as_str()), "{absent}: {:?}", seen.probes);
    }
    assert!(seen.opened.contains(path.join("table.bin").as_str()), "the assembler's own file");
    let started = |name: &str| seen.executed.iter().any(|one| one.program.ends_with(name));
    assert!(started("/cc1plus") && started("as"), "{:?}", seen.executed);
    assert!(seen.written.contains(path.join("u.o").as_str()));
    assert!(!seen.opened.iter().any(|file| file.ends_with(".s") || file.ends_with("u.o")));
    // The same compile asks the same: nothing of it depends on process numbers or time.
    fs_err::remove_file(path.join("u.o")).unwrap();
    let (_, again) = observe(&kit::own(), &call).unwrap();
    assert_eq!((&seen.opened, &seen.links, &seen.led), (&again.opened, &again.links, &again.led));
    assert_eq!(
        seen.probes.symmetric_difference(&again.probes).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "probes"
    );
}
