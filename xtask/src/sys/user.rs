//! Who runs this.

/// Whether the effective user is user 0.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
