//! SIGINT and SIGTERM: the running children are ended first, then the stages see a flag and stop.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use requal::{Exit, Failure, Outcome};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGINT, SIGTERM};

static SEEN: AtomicBool = AtomicBool::new(false);
/// The running children by process descriptor: a number could be reused, a descriptor cannot.
static RUNNING: Mutex<Vec<(Pid, OwnedFd)>> = Mutex::new(Vec::new());

/// A child that a signal to us ends; dropped when the child has ended.
#[derive(Debug)]
pub(super) struct Registered(Pid);

/// Takes over SIGINT and SIGTERM for the rest of the process. A second signal kills what the first did not end.
///
/// # Errors
/// `E-IO` if the handlers cannot be set.
pub fn watch() -> Outcome<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            let again = SEEN.swap(true, Ordering::SeqCst);
            for (_, child) in running().iter() {
                // A child that has ended meanwhile is no error.
                let _ = pidfd_send_signal(child, if again { Signal::KILL } else { Signal::TERM });
            }
            if again {
                // The main thread may stand in a call that never returns; what has its name is whole anyway.
                std::process::exit(Exit::Interrupted.code().into());
            }
        }
    });
    Ok(())
}

/// Refuses to go on once a signal was seen; each stage asks between its steps.
///
/// # Errors
/// `E-INTERRUPTED` (exit 130).
pub fn check() -> Outcome<()> {
    if SEEN.load(Ordering::SeqCst) {
        return Err(Failure::new(Exit::Interrupted, "E-INTERRUPTED", "interrupted by a signal")
            .hint("run the same command again; what is finished is kept"));
    }
    Ok(())
}

/// Registers a child that was just started and is not yet waited for.
pub(super) fn register(pid: u32) -> Outcome<Option<Registered>> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    let child = pidfd_open(pid, PidfdFlags::empty()).map_err(std::io::Error::from)?;
    if SEEN.load(Ordering::SeqCst) {
        let _ = pidfd_send_signal(&child, Signal::TERM);
    }
    running().push((pid, child));
    Ok(Some(Registered(pid)))
}

impl Drop for Registered {
    fn drop(&mut self) {
        running().retain(|(pid, _)| *pid != self.0);
    }
}

fn running() -> MutexGuard<'static, Vec<(Pid, OwnedFd)>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
