//! What a challenge of that size is worth: how likely it is to meet a bad object.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Stratum, Unit, Wanted, strata};

/// Shares of bad objects for which the power is told, in per cent; one bad object is told too.
const SHARES: [usize; 3] = [1, 5, 10];

/// The chance of a sample to hold at least one of some bad objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Power {
    /// Bad objects among all.
    pub bad: usize,
    /// The chance to draw at least one of them, in thousandths, rounded down; 1000 only if it is certain. Where the bad
    /// ones lie among reused and compiled units is not known, so the least favourable division counts.
    pub found_per_mille: u32,
}

/// The power against one bad object and against 1 %, 5 % and 10 % of all (rounded down, at least one), rising and
/// without repetition.
#[must_use]
pub fn power(units: &[Unit<'_>], wanted: Wanted) -> Vec<Power> {
    let strata = strata(units, wanted);
    let bad: BTreeSet<usize> =
        SHARES.iter().map(|share| (units.len() * share / 100).max(1)).chain([1]).collect();
    let possible = bad.into_iter().filter(|&bad| bad <= units.len());
    possible.map(|bad| Power { bad, found_per_mille: found_per_mille(&strata, bad) }).collect()
}

pub(super) fn found_per_mille(strata: &[Stratum], bad: usize) -> u32 {
    let kept: usize = strata.iter().map(|stratum| stratum.members.len() - stratum.drawn).sum();
    if bad > kept {
        return 1000;
    }
    // The error of the products is far below the added part, which keeps whole thousandths whole.
    let found = (1.0 - missed(strata, bad)) * 1000.0 + 1e-9;
    // `found` is within 0 to 1001.
    (found as u32).min(999)
}

/// The chance that none of `bad` objects is drawn, for the division among the strata by which it is greatest.
fn missed(strata: &[Stratum], bad: usize) -> f64 {
    let Some((first, others)) = strata.split_first() else { return if bad == 0 { 1.0 } else { 0.0 } };
    let most = bad.min(first.members.len());
    let divided = |here| missed_one(first, here) * missed(others, bad - here);
    (0..=most).map(divided).fold(0.0, f64::max)
}

/// The chance that none of `bad` objects of one stratum is drawn: each in turn is among those that are left out.
fn missed_one(stratum: &Stratum, bad: usize) -> f64 {
    let (all, drawn) = (stratum.members.len(), stratum.drawn);
    let left_out = |done: usize| (all - done).saturating_sub(drawn) as f64 / (all - done) as f64;
    (0..bad).map(left_out).product()
}
