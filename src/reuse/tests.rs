//! The walk and the rule on random small closures: digests and differences never drift apart, and nothing that differs is
//! taken.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::closure::File;
use crate::receipt::{LinkText, Root};

/// Places of every root; all that a closure here may hold.
const PLACES: [(Root, &str); 8] = [
    (Root::Tree, "a.h"),
    (Root::Tree, "a"),
    (Root::Tree, "inc/a.h"),
    (Root::Toolchain, "bin/nvcc"),
    (Root::Toolchain, "include/a.h"),
    (Root::Host, "as"),
    (Root::System, "usr/include/a.h"),
    (Root::System, "usr/lib"),
];

fn at(i: usize) -> Located {
    let (root, path) = PLACES[i];
    Located::new(root, path).unwrap()
}

/// What may stand at a place.
fn found() -> impl Strategy<Value = Found> {
    let digest = |byte: u8| Digest::of(&[byte]);
    prop_oneof![
        Just(Found::Absent),
        (0u8..3, 0i64..3).prop_map(move |(byte, mtime_s)| {
            Found::File(File { sha256: digest(byte), size_bytes: 1, mtime_s })
        }),
        prop::option::of(0u8..3).prop_map(move |byte| Found::Folder(byte.map(digest))),
        (0u8..3).prop_map(|byte| Found::Link(format!("to{byte}"))),
        Just(Found::Other("pipe".to_owned())),
    ]
}

type World = BTreeMap<Located, Found>;

fn world() -> impl Strategy<Value = World> {
    prop::collection::vec(found(), PLACES.len())
        .prop_map(|all| all.into_iter().enumerate().map(|(i, found)| (at(i), found)).collect())
}

/// What a compile in `world` that looked at every place would have on record.
fn closure(world: &World) -> Closure {
    let mut closure = Closure::default();
    for (at, found) in world.clone() {
        match found {
            Found::Absent => drop(closure.absent.insert(at)),
            Found::File(file) => drop(closure.files.insert(at, file)),
            Found::Folder(None) => drop(closure.folders.insert(at)),
            Found::Folder(Some(names)) => drop(closure.listed.insert(at, names)),
            Found::Link(holds) => drop(closure.links.insert(at, LinkText::new(holds).unwrap())),
            Found::Other(_) => {}
        }
    }
    closure
}

/// Whether a compile that met `one` at a place would meet the same in `other`: of a folder that it only looked at, that it
/// is one.
fn same(one: &Found, other: &Found) -> bool {
    match (one, other) {
        (Found::Other(_), _) | (Found::Folder(None), Found::Folder(_)) => true,
        _ => one == other,
    }
}

fn invocation() -> impl Strategy<Value = Invocation> {
    let value = prop::sample::select(vec!["a", "b"]);
    (0u8..3, value.clone(), value.clone(), prop::option::of(value)).prop_map(
        |(level, name, other, variable)| {
            let argv = [
                "${toolchain}/bin/nvcc".to_owned(),
                "-c".to_owned(),
                format!("-O{level}"),
                format!("-DNAME={name}"),
                format!("-DOTHER={other}"),
                "-o".to_owned(),
                "${unit}/a.cu.o".to_owned(),
                "${tree}/a.cu".to_owned(),
            ];
            let environment = variable.map(|value| ("LC_ALL".to_owned(), value.to_owned()));
            Invocation {
                argv: argv.into(),
                environment: environment.into_iter().collect(),
                place: Place::fixed(),
            }
        },
    )
}

/// The command without the one name define.
fn without_name(invocation: &Invocation) -> Vec<&String> {
    invocation.argv.iter().filter(|word| !word.starts_with("-DNAME=")).collect()
}

/// Two worlds and two commands, equal more often than chance would have them.
fn pair() -> impl Strategy<Value = (World, World, Invocation, Invocation)> {
    let changes = prop::collection::vec((0..PLACES.len(), found()), 0..2);
    let wanted = prop_oneof![Just(None), invocation().prop_map(Some)];
    (world(), changes, invocation(), wanted).prop_map(|(one, changes, recorded, wanted)| {
        let mut other = one.clone();
        other.extend(changes.into_iter().map(|(i, found)| (at(i), found)));
        let wanted = wanted.unwrap_or_else(|| recorded.clone());
        (one, other, recorded, wanted)
    })
}

proptest! {
    #[test]
    fn differences_are_empty_if_and_only_if_digests_are_equal((one, other, recorded, wanted) in pair()) {
        let names = BTreeSet::from(["NAME".to_owned()]);
        let closure = closure(&one);
        let look = |at: &Located| other[at].clone();
        let comparison = compare(&recorded, &closure, &wanted, &names, look);
        prop_assert_eq!(comparison.differences.is_empty(), comparison.recorded == comparison.found);
        let mut conditions: Vec<_> = comparison.differences.iter().map(|d| d.condition).collect();
        conditions.dedup();
        let order = |c: &Condition| if *c == Condition::Mtime { Condition::Content } else { *c };
        prop_assert!(conditions.iter().map(order).is_sorted(), "{:?} in the order of the rule", conditions);
        // What was recorded does not depend on what it is compared with.
        let own = compare(&recorded, &closure, &recorded, &names, |at| one[at].clone());
        prop_assert_eq!(own.differences, vec![]);
        // A variable that B alone has is walked too: as one that A lacks.
        if recorded.environment.len() == wanted.environment.len() {
            prop_assert_eq!(own.recorded, comparison.recorded);
        }
    }

    #[test]
    fn nothing_is_taken_when_a_file_a_probe_a_flag_or_a_variable_differs(
        (one, other, recorded, wanted) in pair()
    ) {
        let names = BTreeSet::from(["NAME".to_owned()]);
        let closure = closure(&one);
        let of = Recorded { invocation: &recorded, closure: &closure, bars: &[] };
        let answer = decide(of, &wanted, &names, |at| other[at].clone());
        let equal = one.iter().all(|(at, found)| same(found, &other[at]))
            && without_name(&recorded) == without_name(&wanted)
            && recorded.environment == wanted.environment;
        match answer {
            Answer::Take { test_defines, .. } => {
                prop_assert!(equal, "taken although something differs");
                prop_assert_eq!(test_defines, recorded.argv != wanted.argv);
            }
            Answer::Compile(decided) => prop_assert!(!equal, "{:?}", decided),
        }
    }

    #[test]
    fn a_barred_unit_is_never_taken((one, _, recorded, _) in pair()) {
        let closure = closure(&one);
        let bars = [Bar { reason: Reason::NotObserved, about: "gap".to_owned() }];
        let of = Recorded { invocation: &recorded, closure: &closure, bars: &bars };
        let answer = decide(of, &recorded, &BTreeSet::new(), |at| one[at].clone());
        prop_assert_eq!(answer, Answer::Compile(Decided::compiled_about(Reason::NotObserved, "gap")));
    }
}
