//! The trellis: from packed bits to states, from a state to its fp16 weight, from tiles to a matrix.

use half::f16;
use serde::Deserialize;

/// How a 16-bit state becomes a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) enum Codebook {
    #[serde(rename = "3inst")]
    Inst3,
    #[serde(rename = "mcg")]
    Mcg,
    #[serde(rename = "mul1")]
    Mul1,
}

impl Codebook {
    /// All codebooks, in the order of their numbers in `module.h`.
    pub(crate) const ALL: [Self; 3] = [Self::Inst3, Self::Mcg, Self::Mul1];

    /// Its name in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Inst3 => "3inst",
            Self::Mcg => "mcg",
            Self::Mul1 => "mul1",
        }
    }

    /// The weight of `state`. Each is one fp16 rounding of a number that f32 holds exactly: two halves whose
    /// exponents differ by at most 3, or a 22-bit product plus a half of the same size.
    pub(crate) fn weight(self, state: u16) -> f16 {
        let state = u32::from(state);
        let sum_of_halves = |hash: u32| {
            let pair = (hash & 0x8fff_8fff) ^ 0x3b60_3b60;
            let (low, high) = (f16::from_bits(pair as u16), f16::from_bits((pair >> 16) as u16));
            f16::from_f32(low.to_f32() + high.to_f32())
        };
        match self {
            Self::Inst3 => sum_of_halves(state.wrapping_mul(89_226_354).wrapping_add(64_248_484)),
            Self::Mcg => sum_of_halves(state.wrapping_mul(0xCBAC_1FED)),
            Self::Mul1 => {
                let bytes = state.wrapping_mul(0x83DC_D12D).to_le_bytes();
                let sum: u16 = bytes.map(u16::from).iter().sum();
                let [base, factor, offset] =
                    [0x6400 + sum, 0x1eee, 0xc931].map(|bits| f16::from_bits(bits).to_f32());
                f16::from_f32(base * factor + offset)
            }
        }
    }
}

/// The state of weight `t` (0..256) of a tile of `16 * bits` little-endian u16: the 16 bits that end at bit
/// `(t + 1) * bits` of the tile's ring, where bits run from the top of each u32 down.
pub(crate) fn state(tile: &[u16], bits: usize, t: usize) -> u16 {
    let ring_bits = 256 * bits;
    let end = (t + 1) * bits;
    (0..16).fold(0, |state, i| {
        let at = (end + ring_bits - 16 + i) % ring_bits;
        let word = u32::from(tile[at / 32 * 2]) | u32::from(tile[at / 32 * 2 + 1]) << 16;
        state << 1 | (word >> (31 - at % 32) & 1) as u16
    })
}

/// Row and column of weight `t` in its 16x16 tile: the B operand's order of mma.m16n8k16.
fn position(t: usize) -> (usize, usize) {
    let (lane, j) = (t / 8, t % 8);
    (2 * (lane % 4) + [0, 1, 8, 9][j % 4], lane / 4 + if j < 4 { 0 } else { 8 })
}

/// The weights `[k][n]` of a trellis `[k/16][n/16][16 * bits]`, both row-major.
pub(crate) fn decode(trellis: &[u16], bits: usize, codebook: Codebook, k: usize, n: usize) -> Vec<f16> {
    let table: Vec<f16> = (0..=u16::MAX).map(|state| codebook.weight(state)).collect();
    let mut weights = vec![f16::ZERO; k * n];
    for (index, tile) in trellis.chunks_exact(16 * bits).enumerate() {
        let (first_row, first_column) = (index / (n / 16) * 16, index % (n / 16) * 16);
        for t in 0..256 {
            let (row, column) = position(t);
            weights[(first_row + row) * n + first_column + column] = table[usize::from(state(tile, bits, t))];
        }
    }
    weights
}

/// `values` as little-endian bytes.
pub(crate) fn bytes_of(values: &[f16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::known;
    use requal::Digest;

    #[test]
    fn weights_of_known_states() {
        let states = [0, 1, 2, 0x1234, 0x8000, 0xABCD, 0xFFFF];
        let expected = [
            (Codebook::Inst3, [0x3a25, 0xbb5b, 0x3b74, 0xc066, 0xb7f8, 0xb98e, 0xb110]),
            (Codebook::Mcg, [0x3f60, 0x304e, 0xba13, 0x3e0f, 0xb915, 0x35e7, 0x3acd]),
            (Codebook::Mul1, [0xc2e8, 0x3921, 0xb72d, 0xb89e, 0xbaf2, 0xbd42, 0xb936]),
        ];
        for (codebook, bits) in expected {
            assert_eq!(states.map(|state| codebook.weight(state).to_bits()), bits, "{codebook:?}");
        }
    }

    /// Mean, deviation and count of distinct values over all states, as far as they are known.
    #[test]
    fn the_codebooks_have_the_known_statistics() {
        for (codebook, deviation, distinct) in [
            (Codebook::Inst3, 1.24371, Some(10598)),
            (Codebook::Mcg, 1.24411, None),
            (Codebook::Mul1, 1.00031, Some(913)),
        ] {
            let values: Vec<f64> = (0..=u16::MAX).map(|state| codebook.weight(state).to_f64()).collect();
            let mean = values.iter().sum::<f64>() / 65536.0;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 65536.0;
            assert!((variance.sqrt() - deviation).abs() < 1e-5, "{codebook:?}: {}", variance.sqrt());
            let bits: std::collections::BTreeSet<u64> = values.iter().map(|value| value.to_bits()).collect();
            assert!(distinct.is_none_or(|distinct| distinct == bits.len()), "{codebook:?}: {}", bits.len());
        }
    }

    #[test]
    fn tiles_of_known_words_and_states() {
        let expected: [(usize, &[u16], &[u16]); 4] = [
            (2, &[0xe4e4], &[0x9393, 0x4e4e, 0x3939]),
            (3, &[0xac68, 0x688f, 0x688f, 0x8fac], &[0x7d63, 0xeb1a, 0x58d1]),
            (4, &[0xf6d4, 0x3a18, 0x7e5c, 0xb290], &[0xe5c3, 0x5c3a, 0xc3a1]),
            (8, &[0x1118, 0x030a, 0x2d34, 0x1f26], &[0xfc03, 0x030a, 0x0a11]),
        ];
        for (bits, words, states) in expected {
            let tile = known::tile(bits);
            assert_eq!(&tile[..words.len()], words, "{bits} bits");
            let found: Vec<u16> = (0..states.len()).map(|t| state(&tile, bits, t)).collect();
            assert_eq!(found, states, "{bits} bits");
        }
    }

    #[test]
    fn tiles_decode_to_known_digests() {
        for (bits, start) in known::TILES {
            let weights = decode(&known::tile(bits), bits, Codebook::Mul1, 16, 16);
            assert!(Digest::of(&bytes_of(&weights)).to_string().starts_with(start), "{bits} bits");
        }
        let weights = decode(&known::tile(8), 8, Codebook::Mul1, 16, 16);
        assert_eq!([0, 1, 2].map(|i| weights[i].to_bits()), [0x3cbb, 0x3843, 0x3046]);
    }

    #[test]
    fn matrices_decode_to_known_digests() {
        let known = known::matrices();
        assert_eq!(known.len(), 13);
        for matrix in known {
            let weights = decode(&known::matrix(matrix.bits), matrix.bits, matrix.codebook, 128, 128);
            assert_eq!(
                Digest::of(&bytes_of(&weights)),
                matrix.sha256,
                "{:?} {}",
                matrix.codebook,
                matrix.bits
            );
        }
    }

    #[test]
    fn positions_are_a_permutation() {
        let seen: std::collections::BTreeSet<_> = (0..256).map(position).collect();
        assert_eq!(seen.len(), 256);
    }
}
