//! A small build on disk with its receipt, and ways to tamper with either.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use requal::limits::{Applied, Limits};
use requal::receipt::*;
use requal::tree::{Tree, TreeFile};
use requal::verify::{Check, Level, Request, State, Verdict, verify};
use requal::{Digest, Outcome, json};
use serde_json::Value;

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

/// Writes `files` below `root` with mode 0644 and returns their records.
fn lay(root: &Utf8Path, files: &[(&str, &str)]) -> Tree {
    use std::os::unix::fs::PermissionsExt as _;
    let record = |(path, text): &(&str, &str)| {
        put(&root.join(path), text.as_bytes());
        fs_err::set_permissions(root.join(path), std::fs::Permissions::from_mode(0o644)).unwrap();
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

fn tokens(text: &str) -> Vec<Token> {
    text.split(' ').map(|token| Token::new(token).unwrap()).collect()
}

fn build_on_disk(scratch: &Utf8Path, names: &[&str]) -> RuntimeBuild {
    let tools = lay(
        &scratch.join("toolchain"),
        &[("bin/nvcc", "nvcc"), ("include/cuda.h", "#define CUDA 13000"), ("lib/libcudart.so.13", "cudart")],
    );
    std::os::unix::fs::symlink("libcudart.so.13", scratch.join("toolchain/lib/libcudart.so")).unwrap();
    let wheel = wheel(scratch, &tools);
    let lock = format!(
        "version = 1\n\n[[package]]\nname = \"tools\"\nversion = \"1.0\"\nfile = \"{}\"\nsize_bytes = 7\nsha256 = \"{}\"\nrole = \"toolchain\"\n",
        wheel.file, wheel.sha256
    );
    put(&scratch.join("receipts/toolchain.lock"), lock.as_bytes());
    put(&scratch.join("receipts/runtime.toml"), b"version = 1\n");
    put(&scratch.join("receipts/logs/build.log"), b"all went well\n");
    let trees = trees(scratch, names);
    let (inputs, units) = units(scratch, &tools, &trees);
    let modules: Vec<_> = trees.iter().map(|tree| module(scratch, tree, &units)).collect();
    let named = |file: &str, bytes: &[u8]| NamedFile { file: path(file), sha256: Digest::of(bytes) };
    let build = Build {
        tool: Tool { name: name("requal"), version: name("0.1.0") },
        lock: named("toolchain.lock", lock.as_bytes()),
        manifest: named("runtime.toml", b"version = 1\n"),
        wheels: vec![wheel],
        toolchain: Toolchain {
            tree_sha256: tools.digest(),
            files: tools.files,
            links: vec![Link { path: path("lib/libcudart.so"), target: path("libcudart.so.13") }],
        },
        versions: vec![ComponentVersion {
            component: name("nvcc"),
            version: name("13.0.88"),
            path: path("bin/nvcc"),
        }],
        host_compiler: HostCompiler {
            path: Token::new("/usr/bin/g++").unwrap(),
            version: name("12.2.0"),
            programs: vec![],
        },
        place: place(),
        environment: vec![
            Variable { name: name("PATH"), value: Token::new("/usr/bin:/bin").unwrap() },
            Variable { name: name("SOURCE_DATE_EPOCH"), value: Token::new("1577836800").unwrap() },
        ],
        targets: targets(),
        trees,
        inputs,
        units,
        load_checks: load_checks(&modules),
        modules,
        scope: vec![Scope::Compiled, Scope::Linked, Scope::Loaded],
        claims: vec![Claim::RebuildIsBitIdentical],
        limitations: vec![
            Limitation::InputsFromDepfiles,
            Limitation::NotExecutedOnGpu,
            Limitation::P2pNotExecuted,
        ],
    };
    RuntimeBuild::new(build, run())
}

fn wheel(scratch: &Utf8Path, tools: &Tree) -> Archive {
    put(&scratch.join("wheels/tools-1.0-py3-none-any.whl"), b"a wheel");
    Archive {
        name: name("tools"),
        version: name("1.0"),
        file: path("tools-1.0-py3-none-any.whl"),
        size_bytes: 7,
        sha256: Digest::of(b"a wheel"),
        record_sha256: Digest::of(b"its RECORD"),
        files: 3,
        tree_sha256: tools.digest(),
        yanked: false,
    }
}

fn place() -> Place {
    let token = |text| Token::new(text).unwrap();
    Place {
        sandboxed: true,
        toolchain: token("/requal/toolchain"),
        tree: token("/requal/tree"),
        build: token("/requal/build"),
        scratch_path_sha256: None,
    }
}

fn targets() -> Targets {
    Targets { machine_code: vec![name("sm_86")], ptx: vec![name("compute_86")] }
}

/// Name, base, and path and content of each file.
type SmallTree = (&'static str, Option<&'static str>, &'static [(&'static str, &'static str)]);

fn trees(scratch: &Utf8Path, names: &[&str]) -> Vec<TreeRecord> {
    let all: [SmallTree; 3] = [
        ("stock", None, &[("acc.cuh", "half"), ("a.cu", "a"), ("b.cpp", "b")]),
        ("facc", Some("stock"), &[("acc.cuh", "float"), ("a.cu", "a"), ("b.cpp", "b")]),
        ("p2p", None, &[("p.cu", "p")]),
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
fn units(scratch: &Utf8Path, tools: &Tree, trees: &[TreeRecord]) -> (Vec<Input>, Vec<Unit>) {
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
        for source in tree.files.iter().filter(|file| !file.path.ends_with(".cuh")) {
            let read =
                tree.files.iter().filter(|file| file.path == source.path || file.path.ends_with(".cuh"));
            let mut rows: Vec<_> = read.map(|file| row(input(Root::Tree, file))).collect();
            rows.push(row(input(Root::Toolchain, &tools.files[1])));
            rows.sort_unstable();
            units.push(unit(scratch, tree, &source.path, rows));
        }
    }
    (inputs, units)
}

fn unit(scratch: &Utf8Path, tree: &TreeRecord, source: &str, inputs: Vec<u32>) -> Unit {
    let object = format!("{source}.o");
    let bytes = format!("object of {source} in {}", tree.name);
    put(&scratch.join("build").join(&*tree.name).join(&object), bytes.as_bytes());
    let device = source.ends_with(".cu");
    let kernel = Kernel {
        target: name("sm_86"),
        symbol: Symbol::new("_Z4kernPf").unwrap(),
        registers: 32,
        spill_store_bytes: 0,
        spill_load_bytes: 0,
        stack_bytes: 0,
        shared_bytes: 1024,
    };
    Unit {
        tree: tree.name.clone(),
        source: path(source),
        argv: tokens(&format!(
            "/requal/toolchain/bin/nvcc -c /requal/tree/{source} -o /requal/build/{object}"
        )),
        object: path(&object),
        decision: Decision::Compiled,
        reason: Reason::NotConsidered,
        inputs,
        object_sha256: Digest::of(bytes.as_bytes()),
        size_bytes: bytes.len() as u64,
        device_code_sha256: device.then(|| Digest::of(b"device code")),
        targets: device.then(targets),
        kernels: if device { vec![kernel] } else { vec![] },
    }
}

fn module(scratch: &Utf8Path, tree: &TreeRecord, units: &[Unit]) -> Module {
    let objects: Vec<_> =
        units.iter().filter(|unit| unit.tree == tree.name).map(|unit| unit.object.clone()).collect();
    let file = format!("lib{}.so", tree.name);
    let bytes = format!("module {}", tree.name);
    put(&scratch.join("modules").join(&file), bytes.as_bytes());
    let listed = objects.iter().map(|object| format!("/requal/build/{object}")).collect::<Vec<_>>().join(" ");
    Module {
        name: tree.name.clone(),
        file: path(&file),
        tree: tree.name.clone(),
        size_bytes: bytes.len() as u64,
        sha256: Digest::of(bytes.as_bytes()),
        device_code_sha256: Digest::of(b"device code"),
        marker: name(&format!("requal-{}", tree.name)),
        exports: vec![Symbol::new("requal_module_v1").unwrap()],
        needed: vec![path("libc.so.6")],
        link_argv: tokens(&format!("/usr/bin/g++ -shared -o /requal/build/{file} {listed}")),
        link_inputs: vec![],
        objects,
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
        inherited: BTreeMap::from([("open_files".to_owned(), 1024)]),
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
    }
}
