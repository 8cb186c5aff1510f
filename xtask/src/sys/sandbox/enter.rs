//! The hidden entry: prepares this single-threaded process as the spec says, then becomes or starts the program.

use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use requal::limits::{Kind, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getppid, kill_process, set_parent_process_death_signal, wait,
    waitpid,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde::de::DeserializeOwned;
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};

use super::super::limits;
use super::super::proc::Call;
use super::{Report, Spec, room};

/// The argument that asks for an entry; no command of the command line.
pub(super) const WORD: &str = "enter-child";
/// The user and group number in the room: not 0, so that a started program has no capabilities there.
const INSIDE_ID: u32 = 1000;
/// Exit code of an entry that was refused; the report says why.
pub(in crate::sys) const REFUSED: i32 = 125;

/// Does not return if this process was started as an entry. `main` calls it first, before any thread or file.
pub fn enter_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|word| word == WORD) {
        std::process::exit(enter());
    }
}

fn enter() -> i32 {
    let (mut channel, spec) = match receive::<Spec>() {
        Ok((socket, spec)) => (Channel(Some(socket)), spec),
        Err(error) => {
            anstream::eprintln!("not started as an entry: {error}");
            return REFUSED;
        }
    };
    prepare(&spec, &mut channel).unwrap_or_else(|refusal| {
        channel.report(&Report::Refused(refusal));
        REFUSED
    })
}

/// The socket to the parent, until it is closed.
struct Channel(Option<UnixStream>);

impl Channel {
    /// Sends one line. A parent that is gone needs none: its end ends us.
    fn report(&mut self, report: &Report) {
        if let (Some(socket), Ok(text)) = (&mut self.0, serde_json::to_string(report)) {
            let _ = writeln!(socket, "{text}");
        }
    }

    fn close(&mut self) {
        self.0 = None;
    }
}

/// Takes the socket from standard input, which becomes empty, and reads the spec.
pub(in crate::sys) fn receive<T: DeserializeOwned>() -> std::io::Result<(UnixStream, T)> {
    // SAFETY: nothing was opened by this process yet, so no descriptor from 3 on has an owner here.
    if unsafe { libc::close_range(3, libc::c_uint::MAX, 0) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(fs_err::File::open("/dev/null")?)?;
    let mut text = Vec::new();
    socket.read_to_end(&mut text)?;
    let spec = serde_json::from_slice(&text)?;
    Ok((socket, spec))
}

/// Every step; returns the exit code of the program, unless this process became the program.
fn prepare(spec: &Spec, channel: &mut Channel) -> Result<i32, Refusal> {
    // At the real path the program is asked to end (ninja ends its own children); a room is torn down at once.
    let farewell = if spec.room.is_some() { Signal::KILL } else { Signal::TERM };
    follow(farewell, spec.parent)?;
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: the default disposition runs no code of ours; numbers that cannot be set are refused harmlessly.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    limits::set_scheduling(&spec.limits)?;
    let Some(wanted) = &spec.room else {
        limits::set_address_space(&spec.limits)?;
        channel.report(&Report::Entered(limits::read_back(&spec.limits)?));
        let Some(call) = &spec.call else { return Ok(0) };
        return Err(become_program(call));
    };
    unshare_all()?;
    follow(farewell, spec.parent)?;
    let (alive, held) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| at("pipe", error))?;
    // SAFETY: this process has one thread, so the child may go on as the parent could.
    match unsafe { libc::fork() } {
        -1 => Err(at("fork into the process namespace", std::io::Error::last_os_error())),
        0 => {
            drop(held);
            follow_until_closed(&alive)?;
            room::build(wanted)?;
            start_and_reap(spec, channel)
        }
        child => {
            // The child alone reports from here on.
            channel.close();
            guard(child, held)
        }
    }
}

/// Ends this process when its parent thread ends. Asked again after each change of credentials, which undoes it.
pub(in crate::sys) fn follow(signal: Signal, parent: u32) -> Result<(), Refusal> {
    set_parent_process_death_signal(Some(signal)).map_err(|error| at("follow the parent's end", error))?;
    let alive = getppid().is_some_and(|pid| pid.as_raw_nonzero().get().unsigned_abs() == parent);
    if alive { Ok(()) } else { Err(at("follow the parent's end", rustix::io::Errno::SRCH)) }
}

/// The same across the process namespace's border, where the parent has no number: its pipe tells whether it lives.
fn follow_until_closed(alive: &OwnedFd) -> Result<(), Refusal> {
    let refused = |error: rustix::io::Errno| at("follow the parent's end", error);
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(refused)?;
    let mut state = [PollFd::new(alive, PollFlags::IN)];
    let ready = poll(&mut state, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).map_err(refused)?;
    if ready == 0 { Ok(()) } else { Err(refused(rustix::io::Errno::SRCH)) }
}

/// Leaves all namespaces of the machine, and maps our own user and group to [`INSIDE_ID`].
fn unshare_all() -> Result<(), Refusal> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let all = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWPID;
    // SAFETY: the descriptor table is not unshared, and there is no other thread.
    unsafe { unshare_unsafe(all) }.map_err(|error| at("unshare namespaces", error))?;
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{INSIDE_ID} {user} 1")),
        ("/proc/self/gid_map", format!("{INSIDE_ID} {group} 1")),
    ];
    for (path, text) in maps {
        let file = std::fs::OpenOptions::new().write(true).open(path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| at(format!("write {path}"), error))?;
    }
    Ok(())
}

/// Process 1 of the room: starts the program, reaps every orphan, and ends with the program.
fn start_and_reap(spec: &Spec, channel: &mut Channel) -> Result<i32, Refusal> {
    rustix::thread::set_no_new_privs(true).map_err(|error| at("give up privileges", error))?;
    limits::set_address_space(&spec.limits)?;
    channel.report(&Report::Entered(limits::read_back(&spec.limits)?));
    let Some(call) = &spec.call else { return Ok(0) };
    let refused = |error: std::io::Error| Refusal::at(Kind::Start, call.program.as_str(), error);
    let program = command(call).spawn().map_err(refused)?;
    channel.close();
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().unsigned_abs() == program.id() => {
                return Ok(code(status));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(refused(error.into())),
        }
    }
}

/// The outer half: passes the end of either side on to the other.
fn guard(child: i32, _held: OwnedFd) -> Result<i32, Refusal> {
    let child = Pid::from_raw(child).ok_or_else(|| at("fork", rustix::io::Errno::SRCH))?;
    let watched = signal_hook::iterator::Signals::new([SIGCHLD, SIGINT, SIGTERM]);
    let mut signals = watched.map_err(|error| at("watch signals", error))?;
    loop {
        if let Some((_, status)) =
            waitpid(Some(child), WaitOptions::NOHANG).map_err(|error| at("wait", error))?
        {
            return Ok(code(status));
        }
        if signals.wait().any(|signal| signal != SIGCHLD) {
            // Process 1 takes the whole room with it.
            let _ = kill_process(child, Signal::KILL);
        }
    }
}

/// The program, on our standard input (empty) and outputs. The standard library resets the signal mask.
#[expect(clippy::disallowed_methods, reason = "the last step of a start that came through sys/proc.rs")]
fn command(call: &Call) -> Command {
    let mut command = Command::new(call.program.as_std_path());
    command.args(&call.args).env_clear().envs(&call.env).current_dir(&call.cwd);
    command
}

/// Becomes the program; returns only why it could not.
pub(in crate::sys) fn become_program(call: &Call) -> Refusal {
    Refusal::at(Kind::Start, call.program.as_str(), command(call).exec())
}

/// Exit code, or 128 + signal number.
pub(in crate::sys) fn code(status: WaitStatus) -> i32 {
    status.exit_status().unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0))
}

fn at(step: impl Into<String>, error: impl Into<std::io::Error>) -> Refusal {
    Refusal::at(Kind::Sandbox, step, error)
}
