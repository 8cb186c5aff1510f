//! Limits: set in the child, read back there, in the sandbox and without it; a loss is an error.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "kit/room.rs"]
mod kit;

use requal::Exit;
use requal::limits::Limits;
use rustix::process::Resource;
use xtask::sys::sandbox::run;

#[test]
fn limits_hold_in_the_child_alone_and_are_read_back() {
    let before = (nice(), rustix::process::getrlimit(Resource::As), cpus());
    let last = *before.2.last().unwrap();
    let limits = Limits {
        cpu_affinity: Some(vec![last]),
        nice: Some(11),
        threads: Some(3),
        address_space_bytes: Some(4 << 30),
        jobs: None,
    };
    let room = kit::room();
    let text = "nice; ulimit -v; env -u OMP_NUM_THREADS nproc; echo $OMP_NUM_THREADS; umask; sh -c nice; ls -l /proc/self/fd 2>/dev/null | grep -c pipe";
    for room in [None, Some(&room)] {
        let ran = run(&kit::own(), &kit::script(text), room, &limits).unwrap();
        assert!(ran.ended.output.starts_with("11\n4194304\n1\n3\n0022\n11\n"), "{}", ran.ended.output);
        assert_eq!((ran.applied.cpu_affinity.as_slice(), ran.applied.nice), ([last].as_slice(), 11));
        assert_eq!(ran.applied.address_space_bytes, Some(4 << 30));
        assert!(ran.applied.inherited.open_files.is_some());
    }
    assert_eq!(
        (nice(), rustix::process::getrlimit(Resource::As), cpus()),
        before,
        "the tool itself is not limited"
    );
}

fn nice() -> i32 {
    rustix::process::getpriority_process(None).unwrap()
}

fn cpus() -> Vec<u32> {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    (0..1024).filter(|&cpu| set.is_set(cpu as usize)).collect()
}

#[test]
fn without_limits_nothing_changes_but_the_environment_is_closed() {
    let ran =
        run(&kit::own(), &kit::script("env | grep -c NUM_THREADS; trap"), None, &Limits::default()).unwrap();
    assert_eq!((ran.ended.output.as_str(), ran.applied.nice), ("0\n", nice()));
}

/// Every refusal with its exit, its code, and the words that it must hold.
fn refused(limits: &Limits, code: &str, words: &[&str]) {
    let failure = run(&kit::own(), &kit::script("echo started"), None, limits).unwrap_err();
    let text = failure.to_string();
    assert_eq!(failure.code, code, "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn f98_a_lost_cpu_is_named() {
    let affinity = |cpus: &[u32]| Limits { cpu_affinity: Some(cpus.to_vec()), ..Limits::default() };
    refused(&affinity(&[0, 1000]), "E-LIMIT-CPU", &["missing CPUs [1000]"]);
    refused(&affinity(&[1000, 1001]), "E-LIMIT-CPU", &["missing CPUs [1000, 1001]"]);
}

#[test]
fn f102_too_small_an_address_space_is_refused_and_never_hits_the_tool() {
    let limits = |bytes| Limits { address_space_bytes: Some(bytes), jobs: Some(8), ..Limits::default() };
    refused(&limits(256 << 20), "E-LIMIT-VALUE", &["address_space_bytes", "268435456 bytes"]);
    let failure = run(&kit::own(), &kit::script("true"), None, &limits(256 << 20)).unwrap_err();
    assert_eq!(failure.exit, Exit::BadInput);
}

/// Not a test by itself: what this binary does when a test starts it in a role.
#[test]
#[ignore = "a role, started by other tests"]
fn role() {
    let limits = match std::env::var("KIT_ROLE").unwrap().as_str() {
        "nice-10" => Limits { nice: Some(10), ..Limits::default() },
        "nice-19" => Limits { nice: Some(19), ..Limits::default() },
        "address-space" => Limits { address_space_bytes: Some(8 << 30), ..Limits::default() },
        other => panic!("{other}"),
    };
    match run(&kit::own(), &kit::script("sh -c nice"), None, &limits) {
        Ok(ran) => print!("[{} {}]", ran.applied.nice, ran.ended.output.trim()),
        Err(failure) => print!("{failure}"),
    }
}

#[test]
fn f104_a_nicer_process_stays_as_it_is_and_children_inherit() {
    let (_folder, path) = kit::folder();
    let cases: [(&[&str], &str, &str); 2] =
        [(&["nice", "-n", "19"], "nice-10", "[19 19]"), (&["nice", "-n", "0"], "nice-19", "[19 19]")];
    for (prefix, role, expected) in cases {
        let output = kit::role(prefix, role, &path).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_limit_above_the_inherited_hard_one_is_refused() {
    let (_folder, path) = kit::folder();
    let low = "ulimit -v 4000000; exec \"$@\"";
    let user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", low, "sh"];
    let plain = ["sh", "-c", low, "sh"];
    let prefix = if rustix::process::geteuid().is_root() { user.as_slice() } else { plain.as_slice() };
    let output = kit::role(prefix, "address-space", &path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("error[E-LIMIT-AS]") && text.contains("4096000000"), "{text}");
}
