//! `requal-worker`: the measured process. Without a command it speaks the worker protocol.

mod gpu;
mod hello;
mod module;
mod oracle;
mod protocol;

use std::io;
use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::{Parser, Subcommand};

/// The measured process: answers requests, one JSON object a line (docs/worker-protocol.md).
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the modules on this machine's GPU and compare with the CPU oracle (docs/gpu-checks.md).
    GpuCheck {
        /// Folder with the modules, every file named *.so in it.
        #[arg(long)]
        modules: Utf8PathBuf,
        /// The CUDA runtime library, libcudart.so.13.
        #[arg(long)]
        cudart: Utf8PathBuf,
        /// Write the results here as JSON too.
        #[arg(long)]
        out: Option<Utf8PathBuf>,
        /// Only the smallest shapes and few cases, for slow checkers of memory accesses.
        #[arg(long)]
        small: bool,
    },
}

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        None => protocol::serve(io::stdin().lock(), io::stdout().lock()),
        Some(Command::GpuCheck { modules, cudart, out, small }) => {
            gpu::check(&modules, &cudart, out.as_deref(), small)
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            anstream::eprint!("{failure}");
            ExitCode::from(failure.exit.code())
        }
    }
}
