//! The orthonormal block-diagonal 128-point Hadamard transform, exact and as the kernels round it.

use half::f16;

/// Points of one block.
pub(crate) const POINTS: usize = 128;

/// Transforms each block of 128 in place, in f64.
pub(crate) fn exact(values: &mut [f64]) {
    for block in values.chunks_exact_mut(POINTS) {
        let mut step = 1;
        while step < POINTS {
            for i in (0..POINTS).filter(|i| i & step == 0) {
                (block[i], block[i + step]) = (block[i] + block[i + step], block[i] - block[i + step]);
            }
            step *= 2;
        }
        for value in block {
            *value /= (POINTS as f64).sqrt();
        }
    }
}

/// Transforms each block of 128 as the kernels do: f32 butterflies with rising distance, then the scale, then one
/// rounding to fp16. Bit-exact.
pub(crate) fn rounded(values: &[f16]) -> Vec<f16> {
    let mut values: Vec<f32> = values.iter().map(|value| value.to_f32()).collect();
    for block in values.chunks_exact_mut(POINTS) {
        let mut step = 1;
        while step < POINTS {
            for i in (0..POINTS).filter(|i| i & step == 0) {
                (block[i], block[i + step]) = (block[i] + block[i + step], block[i] - block[i + step]);
            }
            step *= 2;
        }
    }
    values.iter().map(|value| f16::from_f32(value * 0.088_388_346)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::random::Rng;

    #[test]
    fn it_is_the_sylvester_matrix() {
        for column in 0..POINTS {
            let mut unit = vec![0.0; POINTS];
            unit[column] = 1.0;
            exact(&mut unit);
            for (row, value) in unit.iter().enumerate() {
                let sign = if (row & column).count_ones() % 2 == 0 { 1.0 } else { -1.0 };
                assert!((value - sign / 128_f64.sqrt()).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn it_is_its_own_inverse() {
        let mut rng = Rng::new(1);
        let original: Vec<f64> = (0..2 * POINTS).map(|_| rng.next_bell()).collect();
        let mut values = original.clone();
        exact(&mut values);
        exact(&mut values);
        assert!(original.iter().zip(&values).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn the_rounded_transform_stays_within_half_a_unit_and_a_little() {
        let mut rng = Rng::new(2);
        let values: Vec<f16> = (0..POINTS).map(|_| f16::from_f64(rng.next_bell())).collect();
        let mut wide: Vec<f64> = values.iter().map(|value| value.to_f64()).collect();
        exact(&mut wide);
        for (value, exact) in rounded(&values).iter().zip(wide) {
            assert!((value.to_f64() - exact).abs() <= exact.abs() * 4.9e-4 + 1e-6);
        }
    }
}
