//! RUNTIME.md: the page for people, a pure function of the receipt.

use std::fmt::{self, Write as _};

use crate::receipt::{Build, Decision, Limitation, RuntimeBuild, TreeRecord, Unit};
use crate::target::Target;

/// File name of the page beside the receipt.
pub const FILE: &str = "RUNTIME.md";

/// The page of `receipt`.
#[must_use]
pub fn render(receipt: &RuntimeBuild) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut page, receipt);
    page
}

fn write(page: &mut String, receipt: &RuntimeBuild) -> fmt::Result {
    let build = &receipt.predicate.build;
    opening(page, receipt)?;
    modules(page, build)?;
    toolchain(page, build)?;
    trees(page, build)?;
    units(page, build)?;
    checks(page, build)?;
    limitations(page, build)?;
    reproduce(page, receipt)
}

fn opening(page: &mut String, receipt: &RuntimeBuild) -> fmt::Result {
    let build = &receipt.predicate.build;
    let run = &receipt.predicate.run;
    let names: Vec<_> = build.modules.iter().map(|module| format!("`{}`", module.name)).collect();
    writeln!(page, "# Runtime modules\n")?;
    writeln!(
        page,
        "{} {} built {} for {}.",
        build.tool.name,
        build.tool.version,
        names.join(", "),
        targets(build)
    )?;
    writeln!(
        page,
        "Started {}, finished {}, {} compiles at one time.",
        run.started_on, run.finished_on, run.jobs
    )?;
    let fence = match build.place.sandboxed {
        true => "Every compile ran in a sandbox at fixed places.",
        false => "The compiles were not fenced in; equal bytes are claimed for the same path only.",
    };
    writeln!(
        page,
        "{fence}\n\nThis page is made from [runtime-build.json](runtime-build.json), which decides.\n"
    )
}

fn targets(build: &Build) -> String {
    build.targets.iter().map(Target::to_string).collect::<Vec<_>>().join(" and ")
}

fn modules(page: &mut String, build: &Build) -> fmt::Result {
    writeln!(
        page,
        "## Modules\n\n| Module | File | Bytes | SHA-256 | Marker | Objects |\n|---|---|---|---|---|---|"
    )?;
    for m in &build.modules {
        let (name, file, size, sha256) = (&m.name, &m.file, m.size_bytes, m.sha256);
        writeln!(page, "| {name} | {file} | {size} | `{sha256}` | {} | {} |", m.marker, m.objects.len())?;
    }
    writeln!(page)
}

fn toolchain(page: &mut String, build: &Build) -> fmt::Result {
    writeln!(page, "## Toolchain\n\nUnpacked from the wheels that `{}` pins:\n", build.lock.file)?;
    writeln!(page, "| Package | Version | Wheel's SHA-256 |\n|---|---|---|")?;
    for wheel in &build.wheels {
        let yanked = if wheel.yanked { " (withdrawn by its index)" } else { "" };
        writeln!(page, "| {} | {}{yanked} | `{}` |", wheel.name, wheel.version, wheel.sha256)?;
    }
    writeln!(
        page,
        "\nThe tree has {} files and the digest `{}`.",
        build.toolchain.files.len(),
        build.toolchain.tree_sha256
    )?;
    for link in &build.toolchain.links {
        writeln!(page, "In it the link `{}` names `{}`.", link.path, link.target)?;
    }
    writeln!(page, "\nWhat each component says of itself:\n\n| Component | Version | Path |\n|---|---|---|")?;
    for row in &build.versions {
        writeln!(page, "| {} | {} | {} |", row.component, row.version, row.path)?;
    }
    let host = &build.host_compiler;
    writeln!(page, "\nHost code was compiled by `{}`, version {}.\n", host.path, host.version)
}

fn trees(page: &mut String, build: &Build) -> fmt::Result {
    writeln!(page, "## Sources\n")?;
    for tree in &build.trees {
        let TreeRecord { name, tree_sha256, files, base, overlay } = tree;
        writeln!(page, "- `{name}`: {} files, digest `{tree_sha256}`", files.len())?;
        if let (Some(base), Some(overlay)) = (base, overlay) {
            let paths: Vec<_> = overlay.changed.iter().map(|change| format!("`{}`", change.path)).collect();
            writeln!(page, "  It is `{base}` but for {}.", paths.join(", "))?;
        }
    }
    writeln!(page)
}

fn units(page: &mut String, build: &Build) -> fmt::Result {
    writeln!(page, "## Units\n\n| Tree | Compiled | Reused | Inputs read |\n|---|---|---|---|")?;
    for tree in &build.trees {
        let own: Vec<&Unit> = build.units.iter().filter(|unit| unit.tree == tree.name).collect();
        let compiled = own.iter().filter(|unit| unit.decision == Decision::Compiled).count();
        let inputs: std::collections::BTreeSet<_> = own.iter().flat_map(|unit| &unit.inputs).collect();
        writeln!(page, "| {} | {compiled} | {} | {} |", tree.name, own.len() - compiled, inputs.len())?;
    }
    let kernels = build.units.iter().flat_map(|unit| &unit.kernels);
    let (count, spilling) = kernels.fold((0, 0), |(all, spilling), kernel| {
        (all + 1, spilling + usize::from(kernel.spill_store_bytes + kernel.spill_load_bytes > 0))
    });
    writeln!(page, "\nptxas reported {count} kernels; {spilling} of them keep values in local memory.\n")
}

fn checks(page: &mut String, build: &Build) -> fmt::Result {
    writeln!(page, "## Checked during the build\n")?;
    writeln!(page, "- Device code of every object is of exactly the targets above.")?;
    writeln!(
        page,
        "- Every module exports what is declared and nothing else, and links every object of its tree."
    )?;
    let (alone, together): (Vec<_>, Vec<_>) =
        build.load_checks.iter().partition(|check| check.order.len() == 1);
    writeln!(
        page,
        "- Loaded with immediate binding, each time in a fresh process: {} modules alone, and together in {} orders. \
         Each answered with its own marker; no driver library was mapped and no GPU device open.",
        alone.len(),
        together.len()
    )?;
    writeln!(page)
}

fn limitations(page: &mut String, build: &Build) -> fmt::Result {
    writeln!(page, "## Not checked\n")?;
    for limitation in &build.limitations {
        let sentence = match limitation {
            Limitation::ProbesNotRecorded => {
                "The lists of inputs hold what compilers opened; what they looked for in vain is not in the receipt."
            }
            Limitation::ObservationIncomplete => {
                "At least one step could not be observed completely; its inputs are those of its dependency file."
            }
            Limitation::NotSandboxed => "The compiles could read any file of the machine.",
            Limitation::NotExecutedOnGpu => "No kernel ran on a GPU: the build needs none and used none.",
            Limitation::P2pNotExecuted => "The exchange between two GPUs ran on no pair of GPUs.",
        };
        writeln!(page, "- {sentence}")?;
    }
    writeln!(page)
}

fn reproduce(page: &mut String, receipt: &RuntimeBuild) -> fmt::Result {
    let build = &receipt.predicate.build;
    let arch = build.targets.iter().map(Target::to_string).collect::<Vec<_>>().join(",");
    let sandbox = if build.place.sandboxed { "require" } else { "off" };
    writeln!(
        page,
        "## Reproduce\n\nFrom the sources and the lock named above, into a folder that does not exist:\n"
    )?;
    writeln!(page, "```\ncargo xtask build-runtime --scratch DIR --arch {arch} --sandbox {sandbox}\n```\n")?;
    writeln!(page, "Everything but `/predicate/run` of the new receipt must be equal to this one.\n")?;
    writeln!(page, "## Verify\n")?;
    writeln!(page, "```\nrequal verify RECEIPTS --level 1\nrequal verify RECEIPTS --level 2 --tree DIR\n```")
}
