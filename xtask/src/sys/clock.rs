//! The clock's one door.

use jiff::Timestamp;

/// The present time in RFC 3339, UTC, whole seconds: `2026-01-31T12:00:00Z`.
#[expect(clippy::disallowed_methods, reason = "this is the clock's door")]
pub fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The present time in seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "this is the clock's door")]
pub fn unix_s() -> i64 {
    Timestamp::now().as_second()
}
