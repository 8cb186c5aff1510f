//! Every error code in the sources is documented, and every documented one is in the sources.

use std::collections::BTreeSet;

fn root(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Every code in the sources is a row of docs/errors.md, and every row is a code in the sources.
#[test]
fn error_codes_are_documented() {
    let code = |text: &str| {
        let end = text
            .find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-'))
            .unwrap_or(text.len());
        text[..end].to_owned()
    };
    let mut used = BTreeSet::new();
    for folder in ["src", "xtask/src", "worker/src"] {
        for entry in walkdir::WalkDir::new(root(folder)) {
            let path = entry.unwrap().into_path();
            if path.extension().is_some_and(|end| end == "rs")
                && !path.to_string_lossy().ends_with("tests.rs")
            {
                let text = fs_err::read_to_string(&path).unwrap();
                // Tests stand at the end of a file, or in one of their own.
                let text = text.split("#[cfg(test)]").next().unwrap_or_default();
                used.extend(text.split('"').filter(|part| part.starts_with("E-")).map(code));
            }
        }
    }
    let page = fs_err::read_to_string(root("docs/errors.md")).unwrap();
    let rows: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("| `")).map(code).collect();
    let listed: BTreeSet<_> = rows.iter().cloned().collect();
    assert_eq!(rows.len(), listed.len(), "a code has two rows");
    assert_eq!(used.difference(&listed).collect::<Vec<_>>(), Vec::<&String>::new(), "undocumented");
    assert_eq!(listed.difference(&used).collect::<Vec<_>>(), Vec::<&String>::new(), "documented but unused");
}
