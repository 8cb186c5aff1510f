//! Everything that builder and auditor must agree on: records, digests, canonical JSON, grammars, decisions,
//! verification. It is handed bytes, or opens files read-only; it starts no process, opens no socket, reads
//! neither clock nor environment.
#![forbid(unsafe_code)]

pub mod digest;
pub mod failure;
pub mod json;
pub mod limits;
pub mod lock;
pub mod receipt;
pub mod runtime_md;
pub mod schema;
pub mod tree;
pub mod verify;

pub use digest::Digest;
pub use failure::{Exit, Failure, Outcome};
