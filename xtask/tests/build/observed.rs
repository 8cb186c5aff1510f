//! What a build records of each compile: everything that it was seen to open and to look for, in and out of a room.

use requal::closure::{Closure, Located};
use requal::receipt::Root;
use requal::unit::{ModuleRecord, UnitRecord};

use crate::kit::build::Fixture;
use crate::kit::file;

const UNIT: &str = "one/record/units/scale.cu.o.json";
const MODULE: &str = "one/record/one.so.json";

fn record<T: serde::de::DeserializeOwned>(fixture: &Fixture, path: &str) -> T {
    serde_json::from_slice(&fs_err::read(fixture.built(path)).unwrap()).unwrap()
}

#[test]
fn what_no_dependency_file_names_is_observed_in_both_places() {
    for mode in ["require", "off"] {
        let fixture = Fixture::new(&["one"]);
        fixture.run(&["--sandbox", mode]).succeeded();
        let unit: UnitRecord = record(&fixture, UNIT);
        let module: ModuleRecord = record(&fixture, MODULE);
        assert_eq!((&unit.bars, &module.bars), (&vec![], &vec![]), "{mode}");
        let has = |closure: &Closure, root, end: &str| {
            closure.files.keys().any(|at| at.root == root && at.path.ends_with(end))
        };
        let toolkit = ["crt/host_runtime.h", "bin/nvcc.profile", "bin/nvcc", "bin/ptxas", "bin/cudafe++"];
        for end in toolkit {
            assert!(has(&unit.closure, Root::Toolchain, end), "{mode}: {end}: {:#?}", unit.closure.files);
        }
        for (closure, end) in
            [(&unit.closure, "/cc1plus"), (&unit.closure, "/libc.so.6"), (&module.closure, "/collect2")]
        {
            assert!(has(closure, Root::System, end), "{mode}: {end}: {:#?}", closure.files);
        }
        for late in ["include/crt/host_runtime.h", "include/cuda_runtime.h"] {
            let late = Located::new(Root::Tree, late).unwrap();
            assert!(unit.closure.absent.contains(&late), "{mode}: {late}");
        }
        let started = |name: &str| has(&unit.closure, Root::Toolchain, name);
        assert!(["/nvcc", "/cudafe++", "/cicc", "/ptxas", "/fatbinary"].into_iter().all(started));
    }
}

#[test]
fn a_file_that_only_the_assembler_reads_is_no_longer_unseen() {
    let fixture = Fixture::new(&["one"]);
    let table = fixture.root.join("table.bin");
    file(&table, "1", 0o644);
    let text = format!(
        "#ifndef __CUDA_ARCH__\n__asm__(\".pushsection .rodata\\n.inc\" \"bin \\\"{table}\\\"\\n.popsection\");\n#endif\n#include \"one/factor.h\""
    );
    fixture.edit("kernels/one/units/scale.cu", "#include \"one/factor.h\"", &text);
    fixture.run(&["--sandbox", "off"]).refused(4, "E-BUILD", &["E-INPUT-STRAY", table.as_str()]);
}
