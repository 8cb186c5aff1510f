//! `cargo xtask …`: parse, dispatch, exit code.

fn main() {}
