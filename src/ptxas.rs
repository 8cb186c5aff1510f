//! What ptxas says of each kernel under `-v`: registers, spills, stack, shared and constant memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::target::Target;

/// The resources of one kernel on one target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelResources {
    /// Mangled name of the entry function.
    pub kernel: String,
    /// Machine code that it was assembled for.
    pub target: Target,
    /// Registers of a thread.
    pub registers: u64,
    /// Stack frame of a thread.
    pub stack_bytes: u64,
    /// Bytes that a thread stores to spill registers.
    pub spill_store_bytes: u64,
    /// Bytes that a thread loads again.
    pub spill_load_bytes: u64,
    /// Static shared memory of a block.
    pub shared_bytes: u64,
}

/// Reads the lines `ptxas info : …` of a compile's output; other lines, and times, are passed over. Sorted.
#[must_use]
pub fn read(output: &str) -> Vec<KernelResources> {
    let mut kernels: Vec<KernelResources> = Vec::new();
    for line in output.lines() {
        if let Some((kernel, target)) = entry(line) {
            kernels.push(KernelResources {
                kernel,
                target,
                registers: 0,
                stack_bytes: 0,
                spill_store_bytes: 0,
                spill_load_bytes: 0,
                shared_bytes: 0,
            });
        }
        let Some(kernel) = kernels.last_mut() else { continue };
        for (unit, field) in [
            (" registers", &mut kernel.registers),
            (" bytes stack frame", &mut kernel.stack_bytes),
            (" bytes spill stores", &mut kernel.spill_store_bytes),
            (" bytes spill loads", &mut kernel.spill_load_bytes),
            (" bytes smem", &mut kernel.shared_bytes),
        ] {
            *field = number_before(line, unit).unwrap_or(*field);
        }
    }
    kernels.sort_unstable();
    kernels
}

/// `… Compiling entry function 'NAME' for 'sm_86'`.
fn entry(line: &str) -> Option<(String, Target)> {
    let mut quoted = line.split_once("Compiling entry function")?.1.split('\'').skip(1).step_by(2);
    Some((quoted.next()?.to_owned(), quoted.next()?.parse().ok()?))
}

fn number_before(line: &str, unit: &str) -> Option<u64> {
    let before = &line[..line.find(unit)?];
    let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    before[before.len() - digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_kernels_of_real_output_are_read() {
        let output = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1bPf' for 'sm_86'
ptxas info    : Function properties for _Z1bPf
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 16 bytes cumulative stack size, 4096 bytes smem, 360 bytes cmem[0]
ptxas info    : Compile time = 2.283 ms
ptxas info    : Compiling entry function '_Z1aPf' for 'sm_90'
ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]
";
        let [a, b] = read(output).try_into().unwrap();
        assert_eq!((a.kernel.as_str(), a.registers, a.shared_bytes), ("_Z1aPf", 8, 0));
        let numbers = (b.registers, b.stack_bytes, b.spill_store_bytes, b.spill_load_bytes, b.shared_bytes);
        assert_eq!(numbers, (255, 16, 8, 12, 4096));
        assert_eq!(read("no such line"), []);
    }
}
