//! What ptxas says of each kernel under `-v`: registers, spills, stack, shared and constant memory.

use std::str::FromStr;

use crate::receipt::{Kernel, Symbol};
use crate::target::Target;
use crate::{Failure, Outcome};

/// Reads the lines `ptxas info : …` of a compile's output; other lines, and times, are passed over. Sorted by target and
/// symbol.
///
/// # Errors
/// `E-PTXAS` if a kernel's name cannot stand in a record.
pub fn read(output: &str) -> Outcome<Vec<Kernel>> {
    let mut kernels: Vec<Kernel> = Vec::new();
    for line in output.lines() {
        if let Some((symbol, target)) = entry(line) {
            kernels.push(kernel(symbol, target)?);
        }
        let Some(kernel) = kernels.last_mut() else { continue };
        kernel.registers = number_before(line, " registers").unwrap_or(kernel.registers);
        for (unit, field) in [
            (" bytes stack frame", &mut kernel.stack_bytes),
            (" bytes spill stores", &mut kernel.spill_store_bytes),
            (" bytes spill loads", &mut kernel.spill_load_bytes),
            (" bytes smem", &mut kernel.shared_bytes),
        ] {
            *field = number_before(line, unit).unwrap_or(*field);
        }
    }
    kernels.sort_unstable_by(|a, b| (&a.target, &a.symbol).cmp(&(&b.target, &b.symbol)));
    Ok(kernels)
}

fn kernel(symbol: &str, target: Target) -> Outcome<Kernel> {
    let fault = |why: String| {
        Failure::build_failed("E-PTXAS", format!("ptxas names a kernel that cannot stand in a record: {why}"))
            .expected("a mangled name of at most 1024 characters")
            .found(symbol)
            .hint("shorten the names of the kernel's template arguments")
    };
    Ok(Kernel {
        target,
        symbol: Symbol::new(symbol).map_err(fault)?,
        registers: 0,
        spill_store_bytes: 0,
        spill_load_bytes: 0,
        stack_bytes: 0,
        shared_bytes: 0,
    })
}

/// `… Compiling entry function 'NAME' for 'sm_86'`.
fn entry(line: &str) -> Option<(&str, Target)> {
    let mut quoted = line.split_once("Compiling entry function")?.1.split('\'').skip(1).step_by(2);
    Some((quoted.next()?, quoted.next()?.parse().ok()?))
}

fn number_before<T: FromStr>(line: &str, unit: &str) -> Option<T> {
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
        let [b, a] = read(output).unwrap().try_into().unwrap();
        assert_eq!((&*a.symbol, a.registers, a.shared_bytes), ("_Z1aPf", 8, 0));
        let numbers =
            (u64::from(b.registers), b.stack_bytes, b.spill_store_bytes, b.spill_load_bytes, b.shared_bytes);
        assert_eq!(numbers, (255, 16, 8, 12, 4096));
        assert_eq!(read("no such line").unwrap(), []);
    }
}
