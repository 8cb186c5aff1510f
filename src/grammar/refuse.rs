//! The judgement of a command, token by token and as a whole.

use super::RefusalKind::{self, OtherPhase, ResponseFile, UnknownFlag, Unparsable, UnsafeCharacter};
use super::{Command, Refusal, Token, host, options, words};

/// Names that stand for folders: the only `$` that a token may hold.
const PLACES: [&str; 6] = ["${toolchain}", "${tree}", "${build}", "${unit}", "${host}", "${scratch}"];

/// Endings of sources that nvcc compiles to one object.
const SOURCES: [&str; 5] = [".cu", ".cpp", ".cc", ".cxx", ".c"];

/// Every refusal of `command`, each with the index of the first word of its token, in their order.
pub(super) fn all(command: &Command) -> Vec<(usize, Refusal)> {
    let mut starts = Vec::with_capacity(command.tokens.len());
    let mut next = 0;
    for token in &command.tokens {
        starts.push(next);
        next += token.print().len();
    }
    let mut found = Vec::new();
    let mut refuse = |token: usize, kind: RefusalKind, word: String| {
        found.push((starts.get(token).copied().unwrap_or(0), Refusal { kind, token: word }));
    };
    let nvcc = command.nvcc();
    for (i, token) in command.tokens.iter().enumerate() {
        for kind in kinds(token, nvcc) {
            refuse(i, kind, token.print().join(" "));
        }
    }
    let (riding, at) = command.host();
    for (token, &i) in riding.iter().zip(&at) {
        if let Some(kind) = host::judge(token, true) {
            refuse(i, kind, token.print().join(" "));
        }
    }
    // A name that comments or quotes hide: `-D/**/N` defines N.
    for define in command.defines().into_iter().filter(|define| !is_name(&define.name)) {
        refuse(define.token, Unparsable, command.tokens[define.token].print().join(" "));
    }
    if nvcc {
        let inputs = command.tokens.iter().filter(|token| matches!(token, Token::Input(_))).count();
        let compiles = |token: &Token| token.option().and_then(options::long_name) == Some("compile");
        if inputs != 1 || !command.tokens.iter().any(compiles) {
            refuse(0, OtherPhase, format!("{inputs} sources, -c: {}", command.tokens.iter().any(compiles)));
        }
    } else if !links(command) {
        // A launcher or another compiler: nothing is known of what it reads or starts.
        refuse(0, OtherPhase, command.print().into_iter().next().unwrap_or_default());
    }
    found.sort();
    found.dedup();
    found
}

/// Whether `command`, not one of nvcc, makes a shared object of objects.
fn links(command: &Command) -> bool {
    let has = |name: &str| {
        command.tokens.iter().any(|token| token.option().is_some_and(|option| option.name == name))
    };
    has("-shared") && !has("-c")
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && text.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
}

fn kinds(token: &Token, nvcc: bool) -> Vec<RefusalKind> {
    let mut kinds = Vec::new();
    let verdict = match token {
        Token::Program(_) => None,
        Token::Unknown(word) if nvcc && options::awaits(word) => Some(Unparsable),
        Token::Unknown(_) if nvcc => Some(UnknownFlag),
        Token::Input(word) if nvcc => input(word),
        _ => match token.option() {
            Some(option) if nvcc => options::judge(option),
            _ => host::judge(token, false),
        },
    };
    kinds.extend(verdict);
    if token.print().iter().any(|word| !is_plain(token, word)) {
        kinds.push(UnsafeCharacter);
    }
    let split = match token {
        Token::Host(option) if nvcc => words::host(&option.value).is_some(),
        _ => !nvcc || token.print().iter().all(|word| words::is_closed(word)),
    };
    if !split {
        kinds.push(Unparsable);
    }
    kinds
}

fn input(word: &str) -> Option<RefusalKind> {
    if word.starts_with('@') {
        return Some(ResponseFile);
    }
    (!SOURCES.iter().any(|ending| word.ends_with(ending))).then_some(OtherPhase)
}

/// Whether `word` of `token` means the same to the shell that nvcc calls, to Ninja and to a dependency file.
fn is_plain(token: &Token, word: &str) -> bool {
    let bare = PLACES.iter().fold(word.to_owned(), |text, place| text.replace(place, ""));
    // Measured: nvcc writes a definition in double quotes, a quote within escaped; paths in double quotes, a double quote
    // within not escaped and a single one with a backslash before it; and words of -Xcompiler as they are.
    let special = match token {
        Token::Define(_) => "",
        Token::Host(_) => ";&|<>(){}*?[]~!",
        _ => ";&|<>*?\"'",
    };
    !bare.chars().any(|c| "$#\\`".contains(c) || special.contains(c) || c.is_control())
}
