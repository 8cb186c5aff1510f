//! The environment's door: which of the user's settings reach a child, and where tools are found.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use requal::{Failure, Outcome};

/// Environment variables by name.
pub type Variables = BTreeMap<String, String>;

/// What pip may be told by its user: index, mirrors, credentials, proxies, certificates, patience. Nothing that says where
/// files go or which files count.
const PIP_SETTINGS: [&str; 31] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "NETRC",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_CONFIG_FILE",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_KEYRING_PROVIDER",
    "PIP_NO_INDEX",
    "PIP_PROXY",
    "PIP_RETRIES",
    "PIP_TIMEOUT",
    "PIP_TRUSTED_HOST",
    "PIP_USE_FEATURE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "ALL_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// The whole environment, as far as it is UTF-8.
#[must_use]
pub fn all() -> Variables {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The user's settings that pip is given.
#[must_use]
pub fn pip_settings() -> Variables {
    all().into_iter().filter(|(name, _)| PIP_SETTINGS.contains(&name.as_str())).collect()
}

/// The program called `name` on the user's PATH.
///
/// # Errors
/// `E-TOOL-MISSING` (exit 3).
pub fn tool(name: &str) -> Outcome<Utf8PathBuf> {
    let missing = |found: String| {
        Failure::could_not_judge("E-TOOL-MISSING", format!("{name} is not on PATH"))
            .found(found)
            .hint("cargo xtask doctor")
    };
    let path = which::which(name).map_err(|error| missing(error.to_string()))?;
    Utf8PathBuf::from_path_buf(path)
        .map_err(|path| missing(format!("{}, which is not UTF-8", path.display())))
}
