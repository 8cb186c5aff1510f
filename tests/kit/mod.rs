//! Builds small wheels byte by byte, whole or with one chosen fault.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::allow_attributes,
    reason = "each test file uses a part of the kit"
)]

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use requal::Digest;
use requal::lock::{Package, Role};

/// One entry of a zip, as both headers describe it.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: Vec<u8>,
    pub content: Vec<u8>,
    /// File type and permission bits.
    pub mode: u32,
    pub flags: u16,
    /// 0 or 8; another method is only claimed.
    pub method: u16,
    pub extra: Vec<u8>,
    pub comment: Vec<u8>,
    /// Whether the central directory lists it.
    pub listed: bool,
}

/// A zip and where its headers begin.
#[derive(Clone, Debug)]
pub struct Zip {
    pub bytes: Vec<u8>,
    pub local: Vec<usize>,
    /// One a listed entry.
    pub central: Vec<usize>,
    pub end: usize,
}

impl Entry {
    /// A regular file of mode 0644, deflated.
    pub fn file(name: &str, content: &[u8]) -> Self {
        Self {
            name: name.into(),
            content: content.into(),
            mode: 0o100_644,
            flags: 0,
            method: 8,
            extra: vec![],
            comment: vec![],
            listed: true,
        }
    }

    /// The same entry with another type and mode.
    pub fn mode(self, mode: u32) -> Self {
        Self { mode, ..self }
    }

    /// The same entry, stored.
    pub fn stored(self) -> Self {
        Self { method: 0, ..self }
    }

    fn packed(&self) -> Vec<u8> {
        if self.method != 8 {
            return self.content.clone();
        }
        let mut encoder = flate2::write::DeflateEncoder::new(vec![], flate2::Compression::default());
        encoder.write_all(&self.content).unwrap();
        encoder.finish().unwrap()
    }

    /// The 26 bytes that both headers share.
    fn shared(&self) -> Vec<u8> {
        let mut crc = flate2::Crc::new();
        crc.update(&self.content);
        let packed = u32::try_from(self.packed().len()).unwrap();
        let size = u32::try_from(self.content.len()).unwrap();
        let mut bytes = 20u16.to_le_bytes().to_vec();
        bytes.extend(self.flags.to_le_bytes());
        bytes.extend(self.method.to_le_bytes());
        bytes.extend(0x5a21_0000u32.to_le_bytes());
        for field in [crc.sum(), packed, size] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(u16::try_from(self.name.len()).unwrap().to_le_bytes());
        bytes.extend(u16::try_from(self.extra.len()).unwrap().to_le_bytes());
        bytes
    }
}

/// The zip of `entries`, as a plain writer would make it.
pub fn zip(entries: &[Entry]) -> Zip {
    let (mut bytes, mut local, mut central) = (vec![], vec![], vec![]);
    for entry in entries {
        local.push(bytes.len());
        bytes.extend(b"PK\x03\x04");
        for part in [&entry.shared(), &entry.name, &entry.extra, &entry.packed()] {
            bytes.extend(part);
        }
    }
    let directory = bytes.len();
    for (entry, offset) in entries.iter().zip(&local).filter(|(entry, _)| entry.listed) {
        central.push(bytes.len());
        bytes.extend(b"PK\x01\x02\x14\x03");
        bytes.extend(entry.shared());
        bytes.extend(u16::try_from(entry.comment.len()).unwrap().to_le_bytes());
        bytes.extend([0; 4]);
        let dos_folder = u32::from(entry.name.ends_with(b"/")) << 4;
        bytes.extend((entry.mode << 16 | dos_folder).to_le_bytes());
        bytes.extend(u32::try_from(*offset).unwrap().to_le_bytes());
        for part in [&entry.name, &entry.extra, &entry.comment] {
            bytes.extend(part);
        }
    }
    let end = bytes.len();
    let count = u16::try_from(central.len()).unwrap().to_le_bytes();
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count, count].concat());
    bytes.extend(u32::try_from(end - directory).unwrap().to_le_bytes());
    bytes.extend(u32::try_from(directory).unwrap().to_le_bytes());
    bytes.extend([0; 2]);
    Zip { bytes, local, central, end }
}

/// RECORD's row for `content` at `path`.
pub fn row(path: &str, content: &[u8]) -> String {
    let hash = URL_SAFE_NO_PAD.encode(Digest::of(content).as_bytes());
    format!("{path},sha256={hash},{}\n", content.len())
}

/// The folder of package `demo`'s metadata.
pub const INFO: &str = "demo-1.0.dist-info";

/// Entries of the wheel `demo` 1.0 with `files`, metadata and a right RECORD at the end.
pub fn demo(files: &[Entry]) -> Vec<Entry> {
    wheel("demo", "1.0", files)
}

/// Entries of a wheel with `files`, metadata and a right RECORD at the end.
pub fn wheel(name: &str, version: &str, files: &[Entry]) -> Vec<Entry> {
    let info = format!("{}-{version}.dist-info", name.replace('-', "_"));
    let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
    let tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    let mut entries = files.to_vec();
    entries.push(Entry::file(&format!("{info}/METADATA"), metadata.as_bytes()));
    entries.push(Entry::file(&format!("{info}/WHEEL"), tags.as_bytes()));
    let files = entries.iter().filter(|entry| !entry.name.ends_with(b"/"));
    let mut record: String =
        files.map(|entry| row(&String::from_utf8_lossy(&entry.name), &entry.content)).collect();
    record.extend([&info, "/RECORD,,\n"]);
    entries.push(Entry::file(&format!("{info}/RECORD"), record.as_bytes()));
    entries
}

/// `entries` with RECORD's text changed by `edit`.
pub fn with_record(mut entries: Vec<Entry>, edit: impl Fn(&str) -> String) -> Vec<Entry> {
    let record = entries.iter_mut().find(|entry| entry.name.ends_with(b"/RECORD")).unwrap();
    record.content = edit(std::str::from_utf8(&record.content).unwrap()).into_bytes();
    entries
}

/// The pin of `bytes` as the wheel `name` `version`.
pub fn pin(name: &str, version: &str, bytes: &[u8]) -> Package {
    Package {
        name: name.into(),
        version: version.into(),
        file: format!("{}-{version}-py3-none-any.whl", name.replace('-', "_")),
        size_bytes: bytes.len() as u64,
        sha256: Digest::of(bytes),
        role: Role::Toolchain,
        line: 7,
    }
}
