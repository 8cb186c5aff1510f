//! What a build records of each compile: everything that it was seen to open and to look for, in and out of a room.

use requal::receipt::{Input, Root};
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
    for (mode, tree) in [("require", "/requal/tree".to_owned()), ("off", String::new())] {
        let fixture = Fixture::new(&["one"]);
        fixture.run(&["--sandbox", mode]).succeeded();
        let tree = if tree.is_empty() { fixture.scratch.join("place/tree").into_string() } else { tree };
        let unit: UnitRecord = record(&fixture, UNIT);
        let module: ModuleRecord = record(&fixture, MODULE);
        for observed in [&unit.observed, &module.observed] {
            assert!(observed.is_complete(), "{:?}", observed.gaps);
            assert_eq!(observed.written.len(), 0, "{:?}", observed.written);
        }
        let has = |inputs: &[Input], root, end: &str| {
            inputs.iter().any(|input| input.root == root && input.path.ends_with(end))
        };
        let toolkit = ["crt/host_runtime.h", "bin/nvcc.profile", "bin/nvcc", "bin/ptxas", "bin/cudafe++"];
        for end in toolkit {
            assert!(has(&unit.inputs, Root::Toolchain, end), "{mode}: {end}: {:#?}", unit.inputs);
        }
        for (inputs, end) in
            [(&unit.inputs, "/cc1plus"), (&unit.inputs, "/libc.so.6"), (&module.inputs, "/collect2")]
        {
            assert!(has(inputs, Root::System, end), "{mode}: {end}: {inputs:#?}");
        }
        for late in ["include/crt/host_runtime.h", "include/cuda_runtime.h"] {
            assert!(unit.observed.probes.contains(&format!("{tree}/{late}")), "{mode}: {late}");
        }
        let started = |name: &str| unit.observed.executed.iter().any(|one| one.program.ends_with(name));
        assert!(["/nvcc", "/cudafe++", "/cicc", "/ptxas", "/fatbinary", "/cc1plus"].into_iter().all(started));
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
