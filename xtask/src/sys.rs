//! The doors to the outside: each effect has one module here, and only `unsafe` that a system call needs.

pub(crate) mod clock;
pub(crate) mod fs;
pub(crate) mod proc;
