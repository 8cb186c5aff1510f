//! `hello`: loads the CUDA runtime and the modules, and proves that no GPU was touched for it.

use std::collections::{BTreeMap, BTreeSet};

use requal::{Failure, Outcome};

use crate::module::{self, Module};
use crate::protocol::{HelloAnswer, HelloRequest, ModuleAnswer, ModuleRef, VERSION};

/// Loads everything in the requested order and says what it is.
///
/// # Errors
/// Every problem of every module together, see [`module::load`]; `E-MODULE-TWICE` for two modules of one name;
/// `E-WORKER-CUDART` when a second CUDA runtime is mapped; `E-WORKER-GPU` when loading touched a GPU.
pub(crate) fn hello(request: &HelloRequest) -> Outcome<HelloAnswer> {
    let cudart_sha256 = module::load_cudart(&request.cudart.path, Some(request.cudart.sha256))?;
    let mut failures: Vec<_> = repeated_names(&request.modules).collect();
    let mut modules = Vec::new();
    for wanted in &request.modules {
        match module::load(wanted) {
            Ok(module) => modules.push(answer(module)),
            Err(failure) => failures.push(failure),
        }
    }
    Failure::all(failures)?;
    let mapped = mapped_files()?;
    one_cudart(&mapped)?;
    let libcuda_mapped = named(&mapped, "libcuda.so");
    let nvidia_descriptors = nvidia_descriptors()?;
    if !libcuda_mapped.is_empty() || !nvidia_descriptors.is_empty() {
        return Err(Failure::refused("E-WORKER-GPU", "loading the modules touched the GPU driver")
            .expected("no libcuda.so in /proc/self/maps, no /dev/nvidia* descriptor")
            .found([libcuda_mapped, nvidia_descriptors].concat().join(", ")));
    }
    Ok(HelloAnswer {
        protocol: VERSION,
        worker: env!("CARGO_PKG_VERSION"),
        cudart_sha256,
        modules,
        libcuda_mapped,
        nvidia_descriptors,
    })
}

fn answer(module: Module) -> ModuleAnswer {
    ModuleAnswer {
        name: module.marker,
        accumulation: module.accumulation,
        abi_version: module.abi_version,
        sha256: module.digest,
    }
}

/// A module that answers to another name than its own is refused by itself; so equal markers need equal names.
fn repeated_names(modules: &[ModuleRef]) -> impl Iterator<Item = Box<Failure>> {
    let mut by_name = BTreeMap::<&str, Vec<&str>>::new();
    for module in modules {
        by_name.entry(&module.name).or_default().push(module.path.as_str());
    }
    by_name.into_iter().filter(|(_, paths)| paths.len() > 1).map(|(name, paths)| {
        Failure::refused("E-MODULE-TWICE", format!("more than one module is named {name}"))
            .expected("one file a name")
            .found(paths.join(", "))
    })
}

fn mapped_files() -> Outcome<BTreeSet<String>> {
    let maps = fs_err::read_to_string("/proc/self/maps")?;
    // Five columns, then the path, which may hold spaces.
    Ok(maps.lines().filter_map(|line| line.find('/').map(|start| line[start..].to_owned())).collect())
}

fn named(mapped: &BTreeSet<String>, prefix: &str) -> Vec<String> {
    mapped
        .iter()
        .filter(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with(prefix)))
        .cloned()
        .collect()
}

/// Two runtimes in one process would each have their own state, and only one of them was checked.
fn one_cudart(mapped: &BTreeSet<String>) -> Outcome<()> {
    let found = named(mapped, "libcudart.so");
    if found.len() > 1 {
        return Err(Failure::refused("E-WORKER-CUDART", "more than one CUDA runtime is mapped")
            .expected("the checked one alone")
            .found(found.join(", "))
            .hint("the checked library's SONAME is not the one that the modules need"));
    }
    Ok(())
}

fn nvidia_descriptors() -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir("/proc/self/fd")? {
        // The listing's own descriptor is closed by the time it is read.
        if let Ok(target) = fs_err::read_link(entry?.path()) {
            let target = target.to_string_lossy();
            if target.starts_with("/dev/nvidia") {
                found.push(target.into_owned());
            }
        }
    }
    Ok(found)
}
