//! What pip's words mean: which kind of fault, and what to do next.

use camino::Utf8Path;
use requal::lock::Package;
use requal::{Exit, Failure, Outcome};

/// A kind of fault: any of these words in pip's output, the code, what it means, what to do.
struct Kind {
    words: &'static [&'static str],
    code: &'static str,
    what: &'static str,
    hint: &'static str,
}

/// In the order of judging: the first whose words occur. A refused connection also ends with "no matching distribution".
const KINDS: [Kind; 6] = [
    Kind {
        words: &["No module named pip"],
        code: "E-PIP-MISSING",
        what: "this Python has no pip to fetch",
        hint: "install python3-pip, or give a folder of wheels by --wheelhouse",
    },
    Kind {
        words: &["DO NOT MATCH THE HASHES", "Hashes are required", "HashMismatch"],
        code: "E-FETCH-HASH",
        what: "the index gives other bytes than the pinned ones for",
        hint: "cargo xtask lock --check",
    },
    Kind {
        words: &[
            "IncompleteRead",
            "Connection broken",
            "ProtocolError",
            "RemoteDisconnected",
            "ConnectionResetError",
            "incomplete-download",
        ],
        code: "E-FETCH-CUT",
        what: "the connection was cut while fetching",
        hint: "run the same command again: only this wheel is fetched anew",
    },
    Kind {
        words: &[
            "NewConnectionError",
            "ConnectTimeoutError",
            "ReadTimeoutError",
            "Read timed out",
            "NameResolutionError",
            "ProxyError",
            "SSLError",
            "Max retries exceeded",
            "Network is unreachable",
            "name resolution",
        ],
        code: "E-FETCH-NETWORK",
        what: "the index could not be reached to fetch",
        hint: "check pip's index, proxy and certificate settings (pip config list), or use --wheelhouse",
    },
    Kind {
        words: &["No space left on device", "Disk quota exceeded"],
        code: "E-FETCH-SPACE",
        what: "the disk is full while fetching",
        hint: "free some space, or take another --scratch",
    },
    Kind {
        words: &["No matching distribution found", "Could not find a version"],
        code: "E-FETCH-ABSENT",
        what: "the index has no such file for",
        hint: "cargo xtask lock --check",
    },
];

/// The refusal for a pip that ended with `output`, which is kept in `log`.
pub(super) fn of(package: &Package, output: &str, log: &Utf8Path, scratch: &Utf8Path) -> Box<Failure> {
    let kind = KINDS.iter().find(|kind| kind.words.iter().any(|word| output.contains(word)));
    let (code, what, hint) =
        kind.map_or(("E-FETCH-PIP", "pip failed to fetch", "read the log"), |k| (k.code, k.what, k.hint));
    let found = last_words(output);
    let hint = format!("{hint}; pip's words are in {log}, wheels in {}", scratch.join("wheels"));
    // Other bytes than the pinned ones are a judgement; everything else is none.
    let exit = if code == "E-FETCH-HASH" { Exit::Refused } else { Exit::CouldNotJudge };
    Failure::new(exit, code, format!("{what} {} {}", package.name, package.version))
        .expected(format!("{}, SHA-256 {}", package.file, package.sha256))
        .found(found)
        .hint(hint)
}

/// What pip says from its first error on, or its last lines if it names none; at most six lines.
fn last_words(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let error = lines.iter().position(|line| line.starts_with("ERROR"));
    let from = error.unwrap_or(lines.len().saturating_sub(6));
    lines[from..lines.len().min(from + 6)].join("\n")
}

/// Whether a fault may be gone when the download starts over without a cache.
pub(super) fn worth_another_try(code: &str) -> bool {
    matches!(code, "E-FETCH-HASH" | "E-FETCH-CUT" | "E-LOCK-SIZE" | "E-HASH-WHEEL")
}

/// The reason for which the index withdrew the release that pip took; empty if it gave none.
pub(super) fn yanked(output: &str) -> Option<String> {
    output.contains("is a yanked version").then(|| {
        let reason = output.lines().find_map(|line| line.split("Reason for being yanked:").nth(1));
        reason.map(str::trim).filter(|reason| *reason != "<none given>").unwrap_or_default().to_owned()
    })
}

/// The same judgement for a pip that was asked about the lock instead of for one file.
pub(crate) fn asked(
    package: &Package,
    code: i32,
    output: &str,
    log: &Utf8Path,
    scratch: &Utf8Path,
) -> Outcome<()> {
    if code == 0 { Ok(()) } else { Err(of(package, output, log, scratch)) }
}
