//! Known answers of the trellis decode: inputs, and digests of what they decode to.

use requal::Digest;
use serde::Deserialize;

use crate::oracle::random::Rng;
use crate::oracle::trellis::Codebook;

/// Bits, and the first 16 digits of the SHA-256 of [`tile`] decoded with mul1.
pub(crate) const TILES: [(usize, &str); 5] = [
    (1, "9ced160258387fd4"),
    (2, "0c0a203fbd8a9e2b"),
    (3, "6c616146fbd1de9b"),
    (4, "3373ee17ec7eff81"),
    (8, "23ebda553a149a76"),
];

/// The digest of one decoded 128x128 matrix.
#[derive(Deserialize)]
pub(crate) struct Known {
    pub(crate) codebook: Codebook,
    pub(crate) bits: usize,
    pub(crate) sha256: Digest,
}

/// Every pair of `data/exl3-decode.json`, which names its source; the input is [`matrix`].
pub(crate) fn matrices() -> Vec<Known> {
    #[derive(Deserialize)]
    struct File {
        matrices: Vec<Known>,
    }
    let file: File = serde_json::from_str(include_str!("../../data/exl3-decode.json"))
        .expect("the file is part of the program and read by its tests");
    file.matrices
}

/// One tile of the symbols `(7t + 3) mod 2^bits`, each `bits` wide, from the top of each u32 down.
pub(crate) fn tile(bits: usize) -> Vec<u16> {
    let mut words = vec![0_u32; 8 * bits];
    for t in 0..256 {
        let symbol = (7 * t + 3) % (1 << bits);
        for bit in 0..bits {
            let at = t * bits + bit;
            words[at / 32] |= ((symbol >> (bits - 1 - bit) & 1) as u32) << (31 - at % 32);
        }
    }
    words.iter().flat_map(|word| [*word as u16, (*word >> 16) as u16]).collect()
}

/// The random trellis `[8][8][16 * bits]` of the known matrices.
pub(crate) fn matrix(bits: usize) -> Vec<u16> {
    let mut rng = Rng::new(1000 + bits as u64);
    (0..8 * 8 * 16 * bits).map(|_| rng.next_i16_bits()).collect()
}
