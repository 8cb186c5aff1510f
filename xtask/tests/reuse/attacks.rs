//! Attacks on a reuse certificate and field cases, by id: what stops each, and what it is about.

use requal::receipt::{Decision, Reason};
use requal::tree::mtime_s;

use crate::bases::{CHAIN, HOST, LINKED, NAMED, TABLE, TWINS};
use crate::court::Court;
use crate::place::Made;
use crate::world::{Entry, World};

const OUTER: &str = "include/chain/outer.h";
const INNER: &str = "include/chain/inner.h";
const WHERE: &str = "include/host/where.h";

/// Headers planted where nvcc's generated sources and a working folder are looked through first.
#[test]
fn a01_a07_what_is_planted_in_the_temporary_folder_is_gone_before_a_compile() {
    let mut court = Court::new();
    let (before, mut after) = court.pair(CHAIN, |_| ());
    let made = court.0.first(&before);
    let build = court.0.on_machine("build");
    let own = build.join(format!("unit/{}.d/tmp", before.object()));
    for planted in ["crt/host_runtime.h", "cuda_runtime.h"] {
        for folder in [own.clone(), build.join("planted"), build.clone()] {
            crate::kit::file(&folder.join(planted), "#error planted\n", 0o644);
        }
    }
    after.environment.insert("TMPDIR".to_owned(), "/requal/build/planted".to_owned());
    assert!(court.0.compile(&after).unwrap().object == made.object);
    court.taken(&(before, after));
}

#[test]
fn a02_variables_that_change_code_do_not_reach_a_compile_and_the_others_are_compared() {
    let mut court = Court::new();
    let set = |(name, value): (&'static str, &'static str)| {
        move |world: &mut World| drop(world.environment.insert(name.to_owned(), value.to_owned()))
    };
    let all = [
        ("PTXAS_FLAGS", "-O0"),
        ("NVVM_FLAGS", "-opt=0"),
        ("CUDAFE_FLAGS", "--no_such_flag"),
        ("INCLUDES", "-I/requal/tree/aside"),
        ("SYSTEM_INCLUDES", "-I/requal/tree/aside"),
        ("NVCC_APPEND_FLAGS", "-G"),
        ("NVCC_PREPEND_FLAGS", "-O0"),
        ("NVCC_CCBIN", "/requal/tree"),
        ("CPATH", "/requal/tree/aside"),
        ("CPLUS_INCLUDE_PATH", "/requal/tree/aside"),
        ("COMPILER_PATH", "/requal/tree"),
    ];
    let pair = court.pair(CHAIN, |world| all.into_iter().for_each(|one| set(one)(world)));
    let made = court.taken(&pair);
    let recorded: Vec<&str> =
        made.record.invocation.environment.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(recorded, ["LC_ALL", "PATH", "SOURCE_DATE_EPOCH", "TMPDIR", "TZ"]);
    for one in [("TZ", "Asia/Tokyo"), ("SOURCE_DATE_EPOCH", "1"), ("OMP_NUM_THREADS", "1")] {
        let pair = court.pair(HOST, set(one));
        court.refused(&pair, Reason::EnvironmentDiffers, one.0);
    }
}

/// A4: the late headers are in no dependency file of nvcc's.
#[test]
fn a03_a04_another_tool_profile_or_late_header_is_another_input() {
    let mut court = Court::new();
    for (path, added) in [
        ("bin/nvcc.profile", "PTXAS_FLAGS += -O0\\n"),
        ("nvvm/bin/cicc", "x"),
        ("bin/ptxas", "x"),
        ("bin/cudafe++", "x"),
        ("include/crt/host_runtime.h", "/* a note */\\n"),
        ("include/fatbinary_section.h", "/* a note */\\n"),
    ] {
        let path = format!("nvidia/cu13/{path}");
        let pair = court.pair(CHAIN, |world| drop(world.tools.insert(path.clone(), added.to_owned())));
        court.refused(&pair, Reason::ContentDiffers, &format!("toolchain:{path}"));
    }
}

/// What was looked for in vain is there now. The reason names what is new.
#[test]
fn a05_a06_a07_a08_f28_f29_something_stands_where_nothing_did() {
    let mut court = Court::new();
    for (unit, path) in [
        (CHAIN, "early/chain/outer.h"),
        (CHAIN, "include/chain/chain/inner.h"),
        (CHAIN, "units/chain/outer.h"),
        (CHAIN, "include/chain/tuned.h"),
        (HOST, "include/host/where.h.gch"),
        (CHAIN, "early/cuda_runtime.h"),
        (CHAIN, "include/crt/host_runtime.h"),
        (HOST, "early/source_location"),
        (TWINS, "early/opt/tuned.h"),
    ] {
        let pair = court.pair(unit, |world| world.put(path, "#define PLANTED 1\n"));
        court.refused(&pair, Reason::ProbeFound, &format!("tree:{path}"));
    }
    // A folder where a listed -I named none, even an empty one.
    let pair = court.pair(HOST, |world| drop(world.tree.insert("late".to_owned(), Entry::Folder)));
    court.refused(&pair, Reason::ProbeFound, "tree:late");
    let pair = court.pair(HOST, |world| world.put("late/host/where.h", "#error planted\n"));
    court.refused(&pair, Reason::ProbeFound, "tree:late");
    // A compiled header counts for the first header alone, which is cuda_runtime.h here.
    let pair = court.pair(CHAIN, |world| world.put(&format!("{OUTER}.gch"), "#error planted\n"));
    court.taken(&pair);
    // A folder that is not searched.
    let pair = court.pair(HOST, |world| world.put("aside/host/where.h", "#error planted\n"));
    court.taken(&pair);
}

/// Two folders of the machine, one place in the room.
#[test]
fn a11_objects_that_hold_their_path_are_equal_because_their_place_is() {
    let (mut one, other) = (Court::new(), Court::new());
    let mut world = one.base(CHAIN);
    let more = "namespace { int hidden = 1; }\nchar const* file() { return hidden ? __FILE__ : nullptr; }\n";
    world.put(CHAIN, &(world.text(CHAIN).to_owned() + more));
    world.argument("-lineinfo");
    let made = one.0.first(&world);
    assert!(made.object.windows(12).any(|part| part == b"/requal/tree"));
    assert!(other.0.compile(&world).unwrap().object == made.object);
}

#[test]
fn a12_a_file_behind_a_relative_folder_is_refused_by_name() {
    let court = Court::new();
    let mut before = court.base(HOST);
    before.put(HOST, "#include <notes.h>\nint notes() { return NOTES; }\n");
    before.argument("-I../../../../../tree/aside");
    let said = court.0.compile(&before).unwrap_err();
    assert!(said.contains("E-INPUT-STRAY") && said.contains("../tree/aside/notes.h"), "{said}");
}

#[test]
fn a13_a_link_that_leads_elsewhere_is_a_difference_even_to_the_same() {
    let mut court = Court::new();
    let link = || Entry::Link("v2".to_owned());
    let mut pair = court.pair(LINKED, |world| {
        world.tree.insert("include/linked/current".to_owned(), link());
    });
    court.refused(&pair, Reason::LinkDiffers, "tree:include/linked/current");
    let same = pair.0.text("include/linked/v1/value.h").to_owned();
    pair.0.put("include/linked/v2/value.h", &same);
    pair.1.put("include/linked/v2/value.h", &same);
    court.refused(&pair, Reason::LinkDiffers, "tree:include/linked/current");
    let pair = court.pair(LINKED, |world| drop(world.outside.insert("current".to_owned(), link())));
    court.refused(&pair, Reason::LinkDiffers, "system:opt/outside/current");
    let pair = court.pair(LINKED, |world| drop(world.outside.insert("idle".to_owned(), link())));
    court.taken(&pair);
}

/// The offer stands, and what it was made for does not.
#[test]
fn a14_an_edit_between_decision_and_use_means_compile() {
    let mut court = Court::new();
    let (before, after) = court.pair(HOST, |world| world.edit(HOST, "12", "13"));
    let made = court.0.first(&before);
    court.taken(&(before.clone(), before));
    let compiled = court.0.ask(&after, &made).unwrap();
    let decided = &compiled.record.decided;
    assert_eq!(
        (decided.reason, decided.about.as_deref()),
        (Reason::ChangedAtUse, Some("tree:units/host.cpp"))
    );
    assert!(compiled.object != made.object);
}

#[test]
fn a15_f37_a_dependency_file_names_todays_inputs_and_no_header_that_is_gone() {
    let mut court = Court::new();
    let rule = |court: &Court| {
        let path = court.0.on_machine("build").join(format!("dep/{HOST}.o.d"));
        fs_err::read_to_string(path).unwrap()
    };
    let before = court.base(HOST);
    let made = court.0.first(&before);
    let compiled = rule(&court);
    assert!(compiled.contains("/requal/tree/include/host/where.h"));
    for stale in [format!("dep/{HOST}.o.d"), format!("unit/{HOST}.o.d/host.cpp.o.dep")] {
        let text = "units/host.cpp.o: /requal/tree/include/gone.h\n";
        crate::kit::file(&court.0.on_machine("build").join(stale), text, 0o644);
    }
    court.0.ask(&before, &made).unwrap();
    let taken = rule(&court);
    let inputs = |text: &str| -> Vec<String> {
        let mut inputs: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        inputs.sort();
        inputs
    };
    assert!(!taken.contains("gone.h"), "{taken}");
    for input in inputs(&compiled) {
        assert!(taken.contains(&input), "{input} is not in:\n{taken}");
    }
    let mut after = before.clone();
    after.put(HOST, "unsigned sum() { return 12; }\n");
    after.tree.remove(WHERE);
    court.refused(&(before, after), Reason::ContentDiffers, "tree:include/host/where.h");
    assert!(!rule(&court).contains("where.h"));
}

#[test]
fn a18_an_object_that_is_not_what_its_record_says_is_not_taken() {
    let mut court = Court::new();
    let world = court.base(CHAIN);
    let made = court.0.first(&world);
    let other = court.0.first(&court.base(NAMED));
    let short = made.object[..made.object.len() / 2].to_vec();
    for object in [short.clone(), Vec::new(), other.object] {
        let compiled = court.0.ask(&world, &Made { object, ..made.clone() }).unwrap();
        let decided = &compiled.record.decided;
        assert_eq!(
            (decided.reason, decided.about.as_deref()),
            (Reason::ChangedAtUse, Some("units/chain.cu.o"))
        );
        assert!(compiled.object == made.object);
    }
    // A record that goes with the truncated object: what it is shows.
    let mut forged = Made { object: short, ..made };
    forged.record.object_sha256 = requal::Digest::of(&forged.object);
    let said = court.0.ask(&world, &forged).unwrap_err();
    assert!(said.contains("E-OBJECT-FORMAT"), "{said}");
}

#[test]
fn a27_f39_times_and_tables_that_no_dependency_file_names() {
    let mut court = Court::new();
    for name in ["__DATE__", "__TIME__", "__TIMESTAMP__"] {
        let mut world = court.base(HOST);
        world.put(HOST, &format!("char const* said() {{ return {name}; }}\n"));
        court.refused(&(world.clone(), world), Reason::TimeMacro, "tree:units/host.cpp");
    }
    // Where no search of the text finds it, the clock stands still and the time of the file is compared.
    let glued =
        "#define GLUE(a, b) a##b\nchar const* said() { return GLUE(__DA, TE__) GLUE(__TIME, STAMP__); }\n";
    let mut before = court.base(HOST);
    before.put(HOST, glued);
    court.taken(&(before.clone(), before.clone()));
    let mut after = before.clone();
    after.date(HOST, mtime_s(HOST) + 60);
    court.refused(&(before, after), Reason::MtimeDiffers, "tree:units/host.cpp");
    let pair = court.pair(TABLE, |world| world.put("data/table.bin", "x123456789"));
    court.refused(&pair, Reason::ContentDiffers, "tree:data/table.bin");
    let pair = court.pair(TABLE, |world| world.put("data/spare.bin", "x"));
    court.taken(&pair);
}

#[test]
fn f30_code_for_the_host_alone_counts_two_levels_down() {
    let mut court = Court::new();
    let pair = court.pair(CHAIN, |world| world.edit(INNER, "return 41", "return 42"));
    let made = court.0.first(&pair.0);
    let compiled = court.refused(&pair, Reason::ContentDiffers, &format!("tree:{INNER}")).unwrap();
    assert!(compiled.object != made.object);
    assert_eq!(compiled.record.device_code_sha256, made.record.device_code_sha256);
}

/// The case asks for a decision by content alone. Times stand in line tables and decide between equal headers, so they are
/// compared too; a laid-out tree has those that its paths give, whatever the source folder has.
#[test]
fn f53_other_bytes_under_the_old_time_and_a_time_in_the_future_are_both_seen() {
    let mut court = Court::new();
    let pair = court.pair(CHAIN, |world| world.edit(OUTER, "TUNED 10", "TUNED 11"));
    court.refused(&pair, Reason::ContentDiffers, &format!("tree:{OUTER}"));
    let pair = court.pair(CHAIN, |world| world.date(OUTER, 4_000_000_000));
    court.refused(&pair, Reason::MtimeDiffers, &format!("tree:{OUTER}"));
}

/// What the link leads to is equal in bytes and time, and nvcc makes identifiers from the path that it leads to.
#[test]
fn a13_a_link_in_place_of_a_file_or_folder_is_a_difference() {
    let mut court = Court::new();
    let more = "namespace {\n__device__ int hidden;\n__global__ void secret(int* v) { *v = hidden; }\n}\nvoid go(int* v) { secret<<<1, 1>>>(v); }\n";
    let mut before = court.base(CHAIN);
    before.put(CHAIN, &(before.text(CHAIN).to_owned() + more));
    for path in [CHAIN, OUTER, "include/chain", "units"] {
        let mut after = before.clone();
        for own in after.files().into_iter().filter(|own| own.starts_with(path)) {
            let entry = after.tree.remove(&own).unwrap();
            after.tree.insert(format!("real/{own}"), entry);
        }
        let up = "../".repeat(path.matches('/').count());
        after.tree.insert(path.to_owned(), Entry::Link(format!("{up}real/{path}")));
        let made = court.0.first(&before);
        let compiled = court.0.ask(&after, &made).unwrap();
        court.0.verdict(&after, &made, &Ok(compiled.clone())).unwrap();
        let decided = &compiled.record.decided;
        assert_eq!((decided.decision, decided.reason), (Decision::Compiled, Reason::ChangedAtUse), "{path}");
        assert_eq!(compiled.object != made.object, CHAIN.starts_with(path), "{path}");
    }
}

/// What the kernel shows is of the moment: the number of a process, whether a device is there.
#[test]
fn a13_what_the_kernel_shows_bars_a_unit() {
    let mut court = Court::new();
    for path in ["/proc/7", "/dev/nvidia0", "/sys/module", "/proc/self/status"] {
        let mut world = court.base(HOST);
        world.put(HOST, &format!("#if __has_include(\"{path}\")\nint there;\n#endif\nint one;\n"));
        let made = court.0.first(&world);
        let about: Vec<_> = made.record.bars.iter().map(|bar| bar.about.as_str()).collect();
        assert!(about.iter().any(|about| about.starts_with("/proc/") || *about == path), "{path}: {about:?}");
        assert!(made.record.bars.iter().all(|bar| bar.reason == Reason::NotObserved));
        let asked = court.0.ask(&world, &made).unwrap();
        assert_eq!(asked.record.decided.decision, Decision::Compiled);
    }
}
