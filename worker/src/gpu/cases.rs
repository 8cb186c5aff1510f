//! Layers, inputs and references on which the modules' linear is judged; one set serves every module.

use half::f16;

use crate::oracle::hadamard;
use crate::oracle::linear::Layer;
use crate::oracle::random::Rng;
use crate::oracle::trellis::{Codebook, decode};

/// Rows of every input, the most that linear takes.
pub(crate) const ROWS: usize = 32;

/// One layer with one input.
pub(crate) struct Case {
    /// What the input is, for messages.
    pub(crate) name: &'static str,
    /// Packed weights, little-endian.
    pub(crate) trellis: Vec<u8>,
    /// The layer, with its decoded weights.
    pub(crate) layer: Layer,
    /// Input, `[ROWS][k]`.
    pub(crate) x: Vec<f16>,
    /// Exact product, `[ROWS][n]`.
    pub(crate) exact: Vec<f64>,
    /// Exact product of the rounded operand, `[ROWS][n]`.
    pub(crate) from_operand: Vec<f64>,
}

/// The name of random inputs, whose errors are reported apart.
pub(crate) const RANDOM: &str = "random";

/// All cases of one (codebook, bits); `small` leaves one shape.
pub(crate) fn cases(codebook: Codebook, bits: usize, small: bool) -> Vec<Case> {
    let mut rng = Rng::new(6000 + 10 * bits as u64 + codebook as u64);
    let shapes: &[(usize, usize)] = if small {
        &[(256, 128)]
    } else {
        &[(128, 128), (128, 512), (256, 384), (1152, 256), (1280, 640), (2048, 128)]
    };
    let mut cases = Vec::new();
    for &(k, n) in shapes {
        let trellis: Vec<u16> = (0..k * n / 256 * 16 * bits).map(|_| rng.next_i16_bits()).collect();
        let x = draw(ROWS * k, || rng.next_bell());
        cases.push(case(RANDOM, codebook, bits, (k, n), trellis, x, &mut rng));
    }
    let (k, n) = shapes[shapes.len() - 1];
    let trellis: Vec<u16> = (0..k * n / 256 * 16 * bits).map(|_| rng.next_i16_bits()).collect();
    // One large value in each block of 128, which the transform spreads evenly.
    let spikes = (0..ROWS * k)
        .map(|i| if i % 128 == i / k * 5 % 128 { f16::from_f64(256.0 * rng.next_sign()) } else { f16::ZERO })
        .collect();
    cases.push(case("spikes", codebook, bits, (k, n), trellis.clone(), spikes, &mut rng));
    // Magnitudes from 2^-24, the smallest subnormal, to 2^6.
    let wide = draw(ROWS * k, || rng.next_sign() * (30.0 * rng.next_unit() - 24.0).exp2());
    cases.push(case("wide", codebook, bits, (k, n), trellis, wide, &mut rng));
    cases.push(cancelling(codebook, bits, &mut rng));
    cases
}

/// Equal weights, and an operand whose odd groups of 32 are the groups before them, negated and 4 % smaller: sums
/// over 32 are large, their total is small, so what fp16 sums lose shows. Each block of 128 outputs has its whole
/// size in one value: several blocks keep that value's own fp16 roundings from deciding.
fn cancelling(codebook: Codebook, bits: usize, rng: &mut Rng) -> Case {
    let (k, n) = (2048, 512);
    let trellis = vec![0; k * n / 256 * 16 * bits];
    let mut operand: Vec<f64> = (0..ROWS * k).map(|_| 1.0 + rng.next_unit()).collect();
    for pair in operand.as_chunks_mut::<64>().0 {
        let (even, odd) = pair.split_at_mut(32);
        even.iter().zip(odd).for_each(|(even, odd)| *odd = -0.96 * even);
    }
    let mut built = case("cancelling", codebook, bits, (k, n), trellis, vec![f16::ZERO; ROWS * k], rng);
    // The transform is its own inverse, so this input rotates to that operand.
    hadamard::exact(&mut operand);
    let suh = built.layer.suh.iter().cycle();
    built.x = operand.iter().zip(suh).map(|(value, suh)| f16::from_f64(value / suh.to_f64())).collect();
    built.exact = built.layer.exact(&built.x);
    built.from_operand = built.layer.exact_of_operand(&built.x);
    built
}

/// Rows of the odd case, in this order; all others are random.
pub(crate) const ZERO_ROW: usize = 0;
/// Subnormal values only.
pub(crate) const SUBNORMAL_ROW: usize = 1;
/// The largest finite value, once in each block of 128.
pub(crate) const LARGEST_ROW: usize = 2;
/// One NaN.
pub(crate) const NAN_ROW: usize = 3;
/// One infinity.
pub(crate) const INFINITE_ROW: usize = 4;

/// A layer with rows of odd values; the references of the last two rows mean nothing.
pub(crate) fn odd(codebook: Codebook, bits: usize) -> Case {
    let (k, n) = (256, 256);
    let mut rng = Rng::new(7000 + 10 * bits as u64 + codebook as u64);
    let trellis: Vec<u16> = (0..k * n / 256 * 16 * bits).map(|_| rng.next_i16_bits()).collect();
    let mut x = draw(ROWS * k, || rng.next_bell());
    x[..k].fill(f16::ZERO);
    for value in &mut x[SUBNORMAL_ROW * k..][..k] {
        *value = f16::from_bits(
            (1.0 + 1022.0 * rng.next_unit()) as u16 | if rng.next_unit() < 0.5 { 0x8000 } else { 0 },
        );
    }
    x[LARGEST_ROW * k..][..k].fill(f16::ZERO);
    x[LARGEST_ROW * k + 77] = f16::MAX;
    x[LARGEST_ROW * k + 128] = f16::MIN;
    x[NAN_ROW * k + 200] = f16::NAN;
    x[INFINITE_ROW * k + 3] = f16::INFINITY;
    case("odd", codebook, bits, (k, n), trellis, x, &mut rng)
}

fn draw(count: usize, mut next: impl FnMut() -> f64) -> Vec<f16> {
    (0..count).map(|_| f16::from_f64(next())).collect()
}

/// Scales are signs with magnitudes of 0.5 to 1 on the input, and such that outputs have a size of about 1.
fn case(
    name: &'static str,
    codebook: Codebook,
    bits: usize,
    (k, n): (usize, usize),
    trellis: Vec<u16>,
    x: Vec<f16>,
    rng: &mut Rng,
) -> Case {
    let mut scale =
        |count: usize, size: f64| draw(count, || rng.next_sign() * size * (1.0 + rng.next_unit()) / 2.0);
    let (suh, svh) = (scale(k, 1.0), scale(n, 1.0 / (k as f64).sqrt()));
    let layer = Layer { k, n, weights: decode(&trellis, bits, codebook, k, n), suh, svh };
    let (exact, from_operand) = (layer.exact(&x), layer.exact_of_operand(&x));
    let trellis = trellis.iter().flat_map(|word| word.to_le_bytes()).collect();
    Case { name, trellis, layer, x, exact, from_operand }
}
