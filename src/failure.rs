//! A refusal: stable code, what is wrong, where, expected, found, and the next command.

use std::fmt;

use serde::Serialize;

/// How a command ends; the process exit code. "No" and "don't know" never share a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// 0: qualified, or the requested level was reached.
    Success,
    /// 1: judged and refused.
    Refused,
    /// 2: bad usage or bad input.
    BadInput,
    /// 3: could not judge.
    CouldNotJudge,
    /// 4: the build failed.
    BuildFailed,
    /// 5: the worker failed.
    WorkerFailed,
    /// 130: interrupted.
    Interrupted,
}

impl Exit {
    /// The number that the process returns.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Refused => 1,
            Self::BadInput => 2,
            Self::CouldNotJudge => 3,
            Self::BuildFailed => 4,
            Self::WorkerFailed => 5,
            Self::Interrupted => 130,
        }
    }
}

/// Why something was refused or could not be done. The same value is printed as text and as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Stable code, listed in docs/errors.md, such as `E-LOCK-SIZE`.
    pub code: &'static str,
    /// How the process ends because of it.
    pub exit: Exit,
    /// What is wrong, naming the file or stage: a lower-case fragment without a final period.
    pub what: String,
    /// What was expected, with its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What was found, with its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// What to do next, if possible a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Independent further problems found in the same step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Failure>,
}

/// The result of anything that can be refused. Boxed, because refusals are rare and wide.
pub type Outcome<T> = Result<T, Box<Failure>>;

/// Independent problems of one step, to be joined by [`Failure::all`].
pub type Failures = Vec<Box<Failure>>;

impl Failure {
    /// A refusal with stable `code` that ends the process with `exit`.
    pub fn new(exit: Exit, code: &'static str, what: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            code,
            exit,
            what: what.into(),
            expected: None,
            found: None,
            hint: None,
            related: Vec::new(),
        })
    }

    /// Bad usage or bad input (exit 2).
    pub fn bad_input(code: &'static str, what: impl Into<String>) -> Box<Self> {
        Self::new(Exit::BadInput, code, what)
    }

    /// Judged and refused (exit 1).
    pub fn refused(code: &'static str, what: impl Into<String>) -> Box<Self> {
        Self::new(Exit::Refused, code, what)
    }

    /// Could not judge (exit 3): a missing tool, no network, a refused system call.
    pub fn could_not_judge(code: &'static str, what: impl Into<String>) -> Box<Self> {
        Self::new(Exit::CouldNotJudge, code, what)
    }

    /// The build failed (exit 4).
    pub fn build_failed(code: &'static str, what: impl Into<String>) -> Box<Self> {
        Self::new(Exit::BuildFailed, code, what)
    }

    /// Says what was expected, with its source.
    #[must_use]
    pub fn expected(mut self: Box<Self>, value: impl fmt::Display) -> Box<Self> {
        self.expected = Some(value.to_string());
        self
    }

    /// Says what was found, with its place.
    #[must_use]
    pub fn found(mut self: Box<Self>, value: impl fmt::Display) -> Box<Self> {
        self.found = Some(value.to_string());
        self
    }

    /// Says what to do next.
    #[must_use]
    pub fn hint(mut self: Box<Self>, value: impl fmt::Display) -> Box<Self> {
        self.hint = Some(value.to_string());
        self
    }

    /// Joins independent problems of one step: the first leads, the others are related to it.
    ///
    /// # Errors
    /// The joined failure, if there is any.
    pub fn all(failures: Vec<Box<Self>>) -> Outcome<()> {
        let mut rest = failures.into_iter();
        let Some(mut first) = rest.next() else { return Ok(()) };
        first.related.extend(rest.map(|failure| *failure));
        Err(first)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error[{}]: {}", self.code, self.what)?;
        for (label, value) in [("  expected: ", &self.expected), ("  found:    ", &self.found)] {
            if let Some(value) = value {
                writeln!(f, "{label}{}", value.replace('\n', "\n            "))?;
            }
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "hint: {hint}")?;
        }
        self.related.iter().try_for_each(|failure| write!(f, "{failure}"))
    }
}

impl std::error::Error for Failure {}

/// A file that could not be read or written (exit 3, `E-IO`); the error text names the file.
impl From<std::io::Error> for Box<Failure> {
    fn from(error: std::io::Error) -> Self {
        Failure::could_not_judge("E-IO", error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_the_four_parts() {
        let failure = Failure::bad_input("E-LOCK-SIZE", "size of a.whl differs from the lock")
            .expected("10 bytes  (toolchain.lock:4)")
            .found("9 bytes  (a.whl)")
            .hint("run the same command again");
        insta::assert_snapshot!(failure, @r"
        error[E-LOCK-SIZE]: size of a.whl differs from the lock
          expected: 10 bytes  (toolchain.lock:4)
          found:    9 bytes  (a.whl)
        hint: run the same command again
        ");
    }

    #[test]
    fn independent_problems_are_reported_together() {
        assert!(Failure::all(vec![]).is_ok());
        let joined =
            Failure::all(vec![Failure::refused("E-A", "a"), Failure::refused("E-B", "b")]).unwrap_err();
        assert_eq!(joined.to_string().matches("error[").count(), 2);
    }
}
