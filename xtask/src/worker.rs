//! Finding the worker: beside our own binary, made by the same cargo if that started us.

use camino::{Utf8Path, Utf8PathBuf};
use requal::{Failure, Outcome};

use crate::sys::env;
use crate::sys::proc::{Call, own_binary};

/// Name of the worker's binary.
const NAME: &str = "requal-worker";

/// The worker that belongs to this build of ours.
///
/// # Errors
/// `E-WORKER-BUILD` (exit 4) if cargo cannot build it, `E-WORKER-MISSING` (exit 3) if it is not there.
pub fn find(repository: &Utf8Path) -> Outcome<Utf8PathBuf> {
    let worker = own_binary()?.with_file_name(NAME);
    let environment = env::all();
    if let Some(cargo) = environment.get("CARGO") {
        let mut args = vec!["build", "--quiet", "--package", NAME];
        if worker.parent().is_some_and(|folder| folder.file_name() == Some("release")) {
            args.push("--release");
        }
        let call = Call { env: environment.clone(), ..Call::new(cargo.as_str().into(), &args, repository) };
        let ended = call.run()?;
        if ended.code != 0 {
            // The environment is the caller's own, so the call is not shown.
            return Err(Failure::build_failed("E-WORKER-BUILD", format!("cargo cannot build {NAME}"))
                .expected("exit code 0")
                .found(ended.output.trim_end())
                .hint(format!("cargo build --package {NAME}")));
        }
    }
    if !worker.is_file() {
        return Err(Failure::could_not_judge("E-WORKER-MISSING", format!("{worker} is not there"))
            .expected("the worker beside this program")
            .found("nothing")
            .hint("cargo build --package requal-worker"));
    }
    Ok(worker)
}
