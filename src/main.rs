//! The small binary `requal`: verify, explain, report; all that needs no toolchain.

fn main() {}
