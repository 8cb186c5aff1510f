//! Questions to the rule whose answers are known.

use requal::receipt::{Decision, Reason};

use crate::bases;
use crate::place::{Ground, Made};
use crate::world::World;

/// A place to compile in, with questions.
pub(crate) struct Court(pub(crate) Ground);

impl Court {
    /// A fresh one.
    pub(crate) fn new() -> Self {
        Self(Ground::new())
    }

    /// The world of one unit.
    pub(crate) fn base(&self, unit: &str) -> World {
        bases::base(unit, self.0.host.path.as_str())
    }

    /// Two worlds that are the same but for `change`.
    pub(crate) fn pair(&self, unit: &str, change: impl Fn(&mut World)) -> (World, World) {
        let before = self.base(unit);
        let mut after = before.clone();
        change(&mut after);
        (before, after)
    }

    /// Demands that nothing is taken for `after`, for this reason, which the wrapper tells; gives what was compiled.
    pub(crate) fn refused(
        &mut self,
        (before, after): &(World, World),
        reason: Reason,
        about: &str,
    ) -> Option<Made> {
        let made = self.0.first(before);
        let asked = self.0.ask(after, &made);
        let verdict = self.0.verdict(after, &made, &asked).unwrap();
        assert_eq!((verdict.reason, verdict.about.as_str()), (reason, about), "{asked:?}");
        let compiled = asked.ok();
        if let Some(made) = &compiled {
            let decided = &made.record.decided;
            assert_eq!((decided.decision, decided.about.as_deref()), (Decision::Compiled, Some(about)));
        }
        compiled
    }

    /// Demands that the object is taken for `after`, and that a compile gives the same.
    pub(crate) fn taken(&mut self, (before, after): &(World, World)) -> Made {
        let made = self.0.first(before);
        let asked = self.0.ask(after, &made);
        let verdict = self.0.verdict(after, &made, &asked).unwrap();
        assert!(verdict.reused, "{verdict:?}");
        assert!(self.0.compile(after).unwrap().object == made.object, "another object");
        asked.unwrap()
    }
}
