//! The small binary `requal`: all that needs no toolchain.

use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::{Parser, Subcommand, ValueEnum};
use requal::verify::{self, Level, Request};
use requal::{Failure, Outcome};

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
    Verify {
        /// Folder that holds runtime-build.json and what was published with it
        receipts: Utf8PathBuf,
        /// Level that must be reached: 0 well-formed, 1 consistent, 2 hashes verified, 3 statistics, 4 objects
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=4))]
        level: Option<u8>,
        /// Scratch of the build, for level 2
        #[arg(long, value_name = "DIR")]
        tree: Option<Utf8PathBuf>,
        /// Folder of wheels, where they are not in the scratch
        #[arg(long, value_name = "DIR")]
        wheelhouse: Option<Utf8PathBuf>,
        /// Form of the report on standard output
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

fn main() -> ExitCode {
    let Command::Verify { receipts, level, tree, wheelhouse, format } = Cli::parse().command;
    let level = level.map(|number| Level::ALL[usize::from(number)]);
    let request = Request { receipts, level, tree, wheelhouse };
    match run(&request, format) {
        Ok(exit) => ExitCode::from(exit),
        Err(failure) => {
            if format == Format::Json {
                anstream::println!("{}", serde_json::json!({ "error": failure }));
            } else {
                anstream::eprint!("{failure}");
            }
            ExitCode::from(failure.exit.code())
        }
    }
}

fn run(request: &Request, format: Format) -> Outcome<u8> {
    let verdict = verify::verify(request)?;
    let report = verdict.report();
    match format {
        Format::Text => anstream::print!("{report}"),
        Format::Json => {
            let text = serde_json::to_string_pretty(&report).map_err(|error| {
                Failure::could_not_judge("E-SCHEMA", "the report has no JSON form").found(error)
            })?;
            anstream::println!("{text}");
        }
    }
    Ok(report.exit)
}
