//! The options of the host compiler, on `-Xcompiler` or of a command of its own: those that are known to be harmless, and
//! those that are known not to be.

use super::RefusalKind::{
    self, ForcedInclude, LinkTimeOptimisation, Native, OtherPhase, OtherTool, PrecompiledHeader,
    RecordedSwitches, ResponseFile, ShortDependencies, UnknownFlag,
};
use super::{Joint, Spelled, Token};

/// Options of gcc that take a value, which may be joined to them or be the next word. Longer names stand first.
const VALUED: [&str; 26] = [
    "--define-macro",
    "-include-pch",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-isysroot",
    "-dumpbase",
    "-dumpdir",
    "-wrapper",
    "-specs",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xlinker",
    "-MF",
    "-MT",
    "-MQ",
    "-D",
    "-U",
    "-I",
    "-L",
    "-l",
    "-o",
    "-B",
];

/// Beginnings of words and what is wrong with them.
const REFUSED: [(&str, RefusalKind); 32] = [
    ("@", ResponseFile),
    ("-include-pch", PrecompiledHeader),
    ("-fpch", PrecompiledHeader),
    ("-Winvalid-pch", PrecompiledHeader),
    ("-include", ForcedInclude),
    ("--include", ForcedInclude),
    ("-imacros", ForcedInclude),
    ("--imacros", ForcedInclude),
    ("-MMD", ShortDependencies),
    ("-MM", ShortDependencies),
    ("-M", OtherPhase),
    ("-specs", OtherTool),
    ("--specs", OtherTool),
    ("-wrapper", OtherTool),
    ("-fplugin", OtherTool),
    ("-B", OtherTool),
    ("-fuse-ld", OtherTool),
    ("-Xassembler", OtherTool),
    ("-Xpreprocessor", OtherTool),
    ("-iplugindir", OtherTool),
    ("-Wa,", OtherTool),
    ("-Wp,", OtherTool),
    ("--sysroot", OtherTool),
    ("-isysroot", OtherTool),
    ("-flto", LinkTimeOptimisation),
    ("-save-temps", OtherPhase),
    ("--save-temps", OtherPhase),
    ("-dump", OtherPhase),
    ("-g3", RecordedSwitches),
    ("-ggdb3", RecordedSwitches),
    ("-frecord-gcc-switches", RecordedSwitches),
    ("-grecord-gcc-switches", RecordedSwitches),
];

/// Words that end or move the compile when they ride on `-Xcompiler`; in a command of the host compiler they are its own.
const PHASES: [&str; 6] = ["-c", "-E", "-S", "-o", "-x", "-shared"];

/// Words that say everything themselves.
const FINE: &str = "-w -pipe -pthread -pedantic -pedantic-errors -ansi -m64 -g -g0 -g1 -g2 -ggdb -gdwarf-4 -gdwarf-5 \
    -O -O0 -O1 -O2 -O3 -Os -Og -Ofast -fPIC -fpic -fPIE -fpie -fopenmp -std=c++14 -std=c++17 \
    -std=c++20 -std=gnu++14 -std=gnu++17 -std=gnu++20 -fvisibility-inlines-hidden";

/// Names of `-f` options, with or without `no-`, that read no file and look at no machine.
const FEATURES: &str = "exceptions rtti threadsafe-statics strict-aliasing strict-overflow wrapv plt gnu-unique \
    canonical-system-headers fast-math math-errno trapping-math finite-math-only signed-zeros \
    associative-math reciprocal-math unsafe-math-optimizations rounding-math signaling-nans \
    unroll-loops tree-vectorize omit-frame-pointer semantic-interposition function-sections \
    data-sections stack-protector stack-protector-strong stack-clash-protection common ident \
    asynchronous-unwind-tables unwind-tables inline inline-functions";

/// Names of `-m` options, with or without `no-`: instruction sets by name, never by the machine.
const INSTRUCTIONS: &str = "sse sse2 sse3 ssse3 sse4 sse4.1 sse4.2 avx avx2 fma f16c bmi bmi2 popcnt lzcnt avx512f avx512bw \
    avx512cd avx512dq avx512vl avx512vnni avx512bf16";

/// Words for the linker that name no file.
const LINK: &str = "--as-needed --no-as-needed -z now defs relro noexecstack --no-undefined -Bsymbolic --gc-sections \
    --build-id=none --hash-style=gnu";

/// Reads words of the host compiler.
pub(super) fn read(words: &[String]) -> Vec<Token> {
    let (mut tokens, mut rest) = (Vec::new(), words);
    while let Some((word, mut after)) = rest.split_first() {
        let option = spelled(word, after.first());
        if option.as_ref().is_some_and(|option| option.joint == Joint::Separate) {
            after = &after[1..];
        }
        tokens.push(match option {
            Some(option) => typed(option),
            None if word.starts_with('-') || word.is_empty() => Token::Unknown(word.clone()),
            None => Token::Input(word.clone()),
        });
        rest = after;
    }
    tokens
}

fn spelled(word: &str, next: Option<&String>) -> Option<Spelled> {
    let made =
        |name: &str, joint, value: &str| Spelled { name: name.to_owned(), joint, value: value.to_owned() };
    if let Some(name) = VALUED.into_iter().find(|name| word.starts_with(name)) {
        return match &word[name.len()..] {
            "" => next.map(|value| made(name, Joint::Separate, value)),
            value if name.starts_with("--") => {
                value.strip_prefix('=').map(|value| made(name, Joint::Equals, value))
            }
            value => Some(made(name, Joint::Attached, value)),
        };
    }
    (word.starts_with('-') && word.len() > 1).then(|| made(word, Joint::Bare, ""))
}

fn typed(option: Spelled) -> Token {
    match option.name.as_str() {
        "-D" | "--define-macro" => Token::Define(option),
        "-I" | "-isystem" | "-iquote" | "-idirafter" | "-L" => Token::Folder(option),
        "-o" => Token::Output(option),
        _ => Token::Flag(option),
    }
}

/// What is thought of `token`; `riding` on `-Xcompiler`, or of a command of the host compiler.
pub(super) fn judge(token: &Token, riding: bool) -> Option<RefusalKind> {
    let words = token.print();
    let word = words.first().map_or("", String::as_str);
    if let Some((_, kind)) = REFUSED.iter().find(|(begin, _)| word.starts_with(begin)) {
        return Some(*kind);
    }
    if word.contains("native") && word.starts_with("-m") {
        return Some(Native);
    }
    if let Some(parts) = word.strip_prefix("-Wl,")
        && !riding
    {
        return link(parts);
    }
    match token {
        Token::Program(_) | Token::Define(_) => None,
        Token::Folder(_) if !riding || !word.starts_with("-L") => None,
        Token::Flag(option) if option.name == "-U" => None,
        Token::Input(_) | Token::Output(_) if !riding => None,
        Token::Flag(option) if !riding && ["-l", "-shared", "-c"].contains(&option.name.as_str()) => None,
        Token::Flag(_) if is_fine(word) => None,
        _ if PHASES.iter().any(|phase| word.starts_with(phase)) => Some(OtherPhase),
        Token::Input(_) => Some(OtherPhase),
        _ => Some(UnknownFlag),
    }
}

/// Whether the blank-separated `list` has `word`.
fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|item| item == word)
}

fn is_fine(word: &str) -> bool {
    let switch = |prefix: &str, names: &str| {
        let name = word.strip_prefix(prefix);
        name.is_some_and(|name| has(names, name.strip_prefix("no-").unwrap_or(name)))
    };
    let one_of = |prefix: &str, values: &[&str]| {
        word.strip_prefix(prefix).is_some_and(|value| values.contains(&value))
    };
    has(FINE, word)
        || is_warning(word)
        || switch("-f", FEATURES)
        || switch("-m", INSTRUCTIONS)
        || one_of("-fvisibility=", &["default", "hidden", "protected", "internal"])
        || one_of("-ffp-contract=", &["on", "off", "fast"])
        || one_of("-fdiagnostics-color=", &["auto", "never", "always"])
        || ["-march=x86-64", "-mtune="].iter().any(|begin| {
            word.strip_prefix(begin).is_some_and(|rest| {
                !rest.contains("native") && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            })
        })
}

/// `-Wall`, `-Wno-error=format`: a name, not a list that is handed to another tool.
fn is_warning(word: &str) -> bool {
    let name = word.strip_prefix("-W").unwrap_or("");
    !["", "a", "p", "l"].contains(&name)
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-+=".contains(&b))
}

/// What is thought of `-Wl,` and its parts: words for the linker.
fn link(parts: &str) -> Option<RefusalKind> {
    parts.split(',').find_map(|part| match part {
        _ if part.starts_with('@') => Some(ResponseFile),
        _ if part.starts_with("-plugin") || part.starts_with("--plugin") => Some(OtherTool),
        _ if part == "-o" || part.starts_with("--output") => Some(OtherPhase),
        _ if has(LINK, part) || part.starts_with("--dependency-file=") => None,
        _ => Some(UnknownFlag),
    })
}

/// Whether `token` asks the host compiler for debug information.
pub(super) fn is_debug(token: &Token) -> bool {
    token.print().first().is_some_and(|word| word.starts_with("-g") && word != "-g0")
}
