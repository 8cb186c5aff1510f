//! The doors to the outside: each effect has one module here, and only `unsafe` that a system call needs.

pub mod clock;
pub mod env;
pub mod fs;
pub mod interrupt;
pub mod layout;
pub mod limits;
pub mod proc;
pub mod random;
pub mod sandbox;
pub mod scratch;
pub mod trace;
pub mod user;
