//! Failed attempts: each is kept in the scratch with its refusal and is named in the next receipt.

use camino::Utf8Path;
use requal::{Digest, Failure, Outcome};
use serde::{Deserialize, Serialize};

use crate::sys::fs;

/// Folder of the scratch that failed attempts are kept in.
pub const FOLDER: &str = "attempts";

/// A failed attempt as it is kept: one JSON file each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// Start of the attempt, RFC 3339.
    pub started_on: String,
    /// The exit code with which it ended.
    pub exit: u8,
    /// Its code, such as `E-BUILD`.
    pub code: String,
    /// The refusal, as it was printed: it names paths and stays in the scratch.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub refusal: String,
}

impl Attempt {
    /// What of it is published: everything but the words, which name paths of the machine.
    ///
    /// # Errors
    /// `E-IO`.
    pub fn public(&self) -> Outcome<Vec<u8>> {
        let public = Self { refusal: String::new(), ..self.clone() };
        Ok(serde_json::to_vec_pretty(&public).map_err(std::io::Error::from)?)
    }
}

/// An attempt and the file that keeps it.
#[derive(Clone, Debug)]
pub struct Kept {
    /// File name below [`FOLDER`].
    pub file: String,
    /// What it says.
    pub attempt: Attempt,
}

/// Keeps the attempt that began at `started_on` and ended with `failure`.
///
/// # Errors
/// `E-IO`.
pub fn keep(scratch: &Utf8Path, started_on: &str, failure: &Failure) -> Outcome<()> {
    let attempt = Attempt {
        started_on: started_on.to_owned(),
        exit: failure.exit.code(),
        code: failure.code.to_owned(),
        refusal: failure.to_string(),
    };
    let json = serde_json::to_vec_pretty(&attempt).map_err(std::io::Error::from)?;
    let name = format!("{}-{}.json", started_on.replace(':', ""), &Digest::of(&json).to_string()[..8]);
    fs::write(&scratch.join(FOLDER).join(name), &json)
}

/// All kept attempts, oldest first.
///
/// # Errors
/// `E-ATTEMPT` if a file cannot be read back.
pub fn all(scratch: &Utf8Path) -> Outcome<Vec<Kept>> {
    let folder = scratch.join(FOLDER);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut kept = Vec::new();
    for entry in folder.read_dir_utf8()? {
        let path = entry?.into_path();
        let bytes = fs_err::read(&path)?;
        let attempt = serde_json::from_slice(&bytes).map_err(|error| {
            Failure::could_not_judge("E-ATTEMPT", format!("{path} is no record of a failed attempt"))
                .found(error)
                .hint(format!("look at it, then remove it: rm {path}"))
        })?;
        let file = path.file_name().unwrap_or_default().to_owned();
        kept.push(Kept { file, attempt });
    }
    kept.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(kept)
}
