//! Grades of rebuilt objects, with the real nvcc at places where its bytes cannot be the same. This tool's own builds give
//! the stronger answer, bit-identity, at one fixed place: build/same.rs shows that.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "kit/room.rs"]
mod kit;

use std::collections::BTreeSet;
use std::ops::Range;

use camino::{Utf8Path, Utf8PathBuf};
use object::{Object as _, ObjectSection as _};
use requal::challenge::{Grade, Graded, grade};
use xtask::sys::proc::Call;

const HEADER: &str = "#pragma once\n#define FACTOR 2.5f\n";

/// A kernel, a constant and a host function; names in the anonymous namespace carry a digest of the source's path.
const SOURCE: &str = "#include \"factor.h\"
namespace {
__constant__ float table[4] = {1, 2, 3, FACTOR};
__global__ void scale_kernel(float* values) { values[threadIdx.x] *= table[threadIdx.x & 3]; }
}  // namespace
int scale(float* values) {
  scale_kernel<<<1, 32>>>(values);
  return static_cast<int>(cudaGetLastError());
}
";

/// A folder with the unit in it.
struct Place {
    folder: Utf8PathBuf,
}

impl Place {
    fn new(folder: Utf8PathBuf) -> Self {
        let place = Self { folder };
        place.write(HEADER, SOURCE);
        place
    }

    fn write(&self, header: &str, source: &str) {
        kit::file(&self.folder.join("factor.h"), header, 0o644);
        kit::file(&self.folder.join("k.cu"), source, 0o644);
    }

    fn stamp(&self, time: &str) {
        let (factor, unit) = (self.folder.join("factor.h"), self.folder.join("k.cu"));
        let touch = ["-d", time, factor.as_str(), unit.as_str()];
        done(&Call::new("/usr/bin/touch".into(), &touch, "/".into()));
    }

    /// Compiles the unit and gives the object.
    fn compile(&self, flags: &[&str]) -> Vec<u8> {
        let nvcc = toolchain().join("nvidia/cu13/bin/nvcc");
        let (unit, object) = (self.folder.join("k.cu"), self.folder.join("k.o"));
        let mut args = vec!["-arch=sm_86", "-c", unit.as_str(), "-o", object.as_str()];
        args.extend(flags);
        let call = Call::new(&nvcc, &args, &self.folder).env("PATH", "/usr/bin:/bin");
        done(&call.env("TMPDIR", self.folder.as_str()));
        fs_err::read(&object).unwrap()
    }
}

fn toolchain() -> &'static Utf8Path {
    static UNPACKED: std::sync::OnceLock<Utf8PathBuf> = std::sync::OnceLock::new();
    UNPACKED.get_or_init(kit::real::real_toolchain)
}

fn done(call: &Call) {
    let ended = call.run().unwrap();
    assert_eq!(ended.code, 0, "{}", ended.output);
}

fn graded(published: &[u8], rebuilt: &[u8]) -> Graded {
    grade("k.o", published, rebuilt).unwrap()
}

/// The sections that differ, with `K` for the kernel's name, whose ids are blank.
fn without_kernel(found: &Graded) -> Vec<String> {
    let kernel = "_ZN36_GLOBAL__N__00000000_4_k_cu_0000000012scale_kernelEPf";
    found.sections.iter().map(|name| name.replace(kernel, "K")).collect()
}

/// Names of intermediate files and ids hang on nothing but the unit, as in this tool's own compiles.
const STEADY: [&str; 2] = ["--objdir-as-tempdir", "-frandom-seed=k.o"];

#[test]
fn t054_an_mtime_in_a_line_table_changes_bytes_and_no_code() {
    let (_folder, root) = kit::folder();
    let place = Place::new(root.join("a"));
    let flags = [&["-lineinfo"], &STEADY[..]].concat();
    place.stamp("2001-01-01");
    let published = place.compile(&flags);
    place.stamp("2002-02-02");
    let rebuilt = place.compile(&flags);
    assert_ne!(published, rebuilt);
    let found = graded(&published, &rebuilt);
    assert_eq!(found.sections, [".nv_fatbin", "sm_86 .debug_line"]);
    assert_eq!(found.grade, Grade::CodeIdentical);
    assert_eq!(found.published_device_code_sha256, found.rebuilt_device_code_sha256);

    place.stamp("2001-01-01");
    let restored = graded(&published, &place.compile(&flags));
    assert_eq!((restored.grade, restored.sections.len()), (Grade::BitIdentical, 0));
}

#[test]
fn f35_folders_of_different_length_give_other_names_and_the_same_code() {
    let (_folder, root) = kit::folder();
    let near = Place::new(root.join("a"));
    let far = Place::new(root.join("some/much/longer/name"));
    let found = graded(&near.compile(&[]), &far.compile(&[]));
    assert_eq!(
        without_kernel(&found),
        [
            ".nv_fatbin",
            ".rodata",
            ".strtab",
            "compute_86 PTX",
            "sm_86 .nv.constant0.K",
            "sm_86 .nv.info.K",
            "sm_86 .shstrtab",
            "sm_86 .strtab",
            "sm_86 .text.K"
        ]
    );
    assert_eq!(found.grade, Grade::CodeIdentical);
    assert!(found.published_device_code_sha256.is_some());
    assert_eq!(found.published_device_code_sha256, found.rebuilt_device_code_sha256);

    let lines = graded(&near.compile(&["-lineinfo"]), &far.compile(&["-lineinfo"]));
    assert_eq!(
        without_kernel(&lines),
        [
            ".nv_fatbin",
            ".rodata",
            ".strtab",
            "compute_86 PTX",
            "sm_86 .debug_line",
            "sm_86 .nv.constant0.K",
            "sm_86 .nv.info.K",
            "sm_86 .nv_debug_ptx_txt",
            "sm_86 .rel.debug_line",
            "sm_86 .shstrtab",
            "sm_86 .strtab",
            "sm_86 .text.K"
        ]
    );
    assert_eq!(lines.grade, Grade::CodeIdentical);
}

#[test]
fn f34_a_second_build_has_other_names_and_the_same_code() {
    let (_folder, root) = kit::folder();
    let place = Place::new(root.join("a"));
    let found = graded(&place.compile(&[]), &place.compile(&[]));
    assert_eq!((found.grade, found.sections), (Grade::CodeIdentical, vec![".strtab".to_owned()]));

    // Without a function that others may call, nvcc makes the id from time and process id.
    place.write(HEADER, &SOURCE.replace("int scale", "__attribute__((used)) static int scale"));
    place.stamp("2001-01-01");
    let mut published = place.compile(&[]);
    place.stamp("2002-02-02");
    let rebuilt = place.compile(&[]);
    if name_bytes(&published) != name_bytes(&rebuilt) {
        // The process ids passed a power of ten: names of other lengths move what follows them, and that differs.
        assert_eq!(graded(&published, &rebuilt).grade, Grade::Differs);
        place.stamp("2001-01-01");
        published = place.compile(&[]);
    }
    let found = graded(&published, &rebuilt);
    assert!(found.sections.contains(&".nv_fatbin".to_owned()));
    assert_eq!(found.grade, Grade::CodeIdentical);
    assert_eq!(graded(&place.compile(&STEADY), &place.compile(&STEADY)).grade, Grade::BitIdentical);
}

/// How long the name of the anonymous namespace is, by its own word.
fn name_bytes(object: &[u8]) -> &[u8] {
    let at = object.windows(12).rposition(|window| window == b"_GLOBAL__N__").unwrap();
    &object[at - 2..at]
}

#[test]
fn f34_a_changed_constant_of_a_header_or_a_changed_launch_is_told() {
    let (_folder, root) = kit::folder();
    let place = Place::new(root.join("a"));
    let published = place.compile(&STEADY);
    place.write(&HEADER.replace("2.5f", "2.75f"), SOURCE);
    let found = graded(&published, &place.compile(&STEADY));
    assert_eq!(found.sections, [".nv_fatbin", "compute_86 PTX", "sm_86 .nv.constant3"]);
    assert_eq!(found.grade, Grade::Differs);
    assert_ne!(found.published_device_code_sha256, found.rebuilt_device_code_sha256);
    // Host code alone.
    place.write(HEADER, &SOURCE.replace("<<<1, 32>>>", "<<<1, 64>>>"));
    let found = graded(&published, &place.compile(&STEADY));
    assert_eq!((found.grade, found.sections), (Grade::Differs, vec![".text".to_owned()]));
    assert_eq!(found.published_device_code_sha256, found.rebuilt_device_code_sha256);
}

/// A flipped bit anywhere is no bit-identity, and leaves the code identical only in tables of names (which are compared
/// where they are used), in sections for debuggers, in ids, and outside of all sections.
#[test]
fn every_bit_of_code_and_data_counts() {
    let (_folder, root) = kit::folder();
    let published = Place::new(root.join("a")).compile(&["-lineinfo", "--compress-mode=none"]);
    let host = sections(&published, 0);
    let start = host.iter().find(|(name, _)| name == ".nv_fatbin").unwrap().1.start;
    let cubin = start + published[start..].windows(4).position(|window| window == b"\x7fELF").unwrap();
    let device = sections(&published[cubin..], cubin);
    let mut neutral = BTreeSet::new();
    for at in 0..published.len() {
        let mut rebuilt = published.clone();
        rebuilt[at] ^= 1;
        // A broken structure is refused, not graded.
        let Ok(found) = grade("k.o", &published, &rebuilt) else { continue };
        assert_ne!(found.grade, Grade::BitIdentical, "byte {at}");
        if found.grade == Grade::CodeIdentical && !in_id(&published, at) {
            let mut places = device.iter().chain(&host).filter(|(_, range)| range.contains(&at));
            neutral.insert(places.next().map_or("none", |(name, _)| name.as_str()));
        }
    }
    // `none`: fillers and offsets. `.nv_fatbin`: sizes and names in the headers of its entries, fillers, and the headers of
    // the sections for debuggers. `.symtab`: where the source file's name lies.
    let debug = [".debug_frame", ".debug_line", ".nv_debug_line_sass", ".nv_debug_ptx_txt"];
    let relocated = [".rel.debug_frame", ".rel.debug_line", ".rel.nv_debug_line_sass"];
    let names = [".shstrtab", ".strtab", ".symtab", ".nv_fatbin", "none"];
    let expected = debug.iter().chain(&relocated).chain(&names).copied();
    assert_eq!(neutral, expected.collect::<BTreeSet<_>>());
}

/// Sections with their places in a file that lies at `from`.
fn sections(elf: &[u8], from: usize) -> Vec<(String, Range<usize>)> {
    let file = object::File::parse(elf).unwrap();
    let place = |section: object::Section<'_, '_>| {
        let (start, size) = section.file_range()?;
        let start = from + usize::try_from(start).unwrap();
        Some((section.name().unwrap().to_owned(), start..start + usize::try_from(size).unwrap()))
    };
    file.sections().filter_map(place).collect()
}

/// Whether the byte belongs to one of the two digests in the name of an anonymous namespace or of the file.
fn in_id(bytes: &[u8], at: usize) -> bool {
    let id = |start: usize| bytes[start..].iter().take(8).all(u8::is_ascii_hexdigit);
    let starts = at.saturating_sub(7)..=at;
    let behind = |word: &[u8]| starts.clone().any(|start| bytes[..start].ends_with(word) && id(start));
    behind(b"_GLOBAL__N__") || behind(b"_INTERNAL_") || behind(b"_4_k_cu_")
}
