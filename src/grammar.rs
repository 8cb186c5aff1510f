//! The closed grammar of commands: what one compile's argv says, and why its unit may never be certified.
//!
//! Reuse compares commands word by word, so a word may only stand in a certified command if it is known what it does.
//! A command is refused for certification (the unit is compiled, each time) when it holds one of these:
//!
//! | kind | what |
//! |---|---|
//! | `RESPONSE_FILE` | `@file`, `--options-file`: words that stand elsewhere and were not expanded ([`expand`]) |
//! | `NATIVE` | `native` targets or tuning: the meaning depends on the machine |
//! | `RELOCATABLE_DEVICE_CODE` | `-rdc`, `-dc`, `-dw`, `-ewp`: code is settled at link |
//! | `LINK_TIME_OPTIMISATION` | `-dlto`, `-lto`, `lto_NN`, `-flto`: the same |
//! | `PRECOMPILED_HEADER` | macro state enters from a file that no include names |
//! | `FORCED_INCLUDE` | `-include`, `-imacros` |
//! | `UNSAFE_CHARACTER` | `$`, `#`, `\`, a backtick, a newline or another control character; places such as `${tree}` are fine. What nvcc hands to its shell unquoted may hold no character of the shell's either |
//! | `SHORT_DEPENDENCIES` | `-MMD`, `-MM`: the listing leaves out system folders |
//! | `OTHER_TOOL` | another compiler stage, specs, plug-in, wrapper or profile |
//! | `SPLIT_COMPILE` | the bytes depend on the number of threads |
//! | `OTHER_PHASE` | not one compile by nvcc of one source to one object, or one that leaves other files; a link by the host compiler is neither refused nor certified |
//! | `RECORDED_SWITCHES` | `-g3`, `-frecord-gcc-switches`: macros or words of the command reach the object |
//! | `UNPARSABLE` | a value is missing, a quote has no end, or a definition does not begin with a plain name |
//! | `UNKNOWN_FLAG` | anything that the tables in [`options`] and [`host`] do not argue for |
//!
//! Measured with nvcc 13.0.88: an option of one letter may be joined to its value for `-D -U -I -L -l -O -t` only, every
//! other takes `=` or the next word; long names are never abbreviated and have two dashes, short ones have one; values
//! are parted by commas outside of double quotes. A `-D` of nvcc reaches the `-E` passes alone, one on `-Xcompiler`
//! reaches the last host compile too. nvcc itself takes `@file` for a source; gcc, behind `-Xcompiler`, expands it.

mod expand;
mod host;
mod options;
mod refuse;
mod words;

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use expand::expand;

use crate::json;

/// One typed token of a command. Printing all tokens gives the argv back, word by word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// The program, always the first word.
    Program(String),
    /// Macro definitions for the `-E` passes: `-D`.
    Define(Spelled),
    /// A folder to look for headers or libraries in: `-I`, `-isystem`, `-L` and the like.
    Folder(Spelled),
    /// Where the result goes: `-o`.
    Output(Spelled),
    /// Words for the host compiler: `-Xcompiler`.
    Host(Spelled),
    /// Files with further words: `--options-file`.
    OptionsFile(Spelled),
    /// Any other option of the table.
    Flag(Spelled),
    /// A word that is no option: a source, an object, or a response file.
    Input(String),
    /// What the grammar does not know, or an option whose value is missing.
    Unknown(String),
}

/// An option of the table as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spelled {
    /// Its name as written, with dashes.
    pub name: String,
    /// How the value stands to the name.
    pub joint: Joint,
    /// The value as written; empty if the option takes none.
    pub value: String,
}

/// How an option's value stands to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// There is no value.
    Bare,
    /// `-DN`.
    Attached,
    /// `-D=N`.
    Equals,
    /// `-D N`, two words.
    Separate,
}

/// A command, program first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its tokens, in order.
    pub tokens: Vec<Token>,
}

/// One macro definition on a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Define {
    /// The macro's name.
    pub name: String,
    /// What follows `=`; absent for a plain `-DN`. What follows the name without `=` stands as written: `(x)=x`.
    pub value: Option<String>,
    /// Whose definition it is.
    pub place: DefinePlace,
    /// Index of the token that holds it.
    pub token: usize,
}

/// Which passes see a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinePlace {
    /// The `-E` passes: an option of nvcc itself.
    Nvcc,
    /// Every run of the host compiler: an option on `-Xcompiler`, or of a command that is the host compiler's own.
    Host,
}

/// Why a unit with this command may never be certified.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// The kind of reason.
    pub kind: RefusalKind,
    /// The word at fault.
    pub token: String,
}

/// Kinds of refusals; the table in the module's documentation says what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RefusalKind {
    /// A response or options file that was not expanded.
    ResponseFile,
    /// A target or tuning that the machine decides.
    Native,
    /// Device code that is settled at link.
    RelocatableDeviceCode,
    /// Code that is generated at link.
    LinkTimeOptimisation,
    /// A precompiled header.
    PrecompiledHeader,
    /// A header or macro file that the source does not name.
    ForcedInclude,
    /// A character that a shell, Ninja or a dependency file reads differently.
    UnsafeCharacter,
    /// A dependency listing without system folders.
    ShortDependencies,
    /// Another tool, specs file, plug-in, wrapper or profile.
    OtherTool,
    /// Optimisation split over threads.
    SplitCompile,
    /// Another phase than one compile, or kept intermediates.
    OtherPhase,
    /// Macros or words of the command are recorded in the object.
    RecordedSwitches,
    /// A missing value or an open quote.
    Unparsable,
    /// A flag that no table argues for.
    UnknownFlag,
}

impl RefusalKind {
    /// Whether such a word can bring input that no list of files shows.
    #[must_use]
    pub fn hides_input(self) -> bool {
        use RefusalKind::{ForcedInclude, OtherTool, PrecompiledHeader, ResponseFile, Unparsable};
        matches!(self, ResponseFile | ForcedInclude | PrecompiledHeader | OtherTool | Unparsable)
    }
}

impl fmt::Display for RefusalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&json::word(self))
    }
}

/// Reads `argv` as a command of nvcc, or of a host compiler if its program is not nvcc. What it does not know becomes
/// [`Token::Unknown`].
#[must_use]
pub fn parse(argv: &[String]) -> Command {
    let Some((program, words)) = argv.split_first() else { return Command { tokens: Vec::new() } };
    let dialect = if is_nvcc(program) { options::read } else { host::read };
    let mut tokens = vec![Token::Program(program.clone())];
    tokens.extend(dialect(words));
    Command { tokens }
}

fn is_nvcc(program: &str) -> bool {
    crate::command::file_name(program) == "nvcc"
}

impl Spelled {
    fn print(&self) -> Vec<String> {
        match self.joint {
            Joint::Bare => vec![self.name.clone()],
            Joint::Attached => vec![format!("{}{}", self.name, self.value)],
            Joint::Equals => vec![format!("{}={}", self.name, self.value)],
            Joint::Separate => vec![self.name.clone(), self.value.clone()],
        }
    }
}

impl Token {
    /// The words that the token was read from.
    #[must_use]
    pub fn print(&self) -> Vec<String> {
        match self {
            Self::Program(word) | Self::Input(word) | Self::Unknown(word) => vec![word.clone()],
            Self::Define(option)
            | Self::Folder(option)
            | Self::Output(option)
            | Self::Host(option)
            | Self::OptionsFile(option)
            | Self::Flag(option) => option.print(),
        }
    }

    /// The option, if the token is one of the table.
    #[must_use]
    pub fn option(&self) -> Option<&Spelled> {
        match self {
            Self::Program(_) | Self::Input(_) | Self::Unknown(_) => None,
            Self::Define(option)
            | Self::Folder(option)
            | Self::Output(option)
            | Self::Host(option)
            | Self::OptionsFile(option)
            | Self::Flag(option) => Some(option),
        }
    }
}

impl Command {
    /// The argv, word by word.
    #[must_use]
    pub fn print(&self) -> Vec<String> {
        self.tokens.iter().flat_map(Token::print).collect()
    }

    /// Whether the command is one of nvcc.
    fn nvcc(&self) -> bool {
        matches!(self.tokens.first(), Some(Token::Program(program)) if is_nvcc(program))
    }

    /// Every macro definition, in any spelling, those on `-Xcompiler` after those of nvcc itself.
    #[must_use]
    pub fn defines(&self) -> Vec<Define> {
        let mut defines = Vec::new();
        let nvcc = self.nvcc();
        let place = if nvcc { DefinePlace::Nvcc } else { DefinePlace::Host };
        for (token, found) in self.tokens.iter().enumerate() {
            let Token::Define(option) = found else { continue };
            let pieces = if nvcc { words::list(&option.value) } else { vec![option.value.clone()] };
            defines
                .extend(pieces.iter().map(|piece| Define::of(&words::unescape(piece, nvcc), place, token)));
        }
        let (tokens, at) = self.host();
        for (found, &token) in tokens.iter().zip(&at) {
            if let Token::Define(option) = found {
                defines.push(Define::of(&option.value, DefinePlace::Host, token));
            }
        }
        defines
    }

    /// The argv without the definitions of `names` that nvcc itself holds. Those on `-Xcompiler` stay: they reach other
    /// passes.
    #[must_use]
    pub fn without_defines(&self, names: &BTreeSet<String>) -> Vec<String> {
        if !self.nvcc() {
            return self.print();
        }
        let named = |piece: &String| {
            names.contains(&Define::of(&words::unescape(piece, true), DefinePlace::Nvcc, 0).name)
        };
        let mut argv = Vec::new();
        for token in &self.tokens {
            let Token::Define(option) = token else {
                argv.extend(token.print());
                continue;
            };
            let pieces = words::list(&option.value);
            if !pieces.iter().any(named) {
                argv.extend(token.print());
                continue;
            }
            let kept: Vec<_> = pieces.into_iter().filter(|piece| !named(piece)).collect();
            if !kept.is_empty() {
                argv.extend(Spelled { value: kept.join(","), ..option.clone() }.print());
            }
        }
        argv
    }

    /// Why a unit with this command may never be certified; empty for a command that may.
    #[must_use]
    pub fn refusals(&self) -> Vec<Refusal> {
        self.refusals_at().into_iter().map(|(_, refusal)| refusal).collect()
    }

    /// The refusals, each with the index in the argv of the first word of its token.
    #[must_use]
    pub fn refusals_at(&self) -> Vec<(usize, Refusal)> {
        refuse::all(self)
    }

    /// Whether debug information is asked for: with it the working directory and modification times enter the object.
    #[must_use]
    pub fn has_debug_info(&self) -> bool {
        let of_nvcc = ["-g", "--debug", "-G", "--device-debug", "-lineinfo", "--generate-line-info"];
        let own = |token: &Token| match token.option() {
            Some(option) if self.nvcc() => of_nvcc.contains(&option.name.as_str()),
            _ => host::is_debug(token),
        };
        self.tokens.iter().any(own) || self.host().0.iter().any(host::is_debug)
    }

    /// Whether it holds, also on `-Xcompiler`, an option of one of `names`: nvcc's long names, or gcc's, without dashes.
    #[must_use]
    pub fn sets(&self, names: &[&str]) -> bool {
        let nvcc = self.nvcc();
        let of_host = |token: &Token| {
            let name = token.option().map_or("", |option| option.name.trim_start_matches('-'));
            names.contains(&name.split('=').next().unwrap_or(name))
        };
        let own = |token: &Token| match token.option().and_then(options::long_name) {
            Some(name) if nvcc => names.contains(&name),
            _ => !nvcc && of_host(token),
        };
        self.tokens.iter().any(own) || self.host().0.iter().any(of_host)
    }

    /// What rides on `-Xcompiler`, read as one command without program (nvcc joins all its values), and for each token the
    /// index of the token that holds it. Values that cannot be split are left out; [`Self::refusals`] names them.
    fn host(&self) -> (Vec<Token>, Vec<usize>) {
        let (mut riding, mut at) = (Vec::new(), Vec::new());
        for (index, token) in self.tokens.iter().enumerate() {
            let Token::Host(option) = token else { continue };
            let found = words::host(&option.value).unwrap_or_default();
            at.extend(found.iter().map(|_| index));
            riding.extend(found);
        }
        let tokens = host::read(&riding);
        let mut next = 0;
        let first = tokens.iter().map(|token| {
            let here = at[next];
            next += token.print().len();
            here
        });
        let first = first.collect();
        (tokens, first)
    }
}

impl Define {
    fn of(text: &str, place: DefinePlace, token: usize) -> Self {
        // Measured with gcc 12.2: blanks before the name vanish, and `-DN x` and `-DN+=x` define N as well.
        let text = text.trim_start();
        let goes_on = |c: char| c == '_' || c == '$' || c.is_ascii_alphanumeric() || !c.is_ascii();
        let (name, rest) = text.split_at(text.find(|c| !goes_on(c)).unwrap_or(text.len()));
        let value = match rest.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None => (!rest.is_empty()).then(|| rest.to_owned()),
        };
        Self { name: name.to_owned(), value, place, token }
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
