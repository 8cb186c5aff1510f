//! `qualify`: the main job, build and verdict.

use camino::Utf8PathBuf;
use requal::verify_command::{self, Format, Verify};
use requal::{Exit, Outcome};

use crate::build_runtime::{self, Options};
use crate::say;

/// Builds, then verifies what was built against the scratch.
///
/// # Errors
/// As [`build_runtime::run`] and [`requal::verify::verify`].
pub fn run(options: &Options, format: Format) -> Outcome<(String, Exit)> {
    let shown = build_runtime::run(options)?;
    let receipts: Utf8PathBuf = shown.receipt.parent().map(ToOwned::to_owned).unwrap_or_default();
    let (tree, wheelhouse) = (Some(options.scratch.clone()), options.origin.wheelhouse.clone());
    let arguments = Verify { receipts, level: Some(2), tree, wheelhouse, format };
    say::stage("verify the receipt against the scratch");
    let (verdict, exit) = verify_command::run(&arguments)?;
    let text = match format {
        Format::Text => format!("{shown}\n\n{verdict}"),
        Format::Json => verdict,
    };
    Ok((text, exit))
}
