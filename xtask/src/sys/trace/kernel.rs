//! The system calls of observing: stopping, asking, reading and resuming a process, and the filter that picks the calls.

use std::io::{Error, Result};
use std::ptr;

use rustix::process::Pid;

/// `op` of `ptrace_syscall_info` at the stop that a filter asked for, and at the end of a call.
const AT_FILTER: u8 = 3;
const AT_END: u8 = 2;
/// Distance of page borders; a string is read up to one at a time, since what follows may not be mapped.
const PAGE_BYTES: u64 = 4096;
/// Bytes that are read at a time: most strings are shorter.
const PIECE_BYTES: usize = 256;

/// What a stopped process is doing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// It is about to make this call; `native` unless the number belongs to another kind of calls (32-bit).
    Call { native: bool, number: u64, args: [u64; 6] },
    /// The call has ended with this value; -4095 to -1 are errors.
    End(i64),
}

/// How a stopped process goes on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Resume {
    /// To its next stop.
    Run = libc::PTRACE_CONT as isize,
    /// To the end of its call.
    ToEnd = libc::PTRACE_SYSCALL as isize,
    /// It stays stopped, as a signal wants, until another one continues it.
    Listen = libc::PTRACE_LISTEN as isize,
}

/// Begins to observe the running process `pid` and all that it will start. It is killed when this process ends.
pub(super) fn seize(pid: Pid) -> Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACESECCOMP
        | libc::PTRACE_O_EXITKILL;
    // SAFETY: SEIZE reads and writes none of our memory.
    done(unsafe { libc::ptrace(libc::PTRACE_SEIZE, raw(pid), 0usize, options as usize) })
}

/// Lets `pid` go on, with `signal` delivered to it unless that is 0.
pub(super) fn resume(pid: Pid, how: Resume, signal: i32) -> Result<()> {
    // SAFETY: the three requests take a number in place of data and touch none of our memory.
    done(unsafe { libc::ptrace(how as libc::c_uint, raw(pid), 0usize, signal as usize) })
}

/// The number that came with the event at which `pid` stopped.
pub(super) fn message(pid: Pid) -> Result<u64> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: GETEVENTMSG writes one unsigned long, which lives through the call.
    done(unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, raw(pid), 0usize, &raw mut message) })?;
    Ok(message)
}

/// The call that `pid` stopped in.
pub(super) fn asked(pid: Pid) -> Result<Asked> {
    // SAFETY: all-zero bytes are a value of this plain structure.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of_val(&info);
    // SAFETY: GET_SYSCALL_INFO writes at most `size` bytes to `info`, which lives through the call.
    let written = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, raw(pid), size, &raw mut info) };
    if written < 0 {
        return Err(Error::last_os_error());
    }
    match info.op {
        // SAFETY: `op` says which member of the union the kernel wrote.
        AT_FILTER => Ok(unsafe { info.u.seccomp }).map(|call| Asked::Call {
            native: info.arch == NATIVE,
            number: call.nr,
            args: call.args,
        }),
        // SAFETY: as above.
        AT_END => Ok(Asked::End(unsafe { info.u.exit }.sval)),
        other => Err(Error::other(format!("a stop of kind {other}"))),
    }
}

/// Reads memory of `pid` at `address` into `bytes`; may be short.
pub(super) fn read(pid: Pid, address: u64, bytes: &mut [u8]) -> Result<usize> {
    let Ok(start) = usize::try_from(address) else { return Err(Error::from_raw_os_error(libc::EFAULT)) };
    let ours = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let theirs = libc::iovec { iov_base: ptr::without_provenance_mut(start), iov_len: bytes.len() };
    // SAFETY: the kernel writes only to `ours`, which is exactly `bytes`; it checks the other process's addresses itself.
    let count = unsafe { libc::process_vm_readv(raw(pid), &raw const ours, 1, &raw const theirs, 1, 0) };
    usize::try_from(count).map_err(|_| Error::last_os_error())
}

/// Reads the string at `address` of `pid` into `text`, without its final NUL and at most `limit` bytes of it.
pub(super) fn read_string(pid: Pid, address: u64, limit: usize, text: &mut Vec<u8>) -> Result<()> {
    text.clear();
    let mut chunk = [0; PIECE_BYTES];
    while text.len() < limit {
        let at = address.wrapping_add(text.len() as u64);
        let to_border = usize::try_from(PAGE_BYTES - at % PAGE_BYTES).unwrap_or(1);
        let piece = &mut chunk[..PIECE_BYTES.min(to_border)];
        let count = read(pid, at, piece)?;
        if let Some(end) = piece[..count].iter().position(|&byte| byte == 0) {
            text.extend_from_slice(&piece[..end]);
            return Ok(());
        }
        if count == 0 {
            return Err(Error::from_raw_os_error(libc::EFAULT));
        }
        text.extend_from_slice(&piece[..count]);
    }
    text.truncate(limit);
    Ok(())
}

/// AUDIT_ARCH_X86_64 of linux/audit.h: machine 62, 64 bits, little-endian.
const NATIVE: u32 = 62 | 0x8000_0000 | 0x4000_0000;
/// Bit of a call's number that selects the x32 variants.
const X32: u32 = 0x4000_0000;

/// Whether the kernel can stop a process at chosen calls.
pub(super) fn filter_available() -> Result<()> {
    let action = libc::SECCOMP_RET_TRACE;
    // SAFETY: the call reads the four bytes of `action` and writes nothing.
    done(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) })
}

/// Makes this process, for good, stop at the calls in `numbers`, at all above `last`, and at all that are not native.
pub(super) fn set_filter(numbers: &[u32], last: u32) -> Result<()> {
    let statement = |code: u32, k| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let jump = |code: u32, k, jt, jf| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let (equal, above) =
        (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K);
    let stop = statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_TRACE);
    // Bytes 4 to 7 of the data are the architecture, bytes 0 to 3 the number.
    let mut program = vec![statement(load, 4), jump(equal, NATIVE, 1, 0), stop, statement(load, 0)];
    program.extend([jump(above, last, 0, 1), stop]);
    for &number in numbers {
        program.extend([jump(equal, number, 0, 1), stop]);
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    debug_assert!(last < X32);
    let len = u16::try_from(program.len()).map_err(Error::other)?;
    let program = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    // Kernels before 5.16 slow a filtered process down against attacks from within, which this filter is not about.
    let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: the kernel reads `len` instructions, which live through the call, and copies them.
    done(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    })
}

fn raw(pid: Pid) -> libc::pid_t {
    pid.as_raw_nonzero().get()
}

fn done(code: libc::c_long) -> Result<()> {
    if code < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}
