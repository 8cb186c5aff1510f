//! The worker protocol: one JSON request a line on stdin, one JSON answer a line on stdout.

use std::io::{BufRead, Write};

use camino::Utf8PathBuf;
use requal::{Digest, Exit, Failure, Outcome};
use serde::{Deserialize, Serialize};

use crate::hello;

/// Version of this protocol; a change that an old parent cannot read raises it.
pub(crate) const VERSION: u32 = 1;

/// One line from the parent.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    Hello(HelloRequest),
}

/// Load these files and say what they are. First and once in a process, so that an answer always speaks of a
/// fresh process.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HelloRequest {
    /// The modules, loaded in this order.
    pub(crate) modules: Vec<ModuleRef>,
    /// The CUDA runtime library, loaded before them.
    pub(crate) cudart: FileRef,
}

/// A module and the name under which the parent uses it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModuleRef {
    /// The marker that the module must answer.
    pub(crate) name: String,
    /// Its file.
    pub(crate) path: Utf8PathBuf,
    /// The file's expected SHA-256.
    pub(crate) sha256: Digest,
}

/// A file with its expected SHA-256.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileRef {
    /// Its path.
    pub(crate) path: Utf8PathBuf,
    /// Its expected SHA-256.
    pub(crate) sha256: Digest,
}

/// One line to the parent.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Hello(HelloAnswer),
    Error(Box<Failure>),
}

/// What was loaded, and that no GPU was touched for it.
#[derive(Serialize)]
pub(crate) struct HelloAnswer {
    /// Version of this protocol.
    pub(crate) protocol: u32,
    /// Version of this worker.
    pub(crate) worker: &'static str,
    /// SHA-256 of the mapped CUDA runtime library.
    pub(crate) cudart_sha256: Digest,
    /// In the order of the request.
    pub(crate) modules: Vec<ModuleAnswer>,
    /// Mapped files named libcuda.so*, from /proc/self/maps after loading; always empty in an answer.
    pub(crate) libcuda_mapped: Vec<String>,
    /// Open descriptors of /dev/nvidia*, from /proc/self/fd after loading; always empty in an answer.
    pub(crate) nvidia_descriptors: Vec<String>,
}

/// What one module says about itself.
#[derive(Serialize)]
pub(crate) struct ModuleAnswer {
    /// Its marker, equal to the requested name.
    pub(crate) name: String,
    /// How its linear sums products.
    pub(crate) accumulation: String,
    /// Version of its table.
    pub(crate) abi_version: u32,
    /// SHA-256 of the mapped file.
    pub(crate) sha256: Digest,
}

/// Answers requests until the input ends. The first refusal is answered and ends the process.
///
/// # Errors
/// The refusal, already written as an answer; or `E-IO` when stdin or stdout fails.
pub(crate) fn serve(input: impl BufRead, mut output: impl Write) -> Outcome<()> {
    let mut greeted = false;
    for line in input.lines() {
        let answer = parse(&line?, greeted).and_then(|Request::Hello(request)| hello::hello(&request));
        greeted = true;
        let (answer, refusal) = match answer {
            Ok(answer) => (Answer::Hello(answer), None),
            Err(failure) => (Answer::Error(failure.clone()), Some(failure)),
        };
        let text = serde_json::to_string(&answer)
            .map_err(|error| Failure::new(Exit::WorkerFailed, "E-WORKER-ANSWER", error.to_string()))?;
        writeln!(output, "{text}")?;
        output.flush()?;
        if let Some(failure) = refusal {
            return Err(failure);
        }
    }
    Ok(())
}

fn parse(line: &str, greeted: bool) -> Outcome<Request> {
    let request = serde_json::from_str(line).map_err(|error| {
        Failure::bad_input("E-PROTOCOL", "a request line is not one of this protocol")
            .expected(r#"{"hello":{"modules":[…],"cudart":{…}}}  (docs/worker-protocol.md)"#)
            .found(error)
    })?;
    if greeted {
        return Err(Failure::bad_input("E-PROTOCOL", "hello comes once in a process")
            .found("a second hello")
            .hint("start a new worker"));
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> (String, Box<Failure>) {
        let mut output = Vec::new();
        let failure = serve(line.as_bytes(), &mut output).unwrap_err();
        (String::from_utf8(output).unwrap(), failure)
    }

    #[test]
    fn what_is_no_request_is_refused_in_one_line() {
        for line in ["{}", "[]", r#"{"helo":{}}"#, r#"{"hello":{"modules":[]}}"#, "\u{0}", ""] {
            let (output, failure) = refusal(&format!("{line}\n"));
            assert_eq!((failure.code, failure.exit), ("E-PROTOCOL", Exit::BadInput), "{line}");
            assert_eq!(output.lines().count(), 1);
            assert!(output.starts_with(r#"{"error":{"code":"E-PROTOCOL""#), "{output}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let digest = "0".repeat(64);
        let (_, failure) = refusal(&format!(
            r#"{{"hello":{{"modules":[],"cudart":{{"path":"/c","sha256":"{digest}","size":1}}}}}}"#
        ));
        assert!(failure.found.unwrap().contains("unknown field `size`"));
    }

    #[test]
    fn silence_is_no_error() {
        serve(&b""[..], Vec::new()).unwrap();
    }
}
