//! The command line of `cargo xtask`: arguments are stable, and each command is one stage or a few.

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand};
use requal::target::Target;
use requal::verify_command::{self, Format, Verify};
use requal::{Exit, Failure, Outcome};

use crate::build_runtime::{self, Options};
use crate::sys::sandbox::Mode;
use crate::wrap::{self, Wrap};
use crate::{fetch, lock_command, qualify};

/// Rebuilds a CUDA runtime from a lock file and an empty directory, and proves what was done.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Form of what goes to standard output
    #[arg(long, value_enum, global = true, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The main job: build-runtime, then verify
    Qualify(Build),
    /// Empty directory → modules and runtime-build.json
    BuildRuntime(BuildRuntime),
    /// Verifies the receipts of a folder: as far as the evidence goes, or up to a level
    Verify(Verify),
    /// Checks toolchain.lock against the index, or changes one package of it
    Lock(Lock),
    /// Read-only check of this machine: found, needed, the command that mends it
    Doctor,
    /// What CI runs
    Ci,
    /// What Ninja runs
    #[command(hide = true, subcommand)]
    Wrap(Wrap),
}

/// What is built and where.
#[derive(Debug, Args)]
struct Build {
    /// Folder for everything that is made; it need not exist [default: scratch/ in the repository]
    #[arg(long, value_name = "DIR")]
    scratch: Option<Utf8PathBuf>,
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
#[group(required = true, multiple = false)]
struct Lock {
    /// Compare every pin with the index
    #[arg(long)]
    check: bool,
    /// Take the named package's pinned version anew from the index
    #[arg(long, value_name = "NAME")]
    update: Option<String>,
}

impl Build {
    fn options(&self) -> Outcome<Options> {
        let repository = repository();
        let scratch = self.scratch.clone().unwrap_or_else(|| repository.join("scratch"));
        let scratch = camino::absolute_utf8(scratch)?;
        let (wheelhouse, offline) = (self.wheelhouse.clone(), self.offline);
        Ok(Options {
            origin: fetch::Origin { scratch: scratch.clone(), wheelhouse, offline },
            scratch,
            manifest: self.manifest.clone(),
            receipts: self.receipts.clone().map(camino::absolute_utf8).transpose()?,
            jobs: self.jobs,
            targets: self.arch.clone(),
            profile: self.profile.clone(),
            sandbox: self.sandbox,
            repository,
        })
    }
}

/// The repository that this program was built from: where its manifests, lock and kernels are.
fn repository() -> Utf8PathBuf {
    let here = Utf8PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), ToOwned::to_owned)
}

/// Runs the command, prints what it says, and gives the exit code.
#[must_use]
pub fn run(cli: &Cli) -> u8 {
    match dispatch(cli) {
        Ok((text, exit)) => {
            anstream::print!("{text}");
            exit.code()
        }
        Err(failure) => {
            let text = verify_command::shown(&failure, cli.format);
            match cli.format {
                Format::Text => anstream::eprint!("{text}"),
                Format::Json => anstream::print!("{text}"),
            }
            failure.exit.code()
        }
    }
}

fn dispatch(cli: &Cli) -> Outcome<(String, Exit)> {
    match &cli.command {
        Command::Qualify(build) => qualify::run(&build.options()?, cli.format),
        Command::BuildRuntime(arguments) if arguments.plan => {
            said(&build_runtime::plan(&arguments.build.options()?)?, cli.format)
        }
        Command::BuildRuntime(arguments) => said(&build_runtime::run(&arguments.build.options()?)?, cli.format),
        Command::Verify(arguments) => verify_command::run(arguments),
        Command::Lock(_) | Command::Doctor | Command::Ci => Err(Failure::bad_input("E-USAGE", "not wired")),
        Command::Wrap(step) => wrap::run(step).map(|()| (String::new(), Exit::Success)),
    }
}

/// One value, as text or as JSON.
fn said<T: serde::Serialize + std::fmt::Display>(value: &T, format: Format) -> Outcome<(String, Exit)> {
    let text = match format {
        Format::Text => format!("{value}\n"),
        Format::Json => serde_json::to_string_pretty(value).map_err(std::io::Error::from)? + "\n",
    };
    Ok((text, Exit::Success))
}
