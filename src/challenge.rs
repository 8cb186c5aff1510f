//! An auditor's challenge: which units are compiled again, how likely that shows a swapped object, and how an object that was
//! compiled again compares with the published one. Nothing is run here.

use std::fmt;
use std::str::FromStr;

use object::{Object as _, ObjectSection as _};
use serde::{Deserialize, Serialize};

use crate::digest::Hasher;
use crate::judge;
use crate::target::Target;
use crate::{Digest, Failure, Outcome};

/// Fewest bytes of a nonce: a producer must not be able to try them all before publishing.
const NONCE_BYTES: usize = 16;

/// The auditor's own random bytes, drawn after publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonce(String);

impl FromStr for Nonce {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !hex || text.len() % 2 != 0 || text.len() < 2 * NONCE_BYTES {
            return Err(format!(
                "at least {NONCE_BYTES} bytes in hexadecimal, such as `openssl rand -hex 16` gives"
            ));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How many units are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Every unit.
    All,
    /// This many, at least one.
    Count(usize),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            _ => match text.parse() {
                Ok(count) if count > 0 => Ok(Self::Count(count)),
                _ => Err("`all`, or a number from 1".to_owned()),
            },
        }
    }
}

/// A unit that may be drawn.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Name of its tree.
    pub tree: &'a str,
    /// Path of its object.
    pub object: &'a str,
    /// Whether its object was taken from another tree.
    pub reused: bool,
}

/// How many units of each kind there are and were drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Drawn {
    /// Units of the certificate.
    pub population: usize,
    /// Units that were drawn.
    pub sample: usize,
}

/// The drawn units, as ascending numbers of `units`: by rank of a hash over nonce, certificate and unit, in each of the two
/// kinds, reused and compiled, in proportion, and one of each at least where there are two to draw.
#[must_use]
pub fn sample(
    nonce: &Nonce,
    certificate_sha256: Digest,
    units: &[Candidate<'_>],
    wanted: Wanted,
) -> Vec<usize> {
    let rank = |i: usize| {
        let mut hasher = Hasher::new();
        hasher.update(b"urn:requal:challenge:v1\0");
        hasher.update(certificate_sha256.as_bytes());
        for part in [&nonce.0, units[i].tree, units[i].object] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finish()
    };
    let of_kind = |reused: bool| {
        let mut kind: Vec<usize> = (0..units.len()).filter(|i| units[*i].reused == reused).collect();
        kind.sort_by_key(|i| rank(*i));
        kind
    };
    let (reused, compiled) = (of_kind(true), of_kind(false));
    let (of_reused, of_compiled) = shares(reused.len(), compiled.len(), wanted);
    let mut drawn: Vec<usize> =
        reused.into_iter().take(of_reused).chain(compiled.into_iter().take(of_compiled)).collect();
    drawn.sort_unstable();
    drawn
}

/// How many of each kind are drawn.
fn shares(reused: usize, compiled: usize, wanted: Wanted) -> (usize, usize) {
    let all = reused + compiled;
    let count = match wanted {
        Wanted::All => all,
        Wanted::Count(count) => count.min(all),
    };
    if all == 0 || count == all {
        return (reused, compiled);
    }
    let least = usize::from(reused > 0 && (compiled == 0 || count > 1));
    let most = count - usize::from(compiled > 0 && count > 1);
    let share = (count * reused + all / 2) / all;
    let of_reused = share.clamp(least.min(most), most).min(reused);
    let of_compiled = (count - of_reused).min(compiled);
    (count - of_compiled, of_compiled)
}

/// The probability, in thousandths and rounded down, that at least one of `bad` objects is among those drawn, however the bad
/// ones lie in the two kinds: the worst case of 1 - product of C(population - bad, sample) / C(population, sample).
#[must_use]
pub fn detection_per_mille(kinds: [Drawn; 2], bad: usize) -> u32 {
    let [one, other] = kinds;
    let missed = |drawn: Drawn, bad: usize| -> f64 {
        if bad > drawn.population {
            return f64::NAN;
        }
        let left = |i: usize| (drawn.population - drawn.sample).saturating_sub(i) as f64;
        (0..bad).map(|i| left(i) / (drawn.population - i) as f64).product()
    };
    let worst = (0..=bad)
        .map(|here| missed(one, here) * missed(other, bad - here))
        .filter(|missed| !missed.is_nan())
        .fold(0.0_f64, f64::max);
    // Rounding up the chance to miss never claims too much.
    1000 - ((worst * 1000.0).ceil() as u32).min(1000)
}

/// How an object that was compiled again compares with the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum Grade {
    /// Every byte is the same.
    BitIdentical,
    /// Device code, host code and data are the same; names, ids or line tables differ.
    CodeIdentical,
    /// Something else differs, or could not be shown to be the same.
    Differs,
}

/// A grade and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graded {
    /// The grade.
    pub grade: Grade,
    /// Names of the sections that differ, sorted, each once.
    pub sections: Vec<String>,
}

/// Sections that hold names, ids, notes and line tables: no code and no data of a kernel.
const NO_CODE: [&str; 12] = [
    ".symtab",
    ".strtab",
    ".shstrtab",
    ".comment",
    ".note",
    ".debug",
    ".rela.debug",
    ".eh_frame",
    ".rela.eh_frame",
    ".nv_fatbin",
    "__nv_module_id",
    ".nvHostModuleId",
];

/// Compares the object at `path` (named in errors only) as it was published and as it was `rebuilt` for `targets`.
///
/// # Errors
/// `E-OBJECT-FORMAT`, `E-OBJECT-TARGETS`, `E-FATBIN*` if one of them is no object for these targets.
pub fn grade(path: &str, published: &[u8], rebuilt: &[u8], targets: &[Target]) -> Outcome<Graded> {
    if published == rebuilt {
        return Ok(Graded { grade: Grade::BitIdentical, sections: Vec::new() });
    }
    let device = |bytes| judge::object(path, bytes, targets);
    let same_device_code = device(published)? == device(rebuilt)?;
    let (one, other) = (sections(path, published)?, sections(path, rebuilt)?);
    let names: std::collections::BTreeSet<&String> = one.iter().chain(&other).map(|(name, _)| name).collect();
    let of = |all: &[(String, Vec<u8>)], name: &String| {
        all.iter().filter(|(own, _)| own == name).map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>()
    };
    let differing: Vec<String> =
        names.into_iter().filter(|name| of(&one, name) != of(&other, name)).cloned().collect();
    let code = differing.iter().any(|name| !NO_CODE.iter().any(|begin| name.starts_with(begin)));
    let grade = if same_device_code && !code { Grade::CodeIdentical } else { Grade::Differs };
    Ok(Graded { grade, sections: differing })
}

fn sections(path: &str, bytes: &[u8]) -> Outcome<Vec<(String, Vec<u8>)>> {
    let fault = |error: object::Error| {
        Failure::refused("E-OBJECT-FORMAT", format!("{path} is no ELF file")).found(error)
    };
    let file = object::File::parse(bytes).map_err(fault)?;
    let section = |section: object::Section<'_, '_>| {
        Ok((section.name().map_err(fault)?.to_owned(), section.data().map_err(fault)?.to_vec()))
    };
    file.sections().map(section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(reused: usize, compiled: usize) -> Vec<(String, bool)> {
        (0..reused + compiled).map(|i| (format!("u{i}.o"), i < reused)).collect()
    }

    fn draw(reused: usize, compiled: usize, wanted: Wanted, nonce: &str) -> (usize, usize) {
        let all = units(reused, compiled);
        let candidates: Vec<_> =
            all.iter().map(|(object, reused)| Candidate { tree: "t", object, reused: *reused }).collect();
        let drawn = sample(&nonce.parse().unwrap(), Digest::of(b"c"), &candidates, wanted);
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
        let of_reused = drawn.iter().filter(|i| candidates[**i].reused).count();
        (of_reused, drawn.len() - of_reused)
    }

    const NONCE: &str = "00112233445566778899aabbccddeeff";

    #[test]
    fn both_kinds_are_drawn_in_proportion() {
        let cases = [
            ((25, 77), Wanted::All, (25, 77)),
            ((25, 77), Wanted::Count(200), (25, 77)),
            ((25, 77), Wanted::Count(4), (1, 3)),
            ((1, 100), Wanted::Count(2), (1, 1)),
            ((100, 1), Wanted::Count(2), (1, 1)),
            ((0, 5), Wanted::Count(3), (0, 3)),
            ((5, 0), Wanted::Count(3), (3, 0)),
            ((50, 50), Wanted::Count(10), (5, 5)),
        ];
        for ((reused, compiled), wanted, expected) in cases {
            assert_eq!(draw(reused, compiled, wanted, NONCE), expected, "{reused} {compiled} {wanted:?}");
        }
    }

    #[test]
    fn another_nonce_or_certificate_draws_others() {
        let all = units(0, 100);
        let candidates: Vec<_> =
            all.iter().map(|(object, reused)| Candidate { tree: "t", object, reused: *reused }).collect();
        let draw = |nonce: &str, certificate: &[u8]| {
            sample(&nonce.parse().unwrap(), Digest::of(certificate), &candidates, Wanted::Count(10))
        };
        let other = NONCE.replace("00", "01");
        assert_eq!(draw(NONCE, b"c"), draw(&NONCE.to_uppercase(), b"c"));
        assert_ne!(draw(NONCE, b"c"), draw(&other, b"c"));
        assert_ne!(draw(NONCE, b"c"), draw(NONCE, b"d"));
        for refused in ["", "00", "0011223344556677889gaabbccddeeff", &NONCE[1..]] {
            assert!(refused.parse::<Nonce>().is_err(), "{refused}");
        }
        assert!("0".parse::<Wanted>().is_err());
    }

    #[test]
    fn the_power_is_the_worst_over_where_the_bad_ones_lie() {
        let kind = |population, sample| Drawn { population, sample };
        // One bad of ten, five drawn: one half. Two bad of ten, five drawn: 1 - (5·4)/(10·9) = 7/9.
        assert_eq!(detection_per_mille([kind(10, 5), kind(0, 0)], 1), 500);
        assert_eq!(detection_per_mille([kind(10, 5), kind(0, 0)], 2), 777);
        // Where all are drawn none is missed; the worst place for a bad one is the other kind.
        assert_eq!(detection_per_mille([kind(10, 10), kind(10, 1)], 1), 100);
        assert_eq!(detection_per_mille([kind(10, 10), kind(10, 10)], 1), 1000);
        assert_eq!(detection_per_mille([kind(3, 3), kind(0, 0)], 5), 1000);
    }
}
