//! The stages of `cargo xtask …`, each turning records into a record, and the doors to the outside.

pub mod attempts;
pub mod build_runtime;
pub mod challenge;
pub mod cli;
pub mod compile;
pub mod doctor;
pub mod fetch;
pub mod host_compiler;
pub mod load;
pub mod lock_command;
pub mod ninja;
pub mod preflight;
pub mod progress;
pub mod qualify;
pub mod say;
pub mod sys;
pub mod trees;
pub mod unpack;
pub mod worker;
pub mod wrap;
