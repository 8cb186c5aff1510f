//! Small C programs, each a family of system calls or a trick, and exactly what must be observed of it.

use camino::Utf8Path;
use requal::observation::Observation;
use xtask::sys::proc::Call;
use xtask::sys::trace::observe;

use super::kit;

const HEAD: &str = "#define _GNU_SOURCE
#include <dirent.h>\n#include <errno.h>\n#include <fcntl.h>\n#include <pthread.h>\n#include <sched.h>
#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>
#include <sys/prctl.h>\n#include <sys/socket.h>\n#include <sys/stat.h>\n#include <sys/syscall.h>
#include <sys/un.h>\n#include <sys/vfs.h>\n#include <sys/wait.h>\n#include <sys/xattr.h>\n#include <unistd.h>
static char text[4096];\n";

/// A program: its name, functions, the body of its main, and what is to be observed below its folder, line by line.
struct Case(&'static str, &'static str, &'static str, &'static [&'static str]);

/// The folder holds the files `a` and `d/f`, the links `l` to `a` and `dl` to `d`, and the pipe `p`.
const CASES: &[Case] = &[
    Case("open", "", "open(\"a\", O_RDONLY); open(\"no\", O_RDONLY); open(\"./d//f\", O_RDONLY);
        syscall(SYS_open, \"no2\", 0); open(\"\", 0);", &["opened a", "opened d/f", "probe no", "probe no2"]),
    Case("relative", "", "int d = open(\"d\", O_RDONLY | O_DIRECTORY); openat(d, \"f\", 0); openat(d, \"no\", 0);
        openat(d, \"../a\", 0); openat(77, \"x\", 0); openat(77, \"/no/y\", 0);
        struct { unsigned long flags, mode, resolve; } how = { O_RDONLY, 0, 0 };
        syscall(SYS_openat2, d, \"no2\", &how, sizeof how);",
        &["opened a", "opened d/f", "probe d/no", "probe d/no2", "stat d"]),
    Case("own", "", "creat(\"new\", 0600); open(\"new\", O_RDONLY); mkdir(\"dir\", 0700); open(\"dir/no\", O_RDONLY);
        stat(\"new\", (void *)text); unlink(\"new\"); open(\"new\", O_RDONLY); open(\"dir/x\", O_CREAT | O_RDWR, 0600);
        opendir(\"dir\");", &["written dir", "written dir/x", "written new"]),
    Case("before", "", "open(\"new\", O_RDONLY); close(creat(\"new\", 0600)); open(\"new\", O_RDONLY);
        open(\"a\", O_RDONLY); unlink(\"a\"); open(\"a\", O_RDONLY);",
        &["opened a", "probe new", "written a", "written new"]),
    Case("rewrite", "", "open(\"a\", O_RDWR); open(\"d/f\", O_WRONLY | O_TRUNC); open(\"d/f\", O_RDONLY);",
        &["opened a", "stat d/f", "written a", "written d/f"]),
    Case("path", "", "open(\"a\", O_PATH); open(\"l\", O_PATH | O_NOFOLLOW);", &["stat a", "stat l", "link l -> a"]),
    Case("links", "", "open(\"l\", O_RDONLY); open(\"dl/f\", O_RDONLY); open(\"dl/no\", O_RDONLY);
        open(\"dl/../a\", O_RDONLY); open(\"no/../a\", O_RDONLY);",
        &["opened a", "opened d/f", "probe d/no", "probe no", "link dl -> d", "link l -> a", "led dl/f -> d/f", "led l -> a"]),
    Case("stat", "", "struct stat s; stat(\"a\", &s); lstat(\"l\", &s); fstatat(AT_FDCWD, \"no\", &s, 0);
        struct statx x; statx(AT_FDCWD, \"no2\", 0, 0, &x); access(\"d/f\", R_OK); access(\"no3\", R_OK);
        faccessat(AT_FDCWD, \"no4\", R_OK, AT_EACCESS); struct statfs v; statfs(\"d\", &v); statfs(\"no5\", &v);
        getxattr(\"no6\", \"user.a\", text, 9); fstat(0, &s);",
        &["probe no", "probe no2", "probe no3", "probe no4", "probe no5", "probe no6", "stat a", "stat d", "stat d/f",
          "stat l", "link l -> a"]),
    Case("readlink", "", "readlink(\"l\", text, 99); readlink(\"a\", text, 99); readlinkat(AT_FDCWD, \"no\", text, 99);",
        &["probe no", "stat a", "link l -> a"]),
    Case("chdir", "", "int here = open(\".\", O_RDONLY); chdir(\"dl\"); open(\"f\", O_RDONLY); open(\"../no\", O_RDONLY);
        fchdir(here); open(\"a\", O_RDONLY); chdir(\"no2\"); open(\"no3\", O_RDONLY);",
        &["opened a", "opened d/f", "probe no", "probe no2", "probe no3", "stat d", "link dl -> d"]),
    Case("list", "", "DIR *d = opendir(\"dl\"); readdir(d); opendir(\"no\");",
        &["probe no", "listed d", "link dl -> d"]),
    Case("move", "", "rename(\"a\", \"b\"); open(\"b\", O_RDONLY); link(\"d/f\", \"d/g\"); open(\"d/g\", O_RDONLY);
        symlink(\"d/f\", \"s\"); open(\"s\", O_RDONLY); rename(\"no\", \"x\"); rename(\"b\", \"no2/x\"); link(\"no3\", \"x\");
        mkdir(\"no4/x\", 0700); mkdir(\"d\", 0700);",
        &["opened a", "opened d/f", "probe no", "probe no2", "probe no3", "probe no4", "stat d", "led s -> d/f",
          "written a", "written b", "written d/g", "written s"]),
    Case("relink", "", "open(\"l\", O_RDONLY); unlink(\"l\"); symlink(\"d/f\", \"l\"); open(\"l\", O_RDONLY);",
        &["opened a", "opened d/f", "stat l", "link l -> a", "led l -> a", "written l"]),
    Case("alter", "", "truncate(\"a\", 0); chmod(\"d/f\", 0600); utimensat(AT_FDCWD, \"no\", 0, 0); futimens(1, 0);
        setxattr(\"no2\", \"user.a\", \"\", 0, 0); chown(\"no3\", -1, -1);",
        &["opened a", "opened d/f", "probe no", "probe no2", "probe no3", "written a", "written d/f"]),
    Case("refused", "", "open(\"a\", O_CREAT | O_EXCL, 0600); open(\"d\", O_WRONLY); open(\"l\", O_NOFOLLOW);
        open(\"d\", O_RDONLY); rmdir(\"d\"); open(\"a/x\", O_RDONLY);",
        &["probe a/x", "refused d 21", "refused d 39", "refused l 40", "stat a", "stat d", "link l -> a"]),
    Case("memory", "", "char *m = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        strcpy(m + 4093, \"no\"); open(m + 4093, 0); strcpy(m + 4095, \"no2\"); open(m + 4095, 0);
        munmap(m + 4096, 4096); memcpy(m + 4094, \"a\", 2); open(m + 4094, 0); m[4095] = 'x'; open(m + 4094, 0);
        open((char *)1, 0); open(0, 0); access((char *)-1L, 0); execve(\"no3\", (char **)1, 0);",
        &["opened a", "probe no", "probe no2", "probe no3"]),
    Case("long", "", "static char p[6000]; for (int i = 0; i < 5998; i += 2) memcpy(p + i, \"./\", 2); open(p, 0);
        strcpy(p + 4090, \"/a\"); open(p, 0); memset(p, 'x', 300); p[300] = 0; open(p, 0);",
        &["opened a", "refused  36", "refused xxx 36"]),
    Case("threads", "static void *run(void *x) { open(\"d/f\", 0); chdir(\"d\"); open(\"no\", 0); return 0; }",
        "pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0); open(\"no2\", 0); open(\"../a\", 0);",
        &["opened a", "opened d/f", "probe d/no", "probe d/no2", "stat d"]),
    Case("thread-starts", "static void *run(void *x) { execl(\"/bin/sh\", \"sh\", \"-c\", \": < a\", (char *)0); return 0; }",
        "pthread_t t; pthread_create(&t, 0, run, 0); pause();", &["opened a"]),
    Case("children", "", "if (!fork()) { chdir(\"d\"); open(\"f\", 0); _exit(0); } wait(0); open(\"no\", 0);
        if (!vfork()) { open(\"no2\", 0); execl(\"./no3\", \"x\", (char *)0); _exit(0); } wait(0);
        if (!syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) { open(\"a\", 0); _exit(0); } wait(0);",
        &["opened a", "opened d/f", "probe no", "probe no2", "probe no3", "stat d"]),
    Case("descriptor", "", "int d = open(\"/bin/true\", O_PATH | O_CLOEXEC); fexecve(d, (char *[]){\"true\", 0}, (char *[]){0});",
        &[]),
    Case("changed", "static char name[] = \"p\"; static void *run(void *x) { usleep(50000); name[0] = 'q';
        int w = open(\"p\", O_WRONLY); close(w); return 0; }",
        "pthread_t t; pthread_create(&t, 0, run, 0); open(name, O_RDONLY); pthread_join(t, 0);",
        &["stat p", "gap the path @/p changed during the call"]),
    Case("interrupted", "static void on(int s) {}", "struct sigaction s = { .sa_handler = on, .sa_flags = SA_RESTART };
        sigaction(SIGALRM, &s, 0); ualarm(20000, 20000); if (!fork()) { ualarm(0, 0); usleep(90000);
        _exit(open(\"p\", O_WRONLY) < 0); } open(\"p\", O_RDONLY); ualarm(0, 0); wait(0); s.sa_flags = 0;
        sigaction(SIGALRM, &s, 0); ualarm(20000, 0); open(\"p\", O_RDONLY); open(\"a\", 0);",
        &["opened a", "stat p"]),
    Case("removed", "", "mkdir(\"x\", 0700); chdir(\"x\"); rmdir(\"../x\"); open(\"no\", 0);",
        &["written x", "gap asks for a path below a removed folder"]),
    Case("ring", "", "syscall(SYS_io_uring_setup, 1, 0);", &["gap uses io_uring, whose calls no filter sees"]),
    Case("handle", "", "syscall(SYS_name_to_handle_at, AT_FDCWD, \"a\", 0, 0, 0);", &["gap opens files by handle"]),
    Case("unknown", "", "syscall(700);", &["gap made the unknown system call 700"]),
    Case("x32", "", "syscall(0x40000000 + 2, \"a\", 0);", &["gap made the unknown system call 1073741826"]),
    Case("root", "", "chroot(\"d\"); unshare(CLONE_NEWNS);",
        &["gap changes its root or namespaces", "gap starts a process out of view, or changes its namespaces"]),
    Case("mount", "", "syscall(SYS_mount, 0, \"d\", 0, 0, 0);", &["gap changes or reads the mounts"]),
    Case("escape", "", "if (!syscall(SYS_clone, 0x00800000 | SIGCHLD, 0, 0, 0, 0)) _exit(0); wait(0);",
        &["gap starts a process out of view, or changes its namespaces"]),
    Case("others", "", "syscall(SYS_ptrace, 0, 0, 0, 0);", &["gap reaches into another process"]),
    Case("filter", "", "prctl(PR_SET_SECCOMP, 9, 0); prctl(PR_SET_NAME, \"x\");",
        &["gap filters its own calls or changes what is known of it"]),
    Case("kernel", "", "syscall(SYS_bpf, 0, 0, 0);", &["gap changes the kernel or the machine"]),
    Case("below", "", "struct { unsigned long flags, mode, resolve; } how = { O_RDONLY, 0, 0x10 };
        int d = open(\"d\", O_RDONLY); syscall(SYS_openat2, d, \"/f\", &how, sizeof how);",
        &["stat d", "gap opens below a root of its own"]),
    Case("socket", "", "struct sockaddr_un u = { AF_UNIX, \"no\" }; int s = socket(AF_UNIX, SOCK_STREAM, 0);
        connect(s, (void *)&u, sizeof u); int pair[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        send(pair[0], \"x\", 1, 0);", &["probe no"]),
];

/// Runs every case and compares.
pub(crate) fn check() {
    let (_folder, path) = kit::folder();
    let mut faults = Vec::new();
    for Case(name, functions, body, expected) in CASES {
        let (program, source) = (path.join("bin").join(name), path.join(format!("bin/{name}.c")));
        kit::file(&source, &format!("{HEAD}{functions}\nint main(void) {{ {body} return 0; }}\n"), 0o644);
        let work = path.join(name);
        prepare(&work, &source, &program);
        let mut call = Call::new(&program, &[], &work);
        call.log = Some(path.join("log"));
        let (ended, seen) = observe(&kit::own(), &call).unwrap();
        let shown = show(&seen, &work);
        if ended.code != 0 || shown != *expected {
            faults.push(format!(
                "{name} ended with {}: {}\n{shown:#?}\n{expected:#?}",
                ended.how(),
                ended.output
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn prepare(work: &Utf8Path, source: &Utf8Path, program: &Utf8Path) {
    let script = "mkdir -p $0/d && echo a > $0/a && echo f > $0/d/f && ln -s a $0/l && ln -s d $0/dl && mkfifo $0/p && \
                  exec gcc -w -pthread -o $2 $1";
    let words = ["-c", script, work.as_str(), source.as_str(), program.as_str()];
    let ended = Call::new("/bin/sh".into(), &words, "/".into()).env("PATH", "/usr/bin").run().unwrap();
    assert_eq!(ended.code, 0, "{}", ended.output);
}

/// The record below `work`, in lines; the working folder itself, which the start enters, is left out unless a case
/// looks at it by itself. Gaps are shown all.
fn show(seen: &Observation, work: &Utf8Path) -> Vec<String> {
    let short = |path: &str| -> Option<String> {
        let rest = Utf8Path::new(path).strip_prefix(work).ok()?.to_string();
        Some(if rest.len() > 200 { rest[..3].to_owned() } else { rest })
    };
    let set = |word: &str, paths: &std::collections::BTreeSet<String>| -> Vec<String> {
        paths.iter().filter_map(|path| short(path)).map(|path| format!("{word} {path}")).collect()
    };
    let refused =
        seen.refused.iter().flat_map(|(path, errors)| errors.iter().map(move |errno| (path, errno)));
    let mut lines = set("opened", &seen.opened);
    lines.extend(set("probe", &seen.probes));
    lines.extend(refused.filter_map(|(path, errno)| Some(format!("refused {} {errno}", short(path)?))));
    lines.extend(set("stat", &seen.stats).into_iter().filter(|line| line != "stat "));
    lines.extend(set("listed", &seen.listed));
    lines.extend(seen.links.iter().filter_map(|(at, to)| Some(format!("link {} -> {to}", short(at)?))));
    let led = |(at, to): (&String, &String)| Some(format!("led {} -> {}", short(at)?, short(to)?));
    lines.extend(seen.led.iter().filter_map(led));
    lines.extend(set("written", &seen.written));
    lines.extend(seen.gaps.iter().map(|gap| format!("gap {}", gap.replace(work.as_str(), "@"))));
    lines
}
