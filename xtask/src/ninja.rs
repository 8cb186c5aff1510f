//! Ninja, the scheduler: its file is written here, it is run in the place, and its memory of inputs is read back.

use std::fmt::Write as _;

use requal::{Failure, Outcome};

use crate::sys::proc::quote;

/// One edge of the graph: a command that makes `output` from `inputs`.
#[derive(Clone, Debug)]
pub struct Edge {
    /// What it makes, relative to the build folder.
    pub output: String,
    /// What it is made from: paths in the place, or outputs of other edges.
    pub inputs: Vec<String>,
    /// The command's words.
    pub command: Vec<String>,
}

/// The text of `build.ninja` for `edges`.
#[must_use]
pub fn file(edges: &[Edge]) -> String {
    let mut text = String::from("ninja_required_version = 1.11\n\nrule step\n  command = $words\n");
    text.push_str("  description = $out\n  depfile = $out.d\n  deps = gcc\n");
    for edge in edges {
        let inputs: Vec<String> = edge.inputs.iter().map(|path| escape_path(path)).collect();
        let words: Vec<String> = edge.command.iter().map(|word| quote(word)).collect();
        let words = words.join(" ").replace('$', "$$");
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\nbuild {}: step {}\n  words = {words}\n",
            escape_path(&edge.output),
            inputs.join(" ")
        );
    }
    text
}

/// Paths of a build line end at a space, colon or `$` unless escaped (ninja manual, "Lexical syntax").
fn escape_path(path: &str) -> String {
    path.replace('$', "$$").replace(' ', "$ ").replace(':', "$:")
}

/// Judges the answer of `ninja -t deps OUTPUT…`: each output has inputs, and they are valid. Ninja takes a missing
/// dependency file for "no inputs" and is content for ever (facts/nvcc-and-reuse.md, section 1.7).
///
/// # Errors
/// `E-NINJA-DEPS` with every output that is not so.
pub fn judge_deps(outputs: &[&str], answer: &str) -> Outcome<()> {
    let state = |output: &str| answer.lines().find_map(|line| line.strip_prefix(output)?.strip_prefix(": "));
    let recorded = |output: &&&str| {
        state(output).is_some_and(|state| state.ends_with("(VALID)") && !state.starts_with("#deps 0,"))
    };
    let failures = outputs.iter().filter(|output| !recorded(output)).map(|output| {
        Failure::build_failed("E-NINJA-DEPS", format!("ninja recorded no valid inputs of {output}"))
            .expected("#deps greater than 0, (VALID)")
            .found(state(output).unwrap_or("deps not found"))
            .hint("remove the scratch's build folder and run the same command again")
    });
    Failure::all(failures.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell_and_then_for_ninja() {
        let edge = Edge {
            output: "a b.o".into(),
            inputs: vec!["/t/a$b:c.cu".into()],
            command: vec!["/x/wrap".into(), "code=[sm_86]".into(), "${tree}/a".into()],
        };
        let text = file(&[edge]);
        assert!(text.contains("build a$ b.o: step /t/a$$b$:c.cu\n"), "{text}");
        assert!(text.contains("  words = /x/wrap 'code=[sm_86]' '$${tree}/a'\n"), "{text}");
    }

    #[test]
    fn empty_stale_or_missing_records_are_refused() {
        let answer = "a.o: #deps 3, deps mtime 5 (VALID)\n    x\n\nb.o: #deps 0, deps mtime 5 (VALID)\n\n\
                      c.o: #deps 2, deps mtime 5 (STALE)\nd.o: deps not found\n";
        assert!(judge_deps(&["a.o"], answer).is_ok());
        let failure = judge_deps(&["a.o", "b.o", "c.o", "d.o", "e.o"], answer).unwrap_err();
        assert_eq!((failure.code, failure.related.len()), ("E-NINJA-DEPS", 3));
    }
}
