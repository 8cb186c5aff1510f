//! The options of nvcc: every one that nvcc 13.0.88 lists, whether it takes a value, and what is thought of it.

use super::RefusalKind::{
    self, ForcedInclude, LinkTimeOptimisation, Native, OtherPhase, OtherTool, RelocatableDeviceCode,
    ResponseFile, ShortDependencies, SplitCompile, UnknownFlag,
};
use super::{Joint, Spelled, Token};

/// One option: its long name, its short name, what it takes.
pub(super) struct Row {
    /// With two dashes.
    pub(super) long: &'static str,
    /// With one dash.
    short: &'static str,
    takes: Takes,
}

/// What an option takes, and what that is worth to a certificate.
#[derive(Clone, Copy)]
enum Takes {
    /// No value.
    Nothing(Verdict),
    /// One value, judged with its option.
    Value(fn(&str) -> Verdict),
}

/// Nothing against it, or the reason of a refusal.
pub(super) type Verdict = Option<RefusalKind>;

const FINE: Takes = Takes::Nothing(None);
const PHASE: Takes = Takes::Nothing(Some(OtherPhase));
const PHASE_VALUE: Takes = Takes::Value(|_| Some(OtherPhase));
const UNKNOWN: Takes = Takes::Nothing(Some(UnknownFlag));
const UNKNOWN_VALUE: Takes = Takes::Value(|_| Some(UnknownFlag));
const ANY: Takes = Takes::Value(|_| None);
const SWITCH: Takes = Takes::Value(|value| listed(&["true", "false"], value));
const NUMBER: Takes = Takes::Value(number);
const NUMBERS: Takes = Takes::Value(|value| value.split(',').find_map(number));

/// Options that are not here are unknown to nvcc too. Those with an open verdict have deterministic effects that stand in
/// the command alone, or none on the object: warnings, and threads between targets (`-t`, measured: same bytes).
const OPTIONS: &[(&str, &str, Takes)] = &[
    ("cuda", "cuda", PHASE),
    ("cubin", "cubin", PHASE),
    ("fatbin", "fatbin", PHASE),
    ("ptx", "ptx", PHASE),
    ("optix-ir", "optix-ir", PHASE),
    ("ltoir", "ltoir", PHASE),
    ("preprocess", "E", PHASE),
    ("generate-dependencies", "M", PHASE),
    ("generate-nonsystem-dependencies", "MM", Takes::Nothing(Some(ShortDependencies))),
    ("generate-dependencies-with-compile", "MD", FINE),
    ("generate-nonsystem-dependencies-with-compile", "MMD", Takes::Nothing(Some(ShortDependencies))),
    ("dependency-output", "MF", ANY),
    ("generate-dependency-targets", "MP", FINE),
    ("dependency-target-name", "MT", ANY),
    ("compile", "c", FINE),
    ("device-c", "dc", Takes::Nothing(Some(RelocatableDeviceCode))),
    ("device-w", "dw", Takes::Nothing(Some(RelocatableDeviceCode))),
    ("device-link", "dlink", PHASE),
    ("link", "link", PHASE),
    ("lib", "lib", PHASE),
    ("run", "run", PHASE),
    ("output-file", "o", ANY),
    ("pre-include", "include", Takes::Value(|_| Some(ForcedInclude))),
    ("objdir-as-tempdir", "objtemp", FINE),
    ("library", "l", UNKNOWN_VALUE),
    ("define-macro", "D", ANY),
    ("undefine-macro", "U", ANY),
    ("include-path", "I", ANY),
    ("system-include", "isystem", ANY),
    ("library-path", "L", UNKNOWN_VALUE),
    ("output-directory", "odir", UNKNOWN_VALUE),
    ("compiler-bindir", "ccbin", ANY),
    ("allow-unsupported-compiler", "allow-unsupported-compiler", UNKNOWN),
    ("archiver-binary", "arbin", Takes::Value(|_| Some(OtherTool))),
    ("cudart", "cudart", UNKNOWN_VALUE),
    ("cudadevrt", "cudadevrt", UNKNOWN_VALUE),
    ("libdevice-directory", "ldir", Takes::Value(|_| Some(OtherTool))),
    ("target-directory", "target-dir", Takes::Value(|_| Some(OtherTool))),
    ("use-local-env", "use-local-env", Takes::Nothing(Some(OtherTool))),
    ("force-cl-env-setup", "force-cl-env-setup", Takes::Nothing(Some(OtherTool))),
    ("profile", "pg", UNKNOWN),
    ("debug", "g", FINE),
    ("device-debug", "G", FINE),
    ("generate-line-info", "lineinfo", FINE),
    ("optimization-info", "opt-info", UNKNOWN_VALUE),
    ("optimize", "O", NUMBER),
    ("Ofast-compile", "Ofc", UNKNOWN_VALUE),
    ("dopt", "dopt", Takes::Value(|value| listed(&["on"], value))),
    ("dlink-time-opt", "dlto", Takes::Nothing(Some(LinkTimeOptimisation))),
    ("lto", "lto", Takes::Nothing(Some(LinkTimeOptimisation))),
    ("gen-opt-lto", "gen-opt-lto", Takes::Nothing(Some(LinkTimeOptimisation))),
    ("ftemplate-backtrace-limit", "ftemplate-backtrace-limit", NUMBER),
    ("ftemplate-depth", "ftemplate-depth", NUMBER),
    ("no-exceptions", "noeh", FINE),
    ("shared", "shared", PHASE),
    ("x", "x", UNKNOWN_VALUE),
    ("std", "std", Takes::Value(|value| listed(&["c++03", "c++11", "c++14", "c++17", "c++20"], value))),
    ("no-host-device-initializer-list", "nohdinitlist", FINE),
    ("no-host-device-move-forward", "nohdmoveforward", FINE),
    ("expt-relaxed-constexpr", "expt-relaxed-constexpr", FINE),
    ("extended-lambda", "extended-lambda", FINE),
    ("expt-extended-lambda", "expt-extended-lambda", FINE),
    ("machine", "m", Takes::Value(|value| listed(&["64"], value))),
    ("m64", "m64", FINE),
    ("compiler-options", "Xcompiler", ANY), // judged word by word, all of them together
    ("linker-options", "Xlinker", PHASE_VALUE),
    ("archive-options", "Xarchive", PHASE_VALUE),
    ("ptxas-options", "Xptxas", Takes::Value(ptxas)),
    ("nvlink-options", "Xnvlink", PHASE_VALUE),
    ("static-global-template-stub", "static-global-template-stub", SWITCH),
    ("device-entity-has-hidden-visibility", "device-entity-has-hidden-visibility", SWITCH),
    ("forward-unknown-to-host-compiler", "forward-unknown-to-host-compiler", UNKNOWN),
    ("forward-unknown-to-host-linker", "forward-unknown-to-host-linker", UNKNOWN),
    ("forward-unknown-opts", "forward-unknown-opts", UNKNOWN),
    ("dont-use-profile", "noprof", Takes::Nothing(Some(OtherTool))),
    ("dryrun", "dryrun", PHASE),
    ("verbose", "v", FINE),
    ("threads", "t", NUMBER),
    ("split-compile", "split-compile", Takes::Value(|_| Some(SplitCompile))),
    ("split-compile-extended", "split-compile-extended", Takes::Value(|_| Some(SplitCompile))),
    ("fdevice-syntax-only", "fdevice-syntax-only", PHASE),
    ("fdevice-time-trace", "fdevice-time-trace", PHASE_VALUE),
    ("keep", "keep", PHASE),
    ("keep-dir", "keep-dir", PHASE_VALUE),
    ("save-temps", "save-temps", PHASE),
    ("clean-targets", "clean", PHASE),
    ("time", "time", PHASE_VALUE),
    ("run-args", "run-args", PHASE_VALUE),
    ("input-drive-prefix", "idp", UNKNOWN_VALUE),
    ("dependency-drive-prefix", "ddp", UNKNOWN_VALUE),
    ("drive-prefix", "dp", UNKNOWN_VALUE),
    ("no-align-double", "-no-align-double", UNKNOWN),
    ("no-device-link", "nodlink", UNKNOWN),
    ("gpu-architecture", "arch", Takes::Value(target)),
    ("gpu-code", "code", Takes::Value(targets)),
    ("generate-code", "gencode", Takes::Value(targets)),
    (
        "relocatable-device-code",
        "rdc",
        Takes::Value(|value| (value != "false").then_some(RelocatableDeviceCode)),
    ),
    ("entries", "e", UNKNOWN_VALUE),
    ("maxrregcount", "maxrregcount", NUMBER),
    ("use_fast_math", "use_fast_math", FINE),
    ("ftz", "ftz", SWITCH),
    ("prec-div", "prec-div", SWITCH),
    ("prec-sqrt", "prec-sqrt", SWITCH),
    ("fmad", "fmad", SWITCH),
    ("extra-device-vectorization", "extra-device-vectorization", FINE),
    (
        "default-stream",
        "default-stream",
        Takes::Value(|value| listed(&["legacy", "null", "per-thread"], value)),
    ),
    ("disable-warnings", "w", FINE),
    ("keep-device-functions", "keep-device-functions", FINE),
    ("source-in-ptx", "src-in-ptx", UNKNOWN),
    ("restrict", "restrict", FINE),
    ("Wreorder", "Wreorder", FINE),
    ("Wdefault-stream-launch", "Wdefault-stream-launch", FINE),
    ("Wmissing-launch-bounds", "Wmissing-launch-bounds", FINE),
    ("Wext-lambda-captures-this", "Wext-lambda-captures-this", FINE),
    ("Wno-deprecated-declarations", "Wno-deprecated-declarations", FINE),
    ("Wno-deprecated-gpu-targets", "Wno-deprecated-gpu-targets", FINE),
    ("Werror", "Werror", Takes::Value(|value| value.split(',').find_map(word))),
    ("resource-usage", "res-usage", FINE),
    ("extensible-whole-program", "ewp", Takes::Nothing(Some(RelocatableDeviceCode))),
    ("no-compress", "no-compress", FINE),
    ("qpp-config", "qpp-config", Takes::Value(|_| Some(OtherTool))),
    ("compile-as-tools-patch", "astoolspatch", UNKNOWN),
    ("list-gpu-code", "code-ls", PHASE),
    ("list-gpu-arch", "arch-ls", PHASE),
    ("display-error-number", "err-no", FINE),
    ("no-display-error-number", "no-err-no", FINE),
    ("diag-error", "diag-error", NUMBERS),
    ("diag-suppress", "diag-suppress", NUMBERS),
    ("diag-warn", "diag-warn", NUMBERS),
    ("host-linker-script", "hls", UNKNOWN_VALUE),
    ("augment-host-linker-script", "aug-hls", UNKNOWN),
    ("relocatable-link", "r", PHASE),
    ("brief-diagnostics", "brief-diag", SWITCH),
    ("jump-table-density", "jtd", NUMBER),
    ("relocatable-ptx", "reloc-ptx", UNKNOWN),
    ("device-stack-protector", "device-stack-protector", SWITCH),
    ("compress-mode", "compress-mode", Takes::Value(word)),
    ("frandom-seed", "frandom-seed", ANY),
    ("sanitize", "sanitize", UNKNOWN_VALUE),
    ("jobserver", "jobserver", UNKNOWN),
    ("options-file", "optf", Takes::Value(|_| Some(ResponseFile))),
];

/// Options of one letter that may be joined to their values.
const ATTACHED: [&str; 7] = ["-D", "-U", "-I", "-L", "-l", "-O", "-t"];

/// The row of an option that is written as `name`, dashes included.
fn row(name: &str) -> Option<Row> {
    let (one_dash, two_dashes) = (name.strip_prefix('-')?, name.strip_prefix("--"));
    let named = |(long, short, _): &&(&'static str, &'static str, Takes)| {
        two_dashes == Some(long) || one_dash == *short
    };
    OPTIONS.iter().find(named).map(|&(long, short, takes)| Row { long, short, takes })
}

/// Reads the words after the program.
pub(super) fn read(words: &[String]) -> Vec<Token> {
    let (mut tokens, mut rest) = (Vec::new(), words);
    while let Some((word, mut after)) = rest.split_first() {
        tokens.push(match spelled(word, after.first()) {
            Some(option) => {
                if option.joint == Joint::Separate {
                    after = &after[1..];
                }
                typed(option)
            }
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
    if let Some(row) = row(word) {
        return match row.takes {
            Takes::Nothing(_) => Some(made(word, Joint::Bare, "")),
            Takes::Value(_) => next.map(|value| made(word, Joint::Separate, value)),
        };
    }
    if let Some((name, value)) = word.split_once('=')
        && let Some(row) = row(name)
    {
        return matches!(row.takes, Takes::Value(_)).then(|| made(name, Joint::Equals, value));
    }
    let name = ATTACHED.into_iter().find(|name| word.starts_with(name))?;
    Some(made(name, Joint::Attached, &word[name.len()..]))
}

fn typed(option: Spelled) -> Token {
    match row(&option.name).map_or("", |row| row.short) {
        "D" => Token::Define(option),
        "I" | "isystem" | "L" => Token::Folder(option),
        "o" => Token::Output(option),
        "Xcompiler" => Token::Host(option),
        "optf" => Token::OptionsFile(option),
        _ => Token::Flag(option),
    }
}

/// What is thought of `option`.
pub(super) fn judge(option: &Spelled) -> Verdict {
    match row(&option.name).map(|row| row.takes) {
        Some(Takes::Nothing(verdict)) => verdict,
        Some(Takes::Value(judge)) => judge(&option.value),
        None => Some(UnknownFlag),
    }
}

/// Whether `word` is an option whose value would have to be the next word.
pub(super) fn awaits(word: &str) -> bool {
    row(word).is_some_and(|row| matches!(row.takes, Takes::Value(_)))
}

/// The long name of `option`, without dashes.
pub(super) fn long_name(option: &Spelled) -> Option<&'static str> {
    row(&option.name).map(|row| row.long)
}

fn listed(allowed: &[&str], value: &str) -> Verdict {
    (!allowed.contains(&value)).then_some(UnknownFlag)
}

fn number(value: &str) -> Verdict {
    (value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit())).then_some(UnknownFlag)
}

fn word(value: &str) -> Verdict {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    (value.is_empty() || !value.bytes().all(plain)).then_some(UnknownFlag)
}

/// One target, by number: `all` moves with the toolkit, `native` with the machine.
fn target(value: &str) -> Verdict {
    if value.contains("native") {
        return Some(Native);
    }
    if value.starts_with("lto_") {
        return Some(LinkTimeOptimisation);
    }
    let number = value.strip_prefix("sm_").or_else(|| value.strip_prefix("compute_"));
    let number = number.map(|text| text.strip_suffix(['a', 'f']).unwrap_or(text));
    number.map_or(Some(UnknownFlag), self::number)
}

/// Every target of `-code` or `-gencode`: `arch=compute_86,code=[sm_86,compute_86]`.
fn targets(value: &str) -> Verdict {
    let bare = value.replace(['[', ']'], "");
    bare.split(',').find_map(|part| {
        let part = part.strip_prefix("arch=").or_else(|| part.strip_prefix("code=")).unwrap_or(part);
        target(part)
    })
}

/// Options of ptxas that say, warn or tune: none names a file.
fn ptxas(value: &str) -> Verdict {
    const WORDS: [&str; 12] = [
        "-v",
        "--verbose",
        "-w",
        "-warn-spills",
        "--warn-on-spills",
        "-warn-lmem-usage",
        "--warn-on-local-memory-usage",
        "-dlcm=ca",
        "-dlcm=cg",
        "-allow-expensive-optimizations=true",
        "--allow-expensive-optimizations=true",
        "-Werror",
    ];
    let fine = |word: &str| {
        let level = word.strip_prefix("-O").is_some_and(|level| matches!(level, "0" | "1" | "2" | "3" | "4"));
        let registers = word.strip_prefix("-maxrregcount=").or_else(|| word.strip_prefix("--maxrregcount="));
        WORDS.contains(&word) || level || registers.is_some_and(|count| number(count).is_none())
    };
    let words = || value.split([',', ' ']);
    if words().any(|word| ["@", "-optf", "--options-file"].iter().any(|begin| word.starts_with(begin))) {
        return Some(ResponseFile);
    }
    if words().any(|word| word.starts_with("-o") || word.starts_with("--output-file")) {
        return Some(OtherPhase);
    }
    (!words().all(fine)).then_some(UnknownFlag)
}
