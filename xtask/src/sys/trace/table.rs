//! Every system call of x86-64 that names a path, starts or shares something, or could hide what it does: one row each.
//!
//! Calls that stand in no row work on what is already open, on memory, or on this process alone. Numbers above [`LAST`]
//! did not exist when the table was made: they are gaps.

use std::sync::LazyLock;

/// The highest number that was judged (mseal).
pub(super) const LAST: u32 = 462;

/// A path among the arguments of a call, by argument number from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    /// The descriptor that a relative path starts at; absent: the working folder.
    pub(super) at: Option<usize>,
    /// The pointer to the path.
    pub(super) path: usize,
    /// Whether a final symbolic link is followed.
    pub(super) follow: Follow,
}

/// Whether a final symbolic link is followed; flags are given by argument number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Follow {
    Yes,
    No,
    /// AT_SYMLINK_NOFOLLOW in this argument says no; an empty path with AT_EMPTY_PATH there means the descriptor.
    Unless(usize),
    /// AT_SYMLINK_FOLLOW in this argument says yes.
    If(usize),
    /// O_NOFOLLOW among the flags of opening, or O_CREAT with O_EXCL, says no.
    ByOpening,
}

/// Where the flags of an open are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flags {
    Argument(usize),
    /// A pointer to `struct open_how`.
    How(usize),
    Creat,
}

/// What a call does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Open(Flags),
    /// Starts the program; the number of the argument that points to its arguments.
    Execute(usize),
    Look,
    ReadLink,
    Enter,
    /// Gives the path to something new.
    Make,
    Remove,
    /// Changes what the path names without reading it.
    Alter,
    /// Gives what the first path names to the second, and takes it from the first if `true`.
    Move(bool),
    /// Lists the folder open at the descriptor in argument 0.
    List,
    /// Makes the open folder the working folder.
    EnterOpen,
    Clone,
    CloneByPointer,
    Control,
    Unshare,
    Connect,
    SendTo,
    /// Cannot be observed; why.
    Gap(&'static str),
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) number: i64,
    pub(super) act: Act,
    pub(super) operands: [Option<Operand>; 2],
}

const fn path(path: usize, follow: Follow) -> Operand {
    Operand { at: None, path, follow }
}

const fn at(path: usize, follow: Follow) -> Operand {
    Operand { at: Some(path - 1), path, follow }
}

const fn one(number: i64, act: Act, operand: Operand) -> Row {
    Row { number, act, operands: [Some(operand), None] }
}

const fn two(number: i64, act: Act, from: Operand, to: Operand) -> Row {
    Row { number, act, operands: [Some(from), Some(to)] }
}

const fn bare(number: i64, act: Act) -> Row {
    Row { number, act, operands: [None, None] }
}

const fn gap(number: i64, why: &'static str) -> Row {
    bare(number, Act::Gap(why))
}

use Act::{Alter, Enter, Execute, Look, Make, Move, Open, ReadLink, Remove};
use Flags::{Argument, Creat, How};
use Follow::{ByOpening, If, No, Unless, Yes};

const RING: &str = "uses io_uring, whose calls no filter sees";
const MOUNTS: &str = "changes or reads the mounts";
const SHARED: &str = "shares memory or messages by name with other processes";
const OTHERS: &str = "reaches into another process";
const KERNEL: &str = "changes the kernel or the machine";
const HANDLE: &str = "opens files by handle";
const ROOTS: &str = "changes its root or namespaces";
const FILTERS: &str = "filters its own calls";
const KEYS: &str = "uses the kernel's keys";
const SOCKET: &str = "talks to another process through a socket";

/// All rows, sorted by nothing; [`row`] finds one.
const ROWS: &[Row] = &[
    one(libc::SYS_open, Open(Argument(1)), path(0, ByOpening)),
    one(libc::SYS_openat, Open(Argument(2)), at(1, ByOpening)),
    one(libc::SYS_openat2, Open(How(2)), at(1, ByOpening)),
    one(libc::SYS_creat, Open(Creat), path(0, ByOpening)),
    one(libc::SYS_execve, Execute(1), path(0, Yes)),
    one(libc::SYS_execveat, Execute(2), at(1, Unless(4))),
    one(libc::SYS_stat, Look, path(0, Yes)),
    one(libc::SYS_lstat, Look, path(0, No)),
    one(libc::SYS_newfstatat, Look, at(1, Unless(3))),
    one(libc::SYS_statx, Look, at(1, Unless(2))),
    one(libc::SYS_access, Look, path(0, Yes)),
    one(libc::SYS_faccessat, Look, at(1, Yes)),
    one(libc::SYS_faccessat2, Look, at(1, Unless(3))),
    one(libc::SYS_statfs, Look, path(0, Yes)),
    one(libc::SYS_getxattr, Look, path(0, Yes)),
    one(libc::SYS_lgetxattr, Look, path(0, No)),
    one(libc::SYS_listxattr, Look, path(0, Yes)),
    one(libc::SYS_llistxattr, Look, path(0, No)),
    one(libc::SYS_inotify_add_watch, Look, path(1, Yes)),
    one(libc::SYS_fanotify_mark, Look, at(4, Yes)),
    one(libc::SYS_readlink, ReadLink, path(0, No)),
    one(libc::SYS_readlinkat, ReadLink, at(1, No)),
    one(libc::SYS_chdir, Enter, path(0, Yes)),
    bare(libc::SYS_fchdir, Act::EnterOpen),
    bare(libc::SYS_getdents, Act::List),
    bare(libc::SYS_getdents64, Act::List),
    one(libc::SYS_mkdir, Make, path(0, No)),
    one(libc::SYS_mkdirat, Make, at(1, No)),
    one(libc::SYS_mknod, Make, path(0, No)),
    one(libc::SYS_mknodat, Make, at(1, No)),
    one(libc::SYS_symlink, Make, path(1, No)),
    one(libc::SYS_symlinkat, Make, at(2, No)),
    one(libc::SYS_rmdir, Remove, path(0, No)),
    one(libc::SYS_unlink, Remove, path(0, No)),
    one(libc::SYS_unlinkat, Remove, at(1, No)),
    two(libc::SYS_rename, Move(true), path(0, No), path(1, No)),
    two(libc::SYS_renameat, Move(true), at(1, No), at(3, No)),
    two(libc::SYS_renameat2, Move(true), at(1, No), at(3, No)),
    two(libc::SYS_link, Move(false), path(0, No), path(1, No)),
    two(libc::SYS_linkat, Move(false), at(1, If(4)), at(3, No)),
    one(libc::SYS_truncate, Alter, path(0, Yes)),
    one(libc::SYS_chmod, Alter, path(0, Yes)),
    one(libc::SYS_fchmodat, Alter, at(1, Yes)),
    one(libc::SYS_fchmodat2, Alter, at(1, Unless(3))),
    one(libc::SYS_chown, Alter, path(0, Yes)),
    one(libc::SYS_lchown, Alter, path(0, No)),
    one(libc::SYS_fchownat, Alter, at(1, Unless(4))),
    one(libc::SYS_utime, Alter, path(0, Yes)),
    one(libc::SYS_utimes, Alter, path(0, Yes)),
    one(libc::SYS_futimesat, Alter, at(1, Yes)),
    one(libc::SYS_utimensat, Alter, at(1, Unless(3))),
    one(libc::SYS_setxattr, Alter, path(0, Yes)),
    one(libc::SYS_lsetxattr, Alter, path(0, No)),
    one(libc::SYS_removexattr, Alter, path(0, Yes)),
    one(libc::SYS_lremovexattr, Alter, path(0, No)),
    bare(libc::SYS_clone, Act::Clone),
    bare(libc::SYS_clone3, Act::CloneByPointer),
    bare(libc::SYS_prctl, Act::Control),
    bare(libc::SYS_unshare, Act::Unshare),
    bare(libc::SYS_connect, Act::Connect),
    bare(libc::SYS_sendto, Act::SendTo),
    gap(libc::SYS_sendmsg, SOCKET),
    gap(libc::SYS_sendmmsg, SOCKET),
    gap(libc::SYS_bind, SOCKET),
    gap(libc::SYS_io_uring_setup, RING),
    gap(libc::SYS_io_uring_enter, RING),
    gap(libc::SYS_io_uring_register, RING),
    gap(libc::SYS_name_to_handle_at, HANDLE),
    gap(libc::SYS_open_by_handle_at, HANDLE),
    gap(libc::SYS_chroot, ROOTS),
    gap(libc::SYS_pivot_root, ROOTS),
    gap(libc::SYS_setns, ROOTS),
    gap(libc::SYS_mount, MOUNTS),
    gap(libc::SYS_umount2, MOUNTS),
    gap(libc::SYS_open_tree, MOUNTS),
    gap(libc::SYS_move_mount, MOUNTS),
    gap(libc::SYS_fsopen, MOUNTS),
    gap(libc::SYS_fsconfig, MOUNTS),
    gap(libc::SYS_fsmount, MOUNTS),
    gap(libc::SYS_fspick, MOUNTS),
    gap(libc::SYS_mount_setattr, MOUNTS),
    gap(STATMOUNT, MOUNTS),
    gap(LISTMOUNT, MOUNTS),
    gap(libc::SYS_ptrace, OTHERS),
    gap(libc::SYS_process_vm_readv, OTHERS),
    gap(libc::SYS_process_vm_writev, OTHERS),
    gap(libc::SYS_pidfd_getfd, OTHERS),
    gap(libc::SYS_userfaultfd, OTHERS),
    gap(libc::SYS_seccomp, FILTERS),
    gap(libc::SYS_bpf, KERNEL),
    gap(libc::SYS_uselib, KERNEL),
    gap(libc::SYS_acct, KERNEL),
    gap(libc::SYS_swapon, KERNEL),
    gap(libc::SYS_swapoff, KERNEL),
    gap(libc::SYS_quotactl, KERNEL),
    gap(libc::SYS_quotactl_fd, KERNEL),
    gap(libc::SYS__sysctl, KERNEL),
    gap(libc::SYS_nfsservctl, KERNEL),
    gap(libc::SYS_init_module, KERNEL),
    gap(libc::SYS_finit_module, KERNEL),
    gap(libc::SYS_kexec_file_load, KERNEL),
    gap(libc::SYS_add_key, KEYS),
    gap(libc::SYS_request_key, KEYS),
    gap(libc::SYS_keyctl, KEYS),
    gap(libc::SYS_shmget, SHARED),
    gap(libc::SYS_semget, SHARED),
    gap(libc::SYS_msgget, SHARED),
    gap(libc::SYS_mq_open, SHARED),
    gap(libc::SYS_mq_unlink, SHARED),
];

/// Numbers of newer kernels that the C library's list may lack.
const STATMOUNT: i64 = 457;
const LISTMOUNT: i64 = 458;

static BY_NUMBER: LazyLock<[Option<Row>; LAST as usize + 1]> = LazyLock::new(|| {
    let mut rows = [None; LAST as usize + 1];
    for row in ROWS {
        if let Some(place) = usize::try_from(row.number).ok().and_then(|number| rows.get_mut(number)) {
            *place = Some(*row);
        }
    }
    rows
});

/// The row of a call, if it has one.
pub(super) fn row(number: u64) -> Option<Row> {
    usize::try_from(number).ok().and_then(|number| *BY_NUMBER.get(number)?)
}

/// The numbers of all rows.
pub(super) fn numbers() -> Vec<u32> {
    ROWS.iter().filter_map(|row| u32::try_from(row.number).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_one_row_that_is_found() {
        let mut numbers = numbers();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ROWS.len());
        assert!(numbers.iter().all(|&number| row(number.into()).is_some()));
        assert!(row(libc::SYS_read as u64).is_none() && row(u64::MAX).is_none());
    }
}
