//! A world: everything that one compile is given, held in memory, so that a change of it is a change of a value.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use camino::Utf8Path;
use requal::target::Target;
use requal::tree::{Tree, TreeFile, mtime_s};
use requal::{Digest, command};

/// The name define of every world; its value names the module.
pub(crate) const NAME: &str = "MODULE_NAME";

/// What lies in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A file with its text and mtime.
    File(String, i64),
    /// A symbolic link with what it holds, which is relative.
    Link(String),
    /// A folder that may be empty.
    Folder,
}

/// Entries by path.
pub(crate) type Entries = BTreeMap<String, Entry>;

/// What one compile is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct World {
    /// The unit, relative to the tree.
    pub(crate) source: String,
    /// The tree.
    pub(crate) tree: Entries,
    /// A folder of the machine that the host compiler is said to own.
    pub(crate) outside: Entries,
    /// What is added to files of the toolchain, by path.
    pub(crate) tools: BTreeMap<String, String>,
    /// The environment, naming places.
    pub(crate) environment: BTreeMap<String, String>,
    /// The command, naming places.
    pub(crate) argv: Vec<String>,
    /// What the object must hold.
    pub(crate) targets: Vec<Target>,
}

impl World {
    /// The object, relative to the build folder.
    pub(crate) fn object(&self) -> String {
        command::object_path(&self.source)
    }

    /// Makes `path` of the tree a file of `text`, with the mtime that its path gives.
    pub(crate) fn put(&mut self, path: &str, text: &str) {
        self.tree.insert(path.to_owned(), Entry::File(text.to_owned(), mtime_s(path)));
    }

    /// The text of a file of the tree.
    pub(crate) fn text(&self, path: &str) -> &str {
        match &self.tree[path] {
            Entry::File(text, _) => text,
            other => panic!("{path} is {other:?}"),
        }
    }

    /// Replaces `from`, which stands there once or more, by `to`.
    pub(crate) fn edit(&mut self, path: &str, from: &str, to: &str) {
        let Some(Entry::File(text, _)) = self.tree.get_mut(path) else { panic!("no file {path}") };
        assert!(text.contains(from), "{from} is not in {path}");
        *text = text.replace(from, to);
    }

    /// Sets the time of a file's last change.
    pub(crate) fn date(&mut self, path: &str, mtime_s: i64) {
        let Some(Entry::File(_, own)) = self.tree.get_mut(path) else { panic!("no file {path}") };
        *own = mtime_s;
    }

    /// Puts `token` before the `-o` of the command.
    pub(crate) fn argument(&mut self, token: &str) {
        let at = self.argv.iter().position(|own| own == "-o").unwrap();
        self.argv.insert(at, token.to_owned());
    }

    /// Gives the name define another value.
    pub(crate) fn rename(&mut self, value: &str) {
        let begin = format!("-D{NAME}=");
        let token = self.argv.iter_mut().find(|token| token.starts_with(&begin)).unwrap();
        *token = begin + value;
    }

    /// The paths of the tree's files.
    pub(crate) fn files(&self) -> Vec<String> {
        let files = self.tree.iter().filter(|(_, entry)| matches!(entry, Entry::File(..)));
        files.map(|(path, _)| path.clone()).collect()
    }

    /// The tree as a list, if it is one that a list can hold: files alone, each with the mtime that its path gives.
    pub(crate) fn listed(&self) -> Option<Tree> {
        let file = |(path, entry): (&String, &Entry)| match entry {
            Entry::File(text, own) if *own == mtime_s(path) => Some(TreeFile {
                path: path.clone(),
                mode: 0o644,
                size_bytes: text.len() as u64,
                sha256: Digest::of(text.as_bytes()),
            }),
            _ => None,
        };
        self.tree.iter().map(file).collect::<Option<_>>().map(Tree::new)
    }
}

/// Makes `folder` anew with `entries`.
pub(crate) fn lay_out(folder: &Utf8Path, entries: &Entries) {
    xtask::sys::fs::remove(folder).unwrap();
    fs_err::create_dir_all(folder).unwrap();
    for (path, entry) in entries {
        let at = folder.join(path);
        fs_err::create_dir_all(at.parent().unwrap()).unwrap();
        match entry {
            Entry::File(text, mtime_s) => {
                xtask::sys::fs::write(&at, text.as_bytes()).unwrap();
                let since_1970 = Duration::from_secs(u64::try_from(*mtime_s).unwrap());
                let file = fs_err::OpenOptions::new().write(true).open(&at).unwrap();
                file.file().set_modified(SystemTime::UNIX_EPOCH + since_1970).unwrap();
            }
            Entry::Link(holds) => fs_err::os::unix::fs::symlink(holds, &at).unwrap(),
            Entry::Folder => fs_err::create_dir_all(&at).unwrap(),
        }
    }
}
