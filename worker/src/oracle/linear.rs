//! The linear layer in f64: y = (H_n(H_k(x * suh) W)) * svh, "*" elementwise on vectors.

use half::f16;

use crate::oracle::hadamard;

/// One layer with decoded weights.
pub(crate) struct Layer {
    /// Rows of `weights`, a multiple of 128.
    pub(crate) k: usize,
    /// Columns of `weights`, a multiple of 128.
    pub(crate) n: usize,
    /// `[k][n]`, row-major.
    pub(crate) weights: Vec<f16>,
    /// Input scale `[k]`.
    pub(crate) suh: Vec<f16>,
    /// Output scale `[n]`.
    pub(crate) svh: Vec<f16>,
}

impl Layer {
    /// The product for `x` `[m][k]` without any rounding: `[m][n]`.
    pub(crate) fn exact(&self, x: &[f16]) -> Vec<f64> {
        let mut rotated: Vec<f64> =
            x.iter().enumerate().map(|(i, x)| x.to_f64() * self.suh[i % self.k].to_f64()).collect();
        hadamard::exact(&mut rotated);
        self.finish(&rotated)
    }

    /// The product with the kernels' roundings before the sums (x * suh and its transform to fp16) and none after:
    /// what is left between this and a kernel is its accumulation and its output type.
    pub(crate) fn exact_of_operand(&self, x: &[f16]) -> Vec<f64> {
        let rotated: Vec<f64> = self.operand(x).iter().map(|value| value.to_f64()).collect();
        self.finish(&rotated)
    }

    /// The fp16 operand that the tensor core multiplies, `[m][k]`. Bit-exact.
    pub(crate) fn operand(&self, x: &[f16]) -> Vec<f16> {
        let scaled: Vec<f16> = x
            .iter()
            .enumerate()
            .map(|(i, x)| f16::from_f32(x.to_f32() * self.suh[i % self.k].to_f32()))
            .collect();
        hadamard::rounded(&scaled)
    }

    fn finish(&self, rotated: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; rotated.len() / self.k * self.n];
        for (a, y) in rotated.chunks_exact(self.k).zip(y.chunks_exact_mut(self.n)) {
            for (a, weights) in a.iter().zip(self.weights.chunks_exact(self.n)) {
                for (y, weight) in y.iter_mut().zip(weights) {
                    *y += a * weight.to_f64();
                }
            }
        }
        hadamard::exact(&mut y);
        for (i, y) in y.iter_mut().enumerate() {
            *y *= self.svh[i % self.n].to_f64();
        }
        y
    }
}

/// ‖found − reference‖ / ‖reference‖; NaN if anything is NaN, infinite if a zero reference is missed.
pub(crate) fn relative_error(found: &[f64], reference: &[f64]) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let difference = norm(&mut found.iter().zip(reference).map(|(a, b)| a - b));
    if difference == 0.0 { 0.0 } else { difference / norm(&mut reference.iter().copied()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::random::Rng;

    fn layer(k: usize, n: usize, rng: &mut Rng) -> Layer {
        let mut draw = |count: usize| (0..count).map(|_| f16::from_f64(rng.next_bell())).collect::<Vec<_>>();
        Layer { k, n, weights: draw(k * n), suh: draw(k), svh: draw(n) }
    }

    /// By the definition, with the Hadamard matrix written out.
    #[test]
    fn the_product_is_the_definition() {
        let mut rng = Rng::new(3);
        let layer = layer(256, 128, &mut rng);
        let x: Vec<f16> = (0..2 * 256).map(|_| f16::from_f64(rng.next_bell())).collect();
        let h = |i: usize, j: usize| match (i / 128 == j / 128, (i & j & 127).count_ones() % 2) {
            (false, _) => 0.0,
            (true, 0) => 1.0 / 128_f64.sqrt(),
            (true, _) => -1.0 / 128_f64.sqrt(),
        };
        let found = layer.exact(&x);
        for row in 0..2 {
            let rotated: Vec<f64> = (0..256)
                .map(|j| (0..256).map(|i| x[row * 256 + i].to_f64() * layer.suh[i].to_f64() * h(i, j)).sum())
                .collect();
            let z: Vec<f64> = (0..128)
                .map(|c| (0..256).map(|i| rotated[i] * layer.weights[i * 128 + c].to_f64()).sum())
                .collect();
            let y: Vec<f64> = (0..128)
                .map(|c| (0..128).map(|i| z[i] * h(i, c)).sum::<f64>() * layer.svh[c].to_f64())
                .collect();
            assert!(relative_error(&found[row * 128..][..128], &y) < 1e-13);
        }
    }

    #[test]
    fn rounding_the_operand_costs_about_a_quarter_of_a_thousandth() {
        let mut rng = Rng::new(4);
        let layer = layer(256, 128, &mut rng);
        let x: Vec<f16> = (0..256).map(|_| f16::from_f64(rng.next_bell())).collect();
        let error = relative_error(&layer.exact_of_operand(&x), &layer.exact(&x));
        assert!((1e-4..5e-4).contains(&error), "{error}");
    }

    #[test]
    fn the_error_measure_never_passes_what_is_not_a_number() {
        assert_eq!(relative_error(&[0.0, 0.0], &[0.0, 0.0]), 0.0);
        assert!(relative_error(&[f64::NAN], &[1.0]).is_nan());
        assert_eq!(relative_error(&[1e-30], &[0.0]), f64::INFINITY);
    }
}
