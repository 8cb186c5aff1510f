//! `cargo xtask …`: parse, dispatch, exit code.

mod sys;

fn main() {}
