//! Verification of the certificate: one tampering a test row, beside an untampered twin that passes.

use requal::verify::{Level, Word};

use crate::certified::Certified;

#[test]
fn an_untampered_certificate_reaches_level_2() {
    let certified = Certified::new();
    for level in 0..=2 {
        assert_eq!(certified.fixture.open(level), vec![]);
    }
    assert_eq!(certified.fixture.verdict(2).unwrap().word(), Word::Reached(Level::HashesVerified));
    println!("{}", String::from_utf8(certified.text()).unwrap());
    println!("{} {}", certified.text().len(), certified.fixture.bytes().len());
}
