//! `requal-worker`: the measured process.

fn main() {}
