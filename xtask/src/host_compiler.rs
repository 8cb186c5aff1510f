//! The host compiler: which one, whether nvcc supports it, every program that it runs, and what it reads.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use requal::versions::{HostCompiler, Program};
use requal::{Digest, Failure, Outcome};

use crate::sys::proc::Call;

/// The lowest gcc major version that nvcc 13 supports (CUDA 13.0 installation guide, host compiler table).
pub const LOWEST_MAJOR: u32 = 6;
/// Programs that a compile and a link run, by the names that gcc asks for.
const PROGRAMS: [&str; 4] = ["as", "cc1plus", "collect2", "ld"];
/// Files whose folders hold what a compile and a link read, or what the programs load.
const FILES: [&str; 8] = [
    "crt1.o",
    "crtbegin.o",
    "libc.so",
    "libc.so.6",
    "libgcc_s.so.1",
    "libm.so.6",
    "libmpfr.so.6",
    "libstdc++.so.6",
];
/// Loaders of dynamic programs, where they exist.
const LOADERS: [&str; 2] = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

/// Finds the host compiler: what CXX names, else the first g++ on the caller's PATH, as nvcc itself would.
///
/// # Errors
/// `E-HOST-MISSING` (exit 3).
pub fn find(caller: &BTreeMap<String, String>) -> Outcome<Utf8PathBuf> {
    let wanted = caller.get("CXX").map_or("g++", |name| name.trim());
    let name = if wanted.is_empty() { "g++" } else { wanted };
    let path = caller.get("PATH").map(String::as_str);
    let found = which::which_in(name, path, "/").ok().and_then(|path| Utf8PathBuf::from_path_buf(path).ok());
    found.ok_or_else(|| {
        Failure::could_not_judge("E-HOST-MISSING", format!("host compiler {name} is not found"))
            .expected(format!("a gcc of major version {LOWEST_MAJOR} or later, named by CXX or g++ on PATH"))
            .found(format!("PATH={}", path.unwrap_or_default()))
            .hint("apt-get install g++, or dnf install gcc-c++, or set CXX")
    })
}

/// Probes the compiler at `found`. `highest_major` is the toolchain's own bound, from its crt/host_config.h.
///
/// # Errors
/// `E-HOST-RANGE` outside the supported range, `E-HOST-KIND` if it is no gcc, `E-HOST-WRAPPER` if it is a script,
/// `E-HOST-SPECS` if a specs file changes it, `E-HOST-PROGRAM` if a program of it is missing.
pub fn probe(
    found: &Utf8Path,
    highest_major: u32,
    caller: &BTreeMap<String, String>,
) -> Outcome<HostCompiler> {
    let path = found.canonicalize_utf8()?;
    let (version_line, version) = judge_version(found, &path, highest_major)?;
    judge_kind(found, &path)?;
    let specs = ask(&path, &["-print-file-name=specs"])?;
    if specs != "specs" {
        return Err(Failure::refused(
            "E-HOST-SPECS",
            format!("host compiler {path} is changed by a specs file"),
        )
        .expected("no specs file: gcc's built-in ones")
        .found(specs)
        .hint("move the file away, or set CXX to another compiler"));
    }
    let mut programs = vec![program("g++", path.clone())?];
    for name in PROGRAMS {
        programs.push(program(name, resolve(&path, name, caller)?)?);
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    let mounts = mounts(&path, &programs)?;
    Ok(HostCompiler { path, version_line, version, highest_major, programs, mounts })
}

/// Version line and version of the compiler, judged against the range.
fn judge_version(found: &Utf8Path, path: &Utf8Path, highest_major: u32) -> Outcome<(String, String)> {
    let line = ask(path, &["--version"])?.lines().next().unwrap_or_default().to_owned();
    if line.contains("clang") || line.is_empty() {
        return Err(Failure::refused("E-HOST-KIND", format!("host compiler {found} is no gcc"))
            .expected(format!("gcc {LOWEST_MAJOR} to {highest_major}"))
            .found(format!("{line}  ({path})"))
            .hint("set CXX to a gcc"));
    }
    let version = ask(path, &["-dumpfullversion", "-dumpversion"])?;
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if !major.is_some_and(|major| (LOWEST_MAJOR..=highest_major).contains(&major)) {
        return Err(Failure::refused(
            "E-HOST-RANGE",
            format!("host compiler {found} is not supported by this nvcc"),
        )
        .expected(format!("gcc {LOWEST_MAJOR} to {highest_major}  (crt/host_config.h)"))
        .found(format!("{version}  ({path})"))
        .hint("set CXX to a gcc in that range, such as CXX=g++-13"));
    }
    Ok((line, version))
}

/// A wrapper runs a compiler that nobody has looked at.
fn judge_kind(found: &Utf8Path, path: &Utf8Path) -> Outcome<()> {
    let name = path.file_name().unwrap_or_default();
    let is_elf = fs_err::read(path)?.starts_with(b"\x7fELF");
    if is_elf && (name.contains("g++") || name.contains("c++") || name.contains("gcc")) {
        return Ok(());
    }
    Err(Failure::refused("E-HOST-WRAPPER", format!("host compiler {found} is not gcc itself but starts it"))
        .expected("gcc's own driver program")
        .found(if is_elf { path.to_string() } else { format!("{path}, a script") })
        .hint("set CXX to the compiler behind it"))
}

/// Where gcc finds one of its programs; a bare name is looked up beside the driver, then on the caller's PATH.
fn resolve(driver: &Utf8Path, name: &str, caller: &BTreeMap<String, String>) -> Outcome<Utf8PathBuf> {
    let said = ask(driver, &[&format!("-print-prog-name={name}")])?;
    let beside = driver.parent().unwrap_or(Utf8Path::new("/"));
    let folders = format!("{beside}:{}", caller.get("PATH").map_or("", String::as_str));
    let found = which::which_in(&said, Some(folders), "/")
        .ok()
        .and_then(|path| Utf8PathBuf::from_path_buf(path).ok());
    let found = found.ok_or_else(|| {
        Failure::could_not_judge(
            "E-HOST-PROGRAM",
            format!("{name}, which the host compiler runs, is not found"),
        )
        .expected(format!("as {driver} says: {said}"))
        .hint("apt-get install g++ binutils, or dnf install gcc-c++ binutils")
    })?;
    Ok(found.canonicalize_utf8()?)
}

fn program(name: &str, path: Utf8PathBuf) -> Outcome<Program> {
    let sha256 = Digest::of(&fs_err::read(&path)?);
    Ok(Program { name: name.to_owned(), path, sha256 })
}

/// Every file and folder of the machine that a room has to show for a compile and a link; none inside another.
fn mounts(driver: &Utf8Path, programs: &[Program]) -> Outcome<Vec<Utf8PathBuf>> {
    let mut all: BTreeSet<Utf8PathBuf> = programs.iter().map(|program| program.path.clone()).collect();
    let private =
        programs.iter().filter(|program| program.name.starts_with("cc1") || program.name == "collect2");
    all.extend(private.filter_map(|program| Some(program.path.parent()?.to_owned())));
    for name in FILES {
        let said = Utf8PathBuf::from(ask(driver, &[&format!("-print-file-name={name}")])?);
        if said.is_absolute() {
            // Both where gcc looks and where the file really lies: a folder of links needs its targets.
            let real = said.canonicalize_utf8()?;
            let folder = said.parent().unwrap_or(Utf8Path::new("/")).canonicalize_utf8()?;
            all.extend([Some(folder), real.parent().map(Utf8Path::to_owned)].into_iter().flatten());
        }
    }
    let searched = ask(driver, &["-x", "c++", "-E", "-v", "/dev/null"])?;
    let searched = searched.lines().skip_while(|line| !line.starts_with("#include <...>")).skip(1);
    let searched = searched.take_while(|line| !line.starts_with("End of search list"));
    for folder in searched.map(|line| Utf8Path::new(line.trim())) {
        // What an administrator has put under /usr/local is no part of the compiler.
        if !folder.starts_with("/usr/local") && folder.is_dir() {
            all.insert(folder.canonicalize_utf8()?);
        }
    }
    for file in LOADERS.iter().chain(&["/bin/sh"]).map(Utf8Path::new).filter(|file| file.exists()) {
        let folder = file.parent().unwrap_or(Utf8Path::new("/")).canonicalize_utf8()?;
        all.insert(folder.join(file.file_name().unwrap_or_default()));
    }
    Ok(all
        .iter()
        .filter(|path| !path.ancestors().skip(1).any(|above| all.contains(above)))
        .cloned()
        .collect())
}

/// One answer of the compiler, trimmed. Its own folder is all of its PATH.
fn ask(driver: &Utf8Path, args: &[&str]) -> Outcome<String> {
    let folder = driver.parent().unwrap_or(Utf8Path::new("/"));
    let call = Call::new(driver, args, "/".into()).env("PATH", folder.as_str()).env("LC_ALL", "C");
    let ended = call.run()?;
    if ended.code != 0 {
        return Err(call.failed(requal::Exit::CouldNotJudge, "E-HOST-PROBE", &ended));
    }
    Ok(ended.output.trim().to_owned())
}
