//! Writing files: a final name is reached only by rename, so what has its name is whole.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
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
    // Others may read what is published, whatever the umask.
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// As [`write`], but a file that already has these bytes stays untouched.
///
/// # Errors
/// `E-IO`.
pub fn write_if_other(path: &Utf8Path, bytes: &[u8]) -> Outcome<()> {
    if path.is_file() && fs_err::read(path)? == bytes { Ok(()) } else { write(path, bytes) }
}

/// A private folder beside a tree, on the same file system, where files get content, mode and mtime before they get their
/// name. It goes when dropped; what a killed run left is removed by the next one.
#[derive(Debug)]
pub struct Staging {
    folder: Utf8PathBuf,
}

impl Staging {
    /// An empty staging folder beside `root`; `root`'s parent is made if it is missing.
    ///
    /// # Errors
    /// `E-IO`.
    pub fn beside(root: &Utf8Path) -> Outcome<Self> {
        let name = root.file_name().unwrap_or("tree");
        let folder = root.with_file_name(format!(".staging-{name}"));
        if let Some(parent) = root.parent() {
            fs_err::create_dir_all(parent)?;
        }
        remove(&folder)?;
        make_folder(&folder)?;
        Ok(Self { folder })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // A folder that stays is removed by the next run, which reports why it cannot.
        let _ = remove(&self.folder);
    }
}

/// Makes the staged file `path`: `fill` writes its bytes, then it gets `mode` and `mtime_s`. It is not synced: whoever uses a
/// tree checks its content first.
///
/// # Errors
/// `E-IO`, or what `fill` fails with.
pub fn new_file(
    path: &Utf8Path,
    mode: u32,
    mtime_s: i64,
    fill: impl FnOnce(&mut fs_err::File) -> Outcome<()>,
) -> Outcome<()> {
    let mut file = fs_err::OpenOptions::new().write(true).create_new(true).open(path)?;
    fill(&mut file)?;
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    let since_1970 = Duration::from_secs(u64::try_from(mtime_s).unwrap_or_default());
    Ok(file.file().set_modified(UNIX_EPOCH + since_1970)?)
}

/// Removes a folder that this tool made, if it is there, without following links.
///
/// # Errors
/// `E-IO`.
pub fn remove(folder: &Utf8Path) -> Outcome<()> {
    match fs_err::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Makes `folder` with mode 0755, whatever the umask; its parent exists.
///
/// # Errors
/// `E-IO`.
pub fn make_folder(folder: &Utf8Path) -> Outcome<()> {
    match fs_err::create_dir(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    let mode = std::fs::Permissions::from_mode(0o755);
    if fs_err::symlink_metadata(folder)?.permissions().mode() & 0o7777 != 0o755 {
        fs_err::set_permissions(folder, mode)?;
    }
    Ok(())
}

/// Gives the finished file or link `staged` its final name.
///
/// # Errors
/// `E-IO`.
pub fn rename(staged: &Utf8Path, path: &Utf8Path) -> Outcome<()> {
    Ok(fs_err::rename(staged, path)?)
}

/// The names in `folder`, sorted.
///
/// # Errors
/// `E-IO`.
pub fn names(folder: &Utf8Path) -> Outcome<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
