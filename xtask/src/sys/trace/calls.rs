//! The beginning of a call: its paths are read from the process's memory and made absolute.

use rustix::process::Pid;

use super::kernel;
use super::notes::{Asked, Opening, Question, link_text};
use super::paths::seen_by;
use super::table::{Act, Flags, Follow, LAST, Operand, row};
use super::tracer::{Pending, Task, Tracer};

/// Bytes of a path, its final NUL among them, beyond which the kernel refuses it.
pub(super) const PATH_BYTES: usize = 4096;
/// Bytes of one argument of a program, and number of them, beyond which the kernel refuses the start.
const ARGUMENT_BYTES: usize = 128 << 10;
const MAX_ARGUMENTS: u64 = 1 << 20;
/// What the kernel adds to the path of an open folder that was removed.
const REMOVED: &str = " (deleted)";
/// Bytes of `struct sockaddr_un`.
const ADDRESS_BYTES: usize = 110;

/// What makes a new process lie outside of our view, or see another file system.
const ESCAPES: u64 = (libc::CLONE_UNTRACED
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;
/// CLONE_NEWTIME, which in the oldest of the calls is part of a signal's number.
const NEW_TIME: u64 = 0x80;
/// `resolve` of openat2: the path is looked up below another root.
const RESOLVE_IN_ROOT: u64 = 0x10;

/// Flags that make more of an open than reading what is there.
const MORE_THAN_READING: i32 = libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_TRUNC
    | libc::O_EXCL
    | libc::O_DIRECTORY
    | libc::O_NOFOLLOW
    | libc::O_PATH;

/// What is to be waited for at the end of the call, if anything.
pub(super) fn begin(tracer: &mut Tracer, pid: Pid, number: u64, args: [u64; 6]) -> Option<Pending> {
    let Some(row) = row(number).filter(|_| number <= u64::from(LAST)) else {
        tracer.notes.gap(format!("made the unknown system call {number}"));
        return None;
    };
    let mut call = Pending {
        act: row.act,
        asked: Vec::new(),
        opening: Opening::default(),
        question: None,
        argv: None,
        unreadable: false,
    };
    match row.act {
        Act::Gap(why) => gap(tracer, why),
        Act::Clone => escapes(tracer, args[0] & ESCAPES),
        Act::CloneByPointer => match word(pid, args[0]) {
            Some(flags) => escapes(tracer, flags & (ESCAPES | NEW_TIME)),
            None => escapes(tracer, ESCAPES),
        },
        Act::Unshare => escapes(tracer, args[0] & (ESCAPES | NEW_TIME)),
        Act::Control if [libc::PR_SET_SECCOMP, libc::PR_SET_MM].contains(&low(args[0])) => {
            gap(tracer, "filters its own calls or changes what is known of it");
        }
        Act::SendTo if args[4] != 0 => gap(tracer, "talks to another process through a socket"),
        Act::Control | Act::SendTo => {}
        Act::List => {
            // Without an open descriptor the call fails.
            if let Some(place) = link_text(&format!("/proc/{}/fd/{}", pid.as_raw_nonzero(), low(args[0]))) {
                tracer.notes.list(place);
            }
        }
        Act::EnterOpen => return Some(call),
        Act::Connect => {
            call.connect(tracer, pid, args);
            return Some(call);
        }
        _ => return call.paths(tracer, pid, row.operands, args),
    }
    None
}

impl Pending {
    /// Reads the paths of the call; none if its answer is known.
    fn paths(
        mut self,
        tracer: &mut Tracer,
        pid: Pid,
        operands: [Option<Operand>; 2],
        args: [u64; 6],
    ) -> Option<Self> {
        if let Act::Open(flags) = self.act {
            self.opening.flags = opening_flags(tracer, pid, flags, args)?;
        }
        for operand in operands.into_iter().flatten() {
            if self.follows_nothing(operand, args) {
                continue;
            }
            match read(tracer, pid, operand, args, self.opening.flags) {
                Read::Asked(asked) => self.asked.push(asked),
                Read::Empty => {}
                Read::Unreadable => self.unreadable = true,
            }
        }
        if let Act::Execute(argument) = self.act {
            self.argv = arguments(pid, args[argument]);
            return Some(self);
        }
        if matches!(self.act, Act::Open(_)) && self.opening.flags & MORE_THAN_READING != 0 {
            self.opening.existed =
                self.asked.iter().any(|asked| fs_err::metadata(seen_by(pid, &asked.text)).is_ok());
        }
        if let ([asked], false) = (&self.asked[..], self.unreadable) {
            self.question = question(self.act, self.opening.flags, asked.follow);
            let alone = tracer.tasks.get(&pid).is_some_and(|task| !task.threaded);
            if self.question.is_some_and(|question| alone && tracer.notes.is_answered(question, &asked.text))
            {
                return None;
            }
        }
        (self.unreadable || !self.asked.is_empty()).then_some(self)
    }

    /// Times are set by descriptor alone where no path is given.
    fn follows_nothing(&self, operand: Operand, args: [u64; 6]) -> bool {
        matches!(self.act, Act::Alter) && args[operand.path] == 0
    }

    /// The path of a local socket. Others have none.
    fn connect(&mut self, tracer: &mut Tracer, pid: Pid, args: [u64; 6]) {
        let length = usize::try_from(args[2]).unwrap_or(0).min(ADDRESS_BYTES);
        let mut bytes = vec![0; length];
        if kernel::read(pid, args[1], &mut bytes).is_err() {
            self.unreadable = true;
            return;
        }
        let local =
            bytes.first_chunk().is_some_and(|family| i32::from(u16::from_ne_bytes(*family)) == libc::AF_UNIX);
        let name = bytes.get(2..).unwrap_or_default().split(|&byte| byte == 0).next().unwrap_or_default();
        if local && !name.is_empty() {
            match absolute(tracer, pid, None, name.to_vec(), 0, true) {
                // The name is no string of its own, so it is not read again.
                Read::Asked(asked) => self.asked.push(Asked { raw: Vec::new(), ..asked }),
                Read::Empty => {}
                Read::Unreadable => self.unreadable = true,
            }
        }
    }
}

enum Read {
    Asked(Asked),
    /// An empty path: it means the descriptor, or fails in every run.
    Empty,
    Unreadable,
}

fn read(tracer: &mut Tracer, pid: Pid, operand: Operand, args: [u64; 6], opening: i32) -> Read {
    let follow = match operand.follow {
        Follow::Yes => true,
        Follow::No => false,
        Follow::Unless(flags) => args[flags] & libc::AT_SYMLINK_NOFOLLOW as u64 == 0,
        Follow::If(flags) => args[flags] & libc::AT_SYMLINK_FOLLOW as u64 != 0,
        Follow::ByOpening => {
            let new = libc::O_CREAT | libc::O_EXCL;
            opening & libc::O_NOFOLLOW == 0 && opening & new != new
        }
    };
    let (address, mut raw) = (args[operand.path], Vec::new());
    if kernel::read_string(pid, address, PATH_BYTES, &mut raw).is_err() {
        return Read::Unreadable;
    }
    absolute(tracer, pid, operand.at.map(|at| low(args[at])), raw, address, follow)
}

fn absolute(
    tracer: &mut Tracer,
    pid: Pid,
    folder: Option<i32>,
    raw: Vec<u8>,
    address: u64,
    follow: bool,
) -> Read {
    if raw.is_empty() {
        return Read::Empty;
    }
    let Ok(text) = std::str::from_utf8(&raw) else {
        gap(tracer, "asked for a path that is not UTF-8");
        return Read::Empty;
    };
    if text.starts_with('/') {
        return Read::Asked(Asked { address, text: text.to_owned(), raw, follow });
    }
    let number = pid.as_raw_nonzero();
    let known = match folder {
        None | Some(libc::AT_FDCWD) => {
            let task: &mut Task = tracer.tasks.entry(pid).or_default();
            if task.folder.is_none() {
                task.folder = link_text(&format!("/proc/{number}/cwd"));
            }
            task.folder.clone()
        }
        Some(folder) => link_text(&format!("/proc/{number}/fd/{folder}")),
    };
    match known {
        Some(folder) if folder.ends_with(REMOVED) => {
            gap(tracer, "asks for a path below a removed folder");
            Read::Empty
        }
        Some(folder) if folder.starts_with('/') => {
            let text = format!("{}/{text}", folder.trim_end_matches('/'));
            Read::Asked(Asked { address, text, raw, follow })
        }
        // What is open there is no folder, or nothing is: the kernel refuses.
        _ => Read::Unreadable,
    }
}

fn opening_flags(tracer: &mut Tracer, pid: Pid, flags: Flags, args: [u64; 6]) -> Option<i32> {
    match flags {
        Flags::Argument(argument) => Some(low(args[argument])),
        Flags::Creat => Some(libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC),
        Flags::How(argument) => {
            let (flags, resolve) = (word(pid, args[argument]), word(pid, args[argument].wrapping_add(16)));
            let (Some(flags), Some(0)) = (flags, resolve.map(|resolve| resolve & RESOLVE_IN_ROOT)) else {
                gap(tracer, "opens below a root of its own");
                return None;
            };
            Some(low(flags))
        }
    }
}

fn question(act: Act, opening: i32, follow: bool) -> Option<Question> {
    match act {
        Act::Open(_) if opening & MORE_THAN_READING == 0 => Some(Question::Read),
        Act::Look if follow => Some(Question::Look),
        Act::Look => Some(Question::LookAtLink),
        Act::ReadLink => Some(Question::Link),
        _ => None,
    }
}

/// The arguments of a program; a null pointer in place of the list means none.
fn arguments(pid: Pid, list: u64) -> Option<Vec<String>> {
    let mut argv = Vec::new();
    let mut text = Vec::new();
    for index in 0..MAX_ARGUMENTS {
        let address = if list == 0 { 0 } else { word(pid, list.wrapping_add(8 * index))? };
        if address == 0 {
            return Some(argv);
        }
        kernel::read_string(pid, address, ARGUMENT_BYTES, &mut text).ok()?;
        argv.push(String::from_utf8(text.clone()).ok()?);
    }
    None
}

fn word(pid: Pid, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (kernel::read(pid, address, &mut bytes).ok()? == 8).then(|| u64::from_ne_bytes(bytes))
}

fn escapes(tracer: &mut Tracer, flags: u64) {
    if flags != 0 {
        gap(tracer, "starts a process out of view, or changes its namespaces");
    }
}

fn gap(tracer: &mut Tracer, why: &str) {
    tracer.notes.gap(why);
}

/// The kernel reads a descriptor or a set of flags from the lower half of a register.
fn low(argument: u64) -> i32 {
    argument as u32 as i32
}
