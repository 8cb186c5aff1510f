//! Records and their verification, end to end on a small build that lies on disk.
#![expect(clippy::unwrap_used, reason = "helpers of tests stand outside test functions")]

mod binary;
mod fixture;
mod records;
mod tampering;
