//! What a manifest may not ask for, and what a compile or link may not give.

use crate::kit::build::{Fixture, MANIFEST};

const TABLE: &str = "kernels/one/units/module.cu";
const SCALE: &str = "kernels/one/units/scale.cu";

#[test]
fn a_manifest_that_would_mix_modules_or_targets_is_refused_before_anything_is_done() {
    let cases = [
        ("MODULE_NAME = \"three\"", "MODULE_NAME = \"one\"", "REQUAL_MODULE_NAME=one"),
        ("name = \"three\"\ntree", "name = \"one\"\ntree", "module.name (one)"),
        ("value = \"-O3\"", "value = \"-gencode=arch=compute_80,code=sm_80\"", "-gencode=arch=compute_80"),
        ("value = \"-O3\"", "value = \"-arch=sm_80\"", "-arch=sm_80"),
        ("value = \"-O3\"", "value = \"-rdc=true\"", "-rdc=true"),
        ("value = \"-O3\"", "value = \"-MMD\"", "-MMD"),
        ("value = \"-O3\"", "value = \"-ccbin=/usr/bin/false\"", "-ccbin"),
    ];
    for (from, to, word) in cases {
        let fixture = Fixture::new(&["one", "three"]);
        fixture.edit(MANIFEST, from, to);
        fixture.run(&[]).refused(2, "E-MANIFEST", &[word]);
        assert!(!fixture.scratch.join("toolchain").exists());
    }
}

/// Changes of the sources or flags, and the refusal of the build: every case starts from what the last one left.
#[test]
fn a_module_is_judged_before_it_gets_its_name() {
    let fixture = Fixture::new(&["one"]);
    let (hidden, reason) =
        ("[[flag]]\nvalue = \"-Xcompiler=-fvisibility=hidden\"\n", "[[flag]]\nvalue = \"-O1\"\n");
    let entry = "extern \"C\" __attribute__((visibility(\"default\"))) ";
    let cases: [(&str, &str, &str, &str, &str); 5] = [
        (
            SCALE,
            "int scale(float* values) {",
            "int absent(float* values);\nint scale(float* values) {\n  absent(values);",
            "E-LINK",
            "undefined reference to `requal_one::absent(float*)'",
        ),
        (
            SCALE,
            "}  // namespace requal_one",
            &["}  // namespace requal_one\n", entry, "int other() { return 1; }"].concat(),
            "E-MODULE-EXPORTS",
            "other",
        ),
        (
            SCALE,
            "#include \"one/factor.h\"",
            "#include \"one/factor.h\"\n__attribute__((visibility(\"default\"))) inline int& shared() { static int x; return x; }\nint use() { return shared(); }",
            "E-MODULE-UNIQUE",
            "shared",
        ),
        (TABLE, "requal_module_v1(void)", "requal_module_v2(void)", "E-MODULE-EXPORTS", "requal_module_v2"),
        (MANIFEST, hidden, reason, "E-MODULE-EXPORTS", "scale"),
    ];
    for (count, (path, from, to, code, word)) in cases.into_iter().enumerate() {
        let kept = fs_err::read_to_string(fixture.repository.join(path)).unwrap();
        fixture.edit(path, from, to);
        fixture.run(&[]).refused(4, "E-BUILD", &[code, word, "the whole output: "]);
        assert!(!fixture.built("one/one.so").exists() && !fixture.scratch.join("modules/one.so").exists());
        crate::kit::file(&fixture.repository.join(path), &kept, 0o644);
        let attempts = crate::kit::build::files(&fixture.scratch.join("attempts"));
        assert_eq!(attempts.len(), count + 1);
    }
    fixture.build(&[]);
    assert_eq!(fixture.receipt().predicate.run.attempts.len(), 5);
}

#[test]
fn a_compile_that_fails_is_shown_in_the_compilers_own_words_and_kept_for_the_next_receipt() {
    let fixture = Fixture::new(&["one"]);
    fixture.edit(SCALE, "values[threadIdx.x] *=", "missing[threadIdx.x] *=");
    let failed = fixture.run(&[]);
    let log = fixture.built("one/log/units/scale.cu.o.log");
    failed.refused(4, "E-BUILD", &["identifier \"missing\" is undefined", log.as_str(), "units/scale.cu"]);
    assert!(fs_err::read_to_string(&log).unwrap().contains("identifier \"missing\" is undefined"));
    assert!(!fixture.built("one/units/scale.cu.o").exists());
    assert!(fixture.built("one/units/module.cu.o").exists(), "the other unit is finished");

    fixture.edit(SCALE, "missing[threadIdx.x] *=", "values[threadIdx.x] *=");
    fixture.build(&[]);
    let attempts = fixture.receipt().predicate.run.attempts;
    assert_eq!((attempts.len(), attempts[0].exit), (1, 4));
    let file = attempts[0].file.to_string();
    let kept = fs_err::read_to_string(fixture.scratch.join(&file)).unwrap();
    assert!(kept.contains("identifier \\\"missing\\\" is undefined"));
    let published = fs_err::read_to_string(fixture.scratch.join("receipts").join(file)).unwrap();
    assert!(published.contains("E-BUILD") && !published.contains(fixture.scratch.as_str()), "{published}");
}

#[test]
fn f23_a_module_that_answers_to_another_name_is_refused() {
    let fixture = Fixture::new(&["one"]);
    fixture.edit(MANIFEST, "REQUAL_MODULE_NAME = \"one\"", "REQUAL_MODULE_NAME = \"other\"");
    fixture.run(&[]).refused(4, "E-LOAD", &["E-MODULE-NAME", "other", "one"]);
}
