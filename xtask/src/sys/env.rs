//! The environment's one door.

use std::collections::BTreeMap;

/// The whole environment of this process, as far as it is UTF-8.
#[must_use]
pub fn all() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
