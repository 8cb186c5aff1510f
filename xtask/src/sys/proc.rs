//! Starting processes: a closed environment, captured output, and a failure that can be pasted and repeated.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use requal::{Failure, Outcome};

/// A child process to start: nothing is inherited but what stands here.
#[derive(Clone, Debug)]
pub struct Call {
    /// Absolute path of the program; PATH is never searched.
    pub program: Utf8PathBuf,
    /// Arguments after the program's name.
    pub args: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// The working folder.
    pub cwd: Utf8PathBuf,
}

/// What an ended child left.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Exit code, or 128 + signal number.
    pub code: i32,
    /// Standard output and standard error together, in order.
    pub output: String,
}

impl Call {
    /// A call of `program` with `args` in `cwd` and an empty environment.
    pub fn new(program: &Utf8Path, args: &[&str], cwd: &Utf8Path) -> Self {
        Self {
            program: program.to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            env: BTreeMap::new(),
            cwd: cwd.to_owned(),
        }
    }

    /// The same call with one more environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// Runs the child to its end and captures its output.
    ///
    /// # Errors
    /// `E-PROC-START` if it could not be started; a failed child is no error here.
    #[expect(clippy::disallowed_methods, reason = "this is the door through which processes start")]
    pub fn run(&self) -> Outcome<Ended> {
        let ended = duct::cmd(self.program.as_std_path(), &self.args)
            .full_env(&self.env)
            .dir(&self.cwd)
            .stdin_null()
            .stderr_to_stdout()
            .stdout_capture()
            .unchecked()
            .run()
            .map_err(|error| {
                Failure::could_not_judge("E-PROC-START", format!("{} could not be started", self.program))
                    .found(error)
                    .hint(self.command_line())
            })?;
        use std::os::unix::process::ExitStatusExt as _;
        let code = ended.status.code().unwrap_or_else(|| 128 + ended.status.signal().unwrap_or(0));
        Ok(Ended { code, output: String::from_utf8_lossy(&ended.stdout).into_owned() })
    }

    /// The call as a line for a shell, ready to paste.
    pub fn command_line(&self) -> String {
        let env = self.env.iter().map(|(name, value)| format!("{name}={}", quote(value)));
        let argv =
            std::iter::once(self.program.as_str()).chain(self.args.iter().map(String::as_str)).map(quote);
        format!("cd {} && env -i {}", quote(self.cwd.as_str()), env.chain(argv).collect::<Vec<_>>().join(" "))
    }
}

/// Quotes `word` for a POSIX shell.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
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
}
