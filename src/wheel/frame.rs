//! The zip of a wheel: an end record that ends the file, a central directory that ends at it, and local entries that tile
//! the bytes before the directory without gap or overlap. Both header sets must agree.

use rawzip::{ZipArchive, ZipFileHeaderRecord};

use super::{Fault, names};
use crate::{Failure, Failures, Outcome};

/// Most bytes that a wheel may unpack to.
pub const MAX_UNPACKED_BYTES: u64 = 1 << 31;
/// Most times that a wheel may grow by unpacking; the largest of the pinned wheels grows 5 times.
const MAX_GROWTH: u64 = 200;
const END_BYTES: usize = 22;
const LOCAL_BYTES: usize = 30;

/// How an entry's bytes are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Stored,
    Deflated,
}

/// The packed bytes of an entry and what its headers say about the unpacked ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'a> {
    pub(super) data: &'a [u8],
    pub(super) method: Method,
    pub(super) crc32: u32,
    pub(super) size_bytes: usize,
}

/// One entry whose two headers agree.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    /// Relative path without a final `/`.
    pub(super) path: String,
    pub(super) folder: bool,
    /// Permission bits after the owner's r and x were copied to group and other.
    pub(super) mode: u32,
    pub(super) packed: Packed<'a>,
}

/// What the end record says.
struct End {
    entries: usize,
    directory: usize,
}

/// Two places of the archive that one entry takes: where its local header begins and where its data end.
struct Span {
    name: String,
    start: usize,
    end: usize,
}

/// All entries of the wheel `file`, in the order of the central directory.
pub(super) fn entries<'a>(file: &str, bytes: &'a [u8]) -> Outcome<Vec<Entry<'a>>> {
    let frame = |fault: Fault| fault.at("E-ZIP-FRAME", file, "the archive");
    let end = end(bytes).map_err(frame)?;
    let archive = ZipArchive::from_slice(bytes).map_err(|error| frame(Fault::new(error.to_string())))?;
    let (mut found, mut spans, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    let (mut count, mut unpacked_bytes, mut next) = (0, 0u64, end.directory);
    for header in archive.entries() {
        let header = header
            .map_err(|error| frame(Fault::new(format!("the central directory is damaged: {error}"))))?;
        count += 1;
        if header.central_directory_offset() != next as u64 {
            return Err(frame(Fault::new("the central directory has a gap")));
        }
        next += 46 + central_variable_bytes(bytes, next);
        unpacked_bytes = unpacked_bytes.saturating_add(header.uncompressed_size_hint());
        let shown = String::from_utf8_lossy(header.file_path().as_ref()).into_owned();
        match entry(bytes, end.directory, &header) {
            Ok((entry, start, end)) => {
                spans.push(Span { name: shown, start, end });
                found.push(entry);
            }
            Err((code, fault)) => failures.push(fault.at(code, file, &shown)),
        }
    }
    if count != end.entries || next != bytes.len() - END_BYTES {
        let fault =
            Fault::differs("the end record counts other entries than the directory has", end.entries, count);
        failures.push(frame(fault));
    }
    if unpacked_bytes > MAX_UNPACKED_BYTES.min((bytes.len() as u64).saturating_mul(MAX_GROWTH)) {
        let what = format!("{file}: {} bytes unpack to {unpacked_bytes}, more than is allowed", bytes.len());
        failures.push(Failure::refused("E-ZIP-BOMB", what));
    }
    if failures.is_empty() {
        failures.extend(tiling(file, bytes, spans, end.directory));
    }
    Failure::all(failures)?;
    Ok(found)
}

fn le16(bytes: &[u8], at: usize) -> usize {
    usize::from(bytes[at]) | usize::from(bytes[at + 1]) << 8
}

fn le32(bytes: &[u8], at: usize) -> usize {
    le16(bytes, at) | le16(bytes, at + 2) << 16
}

fn central_variable_bytes(bytes: &[u8], at: usize) -> usize {
    le16(bytes, at + 28) + le16(bytes, at + 30) + le16(bytes, at + 32)
}

/// The end record is the file's last 22 bytes: one disk, no comment, no zip64, the directory right before it.
fn end(bytes: &[u8]) -> Result<End, Fault> {
    let at = bytes
        .len()
        .checked_sub(END_BYTES)
        .ok_or_else(|| Fault::new("the file is shorter than an end record"))?;
    if !bytes[at..].starts_with(b"PK\x05\x06") {
        return Err(Fault::new("the file does not end with an end record: trailing data or a comment"));
    }
    if le16(bytes, at + 20) != 0 {
        return Err(Fault::new("the end record has a comment"));
    }
    let (disk, start_disk, here, all) =
        (le16(bytes, at + 4), le16(bytes, at + 6), le16(bytes, at + 8), le16(bytes, at + 10));
    if (disk, start_disk) != (0, 0) || here != all {
        return Err(Fault::new("the archive claims several disks"));
    }
    let (size, directory) = (le32(bytes, at + 12), le32(bytes, at + 16));
    if all == 0xffff || size == 0xffff_ffff || directory == 0xffff_ffff {
        return Err(Fault::new("the archive is zip64"));
    }
    if at >= 20 && bytes[at - 20..].starts_with(b"PK\x06\x07") {
        return Err(Fault::new("the archive has a zip64 locator"));
    }
    if directory + size != at {
        return Err(Fault::differs(
            "the central directory does not end at the end record",
            at,
            directory + size,
        ));
    }
    Ok(End { entries: all, directory })
}

type EntryFault = (&'static str, Fault);

/// The fields that stand in both headers: name, offset and length in the local one. The central one's lie 2 bytes later.
const SHARED: [(&str, usize, usize); 9] = [
    ("version needed", 4, 2),
    ("flags", 6, 2),
    ("method", 8, 2),
    ("time", 10, 4),
    ("CRC-32", 14, 4),
    ("packed size", 18, 4),
    ("unpacked size", 22, 4),
    ("length of the name", 26, 2),
    ("length of the extra field", 28, 2),
];

/// One entry, its place, or its fault.
fn entry<'a>(
    bytes: &'a [u8],
    directory: usize,
    header: &ZipFileHeaderRecord<'_>,
) -> Result<(Entry<'a>, usize, usize), EntryFault> {
    let raw = header.file_path();
    if let Some(fault) = names::fault(raw.as_ref()) {
        return Err(fault);
    }
    let method = plain(header)?;
    let central = usize::try_from(header.central_directory_offset()).unwrap_or(usize::MAX);
    let start = usize::try_from(header.local_header_offset()).unwrap_or(usize::MAX);
    let data = both_headers(&bytes[..directory], &bytes[central..], start, raw.as_ref())?;
    let packed_bytes = usize::try_from(header.compressed_size_hint()).unwrap_or(usize::MAX);
    let size_bytes = usize::try_from(header.uncompressed_size_hint()).unwrap_or(usize::MAX);
    let end = data.checked_add(packed_bytes).filter(|end| *end <= directory);
    let end =
        end.ok_or_else(|| ("E-ZIP-OVERLAP", Fault::new("its data reach into the central directory")))?;
    if method == Method::Stored && packed_bytes != size_bytes {
        return Err((
            "E-ZIP-DIFF",
            Fault::differs("stored bytes have another size", size_bytes, packed_bytes),
        ));
    }
    let (folder, mode) = mode(header, size_bytes, packed_bytes)?;
    let name = std::str::from_utf8(raw.as_ref()).unwrap_or_default();
    let packed = Packed { data: &bytes[data..end], method, crc32: header.crc32(), size_bytes };
    Ok((Entry { path: name.trim_end_matches('/').to_owned(), folder, mode, packed }, start, end))
}

/// Stored or deflated, without flags but the UTF-8 one, without comment, extra field or second disk.
fn plain(header: &ZipFileHeaderRecord<'_>) -> Result<Method, EntryFault> {
    let (flags, method) = (header.flags(), header.compression_method().as_u16());
    if flags.is_encrypted() || flags.has_strong_encryption() || flags.is_masked() {
        return Err(("E-ZIP-METHOD", Fault::new("the entry is encrypted")));
    }
    if flags.has_data_descriptor() {
        return Err((
            "E-ZIP-METHOD",
            Fault::new("the entry has a data descriptor: sizes must stand in its headers"),
        ));
    }
    if flags.bits() & !0x0800 != 0 {
        return Err((
            "E-ZIP-METHOD",
            Fault::new(format!("the entry has unknown flags {:#06x}", flags.bits())),
        ));
    }
    let mut extra = header.extra_fields();
    if !extra.remaining_bytes().is_empty() {
        let id = extra.next().map_or(0xffff, |(id, _)| id.as_u16());
        let code = if id == 0x7075 { "E-ZIP-NAME" } else { "E-ZIP-EXTRA" };
        return Err((code, Fault::new(format!("the entry has an extra field {id:#06x}"))));
    }
    if !header.comment().as_bytes().is_empty() {
        return Err(("E-ZIP-EXTRA", Fault::new("the entry has a comment")));
    }
    match method {
        0 => Ok(Method::Stored),
        8 => Ok(Method::Deflated),
        _ => Err((
            "E-ZIP-METHOD",
            Fault::differs("packed by another method", "stored (0) or deflated (8)", method),
        )),
    }
}

/// Where the data begin, if the local header at `start` says what the central one says.
fn both_headers(before: &[u8], central: &[u8], start: usize, name: &[u8]) -> Result<usize, EntryFault> {
    let local =
        before.get(start..).filter(|local| local.len() >= LOCAL_BYTES && local.starts_with(b"PK\x03\x04"));
    let Some(local) = local else {
        return Err(("E-ZIP-DIFF", Fault::new(format!("no local header at byte {start}"))));
    };
    if le16(central, 34) != 0 {
        return Err(("E-ZIP-FRAME", Fault::new("the entry lies on another disk")));
    }
    for (field, at, length) in SHARED {
        let (here, there) = (&local[at..at + length], &central[at + 2..at + 2 + length]);
        if here != there {
            let value = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
            let what = format!("{field} differs between the central and the local header");
            return Err(("E-ZIP-DIFF", Fault::differs(what, value(there), value(here))));
        }
    }
    let local_name = local.get(LOCAL_BYTES..LOCAL_BYTES + name.len()).unwrap_or_default();
    if local_name != name {
        let shown = |name: &[u8]| String::from_utf8_lossy(name).escape_debug().to_string();
        let what = "the name differs between the central and the local header";
        return Err(("E-ZIP-DIFF", Fault::differs(what, shown(name), shown(local_name))));
    }
    Ok(start + LOCAL_BYTES + name.len())
}

/// Whether the entry is a folder, and its permission bits: regular files and empty folders only, as Unix made them.
fn mode(header: &ZipFileHeaderRecord<'_>, size: usize, packed: usize) -> Result<(bool, u32), EntryFault> {
    let attributes = header.external_attributes();
    let (kind, bits) = (attributes >> 28, attributes >> 16 & 0o7777);
    let folder = header.is_dir();
    match (kind, folder) {
        (0o12, _) => return Err(("E-ZIP-SYMLINK", Fault::new("the entry is a symbolic link"))),
        (0o10, false) | (0o4, true) => {}
        _ => {
            let expected = if folder { "a folder (04)" } else { "a regular file (010)" };
            return Err((
                "E-ZIP-TYPE",
                Fault::differs("the entry has another file type", expected, format!("{kind:#o}")),
            ));
        }
    }
    if header.version_made_by().creator_system() != rawzip::CreatorSystem::UNIX {
        return Err(("E-ZIP-TYPE", Fault::new("the entry's mode was not made by a Unix system")));
    }
    if bits & 0o7000 != 0 || bits & 0o400 == 0 {
        return Err((
            "E-ZIP-MODE",
            Fault::new(format!("the mode {bits:04o} has special bits, or its owner cannot read")),
        ));
    }
    if folder && (size, packed, header.crc32()) != (0, 0, 0) {
        return Err(("E-ZIP-TYPE", Fault::new("the folder has content")));
    }
    let owner = bits >> 6 & 0o5;
    Ok((folder, bits & 0o200 | owner << 6 | owner << 3 | owner))
}

/// Sorted by place, entries begin where the one before ends; the first at 0, the last ends at the directory.
fn tiling(file: &str, bytes: &[u8], mut spans: Vec<Span>, directory: usize) -> Failures {
    spans.sort_by_key(|span| (span.start, span.end));
    let mut failures = Vec::new();
    let mut covered = 0;
    let close = Span { name: "the central directory".into(), start: directory, end: directory };
    for span in spans.iter().chain([&close]) {
        if span.start < covered {
            let fault = Fault::new(format!("overlaps the entry before it, which ends at byte {covered}"));
            failures.push(fault.at("E-ZIP-OVERLAP", file, &span.name));
        } else if span.start > covered {
            let local = bytes[covered..].starts_with(b"PK\x03\x04");
            let (code, what) = match local {
                true => ("E-ZIP-DIFF", "an entry before it stands in no directory"),
                false => ("E-ZIP-FRAME", "bytes before it belong to no entry"),
            };
            let fault = Fault::new(format!("{what} (bytes {covered} to {})", span.start));
            failures.push(fault.at(code, file, &span.name));
        }
        covered = covered.max(span.end);
    }
    failures
}
