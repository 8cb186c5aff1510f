//! numpy's default generator, because public known answers name their inputs by its seeds.
//!
//! PCG64 (XSL-RR 128/64; O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for
//! Random Number Generation", 2014) seeded by numpy's `SeedSequence`.

/// `numpy.random.default_rng(seed)`.
pub(crate) struct Rng {
    state: u128,
    increment: u128,
    /// The high half of a 64-bit draw whose low half was used.
    half: Option<u32>,
}

const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

impl Rng {
    /// The generator that numpy makes of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        let words = seed_sequence(seed);
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let increment = wide(words[2], words[3]) << 1 | 1;
        let mut rng = Self { state: 0, increment, half: None };
        rng.step();
        rng.state = rng.state.wrapping_add(wide(words[0], words[1]));
        rng.step();
        rng
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    /// The next 64 bits, numpy's `random_raw`.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// The next 32 bits: each 64-bit draw gives its low half first.
    fn next_u32(&mut self) -> u32 {
        match self.half.take() {
            Some(high) => high,
            None => {
                let both = self.next_u64();
                self.half = Some((both >> 32) as u32);
                both as u32
            }
        }
    }

    /// `integers(-32768, 32768, dtype=int64)` as int16 bits. The range is a power of two, so numpy's bounded draw
    /// keeps the top 16 bits and never draws again.
    pub(crate) fn next_i16_bits(&mut self) -> u16 {
        ((self.next_u32() >> 16) as u16).wrapping_sub(32768)
    }

    /// `random()`: 53 bits, uniform in [0, 1).
    pub(crate) fn next_unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// A bell-shaped draw with mean 0 and variance 1: the sum of twelve uniform ones.
    pub(crate) fn next_bell(&mut self) -> f64 {
        (0..12).map(|_| self.next_unit()).sum::<f64>() - 6.0
    }

    /// +1 or -1.
    pub(crate) fn next_sign(&mut self) -> f64 {
        if self.next_unit() < 0.5 { -1.0 } else { 1.0 }
    }
}

/// Four 64-bit words of `SeedSequence(seed).generate_state(4, uint64)`.
fn seed_sequence(seed: u64) -> [u64; 4] {
    const SHIFT: u32 = 16;
    let mut constant = 0x43b0_d7e5_u32;
    let mut hash = |value: u32| {
        let mixed = value ^ constant;
        constant = constant.wrapping_mul(0x931e_8875);
        let mixed = mixed.wrapping_mul(constant);
        mixed ^ mixed >> SHIFT
    };
    let mut pool = [seed as u32, (seed >> 32) as u32, 0, 0].map(&mut hash);
    for source in 0..4 {
        for target in (0..4).filter(|target| *target != source) {
            let mixed = pool[target]
                .wrapping_mul(0xca01_f9dd)
                .wrapping_sub(hash(pool[source]).wrapping_mul(0x4973_f715));
            pool[target] = mixed ^ mixed >> SHIFT;
        }
    }
    let mut constant = 0x8b51_f9dd_u32;
    let mut output = |index: usize| {
        let mixed = pool[index % 4] ^ constant;
        constant = constant.wrapping_mul(0x58f3_8ded);
        let mixed = mixed.wrapping_mul(constant);
        u64::from(mixed ^ mixed >> SHIFT)
    };
    std::array::from_fn(|word| output(2 * word) | output(2 * word + 1) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    // All expected values: numpy 2, `numpy.random.PCG64(seed).random_raw(n)` and `default_rng(seed)`.
    #[test]
    fn raw_draws_are_numpys() {
        let mut rng = Rng::new(1004);
        assert_eq!(
            std::array::from_fn(|_| rng.next_u64()),
            [0x0039_b38b_ba1f_9eb6, 0x2151_98ad_1ea2_617e, 0x2373_40ab_3196_06da]
        );
        let mut rng = Rng::new((1 << 40) + 5);
        assert_eq!(std::array::from_fn(|_| rng.next_u64()), [0x0136_9aef_039f_edeb, 0x5f61_b404_7331_4316]);
    }

    #[test]
    fn bounded_draws_are_numpys() {
        let mut rng = Rng::new(1004);
        assert_eq!(
            std::array::from_fn(|_| rng.next_i16_bits() as i16),
            [14879, -32711, -24926, -24239, -20074, -23693]
        );
        let mut rng = Rng::new(0);
        assert_eq!(std::array::from_fn(|_| rng.next_i16_bits() as i16), [22978, 8975, 729, -15088]);
    }

    #[test]
    fn unit_draws_are_numpys() {
        let mut rng = Rng::new(7002);
        let expected: [u64; 3] = [0x3fe0_9515_ee25_70e9, 0x3fe7_0ebb_53e4_eb58, 0x3fc2_152e_ff65_3874];
        assert_eq!(std::array::from_fn(|_| rng.next_unit().to_bits()), expected);
    }
}
