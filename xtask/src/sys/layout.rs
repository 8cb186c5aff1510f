//! Laying out and clearing folders of the scratch. Links are never followed: what is in the way is refused by name.

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use requal::{Failure, Outcome};
use tempfile::NamedTempFile;

/// Makes `folder/path` a file of `content`, permission bits `mode` and mtime `mtime_s`. What is equal stays untouched.
///
/// # Errors
/// `E-TREE-LINK` if a link or special file is in the way, `E-IO`.
pub fn put(folder: &Utf8Path, path: &str, content: &[u8], mode: u32, mtime_s: i64) -> Outcome<()> {
    let target = folder.join(path);
    let parent = target.parent().unwrap_or(folder);
    plain_folders(folder, parent)?;
    let mtime = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(mtime_s).unwrap_or(0));
    if let Ok(found) = fs_err::symlink_metadata(&target) {
        if !found.is_file() {
            return Err(in_the_way(&target));
        }
        let same = found.len() == content.len() as u64 && fs_err::read(&target)? == content;
        if same && found.permissions().mode() & 0o7777 == mode && found.modified()? == mtime {
            return Ok(());
        }
    }
    let mut file = NamedTempFile::with_prefix_in(".part-", parent)?;
    file.write_all(content)?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.as_file().set_modified(mtime)?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// Removes everything below `folder` that is neither kept nor a folder of something kept.
///
/// # Errors
/// `E-TREE-LINK` if `folder` is a link: what it points to is not ours. `E-IO`.
pub fn remove_others(folder: &Utf8Path, kept: impl Fn(&str) -> bool) -> Outcome<()> {
    if fs_err::symlink_metadata(folder)?.is_symlink() {
        return Err(in_the_way(folder));
    }
    for entry in walkdir::WalkDir::new(folder).min_depth(1).contents_first(true) {
        let entry = entry.map_err(std::io::Error::from)?;
        let relative =
            entry.path().strip_prefix(folder).unwrap_or(entry.path()).to_string_lossy().into_owned();
        if !entry.file_type().is_dir() {
            if !kept(&relative) {
                fs_err::remove_file(entry.path())?;
            }
        } else if fs_err::read_dir(entry.path())?.next().is_none() {
            fs_err::remove_dir(entry.path())?;
        }
    }
    Ok(())
}

/// Makes `folder` anew and empty, for its owner alone.
///
/// # Errors
/// `E-IO`.
pub fn fresh_folder(folder: &Utf8Path) -> Outcome<()> {
    super::fs::remove(folder)?;
    fs_err::create_dir_all(folder)?;
    Ok(fs_err::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?)
}

/// Gives the finished file `from` its final name, once its bytes are on the disk.
///
/// # Errors
/// `E-IO`.
pub fn publish(from: &Utf8Path, to: &Utf8Path) -> Outcome<()> {
    fs_err::OpenOptions::new().read(true).custom_flags(0).open(from)?.sync_data()?;
    fs_err::create_dir_all(to.parent().unwrap_or(Utf8Path::new(".")))?;
    Ok(fs_err::rename(from, to)?)
}

/// Removes a file, if it is there.
///
/// # Errors
/// `E-IO`.
pub fn remove_if_there(path: &Utf8Path) -> Outcome<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Makes `at` a symbolic link to `target`, in place of an earlier link.
///
/// # Errors
/// `E-TREE-LINK` if something else is in the way, `E-IO`.
pub fn link(at: &Utf8Path, target: &Utf8Path) -> Outcome<()> {
    fs_err::create_dir_all(at.parent().unwrap_or(Utf8Path::new(".")))?;
    match fs_err::symlink_metadata(at) {
        Ok(found) if !found.is_symlink() => return Err(in_the_way(at)),
        Ok(_) if fs_err::read_link(at)? == target.as_std_path() => return Ok(()),
        _ => {}
    }
    let staged = Utf8PathBuf::from(format!("{at}.part"));
    remove_if_there(&staged)?;
    symlink(target, &staged)?;
    Ok(fs_err::rename(staged, at)?)
}

/// Makes the folders from `root` down to `parent`; none of them, `root` included, may be a link.
fn plain_folders(root: &Utf8Path, parent: &Utf8Path) -> Outcome<()> {
    let below = parent.ancestors().take_while(|folder| folder.starts_with(root));
    for folder in below {
        if fs_err::symlink_metadata(folder).is_ok_and(|found| found.is_symlink()) {
            return Err(in_the_way(folder));
        }
    }
    Ok(fs_err::create_dir_all(parent)?)
}

fn in_the_way(path: &Utf8Path) -> Box<Failure> {
    Failure::refused("E-TREE-LINK", format!("{path} is in the way and is not followed"))
        .expected("a plain file or folder, or nothing")
        .found("a link or a special file that this tool did not make")
        .hint(format!("look at it, then remove it: rm {path}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn scratch() -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        (folder, path)
    }

    #[test]
    fn what_is_equal_keeps_its_inode_and_what_differs_is_restored() {
        let (_keep, root) = scratch();
        let state = || {
            let found = fs_err::metadata(root.join("a/b.h")).unwrap();
            (found.ino(), found.mtime(), found.mode() & 0o7777)
        };
        put(&root, "a/b.h", b"1", 0o644, 1_000_000).unwrap();
        let first = state();
        assert_eq!((first.1, first.2), (1_000_000, 0o644));
        put(&root, "a/b.h", b"1", 0o644, 1_000_000).unwrap();
        assert_eq!(state(), first);
        put(&root, "a/b.h", b"2", 0o644, 1_000_000).unwrap();
        assert_ne!(state().0, first.0);
    }

    #[test]
    fn f56_a_planted_link_is_refused_and_not_followed() {
        let (_keep, root) = scratch();
        let outside = root.join("outside");
        fs_err::create_dir(&outside).unwrap();
        let tree = root.join("tree");
        fs_err::create_dir(&tree).unwrap();
        symlink(&outside, tree.join("a")).unwrap();
        assert_eq!(put(&tree, "a/b.h", b"1", 0o644, 0).unwrap_err().code, "E-TREE-LINK");
        assert!(fs_err::read_dir(&outside).unwrap().next().is_none());
        remove_others(&tree, |_| false).unwrap();
        assert!(outside.is_dir() && !tree.join("a").exists());
    }

    #[test]
    fn f56_a_tree_that_is_a_link_is_refused_and_what_it_points_to_is_kept() {
        let (_keep, root) = scratch();
        put(&root.join("outside"), "precious", b"1", 0o644, 0).unwrap();
        symlink(root.join("outside"), root.join("tree")).unwrap();
        let tree = root.join("tree");
        assert_eq!(put(&tree, "a/b.h", b"1", 0o644, 0).unwrap_err().code, "E-TREE-LINK");
        assert_eq!(remove_others(&tree, |_| false).unwrap_err().code, "E-TREE-LINK");
        assert!(root.join("outside/precious").exists() && !root.join("outside/a").exists());
    }

    #[test]
    fn others_are_removed_and_links_replaced() {
        let (_keep, root) = scratch();
        put(&root, "a/kept", b"", 0o644, 0).unwrap();
        put(&root, "b/c/gone", b"", 0o644, 0).unwrap();
        remove_others(&root, |path| path == "a/kept").unwrap();
        assert!(root.join("a/kept").exists() && !root.join("b").exists());
        link(&root.join("l"), "a".into()).unwrap();
        link(&root.join("l"), "a/kept".into()).unwrap();
        assert_eq!(fs_err::read_link(root.join("l")).unwrap().to_str(), Some("a/kept"));
        assert_eq!(link(&root.join("a/kept"), "x".into()).unwrap_err().code, "E-TREE-LINK");
    }
}
