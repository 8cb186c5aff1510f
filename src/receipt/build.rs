//! The part of the receipt that is equal between two builds of equal inputs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sources::{ComponentVersion, HostCompiler, NamedFile, Toolchain, TreeRecord, WheelRow};
use super::text::{Name, RelativePath, Symbol, Token};
use crate::Digest;
use crate::target::Target;

/// What was built, from what, and how. Lists are in the order that their comments name; each is judged at level 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// The tool that wrote the receipt.
    pub tool: Tool,
    /// The lock file, kept beside the receipt.
    pub lock: NamedFile,
    /// The manifest, kept beside the receipt.
    pub manifest: NamedFile,
    /// The wheels that were unpacked, sorted by name.
    pub wheels: Vec<WheelRow>,
    /// What they were unpacked to.
    pub toolchain: Toolchain,
    /// The preflight's table: each component by its own word, sorted by component and path.
    pub versions: Vec<ComponentVersion>,
    /// The compiler that nvcc calls for host code.
    pub host_compiler: HostCompiler,
    /// Where the compilers saw things.
    pub place: Place,
    /// The whole environment of each compile, sorted by name.
    pub environment: Vec<Variable>,
    /// The declared targets of all device code, ascending: machine code before PTX.
    pub targets: Vec<Target>,
    /// Source trees, bases before the overlaid trees that name them.
    pub trees: Vec<TreeRecord>,
    /// Everything that a compile read, sorted by root and path, each once; units name its rows by number from 0.
    pub inputs: Vec<Input>,
    /// Every unit of every tree, sorted by tree (in the order of `trees`) and source.
    pub units: Vec<Unit>,
    /// The certificate of the objects; a receipt without one says of no unit what was looked for and not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateFile>,
    /// The linked modules, in the manifest's order.
    pub modules: Vec<Module>,
    /// Loads of the modules in one fresh process each.
    pub load_checks: Vec<LoadCheck>,
    /// What was done, ascending.
    pub scope: Vec<Scope>,
    /// What the producer says and no level below OBJECTS-REPRODUCED can check, ascending.
    pub claims: Vec<Claim>,
    /// What was not done or does not follow, ascending.
    pub limitations: Vec<Limitation>,
}

/// The reuse certificate, kept compressed beside the receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificateFile {
    /// File name beside the receipt.
    pub file: RelativePath,
    /// SHA-256 of the uncompressed text: how it is compressed says nothing.
    pub sha256: Digest,
    /// Size of the uncompressed text.
    pub size_bytes: u64,
}

/// A program and its version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Always `requal`.
    pub name: Name,
    /// Its version.
    pub version: Name,
}

/// Paths at which compilers saw things. In the sandbox they are fixed places; without it they begin with
/// `${scratch}`, and `scratch_path_sha256` is present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Whether the compiles ran in the sandbox.
    pub sandboxed: bool,
    /// The toolchain tree.
    pub toolchain: Token,
    /// The source tree, the same place for each.
    pub tree: Token,
    /// The build folder.
    pub build: Token,
    /// SHA-256 of the real path for which `${scratch}` stands: equal bytes are claimed for that path only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch_path_sha256: Option<Digest>,
}

/// One environment variable that compilers saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// Its name, one of the closed list in docs/records.md.
    pub name: Name,
    /// Its value.
    pub value: Token,
}

/// The root to which an input's path is relative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Root {
    /// The unit's own source tree.
    Tree,
    /// The toolchain tree.
    Toolchain,
    /// The folder of the host's programs that stands on PATH.
    Host,
    /// The system's root folder.
    System,
}

impl Root {
    /// All roots.
    pub const ALL: [Self; 4] = [Self::Tree, Self::Toolchain, Self::Host, Self::System];

    /// Its word in records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Toolchain => "toolchain",
            Self::Host => "host",
            Self::System => "system",
        }
    }
}

/// A file that a compile read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The root of its path.
    pub root: Root,
    /// Its path.
    pub path: RelativePath,
    /// SHA-256 of the content; two trees may hold one path with different contents: two rows.
    pub sha256: Digest,
    /// Size of the content.
    pub size_bytes: u64,
}

/// What was done for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Its compiler ran.
    Compiled,
    /// Another tree's object was taken; needs the certificate.
    Reused,
}

/// Why. All but the last: compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    /// Reuse was not considered in this build.
    NotConsidered,
    /// No other tree has such a unit.
    NoCounterpart,
    /// An object of the unit's own compile was still good.
    AlreadyCompiled,
    /// The other tree's compile was not observed completely, or what it asked for cannot stand in a record.
    NotObserved,
    /// A source of the tree names `__DATE__`, `__TIME__` or `__TIMESTAMP__`.
    TimeMacro,
    /// Debug or line information outside the sandbox holds paths of a build folder.
    PathInObject,
    /// An argument is on the refusal list.
    FlagRefused,
    /// An argument differs.
    ArgumentDiffers,
    /// An environment variable differs.
    EnvironmentDiffers,
    /// A path of the place differs.
    PlaceDiffers,
    /// A symbolic link holds something else.
    LinkDiffers,
    /// A folder that was listed has other names in it.
    ListingDiffers,
    /// A folder is not there.
    FolderGone,
    /// Something stands where the other compile found nothing.
    ProbeFound,
    /// A file has another content.
    ContentDiffers,
    /// A file has another time of last change.
    MtimeDiffers,
    /// A name define has a say: a pass expands it or asks for it.
    NameDefineUsed,
    /// Whether a name define has a say could not be told.
    NameDefineUntold,
    /// What held at the decision did not hold at the use.
    ChangedAtUse,
    /// Reused: the certificate's rule held.
    ClosureEqual,
}

/// One source and its object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Name of its tree.
    pub tree: Name,
    /// Source path in the tree.
    pub source: RelativePath,
    /// Object path in the tree's object folder: the source path and `.o`.
    pub object: RelativePath,
    /// The whole command, program first; paths as the compiler saw them.
    pub argv: Vec<Token>,
    /// What was done.
    pub decision: Decision,
    /// Why.
    pub reason: Reason,
    /// Rows of `build.inputs`, ascending.
    pub inputs: Vec<u32>,
    /// SHA-256 of the object.
    pub object_sha256: Digest,
    /// Size of the object.
    pub size_bytes: u64,
    /// Digest of its device code; absent for a unit without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_code_sha256: Option<Digest>,
    /// Targets found in the object, ascending; none for a unit without device code.
    pub targets: Vec<Target>,
    /// What ptxas said of each kernel, sorted by target and symbol.
    pub kernels: Vec<Kernel>,
}

/// Resources of one kernel, by ptxas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Its target.
    pub target: Target,
    /// Mangled entry name.
    pub symbol: Symbol,
    /// Registers of one thread.
    pub registers: u32,
    /// Bytes stored to local memory because registers ran out.
    pub spill_store_bytes: u64,
    /// Bytes loaded back.
    pub spill_load_bytes: u64,
    /// Stack frame of one thread.
    pub stack_bytes: u64,
    /// Static shared memory of one block.
    pub shared_bytes: u64,
}

/// A linked shared library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// The manifest's name for it.
    pub name: Name,
    /// File name.
    pub file: RelativePath,
    /// Name of the tree whose objects it links.
    pub tree: Name,
    /// Size of the file.
    pub size_bytes: u64,
    /// SHA-256 of the file.
    pub sha256: Digest,
    /// Digest of its device code.
    pub device_code_sha256: Digest,
    /// What its marker function answers.
    pub marker: Name,
    /// Exported symbols, ascending: exactly the declared ones.
    pub exports: Vec<Symbol>,
    /// Libraries that it asks the loader for, in file order.
    pub needed: Vec<RelativePath>,
    /// Objects of its tree, in link order.
    pub objects: Vec<RelativePath>,
    /// The whole link command.
    pub link_argv: Vec<Token>,
    /// Rows of `build.inputs` that the link read besides the objects, ascending.
    pub link_inputs: Vec<u32>,
}

/// Modules loaded together in one fresh process, bound at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadCheck {
    /// Names of the modules, in load order.
    pub order: Vec<Name>,
    /// How it ended.
    pub result: LoadResult,
}

/// How a load ended. A failed load fails the build, so no other result reaches a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LoadResult {
    /// Each answered with its own marker; no driver library was mapped and no GPU device open.
    LoadedWithoutDriver,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Scope {
    /// Sources were compiled.
    Compiled,
    /// Objects were linked.
    Linked,
    /// Modules were loaded on the CPU.
    Loaded,
}

/// What the producer says beyond the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Claim {
    /// A second build of equal inputs gives equal bytes: at any path in the sandbox, at the same path without it.
    RebuildIsBitIdentical,
    /// Nothing outside the scratch was written.
    NothingWrittenOutsideScratch,
}

/// What was not done or does not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Limitation {
    /// There is no certificate: failed probes and listed folders are not on record.
    ProbesNotRecorded,
    /// At least one step could not be observed completely; its inputs are those of its dependency file.
    ObservationIncomplete,
    /// The compiles were not fenced in: bit-identity is claimed for one real path only.
    NotSandboxed,
    /// No kernel ran on a GPU.
    NotExecutedOnGpu,
    /// The module p2p ran on no pair of GPUs.
    P2pNotExecuted,
}
