//! Writing files: a final name is reached only by rename, so what has its name is whole.

use std::io::Write as _;

use camino::Utf8Path;
use requal::Outcome;
use tempfile::NamedTempFile;

/// Writes `bytes` to `path` through a temporary file beside it. Missing parent folders are made.
///
/// # Errors
/// `E-IO` if a folder or file cannot be written.
pub fn write(path: &Utf8Path, bytes: &[u8]) -> Outcome<()> {
    let folder = path.parent().unwrap_or(Utf8Path::new("."));
    fs_err::create_dir_all(folder)?;
    let mut file = NamedTempFile::with_prefix_in(".part-", folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
