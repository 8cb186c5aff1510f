//! The inputs of a step: each lies under a declared root, and is hashed.

use camino::{Utf8Path, Utf8PathBuf};
use requal::command::Place;
use requal::observation::Observation;
use requal::receipt::{Input, RelativePath, Root};
use requal::{Digest, Failure, Outcome};

/// What the kernel makes up while it is read: no content of the machine.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// What every program of the machine reads at the real path; a room holds none of it.
const MACHINE: [&str; 2] = ["/etc/ld.so.cache", "/usr/share/zoneinfo"];

/// The observed files by the names of the places, which may be links where no room is.
pub(super) fn opened(observed: &Observation, place: &Place) -> Outcome<Vec<String>> {
    let mut real = Vec::new();
    for at in [&place.toolchain, &place.tree, &place.build] {
        real.push((Utf8Path::new(at).canonicalize_utf8()?, at));
    }
    let named = |path: &String| {
        let below = |(root, at): &(Utf8PathBuf, &String)| {
            Some(Utf8Path::new(at).join(Utf8Path::new(path).strip_prefix(root).ok()?).to_string())
        };
        real.iter().find_map(below).unwrap_or_else(|| path.clone())
    };
    let files =
        observed.opened.iter().filter(|path| !KERNEL.iter().any(|at| Utf8Path::new(path).starts_with(at)));
    Ok(files.map(named).collect())
}

/// Sorts `paths` under their roots and hashes each. The objects that a link was told to read are `made` by this build and
/// left out; anything else in the build folder lies under no declared root.
///
/// # Errors
/// `E-INPUT-STRAY` with every path that lies under no declared root, `E-INPUT-NAME` for one that no record can hold.
pub(super) fn hash(
    paths: &[String],
    made: &[String],
    place: &Place,
    system: &[String],
) -> Outcome<Vec<Input>> {
    let mut inputs = Vec::new();
    let mut strays = Vec::new();
    for path in paths.iter().filter(|path| !made.contains(path)) {
        match root(path, place, system) {
            Some((root, relative)) => {
                let (sha256, size_bytes) = Digest::of_reader(fs_err::File::open(path)?)?;
                inputs.push(Input { root, path: recorded(relative)?, sha256, size_bytes });
            }
            None => strays.push(
                Failure::build_failed(
                    "E-INPUT-STRAY",
                    format!("{path} was read, and lies under no declared root"),
                )
                .expected(format!(
                    "only {}, {} and the host compiler's own files",
                    place.tree, place.toolchain
                ))
                .found(path)
                .hint("look for an absolute -I or #include in the unit"),
            ),
        }
    }
    Failure::all(strays)?;
    inputs.sort_unstable();
    inputs.dedup();
    Ok(inputs)
}

fn recorded(path: String) -> Outcome<RelativePath> {
    RelativePath::new(path.clone()).map_err(|why| {
        Failure::build_failed("E-INPUT-NAME", format!("{path} was read, and cannot stand in a record"))
            .expected("a path of plain characters")
            .found(why)
            .hint("rename the file or folder")
    })
}

/// Trees hold no other links, so what lies in them is found by name; the host's folders do, and are compared without.
fn root(path: &str, place: &Place, system: &[String]) -> Option<(Root, String)> {
    let ours = [(Root::Tree, &place.tree), (Root::Toolchain, &place.toolchain)];
    let below = |at: &String| Utf8Path::new(path).strip_prefix(at).ok().map(Utf8Path::to_string);
    if let (Some(relative), Ok(target)) = (below(&place.toolchain), fs_err::read_link(path)) {
        // The one link that we made there ourselves names a file beside it.
        let target = Utf8Path::new(&relative).with_file_name(target.to_str()?);
        return Some((Root::Toolchain, target.to_string()));
    }
    ours.into_iter().find_map(|(root, at)| below(at).map(|relative| (root, relative))).or_else(|| {
        let real = Utf8Path::new(path).canonicalize_utf8().ok()?;
        let is_at = |at: &str| {
            real.starts_with(at) || Utf8Path::new(at).canonicalize_utf8().is_ok_and(|at| at == real)
        };
        let declared = system.iter().map(String::as_str).chain(MACHINE).any(is_at);
        declared.then(|| (Root::System, real.as_str().trim_start_matches('/').to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f06_a_header_outside_the_declared_roots_is_named() {
        let place = Place::fixed();
        let system = ["/usr/include".to_owned()];
        let at = |path| root(path, &place, &system);
        assert_eq!(at("/requal/tree/units/a.cu"), Some((Root::Tree, "units/a.cu".to_owned())));
        assert_eq!(at("/requal/toolchain/x.h"), Some((Root::Toolchain, "x.h".to_owned())));
        let header = "/usr/include/stdio.h";
        assert_eq!(at(header), Some((Root::System, header[1..].to_owned())));
        for stray in ["/usr/bin/env", "/requal/tree2/a.h", "/usr/include/no-such.h", "a.h"] {
            assert_eq!(at(stray), None, "{stray}");
        }
        let both = ["/opt/cuda/a.h".to_owned(), "/opt/cuda/b.h".to_owned()];
        let failure = hash(&both, &[], &place, &system).unwrap_err();
        assert_eq!((failure.code, failure.related.len()), ("E-INPUT-STRAY", 1));
    }
}
