//! Digests of large files, kept by what the file system says of the opened file, so that tools that every compile starts
//! are hashed once: device, inode, size, and the times of the last change of content and of anything at all. The last of
//! these cannot be set; a file that changed in the last seconds is hashed again, because clocks tick slower than writes.

use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use requal::closure::File;
use requal::{Digest, Outcome};

use crate::sys::{clock, fs};

/// Smaller files are hashed each time: that takes no longer than to look for a stamp.
const LARGE_BYTES: u64 = 1 << 18;
/// No file system in use has coarser times.
const SETTLED_S: i64 = 3;

/// A folder of stamps in a build folder.
pub(crate) struct Stamps(Utf8PathBuf);

impl Stamps {
    /// The stamps of `build`.
    pub(crate) fn of(build: &Utf8Path) -> Self {
        Self(build.join("stamp"))
    }

    /// The file at `path`, hashed from an opened descriptor.
    ///
    /// # Errors
    /// `E-IO`.
    pub(crate) fn file(&self, path: &Utf8Path) -> Outcome<File> {
        let file = fs_err::File::open(path)?;
        let of = file.metadata()?;
        let (size_bytes, mtime_s) = (of.len(), of.mtime());
        let times = format!("{}.{}-{}.{}", of.mtime(), of.mtime_nsec(), of.ctime(), of.ctime_nsec());
        let stamp = self.0.join(format!("{}-{}-{size_bytes}-{times}", of.dev(), of.ino()));
        let large = size_bytes >= LARGE_BYTES;
        if large && let Some(sha256) = read(&stamp) {
            return Ok(File { sha256, size_bytes, mtime_s });
        }
        let (sha256, size_bytes) = Digest::of_reader(&file)?;
        if large && of.ctime() + SETTLED_S < clock::unix_s() {
            fs::write(&stamp, sha256.to_string().as_bytes())?;
        }
        Ok(File { sha256, size_bytes, mtime_s })
    }
}

fn read(stamp: &Utf8Path) -> Option<Digest> {
    fs_err::read_to_string(stamp).ok()?.parse().ok()
}
