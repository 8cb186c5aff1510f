//! decode and the Hadamard entry on the GPU, byte for byte against the oracle.

use half::f16;
use requal::{Digest, Failure, Outcome};

use crate::gpu::device::{Device, Stream};
use crate::module::abi::{DecodeCall, Exl3Row, Exl3Table, HadamardCall};
use crate::oracle::random::Rng;
use crate::oracle::trellis::{Codebook, bytes_of, decode};
use crate::oracle::{hadamard, known};

/// A decoded matrix, and how many of the two counts it adds to.
pub(crate) struct Decoded {
    pub(crate) matrices: u32,
    pub(crate) known: u32,
}

/// Decodes the known tile, the known matrix and a matrix with a ragged edge; all must be the oracle's bytes, and
/// have the known digest where there is one.
///
/// # Errors
/// `E-GPU-DECODE` for the first that differs.
pub(crate) fn check_decode(
    device: &Device,
    stream: &Stream,
    row: &Exl3Row,
    codebook: Codebook,
) -> Outcome<Decoded> {
    let bits = row.bits as usize;
    let mut rng = Rng::new(2000 + u64::from(row.bits));
    let ragged: Vec<u16> = (0..3 * 11 * 16 * bits).map(|_| rng.next_i16_bits()).collect();
    let tile_start =
        known::TILES.into_iter().find(|(tile_bits, _)| *tile_bits == bits && codebook == Codebook::Mul1);
    let matrix_digest = known::matrices()
        .into_iter()
        .find(|matrix| matrix.codebook == codebook && matrix.bits == bits)
        .map(|matrix| matrix.sha256.to_string());
    let cases = [
        (known::tile(bits), 16, 16, tile_start.map(|(_, start)| start.to_owned())),
        (known::matrix(bits), 128, 128, matrix_digest),
        (ragged, 48, 176, None),
    ];
    let mut decoded = Decoded { matrices: 0, known: 0 };
    for (trellis, k, n, digest) in cases {
        let found = run_decode(device, stream, row, &trellis, k, n)?;
        let expected = bytes_of(&decode(&trellis, bits, codebook, k, n));
        let found_digest = Digest::of(&found).to_string();
        if found != expected || digest.as_ref().is_some_and(|start| !found_digest.starts_with(start)) {
            return Err(Failure::refused(
                "E-GPU-DECODE",
                format!("decode at {bits} bits, {}, {k}x{n} differs", codebook.name()),
            )
            .expected(digest.unwrap_or_else(|| Digest::of(&expected).to_string()))
            .found(found_digest));
        }
        decoded.matrices += 1;
        decoded.known += u32::from(digest.is_some());
    }
    Ok(decoded)
}

fn run_decode(
    device: &Device,
    stream: &Stream,
    row: &Exl3Row,
    trellis: &[u16],
    k: usize,
    n: usize,
) -> Outcome<Vec<u8>> {
    let bytes: Vec<u8> = trellis.iter().flat_map(|word| word.to_le_bytes()).collect();
    let trellis = device.upload(&bytes)?;
    let weights = device.poisoned(2 * k * n, 0xff)?;
    let call =
        DecodeCall { trellis: trellis.address(), weights: weights.address(), k: k as u32, n: n as u32 };
    stream.launch("decode", row.decode, &call)?;
    device.synchronize()?;
    for (call, status) in [
        (DecodeCall { trellis: 0, ..call }, -1),
        (DecodeCall { k: 8, ..call }, -2),
        (DecodeCall { n: 0, ..call }, -2),
        (DecodeCall { trellis: call.trellis + 2, ..call }, -3),
    ] {
        expect_status("decode", status, stream.status(row.decode, &call)?)?;
    }
    weights.read()
}

/// Transforms rows with and without a scale, in place too; bit for bit the oracle's.
///
/// # Errors
/// `E-GPU-HADAMARD`.
pub(crate) fn check_hadamard(device: &Device, stream: &Stream, table: &Exl3Table) -> Outcome<()> {
    let (rows, columns) = (5, 384);
    let mut rng = Rng::new(3000);
    let mut draw = |count: usize| (0..count).map(|_| f16::from_f64(rng.next_bell())).collect::<Vec<f16>>();
    let (input, scale) = (draw(rows * columns), draw(columns));
    let scaled: Vec<f16> = input
        .iter()
        .enumerate()
        .map(|(i, value)| f16::from_f32(value.to_f32() * scale[i % columns].to_f32()))
        .collect();
    let device_scale = device.upload(&bytes_of(&scale))?;
    for (address, operand) in [(0, &input), (device_scale.address(), &scaled)] {
        let output = device.upload(&bytes_of(&input))?;
        let call = HadamardCall {
            input: output.address(),
            scale: address,
            output: output.address(),
            rows: rows as u32,
            columns: columns as u32,
        };
        stream.launch("hadamard", table.hadamard, &call)?;
        device.synchronize()?;
        if output.read()? != bytes_of(&hadamard::rounded(operand)) {
            return Err(Failure::refused(
                "E-GPU-HADAMARD",
                "the Hadamard transform differs from the oracle's",
            )
            .expected("equal bits")
            .found(if address == 0 {
                "other bits without scale"
            } else {
                "other bits with scale"
            }));
        }
        let bad = HadamardCall { columns: 100, ..call };
        expect_status("hadamard", -2, stream.status(table.hadamard, &bad)?)?;
    }
    Ok(())
}

/// An entry must refuse a call of this kind before it launches anything.
///
/// # Errors
/// `E-GPU-ARGUMENT`.
pub(crate) fn expect_status(entry: &str, expected: i32, found: i32) -> Outcome<()> {
    if expected == found {
        return Ok(());
    }
    Err(Failure::refused(
        "E-GPU-ARGUMENT",
        format!("{entry} does not refuse a bad argument as its contract says"),
    )
    .expected(format!("status {expected}"))
    .found(format!("status {found}")))
}
