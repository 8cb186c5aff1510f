//! What stands at places of the machine outside of the trees: each looked at once in a run.

use std::collections::BTreeMap;

use camino::Utf8Path;
use requal::closure::{Closure, Found, Located};
use requal::receipt::Root;

use super::{Site, room};
use crate::wrap::stamps::Stamps;
use crate::wrap::take::{As, look};

/// Places of the machine that were looked at.
#[derive(Debug, Default)]
pub struct Machine(BTreeMap<(Located, As), Found>);

impl Machine {
    /// What stands at `at`, a place below the host's root or the system's, looked at as `closure` holds it.
    pub fn find(&mut self, site: &Site, closure: &Closure, at: &Located) -> Found {
        let seen_as = As::of(closure, at);
        if let Some(found) = self.0.get(&(at.clone(), seen_as)) {
            return found.clone();
        }
        let found = match at.root {
            Root::Host => {
                let program = room::on_path(&site.host).find(|(name, _)| **name == *at.path);
                program.map_or(Found::Absent, |(_, path)| Found::Link(path.to_string()))
            }
            // What no mount shows is not there for a compile in a room, whatever the machine has.
            _ if site.sandboxed && !room::shows(&site.host, Utf8Path::new(&format!("/{}", at.path))) => {
                Found::Absent
            }
            _ => {
                let stamps = Stamps::of(&site.scratch);
                look(Utf8Path::new(&format!("/{}", at.path)), seen_as, &stamps)
            }
        };
        self.0.insert((at.clone(), seen_as), found.clone());
        found
    }
}
