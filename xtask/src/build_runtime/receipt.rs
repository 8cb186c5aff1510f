//! The last stage: what all stages gave becomes `runtime-build.json` and RUNTIME.md.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use requal::command::Place as Places;
use requal::plan::UnitPlan;
use requal::receipt::{self as record, Name, RelativePath, RuntimeBuild, Symbol, Token};
use requal::unit::UnitRecord;
use requal::{Digest, Exit, Failure, Outcome, json, runtime_md};

use super::show::Shown;
use super::{LOCK, Options, Results, certificate};
use crate::sys::sandbox::{self, Mode};
use crate::sys::{clock, fs, user};
use crate::{attempts, trees};

/// Writes the receipt, what it names beside it, and RUNTIME.md.
pub(super) fn write(options: &Options, results: &Results) -> Outcome<Shown> {
    let folder = options.receipts.clone().unwrap_or_else(|| options.scratch.join("receipts"));
    fs::write(&folder.join(LOCK), results.inputs.lock_text.as_bytes())?;
    fs::write(&folder.join(file_name(&options.manifest)), results.inputs.manifest_text.as_bytes())?;
    let certificate = certificate::write(results, &folder)?;
    let receipt = RuntimeBuild::new(
        build(options, results, certificate.named)?,
        run(options, results, &folder, certificate.artifact)?,
    );
    let path = folder.join(record::FILE);
    fs::write(&path, &json::write(&receipt)?)?;
    fs::write(&folder.join("RUNTIME.md"), runtime_md::render(&receipt).as_bytes())?;
    Ok(Shown::of(results, &path))
}

fn build(
    options: &Options,
    results: &Results,
    certificate: record::CertificateFile,
) -> Outcome<record::Build> {
    let inputs = InputTable::of(results);
    Ok(record::Build {
        tool: record::Tool { name: name("requal")?, version: name(env!("CARGO_PKG_VERSION"))? },
        lock: record::NamedFile {
            file: path(LOCK)?,
            sha256: Digest::of(results.inputs.lock_text.as_bytes()),
        },
        manifest: record::NamedFile {
            file: path(file_name(&options.manifest))?,
            sha256: Digest::of(results.inputs.manifest_text.as_bytes()),
        },
        wheels: wheels(results)?,
        toolchain: toolchain(results),
        versions: versions(results)?,
        host_compiler: host_compiler(results)?,
        place: place(options, results)?,
        environment: environment(results)?,
        targets: results.inputs.manifest.targets.clone(),
        trees: source_trees(results)?,
        units: units(results, &inputs)?,
        certificate: Some(certificate),
        modules: modules(results, &inputs)?,
        inputs: inputs.rows,
        load_checks: results.load_orders.iter().map(|order| load_check(order)).collect::<Outcome<_>>()?,
        scope: vec![record::Scope::Compiled, record::Scope::Linked, record::Scope::Loaded],
        claims: vec![record::Claim::RebuildIsBitIdentical],
        limitations: limitations(results),
    })
}

fn limitations(results: &Results) -> Vec<record::Limitation> {
    use record::Limitation::{NotExecutedOnGpu, NotSandboxed, ObservationIncomplete, P2pNotExecuted};
    let mut limitations = Vec::new();
    let observed = |built: &crate::compile::Built| {
        let gap = |bar: &requal::reuse::Bar| bar.reason == record::Reason::NotObserved;
        let units = built.units.iter().map(|unit| &unit.bars);
        !units.chain([&built.module.bars]).flatten().any(gap)
    };
    if !results.modules.iter().all(|(_, built)| observed(built)) {
        limitations.push(ObservationIncomplete);
    }
    if !results.site.sandboxed {
        limitations.push(NotSandboxed);
    }
    limitations.push(NotExecutedOnGpu);
    if results.inputs.trees.iter().any(|tree| tree.name == "p2p") {
        limitations.push(P2pNotExecuted);
    }
    limitations
}

fn wheels(results: &Results) -> Outcome<Vec<record::WheelRow>> {
    let row = |wheel: &requal::wheel::Wheel| {
        checked(record::WheelRow::of(wheel, results.yanked.contains(&wheel.name)))
    };
    results.toolchain.wheels.iter().map(row).collect()
}

fn toolchain(results: &Results) -> record::Toolchain {
    record::Toolchain {
        tree_sha256: results.toolchain.tree.digest(),
        files: results.toolchain.tree.files.clone(),
        links: results.toolchain.links.clone(),
    }
}

fn versions(results: &Results) -> Outcome<Vec<record::ComponentVersion>> {
    let row = |row: &requal::versions::Row| {
        Ok(record::ComponentVersion {
            component: name(&row.component.replace(' ', "-"))?,
            version: name(&row.version)?,
            path: path(&row.path)?,
        })
    };
    let mut rows: Vec<record::ComponentVersion> = results
        .preflight
        .versions
        .iter()
        .filter(|row| row.package.is_some())
        .map(row)
        .collect::<Outcome<_>>()?;
    rows.sort_by(|a, b| (&a.component, &a.path).cmp(&(&b.component, &b.path)));
    Ok(rows)
}

fn host_compiler(results: &Results) -> Outcome<record::HostCompiler> {
    let host = &results.preflight.host;
    let program = |program: &requal::versions::Program| {
        Ok(record::Program {
            name: name(&program.name)?,
            path: token(program.path.as_str())?,
            sha256: program.sha256,
        })
    };
    Ok(record::HostCompiler {
        path: token(host.path.as_str())?,
        version: name(&host.version)?,
        programs: host.programs.iter().map(program).collect::<Outcome<_>>()?,
    })
}

fn place(options: &Options, results: &Results) -> Outcome<record::Place> {
    let place = Places::recorded(results.site.sandboxed);
    let path = Digest::of(options.scratch.as_str().as_bytes());
    Ok(record::Place {
        sandboxed: results.site.sandboxed,
        toolchain: token(&place.toolchain)?,
        tree: token(&place.tree)?,
        build: token(&place.build)?,
        scratch_path_sha256: (!results.site.sandboxed).then_some(path),
    })
}

/// The environment is one for all units; the unit's own temporary folder is recorded as a pattern.
fn environment(results: &Results) -> Outcome<Vec<record::Variable>> {
    let place = Places::recorded(results.site.sandboxed);
    let all = requal::command::environment(&results.site.limits).into_iter();
    let variable = |(variable, value): (String, String)| {
        let value = place.resolve(&value, "${object}");
        Ok(record::Variable { name: name(&variable)?, value: token(&value)? })
    };
    all.map(variable).collect()
}

fn source_trees(results: &Results) -> Outcome<Vec<record::TreeRecord>> {
    let all = &results.inputs.trees;
    let tree = |tree: &trees::SourceTree| {
        let base =
            tree.overlay.as_ref().and_then(|overlay| all.iter().find(|base| base.name == overlay.base));
        Ok(record::TreeRecord {
            name: name(&tree.name)?,
            tree_sha256: tree.tree.digest(),
            files: tree.tree.files.clone(),
            base: base.map(|base| name(&base.name)).transpose()?,
            overlay: match (&tree.overlay, base) {
                (Some(overlay), Some(base)) => Some(record::OverlayRecord {
                    tree_sha256: overlay.tree.digest(),
                    changed: changes(&base.tree, &tree.tree)?,
                }),
                _ => None,
            },
        })
    };
    all.iter().map(tree).collect()
}

fn changes(base: &requal::tree::Tree, over: &requal::tree::Tree) -> Outcome<Vec<record::OverlayChange>> {
    let before: BTreeMap<&str, Digest> =
        base.files.iter().map(|file| (file.path.as_str(), file.sha256)).collect();
    let changed = over.files.iter().filter(|file| before.get(file.path.as_str()) != Some(&file.sha256));
    let change = |file: &requal::tree::TreeFile| {
        Ok(record::OverlayChange {
            path: path(&file.path)?,
            sha256_before: before.get(file.path.as_str()).copied(),
            sha256_after: file.sha256,
        })
    };
    changed.map(change).collect()
}

/// Everything that was read, each once; units and modules name rows by number.
struct InputTable {
    rows: Vec<record::Input>,
}

impl InputTable {
    fn of(results: &Results) -> Self {
        let lists = results.modules.iter().flat_map(|(_, built)| {
            let units = built.units.iter().map(|unit| unit.closure.inputs());
            units.chain([built.module.closure.inputs()])
        });
        let rows: BTreeSet<record::Input> = lists.flatten().collect();
        Self { rows: rows.into_iter().collect() }
    }

    fn numbers(&self, inputs: &[record::Input]) -> Vec<u32> {
        let number =
            |input: &record::Input| self.rows.binary_search(input).ok().and_then(|at| u32::try_from(at).ok());
        inputs.iter().filter_map(number).collect()
    }
}

fn units(results: &Results, inputs: &InputTable) -> Outcome<Vec<record::Unit>> {
    let place = Places::recorded(results.site.sandboxed);
    let unit = |(tree, unit, made): (&str, &UnitPlan, &UnitRecord)| {
        let argv = unit.argv.iter().map(|word| token(&place.resolve(word, &unit.object)));
        Ok(record::Unit {
            tree: name(tree)?,
            source: path(&unit.source)?,
            object: path(&unit.object)?,
            argv: argv.collect::<Outcome<_>>()?,
            decision: made.decided.decision,
            reason: made.decided.reason,
            inputs: inputs.numbers(&made.closure.inputs()),
            object_sha256: made.object_sha256,
            size_bytes: made.size_bytes,
            device_code_sha256: made.device_code_sha256,
            targets: made.targets.clone(),
            kernels: made.kernels.clone(),
        })
    };
    units_in_order(results).into_iter().map(unit).collect()
}

/// Every unit with its tree, sorted by tree, in the order of the trees, and source.
pub(super) fn units_in_order(results: &Results) -> Vec<(&str, &UnitPlan, &UnitRecord)> {
    let mut units: Vec<(&str, &UnitPlan, &UnitRecord)> = Vec::new();
    for (plan, built) in &results.modules {
        let own = plan.units.iter().zip(&built.units);
        units.extend(own.map(|(unit, made)| (plan.module.tree.as_str(), unit, made)));
    }
    let order = |tree: &str| results.inputs.trees.iter().position(|known| known.name == tree);
    units.sort_by(|a, b| (order(a.0), &a.1.source).cmp(&(order(b.0), &b.1.source)));
    units
}

fn modules(results: &Results, inputs: &InputTable) -> Outcome<Vec<record::Module>> {
    let place = Places::recorded(results.site.sandboxed);
    let module = |(plan, built): &(requal::plan::ModulePlan, crate::compile::Built)| {
        let (module, made) = (&plan.module, &built.module);
        let file = format!("{}.so", module.name);
        Ok(record::Module {
            name: name(&module.name)?,
            file: path(&file)?,
            tree: name(&module.tree)?,
            size_bytes: made.size_bytes,
            sha256: made.sha256,
            device_code_sha256: made.device_code_sha256,
            marker: name(&module.name)?,
            exports: made
                .exports
                .iter()
                .map(|symbol| checked(Symbol::new(symbol)))
                .collect::<Outcome<_>>()?,
            needed: made.needed.iter().map(|library| path(library)).collect::<Outcome<_>>()?,
            objects: plan.units.iter().map(|unit| path(&unit.object)).collect::<Outcome<_>>()?,
            link_argv: plan
                .link_argv
                .iter()
                .map(|w| token(&place.resolve(w, &file)))
                .collect::<Outcome<_>>()?,
            link_inputs: inputs.numbers(&made.closure.inputs()),
        })
    };
    results.modules.iter().map(module).collect()
}

fn load_check(order: &[String]) -> Outcome<record::LoadCheck> {
    let order = order.iter().map(|module| name(module)).collect::<Outcome<_>>()?;
    Ok(record::LoadCheck { order, result: record::LoadResult::LoadedWithoutDriver })
}

fn run(
    options: &Options,
    results: &Results,
    receipts: &Utf8Path,
    certificate: record::Artifact,
) -> Outcome<record::Run> {
    let refused = match &results.sandbox {
        sandbox::Place::RealPath(refusal) => refusal.as_ref(),
        sandbox::Place::Sandbox => None,
    };
    Ok(record::Run {
        session: results.session,
        started_on: checked(record::Time::new(&results.started_on))?,
        finished_on: checked(record::Time::new(clock::now()))?,
        sandbox: record::SandboxRun {
            mode: match options.sandbox {
                Mode::Auto => record::SandboxMode::Auto,
                Mode::Require => record::SandboxMode::Require,
                Mode::Off => record::SandboxMode::Off,
            },
            entered: results.site.sandboxed,
            refused_step: refused.map(|refusal| name(&refusal.step.replace([' ', '/'], "-"))).transpose()?,
        },
        limits: record::RunLimits {
            requested: results.site.limits.clone(),
            applied: results.applied.clone(),
        },
        jobs: results.site.jobs,
        user: if user::is_root() { record::User::Root } else { record::User::Ordinary },
        replaced_environment: results
            .preflight
            .replaced_environment
            .iter()
            .map(|n| name(n))
            .collect::<Outcome<_>>()?,
        certificate: Some(certificate),
        logs: logs(options, results, receipts)?,
        attempts: failed_attempts(options, receipts)?,
    })
}

/// Copies the whole output of every step of each module beside the receipt, as one log a module.
fn logs(options: &Options, results: &Results, receipts: &Utf8Path) -> Outcome<Vec<record::Artifact>> {
    let mut artifacts = Vec::new();
    for (plan, built) in &results.modules {
        let mut log = Vec::new();
        let outputs = plan.units.iter().map(|unit| unit.object.clone());
        for output in outputs.chain([format!("{}.so", plan.module.name)]) {
            log.extend(format!("== {output}\n").bytes());
            log.extend(fs_err::read(crate::wrap::log_path(&built.folder, &output)).unwrap_or_default());
        }
        let file = format!("logs/{}.log", plan.module.name);
        fs::write(&receipts.join(&file), &log)?;
        let (sha256, size_bytes) = (Digest::of(&log), log.len() as u64);
        artifacts.push(record::Artifact { file: path(&file)?, sha256, size_bytes });
    }
    let _ = options;
    Ok(artifacts)
}

fn failed_attempts(options: &Options, receipts: &Utf8Path) -> Outcome<Vec<record::Attempt>> {
    let mut recorded = Vec::new();
    for kept in attempts::all(&options.scratch)? {
        let file = format!("{}/{}", attempts::FOLDER, kept.file);
        let public = kept.attempt.public()?;
        fs::write(&receipts.join(&file), &public)?;
        recorded.push(record::Attempt {
            file: path(&file)?,
            sha256: Digest::of(&public),
            size_bytes: public.len() as u64,
            exit: kept.attempt.exit,
        });
    }
    Ok(recorded)
}

fn file_name(path: &Utf8PathBuf) -> &str {
    path.file_name().unwrap_or("manifest.toml")
}

pub(super) fn name(text: &str) -> Outcome<Name> {
    checked(Name::new(text))
}

pub(super) fn path(text: &str) -> Outcome<RelativePath> {
    checked(RelativePath::new(text))
}

fn token(text: &str) -> Outcome<Token> {
    checked(Token::new(text))
}

/// A text that the receipt's grammar has no room for is refused, not bent.
pub(super) fn checked<T>(text: Result<T, String>) -> Outcome<T> {
    text.map_err(|why| {
        Failure::new(Exit::CouldNotJudge, "E-RECEIPT-TEXT", "a value cannot stand in a receipt")
            .expected("the grammar of docs/records.md")
            .found(why)
            .hint("rename what it names, or use another --scratch")
    })
}
