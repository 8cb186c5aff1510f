//! The forms that a lock must not have, and the one that it has.

use super::*;

const GOOD: &str = include_str!("../../toolchain.lock");

/// The code of the first refusal of `text` and the line it names.
fn refusal(text: &str) -> (&'static str, String) {
    let failure = Lock::parse("toolchain.lock", text).unwrap_err();
    let line = failure.what.split(':').nth(1).unwrap_or_default().to_owned();
    (failure.code, line)
}

#[test]
fn the_committed_lock_is_canonical_and_pins_six_wheels() {
    let lock = Lock::parse("toolchain.lock", GOOD).unwrap();
    assert_eq!(lock.to_text(), GOOD);
    assert_eq!(lock.packages.len(), 6);
    let nvvm = lock.package("nvidia-nvvm").unwrap();
    assert_eq!(nvvm.tags().platforms, ["manylinux2010_x86_64", "manylinux_2_12_x86_64"]);
    assert_eq!((nvvm.tags().pythons, nvvm.tags().abis), (vec!["py3".to_owned()], vec!["none".to_owned()]));
    assert!(GOOD.lines().nth(nvvm.line - 1).unwrap().contains("[[package]]"));
}

#[test]
fn t037_a_second_hash_is_refused_in_every_form() {
    let one = "sha256 = \"65a24341b5ac09fcadcc37082660be40a94174e51a937fabf6e2cae26225fa2c\"";
    assert!(GOOD.contains(one));
    let hash = one.trim_start_matches("sha256 = ");
    let table = GOOD.split("\n\n").nth(1).unwrap();
    for text in [
        GOOD.replace(one, &format!("{one}\n{one}")),
        GOOD.replace(one, &format!("sha256 = [{hash}, {hash}]")),
        GOOD.replace(one, &format!("sha256 = {}", hash.replace("fa2c", "fa2c,65a24341"))),
        GOOD.replace(table, &format!("{table}\n\n{}", table.replace("65a2", "65a3"))),
    ] {
        assert_eq!(refusal(&text).0, "E-LOCK-MULTI", "{text}");
    }
}

#[test]
fn each_odd_form_is_refused_with_its_line() {
    for (from, to, code, line) in [
        ("version = 1\n", "version = 2\n", "E-LOCK-VERSION", "3"),
        ("name = \"ninja\"", "name = \"Ninja\"", "E-LOCK-NAME", "6"),
        ("1.13.2\"", ">=1.13\"", "E-LOCK-NAME", "7"),
        ("file = \"ninja-1.13.2", "file = \"ninja-1.13.3", "E-LOCK-FILE", "8"),
        ("x86_64.whl\"\nsize_bytes = 183365", "x86_64.zip\"\nsize_bytes = 183365", "E-LOCK-FILE", "8"),
        ("file = \"ninja-", "file = \"../ninja-", "E-LOCK-FILE", "8"),
        ("183365", "0", "E-LOCK-SIZE", "9"),
        ("183365", "-1", "E-LOCK-SYNTAX", "9"),
        ("65a2434", "65A2434", "E-LOCK-SYNTAX", "10"),
        ("role = \"ninja\"", "role = \"tool\"", "E-LOCK-SYNTAX", "11"),
        ("role = \"ninja\"", "role = \"ninja\"\nhashes = []", "E-LOCK-SYNTAX", "12"),
        ("name = \"ninja\"", "", "E-LOCK-SYNTAX", "5"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        assert_eq!(refusal(&GOOD.replacen(from, to, 1)), (code, line.to_owned()), "{to}");
    }
    assert_eq!(refusal("version = 1\n").0, "E-LOCK-EMPTY");
    let mut packages: Vec<_> = GOOD.split("\n\n").collect();
    packages.swap(1, 2);
    assert_eq!(refusal(&packages.join("\n\n")).0, "E-LOCK-ORDER");
}

#[test]
fn independent_faults_are_reported_together() {
    let text =
        GOOD.replacen("183365", "0", 1).replacen("name = \"nvidia-nvvm\"", "name = \"nvidia_nvvm\"", 1);
    let failure = Lock::parse("toolchain.lock", &text).unwrap_err();
    assert_eq!(failure.related.len(), 1, "{failure}");
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(at in 0..GOOD.len(), cut in 0usize..40, put in "[\\PC\"\n=\\[\\]]{0,8}") {
        let (start, end) = (at.min(GOOD.len()), (at + cut).min(GOOD.len()));
        let text = format!("{}{put}{}", &GOOD[..start], &GOOD[end..]);
        if let Ok(lock) = Lock::parse("toolchain.lock", &text) {
            let again = Lock::parse("toolchain.lock", &lock.to_text()).unwrap();
            proptest::prop_assert_eq!(lock.packages.len(), again.packages.len());
        }
    }
}
