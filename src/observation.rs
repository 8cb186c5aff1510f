//! What a process tree asked of the file system, as it was observed: the closure of a compile, before anything is judged.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The observed file-system calls of one process tree. All paths are absolute and normalised, with the links that they
/// led through resolved. What the tree made itself is in `written` alone: it is no input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// Regular files that were opened for reading, started as programs, or moved or linked to another name.
    pub opened: BTreeSet<String>,
    /// What was looked for and is not there (ENOENT, ENOTDIR). If a folder on the way is missing and the rest of the path
    /// goes up again, that folder.
    pub probes: BTreeSet<String>,
    /// What was looked for and refused otherwise, with the errno values.
    pub refused: BTreeMap<String, BTreeSet<i32>>,
    /// What was looked at without being opened: its existence, kind, size or time may have decided something.
    pub stats: BTreeSet<String>,
    /// Folders whose entries were read.
    pub listed: BTreeSet<String>,
    /// Symbolic links that were read or passed through, with what they hold.
    pub links: BTreeMap<String, String>,
    /// Opened files that were asked for under another path: that path, normalised by name alone, and the file.
    pub led: BTreeMap<String, String>,
    /// Programs that were started, in order.
    pub executed: Vec<Executed>,
    /// Files and folders that the tree made, changed, moved or removed.
    pub written: BTreeSet<String>,
    /// Why this is not all; empty: it is complete.
    pub gaps: BTreeSet<String>,
}

/// A started program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executed {
    /// The file that was started; for a script its interpreter.
    pub program: String,
    /// Its arguments, the name it was given first.
    pub argv: Vec<String>,
}

impl Observation {
    /// Whether everything was observed. Nothing may be certified from an incomplete observation.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The same without what lies in `folder`, the private one of the step that was observed.
    #[must_use]
    pub fn outside(mut self, folder: &str) -> Self {
        let keeps = |path: &String| {
            !path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        for paths in
            [&mut self.opened, &mut self.probes, &mut self.stats, &mut self.listed, &mut self.written]
        {
            paths.retain(keeps);
        }
        for paths in [&mut self.links, &mut self.led] {
            paths.retain(|path, _| keeps(path));
        }
        self.refused.retain(|path, _| keeps(path));
        self
    }
}
