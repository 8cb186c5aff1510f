//! `doctor`: what this machine has, what is needed, and the command that mends it. Nothing is changed.

use std::collections::BTreeMap;
use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use requal::lock::Lock;
use requal::{Exit, Failure, Outcome};
use rustix::fs::{StatVfs, StatVfsMountFlags, statvfs};
use serde::Serialize;

use crate::sys::limits;
use crate::sys::proc::Call;
use crate::sys::sandbox::{self, Mode, Place};
use crate::{host_compiler, preflight};

/// The highest gcc major version that CUDA 13.0's headers accept; where a toolchain is unpacked, its own say counts.
const HIGHEST_MAJOR: u32 = 15;
/// Wheels, toolchain, objects and modules of one build, in bytes, with room to spare.
const DISK_BYTES: u64 = 3 << 30;
/// Says the versions of Python and pip.
const PYTHON: &str =
    "import sys, pip; print('.'.join(map(str, sys.version_info[:3])), 'with pip', pip.__version__)";

/// How one thing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As needed.
    Good,
    /// Not there, and the main job works without it.
    Without,
    /// Needed and missing.
    Missing,
}

/// One line: a thing, how it was found, what is needed, and the command that mends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The thing.
    pub name: &'static str,
    /// How it was found.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What is needed.
    pub needed: String,
    /// What mends it, if it is not good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

/// All lines, in a fixed order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// The lines.
    pub lines: Vec<Line>,
}

impl Findings {
    /// 0 if nothing needed is missing, else 3.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let missing = self.lines.iter().any(|line| line.state == State::Missing);
        if missing { Exit::CouldNotJudge } else { Exit::Success }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            let state = match line.state {
                State::Good => "good",
                State::Without => "without",
                State::Missing => "missing",
            };
            writeln!(f, "{state:8} {:16} {}", line.name, line.found)?;
            if let Some(mend) = &line.mend {
                writeln!(f, "{:25} needed: {}\n{:25} mend:   {mend}", "", line.needed, "")?;
            }
        }
        Ok(())
    }
}

/// Looks at this machine. `own` is our own binary, `scratch` where a build would go, `lock` what it would be made with,
/// `caller` the caller's environment.
///
/// # Errors
/// `E-INTERRUPTED`; what is missing is a finding, not an error.
pub fn run(
    own: &Utf8Path,
    scratch: &Utf8Path,
    lock: &Lock,
    caller: &BTreeMap<String, String>,
) -> Outcome<Findings> {
    let disk = disk(scratch);
    let lines = vec![
        on_path(caller, "cargo", "install Rust with rustup"),
        on_path(caller, "rustc", "install Rust with rustup"),
        python(caller),
        host(scratch, caller),
        environment(caller),
        toolchain(scratch, lock),
        namespaces(own)?,
        ptrace(),
        cores(),
        memory(),
        free_space(scratch, disk.as_ref()),
        executable(scratch, disk.as_ref()),
        gpu(),
    ];
    Ok(Findings { lines })
}

/// A line that is good if `result` is, else `bad`.
fn line(name: &'static str, result: Result<String, String>, bad: State, needed: &str, mend: &str) -> Line {
    let needed = needed.to_owned();
    match result {
        Ok(found) => Line { name, state: State::Good, found, needed, mend: None },
        Err(found) => Line { name, state: bad, found, needed, mend: Some(mend.to_owned()) },
    }
}

fn find(caller: &BTreeMap<String, String>, name: &str) -> Option<Utf8PathBuf> {
    let found = which::which_in(name, caller.get("PATH"), "/").ok()?;
    Utf8PathBuf::from_path_buf(found).ok()
}

fn on_path(caller: &BTreeMap<String, String>, name: &'static str, mend: &str) -> Line {
    // It is not started: a rustup proxy would write into an empty HOME.
    let found = find(caller, name).map(Utf8PathBuf::into_string).ok_or_else(|| "not on PATH".to_owned());
    line(name, found, State::Missing, "on PATH", mend)
}

fn python(caller: &BTreeMap<String, String>) -> Line {
    let asked =
        find(caller, "python3").ok_or_else(|| "python3 is not on PATH".to_owned()).and_then(|python| {
            let path = caller.get("PATH").map_or("", String::as_str);
            let call = Call::new(&python, &["-I", "-B", "-c", PYTHON], "/".into()).env("PATH", path);
            let ended = call.run().map_err(|failure| failure.what)?;
            let last = ended.output.trim().lines().last().unwrap_or_default().to_owned();
            if ended.code == 0 {
                Ok(format!("{last}  ({python})"))
            } else {
                Err(format!("{last}  ({python})"))
            }
        });
    let mend = "apt-get install python3-pip, or dnf install python3-pip";
    line("python3 and pip", asked, State::Missing, "python3 with the module pip", mend)
}

fn host(scratch: &Utf8Path, caller: &BTreeMap<String, String>) -> Line {
    let highest = preflight::highest_major(&scratch.join("toolchain")).unwrap_or(HIGHEST_MAJOR);
    let needed = format!("gcc {} to {highest} with its C++ compiler, as and ld", host_compiler::LOWEST_MAJOR);
    let probed = host_compiler::find(caller).and_then(|path| host_compiler::probe(&path, highest, caller));
    let (result, mend) = match probed {
        Ok(host) => (Ok(format!("{}  ({})", host.version_line, host.path)), None),
        Err(failure) => (Err(short(&failure)), failure.hint),
    };
    line(
        "host compiler",
        result,
        State::Missing,
        &needed,
        mend.as_deref().unwrap_or("set CXX to a supported gcc"),
    )
}

fn environment(caller: &BTreeMap<String, String>) -> Line {
    let (result, mend) = match preflight::environment(caller) {
        Ok(replaced) if replaced.is_empty() => {
            (Ok("nothing that a build would notice".to_owned()), String::new())
        }
        Ok(replaced) => (Ok(format!("without effect: {}", replaced.join(", "))), String::new()),
        Err(failure) => {
            let all =
                std::iter::once(&*failure).chain(&failure.related).filter_map(|one| one.found.as_deref());
            let names: Vec<&str> = all.clone().filter_map(|found| Some(found.split_once('=')?.0)).collect();
            (Err(all.collect::<Vec<_>>().join(", ")), format!("unset {}", names.join(" ")))
        }
    };
    line("environment", result, State::Missing, "no variable that gives nvcc flags, tools or paths", &mend)
}

fn toolchain(scratch: &Utf8Path, lock: &Lock) -> Line {
    let root = scratch.join("toolchain");
    let judged = if root.is_dir() { preflight::table(&root, lock, scratch).map(Some) } else { Ok(None) };
    let (result, bad) = match judged {
        Ok(Some(rows)) => {
            let said = rows.iter().map(|row| format!("{} {}", row.component, row.version));
            (Ok(said.collect::<Vec<_>>().join(", ")), State::Good)
        }
        Ok(None) => (Err(format!("not yet in {scratch}")), State::Without),
        Err(failure) => (Err(failure.what), State::Missing),
    };
    let mend =
        "cargo xtask build-runtime, which fetches and unpacks it; if it is damaged, remove its folder first";
    line("toolchain", result, bad, "the packages of toolchain.lock, all of one line", mend)
}

fn namespaces(own: &Utf8Path) -> Outcome<Line> {
    let needed = "private namespaces; without them a build runs at the real path, and its receipt says so";
    let (result, mend) = match sandbox::probe(own, Mode::Auto)? {
        Place::Sandbox => (Ok("every step of the sandbox works".to_owned()), ""),
        Place::RealPath(refusal) => {
            let errno = refusal.as_ref().and_then(|refusal| refusal.errno);
            let found = refusal.map_or_else(String::new, |refusal| refusal.to_string());
            let mend = match errno {
                Some(libc::ENOSPC) => "sysctl -w user.max_user_namespaces=15000",
                _ => {
                    "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; in a container: \
                     --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
                }
            };
            (Err(found), mend)
        }
    };
    Ok(line("sandbox", result, State::Without, needed, mend))
}

fn ptrace() -> Line {
    // The file is there only with Yama: 0 and 1 let a process trace its own children, 2 and 3 do not.
    let scope = fs_err::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let result = match scope.trim() {
        "" => Ok("not restricted by Yama".to_owned()),
        level @ ("0" | "1") => Ok(format!("allowed for own children (ptrace_scope {level})")),
        level => Err(format!("ptrace_scope {level}")),
    };
    let mend = "sysctl -w kernel.yama.ptrace_scope=1";
    line("ptrace", result, State::Without, "tracing of own children, to observe compiles", mend)
}

fn cores() -> Line {
    let found = format!("{} CPUs by affinity and quota", limits::cpus());
    line("CPUs", Ok(found), State::Missing, "1 or more", "")
}

fn memory() -> Line {
    let bytes = limits::memory_bytes();
    let jobs = limits::jobs(&requal::limits::Limits::default());
    let found = format!("{}, enough for {jobs} compiles at once", gib(bytes));
    let result = if bytes >= requal::limits::BYTES_PER_JOB { Ok(found) } else { Err(gib(bytes)) };
    line(
        "memory",
        result,
        State::Missing,
        "2.0 GiB for each compile",
        "a larger memory limit for this machine or container",
    )
}

/// The file system that holds `scratch`, or will.
fn disk(scratch: &Utf8Path) -> Option<StatVfs> {
    let nearest = scratch.ancestors().find(|folder| folder.is_dir()).unwrap_or(Utf8Path::new("."));
    statvfs(nearest.as_std_path()).ok()
}

fn free_space(scratch: &Utf8Path, disk: Option<&StatVfs>) -> Line {
    let free = disk.map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let found = format!("{} free for {scratch}", gib(free));
    let result = if free >= DISK_BYTES { Ok(found) } else { Err(found) };
    line(
        "disk",
        result,
        State::Missing,
        &format!("{} free", gib(DISK_BYTES)),
        "--scratch DIR on a larger file system",
    )
}

fn executable(scratch: &Utf8Path, disk: Option<&StatVfs>) -> Line {
    let noexec = disk.is_some_and(|disk| disk.f_flag.contains(StatVfsMountFlags::NOEXEC));
    let result = if noexec {
        Err(format!("{scratch} is mounted noexec"))
    } else {
        Ok(format!("programs under {scratch} can be executed"))
    };
    line(
        "execution",
        result,
        State::Missing,
        "a scratch mounted without noexec",
        "--scratch DIR on another file system",
    )
}

fn gpu() -> Line {
    let text = fs_err::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let driver = text.lines().next().map(str::to_owned).ok_or_else(|| "no NVIDIA driver".to_owned());
    let mend = "build here, and measure on a machine with a GPU";
    line(
        "GPU driver",
        driver,
        State::Without,
        "an NVIDIA driver, to measure on a GPU; a build needs none",
        mend,
    )
}

fn short(failure: &Failure) -> String {
    let found = failure.found.as_deref().unwrap_or_default();
    if found.is_empty() { failure.what.clone() } else { format!("{}: {found}", failure.what) }
}

/// Bytes as GiB with one decimal, rounded down.
fn gib(bytes: u64) -> String {
    let tenths = bytes / ((1 << 30) / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}
