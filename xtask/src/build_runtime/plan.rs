//! `--plan`: what a build would do, and nothing done.

use std::fmt;

use requal::plan::ModulePlan;
use requal::{Outcome, plan};
use serde::Serialize;

use super::{Inputs, Options, inputs};
use crate::host_compiler;
use crate::sys::env;
use crate::trees::SourceTree;

/// Everything that is known before anything is done.
#[derive(Clone, Debug, Serialize)]
pub struct Planned {
    /// Files of the wheels that are needed, and whether each is in the scratch already.
    pub wheels: Vec<(String, bool)>,
    /// The modules, with the argv of every compile and link; tokens name places.
    pub modules: Vec<ModulePlan>,
}

/// Plans the build that `options` ask for.
///
/// # Errors
/// As [`inputs`], and `E-HOST-MISSING`.
pub fn plan(options: &Options) -> Outcome<Planned> {
    let inputs = inputs(options)?;
    let host = host_compiler::find(&env::all())?.canonicalize_utf8()?;
    let here = |file: &String| options.scratch.join("wheels").join(file).is_file();
    let wheels = inputs.lock.packages.iter().map(|package| (package.file.clone(), here(&package.file)));
    let modules = modules(&inputs, host.as_str())?.into_iter().map(|(_, plan)| plan).collect();
    Ok(Planned { wheels: wheels.collect(), modules })
}

/// The plan of each module, with its tree, in the manifest's order.
pub(super) fn modules<'a>(inputs: &'a Inputs, host: &str) -> Outcome<Vec<(&'a SourceTree, ModulePlan)>> {
    let manifest = &inputs.manifest;
    let of = |module: &requal::manifest::Module| {
        let tree = inputs.trees.iter().find(|tree| tree.name == module.tree)?;
        Some(plan::module(manifest, module, &tree.tree, host).map(|plan| (tree, plan)))
    };
    manifest.modules.iter().filter_map(of).collect()
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "fetch, unpack and check:")?;
        for (file, here) in &self.wheels {
            writeln!(f, "  {file}{}", if *here { "  (in the scratch)" } else { "" })?;
        }
        for plan in &self.modules {
            let targets: Vec<String> = plan.targets.iter().map(ToString::to_string).collect();
            let module = &plan.module;
            writeln!(f, "build {} from tree {} for {}:", module.name, module.tree, targets.join(", "))?;
            writeln!(f, "  {} units, then one link", plan.units.len())?;
            if let Some(unit) = plan.units.first() {
                writeln!(f, "  first: {}", unit.argv.join(" "))?;
            }
        }
        write!(f, "load each module alone and all in every order; write runtime-build.json and RUNTIME.md")
    }
}
