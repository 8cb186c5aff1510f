//! Everything that builder and auditor must agree on: records, digests, canonical JSON, grammars, decisions,
//! verification. It is handed bytes, or opens files read-only; it starts no process, opens no socket, reads
//! neither clock nor environment.
#![forbid(unsafe_code)]

pub mod certificate;
pub mod challenge;
pub mod closure;
pub mod command;
pub mod depfile;
pub mod digest;
pub mod explain;
pub mod explain_command;
pub mod failure;
pub mod fatbin;
pub mod grammar;
pub mod gzip;
pub mod json;
pub mod judge;
pub mod limits;
pub mod lock;
pub mod manifest;
pub mod observation;
pub mod parallel;
pub mod plan;
pub mod ptxas;
pub mod receipt;
pub mod reuse;
pub mod runtime_md;
pub mod schema;
pub mod target;
pub mod tree;
pub mod unit;
pub mod verify;
pub mod verify_command;
pub mod versions;
pub mod wheel;

pub use digest::Digest;
pub use failure::{Exit, Failure, Failures, Outcome};
