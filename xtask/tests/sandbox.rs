//! The sandbox on this machine, with real namespaces: what a child sees, what ends it, and what happens if refused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "kit/room.rs"]
mod kit;

use std::io::{BufRead as _, BufReader};

use camino::Utf8Path;
use requal::limits::Limits;
use rustix::process::{Pid, Signal, kill_process};
use xtask::sys::sandbox::{Mode, Mount, Place, Room, probe, run};

/// Runs as the user that started it: all that a room promises, checked from inside.
fn check_room() {
    let (_folder, path) = kit::folder();
    let (tree, build) = (path.join("tree"), path.join("build"));
    kit::file(&tree.join("a"), "text", 0o644);
    fs_err::create_dir(&build).unwrap();
    let mut room = kit::room();
    room.mounts.push(Mount { to: "/requal/tree".into(), from: tree.clone(), writable: false });
    room.mounts.push(Mount { to: "/requal/build".into(), from: build.clone(), writable: true });
    let text = kit::inside(
        &room,
        "ls / /dev; echo home=$HOME; uname -n; id -u; umask; cat /requal/tree/a; echo
         (echo x > /requal/tree/a) 2>&1; (echo x > /usr/x) 2>&1; (mkdir /x) 2>&1
         mount -o remount,rw,bind /requal/tree 2>&1; (echo x > /requal/tree/a) 2>&1
         echo made > /requal/build/b; echo t > /tmp/t && ls /tmp; echo n > /dev/null; ls /proc | grep -v '^[0-9]*$' | sort | tr '\\n' ' '; (echo 1 > /proc/self/comm) 2>&1; echo pid=$$
         ls -d /dev/nvidia* /root /home /etc 2>&1 | grep -v 'No such'",
    );
    let (output, ended) = (text.ended.output.as_str(), text.ended.code);
    assert!(
        output.starts_with(
            "/:\nbin\ndev\nlib\nlib64\nproc\nrequal\ntmp\nusr\n\n/dev:\nnull\nhome=\nrequal\n1000\n0022\ntext\n"
        ),
        "{output}"
    );
    assert_eq!(output.matches("Read-only file system").count(), 5, "{output}");
    assert!(output.contains("t\nself thread-self "), "processes, and nothing else of the kernel: {output}");
    assert!(output.ends_with("pid=2\n"), "{output}");
    assert_eq!((ended, fs_err::read_to_string(build.join("b")).unwrap().as_str()), (1, "made\n"));
    assert_eq!(fs_err::read_to_string(tree.join("a")).unwrap(), "text");
}

/// Not a test by itself: what this binary does when a test starts it in a role.
#[test]
#[ignore = "a role, started by other tests"]
fn role() {
    match std::env::var("KIT_ROLE").unwrap().as_str() {
        "room" => check_room(),
        "auto" => match probe(&kit::own(), Mode::Auto).unwrap() {
            Place::RealPath(Some(refusal)) => {
                let ran = run(&kit::own(), &kit::script("echo at the real path"), None, &Limits::default())
                    .unwrap();
                print!("{refusal}; {}", ran.ended.output);
            }
            place => panic!("{place:?}"),
        },
        "require" => print!("{}", probe(&kit::own(), Mode::Require).unwrap_err()),
        "tree" => {
            let log = std::env::var("KIT_LOG").unwrap();
            let call =
                kit::script("sleep 1000 & setsid sleep 1001 & echo up; sleep 1002").log(Utf8Path::new(&log));
            run(&kit::own(), &call, Some(&kit::room()), &Limits::default()).unwrap();
        }
        "watched-tree" => {
            xtask::sys::interrupt::watch().unwrap();
            let call = kit::script("sleep 1003 & echo up; sleep 1004")
                .log(Utf8Path::new(&std::env::var("KIT_LOG").unwrap()));
            print!("{}", run(&kit::own(), &call, Some(&kit::room()), &Limits::default()).unwrap_err());
        }
        "clean" => {
            let text = "ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0; grep -E 'Sig(Blk|Ign)|NoNewPrivs' /proc/self/status; env";
            print!(
                "{}",
                run(&kit::own(), &kit::script(text), None, &Limits::default()).unwrap().ended.output
            );
        }
        "plain" => {
            let call = kit::script("echo up; exec sleep 1005")
                .log(Utf8Path::new(&std::env::var("KIT_LOG").unwrap()));
            run(&kit::own(), &call, None, &Limits::default()).unwrap();
        }
        "submount" => {
            let mut room = kit::room();
            let from = std::env::var("KIT_FOLDER").unwrap().into();
            room.mounts.push(Mount { to: "/requal/tree".into(), from, writable: false });
            print!(
                "{}",
                kit::inside(&room, "(echo x > /requal/tree/file) 2>&1; cat /requal/tree/file").ended.output
            );
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_room_holds_what_is_declared_and_nothing_else() {
    check_room();
}

#[test]
fn an_ordinary_user_gets_the_same_room() {
    if !rustix::process::geteuid().is_root() {
        return; // The test above ran as one.
    }
    let (_folder, path) = kit::folder();
    let user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let output = kit::role(&user, "room", &path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[test]
fn there_is_no_network_inside() {
    let ran = kit::inside(
        &kit::room(),
        "python3 -c 'import socket; print([n for _, n in socket.if_nameindex()])
try: socket.create_connection((\"127.0.0.1\", 9), 1)
except OSError as error: print(error.errno)'",
    );
    assert_eq!(ran.ended.output, "['lo']\n101\n"); // ENETUNREACH: even the loopback is down.
}

#[test]
fn a_refused_namespace_falls_back_with_its_reason_or_fails_naming_the_step() {
    let refuse = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"";
    let prefix = ["unshare", "-Ur", "sh", "-c", refuse, "sh"];
    let (_folder, path) = kit::folder();
    let auto = kit::role(&prefix, "auto", &path).output().unwrap();
    let text = String::from_utf8_lossy(&auto.stdout);
    assert!(
        text.contains("unshare namespaces: No space left on device (os error 28); at the real path"),
        "{text}"
    );
    let require = kit::role(&prefix, "require", &path).output().unwrap();
    let text = String::from_utf8_lossy(&require.stdout);
    assert!(text.contains("error[E-SANDBOX-REFUSED]") && text.contains("unshare namespaces"), "{text}");
}

#[test]
fn a_source_that_is_missing_is_named_and_a_broken_place_refused() {
    let mut room = kit::room();
    room.mounts.push(Mount { to: "/requal/tree".into(), from: "/nowhere".into(), writable: false });
    let failure = run(&kit::own(), &kit::script("true"), Some(&room), &Limits::default()).unwrap_err();
    assert!(failure.code == "E-SANDBOX-MOUNT" && failure.what.contains("/nowhere"), "{failure}");
    let inside_usr = Mount { to: "/usr/requal-no-such-place".into(), from: "/usr".into(), writable: false };
    let room = Room { mounts: vec![kit::room().mounts[0].clone(), inside_usr], links: vec![] };
    let failure = run(&kit::own(), &kit::script("true"), Some(&room), &Limits::default()).unwrap_err();
    assert_eq!(failure.code, "E-SANDBOX-REFUSED");
    assert!(failure.to_string().contains("mount /usr/requal-no-such-place"), "{failure}");
    assert!(!Utf8Path::new("/usr/requal-no-such-place").exists());
}

#[test]
fn a_missing_program_is_named_inside_and_outside() {
    let call = xtask::sys::proc::Call::new("/usr/bin/requal-no-such".into(), &[], "/".into());
    for room in [None, Some(&kit::room())] {
        let failure = run(&kit::own(), &call, room, &Limits::default()).unwrap_err();
        assert!(
            failure.code == "E-PROC-START" && failure.to_string().contains("requal-no-such"),
            "{failure}"
        );
    }
}

/// Starts a role that keeps a tree of sleepers running, and returns once they run.
fn running_tree(role: &str, path: &Utf8Path) -> std::process::Child {
    let log = path.join("log");
    rustix::fs::mknodat(rustix::fs::CWD, log.as_str(), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let child = kit::role(&[], role, path).env("KIT_LOG", &log).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(fs_err::File::open(&log).unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    child
}

/// Whether any process of this machine sleeps for `seconds`.
fn sleeps(seconds: &str) -> bool {
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| fs_err::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line == format!("sleep\0{seconds}\0").as_bytes())
}

#[test]
fn killing_the_parent_ends_the_whole_tree() {
    let (_folder, path) = kit::folder();
    let mut child = running_tree("tree", &path);
    let tree = ["1000", "1001", "1002"];
    wait_until(|| tree.iter().all(|seconds| sleeps(seconds)));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(|| !tree.iter().any(|seconds| sleeps(seconds)));
}

#[test]
fn killing_the_parent_ends_a_program_at_the_real_path_too() {
    let (_folder, path) = kit::folder();
    let mut child = running_tree("plain", &path);
    wait_until(|| sleeps("1005"));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(|| !sleeps("1005"));
}

#[test]
fn a_child_starts_clean_whatever_its_parent_has() {
    let (_folder, path) = kit::folder();
    let script = "trap '' HUP INT TERM; exec \"$@\" 7<$0";
    let prefix = ["sh", "-c", script, "/dev/null"];
    let output = kit::role(&prefix, "clean", &path).env("LEAKED", "yes").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Descriptor 3 is the folder that ls itself reads.
    assert!(text.contains("0 1 2 3 /dev/null\n"), "{text}");
    let mask = |name: &str| u64::from_str_radix(text.split_once(name).unwrap().1[..18].trim(), 16).unwrap();
    // Signals 32 and 33 belong to the C library, which does not let them be set.
    assert_eq!((mask("SigBlk:"), mask("SigIgn:") & 0x7fff_ffff), (0, 0), "{text}");
    assert!(!text.contains("LEAKED") && text.contains("PATH=/usr/bin:/usr/sbin"), "{text}");
}

/// Container runtimes mount single files into system folders, such as a driver's libraries.
#[test]
fn what_is_mounted_below_a_read_only_folder_is_shown_and_read_only_too() {
    let (_folder, path) = kit::folder();
    let tree = path.join("tree");
    kit::file(&tree.join("file"), "below", 0o644);
    kit::file(&path.join("other"), "mounted", 0o644);
    let script = "mount --bind $1 $0/file && shift && exec \"$@\"";
    let other = path.join("other");
    let prefix = ["unshare", "-Urm", "sh", "-c", script, tree.as_str(), other.as_str()];
    let output = kit::role(&prefix, "submount", &path).env("KIT_FOLDER", &tree).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Read-only file system") && text.contains("mounted"), "{text}");
    assert_eq!(fs_err::read_to_string(&other).unwrap(), "mounted");
}

#[test]
fn a_signal_ends_the_children_first_and_then_the_stage() {
    let (_folder, path) = kit::folder();
    let child = running_tree("watched-tree", &path);
    wait_until(|| sleeps("1003") && sleeps("1004"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("error[E-INTERRUPTED]"), "{text}");
    assert!(!sleeps("1003") && !sleeps("1004"));
}

/// Processes start and end asynchronously; what never comes makes the test run into its runner's limit.
fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}
