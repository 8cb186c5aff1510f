//! A wheel, judged by one strict policy: the lock first, then the zip's two header sets, the names, RECORD, and every
//! byte of every entry. Anything odd is an error, never a skip.

mod content;
mod frame;
mod names;
mod record;

use std::io::{self, Write};

use crate::lock::Package;
use crate::tree::{Tree, TreeFile};
use crate::{Digest, Failure, Outcome, parallel};

use content::Stop;
pub use frame::MAX_UNPACKED_BYTES;

/// The bytes of a wheel that have the size and the SHA-256 of its pin. No zip is parsed before this.
#[derive(Clone, Debug)]
pub struct Pinned {
    package: Package,
    bytes: Vec<u8>,
}

/// A wheel's files as its RECORD and zip headers agree on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wheel {
    /// Normalised project name.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// File name of the wheel.
    pub file: String,
    /// Size of the wheel file.
    pub size_bytes: u64,
    /// SHA-256 of the wheel file, equal to the pin.
    pub sha256: Digest,
    /// SHA-256 of the wheel's RECORD.
    pub record_sha256: Digest,
    /// The wheel's files, RECORD included.
    pub tree: Tree,
}

/// A wheel whose frame, headers, names and RECORD were judged; the entries' bytes are judged by [`Archive::content`].
#[derive(Clone, Debug)]
pub struct Archive<'a> {
    /// What the wheel holds.
    pub wheel: Wheel,
    /// The packed bytes of each file, in the order of `wheel.tree.files`.
    packed: Vec<frame::Packed<'a>>,
}

/// Judges a whole wheel: its pin, its zip, its RECORD and every byte in it.
///
/// # Errors
/// `E-LOCK-SIZE`, `E-HASH-WHEEL`, `E-ZIP-*` or `E-RECORD-*` (exit 1), independent ones together.
pub fn judge(bytes: Vec<u8>, package: &Package) -> Outcome<Wheel> {
    let pinned = Pinned::new(bytes, package)?;
    let archive = pinned.open()?;
    let indices: Vec<usize> = (0..archive.wheel.tree.files.len()).collect();
    let contents = parallel::map(&indices, |&index| archive.content(index, &mut io::sink()));
    Failure::all(contents.into_iter().filter_map(Result::err).collect())?;
    Ok(archive.wheel)
}

impl Pinned {
    /// Compares `bytes` with the pin: size first, then SHA-256.
    ///
    /// # Errors
    /// `E-LOCK-SIZE` or `E-HASH-WHEEL` (exit 1).
    pub fn new(bytes: Vec<u8>, package: &Package) -> Outcome<Self> {
        if bytes.len() as u64 != package.size_bytes {
            let what = format!("size of {} differs from the lock", package.file);
            return Err(Failure::refused("E-LOCK-SIZE", what)
                .expected(format!("{} bytes{}", package.size_bytes, package.pin()))
                .found(format!("{} bytes", bytes.len())));
        }
        let sha256 = Digest::of(&bytes);
        if sha256 != package.sha256 {
            let what = format!("SHA-256 of {} differs from the lock", package.file);
            return Err(Failure::refused("E-HASH-WHEEL", what)
                .expected(format!("{}{}", package.sha256, package.pin()))
                .found(sha256));
        }
        Ok(Self { package: package.clone(), bytes })
    }

    /// The pin that the bytes have.
    #[must_use]
    pub fn package(&self) -> &Package {
        &self.package
    }

    /// Judges frame, headers, names and RECORD. No entry but RECORD is inflated.
    ///
    /// # Errors
    /// `E-ZIP-*` or `E-RECORD-*` (exit 1), independent ones together.
    pub fn open(&self) -> Outcome<Archive<'_>> {
        // The bytes are the pinned ones, so only another pin can help.
        self.headers()
            .map_err(|failure| failure.hint(format!("cargo xtask lock --update {}", self.package.name)))
    }

    fn headers(&self) -> Outcome<Archive<'_>> {
        let Self { package, bytes } = self;
        let entries = frame::entries(&package.file, bytes)?;
        names::check(&package.file, &entries)?;
        let (rows, record_sha256) = record::read(package, &entries)?;
        let files = entries.into_iter().filter(|entry| !entry.folder);
        let mut files: Vec<_> = files.zip(rows).collect();
        files.sort_by(|a, b| a.0.path.cmp(&b.0.path));
        let (packed, files): (Vec<_>, Vec<_>) = files
            .into_iter()
            .map(|(entry, sha256)| {
                let file = TreeFile {
                    path: entry.path,
                    mode: entry.mode,
                    size_bytes: entry.packed.size_bytes as u64,
                    sha256,
                };
                (entry.packed, file)
            })
            .unzip();
        let wheel = Wheel {
            name: package.name.clone(),
            version: package.version.clone(),
            file: package.file.clone(),
            size_bytes: package.size_bytes,
            sha256: package.sha256,
            record_sha256,
            tree: Tree::new(files),
        };
        Ok(Archive { wheel, packed })
    }
}

impl Archive<'_> {
    /// Writes the unpacked bytes of file `index` to `out`, piece by piece, and judges size, CRC-32 and SHA-256 on the way.
    /// What `out` holds after an error must not be used.
    ///
    /// # Errors
    /// `E-ZIP-DATA` or `E-RECORD-HASH` (exit 1); `E-IO` if `out` fails.
    pub fn content(&self, index: usize, out: &mut impl Write) -> Outcome<()> {
        let file = &self.wheel.tree.files[index];
        let hint = || format!("cargo xtask lock --update {}", self.wheel.name);
        let sha256 = content::unpack(&self.packed[index], out).map_err(|stop| match stop {
            Stop::Damaged(fault) => fault.at("E-ZIP-DATA", &self.wheel.file, &file.path).hint(hint()),
            Stop::Write(error) => error.into(),
        })?;
        if sha256 != file.sha256 {
            let what = format!("{}: SHA-256 of {} differs from RECORD", self.wheel.file, file.path);
            return Err(Failure::refused("E-RECORD-HASH", what)
                .expected(file.sha256)
                .found(sha256)
                .hint(hint()));
        }
        Ok(())
    }
}

/// What is wrong with one entry: the words, and expected against found where they say more.
#[derive(Debug)]
struct Fault {
    what: String,
    sides: Option<(String, String)>,
}

impl Fault {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), sides: None }
    }

    fn differs(what: impl Into<String>, expected: impl ToString, found: impl ToString) -> Self {
        Self { what: what.into(), sides: Some((expected.to_string(), found.to_string())) }
    }

    /// The refusal of `entry` of wheel `file` for this fault.
    fn at(self, code: &'static str, file: &str, entry: &str) -> Box<Failure> {
        let failure = Failure::refused(code, format!("{file}: {}: {}", entry.escape_debug(), self.what));
        match self.sides {
            Some((expected, found)) => failure.expected(expected).found(found),
            None => failure,
        }
    }
}
