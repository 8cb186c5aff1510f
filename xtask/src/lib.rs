//! The stages of the orchestrator, each turning records into a record, and the doors to the outside.

pub mod doctor;
pub mod host_compiler;
pub mod preflight;
pub mod sys;
