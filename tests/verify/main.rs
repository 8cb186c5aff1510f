//! Records and their verification, end to end on a small build that lies on disk.
#![expect(clippy::unwrap_used, reason = "helpers of tests stand outside test functions")]

mod binary;
mod certified;
mod contents;
mod edit;
mod elf;
mod fixture;
#[path = "../kit/mod.rs"]
mod kit;
mod manifest;
mod object_reuse;
mod records;
mod sources;
mod sweep;
mod tampering;
