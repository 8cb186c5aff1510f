//! Loading of built modules: digest first, then dlopen of the very file that was digested, then the marker.

pub(crate) mod abi;

use std::error::Error as _;
use std::ffi::{CStr, c_char};
use std::os::fd::{AsRawFd as _, IntoRawFd as _};

use camino::Utf8Path;
use fs_err::File;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use object::{Object as _, ObjectSymbol as _};
use requal::{Digest, Failure, Outcome};

use crate::protocol::ModuleRef;
use abi::{ABI_VERSION, Exl3Row, Exl3Table, ModuleTable, P2pTable};

/// The one symbol that a module exports.
const ENTRY: &CStr = c"requal_module_v1";

/// A loaded module. It is never unloaded, so what its table points to lives as long as the process.
pub(crate) struct Module {
    /// The name that the module itself answers.
    pub(crate) marker: String,
    /// How its linear sums products: `fp16-fold32`, `fp32`, or `mixed`.
    pub(crate) accumulation: String,
    /// Version of its table.
    pub(crate) abi_version: u32,
    /// SHA-256 of the mapped file.
    pub(crate) digest: Digest,
    table: &'static ModuleTable,
}

/// A shared library whose bytes were digested, kept open so that exactly these bytes are mapped.
struct Checked {
    file: File,
    digest: Digest,
}

/// Maps libcudart, whose SONAME then satisfies every module's need without a search path. Without `sha256` its
/// digest is only recorded.
///
/// # Errors
/// `E-WORKER-DIGEST`, `E-WORKER-DLOPEN`.
pub(crate) fn load_cudart(path: &Utf8Path, sha256: Option<Digest>) -> Outcome<Digest> {
    let checked = check(path, sha256)?;
    open(path, &checked)?;
    Ok(checked.digest)
}

/// Loads one module under the name that the caller expects.
///
/// # Errors
/// `E-WORKER-DIGEST`, `E-WORKER-DLOPEN`, `E-MODULE-ENTRY`, `E-MODULE-ABI`, `E-MODULE-NAME`.
pub(crate) fn load(wanted: &ModuleRef) -> Outcome<Module> {
    let module = load_unnamed(&wanted.path, Some(wanted.sha256))?;
    if module.marker != wanted.name {
        return Err(Failure::refused(
            "E-MODULE-NAME",
            format!("{} answers to another name than the one it is used under", wanted.path),
        )
        .expected(&wanted.name)
        .found(&module.marker)
        .hint("give the file whose REQUAL_MODULE_NAME is the expected name, or build it anew"));
    }
    Ok(module)
}

/// Loads one module whatever its name; without `sha256` its digest is only recorded.
///
/// # Errors
/// As [`load`], but for `E-MODULE-NAME`.
pub(crate) fn load_unnamed(path: &Utf8Path, sha256: Option<Digest>) -> Outcome<Module> {
    let checked = check(path, sha256)?;
    let library = open(path, &checked)?;
    // SAFETY: the symbol is a function without arguments that returns a pointer, by the contract of module.h; a
    // module that breaks it is not ours, and its digest was checked against what the caller expects.
    let entry =
        unsafe { library.get::<unsafe extern "C" fn() -> *const ModuleTable>(ENTRY.to_bytes_with_nul()) };
    let entry = match entry {
        Ok(entry) => entry,
        Err(_) => return Err(no_entry(path, &checked)),
    };
    // SAFETY: as above; the function reads constants only.
    let table = unsafe { entry() };
    let table = judge_table(path, table)?;
    // SAFETY: the table's version and size were judged, so `name` is a NUL-terminated constant of the module.
    let marker = unsafe { text(table.name) };
    let accumulation = table.accumulation.map(|name| {
        // SAFETY: as for `name`; the function takes nothing and returns a constant.
        unsafe { text(name()) }
    });
    let (Some(marker), Some(accumulation)) = (marker, accumulation.flatten()) else {
        return Err(bad_table(path).expected("a name and an accumulation in UTF-8").found("none"));
    };
    Ok(Module { marker, accumulation, abi_version: table.abi_version, digest: checked.digest, table })
}

impl Module {
    /// The EXL3 entries and their rows, if the module has them.
    pub(crate) fn exl3(&self) -> Option<(&'static Exl3Table, &'static [Exl3Row])> {
        // SAFETY: null or a constant of a module that stays loaded; the ABI version fixes its layout.
        let table = unsafe { self.table.exl3.as_ref() }?;
        // SAFETY: `rows` points to `row_count` constant rows by the contract of module.h.
        let rows = unsafe { std::slice::from_raw_parts(table.rows, table.row_count as usize) };
        Some((table, rows))
    }

    /// The exchange entries, if the module has them.
    pub(crate) fn p2p(&self) -> Option<&'static P2pTable> {
        // SAFETY: as in `exl3`.
        unsafe { self.table.p2p.as_ref() }
    }
}

fn check(path: &Utf8Path, expected: Option<Digest>) -> Outcome<Checked> {
    let mut file = File::open(path)?;
    let (digest, _) = Digest::of_reader(&mut file)?;
    match expected {
        Some(expected) if expected != digest => {
            Err(Failure::refused("E-WORKER-DIGEST", format!("SHA-256 of {path} differs from the request"))
                .expected(expected)
                .found(digest)
                .hint("the file changed after it was judged; build the modules anew"))
        }
        _ => Ok(Checked { file, digest }),
    }
}

/// Maps the checked file through its descriptor: no other file can take the path's place in between. The
/// library and the descriptor stay for the life of the process.
fn open(path: &Utf8Path, checked: &Checked) -> Outcome<&'static Library> {
    let by_descriptor = format!("/proc/self/fd/{}", checked.file.file().try_clone()?.into_raw_fd());
    // SAFETY: loading runs the library's initialisers; its bytes are those that the caller expects.
    match unsafe { Library::open(Some(by_descriptor), RTLD_NOW | RTLD_LOCAL) } {
        Ok(library) => Ok(Box::leak(Box::new(library))),
        Err(error) => Err(Failure::refused("E-WORKER-DLOPEN", format!("{path} does not load"))
            .expected("a library that loads with immediate binding")
            // The loader's own words, which name the missing symbol or library.
            .found(error.source().unwrap_or(&error))),
    }
}

fn judge_table(path: &Utf8Path, table: *const ModuleTable) -> Outcome<&'static ModuleTable> {
    if table.is_null() || !table.is_aligned() {
        return Err(bad_table(path).expected("a table").found("a null or unaligned pointer"));
    }
    // SAFETY: every version of the table begins with two u32, and the pointer is aligned and not null.
    let (version, size) = unsafe { ((*table).abi_version, (*table).struct_bytes) };
    if version != ABI_VERSION || size as usize != size_of::<ModuleTable>() {
        return Err(bad_table(path)
            .expected(format!("version {ABI_VERSION}, {} bytes", size_of::<ModuleTable>()))
            .found(format!("version {version}, {size} bytes"))
            .hint("build the modules and the worker from the same sources"));
    }
    // SAFETY: version and size say that the whole table is there; it is a constant of a module that stays loaded.
    let table = unsafe { &*table };
    // SAFETY: null or a constant of the module that begins with its size, by the contract of this version.
    let exl3_bytes =
        unsafe { table.exl3.as_ref() }.map(|entries| (entries.struct_bytes, size_of::<Exl3Table>()));
    // SAFETY: as above.
    let p2p_bytes =
        unsafe { table.p2p.as_ref() }.map(|entries| (entries.struct_bytes, size_of::<P2pTable>()));
    for (found, expected) in exl3_bytes.into_iter().chain(p2p_bytes) {
        if found as usize != expected {
            return Err(bad_table(path)
                .expected(format!("entries of {expected} bytes"))
                .found(format!("{found} bytes")));
        }
    }
    Ok(table)
}

fn bad_table(path: &Utf8Path) -> Box<Failure> {
    Failure::refused("E-MODULE-ABI", format!("the table of {path} is not one that this worker understands"))
}

/// Names the symbols that the file does export, so that a wrong file is recognised at a glance.
fn no_entry(path: &Utf8Path, checked: &Checked) -> Box<Failure> {
    let by_descriptor = format!("/proc/self/fd/{}", checked.file.as_raw_fd());
    let present = fs_err::read(by_descriptor).ok().and_then(|bytes| {
        let file = object::File::parse(&*bytes).ok()?;
        let mut names: Vec<String> = file
            .dynamic_symbols()
            .filter(|symbol| symbol.is_definition())
            .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
            .collect();
        names.sort();
        Some(names.join(", "))
    });
    let found = match present.as_deref() {
        None => "a file whose dynamic symbols cannot be read",
        Some("") => "no defined dynamic symbol",
        Some(names) => names,
    };
    Failure::refused("E-MODULE-ENTRY", format!("{path} does not export a module table"))
        .expected(ENTRY.to_string_lossy())
        .found(found)
        .hint("give a module that requal built, or check its export list")
}

/// # Safety
/// `start` is null or a NUL-terminated string that is never freed.
unsafe fn text(start: *const c_char) -> Option<String> {
    if start.is_null() {
        return None;
    }
    // SAFETY: by this function's contract.
    unsafe { CStr::from_ptr(start) }.to_str().ok().map(str::to_owned)
}
