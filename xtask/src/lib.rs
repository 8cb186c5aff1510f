//! The stages of the orchestrator, each turning records into a record, and the doors to the outside.

pub mod compile;
pub mod ninja;
pub mod sys;
pub mod trees;
pub mod wrap;
