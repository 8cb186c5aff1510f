//! Preflight: versions by each component's own word, tools that cannot run, the host compiler, the environment.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "kit/room.rs"]
mod kit;

use camino::{Utf8Path, Utf8PathBuf};
use kit::real::real_toolchain;
use kit::toolchain::{Fixture, fake_gxx, says};
use requal::limits::Limits;
use xtask::sys::proc::Call;
use xtask::sys::sandbox::{Link, Mount, Room, run};

/// Whether `text` holds every one of `words`.
fn holds(text: &str, words: &[&str]) -> bool {
    words.iter().all(|word| text.contains(word)) || panic!("{words:?} are not all in:\n{text}")
}

#[test]
fn a_sound_toolchain_gives_the_whole_table_and_the_host_compiler() {
    let fixture = Fixture::new();
    let preflight = fixture.check().unwrap();
    let table: Vec<_> =
        preflight.versions.iter().map(|row| (row.component.as_str(), row.version.as_str())).collect();
    assert_eq!(
        table[..9],
        [
            ("nvcc", "13.0.88"),
            ("cicc", "13.0.88"),
            ("ptxas", "13.0.88"),
            ("cudafe++", "13.0.88"),
            ("fatbinary", "13.0.88"),
            ("nvlink", "13.0.88"),
            ("runtime headers", "13.0"),
            ("CCCL", "3.0.1"),
            ("crt headers", "13.0.88"),
        ]
    );
    let host = &preflight.host;
    assert_eq!((table[9].0, table[9].1), ("host compiler", host.version.as_str()));
    let names: Vec<_> = host.programs.iter().map(|program| program.name.as_str()).collect();
    assert_eq!((names, host.highest_major), (vec!["as", "cc1plus", "collect2", "g++", "ld"], 15));
    assert!(host.programs.iter().all(|program| program.path.is_absolute() && !program.path.is_symlink()));
    assert!(fs_err::read_dir(&fixture.scratch).unwrap().next().is_none(), "preflight leaves nothing");
}

/// The host compiler's part of a room is enough to compile and link, and gives the same bytes as the real path.
#[test]
fn the_host_compilers_room_compiles_and_links() {
    let fixture = Fixture::new();
    let host = fixture.check().unwrap().host;
    let source = "#include <vector>\n#include <cmath>\nint f(int n) { return std::vector<int>(n, 3).at(n - 1) + (int)std::sin(n); }\n";
    let build = |place: &str| {
        let args = ["-O2", "-shared", "-fPIC", "a.cpp", "-o", "a.so", "-frandom-seed=a"];
        Call::new(&host.path, &args, place.into()).env("PATH", "/requal/host:/usr/bin").env("TMPDIR", place)
    };
    let objects = ["inside", "outside"].map(|place| {
        let folder = fixture.scratch.join(place);
        kit::file(&folder.join("a.cpp"), source, 0o644);
        let shown =
            host.mounts.iter().map(|path| Mount { to: path.clone(), from: path.clone(), writable: false });
        let mut room = Room { mounts: shown.collect(), ..kit::room() };
        room.mounts.push(Mount { to: "/requal/build".into(), from: folder.clone(), writable: true });
        let named = host
            .programs
            .iter()
            .map(|one| Link { at: format!("/requal/host/{}", one.name).into(), to: one.path.clone() });
        room.links.extend(named);
        let ran = match place {
            "inside" => run(&kit::own(), &build("/requal/build"), Some(&room), &Limits::default()),
            _ => run(&kit::own(), &build(folder.as_str()), None, &Limits::default()),
        };
        let ended = ran.unwrap().ended;
        assert_eq!((ended.code, ended.output.as_str()), (0, ""));
        fs_err::read(folder.join("a.so")).unwrap()
    });
    assert!(objects[0] == objects[1], "the two modules differ");
}

#[test]
fn f01_a_newer_nvvm_beside_the_pinned_nvcc_is_refused() {
    // The lock's nvvm line alone is changed, and the wheel holds what the lock says.
    let mut fixture = Fixture::new();
    fixture.pin_nvvm("13.3.33");
    kit::program(&fixture.toolkit("nvvm/bin/cicc"), &says("13.3", "13.3.33"));
    let (code, text) = fixture.refusal();
    assert_eq!(code, "E-TOOLCHAIN-MIXED");
    holds(&text, &["cicc 13.3.33 of nvidia-nvvm", "nvidia-nvvm: 13.0.x, the line of nvidia-cuda-nvcc"]);
    // The lock is sound, but cicc says otherwise.
    let fixture = Fixture::new();
    kit::program(&fixture.toolkit("nvvm/bin/cicc"), &says("13.3", "13.3.33"));
    let (code, text) = fixture.refusal();
    assert_eq!(code, "E-TOOLCHAIN-MIXED");
    holds(&text, &["cicc 13.3.33 of nvidia-nvvm", "cicc of nvidia-nvvm: 13.0.88"]);
}

#[test]
fn f02_a_compiler_and_headers_of_two_lines_are_refused_with_the_table() {
    for (nvcc, cccl) in [("13.3.33", "3003001"), ("12.6.85", "2005000")] {
        let mut fixture = Fixture::new();
        let release = &nvcc[..4];
        kit::program(&fixture.toolkit("bin/nvcc"), &says(release, nvcc));
        let version_h = fixture.toolkit("include/cccl/cuda/std/__cccl/version.h");
        kit::file(&version_h, &format!("#define CCCL_VERSION {cccl}\n"), 0o644);
        let (code, text) = fixture.refusal();
        assert_eq!(code, "E-TOOLCHAIN-MIXED");
        let rows = [
            "nvcc             ",
            "cicc             ",
            "crt headers      ",
            "CCCL             ",
            "runtime headers  13.0 ",
        ];
        holds(&text, &rows);
        holds(
            &text,
            &[
                &format!("nvcc {nvcc} of nvidia-cuda-nvcc"),
                "CCCL of nvidia-cuda-cccl: 3.0.x, as in CUDA 13.0",
            ],
        );
        // The define that silences the headers' own check comes through a refused variable.
        let silence = "-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK";
        fixture.caller.insert("NVCC_APPEND_FLAGS".to_owned(), silence.to_owned());
        let (code, text) = fixture.refusal();
        assert_eq!(code, "E-ENV-REFUSED");
        holds(&text, &["NVCC_APPEND_FLAGS", silence, "error[E-TOOLCHAIN-MIXED]"]);
    }
}

#[test]
fn f04_a_wheel_without_nvcc_is_named_and_path_is_no_source() {
    for (tool, package) in
        [("bin/nvcc", "nvidia_cuda_nvcc-13.0.88"), ("nvvm/bin/cicc", "nvidia_nvvm-13.0.88")]
    {
        let fixture = Fixture::new();
        fs_err::remove_file(fixture.toolkit(tool)).unwrap();
        fixture.decoy(Utf8Path::new(tool).file_name().unwrap());
        let (code, text) = fixture.refusal();
        assert_eq!(code, "E-TOOL-MISSING");
        holds(&text, &[package, fixture.toolkit(tool).as_str()]);
        assert!(!fixture.marker().exists());
    }
}

#[test]
fn f06_decoys_in_cuda_home_and_cpath_are_without_effect_and_listed() {
    let mut fixture = Fixture::new();
    let clean = fixture.check().unwrap();
    kit::file(&fixture.decoys.join("include/crt/host_config.h"), "#if __GNUC__ > 4\n#endif\n", 0o644);
    kit::file(&fixture.decoys.join("include/cuda_runtime_api.h"), "#define CUDART_VERSION 12060\n", 0o644);
    fixture.decoy("bin/nvcc");
    let decoys = fixture.decoys.to_string();
    fixture.caller.insert("CUDA_HOME".to_owned(), decoys.clone());
    fixture.caller.insert("CPATH".to_owned(), format!("{decoys}/include"));
    let preflight = fixture.check().unwrap();
    assert_eq!(preflight.replaced_environment, ["CPATH", "CUDA_HOME"]);
    assert_eq!((preflight.versions, preflight.host), (clean.versions, clean.host));
    assert!(!fixture.marker().exists());
}

#[test]
fn f08_a_host_compiler_that_is_too_new_is_named_with_the_limit() {
    let mut fixture = Fixture::new();
    fake_gxx(&fixture.decoys.join("g++"), "16.1.0");
    let (code, text) = fixture.refusal();
    assert_eq!(code, "E-HOST-RANGE");
    holds(&text, &[fixture.decoys.join("g++").as_str(), "16.1.0", "gcc 6 to 15"]);
    // An override through the environment is refused besides.
    fixture.caller.insert("NVCC_APPEND_FLAGS".to_owned(), "-allow-unsupported-compiler".to_owned());
    let (code, text) = fixture.refusal();
    assert_eq!(code, "E-ENV-REFUSED");
    holds(&text, &["NVCC_APPEND_FLAGS=-allow-unsupported-compiler", "error[E-HOST-RANGE]"]);
    // A version in range does not make a wrapper gcc itself.
    let fixture = Fixture::new();
    fake_gxx(&fixture.decoys.join("g++"), "13.2.0");
    assert_eq!(fixture.refusal().0, "E-HOST-WRAPPER");
    // CXX names the compiler, whatever stands first on PATH.
    let mut fixture = Fixture::new();
    fake_gxx(&fixture.decoys.join("g++"), "16.1.0");
    fixture.caller.insert("CXX".to_owned(), "/usr/bin/g++".to_owned());
    assert_eq!(
        fixture.check().unwrap().host.path,
        Utf8Path::new("/usr/bin/g++").canonicalize_utf8().unwrap()
    );
}

#[test]
fn a_missing_host_compiler_is_could_not_judge() {
    let mut fixture = Fixture::new();
    fixture.caller.insert("PATH".to_owned(), fixture.decoys.to_string());
    let failure = fixture.check().unwrap_err();
    assert_eq!((failure.code, failure.exit.code()), ("E-HOST-MISSING", 3));
}

/// Breaks `ptxas` in each way, with a decoy on PATH and without, and demands three different refusals.
fn f13(fixture: &Fixture) {
    let ptxas = fixture.toolkit("bin/ptxas");
    let sound = fixture.scratch.join("sound");
    kit::copy(&ptxas, &sound, "755");
    let restore = |mode| kit::copy(&sound, &ptxas, mode);
    for with_decoy in [true, false] {
        if with_decoy {
            fixture.decoy("ptxas");
        } else {
            fs_err::remove_file(fixture.decoys.join("ptxas")).unwrap();
        }
        restore("644");
        let (code, text) = fixture.refusal();
        assert_eq!(code, "E-TOOL-MODE");
        holds(&text, &[ptxas.as_str(), "mode 0644", "nvidia_cuda_nvcc-13.0.88"]);
        use std::os::unix::fs::MetadataExt as _;
        assert_eq!(fs_err::metadata(&ptxas).unwrap().mode() & 0o777, 0o644, "never a chmod");
        kit::program(&ptxas, "echo no interpreter line\n");
        let (code, text) = fixture.refusal();
        assert_eq!(code, "E-TOOL-FORMAT");
        holds(&text, &[ptxas.as_str(), "echo no interpreter"]);
        fs_err::remove_file(&ptxas).unwrap();
        let (code, text) = fixture.refusal();
        assert_eq!(code, "E-TOOL-MISSING");
        holds(&text, &[ptxas.as_str()]);
        restore("755");
        assert!(fixture.check().is_ok() && !fixture.marker().exists());
    }
}

#[test]
fn f13_a_tool_that_cannot_run_is_named_with_the_cause_and_no_decoy_runs() {
    f13(&Fixture::new());
}

/// Not a test by itself: what this binary does when a test starts it in a role.
#[test]
#[ignore = "a role, started by other tests"]
fn role() {
    let fixture = Fixture::around(Some(std::env::var("KIT_FOLDER").unwrap().into()));
    let (code, text) = fixture.refusal();
    print!("{code}: {text}");
}

#[test]
fn f13_a_scratch_on_a_noexec_mount_is_named() {
    let fixture = Fixture::new();
    let (_folder, path) = kit::folder();
    let here = path.join("noexec");
    fs_err::create_dir(&here).unwrap();
    let script = "mount -t tmpfs -o noexec tmpfs $0 && cp -r $1/. $0 && shift && exec \"$@\"";
    let prefix = ["unshare", "-Urm", "sh", "-c", script, here.as_str(), fixture.toolchain.as_str()];
    let output = kit::role(&prefix, "noexec", &path).env("KIT_FOLDER", &here).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    holds(&text, &["E-TOOL-NOEXEC: ", here.join("nvidia/cu13/bin/nvcc").as_str(), "findmnt"]);
}

#[test]
fn every_variable_that_asks_for_another_build_is_refused_by_name() {
    let mut fixture = Fixture::new();
    let names = [
        "NVCC_APPEND_FLAGS",
        "NVCC_PREPEND_FLAGS",
        "NVCC_CCBIN",
        "PTXAS_FLAGS",
        "NVVM_FLAGS",
        "CUDAFE_FLAGS",
        "INCLUDES",
        "SYSTEM_INCLUDES",
    ];
    fixture.caller.extend(kit::variables(&names.map(|name| (name, "-G"))));
    let (code, text) = fixture.refusal();
    assert_eq!((code, text.matches("error[").count()), ("E-ENV-REFUSED", names.len()));
    holds(&text, &names);
}

/// A copy of the real toolchain whose files may be changed.
fn real() -> (tempfile::TempDir, Fixture) {
    let (guard, path) = kit::folder();
    let copy: Utf8PathBuf = path.join("toolchain");
    let script = format!("cp -r {} {copy}", real_toolchain());
    assert_eq!(kit::script(&script).run().unwrap().code, 0);
    (guard, Fixture::around(Some(copy)))
}

#[test]
fn the_real_wheels_say_what_the_lock_says() {
    let fixture = Fixture::around(Some(real_toolchain()));
    let preflight = fixture.check().unwrap();
    let versions: Vec<_> = preflight.versions[..9].iter().map(|row| row.version.as_str()).collect();
    let tool = "13.0.88";
    assert_eq!(versions, [tool, tool, tool, tool, tool, tool, "13.0", "3.0.1", tool]);
    assert_eq!(preflight.host.highest_major, 15);
}

#[test]
fn f13_holds_with_the_real_wheels() {
    let (_guard, fixture) = real();
    f13(&fixture);
}

#[test]
fn f01_and_f04_hold_with_the_real_wheels() {
    let (_guard, mut fixture) = real();
    let sound = fixture.lock.clone();
    fixture.pin_nvvm("13.3.33");
    let (code, text) = fixture.refusal();
    assert_eq!(code, "E-TOOLCHAIN-MIXED");
    holds(&text, &["cicc 13.0.88 of nvidia-nvvm", "nvidia-nvvm 13.3.33"]);
    fixture.lock = sound;
    fs_err::remove_file(fixture.toolkit("nvvm/bin/cicc")).unwrap();
    fixture.decoy("cicc");
    let (code, text) = fixture.refusal();
    assert_eq!(code, "E-TOOL-MISSING");
    holds(&text, &["nvvm/bin/cicc", "nvidia_nvvm-13.0.88"]);
    assert!(!fixture.marker().exists());
}
