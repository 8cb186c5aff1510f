//! linear on the GPU against the f64 oracle: poisoned memory, repeats, odd values, refused arguments.

use half::f16;
use requal::{Failure, Outcome};

use crate::gpu::cases::{
    Case, INFINITE_ROW, LARGEST_ROW, NAN_ROW, RANDOM, ROWS, SUBNORMAL_ROW, ZERO_ROW, odd,
};
use crate::gpu::decode::expect_status;
use crate::gpu::device::{Buffer, Device, Stream, code};
use crate::gpu::report::{LinearReport, ppb};
use crate::module::abi::{Exl3Row, Exl3Table, FP16, FP32, LinearCall};
use crate::oracle::linear::relative_error;
use crate::oracle::trellis::{Codebook, bytes_of};

/// One instance of a module's linear on a device.
pub(crate) struct Linear<'a> {
    pub(crate) device: &'a Device,
    pub(crate) stream: &'a Stream,
    pub(crate) table: &'a Exl3Table,
    pub(crate) row: &'a Exl3Row,
    pub(crate) codebook: Codebook,
    /// Largest relative error that the module's accumulation may show.
    pub(crate) limit: f64,
}

/// A case's constant inputs on the device.
struct Inputs {
    x: Buffer,
    trellis: Buffer,
    suh: Buffer,
    svh: Buffer,
}

impl Linear<'_> {
    /// Runs every case with m = 1, 5, 20 and 32 and both output types.
    ///
    /// # Errors
    /// `E-GPU-LINEAR` for errors beyond the limit, every such case together; `E-GPU-REPEAT` for bits that change
    /// between runs; `E-GPU-GUARD`, `E-GPU-ODD`, `E-GPU-ARGUMENT`.
    pub(crate) fn check(&self, cases: &[Case]) -> Outcome<LinearReport> {
        let code = code("linear", self.row.linear_code)?;
        let mut report = LinearReport {
            codebook: self.codebook.name(),
            bits: self.row.bits,
            registers: code.registers,
            local_bytes: code.local_bytes,
            cases: 0,
            fp16_random_error_ppb: 0,
            fp16_error_ppb: 0,
            fp32_random_error_ppb: 0,
            fp32_error_ppb: 0,
            accumulation_random_error_ppb: 0,
            accumulation_error_ppb: 0,
            overflowed_rows: 0,
        };
        let mut failures = Vec::new();
        for case in cases {
            let inputs = self.upload(case, &case.x)?;
            for m in [1, 5, 20, 32] {
                for y_type in [FP16, FP32] {
                    let y = self.repeated(case, &inputs, m, y_type)?;
                    failures.extend(self.judge(case, m, y_type, &y, &mut report));
                }
            }
        }
        Failure::all(failures)?;
        report.overflowed_rows = self.check_odd()?;
        self.check_arguments(&cases[0])?;
        Ok(report)
    }

    fn upload(&self, case: &Case, x: &[f16]) -> Outcome<Inputs> {
        Ok(Inputs {
            x: self.device.upload(&bytes_of(x))?,
            trellis: self.device.upload(&case.trellis)?,
            suh: self.device.upload(&bytes_of(&case.layer.suh))?,
            svh: self.device.upload(&bytes_of(&case.layer.svh))?,
        })
    }

    /// Three runs over differently poisoned outputs and workspaces: equal bits show that nothing depends on what
    /// was there before, and that every element is written.
    fn repeated(&self, case: &Case, inputs: &Inputs, m: usize, y_type: u32) -> Outcome<Vec<f64>> {
        let first = self.run(case, inputs, m, y_type, 0xff)?;
        for poison in [0x00, 0xa5] {
            if self.run(case, inputs, m, y_type, poison)? != first {
                return Err(Failure::refused(
                    "E-GPU-REPEAT",
                    format!("{} gives other bits at another run", self.name(case, m, y_type)),
                ));
            }
        }
        Ok(wide(&first, y_type))
    }

    fn run(&self, case: &Case, inputs: &Inputs, m: usize, y_type: u32, poison: u8) -> Outcome<Vec<u8>> {
        let (k, n) = (case.layer.k as u32, case.layer.n as u32);
        let element_bytes = if y_type == FP16 { 2 } else { 4 };
        let y = self.device.poisoned(m * case.layer.n * element_bytes, poison)?;
        let workspace = self.device.poisoned(self.workspace_bytes(m as u32, k, n)? as usize, poison)?;
        let call = inputs.call(&y, &workspace, (m as u32, k, n), y_type);
        self.stream.launch("linear", self.row.linear, &call)?;
        self.device.synchronize()?;
        workspace.read()?;
        y.read()
    }

    fn workspace_bytes(&self, m: u32, k: u32, n: u32) -> Outcome<u64> {
        let query = self.table.linear_workspace_bytes;
        let query = query.ok_or_else(|| Failure::refused("E-MODULE-ABI", "an entry of the table is null"))?;
        // SAFETY: the entry is a pure function of three numbers, by its contract.
        Ok(unsafe { query(m, k, n) })
    }

    fn judge(
        &self,
        case: &Case,
        m: usize,
        y_type: u32,
        y: &[f64],
        report: &mut LinearReport,
    ) -> Option<Box<Failure>> {
        let error = relative_error(y, &case.exact[..y.len()]);
        let own = relative_error(y, &case.from_operand[..y.len()]);
        let note = |all: &mut u64, random: &mut u64, error: f64| {
            *all = (*all).max(ppb(error));
            if case.name == RANDOM {
                *random = (*random).max(ppb(error));
            }
        };
        report.cases += 1;
        if y_type == FP16 {
            note(&mut report.fp16_error_ppb, &mut report.fp16_random_error_ppb, error);
        } else {
            note(&mut report.fp32_error_ppb, &mut report.fp32_random_error_ppb, error);
            note(&mut report.accumulation_error_ppb, &mut report.accumulation_random_error_ppb, own);
        }
        // Not a number passes no comparison.
        if error <= self.limit {
            return None;
        }
        Some(
            Failure::refused("E-GPU-LINEAR", format!("{} is too far from f64", self.name(case, m, y_type)))
                .expected(format!("a relative error of at most {:e}", self.limit))
                .found(format!("{error:e}")),
        )
    }

    /// Odd values do what they should, each in its own row. Returns the rows that overflowed.
    fn check_odd(&self) -> Outcome<u32> {
        let case = odd(self.codebook, self.row.bits as usize);
        let (k, n) = (case.layer.k, case.layer.n);
        let y = self.repeated(&case, &self.upload(&case, &case.x)?, ROWS, FP32)?;
        let row = |index: usize| &y[index * n..][..n];
        let reference = |values: &[f64], index: usize| values[index * n..][..n].to_vec();

        let mut without = case.x.clone();
        for index in [NAN_ROW, INFINITE_ROW] {
            without[index * k..][..k].fill(f16::ZERO);
        }
        let clean = self.repeated(&case, &self.upload(&case, &without)?, ROWS, FP32)?;
        let others = |y: &[f64]| -> Vec<u64> {
            let odd_rows = NAN_ROW * n..(INFINITE_ROW + 1) * n;
            y.iter()
                .enumerate()
                .filter(|(i, _)| !odd_rows.contains(i))
                .map(|(_, value)| value.to_bits())
                .collect()
        };

        let largest = relative_error(row(LARGEST_ROW), &reference(&case.exact, LARGEST_ROW));
        let overflowed = row(LARGEST_ROW).iter().any(|value| !value.is_finite());
        let subnormal = relative_error(row(SUBNORMAL_ROW), &reference(&case.from_operand, SUBNORMAL_ROW));
        for (right, expected) in [
            (row(ZERO_ROW).iter().all(|value| *value == 0.0), "zeros give zeros"),
            (subnormal <= self.limit, "subnormal input is used as it is"),
            (largest <= self.limit || overflowed && self.limit > 1e-3, "65504 overflows only in fp16 sums"),
            (row(NAN_ROW).iter().all(|value| !value.is_finite()), "NaN reaches its whole row"),
            (row(INFINITE_ROW).iter().all(|value| !value.is_finite()), "infinity reaches its whole row"),
            (others(&y) == others(&clean), "other rows do not notice"),
        ] {
            if !right {
                return Err(Failure::refused(
                    "E-GPU-ODD",
                    format!("{} on odd values", self.name(&case, ROWS, FP32)),
                )
                .expected(expected)
                .found(format!("errors: subnormal {subnormal:e}, largest {largest:e}")));
            }
        }
        Ok(u32::from(overflowed))
    }

    fn check_arguments(&self, case: &Case) -> Outcome<()> {
        let (k, n) = (case.layer.k as u32, case.layer.n as u32);
        let inputs = self.upload(case, &case.x)?;
        let needed = self.workspace_bytes(1, k, n)?;
        let y = self.device.poisoned(4 * case.layer.n, 0)?;
        let workspace = self.device.poisoned(needed as usize, 0)?;
        let good = || inputs.call(&y, &workspace, (1, k, n), FP32);
        for (call, status) in [
            (LinearCall { suh: 0, ..good() }, -1),
            (LinearCall { m: 0, ..good() }, -2),
            (LinearCall { m: 33, ..good() }, -2),
            (LinearCall { k: k + 16, ..good() }, -2),
            (LinearCall { n: n + 64, ..good() }, -2),
            (LinearCall { y: y.address() + 4, ..good() }, -3),
            (LinearCall { workspace_bytes: needed - 1, ..good() }, -4),
            (LinearCall { y_type: 2, ..good() }, -5),
        ] {
            expect_status("linear", status, self.stream.status(self.row.linear, &call)?)?;
        }
        Ok(())
    }

    fn name(&self, case: &Case, m: usize, y_type: u32) -> String {
        format!(
            "linear at {} bits, {}, {} input, m {m}, k {}, n {}, fp{} output",
            self.row.bits,
            self.codebook.name(),
            case.name,
            case.layer.k,
            case.layer.n,
            if y_type == FP16 { 16 } else { 32 },
        )
    }
}

impl Inputs {
    fn call(&self, y: &Buffer, workspace: &Buffer, (m, k, n): (u32, u32, u32), y_type: u32) -> LinearCall {
        LinearCall {
            x: self.x.address(),
            trellis: self.trellis.address(),
            suh: self.suh.address(),
            svh: self.svh.address(),
            y: y.address(),
            workspace: workspace.address(),
            workspace_bytes: workspace.size_bytes() as u64,
            m,
            k,
            n,
            y_type,
        }
    }
}

fn wide(bytes: &[u8], y_type: u32) -> Vec<f64> {
    if y_type == FP16 {
        bytes.as_chunks().0.iter().map(|chunk| f16::from_le_bytes(*chunk).to_f64()).collect()
    } else {
        bytes.as_chunks().0.iter().map(|chunk| f64::from(f32::from_le_bytes(*chunk))).collect()
    }
}
