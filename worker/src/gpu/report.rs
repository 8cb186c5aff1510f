//! What a check found: integers only, as JSON and as a table.

use std::fmt;

use requal::Digest;
use serde::Serialize;

use crate::module::abi::Code;

/// The whole check.
#[derive(Serialize)]
pub(crate) struct Report {
    /// The GPU's name.
    pub(crate) gpu: String,
    /// 10 * major + minor.
    pub(crate) gpu_arch: i32,
    /// SHA-256 of the CUDA runtime library.
    pub(crate) cudart_sha256: Digest,
    /// One entry a module.
    pub(crate) modules: Vec<ModuleReport>,
}

/// One module.
#[derive(Serialize)]
pub(crate) struct ModuleReport {
    /// Its marker.
    pub(crate) name: String,
    /// SHA-256 of its file.
    pub(crate) sha256: Digest,
    /// How its linear sums products.
    pub(crate) accumulation: String,
    /// Which code ran.
    pub(crate) code: CodeReport,
    /// Decoded matrices equal to the oracle's, byte for byte, and how many of them have a known digest.
    pub(crate) decoded: u32,
    /// How many of `decoded` have a known digest from elsewhere.
    pub(crate) decoded_known: u32,
    /// One entry a (codebook, bits), errors as the largest over its cases.
    pub(crate) linear: Vec<LinearReport>,
    /// Exchanged epochs, right on both ranks.
    pub(crate) exchanged_epochs: u32,
}

/// Which code of a module the driver ran.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct CodeReport {
    /// Architecture of the machine code.
    pub(crate) binary_arch: i32,
    /// Architecture of the PTX it was compiled from.
    pub(crate) ptx_arch: i32,
    /// True when the driver compiled the PTX, false for machine code out of the module.
    pub(crate) driver_compiled: bool,
}

/// The linear of one (codebook, bits).
#[derive(Serialize)]
pub(crate) struct LinearReport {
    /// Codebook.
    pub(crate) codebook: &'static str,
    /// Bits a weight.
    pub(crate) bits: u32,
    /// Registers a thread, as run.
    pub(crate) registers: i32,
    /// Local memory a thread, as run: stack and spills.
    pub(crate) local_bytes: i32,
    /// Compared outputs.
    pub(crate) cases: u32,
    /// Largest error against exact f64, fp16 output, random input.
    pub(crate) fp16_random_error_ppb: u64,
    /// Largest error against exact f64, fp16 output, every input.
    pub(crate) fp16_error_ppb: u64,
    /// Largest error against exact f64, fp32 output, random input.
    pub(crate) fp32_random_error_ppb: u64,
    /// Largest error against exact f64, fp32 output, every input.
    pub(crate) fp32_error_ppb: u64,
    /// Largest error against f64 on the rounded operand, fp32 output, random input: the accumulation's own.
    pub(crate) accumulation_random_error_ppb: u64,
    /// The same over every input.
    pub(crate) accumulation_error_ppb: u64,
    /// Rows with a product of 65504 that overflowed in fp16 sums; always 0 with fp32 sums.
    pub(crate) overflowed_rows: u32,
}

impl From<Code> for CodeReport {
    fn from(code: Code) -> Self {
        Self {
            binary_arch: code.binary_arch,
            ptx_arch: code.ptx_arch,
            driver_compiled: code.binary_arch != code.ptx_arch,
        }
    }
}

/// A relative error in parts per 10^9, rounded up; what is not finite becomes the largest number.
pub(crate) fn ppb(error: f64) -> u64 {
    if error.is_finite() { (error * 1e9).ceil() as u64 } else { u64::MAX }
}

impl Report {
    /// The largest error of the module that accumulates so, over all rows, of one kind.
    pub(crate) fn largest(&self, accumulation: &str, kind: impl Fn(&LinearReport) -> u64) -> Option<u64> {
        let modules = self.modules.iter().filter(|module| module.accumulation == accumulation);
        modules.flat_map(|module| module.linear.iter().map(&kind)).max()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (sm_{}), errors in units of 1e-6", self.gpu, self.gpu_arch)?;
        for module in &self.modules {
            let origin =
                if module.code.driver_compiled { "compiled by the driver from" } else { "from the module," };
            writeln!(
                f,
                "\n{} ({}): sm_{} code {origin} compute_{}; decoded {} ({} known), epochs {}",
                module.name,
                module.accumulation,
                module.code.binary_arch,
                module.code.ptx_arch,
                module.decoded,
                module.decoded_known,
                module.exchanged_epochs,
            )?;
            if !module.linear.is_empty() {
                writeln!(
                    f,
                    "codebook bits regs local cases fp16-rand fp16-all fp32-rand fp32-all  acc-rand  acc-all overflowed"
                )?;
            }
            for row in &module.linear {
                let micro = |value: u64| value as f64 / 1e3;
                writeln!(
                    f,
                    "{:8} {:4} {:4} {:5} {:5} {:9.1} {:8.1} {:9.1} {:8.1} {:9.1} {:8.1} {:10}",
                    row.codebook,
                    row.bits,
                    row.registers,
                    row.local_bytes,
                    row.cases,
                    micro(row.fp16_random_error_ppb),
                    micro(row.fp16_error_ppb),
                    micro(row.fp32_random_error_ppb),
                    micro(row.fp32_error_ppb),
                    micro(row.accumulation_random_error_ppb),
                    micro(row.accumulation_error_ppb),
                    row.overflowed_rows,
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_rounded_up_and_never_lost() {
        assert_eq!([ppb(0.0), ppb(1e-12), ppb(1e-3)], [0, 1, 1_000_000]);
        assert_eq!([ppb(f64::NAN), ppb(f64::INFINITY)], [u64::MAX; 2]);
    }
}
