//! What one decision costs: the rule over the records of a built scratch, every unit against itself over the lists of its
//! tree. `cargo bench -p xtask --bench decide -- SCRATCH TREE`; one line: nanoseconds a unit, median of 21 rounds.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench fails by panicking and prints its figure")]

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

use requal::closure::{Found, Located};
use requal::receipt::RuntimeBuild;
use requal::reuse::{Answer, Lists, decide};
use requal::unit::UnitRecord;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let [scratch, tree] = &words[..] else { return };
    let receipt = fs_err::read(format!("{scratch}/receipts/runtime-build.json")).unwrap();
    let build = serde_json::from_slice::<RuntimeBuild>(&receipt).unwrap().predicate.build;
    let units = build.units.iter().filter(|unit| *unit.tree == **tree);
    let record = |object: &str| {
        let path = format!("{scratch}/build/{tree}/record/{object}.json");
        serde_json::from_slice::<UnitRecord>(&fs_err::read(path).unwrap()).unwrap()
    };
    let records: Vec<UnitRecord> = units.map(|unit| record(&unit.object)).collect();
    let files = &build.trees.iter().find(|known| *known.name == **tree).unwrap().files;
    let (toolchain, links) = (&build.toolchain.files, &build.toolchain.links);
    let lists = Lists { tree: files, toolchain, links };
    let mut rounds: Vec<u128> = (0..21)
        .map(|_| {
            let start = Instant::now();
            for record in &records {
                let look = |at: &Located| {
                    lists.find(at).unwrap_or_else(|| record.closure.find(at).unwrap_or(Found::Absent))
                };
                let answer = decide(record.recorded(), &record.invocation, &BTreeSet::new(), look);
                assert!(matches!(black_box(answer), Answer::Take { .. }));
            }
            start.elapsed().as_nanos() / records.len() as u128
        })
        .collect();
    rounds.sort_unstable();
    println!("{}", rounds[rounds.len() / 2]);
}
