//! The scratch's lock: one run at a time; a second one refuses and names the holder.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};

use camino::Utf8Path;
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
    let path = scratch.join(FILE);
    let options =
        fs_err::OpenOptions::new().create(true).read(true).write(true).truncate(false).open(&path)?;
    let (mut file, _) = options.into_parts();
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
}
