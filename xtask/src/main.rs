//! `cargo xtask …`: parse, dispatch, exit code.

use std::process::ExitCode;

use clap::Parser as _;
use xtask::cli::{self, Cli};
use xtask::sys::{interrupt, sandbox, trace};

fn main() -> ExitCode {
    sandbox::enter_if_asked();
    trace::enter_if_asked();
    if let Err(failure) = interrupt::watch() {
        anstream::eprint!("{failure}");
        return ExitCode::from(failure.exit.code());
    }
    ExitCode::from(cli::run(&Cli::parse()))
}
