//! The command `verify`, the same in `requal` and in `cargo xtask`.

use std::io::Write as _;

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};

use crate::verify::{self, Level, Request, Verdict};
use crate::{Exit, Failure, Outcome};

/// Arguments of `verify`.
#[derive(Clone, Debug, Args)]
pub struct Verify {
    /// Folder that holds runtime-build.json and what was published with it
    pub receipts: Utf8PathBuf,
    /// Level that must be reached: 0 well-formed, 1 consistent, 2 hashes verified, 3 statistics, 4 objects
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=4))]
    pub level: Option<u8>,
    /// Scratch of the build, for level 2
    #[arg(long, value_name = "DIR")]
    pub tree: Option<Utf8PathBuf>,
    /// Folder of wheels, where they are not in the scratch
    #[arg(long, value_name = "DIR")]
    pub wheelhouse: Option<Utf8PathBuf>,
    /// Form of the report on standard output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// Form of what goes to standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON value, errors too.
    Json,
}

/// Runs `verify` and gives what standard output gets, and the exit code.
///
/// # Errors
/// As [`verify::verify`].
pub fn run(arguments: &Verify) -> Outcome<(String, Exit)> {
    say(arguments, &verify::verify(&arguments.request())?)
}

impl Verify {
    /// What is to be verified.
    #[must_use]
    pub fn request(&self) -> Request {
        let level = self.level.map(|number| Level::ALL[usize::from(number)]);
        let (receipts, tree) = (self.receipts.clone(), self.tree.clone());
        Request { receipts, level, tree, wheelhouse: self.wheelhouse.clone() }
    }
}

/// What standard output gets for `verdict`, and the exit code.
///
/// # Errors
/// `E-SCHEMA` if the report has no JSON form.
pub fn say(arguments: &Verify, verdict: &Verdict) -> Outcome<(String, Exit)> {
    let report = verdict.report();
    let text = match arguments.format {
        Format::Text => report.to_string(),
        Format::Json => serde_json::to_string_pretty(&report).map(|text| text + "\n").map_err(|error| {
            Failure::could_not_judge("E-SCHEMA", "the report has no JSON form").found(error)
        })?,
    };
    Ok((text, verdict.exit()))
}

/// Prints what a command said or why it refused, and gives the exit code: an outcome that could not be printed is no
/// outcome (exit 3), and a reader that went away is not our fault.
#[must_use]
pub fn print(outcome: Outcome<(String, Exit)>, format: Format) -> Exit {
    let (text, exit, to_stdout) = match outcome {
        Ok((text, exit)) => (text, exit, true),
        Err(failure) => (shown(&failure, format), failure.exit, format == Format::Json),
    };
    let printed = match to_stdout {
        true => anstream::stdout().write_all(text.as_bytes()).and_then(|()| anstream::stdout().flush()),
        false => anstream::stderr().write_all(text.as_bytes()),
    };
    match printed {
        Err(error) if to_stdout && error.kind() != std::io::ErrorKind::BrokenPipe => Exit::CouldNotJudge,
        _ => exit,
    }
}

/// What standard error, or in JSON standard output, gets for `failure`.
#[must_use]
pub fn shown(failure: &Failure, format: Format) -> String {
    match format {
        Format::Text => failure.to_string(),
        Format::Json => format!("{}\n", serde_json::json!({ "error": failure })),
    }
}
