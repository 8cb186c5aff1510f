//! Limits of a build: what is asked of the machine, what was read back in the child, and what was refused.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Failure, Outcome};

/// The smallest address space a compile gets, in bytes. Measured with nvcc 13.0.88 on a unit that includes CUB: with
/// 512 MiB cudafe++ or cicc runs out of memory in the middle of a header, with 1 GiB it compiles.
pub const MIN_ADDRESS_SPACE_BYTES: u64 = 1 << 30;

/// Memory that one compile may need, in bytes: the job count is derived from it where none is given.
pub const BYTES_PER_JOB: u64 = 2 << 30;

/// CPU numbers end here: the kernel interface in use carries 1024.
pub const MAX_CPU: u32 = 1024;

/// What a build may take. An absent field asks for nothing: the value is inherited, or derived as said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// CPU numbers that children may run on; every one of them must exist and be allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_affinity: Option<Vec<u32>>,
    /// Wanted niceness, -20 to 19; a process that is nicer already stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Compiles at once; absent: derived from the effective CPUs and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    /// Threads that a library inside one process may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Address space of each process, in bytes (`RLIMIT_AS`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_space_bytes: Option<u64>,
}

/// The limits that held in a child, read back there just before its program started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Applied {
    /// CPU numbers that the child may run on.
    pub cpu_affinity: Vec<u32>,
    /// Niceness of the child.
    pub nice: i32,
    /// Address space in bytes; absent: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_space_bytes: Option<u64>,
    /// The other soft limits, inherited and unchanged.
    pub inherited: Inherited,
}

/// Soft limits that a build leaves as they are; one that is unlimited is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Inherited {
    /// Core dump, in bytes (`RLIMIT_CORE`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_bytes: Option<u64>,
    /// CPU time, in seconds (`RLIMIT_CPU`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<u64>,
    /// Data segment, in bytes (`RLIMIT_DATA`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
    /// A file, in bytes (`RLIMIT_FSIZE`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<u64>,
    /// Locked memory, in bytes (`RLIMIT_MEMLOCK`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked_memory_bytes: Option<u64>,
    /// Open files (`RLIMIT_NOFILE`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Processes of the user (`RLIMIT_NPROC`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Stack, in bytes (`RLIMIT_STACK`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_bytes: Option<u64>,
}

/// A step of the entry that the machine refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Which kind of step.
    pub kind: Kind,
    /// The step, such as `unshare namespaces`.
    pub step: String,
    /// The system's words.
    pub error: String,
    /// The system's error number, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
}

/// Kinds of steps of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Making the room.
    Sandbox,
    /// CPU affinity.
    Cpu,
    /// Niceness.
    Nice,
    /// Address space.
    AddressSpace,
    /// Starting the program.
    Start,
}

impl Limits {
    /// Refuses values that no machine can give, all of them together.
    ///
    /// # Errors
    /// `E-LIMIT-VALUE` (exit 2) for each.
    pub fn check(&self) -> Outcome<()> {
        let mut failures = Vec::new();
        let mut refuse = |name: &str, expected: String, found: String| {
            let what = format!("limit {name} has a value that cannot be given");
            failures.push(Failure::bad_input("E-LIMIT-VALUE", what).expected(expected).found(found));
        };
        if let Some(cpus) = &self.cpu_affinity {
            let rising = cpus.windows(2).all(|pair| pair[0] < pair[1]);
            if cpus.is_empty() || !rising || cpus.iter().any(|&cpu| cpu >= MAX_CPU) {
                let expected = format!("rising CPU numbers below {MAX_CPU}, at least one");
                refuse("cpu_affinity", expected, format!("{cpus:?}"));
            }
        }
        if let Some(nice) = self.nice.filter(|nice| !(-20..=19).contains(nice)) {
            refuse("nice", "-20 to 19".to_owned(), nice.to_string());
        }
        for (name, value) in [("jobs", self.jobs), ("threads", self.threads)] {
            if value == Some(0) {
                refuse(name, "1 or more".to_owned(), "0".to_owned());
            }
        }
        if let Some(bytes) = self.address_space_bytes.filter(|&bytes| bytes < MIN_ADDRESS_SPACE_BYTES) {
            let expected = format!(
                "at least {MIN_ADDRESS_SPACE_BYTES} bytes, without which no unit that includes CUB compiles"
            );
            refuse("address_space_bytes", expected, format!("{bytes} bytes"));
        }
        Failure::all(failures)
    }

    /// Compiles at once: the given number, else one for each CPU that may be used, as far as memory reaches.
    #[must_use]
    pub fn jobs(&self, cpus: u32, memory_bytes: u64) -> u32 {
        let usable =
            self.cpu_affinity.as_ref().map_or(cpus, |list| cpus.min(list.len().try_into().unwrap_or(cpus)));
        let by_memory = u32::try_from(memory_bytes / BYTES_PER_JOB).unwrap_or(u32::MAX);
        self.jobs.unwrap_or_else(|| usable.min(by_memory).max(1))
    }

    /// The environment variables that carry the thread limit; none if no limit is given.
    #[must_use]
    pub fn environment(&self) -> BTreeMap<String, String> {
        let names = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"];
        let variable = |threads: u32| names.map(|name| (name.to_owned(), threads.to_string()));
        self.threads.map(variable).into_iter().flatten().collect()
    }
}

impl Refusal {
    /// The refusal of `step` with the system's `error`.
    pub fn at(kind: Kind, step: impl Into<String>, error: impl Into<std::io::Error>) -> Self {
        let error = error.into();
        Self { kind, step: step.into(), error: error.to_string(), errno: error.raw_os_error() }
    }

    /// The refusal as a failure (exit 3) that names step and error.
    #[must_use]
    pub fn failure(&self) -> Box<Failure> {
        let (code, what, hint) = match self.kind {
            Kind::Sandbox => (
                "E-SANDBOX-REFUSED",
                "this machine refuses the sandbox",
                "--sandbox auto, or cargo xtask doctor",
            ),
            Kind::Cpu => (
                "E-LIMIT-CPU",
                "the CPU affinity cannot be given",
                "limits of the manifest, or another profile",
            ),
            Kind::Nice => {
                ("E-LIMIT-NICE", "the niceness cannot be given", "limits of the manifest, or another profile")
            }
            Kind::AddressSpace => ("E-LIMIT-AS", "the address space cannot be given", "ulimit -Hv"),
            Kind::Start => ("E-PROC-START", "the program could not be started", "cargo xtask doctor"),
        };
        Failure::could_not_judge(code, what).expected(&self.step).found(&self.error).hint(hint)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_values_are_refused_together() {
        let limits = Limits {
            cpu_affinity: Some(vec![3, 3]),
            nice: Some(20),
            jobs: Some(0),
            threads: Some(0),
            address_space_bytes: Some(256 << 20),
        };
        assert_eq!(limits.check().unwrap_err().to_string().matches("error[E-LIMIT-VALUE]").count(), 5);
        assert!(Limits::default().check().is_ok());
    }

    #[test]
    fn jobs_follow_the_narrower_of_cpus_and_memory() {
        let gib = 1 << 30;
        assert_eq!(Limits::default().jobs(64, 7 * gib), 3);
        assert_eq!(Limits::default().jobs(2, 64 * gib), 2);
        assert_eq!(Limits::default().jobs(2, gib), 1);
        assert_eq!(Limits { jobs: Some(8), ..Limits::default() }.jobs(2, gib), 8);
        assert_eq!(Limits { cpu_affinity: Some(vec![5]), ..Limits::default() }.jobs(8, 64 * gib), 1);
    }

    #[test]
    fn an_unknown_key_is_an_error_and_threads_become_variables() {
        assert!(toml::from_str::<Limits>("nicee = 3").is_err());
        let limits: Limits = toml::from_str("threads = 8").unwrap();
        assert_eq!(limits.environment()["OMP_NUM_THREADS"], "8");
        assert!(Limits::default().environment().is_empty());
    }
}
