//! The scratch's lock: one run at a time; a second one refuses and names the holder.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};

use camino::Utf8Path;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use requal::{Failure, Outcome};

/// File of the scratch that is locked. It stays: removing it would let two runs hold two files of one name.
const FILE: &str = ".lock";

/// The held lock; the kernel frees it when this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct Held {
    _file: File,
}

/// Makes the scratch if it is not there, and holds it for this process.
///
/// # Errors
/// `E-SCRATCH-HELD` (exit 3) naming the holder, `E-IO`.
pub fn hold(scratch: &Utf8Path) -> Outcome<Held> {
    fs_err::create_dir_all(scratch)?;
    ours(scratch)?;
    let path = scratch.join(FILE);
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    let mut options = fs_err::OpenOptions::new();
    options.create(true).read(true).write(true).truncate(false).custom_flags(flags);
    let (mut file, _) = options.open(&path)?.into_parts();
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder)?;
            return Err(Failure::could_not_judge(
                "E-SCRATCH-HELD",
                format!("another run uses the scratch {scratch}"),
            )
            .expected("one run at a time")
            .found(format!("held by {}", holder.trim()))
            .hint("wait for it, or use another --scratch"));
        }
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    file.set_len(0)?;
    file.write_all(format!("process {}\n", std::process::id()).as_bytes())?;
    Ok(Held { _file: file })
}

/// A scratch is a folder that was empty when this tool came first, and its folders are no links: what they would lead to
/// is not ours to write or to clear.
fn ours(scratch: &Utf8Path) -> Outcome<()> {
    let names: Vec<String> = scratch
        .read_dir_utf8()?
        .map(|entry| Ok(entry?.file_name().to_owned()))
        .collect::<std::io::Result<_>>()?;
    if !names.is_empty() && !names.iter().any(|name| name == FILE) {
        return Err(Failure::bad_input("E-SCRATCH-FOREIGN", format!("{scratch} is no scratch of this tool"))
            .expected(format!("a folder that does not exist, an empty one, or one with the file {FILE}"))
            .found(format!("{} and {} more", names[0], names.len() - 1))
            .hint("--scratch DIR with another folder"));
    }
    let below = ["trees", "build"].map(|name| scratch.join(name));
    let inner = below.iter().filter_map(|folder| folder.read_dir_utf8().ok()).flatten();
    let inner = inner.filter_map(Result::ok).map(camino::Utf8DirEntry::into_path);
    let links: Vec<_> = names
        .iter()
        .map(|name| scratch.join(name))
        .chain(inner)
        .filter(|path| path.is_symlink())
        .map(|path| {
            Failure::refused("E-TREE-LINK", format!("{path} is a link and is not followed"))
                .expected("a folder or file that this tool made")
                .found("a link")
                .hint(format!("look at it, then remove it: rm {path}"))
        })
        .collect();
    Failure::all(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_is_refused_and_the_holder_named() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Utf8Path::from_path(folder.path()).unwrap().join("new");
        let first = hold(&scratch).unwrap();
        let failure = hold(&scratch).unwrap_err();
        assert_eq!(failure.code, "E-SCRATCH-HELD");
        assert!(failure.found.unwrap().contains(&std::process::id().to_string()));
        drop(first);
        hold(&scratch).unwrap();
    }

    #[test]
    fn a_folder_of_somebody_else_or_with_links_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let foreign = root.join("foreign");
        fs_err::create_dir_all(foreign.join("trees")).unwrap();
        assert_eq!(hold(&foreign).unwrap_err().code, "E-SCRATCH-FOREIGN");
        let scratch = root.join("scratch");
        drop(hold(&scratch).unwrap());
        fs_err::create_dir(scratch.join("build")).unwrap();
        for link in ["trees", "build/p2p"] {
            fs_err::os::unix::fs::symlink(&foreign, scratch.join(link)).unwrap();
            let failure = hold(&scratch).unwrap_err();
            assert!(failure.code == "E-TREE-LINK" && failure.what.contains(link), "{failure}");
            fs_err::remove_file(scratch.join(link)).unwrap();
        }
        hold(&scratch).unwrap();
    }
}
