//! An auditor's challenge: which units are to be compiled anew, drawn by a nonce that the builder could not know when the
//! certificate was published.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use crate::digest::Hasher;
use crate::{Digest, Failure, Outcome};

mod grade;
mod power;

pub use grade::{Grade, Graded, grade};
pub use power::{Power, power};

/// The auditor's nonce: at least 16 bytes, chosen after the certificate was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonce(Vec<u8>);

/// Shortest nonce: with fewer bytes a builder could prepare for every one.
pub const NONCE_BYTES_MIN: usize = 16;

/// How many units are to be compiled anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of them.
    All,
    /// So many; all if there are not as many.
    Count(NonZeroUsize),
}

/// A unit that may be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit<'a> {
    /// Its tree.
    pub tree: &'a str,
    /// Its object's path in the tree's build folder.
    pub object: &'a str,
    /// Whether the certificate says that the object was reused.
    pub reused: bool,
}

/// The units that the challenge draws: rising indices into `units`. Units are ranked by a digest of nonce, certificate
/// and unit, so neither their order nor what the builder wishes has any effect. Reused and compiled units are drawn
/// in proportion, and from two units on at least one of each.
///
/// # Errors
/// `E-CHALLENGE-EMPTY` if there is no unit: a challenge of nothing shows nothing.
pub fn sample(
    nonce: &Nonce,
    certificate_sha256: Digest,
    units: &[Unit<'_>],
    wanted: Wanted,
) -> Outcome<Vec<usize>> {
    if units.is_empty() {
        return Err(Failure::could_not_judge("E-CHALLENGE-EMPTY", "there is no unit to compile anew")
            .expected("at least one unit in the certificate")
            .found("none"));
    }
    let mut drawn = Vec::new();
    for stratum in strata(units, wanted) {
        let rank = |&index: &usize| (rank(nonce, certificate_sha256, &units[index]), index);
        let mut members = stratum.members;
        members.sort_by_cached_key(rank);
        drawn.extend_from_slice(&members[..stratum.drawn]);
    }
    drawn.sort_unstable();
    Ok(drawn)
}

/// Units among which a number is drawn, each as likely as any other.
struct Stratum {
    /// Indices of the units.
    members: Vec<usize>,
    /// How many of them are drawn; at most all.
    drawn: usize,
}

/// Reused and compiled units with the number that is drawn of each, or all in one where there is nothing to divide: a
/// single draw, or units of one kind.
fn strata(units: &[Unit<'_>], wanted: Wanted) -> Vec<Stratum> {
    let all = units.len();
    let count = match wanted {
        Wanted::All => all,
        Wanted::Count(count) => count.get().min(all),
    };
    let (reused, compiled): (Vec<usize>, Vec<usize>) = (0..all).partition(|&index| units[index].reused);
    if count < 2 || reused.is_empty() || compiled.is_empty() {
        return vec![Stratum { members: (0..all).collect(), drawn: count }];
    }
    // The nearest whole number to the share, halves up. As `count` is at most `all`, neither side exceeds its units.
    let share = (2 * count * reused.len() + all) / (2 * all);
    let share = share.clamp(1, count - 1);
    vec![Stratum { members: reused, drawn: share }, Stratum { members: compiled, drawn: count - share }]
}

/// The place of `unit` in the draw: SHA-256 over all that it depends on, each part length-prefixed.
fn rank(nonce: &Nonce, certificate_sha256: Digest, unit: &Unit<'_>) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(b"urn:requal:challenge:v1\0");
    for part in [&nonce.0, &certificate_sha256.as_bytes()[..], unit.tree.as_bytes(), unit.object.as_bytes()] {
        hasher.part(part);
    }
    hasher.finish()
}

impl FromStr for Nonce {
    type Err = Box<Failure>;

    /// # Errors
    /// `E-CHALLENGE-NONCE` (exit 2).
    fn from_str(text: &str) -> Outcome<Self> {
        let refuse = |found: String| {
            Failure::bad_input("E-CHALLENGE-NONCE", "the nonce cannot be used")
                .expected(format!("hexadecimal digits, two for each of at least {NONCE_BYTES_MIN} bytes"))
                .found(found)
                .hint("openssl rand -hex 32")
        };
        if let Some(other) = text.chars().find(|digit| !digit.is_ascii_hexdigit()) {
            return Err(refuse(format!("the character {other:?}")));
        }
        if !text.len().is_multiple_of(2) || text.len() < 2 * NONCE_BYTES_MIN {
            return Err(refuse(format!("{} digits", text.len())));
        }
        let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16);
        let bytes: Result<Vec<u8>, _> = (0..text.len()).step_by(2).map(byte).collect();
        bytes.map(Self).map_err(|error| refuse(error.to_string()))
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = || text.parse().map(Self::Count);
        if text == "all" { Ok(Self::All) } else { count().map_err(|_| refused_count(text)) }
    }
}

fn refused_count(text: &str) -> String {
    format!("`{text}` is neither `all` nor a number of units from 1 on")
}

#[cfg(test)]
mod tests;
