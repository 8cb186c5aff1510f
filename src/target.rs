//! GPU targets: machine code (`sm_86`) or PTX (`compute_86`), as nvcc names them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that a fat binary may hold: machine code of, or PTX for, one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^(sm|compute)_[0-9]{2,3}$"))]
pub enum Target {
    /// Machine code for compute capability × 10, such as 86.
    MachineCode(u32),
    /// PTX for compute capability × 10.
    Ptx(u32),
}

impl Target {
    /// Compute capability × 10, such as 86 for 8.6.
    #[must_use]
    pub fn capability(self) -> u32 {
        match self {
            Self::MachineCode(capability) | Self::Ptx(capability) => capability,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MachineCode(capability) => write!(f, "sm_{capability}"),
            Self::Ptx(capability) => write!(f, "compute_{capability}"),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    /// Only plain numbers are read: `native`, `all` and the variants `sm_90a` and `sm_100f` name no one thing that a fat
    /// binary can be compared with.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| match digits.as_bytes() {
            [b'1'..=b'9', rest @ ..]
                if (1..=2).contains(&rest.len()) && rest.iter().all(u8::is_ascii_digit) =>
            {
                digits.parse().ok()
            }
            _ => None,
        };
        let machine = text.strip_prefix("sm_").and_then(number).map(Self::MachineCode);
        let ptx = || text.strip_prefix("compute_").and_then(number).map(Self::Ptx);
        machine.or_else(ptx).ok_or_else(|| format!("`{text}` is not a target such as sm_86 or compute_86"))
    }
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

/// The `-gencode` arguments of nvcc that yield exactly `targets`: one for each architecture, ascending.
#[must_use]
pub fn gencode(targets: &[Target]) -> Vec<String> {
    let mut capabilities: Vec<u32> = targets.iter().map(|target| target.capability()).collect();
    capabilities.sort_unstable();
    capabilities.dedup();
    let argument = |capability: u32| {
        let mut codes: Vec<Target> =
            targets.iter().copied().filter(|t| t.capability() == capability).collect();
        codes.sort_unstable();
        codes.dedup();
        let codes: Vec<String> = codes.iter().map(Target::to_string).collect();
        format!("-gencode=arch=compute_{capability},code=[{}]", codes.join(","))
    };
    capabilities.into_iter().map(argument).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_open_names_are_refused() {
        for text in ["sm_86", "compute_86", "sm_100"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        for text in ["native", "sm_90a", "sm_", "sm_086", "sm_8", "sm_+86", "SM_86", "compute_1000", "86"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    #[test]
    fn gencode_does_not_depend_on_order() {
        let targets = |texts: &[&str]| texts.iter().map(|t| t.parse().unwrap()).collect::<Vec<Target>>();
        let expected =
            ["-gencode=arch=compute_86,code=[sm_86,compute_86]", "-gencode=arch=compute_90,code=[sm_90]"];
        assert_eq!(gencode(&targets(&["sm_90", "compute_86", "sm_86"])), expected);
        assert_eq!(gencode(&targets(&["sm_86", "sm_86", "compute_86", "sm_90"])), expected);
    }
}
