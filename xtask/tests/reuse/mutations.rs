//! Many small changes by chance: whatever the rule lets be taken is compiled too, and must be the same to the last bit.

use std::collections::BTreeMap;

use crate::bases;
use crate::chance::Chance;
use crate::judged::Verdict;
use crate::kinds::{Change, Kind};
use crate::place::Ground;

/// What became of the changes of one kind.
#[derive(Clone, Debug, Default)]
struct Row {
    tried: usize,
    reused: usize,
    /// Compiled, although the bytes are the same.
    harmless: usize,
    /// Compiled, and the compiler refused the world.
    failed: usize,
    compiled: BTreeMap<String, usize>,
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn whatever_is_taken_is_what_a_compile_gives() {
    let seed = setting("REQUAL_MUTATION_SEED", 1);
    let count = usize::try_from(setting("REQUAL_MUTATIONS", 40)).unwrap();
    let mut ground = Ground::new();
    let host = ground.host.path.to_string();
    let mut failures = Vec::new();
    let mut table: BTreeMap<Kind, Row> = BTreeMap::new();
    for number in 0..count {
        let kind = Kind::ALL[number % Kind::ALL.len()];
        let change =
            Change::draw(kind, &mut Chance::new(seed, number), &|unit| bases::base(unit, host.as_str()));
        let outcome = ground.try_change(&change);
        match outcome {
            Ok(outcome) => table.entry(kind).or_default().add(&outcome),
            Err(why) => {
                let Change { before, what, .. } = change;
                let named =
                    format!("REQUAL_MUTATION_SEED={seed}, change {number}, {kind:?} of {}", before.source);
                failures.push(format!("{named}: {what}: {why}"));
            }
        }
    }
    let all = print(&table);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    if count >= 1000 {
        let both = table.values().filter(|row| row.reused > 0 && row.reused < row.tried).count();
        assert!(all.reused >= 250 && both >= 8, "{} reused, {both} kinds with both answers", all.reused);
    }
}

/// The answer, and whether a compile gave the same; nothing if it gave nothing.
struct Outcome {
    verdict: Verdict,
    same: Option<bool>,
}

impl Ground {
    /// Asks for the changed world, and judges the answer by what a compile gives.
    fn try_change(&mut self, change: &Change) -> Result<Outcome, String> {
        let made = self.first(&change.before);
        let asked = self.ask(&change.after, &made);
        let verdict = self.verdict(&change.after, &made, &asked)?;
        let compiled = if verdict.reused { self.compile(&change.after) } else { asked.clone() };
        let same = compiled.as_ref().ok().map(|compiled| compiled.object == made.object);
        if !verdict.reused {
            return Ok(Outcome { verdict, same });
        }
        if asked.is_ok_and(|asked| asked.object != made.object) {
            return Err("another object than the one on offer was taken".to_owned());
        }
        match &compiled {
            Err(said) => return Err(format!("reused, and a compile fails: {said}")),
            Ok(compiled) if compiled.object != made.object => {
                return Err("reused, and a compile gives other bytes".to_owned());
            }
            Ok(compiled) if compiled.record.closure != made.record.closure => {
                return Err(format!(
                    "reused, and a compile has another closure: {:#?}",
                    compiled.record.closure
                ));
            }
            Ok(_) => {}
        }
        Ok(Outcome { verdict, same })
    }
}

impl Row {
    fn add(&mut self, outcome: &Outcome) {
        self.tried += 1;
        if outcome.verdict.reused {
            self.reused += 1;
            return;
        }
        self.harmless += usize::from(outcome.same == Some(true));
        self.failed += usize::from(outcome.same.is_none());
        *self.compiled.entry(format!("{:?}", outcome.verdict.reason)).or_default() += 1;
    }

    fn merge(&mut self, other: &Self) {
        self.tried += other.tried;
        self.reused += other.reused;
        self.harmless += other.harmless;
        self.failed += other.failed;
        for (reason, count) in &other.compiled {
            *self.compiled.entry(reason.clone()).or_default() += count;
        }
    }

    fn print(&self, name: &str) {
        let reasons: Vec<String> =
            self.compiled.iter().map(|(why, count)| format!("{why} {count}")).collect();
        println!(
            "{name:<18} {:>5} {:>6} {:>8} {:>8} {:>6}  {}",
            self.tried,
            self.reused,
            self.tried - self.reused,
            self.harmless,
            self.failed,
            reasons.join(", ")
        );
    }
}

/// Prints the table, and gives its sum.
fn print(table: &BTreeMap<Kind, Row>) -> Row {
    println!("kind               tried reused compiled harmless failed  reasons to compile");
    let mut all = Row::default();
    for (kind, row) in table {
        row.print(&format!("{kind:?}"));
        all.merge(row);
    }
    all.print("all");
    all
}
