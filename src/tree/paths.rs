//! Paths that a file system could take for one another.

use std::collections::BTreeMap;

/// What a set of file paths implies for one lower-case spelling.
struct Seen<'a> {
    path: &'a str,
    folder: bool,
}

/// Pairs among file paths that cannot stand beside each other: two that differ in letter case only (folders included), or
/// a file that is another one's folder. Each pair is given as (met before, met now); equal paths are no pair.
pub fn second_spelling<'a>(files: impl Iterator<Item = &'a str>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut seen: BTreeMap<String, Seen<'a>> = BTreeMap::new();
    files.filter_map(move |path| {
        let folders = path.match_indices('/').map(|(end, _)| (&path[..end], true));
        let mut clash = None;
        for (part, folder) in folders.chain([(path, false)]) {
            let first = seen.entry(part.to_ascii_lowercase()).or_insert(Seen { path: part, folder });
            if first.path != part || first.folder != folder {
                clash.get_or_insert((first.path, part));
            }
        }
        clash
    })
}

#[cfg(test)]
mod tests {
    use super::second_spelling;

    #[test]
    fn clashes_are_found_and_equal_paths_are_none() {
        let pairs = |paths: &[&'static str]| second_spelling(paths.iter().copied()).collect::<Vec<_>>();
        assert_eq!(pairs(&["a/x", "a/y", "a/x", "b"]), []);
        assert_eq!(pairs(&["a/x", "a/X"]), [("a/x", "a/X")]);
        assert_eq!(pairs(&["a/x", "A/y"]), [("a", "A")]);
        assert_eq!(pairs(&["a", "a/x"]), [("a", "a")]);
        assert_eq!(pairs(&["a/x", "a"]), [("a", "a")]);
    }
}
