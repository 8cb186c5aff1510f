//! Making the room, as process 1 of its namespaces: a root in memory, what is declared mounted into it, all else gone.

use std::ffi::CString;
use std::os::unix::fs::symlink;

use camino::{Utf8Path, Utf8PathBuf};
use requal::limits::{Kind, Refusal};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use rustix::process::{chdir, pivot_root};

use super::{Mount, Room};

/// Where the machine's root is while the room is made.
const OLD: &str = "/.old";
/// A folder that every machine with processes has: the new root covers it until it becomes the root.
const STAGE: &str = "/proc";
/// Where the processes of the room are shown.
const PROCESSES: &str = "/proc";

/// Makes the room and stands in its root.
pub(super) fn build(room: &Room) -> Result<(), Refusal> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|error| at("make mounts private", error))?;
    let quiet = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", STAGE, "tmpfs", quiet, c"mode=0755")
        .map_err(|error| at("mount the root in memory", error))?;
    folder(&Utf8Path::new(STAGE).join(&OLD[1..]))?;
    chdir(STAGE).and_then(|()| pivot_root(".", &OLD[1..])).map_err(|error| at("change the root", error))?;
    chdir("/").map_err(|error| at("enter the root", error))?;

    let null = Mount { to: "/dev/null".into(), from: "/dev/null".into(), writable: true };
    for (index, one) in room.mounts.iter().enumerate() {
        show(one, &room.mounts[..index])?;
        restrict(one)?;
    }
    show(&null, &room.mounts)?;
    for link in &room.links {
        folder(link.at.parent().unwrap_or(Utf8Path::new("/")))?;
        symlink(&link.to, &link.at).map_err(|error| at(format!("link {}", link.at), error))?;
    }
    folder("/tmp".into())?;
    mount("tmpfs", "/tmp", "tmpfs", quiet, c"mode=1777").map_err(|error| at("mount /tmp", error))?;
    // Processes alone, and nothing else of the kernel: what a compile did is read there.
    folder(PROCESSES.into())?;
    let processes = quiet | MountFlags::NOEXEC | MountFlags::RDONLY;
    mount("proc", PROCESSES, "proc", processes, c"subset=pid").map_err(|error| at("mount /proc", error))?;
    rustix::system::sethostname(b"requal").map_err(|error| at("set the host name", error))?;
    unmount(OLD, UnmountFlags::DETACH).map_err(|error| at("detach the old root", error))?;
    fs_err::remove_dir(OLD).map_err(|error| at("remove the old root's folder", error))?;
    let fixed = MountFlags::BIND | MountFlags::RDONLY | quiet;
    mount_remount("/", fixed, "").map_err(|error| at("make the root read-only", error))
}

/// Mounts one file or folder at its place. A place inside an earlier mount must exist there: nothing is made outside.
fn show(one: &Mount, earlier: &[Mount]) -> Result<(), Refusal> {
    let from = Utf8PathBuf::from(format!("{OLD}{}", one.from));
    let inside = earlier.iter().any(|other| one.to.starts_with(&other.to));
    if !inside {
        let is_folder =
            fs_err::metadata(&from).map_err(|error| at(format!("find {}", one.from), error))?.is_dir();
        if is_folder {
            folder(&one.to)?;
        } else {
            folder(one.to.parent().unwrap_or(Utf8Path::new("/")))?;
            let made = std::fs::OpenOptions::new().create_new(true).write(true).open(&one.to);
            made.map_err(|error| at(format!("make a place for {}", one.to), error))?;
        }
    }
    mount_bind_recursive(from.as_std_path(), one.to.as_std_path())
        .map_err(|error| at(format!("mount {}", one.to), error))
}

/// Takes set-user-ids, devices and, unless it is writable, writing away from a mount and all mounts below it.
fn restrict(one: &Mount) -> Result<(), Refusal> {
    let writing = if one.writable { 0 } else { libc::MOUNT_ATTR_RDONLY };
    let attributes = libc::mount_attr {
        attr_set: writing | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let refused = |error| at(format!("restrict {}", one.to), error);
    let path = CString::new(one.to.as_str()).map_err(|error| refused(error.into()))?;
    let (below, size) = (libc::AT_RECURSIVE, size_of::<libc::mount_attr>());
    // SAFETY: path and attributes live through the call, which reads `size` bytes of the latter and writes nothing.
    let code = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            below,
            &raw const attributes,
            size,
        )
    };
    if code == 0 { Ok(()) } else { Err(refused(std::io::Error::last_os_error())) }
}

fn folder(path: &Utf8Path) -> Result<(), Refusal> {
    std::fs::create_dir_all(path).map_err(|error| at(format!("make folder {path}"), error))
}

fn at(step: impl Into<String>, error: impl Into<std::io::Error>) -> Refusal {
    Refusal::at(Kind::Sandbox, step, error)
}
