//! What the tests share: a room with this machine's own programs, and our test binary started anew in a role.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part of the kit, and fails by panicking"
)]

#[path = "../../../tests/kit/mod.rs"]
pub(crate) mod zip;

pub(crate) mod build;
pub(crate) mod real;
pub(crate) mod toolchain;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use requal::limits::Limits;
use xtask::sys::proc::Call;
use xtask::sys::sandbox::{Link, Mount, Ran, Room, run};

/// The binary that is entered anew; a role finds it through a variable.
pub(crate) fn own() -> Utf8PathBuf {
    std::env::var("KIT_XTASK").unwrap_or_else(|_| env!("CARGO_BIN_EXE_xtask").to_owned()).into()
}

/// A folder that is removed at the end of the test, readable by every user.
pub(crate) fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    fs_err::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    (folder, path)
}

/// This machine's /usr, read-only, with the links that make its programs found.
pub(crate) fn room() -> Room {
    let mount = Mount { to: "/usr".into(), from: "/usr".into(), writable: false };
    let links = ["/bin", "/lib", "/lib64"].iter().filter_map(|at| {
        let to = Utf8PathBuf::from_path_buf(fs_err::read_link(at).ok()?).ok()?;
        Some(Link { at: (*at).into(), to })
    });
    Room { mounts: vec![mount], links: links.collect() }
}

/// A shell script as a call.
pub(crate) fn script(text: &str) -> Call {
    Call::new("/bin/sh".into(), &["-c", text], "/".into()).env("PATH", "/usr/bin:/usr/sbin")
}

/// Runs a script in `room` without limits.
pub(crate) fn inside(room: &Room, text: &str) -> Ran {
    run(&own(), &script(text), Some(room), &Limits::default()).unwrap()
}

/// Writes an executable file, in a process of its own: a descriptor that this process writes through could still be
/// open in a child that another test is just starting, and such a file cannot be executed.
pub(crate) fn program(path: &Utf8Path, text: &str) {
    let write = "mkdir -p \"${0%/*}\" && rm -f \"$0\" && printf %s \"$1\" > \"$0\" && chmod 755 \"$0\"";
    done(&Call::new("/bin/sh".into(), &["-c", write, path.as_str(), text], "/".into()));
}

/// Copies a file that may be executed, as [`program`] writes one.
pub(crate) fn copy(from: &Utf8Path, to: &Utf8Path, mode: &str) {
    let copy = "rm -f \"$1\" && cp \"$0\" \"$1\" && chmod \"$2\" \"$1\"";
    done(&Call::new("/bin/sh".into(), &["-c", copy, from.as_str(), to.as_str(), mode], "/".into()));
}

fn done(call: &Call) {
    let ended = call.clone().env("PATH", "/usr/bin:/bin").run().unwrap();
    assert_eq!(ended.code, 0, "{}", ended.output);
}

/// Writes a file with `mode`.
pub(crate) fn file(path: &Utf8Path, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    xtask::sys::fs::write(path, text.as_bytes()).unwrap();
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A command that starts this test binary anew, as the ignored test `role`, with `KIT_ROLE` set. `prefix` stands
/// before it on the command line, such as `setpriv …`.
#[expect(clippy::disallowed_methods, reason = "a test starts itself in another role")]
pub(crate) fn role(prefix: &[&str], role: &str, folder: &Utf8Path) -> Command {
    let (test, xtask) = (folder.join("test"), folder.join("xtask"));
    let this = Utf8PathBuf::from_path_buf(std::env::current_exe().unwrap()).unwrap();
    for (from, to) in [(&this, &test), (&own(), &xtask)] {
        copy(from, to, "755");
    }
    let words = [test.as_str(), "role", "--exact", "--ignored", "--nocapture"];
    let mut argv = prefix.iter().copied().chain(words);
    let mut command = Command::new(argv.next().unwrap());
    command.args(argv).env("KIT_ROLE", role).env("KIT_XTASK", xtask.as_str());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The environment of a caller, from pairs.
pub(crate) fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
