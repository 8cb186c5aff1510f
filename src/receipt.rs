//! `runtime-build.json`: an in-toto Statement v1 whose predicate parts what is equal between equal builds (`build`)
//! from what may differ (`run`).

mod build;
mod run;
mod sources;
mod text;

pub use build::{
    Build, CertificateFile, Claim, Decision, Input, Kernel, Limitation, LoadCheck, LoadResult, Module, Place,
    Reason, Root, Scope, Tool, Unit, Variable,
};
pub use run::{Artifact, Attempt, Run, RunLimits, SandboxMode, SandboxRun, User};
pub use sources::{
    ComponentVersion, HostCompiler, NamedFile, OverlayChange, OverlayRecord, Program, Toolchain, TreeRecord,
    WheelRow,
};
pub(crate) use text::checked_path;
pub use text::{LinkText, Name, PUBLIC_PLACES, RelativePath, Symbol, Time, Token};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Digest, json};

/// File name of the receipt in a receipts folder.
pub const FILE: &str = "runtime-build.json";
/// The only statement type (in-toto attestation specification, Statement v1).
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The predicate type of this record; its last part is the format's version.
pub const PREDICATE_TYPE: &str = "urn:requal:runtime-build:v1";
/// The variables that a compile may see, four of them limits of threads; any other could change code.
pub const ENVIRONMENT: [&str; 9] = [
    "LC_ALL",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PATH",
    "RAYON_NUM_THREADS",
    "SOURCE_DATE_EPOCH",
    "TMPDIR",
    "TZ",
];

/// The receipt of one build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuntimeBuild {
    /// Always [`STATEMENT_TYPE`].
    #[serde(rename = "_type")]
    pub statement_type: StatementType,
    /// Always [`PREDICATE_TYPE`].
    #[serde(rename = "predicateType")]
    pub predicate_type: PredicateType,
    /// The modules, in the order of `predicate.build.modules`.
    pub subject: Vec<Subject>,
    /// What is said about the modules.
    pub predicate: Predicate,
}

/// The statement's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StatementType {
    /// in-toto Statement v1.
    #[serde(rename = "https://in-toto.io/Statement/v1")]
    StatementV1,
}

/// The predicate's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PredicateType {
    /// Version 1 of the build receipt.
    #[serde(rename = "urn:requal:runtime-build:v1")]
    RuntimeBuildV1,
}

/// One thing that the statement is about: a module file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// File name of the module.
    pub name: RelativePath,
    /// Its digest.
    pub digest: DigestSet,
}

/// The in-toto digest set with the one algorithm that is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DigestSet {
    /// SHA-256 of the whole file.
    pub sha256: Digest,
}

/// The two parts of the receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Predicate {
    /// Equal between two builds of equal inputs.
    pub build: Build,
    /// May differ between two builds of equal inputs.
    pub run: Run,
}

impl RuntimeBuild {
    /// The receipt of `build`; its subjects are the build's modules.
    #[must_use]
    pub fn new(build: Build, run: Run) -> Self {
        let subject = build
            .modules
            .iter()
            .map(|module| Subject { name: module.file.clone(), digest: DigestSet { sha256: module.sha256 } })
            .collect();
        Self {
            statement_type: StatementType::StatementV1,
            predicate_type: PredicateType::RuntimeBuildV1,
            subject,
            predicate: Predicate { build, run },
        }
    }
}

/// JSON pointers of everything outside `/predicate/run` in which two receipts differ: empty if and only if they are
/// receipts of equal builds. A pointer stands for itself and all below it.
#[must_use]
pub fn differences(a: &RuntimeBuild, b: &RuntimeBuild) -> Vec<String> {
    let value = |receipt: &RuntimeBuild| {
        let mut value = serde_json::to_value(receipt).unwrap_or_default();
        if let Some(predicate) = value.pointer_mut("/predicate").and_then(Value::as_object_mut) {
            predicate.remove("run");
        }
        value
    };
    let mut found = Vec::new();
    compare(&value(a), &value(b), &mut String::new(), &mut found);
    found
}

fn compare(a: &Value, b: &Value, pointer: &mut String, found: &mut Vec<String>) {
    let mut step = |key: String, a: Option<&Value>, b: Option<&Value>| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&json::escaped(&key));
        match (a, b) {
            (Some(a), Some(b)) => compare(a, b, pointer, found),
            _ => found.push(pointer.clone()),
        }
        pointer.truncate(length);
    };
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let only_b = b.keys().filter(|key| !a.contains_key(*key));
            a.keys().chain(only_b).for_each(|key| step(key.clone(), a.get(key), b.get(key)));
        }
        (Value::Array(a), Value::Array(b)) => {
            (0..a.len().max(b.len())).for_each(|i| step(i.to_string(), a.get(i), b.get(i)));
        }
        _ if a == b => {}
        _ => found.push(pointer.clone()),
    }
}
