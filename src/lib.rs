//! Everything that builder and auditor must agree on: records, digests, canonical JSON, grammars, decisions,
//! verification. It is handed bytes, or opens files read-only; it starts no process, opens no socket, reads
//! neither clock nor environment.
#![forbid(unsafe_code)]

pub mod digest;
pub mod failure;
pub mod lock;
pub mod parallel;
pub mod tree;
pub mod wheel;

pub use digest::Digest;
pub use failure::{Exit, Failure, Failures, Outcome};
