//! The small binary `requal`: all that needs no toolchain.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use requal::verify_command::{self, Verify};

/// Checks what was built and from what, without trusting who built it.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Verifies the receipts of a folder: as far as the evidence goes, or up to a level
    Verify(Verify),
}

fn main() -> ExitCode {
    let Command::Verify(arguments) = Cli::parse().command;
    let outcome = verify_command::run(&arguments);
    ExitCode::from(verify_command::print(outcome, arguments.format).code())
}
