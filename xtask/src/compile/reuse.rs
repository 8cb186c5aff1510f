//! Which units may take another tree's object: the rule over lists, before anything runs.

use std::collections::BTreeSet;

use requal::receipt::{Decision, Reason};
use requal::reuse::{Answer, Decided, Invocation, decide};
use requal::unit::{Offer, Taking, UnitRecord};
use requal::{Outcome, command};

use super::{Built, Machine, UnitPlan, Work, room};
use crate::sys::fs;
use crate::wrap;

/// Where objects may come from.
#[derive(Clone, Debug)]
pub enum Reuse<'a> {
    /// The tree has no counterpart.
    NoCounterpart,
    /// The command line forbids it.
    NotConsidered,
    /// From a tree that was built before.
    From(Counterpart<'a>),
}

/// A tree that was built before, at the same place.
#[derive(Clone, Debug)]
pub struct Counterpart<'a> {
    /// Its units, in the order of `built.units`.
    pub units: &'a [UnitPlan],
    /// What was built of it.
    pub built: &'a Built,
    /// Names of the name defines of both modules.
    pub names: BTreeSet<String>,
}

impl Reuse<'_> {
    /// Whether the wrapper is given an offer: always where there is a counterpart, so that Ninja sees one command.
    pub(super) fn is_offered(&self) -> bool {
        !matches!(self, Self::NoCounterpart)
    }
}

impl Work<'_> {
    /// Writes what the wrapper of each of `units` is told.
    pub(super) fn write_offers(&self, units: &[&UnitPlan], machine: &mut Machine) -> Outcome<()> {
        if !self.reuse.is_offered() {
            return Ok(());
        }
        for unit in units {
            let offer = self.offer(unit, machine);
            let bytes = serde_json::to_vec(&offer).map_err(std::io::Error::from)?;
            fs::write(&self.folder.join(wrap::offer_path(&unit.object)), &bytes)?;
        }
        Ok(())
    }

    /// The rule's answer for `unit`, as the wrapper is told.
    fn offer(&self, unit: &UnitPlan, machine: &mut Machine) -> Offer {
        let counterpart = match self.reuse {
            Reuse::NoCounterpart => return Offer::Compile(Decided::compiled(Reason::NoCounterpart)),
            Reuse::NotConsidered => return Offer::Compile(Decided::compiled(Reason::NotConsidered)),
            Reuse::From(counterpart) => counterpart,
        };
        let Some(record) = counterpart.record(unit) else {
            return Offer::Compile(Decided::compiled(Reason::NoCounterpart));
        };
        let wanted = Invocation {
            argv: unit.argv.clone(),
            environment: command::environment(&self.site.limits),
            place: self.site.place.clone(),
        };
        let lists = self.lists();
        let look = |at: &_| lists.find(at).unwrap_or_else(|| machine.find(self.site, &record.closure, at));
        match decide(record.recorded(), &wanted, &counterpart.names, look) {
            Answer::Compile(decided) => Offer::Compile(decided),
            Answer::Take { .. } => {
                let object = if self.site.sandboxed {
                    format!("{}/{}", room::COUNTERPART, unit.object)
                } else {
                    counterpart.built.folder.join(&unit.object).to_string()
                };
                let (record, names) = (record.clone(), counterpart.names.clone());
                Offer::Take(Box::new(Taking { record, object, names }))
            }
        }
    }

    /// Whether the object of `record`, if it was taken, may still be: from the same object, by the same rule.
    pub(super) fn still_taken(&self, unit: &UnitPlan, record: &UnitRecord, machine: &mut Machine) -> bool {
        if record.decided.decision == Decision::Compiled {
            return true;
        }
        match self.offer(unit, machine) {
            Offer::Take(taking) => taking.record.object_sha256 == record.object_sha256,
            Offer::Compile(_) => false,
        }
    }

    /// `record` with the decision as it stands today: why a compiled object that was still good could not be taken may have
    /// changed since it was compiled.
    pub(super) fn decided_today(
        &self,
        unit: &UnitPlan,
        record: UnitRecord,
        machine: &mut Machine,
    ) -> UnitRecord {
        if record.decided.decision == Decision::Reused {
            return record;
        }
        let at_use = [Reason::NameDefineUsed, Reason::NameDefineUntold, Reason::ChangedAtUse];
        let decided = match self.offer(unit, machine) {
            Offer::Compile(decided) => decided,
            Offer::Take(_) if at_use.contains(&record.decided.reason) => record.decided,
            Offer::Take(_) => Decided::compiled(Reason::AlreadyCompiled),
        };
        UnitRecord { decided, ..record }
    }
}

impl Counterpart<'_> {
    /// The record of the same source.
    fn record(&self, unit: &UnitPlan) -> Option<&UnitRecord> {
        let at = self.units.iter().position(|own| own.source == unit.source)?;
        self.built.units.get(at)
    }
}
