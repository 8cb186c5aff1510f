//! Judging what a compile or link gave, before it is published: an object or module is taken only if it is exactly
//! what the manifest declares. Exit codes are not evidence.

use std::collections::BTreeSet;

use object::elf;
use object::read::elf::{ElfFile64, FileHeader as _, Sym as _};
use object::{Endianness, Object as _, ObjectSection as _};

use crate::target::Target;
use crate::{Digest, Failure, Outcome, fatbin};

/// What is in the bytes of an object or module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCode {
    /// Targets present, sorted.
    pub targets: Vec<Target>,
    /// Digest of the device code ([`fatbin::code_digest`]).
    pub sha256: Digest,
}

/// What a judged module offers and needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its device code.
    pub device_code: DeviceCode,
    /// Names of the defined dynamic symbols, sorted.
    pub exports: Vec<String>,
    /// DT_NEEDED entries, in file order.
    pub needed: Vec<String>,
}

/// What the manifest declares of a module.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredModule<'a> {
    /// Targets that it holds: these, all of these.
    pub targets: &'a [Target],
    /// Symbols that it exports: these, all of these.
    pub exports: &'a [String],
    /// Shared libraries that it may need.
    pub libraries: &'a [String],
}

/// Undefined symbols that every shared object has; they are weak and bind to nothing if nobody offers them.
const ALWAYS_WEAK: [&str; 4] =
    ["__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize"];

/// Judges the object at `path` (named in errors only): a relocatable x86-64 ELF file whose fat binary holds exactly
/// `targets`. An empty `targets` demands an object without device code.
///
/// # Errors
/// `E-OBJECT-FORMAT`, `E-OBJECT-TARGETS`, `E-FATBIN*`.
pub fn object(path: &str, bytes: &[u8], targets: &[Target]) -> Outcome<Option<DeviceCode>> {
    let file = parse(path, bytes, elf::ET_REL)?;
    let device_code = device_code(path, &file)?;
    same_targets(path, targets, device_code.as_ref())?;
    Ok(device_code)
}

/// Judges the module at `path` (named in errors only) against what is declared of it; all faults are reported together.
///
/// # Errors
/// `E-OBJECT-FORMAT`, `E-OBJECT-TARGETS`, `E-FATBIN*`, `E-MODULE-EXPORTS`, `E-MODULE-UNIQUE`, `E-MODULE-UNDEFINED`,
/// `E-MODULE-NEEDED`.
pub fn module(path: &str, bytes: &[u8], declared: DeclaredModule<'_>) -> Outcome<Module> {
    let file = parse(path, bytes, elf::ET_DYN)?;
    let device_code = device_code(path, &file)?;
    let mut failures = Vec::new();
    failures.extend(same_targets(path, declared.targets, device_code.as_ref()).err());
    let symbols = dynamic_symbols(path, &file)?;
    failures.extend(same_exports(path, declared.exports, &symbols).err());
    failures.extend(no_unique(path, &symbols).err());
    failures.extend(no_stray_undefined(path, declared.libraries, &symbols).err());
    let needed = needed_libraries(path, &file)?;
    let stray: Vec<&String> = needed.iter().filter(|name| !declared.libraries.contains(name)).collect();
    if !stray.is_empty() {
        failures.push(
            Failure::refused(
                "E-MODULE-NEEDED",
                format!("{path} needs shared libraries that are not declared"),
            )
            .expected(format!("only {}", declared.libraries.join(", ")))
            .found(stray.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "))
            .hint("declare them under `libraries` of the module in the manifest, or remove the dependency"),
        );
    }
    Failure::all(failures)?;
    let device_code = device_code.ok_or_else(|| format_fault(path, "it holds no device code"))?;
    let mut exports: Vec<String> = symbols.iter().filter(|s| s.is_export()).map(|s| s.name.clone()).collect();
    exports.sort_unstable();
    Ok(Module { device_code, exports, needed })
}

type Elf<'a> = ElfFile64<'a, Endianness>;

fn parse<'a>(path: &str, bytes: &'a [u8], kind: elf::FileType) -> Outcome<Elf<'a>> {
    let file = Elf::parse(bytes).map_err(|error| format_fault(path, &error.to_string()))?;
    let (header, endian) = (file.elf_header(), file.endian());
    if header.e_machine(endian) != elf::EM_X86_64 || header.e_type(endian) != kind {
        let found = format!("type {:?}, machine {:?}", header.e_type(endian), header.e_machine(endian));
        return Err(format_fault(path, "it is of another type or machine")
            .expected(format!("type {kind:?}, machine {:?} (x86-64)", elf::EM_X86_64))
            .found(found));
    }
    Ok(file)
}

fn format_fault(path: &str, why: &str) -> Box<Failure> {
    Failure::refused("E-OBJECT-FORMAT", format!("{path} is not what a compile or link gives: {why}"))
        .hint("remove it and run the same command again; it is made anew")
}

fn device_code(path: &str, file: &Elf<'_>) -> Outcome<Option<DeviceCode>> {
    let Some(section) = file.section_by_name(".nv_fatbin") else { return Ok(None) };
    let data = section.data().map_err(|error| format_fault(path, &error.to_string()))?;
    let entries = fatbin::read(data).map_err(|mut failure| {
        failure.what = format!("{path}: {}", failure.what);
        failure
    })?;
    let targets: BTreeSet<Target> = entries.iter().map(|entry| entry.target).collect();
    Ok(Some(DeviceCode { targets: targets.into_iter().collect(), sha256: fatbin::code_digest(&entries)? }))
}

fn same_targets(path: &str, declared: &[Target], found: Option<&DeviceCode>) -> Outcome<()> {
    let declared: BTreeSet<Target> = declared.iter().copied().collect();
    let found: BTreeSet<Target> = found.into_iter().flat_map(|code| code.targets.iter().copied()).collect();
    if declared == found {
        return Ok(());
    }
    let list = |targets: &BTreeSet<Target>| match targets.is_empty() {
        true => "no device code".to_owned(),
        false => targets.iter().map(Target::to_string).collect::<Vec<_>>().join(", "),
    };
    Err(Failure::refused("E-OBJECT-TARGETS", format!("{path} does not hold exactly the declared targets"))
        .expected(list(&declared))
        .found(list(&found))
        .hint("look for -arch, -code or -gencode among the unit's flags; targets are declared under `targets` only"))
}

struct Symbol {
    name: String,
    bind: elf::SymbolBind,
    defined: bool,
    /// The library that must offer it, from the version requirements.
    library: Option<String>,
}

impl Symbol {
    fn is_export(&self) -> bool {
        self.defined && self.bind != elf::STB_LOCAL
    }
}

fn dynamic_symbols(path: &str, file: &Elf<'_>) -> Outcome<Vec<Symbol>> {
    let fault = |error: object::Error| format_fault(path, &error.to_string());
    let (endian, table) = (file.endian(), file.elf_dynamic_symbol_table());
    let versions = file.elf_section_table().versions(endian, file.data()).map_err(fault)?;
    let mut symbols = Vec::new();
    for (index, symbol) in table.enumerate() {
        let name = table.symbol_name(endian, symbol).map_err(fault)?;
        let version = match &versions {
            Some(versions) => {
                versions.version(versions.version_index(endian, index).index()).map_err(fault)?
            }
            None => None,
        };
        symbols.push(Symbol {
            name: String::from_utf8_lossy(name).into_owned(),
            bind: symbol.st_bind(),
            defined: !symbol.is_undefined(endian),
            library: version.and_then(|v| v.file()).map(|file| String::from_utf8_lossy(file).into_owned()),
        });
    }
    Ok(symbols)
}

fn same_exports(path: &str, declared: &[String], symbols: &[Symbol]) -> Outcome<()> {
    let declared: BTreeSet<&str> = declared.iter().map(String::as_str).collect();
    let found: BTreeSet<&str> = symbols.iter().filter(|s| s.is_export()).map(|s| s.name.as_str()).collect();
    if declared == found {
        return Ok(());
    }
    let list = |names: Vec<&&str>| names.into_iter().copied().collect::<Vec<_>>().join(", ");
    let (missing, extra) =
        (list(declared.difference(&found).collect()), list(found.difference(&declared).collect()));
    Err(Failure::refused("E-MODULE-EXPORTS", format!("{path} does not export exactly the declared symbols"))
        .expected(list(declared.iter().collect()))
        .found(format!("missing: {}; undeclared: {}", or_none(&missing), or_none(&extra)))
        .hint("compile with -fvisibility=hidden and mark the declared exports; or this file is another module's"))
}

fn or_none(list: &str) -> &str {
    if list.is_empty() { "none" } else { list }
}

/// A unique symbol binds across modules whatever RTLD_LOCAL says: one module would use another's variable.
fn no_unique(path: &str, symbols: &[Symbol]) -> Outcome<()> {
    let unique: Vec<&str> =
        symbols.iter().filter(|s| s.bind == elf::STB_GNU_UNIQUE).map(|s| s.name.as_str()).collect();
    if unique.is_empty() {
        return Ok(());
    }
    Err(Failure::refused(
        "E-MODULE-UNIQUE",
        format!("{path} holds unique symbols, which bind across modules"),
    )
    .expected("no STB_GNU_UNIQUE symbol")
    .found(unique.join(", "))
    .hint("compile with -fvisibility=hidden, or with -fno-gnu-unique where the code is not yours"))
}

fn no_stray_undefined(path: &str, libraries: &[String], symbols: &[Symbol]) -> Outcome<()> {
    let stray = |symbol: &&Symbol| {
        let offered = symbol.library.as_ref().is_some_and(|library| libraries.contains(library));
        let weak = symbol.bind == elf::STB_WEAK && ALWAYS_WEAK.contains(&symbol.name.as_str());
        !symbol.defined && !symbol.name.is_empty() && !offered && !weak
    };
    let stray: Vec<&str> = symbols.iter().filter(stray).map(|symbol| symbol.name.as_str()).collect();
    if stray.is_empty() {
        return Ok(());
    }
    Err(Failure::refused(
        "E-MODULE-UNDEFINED",
        format!("{path} has undefined symbols that no declared library offers"),
    )
    .expected(format!("only symbols of {}", libraries.join(", ")))
    .found(stray.join(", "))
    .hint("add the unit that defines them, or declare the library in the manifest"))
}

fn needed_libraries(path: &str, file: &Elf<'_>) -> Outcome<Vec<String>> {
    let fault = |error: object::Error| format_fault(path, &error.to_string());
    let table = file.elf_dynamic_table().map_err(fault)?;
    let entries = table.iter().filter(|entry| entry.tag == elf::DT_NEEDED);
    entries
        .map(|entry| Ok(String::from_utf8_lossy(table.string(entry).map_err(fault)?).into_owned()))
        .collect()
}
