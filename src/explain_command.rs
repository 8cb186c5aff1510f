//! The command `explain`, the same in `requal` and in `cargo xtask`.

use std::collections::BTreeMap;

use camino::Utf8Path;

use crate::explain::explain;
use crate::verify_command::Format;
use crate::{Exit, Failure, Outcome, verify};

/// Explains the unit or module `name` from the certificate in the folder `receipts`.
///
/// # Errors
/// As [`verify::published`] and [`explain`].
pub fn run(receipts: &Utf8Path, name: &str, format: Format) -> Outcome<(String, Exit)> {
    let published = verify::published(receipts)?;
    let modules = published.receipt.predicate.build.modules.iter();
    let trees: BTreeMap<String, String> =
        modules.map(|module| (module.name.to_string(), module.tree.to_string())).collect();
    let explanation = explain(&published.certificate.record.predicate, name, &trees)?;
    let text = match format {
        Format::Text => format!("{explanation}\n"),
        Format::Json => {
            serde_json::to_string_pretty(&explanation).map(|text| text + "\n").map_err(|error| {
                Failure::could_not_judge("E-SCHEMA", "the explanation has no JSON form").found(error)
            })?
        }
    };
    Ok((text, Exit::Success))
}
