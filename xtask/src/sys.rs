//! The doors to the outside: each effect has one module here, and only `unsafe` that a system call needs.

pub mod clock;
pub mod env;
pub mod fs;
pub mod proc;
