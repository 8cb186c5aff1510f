//! Rules of the repository that no compiler checks: sizes of files, first sentences, names, where `unsafe` may stand, and
//! that README, gate and reality name the same commands.

#![expect(clippy::unwrap_used, reason = "a broken repository fails the test")]

use std::path::{Path, PathBuf};

use walkdir::WalkDir;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<(String, String)> {
    let folders = ["src", "xtask", "worker", "tests"];
    let files = folders.iter().flat_map(|folder| WalkDir::new(root().join(folder))).map(Result::unwrap);
    let rust = files.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "rs"));
    let read = |path: &Path| {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        (name, fs_err::read_to_string(path).unwrap())
    };
    rust.map(|entry| read(entry.path())).collect()
}

#[test]
fn files_are_small_and_say_what_they_are() {
    let mut faults = Vec::new();
    for (name, text) in sources() {
        let lines = text.lines().count();
        if lines > 400 {
            faults.push(format!("{name} has {lines} lines, more than 400"));
        }
        if !text.starts_with("//! ") {
            faults.push(format!("{name} does not open with a sentence"));
        }
        let stem = Path::new(&name).file_stem().unwrap().to_str().unwrap().to_owned();
        if ["util", "utils", "helper", "helpers", "common", "misc", "manager"].contains(&stem.as_str()) {
            faults.push(format!("{name} is named after nothing"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn unsafe_stands_only_where_a_system_call_needs_it() {
    let allowed = |name: &str| name.starts_with("worker/") || name.starts_with("xtask/src/sys/");
    let word = concat!("unsa", "fe ");
    let uses = |text: &str| {
        text.lines().any(|line| line.trim_start().starts_with(word) || line.contains(&format!("= {word}")))
    };
    let faults: Vec<String> = sources()
        .into_iter()
        .filter(|(name, text)| !allowed(name) && uses(text))
        .map(|(name, _)| name)
        .collect();
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn the_gate_runs_what_the_readme_says() {
    let read = |path: &str| fs_err::read_to_string(root().join(path)).unwrap();
    let (readme, gate) = (read("README.md"), read(".ci/run"));
    assert!(readme.contains("\ncargo xtask qualify --scratch scratch "), "README's main job");
    assert!(readme.contains("\ncargo test "), "README's test command");
    assert!(gate.contains("\ncargo xtask qualify --scratch "), "the gate's main job");
    assert!(gate.contains("\ncargo test "), "the gate's test command");
}
