//! From a path as a process asked for it to the place that it means: each link on the way read once and kept.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::ErrorKind;

use rustix::process::Pid;

/// Links that a path may lead through before the kernel gives up.
const MAX_LINKS: usize = 40;

/// Where a path leads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// The path without links; past a missing folder what remains is added by name.
    pub(super) place: String,
    /// The links that were passed, and the final one even if it is not followed, with what they hold.
    pub(super) links: Vec<(String, String)>,
}

/// What the names of the file system were found to be.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// What is known of a path: the link's content, or that it is there and no link.
    known: HashMap<String, Option<String>>,
}

enum Found {
    Link(String),
    Plain,
    Missing,
}

impl Paths {
    /// Follows `asked`, an absolute path, as process `pid` would.
    pub(super) fn follow(&mut self, pid: Pid, asked: &str, last: bool) -> Way {
        let mut way = Way::default();
        let follow_last = last || asked.ends_with('/');
        let mut rest: VecDeque<String> = names(asked).collect();
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                way.place.truncate(way.place.rfind('/').unwrap_or(0));
                continue;
            }
            way.place.push('/');
            way.place.push_str(&name);
            match self.find(pid, &way.place) {
                Found::Plain => {}
                Found::Missing if rest.iter().any(|name| name == "..") => return way,
                Found::Missing => {
                    for name in rest {
                        way.place.push('/');
                        way.place.push_str(&name);
                    }
                    return way;
                }
                Found::Link(target) => {
                    let past = way.links.len() >= MAX_LINKS;
                    way.links.push((way.place.clone(), target.clone()));
                    if past || rest.is_empty() && !follow_last {
                        return way;
                    }
                    let parent = way.place.rfind('/').unwrap_or(0);
                    way.place.truncate(if target.starts_with('/') { 0 } else { parent });
                    for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                        rest.push_front(name);
                    }
                }
            }
        }
        if way.place.is_empty() {
            way.place.push('/');
        }
        way
    }

    fn find(&mut self, pid: Pid, path: &str) -> Found {
        if let Some(known) = self.known.get(path) {
            return known.clone().map_or(Found::Plain, Found::Link);
        }
        // These two would name this process; they stand for the one that asks.
        if ["/proc/self", "/proc/thread-self"].contains(&path) {
            return Found::Plain;
        }
        let found = match fs_err::read_link(seen_by(pid, path)) {
            Ok(target) => match target.into_os_string().into_string() {
                // What only looks like a link, such as `pipe:[1]` of a descriptor, leads nowhere by name.
                Ok(target) if path.starts_with("/proc/") && !target.starts_with('/') => None,
                Ok(target) => Some(target),
                Err(_) => None,
            },
            Err(error) if error.kind() == ErrorKind::InvalidInput => None,
            Err(_) => return Found::Missing,
        };
        if !path.starts_with("/proc/") {
            self.known.insert(path.to_owned(), found.clone());
        }
        found.map_or(Found::Plain, Found::Link)
    }

    /// Forgets what is known of `place` and of all below it: it was changed. Says whether it was a link.
    pub(super) fn forget(&mut self, place: &str) -> bool {
        let was_link = self.known.get(place).is_some_and(Option::is_some);
        self.known.retain(|path, _| !is_below(path, place));
        was_link
    }
}

/// The path by which this process reaches what `pid` reaches by `path`.
pub(super) fn seen_by(pid: Pid, path: &str) -> String {
    let number = pid.as_raw_nonzero();
    match path.strip_prefix("/proc/self/").or_else(|| path.strip_prefix("/proc/thread-self/")) {
        Some(rest) => format!("/proc/{number}/{rest}"),
        None => path.to_owned(),
    }
}

/// Whether `path` is `folder` or lies below it.
pub(super) fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Keeps the links of `way` that say the same in every run.
pub(super) fn keep_links(way: &Way, links: &mut BTreeMap<String, String>) {
    for (link, target) in &way.links {
        if !links.contains_key(link) {
            links.insert(link.clone(), target.clone());
        }
    }
}

fn names(path: &str) -> impl DoubleEndedIterator<Item = String> {
    path.split('/').filter(|name| !name.is_empty() && *name != ".").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_as_the_kernel_does() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().to_str().unwrap().to_owned();
        fs_err::create_dir_all(format!("{root}/a/b")).unwrap();
        symlink("a/b", format!("{root}/short")).unwrap();
        symlink(format!("{root}/short"), format!("{root}/a/again")).unwrap();
        symlink("loop", format!("{root}/loop")).unwrap();
        let mut paths = Paths::default();
        let mut place = |path: &str, last| {
            let way = paths.follow(rustix::process::getpid(), &format!("{root}/{path}"), last);
            (way.place.strip_prefix(&root).unwrap().to_owned(), way.links.len())
        };
        for (asked, last, expected, links) in [
            ("a/./b//", true, "/a/b", 0),
            ("short", true, "/a/b", 1),
            ("short", false, "/short", 1),
            ("short/", false, "/a/b", 1),
            ("short/../x", true, "/a/x", 1),
            ("a/again/x/y", true, "/a/b/x/y", 2),
            ("no/x", true, "/no/x", 0),
            ("no/../x", true, "/no", 0),
        ] {
            assert_eq!(place(asked, last), (expected.to_owned(), links), "{asked}");
        }
        assert_eq!(place("loop", true).1, MAX_LINKS + 1);
        let own = paths.follow(rustix::process::getpid(), "/proc/self/exe", true);
        assert_eq!(own.place, std::env::current_exe().unwrap().to_str().unwrap());
        assert_eq!(paths.follow(rustix::process::getpid(), "/..", true).place, "/");
    }
}
