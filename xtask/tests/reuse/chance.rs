//! Chance that can be had again: draws follow from a seed and a number.

use requal::Digest;

/// A row of draws.
pub(crate) struct Chance {
    seed: String,
    drawn: u64,
}

impl Chance {
    /// The draws of mutation `number` under `seed`.
    pub(crate) fn new(seed: u64, number: usize) -> Self {
        Self { seed: format!("{seed}/{number}"), drawn: 0 }
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.drawn += 1;
        let digest = Digest::of(format!("{}/{}", self.seed, self.drawn).as_bytes());
        let [a, b, c, d, ..] = *digest.as_bytes();
        usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap() % end
    }

    /// One of `all`.
    pub(crate) fn one<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// One of `all`, by value.
    pub(crate) fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// Yes or no.
    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}
