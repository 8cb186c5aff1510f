//! The place of a build: what a compile sees, inside a sandbox or at the real path.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use requal::command::{self, Place};
use requal::digest::Hasher;
use requal::versions::HostCompiler;
use requal::{Digest, Failure, Outcome};

use super::{Reuse, Site};
use crate::sys::layout;
use crate::sys::proc::Call;
use crate::sys::sandbox::{Link, Mount, Room};
use crate::trees::SourceTree;

/// Our own binary inside the sandbox.
pub(super) const OWN: &str = "/requal/bin/xtask";
/// The build folder of the tree whose objects may be taken, inside the sandbox.
pub(super) const COUNTERPART: &str = "/requal/counterpart";
/// Links of the root folder through which the host's files are named.
const ROOT_LINKS: [&str; 3] = ["/bin", "/lib", "/lib64"];
/// The programs that gcc finds on PATH.
const ON_PATH: [&str; 2] = ["as", "ld"];

/// The place at a real path of `scratch`.
///
/// # Errors
/// `E-SCRATCH-NAME` if the path holds a character that dependency files or shells read otherwise.
pub fn real_place(scratch: &Utf8Path) -> Outcome<Place> {
    let plain = |c: char| c.is_alphanumeric() || "/_-.+".contains(c);
    if let Some(odd) = scratch.as_str().chars().find(|c| !plain(*c)) {
        return Err(Failure::bad_input(
            "E-SCRATCH-NAME",
            format!("the scratch's path {scratch} holds `{}`", odd.escape_debug()),
        )
        .expected("letters, digits, `/`, `_`, `-`, `.` and `+` where no sandbox hides the path")
        .found(odd.escape_debug())
        .hint("--scratch DIR with another name, or --sandbox require"));
    }
    let at = |name: &str| scratch.join("place").join(name).to_string();
    Ok(Place {
        toolchain: scratch.join("toolchain").to_string(),
        tree: at("tree"),
        build: at("build"),
        host: at("host"),
    })
}

/// Makes the place ready for `tree`, which is laid out at `source` and builds in `folder`: the room of the sandbox, or
/// none at the real path.
pub(super) fn prepare(
    site: &Site,
    tree: &SourceTree,
    source: &Utf8Path,
    folder: &Utf8Path,
    reuse: &Reuse<'_>,
) -> Outcome<Option<Room>> {
    if !site.sandboxed {
        tree.lay_out(Utf8Path::new(&site.place.tree))?;
        layout::link(Utf8Path::new(&site.place.build), folder)?;
        for (name, program) in on_path(&site.host) {
            layout::link(&Utf8Path::new(&site.place.host).join(name), program)?;
        }
        return Ok(None);
    }
    let mut room = host_room(&site.host);
    for (to, from, writable) in [
        (site.place.toolchain.as_str(), site.toolchain.as_path(), false),
        (site.place.tree.as_str(), source, false),
        (site.place.build.as_str(), folder, true),
        (OWN, site.own.as_path(), false),
    ] {
        room.mounts.push(Mount { to: to.into(), from: from.to_owned(), writable });
    }
    if let Reuse::From(counterpart) = reuse {
        let from = counterpart.built.folder.clone();
        room.mounts.push(Mount { to: COUNTERPART.into(), from, writable: false });
    }
    let links = on_path(&site.host).map(|(name, program)| Link {
        at: format!("{}/{name}", site.place.host).into(),
        to: program.clone(),
    });
    room.links.extend(links);
    Ok(Some(room))
}

/// The host compiler's files at their own paths, and the links of the root folder through which they are named.
fn host_room(host: &HostCompiler) -> Room {
    let mounts =
        host.mounts.iter().map(|path| Mount { to: path.clone(), from: path.clone(), writable: false });
    let links = ROOT_LINKS.into_iter().filter_map(|at| {
        let to = Utf8PathBuf::from_path_buf(fs_err::read_link(at).ok()?).ok()?;
        Some(Link { at: at.into(), to })
    });
    Room { mounts: mounts.collect(), links: links.collect() }
}

/// Whether a room shows the machine's `path`, or a folder on the way to something that it shows.
pub(super) fn shows(host: &HostCompiler, path: &Utf8Path) -> bool {
    let mounted = host.mounts.iter().any(|mount| path.starts_with(mount) || mount.starts_with(path));
    mounted || ROOT_LINKS.iter().any(|link| path.as_str() == *link)
}

pub(super) fn on_path(host: &HostCompiler) -> impl Iterator<Item = (&str, &Utf8PathBuf)> {
    let named = host.programs.iter().filter(|program| ON_PATH.contains(&program.name.as_str()));
    named.map(|program| (program.name.as_str(), &program.path))
}

/// A call of Ninja in the place.
pub(super) fn ninja_call(site: &Site, args: &[&str]) -> Call {
    let program = format!("{}/{}", site.place.toolchain, site.ninja);
    let environment: BTreeMap<String, String> = command::environment(&site.limits)
        .into_iter()
        .filter(|(name, _)| name != "TMPDIR")
        .map(|(name, value)| (name, site.place.resolve(&value, "")))
        .collect();
    Call { env: environment, ..Call::new(program.as_str().into(), args, site.place.build.as_str().into()) }
}

/// Digest of the host compiler's programs, and of the names below its include folders: an added header can hide another.
pub(crate) fn host_digest(host: &HostCompiler) -> Digest {
    let mut hasher = Hasher::new();
    for program in &host.programs {
        hasher.update(format!("{}\0{}\0{}\0", program.name, program.path, program.sha256).as_bytes());
    }
    let folders =
        host.mounts.iter().filter(|path| path.as_str().contains("include") || path.as_str().contains("gcc"));
    for folder in folders {
        for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_map(Result::ok) {
            hasher.update(entry.path().as_os_str().as_encoded_bytes());
            hasher.update(b"\0");
        }
    }
    hasher.finish()
}
