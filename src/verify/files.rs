//! Reading files that nobody vouches for: regular files only, no links followed, sizes bounded, each read once.

use std::fs::Metadata;
use std::io::Read as _;

use camino::Utf8Path;
use fs_err::File;

use crate::{Digest, Failure, Outcome};

/// Largest wheel, object or module that is read whole.
const MOST_JUDGED_BYTES: u64 = 4 << 30;

/// Refuses `path` unless it is a folder itself, no link to one.
///
/// # Errors
/// `E-INPUT-TYPE` (exit 2).
pub(super) fn folder(path: &Utf8Path) -> Outcome<()> {
    match fs_err::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(metadata) => Err(wrong_type(path, "a folder", kind_of(&metadata))),
        Err(error) => Err(wrong_type(path, "a folder", &error.to_string())),
    }
}

/// The bytes of the regular file `path`, at most `most_bytes`; `None` if there is nothing.
///
/// # Errors
/// `E-INPUT-TYPE` or `E-INPUT-SIZE` (exit 2), `E-IO` (exit 3).
pub(super) fn bytes(path: &Utf8Path, most_bytes: u64) -> Outcome<Option<Vec<u8>>> {
    let metadata = match fs_err::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !metadata.is_file() {
        return Err(wrong_type(path, "a regular file", kind_of(&metadata)));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(Failure::bad_input("E-INPUT-SIZE", format!("{path} is too large for a receipt"))
            .expected(format!("at most {most_bytes} bytes"))
            .found(format!("{} bytes", metadata.len()))
            .hint("give the folder that holds receipts alone"));
    }
    Ok(Some(bytes))
}

/// What a file on disk is, as far as a receipt speaks of it.
pub(super) struct Seen {
    /// SHA-256 of the content.
    pub(super) sha256: Digest,
    /// Size of the content.
    pub(super) size_bytes: u64,
    /// Permission bits.
    pub(super) mode: u32,
}

/// Why a file was not read.
pub(super) enum Unseen {
    /// There is nothing at this path.
    Absent,
    /// It is no regular file.
    Type(&'static str),
    /// Its size already differs.
    Size(u64),
    /// It could not be read.
    Error(std::io::Error),
}

/// Hashes the regular file `path` if it has `size_bytes`. Links are followed only with `follow`.
pub(super) fn hash(path: &Utf8Path, size_bytes: Option<u64>, follow: bool) -> Result<Seen, Unseen> {
    let (file, metadata) = open(path, size_bytes, follow)?;
    let (sha256, size_bytes) = Digest::of_reader(file.take(metadata.len() + 1)).map_err(Unseen::Error)?;
    Ok(Seen { sha256, size_bytes, mode: mode(&metadata) })
}

/// The bytes of the regular file `path`, no link to one, if it has `size_bytes` and they are not too many to be judged.
pub(super) fn read(path: &Utf8Path, size_bytes: u64) -> Result<Vec<u8>, Unseen> {
    if size_bytes > MOST_JUDGED_BYTES {
        let what = format!("more than the {MOST_JUDGED_BYTES} bytes that are judged in memory");
        return Err(Unseen::Error(std::io::Error::other(what)));
    }
    let (file, _) = open(path, Some(size_bytes), false)?;
    let mut bytes = Vec::with_capacity(usize::try_from(size_bytes).unwrap_or_default());
    file.take(size_bytes + 1).read_to_end(&mut bytes).map_err(Unseen::Error)?;
    if bytes.len() as u64 != size_bytes {
        return Err(Unseen::Size(bytes.len() as u64));
    }
    Ok(bytes)
}

/// Opens the regular file `path` if it has `size_bytes`.
fn open(path: &Utf8Path, size_bytes: Option<u64>, follow: bool) -> Result<(File, Metadata), Unseen> {
    let metadata = if follow { fs_err::metadata(path) } else { fs_err::symlink_metadata(path) };
    let metadata = metadata.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Unseen::Absent,
        _ => Unseen::Error(error),
    })?;
    if !metadata.is_file() {
        return Err(Unseen::Type(kind_of(&metadata)));
    }
    if size_bytes.is_some_and(|expected| expected != metadata.len()) {
        return Err(Unseen::Size(metadata.len()));
    }
    Ok((File::open(path).map_err(Unseen::Error)?, metadata))
}

fn mode(metadata: &Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o7777
}

fn kind_of(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_file() {
        "a regular file"
    } else {
        "a device, pipe or socket"
    }
}

fn wrong_type(path: &Utf8Path, expected: &str, found: &str) -> Box<Failure> {
    Failure::bad_input("E-INPUT-TYPE", format!("{path} is not {expected}"))
        .expected(expected)
        .found(found)
        .hint("give the real path; links and devices are not followed")
}
