//! The `.nv_fatbin` section: which targets an object holds, and a digest of its device code, without NVIDIA's tools.
//!
//! Layout (facts/sandbox-and-formats.md, "Fatbin section"), little-endian. Header: u32 magic, u16 version 1, u16
//! header size 16, u64 size of what follows. Entry: u16 kind, u16 0x101, u32 header size, u64 padded payload size, at
//! 16 u32 compressed size, at 28 u32 architecture, at 40 u32 flags, at 56 u64 raw size.

use std::ops::Range;

use object::{Object as _, ObjectSection as _};

use crate::digest::{Digest, Hasher};
use crate::target::Target;
use crate::{Failure, Outcome};

const MAGIC: u32 = 0xBA55_ED50;
const ENTRY_VERSION: u16 = 0x101;
const ENTRY_HEADER_MIN: usize = 64;
const FLAG_ZSTD: u32 = 0x8000;
const FLAG_LZ4: u32 = 0x2000;
/// No kernel of ours is near this; a larger claimed size is a lie or not for this reader.
const RAW_SIZE_MAX: u64 = 1 << 30;

/// One entry of a fat binary, decompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is, and for which architecture.
    pub target: Target,
    /// The cubin (an ELF file) or the PTX text.
    pub payload: Vec<u8>,
    /// Versions and flags of its header, as bytes; neither sizes nor names nor options.
    pub header: Vec<u8>,
}

/// Reads all fat binaries of a `.nv_fatbin` section.
///
/// # Errors
/// `E-FATBIN` (refused) if the bytes are not of the known layout, `E-FATBIN-COMPRESSION` (could not judge) for a
/// compression other than zstd.
pub fn read(section: &[u8]) -> Outcome<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut rest = section;
    while !rest.is_empty() {
        if rest.len() < 8 && rest.iter().all(|&byte| byte == 0) {
            break;
        }
        let body;
        (body, rest) = split_binary(rest)?;
        let mut body = body;
        while !body.is_empty() {
            let entry;
            (entry, body) = split_entry(body)?;
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// SHA-256 over the device code of `entries`: for each target, in order, the named sections of each cubin that hold code,
/// constants or launch facts, and the PTX text. Ids and file names that nvcc derives from paths are blanked, so two builds at
/// different paths agree if and only if their code does.
///
/// # Errors
/// `E-FATBIN` if a cubin is not an ELF file.
pub fn code_digest(entries: &[Entry]) -> Outcome<Digest> {
    let mut parts = Vec::new();
    for entry in entries {
        let digest = match entry.target {
            Target::MachineCode(_) => cubin_digest(&entry.payload)?,
            Target::Ptx(_) => Digest::of(&ptx_code(&entry.payload)),
        };
        parts.push((entry.target, digest));
    }
    parts.sort_unstable();
    let mut hasher = Hasher::new();
    hasher.update(b"urn:requal:device-code:v1\0");
    for (target, digest) in parts {
        hasher.update(format!("{target}\0").as_bytes());
        hasher.update(digest.as_bytes());
    }
    Ok(hasher.finish())
}

fn split_binary(bytes: &[u8]) -> Outcome<(&[u8], &[u8])> {
    if u32_at(bytes, 0)? != MAGIC || u16_at(bytes, 4)? != 1 || u16_at(bytes, 6)? != 16 {
        return Err(bad("its header is not magic 0xBA55ED50, version 1, size 16"));
    }
    let size = to_usize(u64_at(bytes, 8)?)?;
    let end = size.checked_add(16).filter(|&end| end <= bytes.len()).ok_or_else(|| bad("it ends early"))?;
    Ok((&bytes[16..end], &bytes[end..]))
}

fn split_entry(bytes: &[u8]) -> Outcome<(Entry, &[u8])> {
    let (kind, version) = (u16_at(bytes, 0)?, u16_at(bytes, 2)?);
    let header = to_usize(u64::from(u32_at(bytes, 4)?))?;
    let padded = to_usize(u64_at(bytes, 8)?)?;
    let end = header
        .checked_add(padded)
        .filter(|&end| end <= bytes.len())
        .ok_or_else(|| bad("an entry ends early"))?;
    if version != ENTRY_VERSION || header < ENTRY_HEADER_MIN {
        return Err(bad(&format!("an entry has version {version:#x} and header size {header}")));
    }
    let capability = u32_at(bytes, 28)?;
    let target = match kind {
        1 => Target::Ptx(capability),
        2 => Target::MachineCode(capability),
        _ => return Err(bad(&format!("an entry is of unknown kind {kind}"))),
    };
    let payload =
        decompress(&bytes[header..end], u32_at(bytes, 16)?, u32_at(bytes, 40)?, u64_at(bytes, 56)?)?;
    let header = [&bytes[24..32], &bytes[40..56]].concat();
    Ok((Entry { target, payload, header }, &bytes[end..]))
}

fn decompress(stored: &[u8], compressed_bytes: u32, flags: u32, raw_bytes: u64) -> Outcome<Vec<u8>> {
    if flags & FLAG_LZ4 != 0 {
        return Err(Failure::could_not_judge(
            "E-FATBIN-COMPRESSION",
            "a fat binary is compressed in a way not known here",
        )
        .expected("zstd or no compression")
        .found(format!("entry flags {flags:#x}"))
        .hint("compile with --compress-mode=size or --compress-mode=none"));
    }
    if flags & FLAG_ZSTD == 0 {
        return Ok(stored.to_vec());
    }
    let frame =
        stored.get(..to_usize(u64::from(compressed_bytes))?).ok_or_else(|| bad("an entry ends early"))?;
    if raw_bytes > RAW_SIZE_MAX {
        return Err(bad(&format!("an entry claims {raw_bytes} bytes")));
    }
    let raw = zstd::bulk::decompress(frame, to_usize(raw_bytes)?).map_err(|error| bad(&error.to_string()))?;
    if raw.len() as u64 != raw_bytes {
        return Err(bad(&format!("an entry claims {raw_bytes} bytes and holds {}", raw.len())));
    }
    Ok(raw)
}

fn cubin_digest(cubin: &[u8]) -> Outcome<Digest> {
    let file = object::File::parse(cubin).map_err(|error| bad(&format!("a cubin is not ELF: {error}")))?;
    let mut sections = Vec::new();
    for section in file.sections() {
        let name = section.name().map_err(|error| bad(&error.to_string()))?;
        if [".text", ".nv.constant", ".nv.info", ".nv.global", ".nv.shared"]
            .iter()
            .any(|kept| name.starts_with(kept))
        {
            let data = section.data().map_err(|error| bad(&error.to_string()))?;
            sections.push((blank_ids(name.as_bytes()), section.size(), Digest::of(data)));
        }
    }
    sections.sort_unstable();
    let mut hasher = Hasher::new();
    for (name, size, digest) in sections {
        hasher.part(&name);
        hasher.update(&size.to_le_bytes());
        hasher.update(digest.as_bytes());
    }
    Ok(hasher.finish())
}

/// PTX without what names places: ids are blanked, and lines that only name a source file for the line table are left
/// out, with the zeros that fill the entry.
pub(crate) fn ptx_code(ptx: &[u8]) -> Vec<u8> {
    let lines = ptx.split_inclusive(|&byte| byte == b'\n');
    let counts = |line: &&[u8]| !names_a_file(line) && line.iter().any(|byte| !b" \0".contains(byte));
    blank_ids(&lines.filter(counts).collect::<Vec<_>>().concat())
}

/// `.file 1 "path"`, with or without mtime and size, and nothing else: PTX may hold several statements in a line.
fn names_a_file(line: &[u8]) -> bool {
    let plain = |text: &[u8]| text.iter().all(|byte| byte.is_ascii_digit() || b" \t,\n".contains(byte));
    let parts: Vec<&[u8]> =
        line.strip_prefix(b".file").unwrap_or_default().split(|&byte| byte == b'"').collect();
    matches!(parts[..], [index, _, rest] if plain(index) && plain(rest))
}

/// Blanks the hashes in `_GLOBAL__N__<8 hex>_<n>_<file>_<8 hex>`, the name of an anonymous namespace, and in
/// `_INTERNAL_…`, which stands for the file: the first is made from the source's path. In a unit without an external
/// definition the second is made from its mtime, and `_<process id>` follows, which is blanked too.
pub(crate) fn blank_ids(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for prefix in [&b"_GLOBAL__N__"[..], b"_INTERNAL_"] {
        let starts = bytes.windows(prefix.len()).enumerate().filter(|(_, window)| *window == prefix);
        for range in starts.filter_map(|(start, _)| id(bytes, start, prefix.len())).flatten() {
            out[range].fill(b'0');
        }
    }
    out
}

/// Where the two hashes and the process id, which may be empty, of the name lie that starts at `start` with a prefix of
/// `prefix` bytes. The name says how long the file's is, and the number before it how long it is itself; what stands
/// before that number may end in digits too.
fn id(bytes: &[u8], start: usize, prefix: usize) -> Option<[Range<usize>; 3]> {
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    let hash = |at: usize| bytes.get(at..at + 8).is_some_and(|hash| hash.iter().all(u8::is_ascii_hexdigit));
    let digits = |at: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        at..at + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let number = |digits: Range<usize>| std::str::from_utf8(bytes.get(digits)?).ok()?.parse::<usize>().ok();
    let path = start + prefix;
    let file = digits(path + 9);
    let time = number(file.clone())?.checked_add(file.end + 2).filter(|&time| time < bytes.len())?;
    if !(hash(path) && is(path + 8, b'_') && is(file.end, b'_') && is(time - 1, b'_') && hash(time)) {
        return None;
    }
    let end = time + 8;
    let process = if is(end, b'_') { digits(end + 1) } else { end..end };
    let before = bytes[..start].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let lengths = (start - before..start).filter_map(|from| number(from..start));
    let mut ends = lengths.map(|length| start.saturating_add(length));
    let stop = ends.find(|stop| *stop == end || (process.start + 1..=process.end).contains(stop))?;
    let process = if stop == end { end..end } else { process.start..stop };
    Some([path..path + 8, time..end, process])
}

fn bad(why: &str) -> Box<Failure> {
    Failure::refused("E-FATBIN", format!("a .nv_fatbin section is not of the known layout: {why}"))
        .hint("the object is damaged, or made by another nvcc than the pinned one: remove it and build again")
}

fn to_usize(value: u64) -> Outcome<usize> {
    usize::try_from(value).map_err(|_| bad("a size does not fit this machine"))
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Outcome<[u8; N]> {
    let slice = bytes.get(at..at + N).ok_or_else(|| bad("it ends early"))?;
    slice.try_into().map_err(|_| bad("it ends early"))
}

fn u16_at(bytes: &[u8], at: usize) -> Outcome<u16> {
    Ok(u16::from_le_bytes(array_at(bytes, at)?))
}

fn u32_at(bytes: &[u8], at: usize) -> Outcome<u32> {
    Ok(u32::from_le_bytes(array_at(bytes, at)?))
}

fn u64_at(bytes: &[u8], at: usize) -> Outcome<u64> {
    Ok(u64::from_le_bytes(array_at(bytes, at)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(kind: u16, capability: u32, payload: &[u8], flags: u32, raw_bytes: u64) -> Vec<u8> {
        let mut padded = payload.to_vec();
        padded.resize(payload.len().next_multiple_of(8), 0);
        let mut out = vec![0; 64];
        out[0..2].copy_from_slice(&kind.to_le_bytes());
        out[2..4].copy_from_slice(&ENTRY_VERSION.to_le_bytes());
        out[4..8].copy_from_slice(&64_u32.to_le_bytes());
        out[8..16].copy_from_slice(&(padded.len() as u64).to_le_bytes());
        out[16..20].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        out[28..32].copy_from_slice(&capability.to_le_bytes());
        out[40..44].copy_from_slice(&flags.to_le_bytes());
        out[56..64].copy_from_slice(&raw_bytes.to_le_bytes());
        out.extend(padded);
        out
    }

    fn binary(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut out = Vec::from(MAGIC.to_le_bytes());
        out.extend(1_u16.to_le_bytes());
        out.extend(16_u16.to_le_bytes());
        out.extend((body.len() as u64).to_le_bytes());
        out.extend(body);
        out
    }

    #[test]
    fn plain_and_zstd_entries_of_several_binaries_are_read() {
        let ptx = b".version 9.0\n.target sm_86\n".repeat(9);
        let packed = zstd::bulk::compress(&ptx, 3).unwrap();
        let mut section = binary(&[entry(1, 86, &packed, FLAG_ZSTD, ptx.len() as u64)]);
        section.extend(binary(&[entry(2, 90, b"8 bytes.", 0, 0)]));
        let entries = read(&section).unwrap();
        let found = |index: usize| (entries[index].target, entries[index].payload.clone());
        assert_eq!(found(0), (Target::Ptx(86), ptx));
        assert_eq!(found(1), (Target::MachineCode(90), b"8 bytes.".to_vec()));
    }

    #[test]
    fn lies_are_refused_and_unknown_compression_is_not_judged() {
        let good = binary(&[entry(2, 86, b"8 bytes.", 0, 0)]);
        for at in [0, 4, 6, 8, 16, 18, 20] {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            assert_eq!(read(&bad).unwrap_err().code, "E-FATBIN", "byte {at}");
        }
        assert_eq!(read(&good[..good.len() - 1]).unwrap_err().code, "E-FATBIN");
        let lz4 = read(&binary(&[entry(1, 86, b"8 bytes.", FLAG_LZ4, 8)])).unwrap_err();
        assert_eq!((lz4.code, lz4.exit), ("E-FATBIN-COMPRESSION", crate::Exit::CouldNotJudge));
        let bomb = read(&binary(&[entry(1, 86, b"8 bytes.", FLAG_ZSTD, u64::MAX)])).unwrap_err();
        assert_eq!(bomb.code, "E-FATBIN");
    }

    #[test]
    fn path_ids_are_blanked_and_nothing_else() {
        let name = b".text._ZN36_GLOBAL__N__94bfa3a4_4_k_cu_802c4e234kernEP6__half";
        assert_eq!(blank_ids(name), b".text._ZN36_GLOBAL__N__00000000_4_k_cu_000000004kernEP6__half");
        let variable = b"_ZN34_INTERNAL_51703369_4_k_cu_57f012b45tableE";
        assert_eq!(blank_ids(variable), b"_ZN34_INTERNAL_00000000_4_k_cu_000000005tableE");
        let closed = b"_ZN42_GLOBAL__N__9fadd08c_4_k_cu_225366fc_25199L5tableE";
        assert_eq!(blank_ids(closed), b"_ZN42_GLOBAL__N__00000000_4_k_cu_00000000_00000L5tableE");
        let both = b"_ZN34_INTERNAL_51703369_4_k_cu_57f012b436_GLOBAL__N__51703369_4_k_cu_57f012b45tableE";
        let blank = b"_ZN34_INTERNAL_00000000_4_k_cu_0000000036_GLOBAL__N__00000000_4_k_cu_000000005tableE";
        assert_eq!(blank_ids(both), blank);
        for kept in [&b".text._Z5otherPf"[..], b"36_GLOBAL__N__94bf", b"_GLOBAL__N__94bfa3a4_4_k_cu_802c4e23"]
        {
            assert_eq!(blank_ids(kept), kept);
        }
    }

    #[test]
    fn lines_of_ptx_that_name_a_file_are_left_out_and_nothing_else() {
        let code = b".loc\t1 2 0\nret;\n";
        for file in ["", ".file\t1 \"/a/k.cu\"\n", ".file 12 \"/b b/k.cu\", 1700000000, 99\n\0\0\0"] {
            assert_eq!(ptx_code(&[code, file.as_bytes()].concat()), code);
        }
        for kept in [".file 1 \"k.cu\" ret;\n", ".file 1 \"k\" \"\"\n", "; .file 1 \"k.cu\"\n", ".file 1 k\n"]
        {
            assert_eq!(ptx_code(kept.as_bytes()), kept.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(mut noise in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..100, byte: u8) {
            let _ = read(&noise);
            noise = binary(&[entry(2, 86, &noise, 0, 0)]);
            let at = at % noise.len();
            noise[at] = byte;
            if let Ok(entries) = read(&noise) {
                let _ = code_digest(&entries);
            }
        }
    }
}
