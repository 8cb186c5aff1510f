//! What the command prints when it has succeeded: one value, as text or as JSON.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use requal::Digest;
use serde::Serialize;

use super::Results;

/// The outcome of a build.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// The receipt.
    pub receipt: Utf8PathBuf,
    /// The modules.
    pub modules: Vec<ShownModule>,
    /// Whether compiles ran in the sandbox.
    pub sandboxed: bool,
    /// How many orders of loading were tried.
    pub load_orders: usize,
}

/// One built module.
#[derive(Clone, Debug, Serialize)]
pub struct ShownModule {
    /// Its name.
    pub name: String,
    /// SHA-256 of the file.
    pub sha256: Digest,
    /// Its units.
    pub units: usize,
    /// Units that this run compiled.
    pub compiled: usize,
    /// Units whose objects this run took from another tree, certified; the others were checked and still good.
    pub reused: usize,
    /// Whether this run linked it.
    pub linked: bool,
}

impl Shown {
    pub(super) fn of(results: &Results, receipt: &Utf8Path) -> Self {
        let modules = results.modules.iter().map(|(plan, built)| ShownModule {
            name: plan.module.name.clone(),
            sha256: built.module.sha256,
            units: built.units.len(),
            compiled: built.compiled,
            reused: built.reused,
            linked: built.linked,
        });
        Self {
            receipt: receipt.to_owned(),
            modules: modules.collect(),
            sandboxed: results.site.sandboxed,
            load_orders: results.load_orders.len(),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for module in &self.modules {
            writeln!(f, "{}  {}.so", module.sha256, module.name)?;
            let kept = module.units - module.compiled - module.reused;
            let link = if module.linked { "linked" } else { "link still good" };
            writeln!(
                f,
                "    {} units: {} compiled, {} reused, {kept} still good; {link}",
                module.units, module.compiled, module.reused
            )?;
        }
        let place = if self.sandboxed { "in the sandbox" } else { "at the real path (no sandbox)" };
        writeln!(f, "built {place}; loaded in {} orders, no driver touched", self.load_orders)?;
        write!(f, "receipt: {}", self.receipt)
    }
}
