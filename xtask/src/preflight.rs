//! Before any compile: each component of the toolchain says its version, all must be of one line and as the lock says.

use std::collections::BTreeMap;

use camino::Utf8Path;
use requal::lock::{Lock, Package};
use requal::versions::{Preflight, Row};
use requal::{Failure, Outcome};

use crate::host_compiler;

mod environment;
mod tool;

pub use environment::environment;

/// Where the wheels put the toolkit, relative to the toolchain's root.
pub const TOOLKIT: &str = "nvidia/cu13";
/// The component whose line (major.minor) all others must share.
const DRIVER: &str = "nvidia-cuda-nvcc";

/// A component of the toolchain.
struct Component {
    name: &'static str,
    package: &'static str,
    /// The file that says the version, relative to [`TOOLKIT`].
    path: &'static str,
    word: Word,
}

/// How a component says its version.
enum Word {
    /// A program asked with `--version`.
    Program,
    /// cicc knows no version option; it writes its version at the head of what it makes of an empty input.
    EmptyInput,
    /// `CUDART_VERSION`, such as 13000: major.minor alone.
    Runtime,
    /// `CCCL_VERSION`, such as 3000001; CUDA 13.x ships CCCL 3.x.
    Cccl,
    /// The headers carry no version: the wheel's METADATA beside the toolkit speaks for them.
    Metadata,
}

const COMPONENTS: [Component; 9] = [
    component("nvcc", DRIVER, "bin/nvcc", Word::Program),
    component("cicc", "nvidia-nvvm", "nvvm/bin/cicc", Word::EmptyInput),
    component("ptxas", DRIVER, "bin/ptxas", Word::Program),
    component("cudafe++", DRIVER, "bin/cudafe++", Word::Program),
    component("fatbinary", DRIVER, "bin/fatbinary", Word::Program),
    component("nvlink", DRIVER, "bin/nvlink", Word::Program),
    component("runtime headers", "nvidia-cuda-runtime", "include/cuda_runtime_api.h", Word::Runtime),
    component("CCCL", "nvidia-cuda-cccl", "include/cccl/cuda/std/__cccl/version.h", Word::Cccl),
    component("crt headers", "nvidia-cuda-crt", "include/crt/host_config.h", Word::Metadata),
];

const fn component(name: &'static str, package: &'static str, path: &'static str, word: Word) -> Component {
    Component { name, package, path, word }
}

/// Checks environment, toolchain and host compiler; independent problems are reported together. `toolchain` is the
/// folder that the wheels were unpacked into, `scratch` a writable folder, `caller` the caller's environment.
///
/// # Errors
/// `E-ENV-REFUSED`, `E-TOOL-*`, `E-TOOLCHAIN-MIXED`, `E-TOOLCHAIN-UNREADABLE`, `E-HOST-*`.
pub fn check(
    toolchain: &Utf8Path,
    lock: &Lock,
    scratch: &Utf8Path,
    caller: &BTreeMap<String, String>,
) -> Outcome<Preflight> {
    let environment = environment(caller);
    let table = table(toolchain, lock, scratch);
    let host = highest_major(toolchain)
        .and_then(|highest| host_compiler::probe(&host_compiler::find(caller)?, highest, caller));
    match (environment, table, host) {
        (Ok(replaced_environment), Ok(mut versions), Ok(host)) => {
            let (component, version) = ("host compiler".to_owned(), host.version.clone());
            versions.push(Row { component, package: None, version, path: host.path.to_string() });
            Ok(Preflight { versions, host, replaced_environment })
        }
        (environment, table, host) => {
            let failures = [environment.err(), table.err(), host.err()];
            Failure::all(failures.into_iter().flatten().collect())
                .map(|()| unreachable!("one of the three failed"))
        }
    }
}

/// The version table of the toolchain's components, judged.
///
/// # Errors
/// As [`check`].
pub fn table(toolchain: &Utf8Path, lock: &Lock, scratch: &Utf8Path) -> Outcome<Vec<Row>> {
    let line = line_of(&package(lock, DRIVER)?.version);
    let (mut rows, mut problems, mut mixed) = (Vec::new(), Vec::new(), Vec::new());
    for one in &COMPONENTS {
        match row(one, toolchain, lock, scratch) {
            Ok((row, pinned)) => {
                if let Some(required) = mismatch(one, &row.version, pinned, &line) {
                    mixed.push((rows.len(), required));
                }
                rows.push(row);
            }
            Err(failure) => problems.push(failure),
        }
    }
    if !mixed.is_empty() {
        problems.insert(0, mixed_up(&rows, &mixed, lock));
    }
    Failure::all(problems).map(|()| rows)
}

fn row<'a>(
    one: &Component,
    toolchain: &Utf8Path,
    lock: &'a Lock,
    scratch: &Utf8Path,
) -> Outcome<(Row, &'a Package)> {
    let pinned = package(lock, one.package)?;
    let path = toolchain.join(TOOLKIT).join(one.path);
    let version = match one.word {
        Word::Program => tool::ask(&path, pinned, toolchain, scratch, &["--version"])?,
        Word::EmptyInput => tool::ask_of_empty_input(&path, pinned, toolchain, scratch)?,
        Word::Runtime => {
            let number = number_of(&path, pinned, "CUDART_VERSION")?;
            format!("{}.{}", number / 1000, number % 1000 / 10)
        }
        Word::Cccl => {
            let number = number_of(&path, pinned, "CCCL_VERSION")?;
            format!("{}.{}.{}", number / 1_000_000, number / 1000 % 1000, number % 1000)
        }
        Word::Metadata => {
            header(&path, pinned)?;
            metadata_version(toolchain, pinned)?
        }
    };
    let (component, package) = (one.name.to_owned(), Some(one.package.to_owned()));
    let relative = Utf8Path::new(TOOLKIT).join(one.path).into_string();
    Ok((Row { component, package, version, path: relative }, pinned))
}

/// What was required, if `version` is not it.
fn mismatch(one: &Component, version: &str, pinned: &Package, line: &str) -> Option<String> {
    if line_of(&pinned.version) != line {
        return Some(format!("{line}.x, the line of {DRIVER}"));
    }
    let (agrees, required) = match one.word {
        Word::Program | Word::EmptyInput | Word::Metadata => {
            (version == pinned.version, pinned.version.clone())
        }
        Word::Runtime => (version == line, line.to_owned()),
        Word::Cccl => {
            (line_of(version) == cccl_line(line), format!("{}.x, as in CUDA {line}", cccl_line(line)))
        }
    };
    (!agrees).then_some(required)
}

/// One refusal that names every component out of line, with the whole table.
fn mixed_up(rows: &[Row], mixed: &[(usize, String)], lock: &Lock) -> Box<Failure> {
    let describe =
        |row: &Row| format!("{} {} of {}", row.component, row.version, row.package.as_deref().unwrap_or("-"));
    let expected = mixed.iter().map(|(index, required)| {
        let row = &rows[*index];
        let name = row.package.as_deref().unwrap_or_default();
        let pinned = lock.packages.iter().find(|one| one.name == name).map_or("", |one| one.version.as_str());
        format!("{} of {name}: {required}  (toolchain.lock: {name} {pinned})", row.component)
    });
    let table = rows.iter().map(|row| format!("{:16} {:10} {}", row.component, row.version, row.path));
    let wrong: Vec<String> = mixed.iter().map(|(index, _)| describe(&rows[*index])).collect();
    Failure::bad_input("E-TOOLCHAIN-MIXED", format!("the toolchain is mixed: {}", wrong.join(", ")))
        .expected(expected.collect::<Vec<_>>().join("\n"))
        .found(table.collect::<Vec<_>>().join("\n"))
        .hint("git diff toolchain.lock, then run build-runtime in an empty scratch")
}

/// The highest gcc major version that the toolchain's own headers accept.
///
/// # Errors
/// `E-TOOLCHAIN-UNREADABLE`.
pub fn highest_major(toolchain: &Utf8Path) -> Outcome<u32> {
    let path = toolchain.join(TOOLKIT).join("include/crt/host_config.h");
    let text = fs_err::read_to_string(&path).unwrap_or_default();
    let bound = text.lines().find_map(|line| line.trim().strip_prefix("#if __GNUC__ >")?.trim().parse().ok());
    bound.ok_or_else(|| {
        unreadable(&path, "nvidia-cuda-crt", "#if __GNUC__ > N, the bound of the host compiler")
    })
}

/// The value of `#define name number` in a header.
fn number_of(path: &Utf8Path, pinned: &Package, name: &str) -> Outcome<u32> {
    let text = header(path, pinned)?;
    let mut defines =
        text.lines().filter_map(|line| line.trim().strip_prefix("#define")?.trim().split_once(' '));
    let value = defines.find_map(|(word, value)| (word == name).then(|| value.trim().parse().ok())?);
    value.ok_or_else(|| unreadable(path, &pinned.name, &format!("#define {name} and a number")))
}

/// `Version:` in the METADATA of the wheel as it was unpacked.
fn metadata_version(toolchain: &Utf8Path, pinned: &Package) -> Outcome<String> {
    let prefix = format!("{}-", pinned.name.replace('-', "_"));
    let mut entries = toolchain.read_dir_utf8()?.flatten().map(|entry| entry.file_name().to_owned());
    let folder = entries.find(|entry| entry.starts_with(&prefix) && entry.ends_with(".dist-info"));
    let path = toolchain
        .join(folder.unwrap_or_else(|| format!("{prefix}{}.dist-info", pinned.version)))
        .join("METADATA");
    let text = header(&path, pinned)?;
    let version =
        text.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix("Version:"));
    version
        .map(|version| version.trim().to_owned())
        .ok_or_else(|| unreadable(&path, &pinned.name, "a line Version:"))
}

fn header(path: &Utf8Path, pinned: &Package) -> Outcome<String> {
    if path.is_file() { Ok(fs_err::read_to_string(path)?) } else { Err(tool::missing(path, pinned)) }
}

fn unreadable(path: &Utf8Path, package: &str, expected: &str) -> Box<Failure> {
    Failure::could_not_judge(
        "E-TOOLCHAIN-UNREADABLE",
        format!("{path} of {package} does not say what it should"),
    )
    .expected(expected)
    .hint("run build-runtime in an empty scratch")
}

fn package<'a>(lock: &'a Lock, name: &str) -> Outcome<&'a Package> {
    lock.packages.iter().find(|package| package.name == name).ok_or_else(|| {
        Failure::bad_input("E-LOCK-MISSING", format!("toolchain.lock does not pin {name}"))
            .expected(format!("a [[package]] table with name = \"{name}\""))
            .hint(format!("cargo xtask lock --update {name}"))
    })
}

/// `13.0` of `13.0.88`.
fn line_of(version: &str) -> String {
    version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
}

/// CCCL's line for a CUDA line: 3.0 for 13.0 (CCCL's compatibility table).
fn cccl_line(line: &str) -> String {
    let (major, minor) = line.split_once('.').unwrap_or((line, "0"));
    format!("{}.{minor}", major.parse::<u32>().unwrap_or(0).saturating_sub(10))
}
