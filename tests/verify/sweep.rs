//! No single changed byte of a receipt or a certificate passes, but where a list says that it may and why.

use std::collections::BTreeSet;

use requal::certificate::ObjectReuse;
use requal::receipt::RuntimeBuild;
use requal::verify::{Level, Request, verify};
use requal::{Exit, gzip, json};
use serde_json::Value;

use crate::certified::Certified;
use crate::fixture::put;

/// One neighbour, and the other case of a letter.
const BITS: [u8; 2] = [0x01, 0x20];

/// Facts of the receipt that one changed byte can make others and that leave no trace in what level 2 looks at: the
/// producer's word. `*` stands for any one part.
const RECEIPT: [&str; 14] = [
    "/predicate/run/session",
    "/predicate/run/started_on",
    "/predicate/run/finished_on",
    "/predicate/run/replaced_environment/0",
    "/predicate/run/limits/applied/nice",
    "/predicate/run/limits/applied/inherited/open_files",
    // How the certificate was compressed says nothing; another digest is warned of.
    "/predicate/run/certificate/sha256",
    "/predicate/run/certificate/size_bytes",
    "/predicate/build/tool/name",
    "/predicate/build/tool/version",
    "/predicate/build/versions/0/component",
    "/predicate/build/versions/0/version",
    "/predicate/build/host_compiler/version",
    "/predicate/build/units/*/kernels/*/*",
];

/// The same of the certificate: what was looked for and not found is the observation's word, which a compile under
/// observation alone can show, and so is what is told of folders and times of the builder's machine.
const CERTIFICATE: [&str; 3] = ["/predicate/absent/*", "/predicate/files/6/mtime_s", "/predicate/folders/1"];

#[test]
fn t101_no_changed_byte_of_a_receipt_passes_but_in_the_producers_word() {
    assert_listed(&RECEIPT, &on_all_cores(receipt));
}

#[test]
fn t101_no_changed_byte_of_a_certificate_passes_but_in_the_machines_word() {
    assert_listed(&CERTIFICATE, &on_all_cores(certificate));
}

/// A changed byte of the file either spoils it, or is another coding of the same text.
#[test]
fn t101_no_changed_byte_of_a_compressed_certificate_gives_another_text() {
    let certified = Certified::small();
    let (bytes, text) = (fs_err::read(certified.file()).unwrap(), certified.text());
    for (at, bit) in (0..bytes.len()).flat_map(|at| BITS.map(|bit| (at, bit))) {
        let mut changed = bytes.clone();
        changed[at] ^= bit;
        if let Ok(found) = gzip::read(&changed, json::LONGEST_BYTES) {
            assert_eq!(found, text, "byte {at} ^ {bit:#x}");
            continue;
        }
        put(&certified.file(), &changed);
        assert_eq!(certified.fixture.verdict(1).unwrap().exit(), Exit::Refused, "byte {at} ^ {bit:#x}");
    }
}

/// Every pattern has a place, and every place a pattern.
fn assert_listed(patterns: &[&str], neutral: &BTreeSet<String>) {
    let unnamed: Vec<_> =
        neutral.iter().filter(|place| !patterns.iter().any(|pattern| fits(pattern, place))).collect();
    assert_eq!(unnamed, Vec::<&String>::new(), "a changed byte passes here");
    let idle: Vec<_> =
        patterns.iter().filter(|pattern| !neutral.iter().any(|place| fits(pattern, place))).collect();
    assert_eq!(idle, Vec::<&&str>::new(), "no changed byte passes here any more");
}

/// Whether `pointer` is the pattern, in which `*` stands for any one part.
fn fits(pattern: &str, pointer: &str) -> bool {
    let (pattern, found): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), pointer.split('/').collect());
    pattern.len() == found.len() && pattern.iter().zip(&found).all(|(part, f)| *part == "*" || part == f)
}

/// What `sweep` finds on every byte; it is given the first one and the step to the next.
fn on_all_cores(sweep: fn(usize, usize) -> BTreeSet<String>) -> BTreeSet<String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|first| scope.spawn(move || sweep(first, threads))).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Every change of every `step`-th byte of `bytes` from `first` on that is still canonical JSON.
fn changes(bytes: &[u8], first: usize, step: usize) -> impl Iterator<Item = (Vec<u8>, Value)> {
    let places = (first..bytes.len()).step_by(step).flat_map(|at| BITS.map(|bit| (at, bit)));
    places.filter_map(|(at, bit)| {
        let mut changed = bytes.to_vec();
        changed[at] ^= bit;
        let value = json::read(&changed).ok()?;
        Some((changed, value))
    })
}

/// Whether what lies on disk passes level 2. Most changes are refused before a file of the scratch is read.
fn passes(certified: &Certified) -> bool {
    let request =
        |level, tree| Request { receipts: certified.fixture.receipts(), level, tree, wheelhouse: None };
    let success = |request| verify(&request).is_ok_and(|verdict| verdict.exit() == Exit::Success);
    let scratch = Some(certified.fixture.scratch.clone());
    success(request(Some(Level::Consistent), None)) && success(request(Some(Level::HashesVerified), scratch))
}

/// Places of the receipt at which a change passed.
fn receipt(first: usize, step: usize) -> BTreeSet<String> {
    let certified = Certified::small();
    assert!(passes(&certified), "the sweep reaches level 2");
    let mut neutral = BTreeSet::new();
    for (changed, value) in changes(&certified.fixture.bytes(), first, step) {
        if json::record_of::<RuntimeBuild>(&value).is_err() {
            continue;
        }
        put(&certified.fixture.receipts().join("runtime-build.json"), &changed);
        if passes(&certified) {
            leaves(&certified.fixture.value, &value, String::new(), &mut neutral);
        }
    }
    neutral
}

/// Places of the certificate at which a change passed, with its digest in the receipt, and made by a forger who makes anew
/// what follows from it inside the certificate.
fn certificate(first: usize, step: usize) -> BTreeSet<String> {
    let mut certified = Certified::small();
    assert!(passes(&certified), "the sweep reaches level 2");
    let (text, untampered) = (certified.text(), certified.certificate.clone());
    let mut neutral = BTreeSet::new();
    for (_, value) in changes(&text, first, step) {
        if json::record_of::<ObjectReuse>(&value).is_err() {
            continue;
        }
        certified.certificate = value.clone();
        certified.follow();
        // What follows from the rest is made anew by nobody if it is itself what changed.
        if certified.certificate == untampered {
            certified.certificate = value.clone();
        }
        certified.publish();
        if passes(&certified) {
            leaves(&untampered, &value, String::new(), &mut neutral);
        }
    }
    neutral
}

/// Pointers of the leaves in which two values of one shape differ.
fn leaves(a: &Value, b: &Value, place: String, found: &mut BTreeSet<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().for_each(|(key, value)| leaves(value, &b[key], format!("{place}/{key}"), found));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().for_each(|(i, (a, b))| leaves(a, b, format!("{place}/{i}"), found));
        }
        _ if a == b => {}
        _ => drop(found.insert(place)),
    }
}
