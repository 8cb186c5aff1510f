//! The command line of `cargo xtask`: arguments are stable, and each command is one stage or a few.

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand};
use requal::challenge::{Nonce, Wanted};
use requal::target::Target;
use requal::verify_command::{self, Format, Verify};
use requal::{Exit, Outcome, explain_command};

use crate::build_runtime::{self, Options};
use crate::sys::sandbox::Mode;
use crate::sys::{env, proc, scratch};
use crate::wrap::{self, Wrap};
use crate::{challenge, doctor, fetch, lock_command, qualify, say};

/// Rebuilds a CUDA runtime from a lock file and an empty directory, and proves what was done.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Form of what goes to standard output
    #[arg(long, value_enum, global = true, default_value_t = Format::Text)]
    format: Format,
    /// Say the commands that are started
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Say nothing but the outcome
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    quiet: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The main job: build-runtime, then verify
    Qualify(Build),
    /// Empty directory → modules and runtime-build.json
    BuildRuntime(BuildRuntime),
    /// Verifies the receipts of a folder: as far as the evidence goes, or up to a level
    Verify(Audit),
    /// Says why a unit, or each unit of a module, was reused or compiled: root causes first
    Explain(Explain),
    /// Checks toolchain.lock against the index, or changes one package of it
    Lock(Lock),
    /// Read-only check of this machine: found, needed, the command that mends it
    Doctor(Place),
    /// What CI runs
    Ci,
    /// What Ninja runs
    #[command(hide = true, subcommand)]
    Wrap(Wrap),
}

/// What is built and where.
#[derive(Debug, Args)]
struct Build {
    #[command(flatten)]
    place: Place,
    /// What to build
    #[arg(long, value_name = "FILE", default_value = "manifests/runtime.toml")]
    manifest: Utf8PathBuf,
    /// A profile of the manifest, such as `seed`
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Folder for receipts [default: receipts/ in the scratch]
    #[arg(long, value_name = "DIR")]
    receipts: Option<Utf8PathBuf>,
    /// Folder that wheels are taken from instead of the index
    #[arg(long, value_name = "DIR")]
    wheelhouse: Option<Utf8PathBuf>,
    /// Use no network
    #[arg(long)]
    offline: bool,
    /// Compiles at one time [default: the manifest's, or what cores and memory allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Targets besides the manifest's, such as sm_90
    #[arg(long, value_name = "TARGET", value_delimiter = ',')]
    arch: Vec<Target>,
    /// Whether compiles run in a private room
    #[arg(long, value_enum, default_value = "auto")]
    sandbox: Mode,
    /// Compile every unit, also those whose object another tree has
    #[arg(long)]
    no_reuse: bool,
}

/// Verification, and the challenge that needs a toolchain.
#[derive(Debug, Args)]
struct Audit {
    #[command(flatten)]
    verify: Verify,
    /// Compile this many units again, drawn by the nonce, or `all`, and compare
    #[arg(long, value_name = "N|all", requires = "nonce")]
    recompile: Option<Wanted>,
    /// Your own random bytes, drawn after publication: at least 16, in hexadecimal
    #[arg(long, value_name = "HEX", requires = "recompile")]
    nonce: Option<Nonce>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Explain {
    /// A module, a tree, or a unit by its source path
    name: String,
    #[command(flatten)]
    place: Place,
    /// Folder of the receipts [default: receipts/ in the scratch]
    #[arg(long, value_name = "DIR")]
    receipts: Option<Utf8PathBuf>,
}

#[derive(Debug, Args)]
struct BuildRuntime {
    #[command(flatten)]
    build: Build,
    /// Say what would be done, and do nothing
    #[arg(long)]
    plan: bool,
}

#[derive(Debug, Args)]
struct Lock {
    /// Compare every pin with the index
    #[arg(long, conflicts_with = "update", required_unless_present = "update")]
    check: bool,
    /// Pin another version: NAME for the newest, NAME==VERSION for that one
    #[arg(long, value_name = "NAME")]
    update: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Where a build would go.
#[derive(Debug, Args)]
struct Place {
    /// Folder for everything that is made; it need not exist [default: scratch/ in the repository]
    #[arg(long, value_name = "DIR")]
    scratch: Option<Utf8PathBuf>,
}

impl Place {
    fn absolute(&self) -> Outcome<Utf8PathBuf> {
        let scratch = self.scratch.clone().unwrap_or_else(|| repository().join("scratch"));
        Ok(camino::absolute_utf8(scratch)?)
    }
}

impl Build {
    fn options(&self) -> Outcome<Options> {
        let scratch = self.place.absolute()?;
        let (wheelhouse, offline) = (self.wheelhouse.clone(), self.offline);
        Ok(Options {
            origin: fetch::Origin {
                scratch: scratch.clone(),
                wheelhouse,
                offline,
                settings: env::pip_settings(),
            },
            scratch,
            manifest: self.manifest.clone(),
            receipts: self.receipts.clone().map(camino::absolute_utf8).transpose()?,
            jobs: self.jobs,
            targets: self.arch.clone(),
            profile: self.profile.clone(),
            sandbox: self.sandbox,
            reuse: !self.no_reuse,
            repository: repository(),
        })
    }
}

/// The repository that manifests, lock and kernels are read from: cargo names it when it runs this program (`cargo
/// xtask`); else it is the one that this program was built from.
fn repository() -> Utf8PathBuf {
    let package = env::all().remove("CARGO_MANIFEST_DIR");
    let package = Utf8PathBuf::from(package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").to_owned()));
    package.parent().map_or(package.clone(), ToOwned::to_owned)
}

/// Runs the command, prints what it says, and gives the exit code.
#[must_use]
pub fn run(cli: &Cli) -> u8 {
    say::set(cli.verbose, cli.quiet);
    verify_command::print(dispatch(cli), cli.format).code()
}

fn dispatch(cli: &Cli) -> Outcome<(String, Exit)> {
    match &cli.command {
        Command::Qualify(build) => qualify::run(&build.options()?, cli.format),
        Command::BuildRuntime(arguments) if arguments.plan => {
            said(&build_runtime::plan(&arguments.build.options()?)?, cli.format)
        }
        Command::BuildRuntime(arguments) => {
            said(&build_runtime::run(&arguments.build.options()?)?, cli.format)
        }
        Command::Verify(arguments) => audit(arguments),
        Command::Explain(Explain { name, place, receipts }) => {
            let receipts = match receipts {
                Some(receipts) => receipts.clone(),
                None => place.absolute()?.join("receipts"),
            };
            explain_command::run(&receipts, name, cli.format)
        }
        Command::Lock(arguments) => lock(arguments, cli.format),
        Command::Doctor(place) => doctor(place, cli.format),
        Command::Ci => proc::replace(&repository().join(".ci/run")),
        Command::Wrap(step) => wrap::run(step).map(|()| (String::new(), Exit::Success)),
    }
}

fn audit(arguments: &Audit) -> Outcome<(String, Exit)> {
    let (Some(wanted), Some(nonce)) = (arguments.recompile, arguments.nonce.clone()) else {
        return verify_command::run(&arguments.verify);
    };
    let scratch = arguments.place.absolute()?;
    let wheelhouse = arguments.verify.wheelhouse.clone();
    let origin =
        fetch::Origin { scratch: scratch.clone(), wheelhouse, offline: false, settings: env::pip_settings() };
    let (verify, repository) = (arguments.verify.clone(), repository());
    challenge::run(&challenge::Options { verify, wanted, nonce, scratch, repository, origin })
}

fn lock(arguments: &Lock, format: Format) -> Outcome<(String, Exit)> {
    let path = repository().join(build_runtime::LOCK);
    let scratch = arguments.place.absolute()?;
    let _held = scratch::hold(&scratch)?;
    let origin = fetch::Origin { scratch, wheelhouse: None, offline: false, settings: env::pip_settings() };
    match &arguments.update {
        Some(requirement) => {
            said(&Pins(vec![pin(lock_command::update(&path, requirement, &origin)?, false)]), format)
        }
        None => {
            let checked = lock_command::check(&read_lock()?, &origin)?;
            said(&Pins(checked.into_iter().map(|one| pin(one.package, one.yanked)).collect()), format)
        }
    }
}

/// Pins that the index confirms.
#[derive(serde::Serialize)]
struct Pins(Vec<Pin>);

#[derive(serde::Serialize)]
struct Pin {
    package: requal::lock::Package,
    yanked: bool,
}

fn pin(package: requal::lock::Package, yanked: bool) -> Pin {
    Pin { package, yanked }
}

impl std::fmt::Display for Pins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let row = |pin: &Pin| {
            let yanked = if pin.yanked { "  withdrawn by the index" } else { "" };
            format!("{}  {} {}{yanked}", pin.package.sha256, pin.package.name, pin.package.version)
        };
        f.write_str(&self.0.iter().map(row).collect::<Vec<_>>().join("\n"))
    }
}

fn read_lock() -> Outcome<requal::lock::Lock> {
    let text = fs_err::read_to_string(repository().join(build_runtime::LOCK))?;
    requal::lock::Lock::parse(build_runtime::LOCK, &text)
}

fn doctor(place: &Place, format: Format) -> Outcome<(String, Exit)> {
    let findings = doctor::run(&proc::own_binary()?, &place.absolute()?, &read_lock()?, &env::all())?;
    let (text, _) = said(&findings, format)?;
    Ok((text, findings.exit()))
}

/// One value, as text or as JSON.
fn said<T: serde::Serialize + std::fmt::Display>(value: &T, format: Format) -> Outcome<(String, Exit)> {
    let text = match format {
        Format::Text => format!("{value}\n"),
        Format::Json => serde_json::to_string_pretty(value).map_err(std::io::Error::from)? + "\n",
    };
    Ok((text, Exit::Success))
}
