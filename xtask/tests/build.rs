//! build-runtime from end to end, with the real toolchain and the real sandbox, on small trees.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "build/again.rs"]
mod again;
#[path = "build/attacks.rs"]
mod attacks;
#[path = "build/judged.rs"]
mod judged;
#[path = "build/killed.rs"]
mod killed;
#[path = "kit/room.rs"]
mod kit;
#[path = "build/observed.rs"]
mod observed;
#[path = "build/reused.rs"]
mod reused;
#[path = "build/same.rs"]
mod same;
