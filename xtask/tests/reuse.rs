//! The reuse rule against the real nvcc and the real gcc, in the real room: whatever is answered "reuse" is compiled too.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "reuse/attacks.rs"]
mod attacks;
#[path = "reuse/bases.rs"]
mod bases;
#[path = "reuse/chance.rs"]
mod chance;
#[path = "reuse/court.rs"]
mod court;
#[path = "reuse/judged.rs"]
mod judged;
#[path = "reuse/kinds.rs"]
mod kinds;
#[path = "kit/room.rs"]
mod kit;
#[path = "reuse/mutations.rs"]
mod mutations;
#[path = "reuse/names.rs"]
mod names;
#[path = "reuse/place.rs"]
mod place;
#[path = "reuse/world.rs"]
mod world;
