//! A small build on disk with its receipt, and ways to tamper with either.

use camino::{Utf8Path, Utf8PathBuf};
use requal::limits::{Applied, Inherited, Limits};
use requal::manifest::{self, Manifest};
use requal::plan::{self, ModulePlan, UnitPlan};
use requal::receipt::*;
use requal::target::Target;
use requal::tree::{Link, Tree, TreeFile};
use requal::verify::{Check, Level, Request, State, Verdict, verify};
use requal::wheel::{Pinned, Wheel};
use requal::{Digest, Outcome, command, json, judge};
use serde_json::Value;

use crate::elf;
use crate::kit::{self, Entry};

/// A scratch in a temporary folder with `receipts/` in it, and the receipt as a value.
pub(crate) struct Fixture {
    _folder: tempfile::TempDir,
    /// The scratch.
    pub(crate) scratch: Utf8PathBuf,
    /// The receipt that [`Fixture::publish`] writes.
    pub(crate) value: Value,
}

impl Fixture {
    /// An untampered build of three modules, one tree laid over another.
    pub(crate) fn new() -> Self {
        Self::of(&["stock", "facc", "p2p"])
    }

    /// An untampered build of the modules `names`.
    pub(crate) fn of(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        let value = serde_json::to_value(build_on_disk(&scratch, names)).unwrap();
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

/// Writes a file of the fixture with `mode`.
fn plant(path: &Utf8Path, bytes: &[u8], mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    put(path, bytes);
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Writes `files` below `root` with mode 0644 and returns their records.
fn lay(root: &Utf8Path, files: &[(&str, &str)]) -> Tree {
    let record = |(path, text): &(&str, &str)| {
        plant(&root.join(path), text.as_bytes(), 0o644);
        let sha256 = Digest::of(text.as_bytes());
        TreeFile { path: (*path).to_owned(), mode: 0o644, size_bytes: text.len() as u64, sha256 }
    };
    Tree::new(files.iter().map(record).collect())
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

fn token(text: &str) -> Token {
    Token::new(text).unwrap()
}

fn build_on_disk(scratch: &Utf8Path, names: &[&str]) -> RuntimeBuild {
    let (wheel, lock) = toolchain(scratch);
    let tools = wheel.tree.clone();
    put(&scratch.join("receipts/toolchain.lock"), lock.as_bytes());
    let text = crate::manifest::text(names);
    put(&scratch.join("receipts/runtime.toml"), text.as_bytes());
    put(&scratch.join("receipts/logs/build.log"), b"all went well\n");
    let manifest = Manifest::parse("runtime.toml", &text).unwrap();
    let trees = trees(scratch, names);
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

/// A real wheel, unpacked into the toolchain, and the lock that pins it.
fn toolchain(scratch: &Utf8Path) -> (Wheel, String) {
    let files =
        [("bin/nvcc", "nvcc"), ("include/cuda.h", "#define CUDA 13000"), ("lib/libcudart.so.13", "cudart")];
    let entries = kit::wheel("tools", "1.0", &files.map(|(path, text)| Entry::file(path, text.as_bytes())));
    let bytes = kit::zip(&entries).bytes;
    let package = kit::pin("tools", "1.0", &bytes);
    put(&scratch.join("wheels").join(&package.file), &bytes);
    let pinned = Pinned::new(bytes, &package).unwrap();
    let wheel = pinned.open().unwrap().wheel;
    for file in &wheel.tree.files {
        let entry = entries.iter().find(|entry| entry.name == file.path.as_bytes()).unwrap();
        plant(&scratch.join("toolchain").join(&file.path), &entry.content, file.mode);
    }
    std::os::unix::fs::symlink("libcudart.so.13", scratch.join("toolchain/lib/libcudart.so")).unwrap();
    let lock = format!(
        "version = 1\n\n[[package]]\nname = \"tools\"\nversion = \"1.0\"\nfile = \"{}\"\nsize_bytes = {}\nsha256 = \"{}\"\nrole = \"toolchain\"\n",
        package.file, package.size_bytes, package.sha256
    );
    (wheel, lock)
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

/// Name, base, and path and content of each file.
type SmallTree = (&'static str, Option<&'static str>, &'static [(&'static str, &'static str)]);

fn trees(scratch: &Utf8Path, names: &[&str]) -> Vec<TreeRecord> {
    let all: [SmallTree; 3] = [
        ("stock", None, &[("acc.cuh", "half"), ("a.cu", "a"), ("b.cpp", "b")]),
        ("p2p", None, &[("p.cu", "p")]),
        ("facc", Some("stock"), &[("acc.cuh", "float"), ("a.cu", "a"), ("b.cpp", "b")]),
    ];
    let mut trees: Vec<TreeRecord> = Vec::new();
    for (own, base, files) in all.into_iter().filter(|(own, ..)| names.contains(own)) {
        let tree = lay(&scratch.join("trees").join(own), files);
        let change = OverlayChange {
            path: path("acc.cuh"),
            sha256_before: Some(Digest::of(b"half")),
            sha256_after: Digest::of(b"float"),
        };
        let overlay = base.map(|_| OverlayRecord {
            tree_sha256: Tree::new(
                tree.files.iter().filter(|file| file.path == "acc.cuh").cloned().collect(),
            )
            .digest(),
            changed: vec![change],
        });
        trees.push(TreeRecord {
            name: name(own),
            tree_sha256: tree.digest(),
            files: tree.files,
            base: base.map(name),
            overlay,
        });
    }
    trees
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
    let orders: &[&[usize]] =
        &[&[0], &[1], &[2], &[0, 1, 2], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0]];
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
