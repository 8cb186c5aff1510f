//! Tests of the draw and of its power.

use proptest::prelude::*;

use super::*;

fn nonce(byte: u8) -> Nonce {
    format!("{byte:02x}").repeat(32).parse().unwrap()
}

fn count(count: usize) -> Wanted {
    Wanted::Count(count.try_into().unwrap())
}

/// Objects' names, of which the first `reused` are reused.
fn names(all: usize) -> Vec<String> {
    (0..all).map(|index| format!("units/{index}.cu.o")).collect()
}

fn units(names: &[String], reused: usize) -> Vec<Unit<'_>> {
    names
        .iter()
        .enumerate()
        .map(|(index, object)| Unit { tree: "facc", object, reused: index < reused })
        .collect()
}

fn drawn(names: &[String], reused: usize, wanted: Wanted) -> Vec<usize> {
    sample(&nonce(7), Digest::of(b"certificate"), &units(names, reused), wanted).unwrap()
}

#[test]
fn a_nonce_is_at_least_16_bytes_of_hexadecimal_digits() {
    let text = "00112233445566778899AAbbccddeeff";
    assert_eq!(text.parse::<Nonce>().unwrap().to_string(), text.to_lowercase());
    for bad in [
        "",
        "00",
        &text[2..],
        &text[1..],
        &format!("{text}0"),
        &text.replace('A', "g"),
        &text.replace("AA", "é"),
    ] {
        let refused = bad.parse::<Nonce>().unwrap_err();
        assert_eq!((refused.code, refused.exit), ("E-CHALLENGE-NONCE", crate::Exit::BadInput), "{bad}");
    }
}

#[test]
fn all_or_a_number_may_be_wanted_but_not_none() {
    assert_eq!("all".parse(), Ok(Wanted::All));
    assert_eq!("13".parse(), Ok(count(13)));
    for bad in ["0", "-1", "", "ALL", "1.5", "half"] {
        assert!(bad.parse::<Wanted>().is_err(), "{bad}");
    }
}

#[test]
fn a_draw_hangs_on_nonce_certificate_and_units_and_not_on_their_order() {
    let names = names(190);
    let listed = units(&names, 82);
    let of = |nonce: &Nonce, certificate: &[u8], units: &[Unit<'_>]| {
        let drawn = sample(nonce, Digest::of(certificate), units, count(20)).unwrap();
        drawn
            .into_iter()
            .map(|index| units[index].object.to_owned())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let first = of(&nonce(1), b"one", &listed);
    assert_eq!(first.len(), 20);
    assert_eq!(of(&nonce(1), b"one", &listed), first);
    let mut turned = listed.clone();
    turned.reverse();
    assert_eq!(of(&nonce(1), b"one", &turned), first);
    assert_ne!(of(&nonce(2), b"one", &listed), first);
    assert_ne!(of(&nonce(1), b"two", &listed), first);
    let renamed: Vec<_> = listed.iter().map(|unit| Unit { tree: "stock", ..*unit }).collect();
    assert_ne!(of(&nonce(1), b"one", &renamed), first);
}

#[test]
fn parts_of_a_rank_do_not_run_into_each_other() {
    let rank_of = |tree, object| rank(&nonce(1), Digest::of(b""), &Unit { tree, object, reused: true });
    assert_ne!(rank_of("ab", "c"), rank_of("a", "bc"));
}

/// Pinned, and computed apart from this code: an auditor with another version must draw the same units.
#[test]
fn the_draw_of_a_known_challenge_stays() {
    assert_eq!(drawn(&names(12), 5, count(4)), [1, 4, 8, 9]);
}

#[test]
fn both_kinds_are_drawn_in_proportion_and_at_least_one_of_each() {
    // All, reused, wanted, and how many reused ones are drawn.
    let cases = [
        (190, 82, 95, 41),
        (190, 82, 13, 6),
        (190, 82, 2, 1),
        (190, 1, 10, 1),
        (190, 1, 189, 1),
        (190, 189, 10, 9),
        (190, 0, 10, 0),
        (190, 190, 10, 10),
        (3, 1, 2, 1),
        (2, 1, 2, 1),
    ];
    for (all, reused, wanted, expected) in cases {
        let names = names(all);
        let drawn = drawn(&names, reused, count(wanted));
        let found = drawn.iter().filter(|&&index| index < reused).count();
        assert_eq!((drawn.len(), found), (wanted, expected), "{wanted} of {all}, {reused} reused");
    }
    for wanted in [Wanted::All, count(3), count(4), count(usize::MAX / 1000)] {
        assert_eq!(drawn(&names(3), 1, wanted), [0, 1, 2]);
    }
}

#[test]
fn a_challenge_of_nothing_is_refused() {
    let refused = sample(&nonce(1), Digest::of(b""), &[], Wanted::All).unwrap_err();
    assert_eq!((refused.code, refused.exit), ("E-CHALLENGE-EMPTY", crate::Exit::CouldNotJudge));
    assert_eq!(power(&[], Wanted::All), []);
}

/// By hand: one stratum of 10, 3 drawn: 1 - 7/10. One stratum of 100, 10 drawn, 5 bad: 1 - C(95,10)/C(100,10) = 0.41624;
/// 10 bad: 1 - C(90,10)/C(100,10) = 0.66952. 82 and 108, 41 and 54 drawn: each bad one is missed by a half if it is alone
/// in its stratum. 2 and 2 units, one of each drawn: one bad 1/2; both strata's one bad 1/4, two in one stratum 0.
#[test]
fn the_power_is_that_of_the_hand_computed_cases() {
    let of = |all, reused, wanted| {
        power(&units(&names(all), reused), wanted)
            .into_iter()
            .map(|one| (one.bad, one.found_per_mille))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(10, 0, count(3)), [(1, 300)]);
    assert_eq!(of(1, 0, count(1)), [(1, 1000)]);
    assert_eq!(of(100, 0, count(10)), [(1, 100), (5, 416), (10, 669)]);
    assert_eq!(of(190, 82, count(95))[0], (1, 500));
    assert_eq!(of(190, 0, count(181))[0], (1, 952));
    assert_eq!(of(190, 82, Wanted::All), [(1, 1000), (9, 1000), (19, 1000)]);
    // All but one: certain from two bad ones on, and never called certain before.
    assert_eq!(of(190, 0, count(189)), [(1, 994), (9, 1000), (19, 1000)]);
    assert_eq!(of(4000, 0, count(3000)), [(1, 750), (40, 999), (200, 999), (400, 999)]);
}

#[test]
fn the_least_favourable_division_counts() {
    // 20 of 100 drawn; 10 are reused, of which 2 are drawn as 18 of 90 are: two bad reused ones are missed by
    // 8/10 * 7/9 = 0.6222, two bad compiled ones by 72/90 * 71/89 = 0.6382, one of each by 0.8 * 0.8 = 0.64.
    let found = power::found_per_mille(&strata(&units(&names(100), 10), count(20)), 2);
    assert_eq!(found, 360);
    // One of each of 2 and 98: a bad one among the 98 is missed by 97/98, among the 2 by 1/2.
    let found = power::found_per_mille(&strata(&units(&names(100), 2), count(2)), 1);
    assert_eq!(found, 10);
}

proptest! {
    #[test]
    fn a_draw_has_its_size_no_repetition_and_both_kinds(all in 1usize..80, share in 0usize..80, wanted in 1usize..100) {
        let (reused, names) = (share.min(all), names(all));
        let drawn = drawn(&names, reused, count(wanted));
        prop_assert_eq!(drawn.len(), wanted.min(all));
        prop_assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
        let of_reused = drawn.iter().filter(|&&index| index < reused).count();
        if drawn.len() >= 2 {
            prop_assert_eq!(of_reused > 0, reused > 0);
            prop_assert_eq!(of_reused < drawn.len(), reused < all);
        }
        let power = power(&units(&names, reused), count(wanted));
        prop_assert!(power.windows(2).all(|pair| pair[0].found_per_mille <= pair[1].found_per_mille));
        prop_assert_eq!(power[0].found_per_mille == 1000, drawn.len() == all);
    }
}

#[test]
fn grades_are_ordered_and_what_is_no_object_gets_none() {
    assert!(Grade::BitIdentical < Grade::CodeIdentical && Grade::CodeIdentical < Grade::Differs);
    let words = [Grade::BitIdentical, Grade::CodeIdentical, Grade::Differs].map(|grade| grade.to_string());
    assert_eq!(words, ["BIT-IDENTICAL", "CODE-IDENTICAL", "DIFFERS"]);
    for (published, rebuilt) in [(&b""[..], &b""[..]), (b"\x7fELF", b"\x7fELF")] {
        let refused = grade("k.o", published, rebuilt).unwrap_err();
        assert_eq!(refused.code, "E-OBJECT-FORMAT");
        assert!(refused.what.starts_with("the published k.o "), "{}", refused.what);
    }
}
