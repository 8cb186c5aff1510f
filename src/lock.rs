//! `toolchain.lock`: the pinned packages, one file and one SHA-256 each.

use std::fmt::Write as _;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Spanned, Value};

use crate::{Digest, Failure, Failures, Outcome};

/// The lock file: TOML, `version = 1`, then one `[[package]]` table a wheel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lock {
    /// Version of the lock format; 1.
    pub version: u32,
    /// The packages, sorted by name.
    #[serde(rename = "package")]
    pub packages: Vec<Package>,
}

/// One pinned wheel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Package {
    /// Normalised project name (PEP 503), such as `nvidia-cuda-nvcc`.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// File name of the wheel; its tags say which platforms pip is asked for.
    pub file: String,
    /// Size of the wheel file.
    pub size_bytes: u64,
    /// SHA-256 of the wheel file: the only source of the expected hash.
    pub sha256: Digest,
    /// What the package is for.
    pub role: Role,
    /// Line of the lock where the package's table begins; 0 for a package that was not read from a lock.
    #[serde(skip)]
    pub line: usize,
}

/// What a pinned package is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Part of the CUDA compiler, its headers or its run-time library: unpacked into the toolchain tree.
    Toolchain,
    /// The scheduler of compiles: unpacked into the toolchain tree too.
    Ninja,
    /// A third-party source tree.
    Source,
}

/// The tags of a wheel's file name, each set in file-name order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tags {
    /// Python tags, such as `py3`.
    pub pythons: Vec<String>,
    /// ABI tags, such as `none`.
    pub abis: Vec<String>,
    /// Platform tags, such as `manylinux2014_x86_64`.
    pub platforms: Vec<String>,
}

/// What the canonical form says above the first package.
const HEADER: &str = "\
# The pinned packages of the build: one file, one size and one SHA-256 each.
# Written by `cargo xtask lock --update NAME` alone; `cargo xtask lock --check` compares it with the index.
version = 1
";

/// The lock as written, with the place of each value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: Spanned<u32>,
    #[serde(default)]
    package: Vec<Spanned<WrittenPackage>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPackage {
    name: Spanned<String>,
    version: Spanned<String>,
    file: Spanned<String>,
    size_bytes: Spanned<u64>,
    sha256: Spanned<Value>,
    role: Spanned<Role>,
}

impl Lock {
    /// Reads and checks a lock file; `path` is named in errors.
    ///
    /// # Errors
    /// `E-LOCK-*` (exit 2), each naming `path:LINE`, expected and found; independent ones together.
    pub fn parse(path: &str, text: &str) -> Outcome<Self> {
        let place = Place { path, text };
        let written: Written = toml::from_str(text).map_err(|error| place.syntax(&error))?;
        if *written.version.get_ref() != 1 {
            return Err(place
                .fail("E-LOCK-VERSION", &written.version.span(), "the lock has an unknown format version")
                .expected(1)
                .found(written.version.get_ref()));
        }
        let (mut packages, mut failures) = (Vec::new(), Vec::new());
        for package in &written.package {
            match place.package(package) {
                Ok(package) => packages.push(package),
                Err(found) => failures.extend(found),
            }
        }
        if written.package.is_empty() {
            failures.push(place.fail("E-LOCK-EMPTY", &(0..0), "the lock pins no package"));
        }
        failures.extend(place.order(&packages));
        Failure::all(failures)?;
        Ok(Self { version: 1, packages })
    }

    /// The canonical text of this lock, which [`Lock::parse`] reads back to the same packages.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = HEADER.to_owned();
        for package in &self.packages {
            let Package { name, version, file, size_bytes, sha256, role, line: _ } = package;
            let role = match role {
                Role::Toolchain => "toolchain",
                Role::Ninja => "ninja",
                Role::Source => "source",
            };
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nfile = \"{file}\"\n\
                 size_bytes = {size_bytes}\nsha256 = \"{sha256}\"\nrole = \"{role}\"\n"
            );
        }
        text
    }

    /// The package called `name`.
    #[must_use]
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

impl Package {
    /// The tags in the wheel's file name.
    #[must_use]
    pub fn tags(&self) -> Tags {
        let set = |tags: &str| tags.split('.').map(str::to_owned).collect();
        let mut parts = self.file.trim_end_matches(".whl").rsplitn(4, '-');
        let mut next = || set(parts.next().unwrap_or_default());
        let (platforms, abis, pythons) = (next(), next(), next());
        Tags { pythons, abis, platforms }
    }

    /// The package's name as file names spell it: `nvidia_cuda_nvcc`.
    #[must_use]
    pub fn escaped_name(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Where the lock pins this package, for error texts: `  (toolchain.lock:12)`.
    pub(crate) fn pin(&self) -> String {
        match self.line {
            0 => String::new(),
            line => format!("  (toolchain.lock:{line})"),
        }
    }
}

/// `name` as PEP 503 spells it: lower case, runs of `-`, `_` and `.` as one `-`.
#[must_use]
pub fn normalised(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// The lock's text and its name in errors.
struct Place<'a> {
    path: &'a str,
    text: &'a str,
}

impl Place<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        self.text.as_bytes()[..span.start.min(self.text.len())].iter().filter(|&&byte| byte == b'\n').count()
            + 1
    }

    fn fail(&self, code: &'static str, span: &Range<usize>, what: impl std::fmt::Display) -> Box<Failure> {
        Failure::bad_input(code, format!("{}:{}: {what}", self.path, self.line(span)))
            .hint(format!("git diff {}", self.path))
    }

    fn syntax(&self, error: &toml::de::Error) -> Box<Failure> {
        let span = error.span().unwrap_or(0..0);
        let line = self.text.lines().nth(self.line(&span) - 1).unwrap_or_default();
        let second_hash =
            error.message().contains("duplicate key") && line.trim_start().starts_with("sha256");
        let code = if second_hash { "E-LOCK-MULTI" } else { "E-LOCK-SYNTAX" };
        self.fail(code, &span, error.message()).found(line)
    }

    fn package(&self, spanned: &Spanned<WrittenPackage>) -> Result<Package, Failures> {
        let written = spanned.get_ref();
        let mut failures = self.identity(written);
        if *written.size_bytes.get_ref() == 0 {
            failures.push(self.fail(
                "E-LOCK-SIZE",
                &written.size_bytes.span(),
                "a wheel of no bytes is pinned",
            ));
        }
        let sha256 = self.sha256(&written.sha256).map_err(|failure| failures.push(failure));
        match (failures.is_empty(), sha256) {
            (true, Ok(sha256)) => Ok(Package {
                name: written.name.get_ref().clone(),
                version: written.version.get_ref().clone(),
                file: written.file.get_ref().clone(),
                size_bytes: *written.size_bytes.get_ref(),
                sha256,
                role: *written.role.get_ref(),
                line: self.line(&spanned.span()),
            }),
            _ => Err(failures),
        }
    }

    /// Name, version and file name must belong together.
    fn identity(&self, written: &WrittenPackage) -> Failures {
        let (name, version, file) =
            (written.name.get_ref(), written.version.get_ref(), written.file.get_ref());
        let mut failures = Vec::new();
        let wanted = normalised(name);
        if *name != wanted || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') || name.is_empty()
        {
            let failure = self.fail("E-LOCK-NAME", &written.name.span(), "the name is not normalised");
            failures.push(failure.expected(wanted).found(name));
        }
        if version.is_empty() || !version.bytes().all(|b| b.is_ascii_alphanumeric() || b".+!".contains(&b)) {
            failures.push(
                self.fail("E-LOCK-NAME", &written.version.span(), "the version is not exact").found(version),
            );
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-+!".contains(&b);
        let prefix = format!("{}-{version}-", name.replace('-', "_"));
        let tags = file.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".whl"));
        let whole =
            tags.is_some_and(|tags| (3..=4).contains(&tags.split('-').filter(|tag| !tag.is_empty()).count()));
        if !whole || !file.bytes().all(plain) {
            let failure = self.fail(
                "E-LOCK-FILE",
                &written.file.span(),
                "the file is no wheel of this name and version",
            );
            failures.push(failure.expected(format!("{prefix}PYTHON-ABI-PLATFORM.whl")).found(file));
        }
        failures
    }

    /// Exactly one hash: a list, or several in one string, would let several files pass for one pin.
    fn sha256(&self, value: &Spanned<Value>) -> Outcome<Digest> {
        let span = value.span();
        let text = match value.get_ref() {
            Value::String(text) if text.len() <= 64 => text,
            Value::String(text) => {
                let failure = self.fail("E-LOCK-MULTI", &span, "a wheel has exactly one SHA-256");
                return Err(failure
                    .expected("64 hexadecimal digits")
                    .found(format!("{} characters", text.len())));
            }
            Value::Array(list) => {
                let failure = self.fail("E-LOCK-MULTI", &span, "a wheel has exactly one SHA-256");
                return Err(failure.expected("one string").found(format!("a list of {}", list.len())));
            }
            other => return Err(self.fail("E-LOCK-SYNTAX", &span, "sha256 is no string").found(other)),
        };
        text.parse().map_err(|error: String| self.fail("E-LOCK-SYNTAX", &span, error))
    }

    /// Packages are sorted by name and each name stands once.
    fn order(&self, packages: &[Package]) -> Failures {
        let at = |package: &Package| format!("{}:{}", self.path, package.line);
        let hint = format!("git diff {}", self.path);
        let pairs = packages.windows(2).filter(|pair| pair[0].name >= pair[1].name);
        pairs
            .map(|pair| match pair[0].name == pair[1].name {
                true => Failure::bad_input(
                    "E-LOCK-MULTI",
                    format!("{}: {} is pinned twice", at(&pair[1]), pair[1].name),
                )
                .expected(format!("one SHA-256, {}  ({})", pair[0].sha256, at(&pair[0])))
                .found(format!("{}  ({})", pair[1].sha256, at(&pair[1])))
                .hint(&hint),
                false => {
                    Failure::bad_input("E-LOCK-ORDER", format!("{}: packages are not sorted", at(&pair[1])))
                        .expected(format!("{} before {}", pair[1].name, pair[0].name))
                        .hint(&hint)
                }
            })
            .collect()
    }
}

#[cfg(test)]
#[path = "lock/tests.rs"]
mod tests;
