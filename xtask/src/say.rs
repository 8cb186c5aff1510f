//! Words on standard error while a command runs: its stages, with `-v` the commands it starts too, with `-q` nothing.

use std::io::Write as _;
use std::sync::atomic::{AtomicI8, Ordering};

/// How much is said: -1 nothing, 0 stages, 1 commands too.
static LEVEL: AtomicI8 = AtomicI8::new(0);

/// Sets how much is said, from the number of `-v` and of `-q`.
pub fn set(verbose: u8, quiet: u8) {
    let level = i16::from(verbose) - i16::from(quiet);
    LEVEL.store(i8::try_from(level.clamp(-1, 1)).unwrap_or(0), Ordering::Relaxed);
}

/// Whether progress and stages are wanted.
#[must_use]
pub fn stages() -> bool {
    LEVEL.load(Ordering::Relaxed) >= 0
}

/// Says that a stage begins or what it found.
pub fn stage(words: &str) {
    if stages() {
        // A closed standard error is no reason to stop a build.
        let _ = writeln!(anstream::stderr(), "{words}");
    }
}

/// Says which command is started, ready to paste.
pub fn command(line: impl FnOnce() -> String) {
    if LEVEL.load(Ordering::Relaxed) > 0 {
        let _ = writeln!(anstream::stderr(), "+ {}", line());
    }
}
