//! Limits at the machine: what it has, setting them in the child, reading them back there.

use camino::Utf8Path;
use requal::limits::{Applied, Inherited, Kind, Limits, MAX_CPU, Refusal};
use rustix::process::{Resource, Rlimit, getpriority_process, getrlimit, setpriority_process, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Compiles at once on this machine: CPU affinity, CPU quota and the memory limits of the control groups count.
#[must_use]
pub fn jobs(limits: &Limits) -> u32 {
    limits.jobs(cpus(), memory_bytes())
}

/// CPUs that this process may use at once, by affinity and quota.
#[must_use]
pub fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

/// Memory that this process may use, in bytes: the machine's, or less where a control group says so.
#[must_use]
pub fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    let total = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit));
    let groups = fs_err::read_to_string("/proc/self/cgroup").unwrap_or_default();
    group_limits("/sys/fs/cgroup".into(), &groups).into_iter().fold(total, u64::min)
}

/// Memory limits, in bytes, of every control group (versions 1 and 2) that `groups`, the text of /proc/self/cgroup,
/// names, and of those above it.
fn group_limits(root: &Utf8Path, groups: &str) -> Vec<u64> {
    let files = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        let version_1 = controllers.split(',').any(|name| name == "memory");
        let (top, name) = match version_1 {
            true => (root.join("memory"), "memory.limit_in_bytes"),
            false if controllers.is_empty() => (root.to_owned(), "memory.max"),
            false => return None,
        };
        let folders = top.join(path).ancestors().map(Utf8Path::to_owned).collect::<Vec<_>>();
        Some(
            folders
                .into_iter()
                .filter(move |folder| folder.starts_with(&top))
                .map(move |folder| folder.join(name)),
        )
    });
    files.flatten().filter_map(|file| fs_err::read_to_string(file).ok()?.trim().parse().ok()).collect()
}

/// Sets CPU affinity and niceness of this single-threaded process.
pub(super) fn set_scheduling(limits: &Limits) -> Result<(), Refusal> {
    if let Some(wanted) = &limits.cpu_affinity {
        let mut set = CpuSet::new();
        wanted.iter().for_each(|&cpu| set.set(cpu as usize));
        // The kernel drops CPUs silently and fails only when none is left: what counts is what is read back.
        let result = sched_setaffinity(None, &set);
        let effective = affinity()?;
        let missing: Vec<u32> = match result {
            Ok(()) => wanted.iter().copied().filter(|cpu| !effective.contains(cpu)).collect(),
            Err(_) => wanted.iter().copied().filter(|&cpu| !allowed_alone(cpu)).collect(),
        };
        if result.is_err() || !missing.is_empty() {
            let error = format!("missing CPUs {missing:?}; this machine gives {effective:?}");
            return Err(Refusal { kind: Kind::Cpu, step: format!("CPUs {wanted:?}"), error, errno: None });
        }
    }
    if let Some(wanted) = limits.nice {
        let refused = |error| Refusal::at(Kind::Nice, format!("nice {wanted}"), error);
        if getpriority_process(None).map_err(refused)? < wanted {
            setpriority_process(None, wanted).map_err(refused)?;
        }
    }
    Ok(())
}

/// Sets the address space of this process; its children inherit it.
pub(super) fn set_address_space(limits: &Limits) -> Result<(), Refusal> {
    let Some(bytes) = limits.address_space_bytes else { return Ok(()) };
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    setrlimit(Resource::As, limit).map_err(|error| {
        let highest = getrlimit(Resource::As).maximum;
        let step = format!("address space {bytes} bytes (the inherited hard limit is {highest:?})");
        Refusal::at(Kind::AddressSpace, step, error)
    })
}

/// Reads back what holds in this process, and refuses if anything is not as asked.
pub(super) fn read_back(limits: &Limits) -> Result<Applied, Refusal> {
    let soft = |resource| getrlimit(resource).current;
    let applied = Applied {
        cpu_affinity: affinity()?,
        nice: getpriority_process(None).map_err(|error| Refusal::at(Kind::Nice, "read niceness", error))?,
        address_space_bytes: soft(Resource::As),
        inherited: Inherited {
            core_bytes: soft(Resource::Core),
            cpu_s: soft(Resource::Cpu),
            data_bytes: soft(Resource::Data),
            file_size_bytes: soft(Resource::Fsize),
            locked_memory_bytes: soft(Resource::Memlock),
            open_files: soft(Resource::Nofile),
            processes: soft(Resource::Nproc),
            stack_bytes: soft(Resource::Stack),
        },
    };
    let differs = |kind, what: String| {
        Err(Refusal { kind, step: "read limits back".to_owned(), error: what, errno: None })
    };
    if limits.cpu_affinity.as_ref().is_some_and(|wanted| *wanted != applied.cpu_affinity) {
        return differs(Kind::Cpu, format!("CPUs {:?}", applied.cpu_affinity));
    }
    if limits.nice.is_some_and(|wanted| applied.nice < wanted) {
        return differs(Kind::Nice, format!("nice {}", applied.nice));
    }
    if limits.address_space_bytes.is_some_and(|wanted| applied.address_space_bytes != Some(wanted)) {
        return differs(Kind::AddressSpace, format!("address space {:?}", applied.address_space_bytes));
    }
    Ok(applied)
}

fn affinity() -> Result<Vec<u32>, Refusal> {
    let set = sched_getaffinity(None).map_err(|error| Refusal::at(Kind::Cpu, "read CPU affinity", error))?;
    Ok((0..MAX_CPU).filter(|&cpu| set.is_set(cpu as usize)).collect())
}

fn allowed_alone(cpu: u32) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_limits_of_both_group_versions_and_of_their_parents_count() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let files = [
            ("memory.max", "900"),
            ("a/b/memory.max", "max"),
            ("memory/c/memory.limit_in_bytes", "700\n"),
            ("memory/c/d/memory.limit_in_bytes", "800\n"),
        ];
        for (name, text) in files {
            crate::sys::fs::write(&root.join(name), text.as_bytes()).unwrap();
        }
        let mut limits = group_limits(root, "4:cpu:/x\n3:memory,pids:/c/d\n0::/a/b\n");
        limits.sort_unstable();
        assert_eq!(limits, [700, 800, 900]);
        assert!(cpus() >= 1 && memory_bytes() > 0);
    }
}
