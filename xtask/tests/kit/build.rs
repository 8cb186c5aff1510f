//! A small repository of three trees with kernels of their own, built by the real program with the real toolchain.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use camino::{Utf8Path, Utf8PathBuf};
use requal::Digest;
use requal::receipt::RuntimeBuild;
use serde_json::Value;
use xtask::sys::proc::Call;

use super::{copy, file, real};

/// The manifest's path in the repository.
pub(crate) const MANIFEST: &str = "manifests/runtime.toml";
/// The tree `one`: a header, a kernel that uses it, and the module's table.
pub(crate) const HEADER: &str = "kernels/one/include/one/factor.h";
const LOCK: &str = "toolchain.lock";

/// A repository, a scratch that is not there yet, and what stands around them.
pub(crate) struct Fixture {
    _folder: tempfile::TempDir,
    /// The folder of everything else.
    pub(crate) root: Utf8PathBuf,
    /// The repository that is built.
    pub(crate) repository: Utf8PathBuf,
    /// Where the build goes.
    pub(crate) scratch: Utf8PathBuf,
    /// Where wheels come from.
    pub(crate) wheelhouse: Utf8PathBuf,
    /// The caller's environment.
    pub(crate) caller: BTreeMap<String, String>,
}

/// An ended run of the program.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its exit code.
    pub(crate) code: i32,
    /// What it printed: one JSON value.
    pub(crate) said: Value,
}

impl Fixture {
    /// A repository with the modules `names` out of `one`, `over` (an overlay of `one`) and `three`.
    pub(crate) fn new(names: &[&str]) -> Self {
        Self::below(&std::env::temp_dir(), names)
    }

    /// The same in a folder below `parent`.
    pub(crate) fn below(parent: &std::path::Path, names: &[&str]) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir_in(parent).unwrap();
        fs_err::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        let (repository, scratch) = (root.join("repository"), root.join("scratch"));
        copy_text(LOCK, &repository.join(LOCK));
        write_trees(&repository);
        file(&repository.join(MANIFEST), &manifest(names), 0o644);
        let (home, temporary) = (root.join("home"), root.join("tmp"));
        for folder in [&home, &temporary] {
            fs_err::create_dir(folder).unwrap();
        }
        for (name, from) in [("xtask", env!("CARGO_BIN_EXE_xtask").into()), ("requal-worker", worker())] {
            copy(&from, &root.join(name), "755");
        }
        let pairs = [("PATH", "/usr/bin:/bin"), ("HOME", home.as_str()), ("TMPDIR", temporary.as_str())];
        let mut caller = super::variables(&pairs);
        caller.insert("CARGO_MANIFEST_DIR".to_owned(), repository.join("xtask").into_string());
        Self { _folder: folder, root, repository, scratch, wheelhouse: wheels(), caller }
    }

    /// The call of build-runtime with `more` arguments.
    pub(crate) fn call(&self, more: &[&str]) -> Call {
        let mut args = vec!["build-runtime", "-q", "--format", "json", "--scratch", self.scratch.as_str()];
        args.extend(["--wheelhouse", self.wheelhouse.as_str()]);
        args.extend(more);
        Call { env: self.caller.clone(), ..Call::new(&self.root.join("xtask"), &args, &self.root) }
    }

    /// Runs build-runtime.
    pub(crate) fn run(&self, more: &[&str]) -> Ended {
        ended(&self.call(more))
    }

    /// Runs build-runtime, which succeeds, and gives the digest of every object and module.
    pub(crate) fn build(&self, more: &[&str]) -> BTreeMap<String, Digest> {
        self.run(more).succeeded();
        self.digests()
    }

    /// Starts build-runtime.
    #[expect(clippy::disallowed_methods, reason = "a test kills what it started")]
    pub(crate) fn start(&self) -> Child {
        let call = self.call(&[]);
        let mut command = Command::new(&call.program);
        command.args(&call.args).env_clear().envs(&call.env).current_dir(&call.cwd);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Replaces `from`, which stands there once or more, by `to` in a file of the repository.
    pub(crate) fn edit(&self, path: &str, from: &str, to: &str) {
        let path = self.repository.join(path);
        let text = fs_err::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} is not in {path}");
        file(&path, &text.replace(from, to), 0o644);
    }

    /// A file of the unpacked toolkit.
    pub(crate) fn toolkit(&self, path: &str) -> Utf8PathBuf {
        self.scratch.join("toolchain/nvidia/cu13").join(path)
    }

    /// An object or module in the build folder of a tree.
    pub(crate) fn built(&self, path: &str) -> Utf8PathBuf {
        self.scratch.join("build").join(path)
    }

    /// The digest of every object and module, by path in the scratch.
    pub(crate) fn digests(&self) -> BTreeMap<String, Digest> {
        let build = files(&self.scratch.join("build")).into_iter();
        // What lies in a unit's own folder has not got its final name.
        let made =
            build.filter(|path| !path.contains("/unit/") && (path.ends_with(".o") || path.ends_with(".so")));
        let made = made.map(|path| format!("build/{path}"));
        let modules = files(&self.scratch.join("modules")).into_iter().map(|path| format!("modules/{path}"));
        let digest = |path: String| {
            let digest = Digest::of(&fs_err::read(self.scratch.join(&path)).unwrap());
            (path, digest)
        };
        made.chain(modules).map(digest).collect()
    }

    /// Inode and mtime of everything that a second run must leave alone: toolchain, trees, objects, modules.
    pub(crate) fn untouched(&self) -> BTreeMap<String, (u64, i64, i64)> {
        use std::os::unix::fs::MetadataExt as _;
        let folders = ["toolchain", "trees", "modules"];
        let whole = folders.iter().flat_map(|folder| {
            files(&self.scratch.join(folder)).into_iter().map(move |path| format!("{folder}/{path}"))
        });
        let state = |path: String| {
            let found = fs_err::symlink_metadata(self.scratch.join(&path)).unwrap();
            (path, (found.ino(), found.mtime(), found.mtime_nsec()))
        };
        whole.chain(self.digests().into_keys()).map(state).collect()
    }

    /// The receipt of the last successful run.
    pub(crate) fn receipt(&self) -> RuntimeBuild {
        let bytes = fs_err::read(self.scratch.join("receipts/runtime-build.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Removes what was compiled; toolchain and wheels stay.
    pub(crate) fn forget(&self) {
        for folder in ["build", "modules", "place", "trees"] {
            xtask::sys::fs::remove(&self.scratch.join(folder)).unwrap();
        }
    }
}

/// Runs `call` to its end.
pub(crate) fn ended(call: &Call) -> Ended {
    let ended = call.run().unwrap();
    let said = serde_json::from_str(&ended.output);
    let said = said.unwrap_or_else(|error| panic!("{error} in what was printed:\n{}", ended.output));
    Ended { code: ended.code, said }
}

impl Ended {
    /// What a successful run said.
    pub(crate) fn succeeded(&self) -> &Value {
        assert_eq!(self.code, 0, "{:#}", self.said);
        &self.said
    }

    /// Compiled units and whether it was linked, by module.
    pub(crate) fn made(&self) -> BTreeMap<String, (u64, bool)> {
        let modules = self.succeeded()["modules"].as_array().unwrap();
        let made = |module: &Value| {
            let counts = (module["compiled"].as_u64().unwrap(), module["linked"].as_bool().unwrap());
            (module["name"].as_str().unwrap().to_owned(), counts)
        };
        modules.iter().map(made).collect()
    }

    /// Demands the refusal `code` with this exit code, and every one of `words` in it.
    pub(crate) fn refused(&self, exit: i32, code: &str, words: &[&str]) {
        assert_eq!((self.code, self.said["error"]["code"].as_str()), (exit, Some(code)), "{:#}", self.said);
        // Not as JSON, which would escape what is looked for.
        let mut text = String::new();
        collect(&self.said, &mut text);
        for word in words {
            assert!(text.contains(word), "`{word}` is not in:\n{text}");
        }
    }
}

fn collect(value: &Value, text: &mut String) {
    match value {
        Value::String(one) => text.extend([one.as_str(), "\n"]),
        Value::Array(all) => all.iter().for_each(|one| collect(one, text)),
        Value::Object(all) => all.values().for_each(|one| collect(one, text)),
        _ => {}
    }
}

/// Every file and link below `folder`, relative to it.
pub(crate) fn files(folder: &Utf8Path) -> Vec<String> {
    let entries = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_map(Result::ok);
    let plain = entries.filter(|entry| !entry.file_type().is_dir());
    plain.map(|entry| entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned()).collect()
}

/// The wheelhouse with every pinned wheel.
fn wheels() -> Utf8PathBuf {
    static FETCHED: OnceLock<()> = OnceLock::new();
    FETCHED.get_or_init(|| drop(real::real_wheels(&real::lock().packages).unwrap()));
    real::wheelhouse()
}

/// The worker beside the program under test; cargo builds it if only this package was asked for.
fn worker() -> Utf8PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    let path = Utf8Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("requal-worker");
    BUILT.get_or_init(|| {
        let mut args = vec!["build", "--quiet", "--package", "requal-worker"];
        args.extend(path.as_str().contains("/release/").then_some("--release"));
        let environment = xtask::sys::env::all();
        let cargo = environment.get("CARGO").cloned().unwrap_or_else(|| env!("CARGO").to_owned());
        let call = Call { env: environment, ..Call::new(cargo.as_str().into(), &args, &real::repository()) };
        let ended = call.run().unwrap();
        assert_eq!(ended.code, 0, "{}", ended.output);
    });
    path
}

fn copy_text(from: &str, to: &Utf8Path) {
    file(to, &fs_err::read_to_string(real::repository().join(from)).unwrap(), 0o644);
}

fn write_trees(repository: &Utf8Path) {
    for tree in ["one", "three"] {
        let folder = repository.join("kernels").join(tree);
        copy_text("kernels/p2p/include/requal/module.h", &folder.join("include/requal/module.h"));
        for (path, text) in [
            (format!("include/{tree}/factor.h"), "#pragma once\n#define FACTOR 2.0f\n"),
            ("units/scale.cu".to_owned(), SCALE),
            ("units/module.cu".to_owned(), TABLE),
        ] {
            file(&folder.join(path), &text.replace("TREE", tree), 0o644);
        }
    }
    let over = repository.join("kernels/one-over/include/one/factor.h");
    file(&over, "#pragma once\n#define FACTOR 3.0f\n", 0o644);
}

/// The flags and profiles of the committed manifest, with other trees and modules.
fn manifest(names: &[&str]) -> String {
    let text = fs_err::read_to_string(real::repository().join(MANIFEST)).unwrap();
    let (flags, rest) = text.split_once("[[tree]]").unwrap();
    let (_, profiles) = rest.split_once("[profile.").unwrap();
    let tree = |name: &&str| {
        let lies = match *name {
            "over" => "source = \"kernels/one\"\noverlay = \"kernels/one-over\"\ncounterpart = \"one\"",
            "one" => "source = \"kernels/one\"",
            _ => "source = \"kernels/three\"",
        };
        format!("[[tree]]\nname = \"{name}\"\n{lies}\n\n")
    };
    let module = |name: &&str| {
        format!(
            "[[module]]\nname = \"{name}\"\ntree = \"{name}\"\nunits = [\"units/*.cu\"]\ninclude = [\"include\"]\n\
             name_defines = {{ REQUAL_MODULE_NAME = \"{name}\" }}\nexports = [\"requal_module_v1\"]\n\
             libraries = [\"libcudart.so.13\", \"libc.so.6\"]\n\n"
        )
    };
    let tables: String = names.iter().map(tree).chain(names.iter().map(module)).collect();
    format!("{flags}{tables}[profile.{profiles}")
}

/// A kernel and its launch.
const SCALE: &str = "#include \"TREE/factor.h\"

namespace requal_TREE {
namespace {

__global__ void scale_kernel(float* values) { values[threadIdx.x] *= FACTOR; }

}  // namespace

int scale(float* values) {
  scale_kernel<<<1, 32>>>(values);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace requal_TREE
";

/// The table that the worker asks for.
const TABLE: &str = "#include \"requal/module.h\"

#define QUOTE(identifier) #identifier
#define QUOTED(name) QUOTE(name)

namespace requal_TREE {
namespace {

char const* accumulation() { return \"fp32\"; }

constexpr RequalModuleV1 module = {
    REQUAL_ABI_VERSION, sizeof(RequalModuleV1), QUOTED(REQUAL_MODULE_NAME), accumulation, nullptr, nullptr,
};

}  // namespace
}  // namespace requal_TREE

extern \"C\" __attribute__((visibility(\"default\"))) RequalModuleV1 const* requal_module_v1(void) {
  return &requal_TREE::module;
}
";
