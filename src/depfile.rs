//! Dependency files: what nvcc 13.0 writes is read strictly, what Ninja reads is written with its escapes.

use std::collections::BTreeSet;

use crate::{Failure, Outcome};

/// Reads the dependency file that nvcc or the linker wrote for `target`: its inputs in order, each once, `a/..//b` normalised.
///
/// nvcc escapes a space and leaves `$` and `#` bare (facts/nvcc-and-reuse.md, section 3), so a path with one of these, or
/// with a backslash, cannot be read back for certain and is refused.
///
/// # Errors
/// `E-DEPFILE`, naming `path`.
pub fn read(path: &str, text: &str, target: &str) -> Outcome<Vec<String>> {
    let fault = |why: String| {
        Failure::build_failed("E-DEPFILE", format!("the dependency file {path} cannot be trusted: {why}"))
            .expected(format!("one rule for {target}"))
            .hint("rename the file or folder if its name holds one of $ # : % \\ or a line break")
    };
    let joined = text.replace("\\\n", " ");
    let mut lines = joined.lines().filter(|line| !line.trim().is_empty());
    let rule = lines.next().unwrap_or_default();
    let (found, rest) = rule.split_once(" :").or_else(|| rule.split_once(':')).unwrap_or((rule, ""));
    if found.trim_end() != target {
        return Err(fault(format!("its rule is for {}", found.trim_end())));
    }
    let words = words(rest);
    // The linker adds an empty rule for each input; anything else is another target's.
    if let Some(other) =
        lines.find(|line| !line.strip_suffix(':').is_some_and(|input| words.iter().any(|w| w == input)))
    {
        return Err(fault(format!("it holds a second rule: {other}")));
    }
    let mut seen = BTreeSet::new();
    let mut inputs = Vec::new();
    for word in words {
        if let Some(odd) = word.chars().find(|c| "$#%:\\".contains(*c) || c.is_control()) {
            return Err(fault(format!("the path `{word}` holds `{}`", odd.escape_debug())));
        }
        let input = normalise(&word);
        if seen.insert(input.clone()) {
            inputs.push(input);
        }
    }
    if inputs.is_empty() {
        return Err(fault("it names no input".to_owned()));
    }
    Ok(inputs)
}

/// The dependency file for Ninja: `target` needs `inputs`.
///
/// Ninja's reader takes `\ `, `\#`, `$$` and `\:` (ninja manual, "Depfile"); nothing else is special in it.
#[must_use]
pub fn write(target: &str, inputs: &[String]) -> String {
    let mut text = format!("{}:", escape(target));
    for input in inputs {
        text.push_str(" \\\n  ");
        text.push_str(&escape(input));
    }
    text.push('\n');
    text
}

fn escape(path: &str) -> String {
    path.replace('$', "$$").replace('#', "\\#").replace(' ', "\\ ")
}

/// Splits at spaces that no backslash precedes, and removes those backslashes.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let last = words.len() - 1;
        match c {
            '\\' if characters.next_if_eq(&' ').is_some() => words[last].push(' '),
            ' ' | '\t' => words.push(String::new()),
            _ => words[last].push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Removes `.`, empty and `x/..` components by name alone. Trees hold no links, so that is also what the system does.
#[must_use]
pub fn normalise(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nvcc_dialect_is_read() {
        let text = "o/k.o : k.cu \\\n    /usr/include/a\\ b.h \\\n    tc/bin/..//include/x.h \\\n    tc/include/x.h\n";
        assert_eq!(read("k.d", text, "o/k.o").unwrap(), ["k.cu", "/usr/include/a b.h", "tc/include/x.h"]);
    }

    #[test]
    fn f47_odd_names_are_refused_by_character() {
        for (name, odd) in [("d$x.h", "$"), ("d#x.h", "#"), ("d:x.h", ":"), ("d%x.h", "%"), ("d\\x.h", "\\")]
        {
            let failure = read("k.d", &format!("k.o : k.cu \\\n {name}\n"), "k.o").unwrap_err();
            assert!(failure.what.contains(&format!("`{}`", odd.escape_debug())), "{failure}");
        }
        for plain in ["d+x.h", "d~x.h", "dé.h"] {
            assert_eq!(read("k.d", &format!("k.o : {plain}\n"), "k.o").unwrap(), [plain]);
        }
    }

    #[test]
    fn f49_another_target_is_refused() {
        for text in ["other.o : k.cu\n", "k.o : a\nother.o : b\n", "", "k.o :\n", "k.o"] {
            assert_eq!(read("k.d", text, "k.o").unwrap_err().code, "E-DEPFILE", "{text:?}");
        }
    }

    #[test]
    fn the_linkers_empty_rules_are_passed_over() {
        let text = "m.so: \\\n  a.o \\\n  /lib/c.so\n\na.o:\n\n/lib/c.so:\n";
        assert_eq!(read("m.d", text, "m.so").unwrap(), ["a.o", "/lib/c.so"]);
        assert_eq!(read("m.d", &format!("{text}b.o:\n"), "m.so").unwrap_err().code, "E-DEPFILE");
    }

    #[test]
    fn normalisation_is_by_name() {
        for (path, expected) in [
            ("/a/../b", "/b"),
            ("/../b", "/b"),
            ("a/..", ""),
            ("../a", "../a"),
            ("a//./b", "a/b"),
            ("/", "/"),
        ] {
            assert_eq!(normalise(path), expected);
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "[ -~\\n\\\\]{0,200}") {
            let _ = read("k.d", &text, "k.o");
        }

        #[test]
        fn what_is_written_is_read_back(inputs in proptest::collection::btree_set("[a-z+ ]{1,8}(/[a-z.]{1,6}x)?", 1..6)) {
            let inputs: Vec<String> = inputs.into_iter().filter(|input| input.trim() == input).collect();
            prop_assume!(!inputs.is_empty());
            let read = read("k.d", &write("k.o", &inputs), "k.o").unwrap();
            prop_assert_eq!(read, inputs.iter().map(|input| normalise(input)).collect::<Vec<_>>());
        }
    }
}
