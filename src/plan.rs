//! The plan of a build: which units each module is made of and the argv of every compile and link. Pure.

use serde::{Deserialize, Serialize};

use crate::command;
use crate::manifest::{Manifest, Module};
use crate::target::Target;
use crate::tree::Tree;
use crate::{Failure, Outcome};

/// One unit: one source compiled to one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitPlan {
    /// Source, relative to the tree.
    pub source: String,
    /// Object, relative to the build folder.
    pub object: String,
    /// Tokens of the compile, naming places.
    pub argv: Vec<String>,
    /// What the object must hold.
    pub targets: Vec<Target>,
}

/// One module: its units in the order of the link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModulePlan {
    /// What the manifest says of it.
    pub module: Module,
    /// Its units, sorted by source.
    pub units: Vec<UnitPlan>,
    /// Tokens of the link, naming places.
    pub link_argv: Vec<String>,
    /// What the module must hold.
    pub targets: Vec<Target>,
}

/// Plans `module` of `manifest` over the files of its `tree`; `host` is the host compiler's absolute path.
///
/// # Errors
/// `E-PLAN-UNITS` if a pattern matches nothing or a unit is listed twice.
pub fn module(manifest: &Manifest, module: &Module, tree: &Tree, host: &str) -> Outcome<ModulePlan> {
    let mut sources = Vec::new();
    for pattern in &module.units {
        let matching: Vec<&str> =
            tree.files.iter().map(|file| file.path.as_str()).filter(|path| matches(pattern, path)).collect();
        if matching.is_empty() {
            return Err(Failure::bad_input(
                "E-PLAN-UNITS",
                format!("module {} has no unit at `{pattern}`", module.name),
            )
            .expected(format!("at least one file of tree {} that matches", module.tree))
            .found("none")
            .hint("correct `units` of the module in the manifest, or add the file"));
        }
        sources.extend(matching);
    }
    sources.sort_unstable();
    let unit = |source: &&str| UnitPlan {
        source: (*source).to_owned(),
        object: command::object_path(source),
        argv: command::compile(manifest, module, source, host),
        targets: if command::has_device_code(source) { manifest.targets.clone() } else { Vec::new() },
    };
    let units: Vec<UnitPlan> = sources.iter().map(unit).collect();
    one_object_each(module, &units)?;
    let objects: Vec<String> = units.iter().map(|unit| unit.object.clone()).collect();
    let link_argv = command::link(manifest, module, &objects, host);
    Ok(ModulePlan { module: module.clone(), units, link_argv, targets: manifest.targets.clone() })
}

/// A unit that is listed twice would be linked twice.
fn one_object_each(module: &Module, units: &[UnitPlan]) -> Outcome<()> {
    let Some(twins) = units.windows(2).find(|pair| pair[0].source == pair[1].source) else { return Ok(()) };
    Err(Failure::bad_input("E-PLAN-UNITS", format!("module {} lists a unit twice", module.name))
        .expected("each unit once")
        .found(&twins[0].source)
        .hint("correct `units` of the module in the manifest"))
}

/// `pattern` is a path, or `folder/*.ext`; manifests with other patterns are refused when they are read.
fn matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((folder, ending)) => {
            let name = path.strip_prefix(folder).filter(|name| !name.contains('/'));
            name.is_some_and(|name| name.len() > ending.len() && name.ends_with(ending))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;
    use crate::tree::TreeFile;

    fn plan(units: &str, files: &[&str]) -> Outcome<ModulePlan> {
        let text = format!(
            "version = 1\ntargets = [\"sm_86\"]\ntree = [{{ name = \"a\", source = \"a\" }}]\n[[module]]\nname = \"m\"\n\
             tree = \"a\"\nunits = {units}\nexports = [\"f\"]\nlibraries = []\n"
        );
        let manifest = Manifest::parse("m.toml", &text)?;
        let file = |path: &&str| TreeFile {
            path: (*path).into(),
            mode: 0o644,
            size_bytes: 0,
            sha256: Digest::of(b""),
        };
        module(&manifest, &manifest.modules[0], &Tree::new(files.iter().map(file).collect()), "/usr/bin/g++")
    }

    #[test]
    fn a_pattern_takes_one_folder_and_one_ending() {
        let files = ["u/b.cu", "u/a.cu", "u/a.cuh", "u/x/c.cu", "v/d.cu", "u/.cu", "u/h.cpp"];
        let plan = plan("[\"u/*.cu\", \"u/h.cpp\"]", &files).unwrap();
        let units: Vec<_> = plan.units.iter().map(|u| (u.source.as_str(), u.targets.len())).collect();
        assert_eq!(units, [("u/a.cu", 1), ("u/b.cu", 1), ("u/h.cpp", 0)]);
    }

    #[test]
    fn nothing_is_planned_that_cannot_be_built() {
        for units in ["[\"w/*.cu\"]", "[\"u/a.cu\", \"u/*.cu\"]"] {
            assert_eq!(plan(units, &["u/a.cu", "u/a.cpp"]).unwrap_err().code, "E-PLAN-UNITS", "{units}");
        }
    }
}
