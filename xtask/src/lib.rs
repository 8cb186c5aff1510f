//! The stages of `cargo xtask …`: each turns records into a record.

pub mod fetch;
pub mod lock_command;
pub mod progress;
pub mod sys;
pub mod unpack;
