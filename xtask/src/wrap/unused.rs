//! Whether name defines have a say: each pass of `nvcc --dryrun` that is given one is preprocessed with -dU, which prints
//! exactly the macros that were expanded or asked for, however the name was spelled (facts/sandbox-and-formats.md).
//!
//! A name that no pass expands or asks for cannot change what the passes give, whatever its value: preprocessing is the only
//! use of a define, and it goes the same way until the name is first met.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use requal::receipt::Reason;
use requal::reuse::Decided;
use requal::{Digest, Outcome};
use serde::{Deserialize, Serialize};

use super::Step;
use crate::sys::fs;
use crate::sys::proc::Call;

/// The arguments of the two compiles, naming places.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    /// Of the compile that was observed.
    pub(super) recorded: &'a [String],
    /// Of the one that is to be saved.
    pub(super) wanted: &'a [String],
}

/// A kept outcome: good for as long as commands and closure are the same.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    key: Digest,
    reason_to_compile: Option<Decided>,
}

/// The reason to compile, or none if every one of `names` is unused.
///
/// # Errors
/// `E-PROC-START`, `E-IO`. A pass that fails is a reason to compile.
pub(super) fn test(
    step: &Step,
    temporary: &Utf8Path,
    pair: Pair<'_>,
    names: &BTreeSet<String>,
    closure_sha256: Digest,
) -> Outcome<Option<Decided>> {
    let path = step.build().join("unused").join(format!("{}.json", step.output));
    let key = key(pair, names, closure_sha256);
    let kept: Option<Kept> = fs_err::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some(kept) = kept.filter(|kept| kept.key == key) {
        return Ok(kept.reason_to_compile);
    }
    let reason_to_compile = Test { step, temporary, names }.run(pair)?;
    let kept = Kept { key, reason_to_compile };
    fs::write(&path, &serde_json::to_vec(&kept).map_err(std::io::Error::from)?)?;
    Ok(kept.reason_to_compile)
}

fn key(pair: Pair<'_>, names: &BTreeSet<String>, closure_sha256: Digest) -> Digest {
    let mut hasher = requal::digest::Hasher::new();
    hasher.update(b"urn:requal:unused-key:v1\0");
    hasher.update(closure_sha256.as_bytes());
    hasher.list(pair.recorded.iter());
    hasher.list(pair.wanted.iter());
    hasher.list(names.iter());
    hasher.finish()
}

/// What makes a pass print the macros that it uses; with directives alone it would expand none.
const USED: &str = "-E -dU -fno-directives-only";

/// Whether a pass is told to put macros into debug information (gcc's manual, "Debugging Options": level 3).
fn holds_macros(line: &str) -> bool {
    let mut words = line.split_whitespace().map(|word| word.trim_matches('"'));
    words.any(|word| word.starts_with("-g") && word.ends_with('3'))
}

struct Test<'a> {
    step: &'a Step,
    temporary: &'a Utf8Path,
    names: &'a BTreeSet<String>,
}

impl Test<'_> {
    fn run(&self, pair: Pair<'_>) -> Outcome<Option<Decided>> {
        let untold = |about: &str| Decided::compiled_about(Reason::NameDefineUntold, about);
        let (Some(recorded), Some(wanted)) = (self.passes(pair.recorded)?, self.passes(pair.wanted)?) else {
            return Ok(Some(untold("dryrun")));
        };
        if recorded.iter().map(|line| self.bare(line)).ne(wanted.iter().map(|line| self.bare(line))) {
            return Ok(Some(untold("dryrun")));
        }
        let host = self.host_compiler(pair.wanted);
        for (i, (one, line)) in recorded.iter().zip(&wanted).enumerate() {
            if !self.named(one) && !self.named(line) {
                continue;
            }
            // Any other pass that is given the name may do with it what it likes; so does debug information that holds every
            // macro.
            if !host.as_ref().is_some_and(|host| line.starts_with(host)) || holds_macros(line) {
                return Ok(Some(untold(&format!("pass/{i}"))));
            }
            match self.preprocess(line)? {
                None => return Ok(Some(untold(&format!("pass/{i}")))),
                Some(text) => {
                    if let Some(name) = self.used(&text) {
                        return Ok(Some(Decided::compiled_about(Reason::NameDefineUsed, name)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The commands that nvcc would run, in order; none if it fails.
    fn passes(&self, argv: &[String]) -> Outcome<Option<Vec<String>>> {
        let mut argv = self.step.resolved(argv);
        let program = argv.remove(0);
        argv.insert(0, "--dryrun".to_owned());
        let ended = self.call(program.into(), argv).run()?;
        let lines = ended.output.lines().map(|line| line.strip_prefix("#$ ").map(str::to_owned));
        Ok(lines.collect::<Option<Vec<_>>>().filter(|_| ended.code == 0))
    }

    /// A line without what it says of the names.
    fn bare(&self, line: &str) -> String {
        self.names.iter().fold(line.to_owned(), |line, name| {
            let begin = format!("-D \"{name}=");
            let mut rest = line.as_str();
            let mut bare = String::new();
            while let Some((before, after)) = rest.split_once(&begin) {
                // Values hold letters, digits and `_` alone: the manifest sees to it.
                let Some((_, after)) = after.split_once("\" ") else { break };
                bare.push_str(before);
                rest = after;
            }
            bare + rest
        })
    }

    fn named(&self, line: &str) -> bool {
        self.names.iter().any(|name| line.contains(name.as_str()))
    }

    /// How nvcc writes the host compiler in a pass.
    fn host_compiler(&self, argv: &[String]) -> Option<String> {
        let path = argv.iter().find_map(|token| token.strip_prefix("-ccbin="))?;
        let (folder, name) = path.rsplit_once('/')?;
        Some(format!("\"{folder}\"/{name} "))
    }

    /// What the preprocessor gives for the pass `line`, the used macros among it; none if it fails, or has something to say,
    /// or does not write to the step's own folder.
    fn preprocess(&self, line: &str) -> Outcome<Option<String>> {
        let output = line.trim_end().strip_suffix('"').and_then(|line| line.rsplit_once(" -o \""));
        let Some((_, output)) =
            output.filter(|(_, path)| Utf8Path::new(path).starts_with(self.step.folder()))
        else {
            return Ok(None);
        };
        let ended = self.call("/bin/sh".into(), vec!["-c".to_owned(), format!("{line} {USED}")]).run()?;
        if ended.code != 0 || !ended.output.trim().is_empty() {
            return Ok(None);
        }
        Ok(fs_err::read(output).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn used(&self, text: &str) -> Option<&String> {
        let named = |line: &str| {
            let rest = line.strip_prefix("#define ").or_else(|| line.strip_prefix("#undef "))?;
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            self.names.get(&rest[..end])
        };
        text.lines().find_map(named)
    }

    fn call(&self, program: Utf8PathBuf, args: Vec<String>) -> Call {
        let (env, cwd) = (self.step.environment(self.temporary), self.temporary.to_owned());
        Call { program, args, env, cwd, log: None }
    }
}
