//! A small build on disk with its receipt, and ways to tamper with either.

use camino::{Utf8Path, Utf8PathBuf};
use requal::limits::{Applied, Inherited, Limits};
use requal::manifest::{self, Manifest};
use requal::plan::{self, ModulePlan, UnitPlan};
use requal::receipt::*;
use requal::target::Target;
use requal::tree::{Link, Tree, TreeFile};
use requal::verify::{Check, Level, Request, State, Verdict, verify};
use requal::{Digest, Outcome, command, json, judge};
use serde_json::Value;

use crate::{elf, sources};

/// A scratch in a temporary folder with `receipts/` in it, and the receipt as a value.
pub(crate) struct Fixture {
    _folder: tempfile::TempDir,
    /// The scratch.
    pub(crate) scratch: Utf8PathBuf,
    /// The receipt that [`Fixture::publish`] writes.
    pub(crate) value: Value,
}

/// How much there is to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Two units in each of the paired trees.
    Plain,
    /// As much, and a compiler where the commands start it: the least that a certificate needs.
    Paired,
    /// A third unit too.
    Certified,
}

impl Fixture {
    /// An untampered build of three modules, one tree laid over another.
    pub(crate) fn new() -> Self {
        Self::of(&["stock", "facc", "p2p"])
    }

    /// An untampered build of the modules `names`.
    pub(crate) fn of(names: &[&str]) -> Self {
        Self::sized(names, Size::Plain)
    }

    /// An untampered build of the modules `names`.
    pub(crate) fn sized(names: &[&str], size: Size) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        let value = serde_json::to_value(build_on_disk(&scratch, names, size)).unwrap();
        let fixture = Self { _folder: folder, scratch, value };
        fixture.publish();
        fixture
    }

    /// The receipts folder.
    pub(crate) fn receipts(&self) -> Utf8PathBuf {
        self.scratch.join("receipts")
    }

    /// Writes the receipt's value in its canonical form, so that only its meaning can be at fault.
    pub(crate) fn publish(&self) {
        put(&self.receipts().join(FILE), format!("{:#}\n", self.value).as_bytes());
    }

    /// Changes the receipt's value and publishes it.
    pub(crate) fn tamper(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.value);
        self.publish();
    }

    /// The canonical bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        json::write(&self.value).unwrap()
    }

    /// The verdict at `level`, with the scratch as evidence from level 2 on.
    pub(crate) fn verdict(&self, level: usize) -> Outcome<Verdict> {
        let tree = (level >= 2).then(|| self.scratch.clone());
        let level = Some(Level::ALL[level]);
        verify(&Request { receipts: self.receipts(), level, tree, wheelhouse: None })
    }

    /// The checks at `level` that are not as they should be.
    pub(crate) fn open(&self, level: usize) -> Vec<Check> {
        let bad = [State::Mismatch, State::Unverifiable];
        let verdict = self.verdict(level).unwrap();
        verdict.checks().iter().filter(|check| bad.contains(&check.state)).cloned().collect()
    }
}

/// Writes a file of the fixture; folders are made.
#[expect(
    clippy::disallowed_methods,
    reason = "the fixture lies in a temporary folder that nobody else reads"
)]
pub(crate) fn put(path: &Utf8Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

pub(crate) fn token(text: &str) -> Token {
    Token::new(text).unwrap()
}

fn build_on_disk(scratch: &Utf8Path, names: &[&str], size: Size) -> RuntimeBuild {
    let (wheel, lock) = sources::toolchain(scratch, size);
    let tools = wheel.tree.clone();
    put(&scratch.join("receipts/toolchain.lock"), lock.as_bytes());
    let text = crate::manifest::text(names, size);
    put(&scratch.join("receipts/runtime.toml"), text.as_bytes());
    put(&scratch.join("receipts/logs/build.log"), b"all went well\n");
    let manifest = Manifest::parse("runtime.toml", &text).unwrap();
    let trees = sources::trees(scratch, names, size);
    let plans: Vec<_> = manifest.modules.iter().map(|module| plan(&manifest, module, &trees)).collect();
    let (inputs, units) = units(scratch, &tools, &trees, &plans);
    let modules: Vec<_> = plans.iter().map(|plan| module(scratch, plan)).collect();
    let named = |file: &str, bytes: &[u8]| NamedFile { file: path(file), sha256: Digest::of(bytes) };
    let build = Build {
        tool: Tool { name: name("requal"), version: name("0.1.0") },
        lock: named("toolchain.lock", lock.as_bytes()),
        manifest: named("runtime.toml", text.as_bytes()),
        wheels: vec![WheelRow::of(&wheel, false).unwrap()],
        toolchain: Toolchain {
            tree_sha256: tools.digest(),
            files: tools.files,
            links: vec![Link { path: "lib/libcudart.so".into(), target: "libcudart.so.13".into() }],
        },
        versions: vec![ComponentVersion {
            component: name("nvcc"),
            version: name("13.0.88"),
            path: path("bin/nvcc"),
        }],
        host_compiler: HostCompiler { path: token(HOST), version: name("12.2.0"), programs: vec![] },
        place: place(),
        environment: environment(),
        targets: manifest.targets,
        trees,
        inputs,
        units,
        load_checks: load_checks(&modules),
        certificate: None,
        modules,
        scope: vec![Scope::Compiled, Scope::Linked, Scope::Loaded],
        claims: vec![Claim::RebuildIsBitIdentical],
        limitations: vec![
            Limitation::ProbesNotRecorded,
            Limitation::NotExecutedOnGpu,
            Limitation::P2pNotExecuted,
        ],
    };
    RuntimeBuild::new(build, run())
}

/// Path of the fixture's host compiler.
const HOST: &str = "/usr/bin/g++";

fn environment() -> Vec<Variable> {
    let all = command::environment(&Limits::default()).into_iter();
    let variable = |(own, value): (String, String)| Variable {
        name: name(&own),
        value: token(&command::Place::fixed().resolve(&value, "${object}")),
    };
    all.map(variable).collect()
}

fn plan(manifest: &Manifest, module: &manifest::Module, trees: &[TreeRecord]) -> ModulePlan {
    let tree = trees.iter().find(|tree| *tree.name == *module.tree).unwrap();
    plan::module(manifest, module, &Tree::new(tree.files.clone()), HOST).unwrap()
}

/// `argv` of the plan as the receipt carries it.
fn resolved(argv: &[String], object: &str) -> Vec<Token> {
    argv.iter().map(|word| token(&command::Place::fixed().resolve(word, object))).collect()
}

fn place() -> Place {
    let fixed = command::Place::fixed();
    Place {
        sandboxed: true,
        toolchain: token(&fixed.toolchain),
        tree: token(&fixed.tree),
        build: token(&fixed.build),
        scratch_path_sha256: None,
    }
}

/// Every source is a unit; it reads itself, its tree's header if there is one, and the toolchain's header.
fn units(
    scratch: &Utf8Path,
    tools: &Tree,
    trees: &[TreeRecord],
    plans: &[ModulePlan],
) -> (Vec<Input>, Vec<Unit>) {
    let input = |root, file: &TreeFile| Input {
        root,
        path: path(&file.path),
        sha256: file.sha256,
        size_bytes: file.size_bytes,
    };
    let mut inputs: Vec<_> =
        trees.iter().flat_map(|tree| tree.files.iter().map(|file| input(Root::Tree, file))).collect();
    inputs.push(input(Root::Toolchain, &tools.files[1]));
    inputs.sort();
    inputs.dedup();
    let row = |wanted: Input| inputs.iter().position(|input| *input == wanted).unwrap() as u32;
    let mut units = Vec::new();
    for tree in trees {
        let plan = plans.iter().find(|plan| *plan.module.tree == *tree.name).unwrap();
        for unit in &plan.units {
            let read =
                tree.files.iter().filter(|file| file.path == unit.source || file.path.ends_with(".cuh"));
            let mut rows: Vec<_> = read.map(|file| row(input(Root::Tree, file))).collect();
            rows.push(row(input(Root::Toolchain, &tools.files[1])));
            rows.sort_unstable();
            units.push(self::unit(scratch, tree, unit, rows));
        }
    }
    (inputs, units)
}

fn unit(scratch: &Utf8Path, tree: &TreeRecord, plan: &UnitPlan, inputs: Vec<u32>) -> Unit {
    let bytes = elf::object(&tree.name, &plan.source);
    put(&scratch.join("build").join(&*tree.name).join(&plan.object), bytes);
    let device_code = judge::object(&plan.object, bytes, &plan.targets).unwrap();
    let kernel = Kernel {
        target: Target::MachineCode(86),
        symbol: Symbol::new("_Z4kernPf").unwrap(),
        registers: 32,
        spill_store_bytes: 0,
        spill_load_bytes: 0,
        stack_bytes: 0,
        shared_bytes: 1024,
    };
    Unit {
        tree: tree.name.clone(),
        source: path(&plan.source),
        argv: resolved(&plan.argv, &plan.object),
        object: path(&plan.object),
        decision: Decision::Compiled,
        reason: Reason::NotConsidered,
        inputs,
        object_sha256: Digest::of(bytes),
        size_bytes: bytes.len() as u64,
        kernels: if device_code.is_some() { vec![kernel] } else { vec![] },
        targets: plan.targets.clone(),
        device_code_sha256: device_code.map(|code| code.sha256),
    }
}

fn module(scratch: &Utf8Path, plan: &ModulePlan) -> Module {
    let (own, file) = (&plan.module.name, format!("{}.so", plan.module.name));
    let bytes = elf::module(own);
    put(&scratch.join("modules").join(&file), bytes);
    let declared = judge::DeclaredModule {
        targets: &plan.targets,
        exports: &plan.module.exports,
        libraries: &plan.module.libraries,
    };
    let judged = judge::module(&file, bytes, declared).unwrap();
    Module {
        name: name(own),
        file: path(&file),
        tree: name(&plan.module.tree),
        size_bytes: bytes.len() as u64,
        sha256: Digest::of(bytes),
        device_code_sha256: judged.device_code.sha256,
        marker: name(own),
        exports: judged.exports.iter().map(|symbol| Symbol::new(&**symbol).unwrap()).collect(),
        needed: judged.needed.iter().map(|library| path(library)).collect(),
        objects: plan.units.iter().map(|unit| path(&unit.object)).collect(),
        link_argv: resolved(&plan.link_argv, &file),
        link_inputs: vec![],
    }
}

fn load_checks(modules: &[Module]) -> Vec<LoadCheck> {
    let orders: &[&[usize]] = &[
        &[0],
        &[1],
        &[2],
        &[0, 1],
        &[1, 0],
        &[0, 1, 2],
        &[0, 2, 1],
        &[1, 0, 2],
        &[1, 2, 0],
        &[2, 0, 1],
        &[2, 1, 0],
    ];
    let told = |order: &&&[usize]| {
        let all = order.iter().all(|i| *i < modules.len());
        all && (order.len() == 1 || order.len() == modules.len())
    };
    let check = |order: &&[usize]| LoadCheck {
        order: order.iter().map(|i| modules[*i].name.clone()).collect(),
        result: LoadResult::LoadedWithoutDriver,
    };
    orders.iter().filter(told).map(check).collect()
}

fn run() -> Run {
    let limits = Limits { jobs: Some(2), cpu_affinity: Some(vec![0, 1]), ..Limits::default() };
    let applied = Applied {
        cpu_affinity: vec![0, 1],
        nice: 0,
        address_space_bytes: None,
        inherited: Inherited { open_files: Some(1024), ..Inherited::default() },
    };
    Run {
        session: Digest::of(b"random"),
        started_on: Time::new("2026-01-31T12:00:00Z").unwrap(),
        finished_on: Time::new("2026-01-31T12:10:00Z").unwrap(),
        sandbox: SandboxRun { mode: SandboxMode::Auto, entered: true, refused_step: None },
        limits: RunLimits { requested: limits.clone(), applied: Some(applied) },
        jobs: 2,
        user: User::Ordinary,
        replaced_environment: vec![name("NVCC_APPEND_FLAGS")],
        logs: vec![Artifact {
            file: path("logs/build.log"),
            sha256: Digest::of(b"all went well\n"),
            size_bytes: 14,
        }],
        attempts: vec![],
        certificate: None,
    }
}
