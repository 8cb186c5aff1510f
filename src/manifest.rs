//! `manifests/runtime.toml`: what to build, with which flags and why, and what the result must be.

mod check;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::target::Target;
use crate::{Failure, Outcome};

/// A build manifest, format version 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of this format: 1.
    pub version: u32,
    /// What each object with device code holds: these, all of these.
    pub targets: Vec<Target>,
    /// Flags of each compile, in order, after those that the build itself sets.
    #[serde(default, rename = "flag")]
    pub flags: Vec<Flag>,
    /// Flags of each link, in order.
    #[serde(default, rename = "link_flag")]
    pub link_flags: Vec<Flag>,
    /// The source trees.
    #[serde(rename = "tree")]
    pub trees: Vec<Tree>,
    /// The modules, each linked from the units of one tree.
    #[serde(rename = "module")]
    pub modules: Vec<Module>,
    /// Limits of compiles where no profile says otherwise.
    #[serde(default)]
    pub limits: Limits,
    /// Named alternatives, chosen with `--profile NAME`.
    #[serde(default, rename = "profile")]
    pub profiles: BTreeMap<String, Profile>,
}

/// A flag and why it is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    /// One argument, passed as it stands.
    pub value: String,
    /// Why: one sentence.
    pub reason: String,
}

/// A source tree: a folder of the repository, perhaps with an overlay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// Its name.
    pub name: String,
    /// Folder, relative to the repository.
    pub source: String,
    /// Folder whose files are laid over `source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<String>,
    /// The tree whose objects this one may take, if that can be certified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counterpart: Option<String>,
}

/// A module: one shared object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Its name: file name without `.so`, and the marker with which it says who it is.
    pub name: String,
    /// The tree that its units come from.
    pub tree: String,
    /// Unit sources, relative to the tree: paths, or `folder/*.ext`.
    pub units: Vec<String>,
    /// Include folders, relative to the tree, in order.
    #[serde(default)]
    pub include: Vec<String>,
    /// Name defines: -D that only name the module.
    #[serde(default)]
    pub name_defines: BTreeMap<String, String>,
    /// The dynamic symbols that it exports: these, all of these.
    pub exports: Vec<String>,
    /// The shared libraries that it may need (DT_NEEDED).
    pub libraries: Vec<String>,
}

/// A named alternative.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What it is for.
    pub reason: String,
    /// Targets in place of the manifest's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<Target>>,
    /// Limits in place of the manifest's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

impl Manifest {
    /// Reads and checks the manifest `text`; `path` is named in errors.
    ///
    /// # Errors
    /// `E-MANIFEST-SYNTAX` or `E-MANIFEST-KEY` with the line, `E-MANIFEST` with every value that cannot be.
    pub fn parse(path: &str, text: &str) -> Outcome<Self> {
        let manifest: Self = toml::from_str(text).map_err(|error| syntax(path, text, &error))?;
        check::check(path, &manifest)?;
        Ok(manifest)
    }

    /// The manifest with profile `name` applied and `targets` added.
    ///
    /// # Errors
    /// `E-MANIFEST-PROFILE` if there is no such profile.
    pub fn choose(mut self, path: &str, name: Option<&str>, targets: &[Target]) -> Outcome<Self> {
        if let Some(name) = name {
            let Some(profile) = self.profiles.get(name).cloned() else {
                let known = self.profiles.keys().cloned().collect::<Vec<_>>().join(", ");
                return Err(Failure::bad_input(
                    "E-MANIFEST-PROFILE",
                    format!("{path} has no profile `{name}`"),
                )
                .expected(format!("one of: {known}"))
                .found(name)
                .hint("cargo xtask build-runtime --help"));
            };
            self.targets = profile.targets.unwrap_or(self.targets);
            self.limits = profile.limits.unwrap_or(self.limits);
        }
        self.targets.extend(targets);
        self.targets.sort_unstable();
        self.targets.dedup();
        Ok(self)
    }

    /// The trees without an overlay, then the others: the order of a build.
    pub fn bases_first(&self) -> impl Iterator<Item = &Tree> {
        let with = |overlaid: bool| self.trees.iter().filter(move |tree| tree.overlay.is_some() == overlaid);
        with(false).chain(with(true))
    }

    /// The tree that lies below `tree`: the first of the same source without an overlay.
    #[must_use]
    pub fn base_of(&self, tree: &Tree) -> Option<&Tree> {
        let below = |base: &&Tree| base.overlay.is_none() && base.source == tree.source;
        self.trees.iter().find(below).filter(|_| tree.overlay.is_some())
    }

    /// Trees that may take another's objects, sorted: the tree, the other, and the names of both modules' name defines, ascending.
    #[must_use]
    pub fn pairs(&self) -> Vec<(&str, &str, Vec<&str>)> {
        let pair = |tree: &'_ Tree| -> Option<(&str, &str, Vec<&str>)> {
            let (tree, other) = (self.tree(&tree.name)?, self.tree(tree.counterpart.as_ref()?)?);
            let modules =
                self.modules.iter().filter(|module| [&tree.name, &other.name].contains(&&module.tree));
            let names: BTreeSet<&str> =
                modules.flat_map(|module| module.name_defines.keys().map(String::as_str)).collect();
            Some((&tree.name, &other.name, names.into_iter().collect()))
        };
        let mut pairs: Vec<_> = self.trees.iter().filter_map(pair).collect();
        pairs.sort();
        pairs
    }

    /// The tree named `name`.
    #[must_use]
    pub fn tree(&self, name: &str) -> Option<&Tree> {
        self.trees.iter().find(|tree| tree.name == name)
    }
}

fn syntax(path: &str, text: &str, error: &toml::de::Error) -> Box<Failure> {
    let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
    let message = error.message();
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        let found = quoted.next().unwrap_or_default();
        let known: Vec<&str> = quoted.collect();
        let near = known
            .iter()
            .max_by(|a, b| strsim::jaro_winkler(a, found).total_cmp(&strsim::jaro_winkler(b, found)));
        let failure = Failure::bad_input("E-MANIFEST-KEY", format!("unknown key `{found}` at {path}:{line}"))
            .expected(format!("one of: {}", known.join(", ")))
            .found(found);
        return match near {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure,
        };
    }
    Failure::bad_input("E-MANIFEST-SYNTAX", format!("{path}:{line} cannot be read"))
        .found(message)
        .hint("the format is described in docs/manifest.md and by manifests/schemas/runtime.v1.schema.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
version = 1
targets = ["sm_86", "compute_86"]
[[flag]]
value = "-O3"
reason = "speed"
[[tree]]
name = "a"
source = "kernels/a"
[[module]]
name = "a"
tree = "a"
units = ["units/*.cu"]
exports = ["f"]
libraries = ["libc.so.6"]
name_defines = { NAME = "a" }
[profile.seed]
reason = "the first campaign's"
targets = ["sm_86"]
limits = { nice = 19, jobs = 8 }
"#;

    #[test]
    fn an_unknown_key_is_named_with_line_and_nearest_known_key() {
        let failure = Manifest::parse("m.toml", &GOOD.replace("exports", "export")).unwrap_err();
        assert_eq!(failure.code, "E-MANIFEST-KEY");
        assert_eq!(failure.what, "unknown key `export` at m.toml:14");
        assert_eq!(failure.hint.as_deref(), Some("did you mean `exports`?"));
        let failure = Manifest::parse("m.toml", &GOOD.replace("nice", "nise")).unwrap_err();
        assert_eq!(failure.hint.as_deref(), Some("did you mean `nice`?"), "{failure}");
    }

    #[test]
    fn a_profile_replaces_and_targets_are_added() {
        let manifest = Manifest::parse("m.toml", GOOD).unwrap();
        let sm_90 = "sm_90".parse().unwrap();
        let chosen = manifest.clone().choose("m.toml", Some("seed"), &[sm_90]).unwrap();
        assert_eq!(chosen.targets, ["sm_86".parse().unwrap(), sm_90]);
        assert_eq!((chosen.limits.nice, chosen.limits.jobs), (Some(19), Some(8)));
        assert_eq!(manifest.choose("m.toml", Some("sed"), &[]).unwrap_err().code, "E-MANIFEST-PROFILE");
    }

    #[test]
    fn values_that_cannot_be_are_refused_together() {
        for (from, to) in [
            ("version = 1", "version = 2"),
            ("\"compute_86\"", "\"native\""),
            ("value = \"-O3\"", "value = \"-gencode=arch=compute_80,code=sm_80\""),
            ("value = \"-O3\"", "value = \"@flags.txt\""),
            ("value = \"-O3\"", "value = \"-rdc=true\""),
            ("value = \"-O3\"", "value = \"-arch=native\""),
            ("reason = \"speed\"", "reason = \"\""),
            ("kernels/a", "../a"),
            ("kernels/a", "/a"),
            ("units/*.cu", "un*ts/x.cu"),
            ("units/*.cu", "units/$x.cu"),
            ("tree = \"a\"", "tree = \"b\""),
            ("NAME = \"a\"", "NAME = \"a b\""),
        ] {
            let failure = Manifest::parse("m.toml", &GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(failure.code.starts_with("E-MANIFEST"), "{from} -> {to}: {failure}");
        }
        let two = GOOD.replacen("version = 1", "version = 2", 1).replacen("kernels/a", "../a", 1);
        assert_eq!(Manifest::parse("m.toml", &two).unwrap_err().related.len(), 1);
    }

    #[test]
    fn two_modules_may_not_share_a_name_define() {
        let twice = format!(
            "{GOOD}\n[[tree]]\nname = \"b\"\nsource = \"kernels/a\"\n[[module]]\nname = \"b\"\ntree = \"b\"\n\
             units = [\"x.cu\"]\nexports = [\"f\"]\nlibraries = []\nname_defines = {{ NAME = \"a\" }}\n"
        );
        let failure = Manifest::parse("m.toml", &twice).unwrap_err();
        assert!(failure.what.contains("NAME"), "{failure}");
        assert!(
            Manifest::parse("m.toml", &twice.replace("NAME = \"a\" }\n[prof", "NAME = \"c\" }\n[prof"))
                .is_ok()
        );
    }
}
