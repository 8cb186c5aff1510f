//! How a rebuilt object compares with the published one: the same bytes, the same code, or neither.

use std::collections::BTreeSet;
use std::fmt;

use object::Endianness;
use object::elf;
use object::pod::bytes_of;
use object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Hasher;
use crate::fatbin::{self, blank_ids, ptx_code};
use crate::target::Target;
use crate::{Digest, Failure, Outcome, json};

/// What a rebuilt object shows of the published one, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum Grade {
    /// Every byte is the same.
    BitIdentical,
    /// Code and data of host and device are the same; what differs are names that nvcc makes from paths, process ids
    /// and times, or line tables.
    CodeIdentical,
    /// Anything else: what cannot be shown equal differs.
    Differs,
}

/// A grade with its reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Graded {
    /// The grade.
    pub grade: Grade,
    /// The sections that are not the same bytes, sorted; those inside of device code after their target, such as
    /// `sm_86 .debug_line`. `ELF header` stands for the file's header. Empty if only unused bytes differ.
    pub sections: Vec<String>,
    /// Digest of the published object's device code; absent for an object without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_device_code_sha256: Option<Digest>,
    /// Digest of the rebuilt object's device code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuilt_device_code_sha256: Option<Digest>,
}

/// Grades the object at `path` (named in errors only) by its rebuild. Only relocatable objects can be code-identical: of
/// a module a loader maps more bytes than its sections hold.
///
/// # Errors
/// `E-OBJECT-FORMAT`, `E-FATBIN*`: one of the two is not what nvcc or the host compiler gives.
pub fn grade(path: &str, published: &[u8], rebuilt: &[u8]) -> Outcome<Graded> {
    let before = Content::read(&format!("the published {path}"), published)?;
    let after = Content::read(&format!("the rebuilt {path}"), rebuilt)?;
    let grade = if published == rebuilt {
        Grade::BitIdentical
    } else if before.shows_code_of(&after) {
        Grade::CodeIdentical
    } else {
        Grade::Differs
    };
    let raw = |content: &Content| -> BTreeSet<(String, Digest)> {
        content.parts.iter().map(|part| (part.name.clone(), part.raw)).collect()
    };
    let differing = &raw(&before) ^ &raw(&after);
    let sections: BTreeSet<String> = differing.into_iter().map(|(name, _)| name).collect();
    Ok(Graded {
        grade,
        sections: sections.into_iter().collect(),
        published_device_code_sha256: before.device_code,
        rebuilt_device_code_sha256: after.device_code,
    })
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&json::word(self))
    }
}

/// A part of an object: a section, a header, or a section of a cubin inside.
struct Part {
    /// Its name, ids blanked.
    name: String,
    /// Digest of all its bytes, but not of where it lies in the file.
    raw: Digest,
    /// Digest of what counts: without ids, and without the content of tables of names and of line tables.
    code: Digest,
}

/// What an object is made of.
struct Content {
    relocatable: bool,
    parts: Vec<Part>,
    device_code: Option<Digest>,
}

impl Content {
    fn read(name: &str, bytes: &[u8]) -> Outcome<Self> {
        let broken = |error: object::Error| fault(name, &error.to_string());
        let Sections { relocatable, mut parts, fatbins } = sections("", bytes).map_err(broken)?;
        let mut entries = Vec::new();
        for fatbin in &fatbins {
            entries.extend(fatbin::read(fatbin).map_err(|failure| named(name, failure))?);
        }
        for entry in &entries {
            let target = entry.target;
            let header = Digest::of(&entry.header);
            parts.push(Part { name: format!("{target} header"), raw: header, code: header });
            match target {
                Target::MachineCode(_) => {
                    parts.extend(sections(&format!("{target} "), &entry.payload).map_err(broken)?.parts);
                }
                Target::Ptx(_) => parts.push(Part {
                    name: format!("{target} PTX"),
                    raw: Digest::of(&entry.payload),
                    code: Digest::of(&ptx_code(&entry.payload)),
                }),
            }
        }
        let device_code = match fatbins.is_empty() {
            true => None,
            false => Some(fatbin::code_digest(&entries).map_err(|failure| named(name, failure))?),
        };
        Ok(Self { relocatable, parts, device_code })
    }

    /// Whether both hold the same code and data: every part that counts, in the same order.
    fn shows_code_of(&self, other: &Self) -> bool {
        let code = |part: &Part| part.code;
        self.relocatable
            && other.relocatable
            && self.device_code == other.device_code
            && self.parts.iter().map(code).eq(other.parts.iter().map(code))
    }
}

type Elf<'a> = ElfFile64<'a, Endianness>;

/// What the sections of an ELF file hold.
struct Sections<'a> {
    relocatable: bool,
    parts: Vec<Part>,
    fatbins: Vec<&'a [u8]>,
}

/// The sections of an object, or of a cubin inside, whose parts are then named after `prefix`.
fn sections<'a>(prefix: &str, bytes: &'a [u8]) -> object::Result<Sections<'a>> {
    let file = Elf::parse(bytes)?;
    let endian = file.endian();
    let (mut parts, mut fatbins) = (vec![header(prefix, &file)], Vec::new());
    for (index, section) in file.elf_section_table().enumerate() {
        let name = file.elf_section_table().section_name(endian, section)?;
        let data = section.data(endian, bytes)?;
        let is_fatbin = name == b".nv_fatbin" && prefix.is_empty();
        let body = match section.sh_type(endian) {
            // What a fat binary holds is compared by itself, and names are where they are used.
            _ if is_fatbin || is_unused(name, section, endian) => Vec::new(),
            elf::SHT_SYMTAB => symbols(&file, index)?,
            elf::SHT_NOBITS => section.sh_size(endian).to_le_bytes().into(),
            // Host code registers kernels by name.
            _ if name.starts_with(b".rodata") && prefix.is_empty() => blank_ids(data),
            _ => data.to_vec(),
        };
        if is_fatbin {
            fatbins.push(data);
        }
        // Without the index of the name and the offset in the file; the size counts as that of the body.
        let head = bytes_of(section);
        let (kind, size, rest) = (&head[4..24], &head[32..40], &head[40..]);
        let blank = blank_ids(name);
        parts.push(Part {
            name: format!("{prefix}{}", String::from_utf8_lossy(&blank)),
            raw: digest(&[name, kind, size, rest, data]),
            code: digest(&[&blank, kind, rest, &body]),
        });
    }
    Ok(Sections { relocatable: file.elf_header().e_type(endian) == elf::ET_REL, parts, fatbins })
}

/// The file's header without the offsets of the two tables, and the kinds of the segments; their sizes hang on where
/// the sections lie.
fn header(prefix: &str, file: &Elf<'_>) -> Part {
    let head = bytes_of(file.elf_header());
    let mut bytes = [&head[..32], &head[48..]].concat();
    for segment in file.elf_program_headers() {
        bytes.extend(&bytes_of(segment)[..8]);
    }
    let digest = Digest::of(&bytes);
    Part { name: format!("{prefix}ELF header"), raw: digest, code: digest }
}

/// Whether the content is a table of names, or a line table or the like for debuggers, and never loaded. What such a
/// section is, and which section it belongs to, counts all the same.
fn is_unused(name: &[u8], section: &elf::SectionHeader64<Endianness>, endian: Endianness) -> bool {
    let of = [&b".rela"[..], b".rel"].iter().find_map(|prefix| name.strip_prefix(*prefix)).unwrap_or(name);
    let debug = of.starts_with(b".debug_") || of.starts_with(b".nv_debug_");
    let loaded = section.sh_flags(endian).contains(elf::SHF_ALLOC);
    (debug || section.sh_type(endian) == elf::SHT_STRTAB) && !loaded
}

/// The symbol table with names in place of their offsets; the source file's name, made from a process id, is blank.
fn symbols(file: &Elf<'_>, index: object::SectionIndex) -> object::Result<Vec<u8>> {
    let endian = file.endian();
    let table = file.elf_section_table().symbol_table_by_index(endian, file.data(), index)?;
    let mut out = Vec::new();
    for symbol in table.iter() {
        let name = match symbol.st_type() {
            elf::STT_FILE => Vec::new(),
            _ => blank_ids(table.symbol_name(endian, symbol)?),
        };
        out.extend((name.len() as u64).to_le_bytes());
        out.extend(name);
        out.extend(&bytes_of(symbol)[4..]);
    }
    Ok(out)
}

/// The digest of `parts`, each length-prefixed.
fn digest(parts: &[&[u8]]) -> Digest {
    let mut hasher = Hasher::new();
    for part in parts {
        hasher.part(part);
    }
    hasher.finish()
}

fn fault(name: &str, why: &str) -> Box<Failure> {
    Failure::refused("E-OBJECT-FORMAT", format!("{name} is no object of this machine: {why}"))
        .hint("take the published objects again; what is rebuilt is made anew by the same command")
}

fn named(name: &str, mut failure: Box<Failure>) -> Box<Failure> {
    failure.what = format!("{name}: {}", failure.what);
    failure
}
