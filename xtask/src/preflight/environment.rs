//! What becomes of the caller's environment.
//!
//! One rule: children get a closed environment, so no variable of the caller reaches a compiler. A variable by which
//! nvcc takes flags, tools or search paths shows that another build was wanted than the one declared: it is refused by
//! name. A variable that merely stands around for compilers and build systems has no effect and is listed as replaced.

use std::collections::BTreeMap;

use requal::{Failure, Outcome};

/// Read by nvcc and its profile as flags, tools or search paths.
const REFUSED: [&str; 14] = [
    "CICC_PATH",
    "CUDAFE_FLAGS",
    "FATBINARY_FLAGS",
    "INCLUDES",
    "LIBRARIES",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "NVCC_PREPEND_FLAGS",
    "NVLINK_FLAGS",
    "NVVMIR_LIBRARY_DIR",
    "NVVM_FLAGS",
    "OPTIX_FLAGS",
    "PTXAS_FLAGS",
    "SYSTEM_INCLUDES",
];

/// Read by compilers, linkers, loaders and build systems elsewhere; here without effect.
const REPLACED: [&str; 41] = [
    "CC",
    "CFLAGS",
    "COMPILER_PATH",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "CPPFLAGS",
    "CUDAARCHS",
    "CUDACXX",
    "CUDAFLAGS",
    "CUDAHOSTCXX",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_ROOT",
    "CXXFLAGS",
    "C_INCLUDE_PATH",
    "DEPENDENCIES_OUTPUT",
    "GCC_COMPARE_DEBUG",
    "GCC_EXEC_PREFIX",
    "LDFLAGS",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LD_RUN_PATH",
    "LIBRARY_PATH",
    "MAKEFLAGS",
    "MAX_JOBS",
    "NINJAFLAGS",
    "NINJA_STATUS",
    "NVCC_THREADS",
    "OBJCPLUS_INCLUDE_PATH",
    "OBJC_INCLUDE_PATH",
    "OMP_NUM_THREADS",
    "PYTORCH_NVCC",
    "SOURCE_DATE_EPOCH",
    "SUNPRO_DEPENDENCIES",
    "TMPDIR",
    "TORCH_CUDA_ARCH_LIST",
    "TORCH_EXTENSIONS_DIR",
    "TORCH_EXTENSION_SKIP_NVCC_GEN_DEPENDENCIES",
    "TORCH_NVCC_FLAGS",
    "TZ",
];

/// The variables of `caller` that are without effect, by name.
///
/// # Errors
/// `E-ENV-REFUSED` (exit 2) for every variable that asks for another build; an empty one asks for nothing.
pub fn environment(caller: &BTreeMap<String, String>) -> Outcome<Vec<String>> {
    let set = |name: &&str| caller.get(*name).is_some_and(|value| !value.trim().is_empty());
    let refuse = |name: &str| {
        Failure::bad_input(
            "E-ENV-REFUSED",
            format!("environment variable {name} asks nvcc for another build"),
        )
        .expected("unset: flags, tools and paths come from the manifest and the lock alone")
        .found(format!("{name}={}", caller[name]))
        .hint(format!("unset {name}, and declare what is wanted in the manifest"))
    };
    Failure::all(REFUSED.into_iter().filter(set).map(refuse).collect())?;
    Ok(REPLACED.into_iter().filter(set).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_apart() {
        assert!(REFUSED.is_sorted() && REPLACED.is_sorted());
        assert!(REFUSED.iter().all(|name| !REPLACED.contains(name)));
    }

    #[test]
    fn wanted_flags_are_refused_together_and_ambient_variables_listed() {
        let caller = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        assert_eq!(environment(&caller(&["CUDA_HOME", "CPATH", "HOME"])).unwrap(), ["CPATH", "CUDA_HOME"]);
        let text =
            environment(&caller(&["PTXAS_FLAGS", "NVCC_APPEND_FLAGS", "CPATH"])).unwrap_err().to_string();
        assert_eq!(text.matches("error[E-ENV-REFUSED]").count(), 2);
        assert!(
            environment(&BTreeMap::from([("NVVM_FLAGS".to_owned(), " ".to_owned())])).unwrap().is_empty()
        );
    }
}
