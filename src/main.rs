//! The small binary `requal`: all that needs no toolchain.

use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand};
use requal::explain_command;
use requal::verify_command::{self, Format, Verify};

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
    /// Says why a unit, or each unit of a module, was reused or compiled: root causes first
    Explain(Explain),
}

#[derive(Args)]
struct Explain {
    /// A module, a tree, or a unit by its source path
    name: String,
    /// Folder that holds runtime-build.json and object-reuse.json.gz
    #[arg(long, value_name = "DIR")]
    receipts: Utf8PathBuf,
    /// Form of what goes to standard output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

fn main() -> ExitCode {
    let (outcome, format) = match Cli::parse().command {
        Command::Verify(arguments) => (verify_command::run(&arguments), arguments.format),
        Command::Explain(Explain { name, receipts, format }) => {
            (explain_command::run(&receipts, &name, format), format)
        }
    };
    ExitCode::from(verify_command::print(outcome, format).code())
}
