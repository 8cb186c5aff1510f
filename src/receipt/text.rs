//! The closed grammar of text in receipts: each kind of string is a type, and none has room for free text.

use std::fmt;
use std::ops::Deref;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defines a checked string type: its name, its schema pattern, its longest length and its check.
macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $pattern:literal, $longest:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String", extend("pattern" = $pattern, "maxLength" = $longest))]
        pub struct $name(String);

        impl $name {
            /// The text, if it keeps the grammar.
            ///
            /// # Errors
            /// A sentence that begins with the error code.
            pub fn new(text: impl Into<String>) -> Result<Self, String> {
                let text = text.into();
                if text.len() > $longest {
                    return Err(format!("E-PRIV-STRING: text of {} bytes is longer than {}", text.len(), $longest));
                }
                identifies_a_person_or_machine(&text)?;
                $check(&text)?;
                Ok(Self(text))
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text! {
    /// An identifier: a package, tree, module, component, version, marker or variable.
    Name, "^[A-Za-z0-9_][A-Za-z0-9._+~:-]{0,95}$", 96, name
}
text! {
    /// A clean path relative to the root that its record names: no `.`, `..`, empty segment or leading `/`.
    RelativePath, "^[A-Za-z0-9_.+~=,%-]+(/[A-Za-z0-9_.+~=,%-]+)*$", 512, relative_path
}
text! {
    /// One argument of a command, or a fixed place such as `/requal/tree`. Absolute paths occur only under fixed
    /// places, the system's own folders and `${scratch}`.
    Token, "^[!-~]+$", 1024, token
}
text! {
    /// What a symbolic link holds: relative, upwards too, or absolute below a public place.
    LinkText, "^[!-~]+$", 512, link_text
}
text! {
    /// A symbol of an object or module, mangled names included.
    Symbol, "^[A-Za-z_$.][A-Za-z0-9_$.@]*$", 4096, symbol
}
text! {
    /// A time: RFC 3339, UTC, whole seconds, such as `2026-01-31T12:00:00Z`. Equal lengths: byte order is time order.
    Time, "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$", 32, time
}

/// Serde of a plain string that must keep the grammar of [`RelativePath`]: judged when it is written and when it is read.
pub(crate) mod checked_path {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de, ser};

    use super::RelativePath;

    pub(crate) fn serialize<S: Serializer>(path: &str, writer: S) -> Result<S::Ok, S::Error> {
        RelativePath::new(path).map_err(ser::Error::custom)?.serialize(writer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(reader: D) -> Result<String, D::Error> {
        let text = String::deserialize(reader)?;
        RelativePath::new(text).map(String::from).map_err(de::Error::custom)
    }
}

/// Absolute prefixes that are the same on every machine and so name no person.
pub const PUBLIC_PLACES: [&str; 10] = [
    "/requal/",
    "/usr/",
    "/bin/",
    "/lib/",
    "/lib64/",
    "/tmp/",
    "/opt/",
    "/nix/store/",
    "/dev/null/",
    "/proc/self/",
];

fn identifies_a_person_or_machine(text: &str) -> Result<(), String> {
    // A path under the system's root folder stands in records without its leading slash.
    let rooted = format!("/{text}");
    if let Some(folder) = ["/home/", "/root/", "/Users/"].iter().find(|folder| rooted.contains(*folder)) {
        return Err(format!(
            "E-PRIV-IDENT: text names a place under {folder}, which identifies a person or machine"
        ));
    }
    if text.contains("GPU-")
        || text.contains("MIG-")
        || text.match_indices('@').any(|(at, _)| is_address(text, at))
    {
        return Err("E-PRIV-IDENT: text holds a device identifier or an address".to_owned());
    }
    Ok(())
}

/// Whether the `@` at `at` stands between a user and a host, unlike the `@` of a symbol version or file list.
fn is_address(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric());
    before
        && text[at + 1..]
            .split('@')
            .next()
            .is_some_and(|host| host.contains('.') && !host.starts_with("GLIBC"))
}

fn free_text(kind: &str, text: &str) -> String {
    format!("E-PRIV-STRING: {text:?} is not {kind}")
}

fn name(text: &str) -> Result<(), String> {
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    let rest = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._+~:-".contains(&b));
    if first && rest { Ok(()) } else { Err(free_text("a name of letters, digits and ._+~:-", text)) }
}

fn relative_path(text: &str) -> Result<(), String> {
    if text.starts_with('/') || text.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err(format!("E-PATH: {text:?} is not a clean relative path"));
    }
    let clean = |b: u8| b.is_ascii_alphanumeric() || b"_.+~=,%-/".contains(&b);
    if text.bytes().all(clean) { Ok(()) } else { Err(free_text("a path of plain characters", text)) }
}

fn token(text: &str) -> Result<(), String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(free_text("one argument without blanks", text));
    }
    if text.split('/').any(|segment| segment == "..") {
        return Err(format!("E-PATH: {text:?} leaves its folder"));
    }
    // What stands before a `/` that begins a path: the start of the token, or the end of an option.
    for (at, _) in text.match_indices('/') {
        let before = &text[..at];
        let begins = before.is_empty() || before.ends_with(['=', ',', ':', '"', '\'']) || is_option(before);
        if begins
            && !PUBLIC_PLACES
                .iter()
                .any(|place| text[at..].starts_with(place) || &text[at..] == place.trim_end_matches('/'))
        {
            return Err(format!("E-PRIV-IDENT: {text:?} holds an absolute path outside the public places"));
        }
    }
    Ok(())
}

fn link_text(text: &str) -> Result<(), String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(free_text("a path without blanks", text));
    }
    if text.starts_with('/') { token(text) } else { Ok(()) }
}

/// Whether `text` is an option to which a path is joined, such as `-I` or `-isystem`.
fn is_option(text: &str) -> bool {
    text.starts_with('-') && text[1..].bytes().all(|b| b.is_ascii_alphabetic() || b == b'-')
}

fn symbol(text: &str) -> Result<(), String> {
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b"_$.".contains(&b));
    let rest = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_$.@".contains(&b));
    if first && rest { Ok(()) } else { Err(free_text("a symbol", text)) }
}

fn time(text: &str) -> Result<(), String> {
    let shape = "dddd-dd-ddTdd:dd:ddZ";
    let fits = text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(b, s)| if s == b'd' { b.is_ascii_digit() } else { b == s });
    let part =
        |from: usize| text.get(from..from + 2).and_then(|digits| digits.parse::<u8>().ok()).unwrap_or(255);
    let real = fits && (1..=12).contains(&part(5)) && (1..=31).contains(&part(8));
    if real && part(11) < 24 && part(14) < 60 && part(17) < 61 {
        return Ok(());
    }
    Err(format!("E-TIME: {text:?} is not a time such as 2026-01-31T12:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_takes_its_own_and_nothing_else() {
        for good in ["13.0.88", "nvidia-cuda-nvcc", "12.2.0-14+deb12u1", "_x"] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        for good in ["a/b.cu", "usr/include/c++/12/vector", "x86_64-linux-gnu/a.h", "a/..b"] {
            assert!(RelativePath::new(good).is_ok(), "{good}");
        }
        for good in [
            "-I/requal/tree",
            "-gencode=arch=compute_86,code=[sm_86,compute_86]",
            "${scratch}/tree/a.cu",
            "/tmp",
        ] {
            assert!(Token::new(good).is_ok(), "{good}");
        }
        assert!(Symbol::new("_ZN4requal3runEv").is_ok());
        assert!(Time::new("2026-01-31T12:00:00Z").is_ok());
    }

    #[test]
    fn refusals_carry_their_code() {
        let code =
            |result: Result<(), String>| result.unwrap_err().split(':').next().unwrap_or_default().to_owned();
        let path = |text: &str| code(RelativePath::new(text).map(drop));
        let token = |text: &str| code(Token::new(text).map(drop));
        for text in ["../x", "/x", "a//b", "a/./b", "", "a/"] {
            assert_eq!(path(text), "E-PATH", "{text}");
        }
        assert_eq!(path("a b"), "E-PRIV-STRING");
        assert_eq!(code(Name::new("please tell me").map(drop)), "E-PRIV-STRING");
        for text in [
            "/home/someone/x",
            "-I/home/someone",
            "-I/scratch/x",
            "--out=/srv/x",
            "GPU-5ca1ab1e-0000",
            "me@host.example",
        ] {
            assert_eq!(token(text), "E-PRIV-IDENT", "{text}");
        }
        for text in
            ["2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00+00"]
        {
            assert_eq!(code(Time::new(text).map(drop)), "E-TIME", "{text}");
        }
    }
}
