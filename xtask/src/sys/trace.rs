//! Running a child under observation: every file-system call of its process tree, or the reason why not all is known.
//!
//! A hidden, single-threaded re-entry of our own binary receives the call on its standard input, starts the program under
//! a system-call filter, follows it and all that it starts, and answers with the [`Observation`] on the same socket. It
//! works as an ordinary user and inside a room. Its end, however it comes, is the end of all that it observes.
//!
//! A path is read when the call begins and judged by the result when it ends. A call whose answer is known is not waited
//! for, until the tree itself changes something at that place; that outside hands leave the inputs alone is for whoever
//! hashes them. Between our reading of a path and the kernel's, another thread may write there: the path is read again at
//! the end, and a difference is a gap. A hostile program that writes it twice goes unseen.

mod calls;
mod kernel;
mod notes;
mod paths;
mod table;
mod tracer;

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use camino::Utf8Path;
use requal::limits::{Kind, Refusal};
use requal::observation::Observation;
use requal::{Exit, Outcome};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, waitpid};
use serde::{Deserialize, Serialize};

use super::proc::{Call, Ended};
use super::sandbox::enter as entry;

/// The argument that asks for an entry; no command of the command line.
const WORD: &str = "observe-child";

/// What the entry is told.
#[derive(Debug, Serialize, Deserialize)]
struct Spec {
    parent: u32,
    call: Call,
}

/// What the entry answers, one JSON line; of two the first counts.
#[derive(Debug, Serialize, Deserialize)]
enum Report {
    Refused(Refusal),
    Observed(Observation),
}

/// Runs `call` to its end and says what it did. `own` is our own binary. Where the machine refuses to observe, the child
/// runs all the same, and the observation has a gap.
///
/// # Errors
/// `E-PROC-START` if the program could not be started, `E-TRACE` if the entry died, `E-INTERRUPTED`. A failed child is no
/// error here.
pub fn observe(own: &Utf8Path, call: &Call) -> Outcome<(Ended, Observation)> {
    let mut start = Call::new(own, &[WORD], "/".into());
    start.log.clone_from(&call.log);
    let spec = Spec { parent: std::process::id(), call: call.clone() };
    let spec = serde_json::to_vec(&spec).map_err(std::io::Error::from)?;
    let (mut ours, theirs) = UnixStream::pair()?;
    let running = start.start(Some(OwnedFd::from(theirs)))?;
    let mut report = String::new();
    // An entry that has died cannot be written to; the missing report says so below.
    if ours.write_all(&spec).and_then(|()| ours.shutdown(Shutdown::Write)).is_ok() {
        ours.read_to_string(&mut report)?;
    }
    let ended = running.wait()?;
    match report.lines().next().map(serde_json::from_str) {
        Some(Ok(Report::Observed(observation))) => Ok((ended, observation)),
        Some(Ok(Report::Refused(refusal))) => Err(refusal.failure()),
        Some(Err(_)) | None => Err(start.failed(Exit::CouldNotJudge, "E-TRACE", &ended)),
    }
}

/// Does not return if this process was started as an entry. `main` calls it first, before any thread or file.
pub fn enter_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|word| word == WORD) {
        std::process::exit(enter());
    }
}

fn enter() -> i32 {
    let received = entry::receive::<Spec>();
    let (mut socket, spec) = match received {
        Ok(received) => received,
        Err(error) => {
            anstream::eprintln!("not started as an entry: {error}");
            return entry::REFUSED;
        }
    };
    match observed(&spec, &mut socket) {
        Ok((code, observation)) => {
            answer(&mut socket, &Report::Observed(observation));
            code
        }
        Err(refusal) => {
            // What is still running ends with us.
            anstream::eprintln!("the observation ended early: {refusal}");
            entry::REFUSED
        }
    }
}

/// Starts the program in a child of this process, and observes it if the machine allows that.
fn observed(spec: &Spec, socket: &mut UnixStream) -> Result<(i32, Observation), Refusal> {
    entry::follow(Signal::KILL, spec.parent)?;
    let mut hindrance = hindrance();
    let (ready, begin) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| at("pipe", error))?;
    // SAFETY: this process has one thread, so the child may go on as the parent could.
    match unsafe { libc::fork() } {
        -1 => Err(at("fork", std::io::Error::last_os_error())),
        0 => {
            drop(begin);
            let refusal = become_program(spec, ready);
            answer(socket, &Report::Refused(refusal));
            std::process::exit(entry::REFUSED)
        }
        child => {
            drop(ready);
            let child = Pid::from_raw(child).ok_or_else(|| at("fork", rustix::io::Errno::SRCH))?;
            if hindrance.is_none() {
                hindrance = kernel::seize(child).err().map(|error| format!("ptrace was refused: {error}"));
            }
            let order = if hindrance.is_none() { OBSERVED } else { PLAIN };
            rustix::io::write(&begin, &[order]).map_err(|error| at("begin", error))?;
            drop(begin);
            if let Some(why) = hindrance {
                let gaps = [why].into();
                return Ok((plain(child)?, Observation { gaps, ..Observation::default() }));
            }
            let tracer = tracer::Tracer::default();
            tracer
                .run(child)
                .map(|(status, seen)| (entry::code(status), seen))
                .map_err(|error| at("observe", error))
        }
    }
}

/// What the parent says before the program may start.
const OBSERVED: u8 = b'o';
const PLAIN: u8 = b'p';

/// What this machine lacks for observing, if anything.
fn hindrance() -> Option<String> {
    let own = notes::link_text("/proc/self");
    if own != Some(std::process::id().to_string()) {
        return Some("there is no /proc of these processes".to_owned());
    }
    kernel::filter_available().err().map(|error| format!("a system-call filter was refused: {error}"))
}

/// The child: waits until it is observed, sets the filter, and becomes the program.
fn become_program(spec: &Spec, ready: OwnedFd) -> Refusal {
    let prepared = || -> Result<(), Refusal> {
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| at("follow the parent's end", error))?;
        let mut order = [0];
        // Without an order the parent is gone.
        let count = rustix::io::read(&ready, &mut order).map_err(|error| at("wait to begin", error))?;
        if count == 0 {
            return Err(at("wait to begin", rustix::io::Errno::SRCH));
        }
        drop(ready);
        if order == [OBSERVED] {
            rustix::thread::set_no_new_privs(true).map_err(|error| at("give up privileges", error))?;
            kernel::set_filter(&table::numbers(), table::LAST)
                .map_err(|error| at("set the filter", error))?;
        }
        Ok(())
    };
    match prepared() {
        Ok(()) => entry::become_program(&spec.call),
        Err(refusal) => refusal,
    }
}

fn plain(child: Pid) -> Result<i32, Refusal> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(entry::code(status)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(at("wait", error)),
        }
    }
}

/// Sends one line. A parent that is gone needs none: its end ends us.
fn answer(socket: &mut UnixStream, report: &Report) {
    if let Ok(text) = serde_json::to_string(report) {
        let _ = writeln!(socket, "{text}");
    }
}

fn at(step: impl Into<String>, error: impl Into<std::io::Error>) -> Refusal {
    Refusal::at(Kind::Start, step, error)
}
