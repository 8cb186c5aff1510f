//! Children under limits, and where the machine allows it in a private room: own user, mount, network, IPC, host name
//! and process namespaces, a read-only root that holds only what is declared, one writable folder.
//!
//! The work is done by a hidden, single-threaded re-entry of our own binary (`enter.rs`): it receives a [`Spec`] on
//! its standard input, answers with [`Report`] lines on the same socket, and becomes or starts the program.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use camino::{Utf8Path, Utf8PathBuf};
use requal::limits::{Applied, Limits, Refusal};
use requal::{Failure, Outcome};
use serde::{Deserialize, Serialize};

use super::proc::{Call, Ended};

pub(super) mod enter;
mod room;

pub use enter::enter_if_asked;

/// Whether the sandbox is wanted (`--sandbox`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Use it where the machine allows it; else the real path, with the reason recorded.
    Auto,
    /// Refuse to build without it.
    Require,
    /// Build at the real path.
    Off,
}

/// Where children run on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a room.
    Sandbox,
    /// At the real path; with the refused step if a room was wanted.
    RealPath(Option<Refusal>),
}

/// What a child sees. Besides this there are only an empty `/tmp`, `/dev/null`, and the processes of the room in `/proc`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Files and folders of the machine.
    pub mounts: Vec<Mount>,
    /// Symbolic links, such as `/bin` to `usr/bin`.
    pub links: Vec<Link>,
}

/// A file or folder shown in the room, with what is mounted below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mount {
    /// Absolute path in the room.
    pub to: Utf8PathBuf,
    /// Path on the machine.
    pub from: Utf8PathBuf,
    /// Whether the child may write.
    pub writable: bool,
}

/// A symbolic link in the room.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Link {
    /// Absolute path in the room.
    pub at: Utf8PathBuf,
    /// What it points to.
    pub to: Utf8PathBuf,
}

/// An ended child and the limits that held in it.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What it left.
    pub ended: Ended,
    /// The limits, read back in the child before its program started.
    pub applied: Applied,
}

/// What the entry is told. Without a call it makes the room and ends.
#[derive(Debug, Serialize, Deserialize)]
struct Spec {
    parent: u32,
    room: Option<Room>,
    limits: Limits,
    call: Option<Call>,
}

/// What the entry answers, one JSON line each; the last line counts.
#[derive(Debug, Serialize, Deserialize)]
enum Report {
    Entered(Applied),
    Refused(Refusal),
}

/// Finds out where children run, by one real entry through every step. `own` is our own binary.
///
/// # Errors
/// `E-SANDBOX-REFUSED` (exit 3) if the sandbox is required and refused.
pub fn probe(own: &Utf8Path, mode: Mode) -> Outcome<Place> {
    if mode == Mode::Off {
        return Ok(Place::RealPath(None));
    }
    let here = Mount { to: "/requal/bin/xtask".into(), from: own.to_owned(), writable: false };
    let room = Room { mounts: vec![here], links: Vec::new() };
    match enter(own, None, Some(&room), &Limits::default())? {
        Entry::Done(_) => Ok(Place::Sandbox),
        Entry::Refused(refusal) if mode == Mode::Auto => Ok(Place::RealPath(Some(refusal))),
        Entry::Refused(refusal) => Err(refusal.failure()),
    }
}

/// Runs `call` under `limits`, in `room` or, without one, at the real path. `own` is our own binary.
///
/// # Errors
/// `E-LIMIT-*` if a limit cannot be given, `E-SANDBOX-REFUSED` (exit 3) if a step of the entry was refused,
/// `E-PROC-START`, `E-INTERRUPTED`. A failed child is no error here.
pub fn run(own: &Utf8Path, call: &Call, room: Option<&Room>, limits: &Limits) -> Outcome<Ran> {
    limits.check()?;
    let mut call = call.clone();
    call.env.extend(limits.environment());
    match enter(own, Some(call), room, limits)? {
        Entry::Done(ran) => Ok(ran),
        Entry::Refused(refusal) => Err(refusal.failure()),
    }
}

enum Entry {
    Done(Ran),
    Refused(Refusal),
}

fn enter(own: &Utf8Path, call: Option<Call>, room: Option<&Room>, limits: &Limits) -> Outcome<Entry> {
    let mut entry = Call::new(own, &[enter::WORD], "/".into());
    entry.log = call.as_ref().and_then(|call| call.log.clone());
    let spec = Spec {
        parent: std::process::id(),
        room: room.map(Room::resolved).transpose()?,
        limits: limits.clone(),
        call,
    };
    let spec = serde_json::to_vec(&spec).map_err(std::io::Error::from)?;
    let (mut ours, theirs) = UnixStream::pair()?;
    let running = entry.start(Some(OwnedFd::from(theirs)))?;
    let mut report = String::new();
    // An entry that has died cannot be written to; the missing report says so below.
    if ours.write_all(&spec).and_then(|()| ours.shutdown(Shutdown::Write)).is_ok() {
        ours.read_to_string(&mut report)?;
    }
    let ended = running.wait()?;
    match report.lines().last().map(serde_json::from_str) {
        Some(Ok(Report::Entered(applied))) => Ok(Entry::Done(Ran { ended, applied })),
        Some(Ok(Report::Refused(refusal))) => Ok(Entry::Refused(refusal)),
        Some(Err(_)) | None => Err(entry.failed(requal::Exit::CouldNotJudge, "E-SANDBOX-ENTRY", &ended)),
    }
}

impl Room {
    /// The same room with the sources' symbolic links resolved and parents before what they hold.
    fn resolved(&self) -> Outcome<Self> {
        let mut room = self.clone();
        for mount in &mut room.mounts {
            mount.from = mount.from.canonicalize_utf8().map_err(|error| {
                Failure::could_not_judge(
                    "E-SANDBOX-MOUNT",
                    format!("{} cannot be shown in the sandbox", mount.from),
                )
                .found(error)
            })?;
        }
        room.mounts.sort();
        Ok(room)
    }
}
