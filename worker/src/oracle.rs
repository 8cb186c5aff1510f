//! The CPU oracle: what the kernels must compute, in plain code with exact fp16 rounding and f64 sums.

pub(crate) mod hadamard;
pub(crate) mod known;
pub(crate) mod linear;
pub(crate) mod random;
pub(crate) mod trellis;
