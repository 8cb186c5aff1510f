//! `gpu-check`: the modules on this machine's GPU against the CPU oracle and known answers.

mod cases;
mod decode;
mod device;
mod exchange;
mod linear;
mod report;

use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use requal::{Exit, Failure, Outcome};

use crate::module::abi::Exl3Row;
use crate::module::{self, Module};
use crate::oracle::trellis::Codebook;
use device::{Device, Stream};
use linear::Linear;
use report::{CodeReport, LinearReport, ModuleReport, Report};

/// Largest relative error of a linear that accumulates in fp32.
const FP32_LIMIT: f64 = 1e-3;
/// Largest relative error of a linear that accumulates in fp16 over 32 values of k.
const FP16_LIMIT: f64 = 1.5e-2;
/// How many times larger the second must be than the first, or the difference between the modules is not real.
const LEAST_RATIO: u64 = 2;

/// Checks every module in `modules`, prints a table, and writes it as JSON to `out`.
///
/// # Errors
/// The first thing that is wrong of every instance at fault, after the table; `E-GPU-NONE` where there is no GPU,
/// `E-GPU-NOTHING` where there is no module.
pub(crate) fn check(
    modules: &Utf8Path,
    cudart: &Utf8Path,
    out: Option<&Utf8Path>,
    small: bool,
) -> Outcome<()> {
    let cudart_sha256 = module::load_cudart(cudart, None)?;
    let modules: Vec<Module> =
        module_files(modules)?.iter().map(|path| module::load_unnamed(path, None)).collect::<Outcome<_>>()?;
    let device = Device::open()?;
    let mut report =
        Report { gpu: device.name()?, gpu_arch: device.arch()?, cudart_sha256, modules: Vec::new() };
    for module in &modules {
        report.modules.push(check_entries(&device, module, small)?);
    }
    let linears = check_linears(&device, &modules, &mut report, small).err();
    let difference = judge_difference(&report);
    writeln!(std::io::stdout(), "{report}")?;
    if let Some(out) = out {
        write(out, &report)?;
    }
    Failure::all(linears.into_iter().chain(difference).collect())
}

fn module_files(folder: &Utf8Path) -> Outcome<Vec<Utf8PathBuf>> {
    let mut files = Vec::new();
    for entry in folder.read_dir_utf8()? {
        let path = entry?.into_path();
        if path.extension() == Some("so") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Failure::could_not_judge("E-GPU-NOTHING", format!("no module in {folder}"))
            .expected("files named *.so")
            .hint("cargo xtask build-runtime"));
    }
    Ok(files)
}

/// Everything but linear, which is checked instance by instance over all modules.
fn check_entries(device: &Device, module: &Module, small: bool) -> Outcome<ModuleReport> {
    let stream = device.stream()?;
    let mut report = ModuleReport {
        name: module.marker.clone(),
        sha256: module.digest,
        accumulation: module.accumulation.clone(),
        code: CodeReport { binary_arch: 0, ptx_arch: 0, driver_compiled: false },
        decoded: 0,
        decoded_known: 0,
        linear: Vec::new(),
        exchanged_epochs: 0,
    };
    if let Some((table, rows)) = module.exl3() {
        report.code = device::code("linear", rows.first().and_then(|row| row.linear_code))?.into();
        decode::check_hadamard(device, &stream, table)?;
        for row in rows {
            let decoded = decode::check_decode(device, &stream, row, codebook(row)?)?;
            report.decoded += decoded.matrices;
            report.decoded_known += decoded.known;
        }
    }
    if let Some(table) = module.p2p() {
        report.code = device::code("push", table.push_code)?.into();
        report.exchanged_epochs = exchange::check(device, table, if small { 5 } else { 200 })?;
    }
    Ok(report)
}

/// Instance by instance, so that references are computed once for all modules.
fn check_linears(device: &Device, modules: &[Module], report: &mut Report, small: bool) -> Outcome<()> {
    let stream = device.stream()?;
    let mut failures = Vec::new();
    for codebook in Codebook::ALL {
        for bits in 1..=8 {
            let cases = cases::cases(codebook, bits, small);
            for (module, report) in modules.iter().zip(&mut report.modules) {
                match check_linear(device, &stream, module, codebook, bits, &cases) {
                    Ok(rows) => report.linear.extend(rows),
                    Err(failure) if failure.exit == Exit::Refused => failures.push(failure),
                    Err(failure) => return Err(failure),
                }
            }
        }
    }
    Failure::all(failures)
}

fn check_linear(
    device: &Device,
    stream: &Stream,
    module: &Module,
    codebook: Codebook,
    bits: usize,
    cases: &[cases::Case],
) -> Outcome<Option<LinearReport>> {
    let Some((table, rows)) = module.exl3() else { return Ok(None) };
    let wanted = |row: &&Exl3Row| row.bits as usize == bits && row.codebook == codebook as u32;
    let Some(row) = rows.iter().find(wanted) else {
        return Err(Failure::refused("E-GPU-ROW", format!("{} lacks an instance", module.marker))
            .expected(format!("{bits} bits, {}", codebook.name()))
            .found(format!("{} rows without it", rows.len())));
    };
    let limit = match module.accumulation.as_str() {
        "fp32" => FP32_LIMIT,
        "fp16-fold32" => FP16_LIMIT,
        other => {
            return Err(Failure::refused(
                "E-GPU-ACCUMULATION",
                format!("{} accumulates in no known way", module.marker),
            )
            .expected("fp32 or fp16-fold32")
            .found(other));
        }
    };
    Linear { device, stream, table, row, codebook, limit }.check(cases).map(Some)
}

/// Two accumulations that do not differ measurably would mean that one of them was never built in.
fn judge_difference(report: &Report) -> Option<Box<Failure>> {
    let largest = |accumulation| report.largest(accumulation, |row| row.fp32_error_ppb);
    let (fp32, fp16) = (largest("fp32")?, largest("fp16-fold32")?);
    (fp16 < LEAST_RATIO * fp32).then(|| {
        Failure::refused("E-GPU-ACCUMULATION", "the two accumulations differ too little to be different")
            .expected(format!("errors of fp16-fold32 at least {LEAST_RATIO} times those of fp32"))
            .found(format!("{fp16} and {fp32} parts per 10^9"))
    })
}

fn codebook(row: &Exl3Row) -> Outcome<Codebook> {
    Codebook::ALL.into_iter().find(|codebook| *codebook as u32 == row.codebook).ok_or_else(|| {
        Failure::refused("E-MODULE-ABI", "a row has an unknown codebook")
            .expected("0, 1 or 2")
            .found(row.codebook)
    })
}

fn write(out: &Utf8Path, report: &Report) -> Outcome<()> {
    let folder = out.parent().filter(|folder| !folder.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&mut file, report).map_err(std::io::Error::from)?;
    writeln!(file)?;
    file.persist(out).map_err(|error| error.error)?;
    Ok(())
}
