//! Starting processes: a closed environment, kept output, and a failure that can be pasted and repeated.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;

use fs_err::os::unix::fs::OpenOptionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use requal::{Exit, Failure, Outcome};
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

use super::interrupt;
use crate::say;

/// Bytes of a log's end that are read back.
const TAIL_BYTES: u64 = 16 << 10;
/// Lines of output that a failure shows.
const TAIL_LINES: usize = 20;

/// A child process to start: nothing is inherited but what stands here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// Absolute path of the program; PATH is never searched.
    pub program: Utf8PathBuf,
    /// Arguments after the program's name.
    pub args: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// The working folder.
    pub cwd: Utf8PathBuf,
    /// Where standard output and standard error go; absent: they are captured.
    pub log: Option<Utf8PathBuf>,
}

/// A started child.
#[derive(Debug)]
pub struct Running {
    handle: duct::Handle,
    log: Option<Utf8PathBuf>,
    registered: Option<interrupt::Registered>,
}

/// What an ended child left.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Exit code, or 128 + signal number.
    pub code: i32,
    /// Standard output and standard error together, in order; only its end if it went to a log.
    pub output: String,
    /// The log that holds all of it.
    pub log: Option<Utf8PathBuf>,
}

impl Call {
    /// A call of `program` with `args` in `cwd` and an empty environment.
    pub fn new(program: &Utf8Path, args: &[&str], cwd: &Utf8Path) -> Self {
        Self {
            program: program.to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            env: BTreeMap::new(),
            cwd: cwd.to_owned(),
            log: None,
        }
    }

    /// The same call with one more environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// The same call with its output written to `path`.
    #[must_use]
    pub fn log(mut self, path: &Utf8Path) -> Self {
        self.log = Some(path.to_owned());
        self
    }

    /// Runs the child to its end.
    ///
    /// # Errors
    /// `E-PROC-START` if it could not be started, `E-INTERRUPTED`; a failed child is no error here.
    pub fn run(&self) -> Outcome<Ended> {
        self.start(None)?.wait()
    }

    /// Runs the child to its end with `input` on its standard input.
    ///
    /// # Errors
    /// As [`Call::run`].
    pub fn run_with_input(&self, input: &str) -> Outcome<Ended> {
        // In memory: the caller's temporary folder may be anything, or nothing.
        let memory = memfd_create("input", MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?;
        let mut file = std::fs::File::from(memory);
        file.write_all(input.as_bytes())?;
        file.rewind()?;
        self.start(Some(OwnedFd::from(file)))?.wait()
    }

    /// Starts the child with `stdin`, or nothing, as its standard input.
    ///
    /// # Errors
    /// As [`Call::run`].
    #[expect(clippy::disallowed_methods, reason = "this is the door through which processes start")]
    pub(super) fn start(&self, stdin: Option<OwnedFd>) -> Outcome<Running> {
        interrupt::check()?;
        say::command(|| self.command_line());
        let child = duct::cmd(self.program.as_std_path(), &self.args).full_env(&self.env).dir(&self.cwd);
        let child = match stdin {
            Some(stdin) => child.stdin_file(stdin),
            None => child.stdin_null(),
        };
        let child = child.stderr_to_stdout().unchecked();
        let child = match &self.log {
            Some(path) => child.stdout_file(create_log(path)?),
            None => child.stdout_capture(),
        };
        let handle = child.start().map_err(|error| {
            Failure::could_not_judge("E-PROC-START", format!("{} could not be started", self.program))
                .found(error)
                .hint(self.command_line())
        })?;
        let registered = handle.pids().first().map_or(Ok(None), |&pid| interrupt::register(pid))?;
        Ok(Running { handle, log: self.log.clone(), registered })
    }

    /// The call as a line for a shell, ready to paste.
    pub fn command_line(&self) -> String {
        let env = self.env.iter().map(|(name, value)| format!("{name}={}", quote(value)));
        let argv =
            std::iter::once(self.program.as_str()).chain(self.args.iter().map(String::as_str)).map(quote);
        format!("cd {} && env -i {}", quote(self.cwd.as_str()), env.chain(argv).collect::<Vec<_>>().join(" "))
    }

    /// The refusal because of a child that ended badly: its end, its last lines, its log, and the line to repeat it.
    pub fn failed(&self, exit: Exit, code: &'static str, ended: &Ended) -> Box<Failure> {
        let lines: Vec<&str> = ended.output.lines().collect();
        let last = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
        let log = ended.log.as_ref().map_or(String::new(), |path| format!("\nlog: {path}"));
        Failure::new(exit, code, format!("{} ended with {}", self.program, ended.how()))
            .expected("exit code 0")
            .found(format!("{last}{log}"))
            .hint(self.command_line())
    }
}

impl Running {
    /// Waits for the child's end.
    ///
    /// # Errors
    /// `E-INTERRUPTED` if a signal to us ended it.
    pub fn wait(self) -> Outcome<Ended> {
        let (status, captured) = {
            let ended = self.handle.wait()?;
            (ended.status, String::from_utf8_lossy(&ended.stdout).into_owned())
        };
        drop(self.registered);
        interrupt::check()?;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        let output = self.log.as_deref().map_or(Ok(captured), tail)?;
        Ok(Ended { code, output, log: self.log })
    }
}

impl Ended {
    /// How it ended: `exit code 2` or `signal 9 (exit code 137)`.
    #[must_use]
    pub fn how(&self) -> String {
        match self.code {
            code @ 129..=192 => format!("signal {} (exit code {code})", code - 128),
            code => format!("exit code {code}"),
        }
    }
}

/// A log is read while it grows, so it has its name from the start.
fn create_log(path: &Utf8Path) -> Outcome<std::fs::File> {
    fs_err::create_dir_all(path.parent().unwrap_or(Utf8Path::new(".")))?;
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    let mut options = fs_err::OpenOptions::new();
    options.create(true).write(true).truncate(true).custom_flags(flags);
    Ok(options.open(path)?.into_parts().0)
}

fn tail(path: &Utf8Path) -> Outcome<String> {
    let mut file = fs_err::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Becomes the program at `path`, with this process's own environment and streams.
///
/// # Errors
/// `E-PROC-START`; on success it does not return.
#[expect(clippy::disallowed_methods, reason = "this is the door through which processes start")]
pub fn replace<T>(path: &Utf8Path) -> Outcome<T> {
    use std::os::unix::process::CommandExt as _;
    let error = std::process::Command::new(path).exec();
    Err(Failure::could_not_judge("E-PROC-START", format!("{path} could not be started")).found(error))
}

/// Quotes `word` for a POSIX shell.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The running executable, which is entered anew to prepare a child.
///
/// # Errors
/// `E-IO` if the kernel does not tell, or the path is not UTF-8.
pub fn own_binary() -> Outcome<Utf8PathBuf> {
    let path = std::env::current_exe()?;
    Utf8PathBuf::from_path_buf(path)
        .map_err(|path| Failure::could_not_judge("E-IO", format!("{} is not UTF-8", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_is_closed_and_the_exit_code_kept() {
        let call = Call::new("/bin/sh".into(), &["-c", "env | grep -v ^PWD= | sort; exit 7"], "/".into())
            .env("A", "b c");
        let ended = call.run().unwrap();
        assert_eq!((ended.code, ended.output.lines().next()), (7, Some("A=b c")));
        assert!(!ended.output.contains("HOME"));
        assert!(call.command_line().starts_with("cd / && env -i A='b c' /bin/sh -c "));
    }

    #[test]
    fn a_failed_child_shows_its_last_lines_its_log_and_how_to_repeat_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = Utf8Path::from_path(folder.path()).unwrap().join("logs/a.log");
        let script = "i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo line $i; done; echo bad >&2; kill -9 $$";
        let call = Call::new("/bin/sh".into(), &["-c", script], "/".into()).log(&log);
        let ended = call.run().unwrap();
        let text = call.failed(Exit::BuildFailed, "E-TEST", &ended).to_string();
        assert!(text.contains("/bin/sh ended with signal 9 (exit code 137)"), "{text}");
        assert!(text.contains("line 12\n") && !text.contains("line 11\n"), "{text}");
        assert!(
            text.contains("bad\n") && text.contains(log.as_str()) && text.contains("hint: cd / && env -i"),
            "{text}"
        );
        assert!(fs_err::read_to_string(&log).unwrap().starts_with("line 1\n"));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn a_shell_reads_every_quoted_word_as_it_was(words in proptest::collection::vec("[^\0]{0,12}", 1..20)) {
            let line = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
            let ended = Call::new("/bin/sh".into(), &["-c", &format!("printf '%s\\0' {line}")], "/".into()).run().unwrap();
            let read: Vec<&str> = ended.output.split_terminator('\0').collect();
            proptest::prop_assert_eq!(read, words);
        }
    }
}
