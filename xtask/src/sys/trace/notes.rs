//! From calls and their results to the record: what each says about the file system outside of the tree's own doing.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;

use requal::depfile::normalise;
use requal::observation::{Executed, Observation};
use rustix::process::Pid;

use super::paths::{Paths, Way, is_below, keep_links, seen_by};
use super::table::Act;

/// Scripts that the kernel starts for the sake of another script, at most.
const MAX_SCRIPTS: usize = 6;

/// A path as a process asked for it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Where it stands in the process's memory, and its bytes there.
    pub(super) address: u64,
    pub(super) raw: Vec<u8>,
    /// Absolute, but with all `..` and links.
    pub(super) text: String,
    /// Whether a final link is followed.
    pub(super) follow: bool,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Done(i64),
    /// ENOENT or ENOTDIR.
    Absent(i32),
    /// It was not about the file system, or it will be made again.
    Nothing,
    Refused(i32),
}

/// An open that is not for reading alone, or more than that.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opening {
    pub(super) flags: i32,
    /// Whether the file was there before.
    pub(super) existed: bool,
}

/// Calls that ask the same of the same path get the same answer, until the tree changes something there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Question {
    Read,
    Look,
    LookAtLink,
    Link,
}

/// The record as it grows.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) seen: Observation,
    paths: Paths,
    /// Places that the tree made or removed; what is found there later is its own doing.
    own: HashSet<String>,
    /// Those of them that are folders.
    own_folders: HashSet<String>,
    /// For each question the paths that were asked for before.
    answered: [std::collections::HashMap<String, String>; 4],
}

impl End {
    pub(super) fn of(value: i64) -> Self {
        if !(-4095..0).contains(&value) {
            return Self::Done(value);
        }
        // From 512 on stand the kernel's own marks of calls that a signal makes it start again.
        match i32::try_from(-value).unwrap_or_default() {
            errno @ (libc::ENOENT | libc::ENOTDIR) => Self::Absent(errno),
            libc::EFAULT | libc::EBADF | libc::EINTR | 512.. => Self::Nothing,
            errno => Self::Refused(errno),
        }
    }
}

impl Notes {
    pub(super) fn gap(&mut self, why: impl Into<String>) {
        self.seen.gaps.insert(why.into());
    }

    pub(super) fn is_answered(&self, question: Question, text: &str) -> bool {
        self.answered[question as usize].contains_key(text)
    }

    pub(super) fn list(&mut self, place: String) {
        if !self.is_own(&place) {
            self.seen.listed.insert(place);
        }
    }

    /// Records one call on one path. `question` is given if the answer stays the same until something changes.
    pub(super) fn one(
        &mut self,
        pid: Pid,
        act: Act,
        asked: &Asked,
        opening: Opening,
        end: End,
        question: Option<Question>,
    ) {
        let way = self.paths.follow(pid, &asked.text, asked.follow);
        let creating = matches!(act, Act::Make) || opening.flags & libc::O_CREAT != 0;
        match (act, end) {
            (_, End::Nothing) => return,
            (Act::Execute(_), End::Absent(errno)) if is_there(&seen_by(pid, &way.place)) => {
                self.refused(&way.place, errno); // Its interpreter is missing.
            }
            (_, End::Absent(_)) if creating => self.absent(parent(&way.place)),
            (_, End::Absent(_)) => self.absent(&way.place),
            (Act::ReadLink, End::Refused(libc::EINVAL)) => self.looked(&way.place),
            (_, End::Refused(libc::EEXIST)) if creating => self.looked(&way.place),
            (_, End::Refused(errno)) => self.refused(&way.place, errno),
            (Act::Open(_), End::Done(descriptor)) => self.open(pid, descriptor, asked, &way, opening),
            (Act::Make, End::Done(_)) => self.made(&way.place),
            (Act::Remove, End::Done(_)) => {
                self.looked(&way.place);
                self.changed(&way.place);
            }
            (Act::Alter, End::Done(_)) => {
                self.read(pid, &way.place);
                self.seen.written.insert(way.place.clone());
            }
            (Act::ReadLink, End::Done(_)) => {}
            (_, End::Done(_)) => self.looked(&way.place),
        }
        if let Some(question) = question.filter(|_| !self.is_own(&way.place)) {
            self.answered[question as usize].insert(asked.text.clone(), way.place.clone());
        }
        self.passed(&way);
    }

    /// Records a rename (`takes`) or a hard link.
    pub(super) fn moved(&mut self, pid: Pid, takes: bool, from: &Asked, to: &Asked, end: End) {
        let ways = [from, to].map(|asked| self.paths.follow(pid, &asked.text, asked.follow));
        match end {
            End::Nothing => return,
            End::Absent(_) => {
                for (way, decided) in ways.iter().zip([&ways[0].place[..], parent(&ways[1].place)]) {
                    if !is_there(decided) {
                        self.absent(decided);
                    } else if way.place == decided {
                        self.looked(decided);
                    }
                }
            }
            End::Refused(errno) => ways.iter().for_each(|way| self.refused(&way.place, errno)),
            End::Done(_) => {
                // After a rename the content is at its new place.
                if !self.is_own(&ways[0].place) {
                    let now = fs_err::symlink_metadata(&ways[1].place);
                    match now.is_ok_and(|data| data.is_file()) {
                        true => drop(self.seen.opened.insert(ways[0].place.clone())),
                        false => self.gap(format!("{} was moved with what it holds", ways[0].place)),
                    }
                }
                if takes {
                    self.changed(&ways[0].place);
                }
                self.made(&ways[1].place);
            }
        }
        ways.iter().for_each(|way| self.passed(way));
    }

    /// Records a started program: `asked` is what the call named, `argv` what it got.
    pub(super) fn started(&mut self, pid: Pid, asked: Option<&Asked>, argv: Vec<String>) {
        let number = pid.as_raw_nonzero();
        let Some(program) = link_text(&format!("/proc/{number}/exe")) else {
            return self.gap("a started program could not be named");
        };
        let Ok(maps) = fs_err::read_to_string(format!("/proc/{number}/maps")) else {
            return self.gap(format!("the files of {program} could not be read from its memory map"));
        };
        // The kernel has opened the program and its loader.
        for file in maps.lines().filter_map(|line| line.split_once('/')).map(|(_, path)| format!("/{path}")) {
            self.read(pid, &file);
        }
        if let Some(asked) = asked {
            let way = self.paths.follow(pid, &asked.text, true);
            self.read(pid, &way.place);
            self.lead(&asked.text, &way.place);
            self.passed(&way);
            self.scripts(pid, &way.place, &program);
        }
        self.seen.executed.push(Executed { program, argv });
    }

    /// The scripts between what was asked for and what was started: the kernel reads the first line of each.
    fn scripts(&mut self, pid: Pid, asked: &str, program: &str) {
        let mut place = asked.to_owned();
        for _ in 0..MAX_SCRIPTS {
            if place == program {
                return;
            }
            let bytes = fs_err::read(&place).unwrap_or_default();
            let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
            let word = line.strip_prefix(b"#!").and_then(|line| std::str::from_utf8(line).ok());
            let Some(next) =
                word.and_then(|line| line.split_whitespace().next()).filter(|w| w.starts_with('/'))
            else {
                break;
            };
            let way = self.paths.follow(pid, next, true);
            self.read(pid, &way.place);
            self.lead(next, &way.place);
            self.passed(&way);
            place = way.place;
        }
        self.gap(format!("{asked} was started by {program} in an unknown way"));
    }

    fn open(&mut self, pid: Pid, descriptor: i64, asked: &Asked, way: &Way, opening: Opening) {
        let here = format!("/proc/{}/fd/{descriptor}", pid.as_raw_nonzero());
        let (Some(real), Ok(data)) = (link_text(&here), fs_err::metadata(&here)) else {
            return self.gap(format!("what was opened as {} could not be named", asked.text));
        };
        let flags = opening.flags;
        if flags & libc::O_PATH != 0 || !data.is_file() {
            return self.looked(&way.place);
        }
        if flags & libc::O_TMPFILE == libc::O_TMPFILE {
            return; // It never had a name.
        }
        let nameless = data.nlink() == 0 || !real.starts_with('/') || way.place.starts_with("/proc/");
        if !nameless && real != way.place {
            self.gap(format!("{} led to {real}, and by its links to {}", asked.text, way.place));
        }
        let place = if nameless { &way.place } else { &real };
        self.lead(&asked.text, place);
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0;
        if !writes && (opening.existed || flags & libc::O_CREAT == 0) {
            return self.read(pid, place);
        }
        // What is not cut to nothing is still an input, even if it is only written to.
        if opening.existed && flags & libc::O_TRUNC == 0 {
            self.read(pid, place);
        } else if opening.existed {
            self.looked(place);
        }
        self.changed(place);
    }

    /// Notes that `place`, a regular file, was read.
    fn read(&mut self, pid: Pid, place: &str) {
        if self.seen.opened.contains(place) || self.is_own(place) {
            return;
        }
        let is_file = fs_err::metadata(seen_by(pid, place)).is_ok_and(|data| data.is_file());
        let set = if is_file { &mut self.seen.opened } else { &mut self.seen.stats };
        set.insert(place.to_owned());
    }

    fn looked(&mut self, place: &str) {
        if !self.seen.stats.contains(place) && !self.is_own(place) {
            self.seen.stats.insert(place.to_owned());
        }
    }

    fn absent(&mut self, place: &str) {
        if !self.seen.probes.contains(place) && !self.is_own(place) {
            self.seen.probes.insert(place.to_owned());
        }
    }

    fn refused(&mut self, place: &str, errno: i32) {
        if !self.is_own(place) {
            self.seen.refused.entry(place.to_owned()).or_default().insert(errno);
        }
    }

    fn lead(&mut self, asked: &str, place: &str) {
        let asked = normalise(asked);
        if asked != place && !self.is_own(place) {
            self.seen.led.entry(asked).or_insert_with(|| place.to_owned());
        }
    }

    fn passed(&mut self, way: &Way) {
        if way.links.iter().any(|(link, _)| self.is_own(link)) {
            return;
        }
        keep_links(way, &mut self.seen.links);
    }

    fn made(&mut self, place: &str) {
        self.changed(place);
        if fs_err::symlink_metadata(place).is_ok_and(|data| data.is_dir()) {
            self.own_folders.insert(place.to_owned());
        }
    }

    /// `place` was made, replaced or removed by the tree: what was known there is forgotten.
    fn changed(&mut self, place: &str) {
        let was_link = self.paths.forget(place);
        for answered in &mut self.answered {
            answered.retain(|_, other| !was_link && !is_below(other, place));
        }
        self.own.insert(place.to_owned());
        self.seen.written.insert(place.to_owned());
    }

    fn is_own(&self, place: &str) -> bool {
        if self.own.contains(place) {
            return true;
        }
        let mut folder = place;
        while !self.own_folders.is_empty() && folder.len() > 1 {
            folder = parent(folder);
            if self.own_folders.contains(folder) {
                return true;
            }
        }
        false
    }
}

/// The text of a link that the kernel makes up for a process.
pub(super) fn link_text(path: &str) -> Option<String> {
    fs_err::read_link(path).ok()?.into_os_string().into_string().ok()
}

fn is_there(path: &str) -> bool {
    fs_err::symlink_metadata(path).is_ok()
}

fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(end) => &path[..end],
    }
}
