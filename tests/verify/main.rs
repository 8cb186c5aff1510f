//! Records and their verification, end to end on a small build that lies on disk.

mod binary;
mod fixture;
mod records;
mod tampering;
