//! The loop that observes: waits for the next stop of any process of the tree, asks what it is, and lets it go on.

use std::collections::HashMap;

use requal::observation::Observation;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};

use super::calls;
use super::kernel::{self, Asked as Stop, Resume};
use super::notes::{Asked, End, Notes, Opening, Question};
use super::table::Act;

/// Event of a stop that belongs to no other: a new process, or a signal that stops (linux/ptrace.h).
const EVENT_STOP: i32 = 128;
/// Marks a stop at the end of a call.
const CALL_BIT: i32 = 0x80;

/// One observed thread.
#[derive(Debug, Default)]
pub(super) struct Task {
    /// The call that it is in.
    pub(super) pending: Option<Pending>,
    /// Its working folder, until any process changes one.
    pub(super) folder: Option<String>,
    /// Whether its memory is shared with another thread that runs.
    pub(super) threaded: bool,
}

/// A call between its beginning and its end.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) act: Act,
    pub(super) asked: Vec<Asked>,
    pub(super) opening: Opening,
    pub(super) question: Option<Question>,
    /// Arguments of a program to be started, if they could be read.
    pub(super) argv: Option<Vec<String>>,
    /// A path could not be read from memory; that is right only if the kernel says so too.
    pub(super) unreadable: bool,
}

/// The tree under observation.
#[derive(Debug, Default)]
pub(super) struct Tracer {
    pub(super) tasks: HashMap<Pid, Task>,
    pub(super) notes: Notes,
}

impl Tracer {
    /// Observes `root`, which was seized, until it has ended. Processes that outlive it are killed: what they would still
    /// do to the result nobody could know.
    pub(super) fn run(mut self, root: Pid) -> std::io::Result<(WaitStatus, Observation)> {
        self.tasks.insert(root, Task::default());
        let mut ended = None;
        loop {
            let options = if ended.is_some() { WaitOptions::NOHANG } else { WaitOptions::empty() };
            match wait(options) {
                Ok(Some((pid, status))) if status.exited() || status.signaled() => {
                    self.tasks.remove(&pid);
                    if pid == root {
                        ended = Some(status);
                    }
                }
                Ok(Some((pid, status))) => self.stopped(pid, status.as_raw())?,
                Ok(None) if !self.tasks.is_empty() => self.end_survivors()?,
                Ok(None) | Err(rustix::io::Errno::CHILD) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let status = ended.ok_or_else(|| std::io::Error::other("the observed program has no end"))?;
        let mut seen = self.notes.seen;
        seen.stats.retain(|place| !seen.opened.contains(place) && !seen.listed.contains(place));
        Ok((status, seen))
    }

    fn end_survivors(&mut self) -> std::io::Result<()> {
        self.notes.gap("a process outlived the program, and was killed");
        for &pid in self.tasks.keys() {
            // One that has just ended is no error.
            let _ = kill_process(pid, Signal::KILL);
        }
        while !self.tasks.is_empty() {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if status.exited() || status.signaled() => {
                    self.tasks.remove(&pid);
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CHILD) => self.tasks.clear(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Handles one stop. A process that is killed meanwhile does not answer any more; its end is reported next.
    fn stopped(&mut self, pid: Pid, status: i32) -> std::io::Result<()> {
        let (signal, event) = ((status >> 8) & 0xff, status >> 16);
        self.tasks.entry(pid).or_default();
        let next = match event {
            0 if signal == libc::SIGTRAP | CALL_BIT => self.call_ends(pid).map(|()| (Resume::Run, 0)),
            0 => Ok((self.on(pid), signal)),
            libc::PTRACE_EVENT_SECCOMP => self.call_begins(pid).map(|how| (how, 0)),
            libc::PTRACE_EVENT_EXEC => self.starts(pid).map(|()| (Resume::Run, 0)),
            libc::PTRACE_EVENT_CLONE => self.divides(pid).map(|()| (self.on(pid), 0)),
            EVENT_STOP if signal != libc::SIGTRAP => Ok((Resume::Listen, 0)),
            _ => Ok((self.on(pid), 0)),
        };
        let resumed = next.and_then(|(how, signal)| kernel::resume(pid, how, signal));
        match resumed {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(error),
            _ => Ok(()),
        }
    }

    /// How a process goes on at a stop that is not about a call: to the end of the call that it may be in.
    fn on(&self, pid: Pid) -> Resume {
        let waits = self.tasks.get(&pid).is_some_and(|task| task.pending.is_some());
        if waits { Resume::ToEnd } else { Resume::Run }
    }

    fn call_begins(&mut self, pid: Pid) -> std::io::Result<Resume> {
        let Stop::Call { native, number, args } = kernel::asked(pid)? else {
            return Err(std::io::Error::other("a call without a number"));
        };
        if !native {
            self.notes.gap(format!("made the 32-bit system call {number}"));
            return Ok(Resume::Run);
        }
        let pending = calls::begin(self, pid, number, args);
        let how = if pending.is_some() { Resume::ToEnd } else { Resume::Run };
        self.tasks.entry(pid).or_default().pending = pending;
        Ok(how)
    }

    fn call_ends(&mut self, pid: Pid) -> std::io::Result<()> {
        let Stop::End(value) = kernel::asked(pid)? else {
            return Err(std::io::Error::other("the end of a call without a result"));
        };
        let Some(call) = self.tasks.entry(pid).or_default().pending.take() else { return Ok(()) };
        let end = End::of(value);
        if call.unreadable && end != End::Nothing {
            self.notes.gap("a path could not be read from memory, and the kernel took it");
            return Ok(());
        }
        // Another thread may write where the path stands, between our reading and the kernel's.
        let mut now = Vec::new();
        for asked in call.asked.iter().filter(|asked| !asked.raw.is_empty()) {
            let read = kernel::read_string(pid, asked.address, calls::PATH_BYTES, &mut now);
            if read.is_err() || now != asked.raw {
                self.notes.gap(format!("the path {} changed during the call", asked.text));
            }
        }
        if matches!(call.act, Act::Enter | Act::EnterOpen | Act::Remove | Act::Move(_)) {
            // Threads may share a working folder, and any process may take it away or move it.
            self.tasks.values_mut().for_each(|task| task.folder = None);
        }
        match (call.act, &call.asked[..]) {
            (Act::Move(takes), [from, to]) => {
                self.notes.moved(pid, takes, from, to, end);
            }
            (Act::Connect, asked) => {
                if matches!(end, End::Done(_) | End::Refused(libc::EINPROGRESS)) {
                    self.notes.gap("talks to another process or machine through a socket");
                }
                if let [asked] = asked {
                    self.notes.one(pid, call.act, asked, call.opening, end, None);
                }
            }
            (act, [asked]) => self.notes.one(pid, act, asked, call.opening, end, call.question),
            _ => {}
        }
        Ok(())
    }

    /// A program was started; a thread other than the first takes over the first one's number by it.
    fn starts(&mut self, pid: Pid) -> std::io::Result<()> {
        let former = i32::try_from(kernel::message(pid)?).ok().and_then(Pid::from_raw).unwrap_or(pid);
        let mut task = self.tasks.remove(&former).unwrap_or_default();
        task.threaded = false;
        let call = task.pending.take();
        self.tasks.insert(pid, task);
        let Some(call) = call else {
            self.notes.gap("a program was started by an unknown call");
            return Ok(());
        };
        match call.argv {
            Some(argv) if !call.unreadable => self.notes.started(pid, call.asked.first(), argv),
            _ => self.notes.gap("path or arguments of a program could not be read"),
        }
        Ok(())
    }

    fn divides(&mut self, pid: Pid) -> std::io::Result<()> {
        let new = i32::try_from(kernel::message(pid)?).ok().and_then(Pid::from_raw);
        for pid in [Some(pid), new].into_iter().flatten() {
            self.tasks.entry(pid).or_default().threaded = true;
        }
        Ok(())
    }
}
