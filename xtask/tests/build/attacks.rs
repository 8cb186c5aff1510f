//! What is planted around a build is refused by name or without effect on a single byte.

use camino::Utf8Path;
use requal::lock::{Lock, Package};

use crate::kit::build::{Fixture, ended};
use crate::kit::toolchain::{fake_gxx, says};
use crate::kit::zip::{Entry, pin, wheel, zip};
use crate::kit::{file, program, script};

/// Names that nvcc and gcc look for on PATH.
const PROGRAMS: [&str; 9] = ["nvcc", "cicc", "ptxas", "cudafe++", "fatbinary", "nvlink", "ninja", "as", "ld"];
/// A header that stops every compile that finds it.
const TRAP: &str = "#error a planted header was read\n";
/// Both ways to build.
const MODES: [&str; 2] = ["require", "off"];

/// Puts programs that leave a marker first on the caller's PATH, and gives the marker's path.
fn decoys(fixture: &mut Fixture) -> camino::Utf8PathBuf {
    let (folder, marker) = (fixture.root.join("decoys"), fixture.root.join("marker"));
    for name in PROGRAMS {
        program(&folder.join(name), &format!("#!/bin/sh\n: > {marker}\nexit 0\n"));
    }
    fixture.caller.insert("PATH".to_owned(), format!("{folder}:/usr/bin:/bin"));
    marker
}

#[test]
fn f06_f13_f18_surroundings_are_without_effect_on_a_single_byte() {
    let mut fixture = Fixture::new(&["one"]);
    let clean = MODES.map(|mode| {
        fixture.forget();
        fixture.build(&["--sandbox", mode])
    });
    let marker = decoys(&mut fixture);
    let older = fixture.root.join("older");
    for header in ["cuda_runtime.h", "crt/host_runtime.h", "crt/host_config.h", "one/factor.h"] {
        for folder in [older.join("include"), fixture.root.join("tmp")] {
            file(&folder.join(header), TRAP, 0o644);
        }
    }
    program(&older.join("bin/nvcc"), &format!("#!/bin/sh\n: > {marker}\n"));
    let include = older.join("include");
    let around = [
        ("CPATH", include.as_str()),
        ("CPLUS_INCLUDE_PATH", include.as_str()),
        ("CUDA_HOME", older.as_str()),
        ("CUDA_PATH", older.as_str()),
        ("CXXFLAGS", "-O0"),
        ("LD_LIBRARY_PATH", older.as_str()),
        ("LIBRARY_PATH", older.as_str()),
        ("MAX_JOBS", "64"),
        ("NVCC_THREADS", "64"),
        ("SOURCE_DATE_EPOCH", "1"),
        ("TORCH_CUDA_ARCH_LIST", "8.0"),
        ("COMPILER_PATH", "/nowhere"),
    ];
    fixture.caller.extend(crate::kit::variables(&around));
    for (mode, clean) in MODES.into_iter().zip(clean) {
        fixture.forget();
        assert_eq!(fixture.build(&["--sandbox", mode]), clean, "{mode}");
        assert!(!marker.exists(), "{mode}: a decoy was started");
        let receipt = fixture.receipt().predicate;
        let replaced: Vec<String> =
            receipt.run.replaced_environment.iter().map(ToString::to_string).collect();
        assert!(around.iter().all(|(name, _)| replaced.iter().any(|one| one == name)), "{replaced:?}");
        // Every input lies under a declared root, and the host's are the compiler's own.
        let of_host = receipt.build.inputs.iter().filter(|input| input.root == requal::receipt::Root::System);
        assert!(of_host.clone().count() > 10);
        // The loader's list of libraries is read where no room hides it.
        let of_compiler = |path: &str| path.starts_with("usr/") || mode == "off" && path == "etc/ld.so.cache";
        assert!(of_host.clone().all(|input| of_compiler(&input.path.to_string())));
    }
}

/// The machine's own /tmp, seen by the whole run, holds the header that nvcc's generated sources ask for first.
#[test]
fn a_header_in_the_shared_temporary_folder_is_not_read() {
    let mut fixture = Fixture::below(Utf8Path::new(env!("CARGO_TARGET_TMPDIR")).as_std_path(), &["one"]);
    fixture.caller.remove("TMPDIR");
    let planted = fixture.root.join("planted");
    file(&planted.join("crt/host_runtime.h"), TRAP, 0o644);
    for mode in MODES {
        fixture.forget();
        let clean = fixture.build(&["--sandbox", mode]);
        fixture.forget();
        let mut call = fixture.call(&["--sandbox", mode]);
        // The planted folder is seen by this call alone; the empty one under it goes at the end.
        let plant = "mkdir -p /tmp/crt && mount --bind \"$0/crt\" /tmp/crt && exec \"$@\"";
        let words = ["-Urm", "sh", "-c", plant, planted.as_str()];
        let mut args = words.map(str::to_owned).to_vec();
        args.push(call.program.to_string());
        args.append(&mut call.args);
        (call.program, call.args) = ("/usr/bin/unshare".into(), args);
        let done = ended(&call);
        fs_err::remove_dir("/tmp/crt").unwrap();
        done.succeeded();
        assert_eq!(fixture.digests(), clean, "{mode}");
    }
}

#[test]
fn variables_that_ask_for_another_build_are_refused_by_name_before_anything_is_done() {
    let cases = [
        ("NVCC_APPEND_FLAGS", "-G"),
        ("NVCC_APPEND_FLAGS", "-allow-unsupported-compiler"),
        ("NVCC_APPEND_FLAGS", "-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK"),
        ("NVCC_PREPEND_FLAGS", "-O0"),
        ("PTXAS_FLAGS", "-O0"),
        ("INCLUDES", "-I/nowhere"),
        ("NVVM_FLAGS", "-opt=0"),
        ("NVCC_CCBIN", "/usr/bin/false"),
    ];
    let mut fixture = Fixture::new(&["one"]);
    let sound = fixture.caller.clone();
    for (name, value) in cases {
        fixture.caller = sound.clone();
        fixture.caller.insert(name.to_owned(), value.to_owned());
        fixture.run(&[]).refused(2, "E-ENV-REFUSED", &[&format!("{name}={value}")]);
    }
    fixture.caller = sound;
    for name in ["toolchain", "build", "modules", "receipts"] {
        assert!(!fixture.scratch.join(name).exists(), "{name}");
    }
}

/// Damage of the unpacked toolchain. Each is refused by name and nothing is changed, or put back from the wheel.
#[test]
fn f13_a_damaged_toolchain_is_refused_by_name_or_restored_and_no_decoy_runs() {
    let mut fixture = Fixture::new(&["one"]);
    let digests = fixture.build(&[]);
    let marker = decoys(&mut fixture);
    let run = |text: String| {
        let ended = script(&text).run().unwrap();
        assert_eq!(ended.code, 0, "{text}: {}", ended.output);
    };
    // What is changed, how, and the refusal; the file is put back afterwards.
    let cases = [
        ("bin/ptxas", "chmod 644 $f", "E-TREE-MODE", "0644"),
        ("bin/ptxas", "printf 'echo text' > $f", "E-TREE-HASH", "9 bytes"),
        (
            "bin/nvcc.profile",
            "sed -i s/INCLUDES/includes/ $f",
            "E-TREE-MTIME",
            "content of nvidia/cu13/bin/nvcc.profile",
        ),
        (
            "bin/nvcc.profile",
            "sed -i s/INCLUDES/includes/ $f && touch -r $f.kept $f",
            "E-TREE-HASH",
            "bin/nvcc.profile",
        ),
        ("include/cccl/cuda/std/version", "echo >> $f", "E-TREE-HASH", "include/cccl/cuda/std/version"),
        ("nvvm/bin/cicc", "ln -sf /bin/true $f", "E-TREE-LINK", "a symbolic link to /bin/true"),
        ("bin/nvcc", "touch $f", "E-TREE-MTIME", "bin/nvcc"),
    ];
    for (path, damage, code, word) in cases {
        let (path, kept) = (fixture.toolkit(path), fixture.root.join("kept"));
        run(format!("f={path}; cp -p $f {kept}; {}", damage.replace("$f.kept", kept.as_str())));
        fixture.run(&[]).refused(1, code, &[word, path.file_name().unwrap()]);
        run(format!("rm {path} && mv {kept} {path}"));
    }
    let extra = fixture.toolkit("include/crt/extra.h");
    file(&extra, TRAP, 0o644);
    fixture.run(&[]).refused(1, "E-TREE-EXTRA", &["include/crt/extra.h"]);
    fs_err::remove_file(&extra).unwrap();

    for path in ["nvvm/bin/cicc", "bin/ptxas"] {
        fs_err::remove_file(fixture.toolkit(path)).unwrap();
        fixture.forget();
        assert_eq!(fixture.build(&[]), digests, "{path} is put back from its wheel");
    }
    assert!(!marker.exists(), "a decoy was started");
    assert_eq!(fixture.receipt().predicate.run.attempts.len(), cases.len() + 1);
}

/// Takes `package` into the fixture's lock, in place of one of its name, and its bytes into a wheelhouse of its own.
fn pin_instead(fixture: &mut Fixture, package: Package, bytes: &[u8]) {
    let path = fixture.repository.join("toolchain.lock");
    let mut lock = Lock::parse("toolchain.lock", &fs_err::read_to_string(&path).unwrap()).unwrap();
    lock.packages.retain(|one| one.name != package.name);
    let house = fixture.root.join("wheelhouse");
    fs_err::create_dir(&house).unwrap();
    for one in &lock.packages {
        let (from, to) = (fixture.wheelhouse.join(&one.file), house.join(&one.file));
        fs_err::os::unix::fs::symlink(from, to).unwrap();
    }
    xtask::sys::fs::write(&house.join(&package.file), bytes).unwrap();
    lock.packages.push(package);
    lock.packages.sort_by(|a, b| a.name.cmp(&b.name));
    file(&path, &lock.to_text(), 0o644);
    fixture.wheelhouse = house;
}

/// Pins a wheel of `files` as `name` `version`.
fn pin_fake(fixture: &mut Fixture, name: &str, version: &str, files: &[Entry]) {
    let bytes = zip(&wheel(name, version, files)).bytes;
    let package = pin(name, version, &bytes);
    pin_instead(fixture, package, &bytes);
}

/// Programs of another release among the real wheels; the refusal has every component's own word.
#[test]
fn f01_f02_components_of_two_releases_are_refused_before_any_compile() {
    let newer = says("13.3", "13.3.33");
    let tool = |path: &str| Entry::file(&format!("nvidia/cu13/{path}"), newer.as_bytes()).mode(0o100_755);
    let nvcc = ["nvcc", "ptxas", "cudafe++", "fatbinary", "nvlink"].map(|name| tool(&format!("bin/{name}")));
    let cases: [(&str, &[Entry], &[&str]); 2] = [
        ("nvidia-nvvm", &[tool("nvvm/bin/cicc")], &["cicc 13.3.33 of nvidia-nvvm", "13.0", "ptxas"]),
        ("nvidia-cuda-nvcc", &nvcc, &["cicc 13.0.88 of nvidia-nvvm", "13.3", "runtime", "CCCL"]),
    ];
    for (name, files, words) in cases {
        let mut fixture = Fixture::new(&["one"]);
        pin_fake(&mut fixture, name, "13.3.33", files);
        fixture.run(&[]).refused(2, "E-TOOLCHAIN-MIXED", words);
        assert!(!fixture.scratch.join("build").exists(), "{name}");
    }
}

#[test]
fn f10_two_wheels_with_one_path_and_other_bytes_are_refused_and_nothing_is_written() {
    let mut fixture = Fixture::new(&["one"]);
    let files = [Entry::file("nvidia/cu13/include/cuda_runtime.h", TRAP.as_bytes())];
    pin_fake(&mut fixture, "nvidia-cuda-more", "13.0.1", &files);
    let words = ["nvidia-cuda-more", "nvidia-cuda-runtime", "nvidia/cu13/include/cuda_runtime.h"];
    fixture.run(&[]).refused(1, "E-TREE-COLLISION", &words);
    assert!(!fixture.scratch.join("toolchain").exists());
}

#[test]
fn f08_a_host_compiler_that_is_too_new_is_named_with_the_limit() {
    let mut fixture = Fixture::new(&["one"]);
    let folder = fixture.root.join("newer");
    fake_gxx(&folder.join("g++"), "16.1.0");
    fixture.caller.insert("PATH".to_owned(), format!("{folder}:/usr/bin:/bin"));
    fixture.run(&[]).refused(1, "E-HOST-RANGE", &[folder.join("g++").as_str(), "16.1.0", "gcc 6 to 15"]);
    fixture.caller.insert("CXX".to_owned(), "/usr/bin/g++".to_owned());
    fixture.build(&[]);
    let compiler = Utf8Path::new("/usr/bin/g++").canonicalize_utf8().unwrap();
    let named = format!("-ccbin={compiler}");
    let receipt = fixture.receipt().predicate.build;
    assert!(receipt.units.iter().all(|unit| unit.argv.iter().any(|word| word.to_string() == named)));
}
