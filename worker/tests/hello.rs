//! The worker's hello on real shared objects: every order, each alone, and what must be refused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its supporting functions too")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use requal::Digest;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Small modules built by the host compiler against the real header, and a library in libcudart's place.
struct Modules {
    folder: TempDir,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the host C compiler makes the modules, the worker is under test"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}

impl Modules {
    fn new() -> Self {
        let modules = Self { folder: tempfile::tempdir().unwrap() };
        modules.compile(
            "libcudart.so.13",
            "__attribute__((visibility(\"default\"))) int cudartStandIn(void) { return 13; }",
            &["-Wl,-soname,libcudart.so.13"],
        );
        modules
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[expect(clippy::disallowed_methods, reason = "a source file in the test's own folder")]
    fn compile(&self, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
        let (file, output) = (self.path("source.c"), self.path(name));
        std::fs::write(&file, source).unwrap();
        let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/p2p/include");
        let built = command("gcc")
            .args(["-shared", "-fPIC", "-fvisibility=hidden", "-I", include, "-o"])
            .args([&output, &file])
            .args(arguments)
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        output
    }

    /// A module named `marker` that needs libcudart, as real modules do.
    fn module(&self, marker: &str) -> PathBuf {
        self.module_with(marker, "REQUAL_ABI_VERSION", "sizeof(RequalModuleV1)")
    }

    fn module_with(&self, marker: &str, version: &str, size: &str) -> PathBuf {
        let source = format!(
            r#"#include "requal/module.h"
            #include <stddef.h>
            extern int cudartStandIn(void);
            static const char* accumulation(void) {{ return cudartStandIn() == 13 ? "fp32" : "none"; }}
            static const RequalModuleV1 module = {{ {version}, {size}, "{marker}", accumulation, NULL, NULL }};
            __attribute__((visibility("default"))) const RequalModuleV1* requal_module_v1(void) {{ return &module; }}"#
        );
        let cudart = self.path("libcudart.so.13");
        self.compile(&format!("{marker}.so"), &source, &[cudart.to_str().unwrap()])
    }

    fn hello(&self, modules: &[(&str, &Path)]) -> (Value, Output) {
        let file = |path: &Path| json!({ "path": path, "sha256": digest(path) });
        let modules: Vec<Value> = modules
            .iter()
            .map(|(name, path)| json!({ "name": name, "path": path, "sha256": digest(path) }))
            .collect();
        send(
            &json!({ "hello": { "modules": modules, "cudart": file(&self.path("libcudart.so.13")) } })
                .to_string(),
        )
    }
}

fn digest(path: &Path) -> Digest {
    Digest::of(&std::fs::read(path).unwrap())
}

/// A fresh worker's one answer to one request, and how it ended.
fn send(request: &str) -> (Value, Output) {
    let output = run(&format!("{request}\n"));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    (serde_json::from_str(&text).unwrap(), output)
}

fn run(input: &str) -> Output {
    let mut worker = command(env!("CARGO_BIN_EXE_requal-worker"))
        .env_remove("LD_LIBRARY_PATH")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    worker.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    worker.wait_with_output().unwrap()
}

fn assert_refused(answer: &(Value, Output), code: &str) {
    assert_eq!(answer.0["error"]["code"], code, "{}", answer.0);
    assert_eq!(answer.1.status.code(), Some(1));
    let text = String::from_utf8_lossy(&answer.1.stderr);
    assert!(text.contains(&format!("error[{code}]")), "{text}");
}

#[test]
fn modules_load_in_every_order_and_each_alone() {
    let modules = Modules::new();
    let built: Vec<(&str, PathBuf)> =
        ["first", "second", "third"].into_iter().map(|name| (name, modules.module(name))).collect();
    let orders: [&[usize]; 9] =
        [&[0, 1, 2], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0], &[0], &[1], &[2]];
    for order in orders {
        let wanted: Vec<(&str, &Path)> = order.iter().map(|i| (built[*i].0, built[*i].1.as_path())).collect();
        let (answer, output) = modules.hello(&wanted);
        assert!(output.status.success(), "{answer}");
        let expected: Vec<Value> = wanted
            .iter()
            .map(|(name, path)| {
                json!({ "name": name, "accumulation": "fp32", "abi_version": 1, "sha256": digest(path) })
            })
            .collect();
        assert_eq!(answer["hello"]["modules"], Value::Array(expected));
        assert_eq!(answer["hello"]["cudart_sha256"], json!(digest(&modules.path("libcudart.so.13"))));
        assert_eq!(answer["hello"]["libcuda_mapped"], json!([]));
        assert_eq!(answer["hello"]["nvidia_descriptors"], json!([]));
    }
}

#[test]
fn a_module_under_another_name_is_refused() {
    let modules = Modules::new();
    let facc = modules.module("facc");
    let answer = modules.hello(&[("stock", &facc)]);
    assert_refused(&answer, "E-MODULE-NAME");
    assert_eq!(
        (&answer.0["error"]["expected"], &answer.0["error"]["found"]),
        (&json!("stock"), &json!("facc"))
    );
}

#[test]
fn two_modules_of_one_name_are_refused() {
    let modules = Modules::new();
    let first = modules.module("stock");
    let copy = modules.path("copy.so");
    std::fs::hard_link(&first, &copy).unwrap();
    assert_refused(&modules.hello(&[("stock", &first), ("stock", &copy)]), "E-MODULE-TWICE");
}

#[test]
fn a_wrong_digest_is_refused_before_any_code_of_the_file_runs() {
    let modules = Modules::new();
    let marker = modules.path("ran");
    let source = format!(
        r#"#include <stdio.h>
        __attribute__((constructor)) static void run(void) {{ fclose(fopen("{}", "w")); }}"#,
        marker.display()
    );
    let module = modules.compile("eager.so", &source, &[]);
    let request = |sha256: Digest| {
        json!({ "hello": {
            "modules": [{ "name": "eager", "path": module, "sha256": sha256 }],
            "cudart": { "path": modules.path("libcudart.so.13"), "sha256": digest(&modules.path("libcudart.so.13")) },
        } })
        .to_string()
    };
    assert_refused(&send(&request(Digest::of(b""))), "E-WORKER-DIGEST");
    assert!(!marker.exists());
    // The same file under its own digest does run, so the check above can fail.
    assert_refused(&send(&request(digest(&module))), "E-MODULE-ENTRY");
    assert!(marker.exists());
}

#[test]
fn a_file_without_the_entry_is_refused_with_what_it_exports() {
    let modules = Modules::new();
    let source = r#"__attribute__((visibility("default"))) int PyInit_exllamav3_ext(void) { return 0; }"#;
    let module = modules.compile("other.so", source, &[]);
    let answer = modules.hello(&[("stock", &module)]);
    assert_refused(&answer, "E-MODULE-ENTRY");
    let error = &answer.0["error"];
    assert!(error["what"].as_str().unwrap().contains(module.to_str().unwrap()));
    assert_eq!(
        (&error["expected"], &error["found"]),
        (&json!("requal_module_v1"), &json!("PyInit_exllamav3_ext"))
    );
}

#[test]
fn an_unresolved_symbol_is_refused_at_load() {
    let modules = Modules::new();
    let source = r#"extern int nowhere(void);
        __attribute__((visibility("default"))) int requal_module_v1(void) { return nowhere(); }"#;
    let module = modules.compile("unresolved.so", source, &[]);
    let answer = modules.hello(&[("unresolved", &module)]);
    assert_refused(&answer, "E-WORKER-DLOPEN");
    assert!(answer.0["error"]["found"].as_str().unwrap().contains("nowhere"));
}

#[test]
fn a_table_of_another_version_or_size_is_refused() {
    let modules = Modules::new();
    for (version, size) in [("2u", "sizeof(RequalModuleV1)"), ("REQUAL_ABI_VERSION", "8")] {
        let module = modules.module_with("newer", version, size);
        assert_refused(&modules.hello(&[("newer", &module)]), "E-MODULE-ABI");
    }
}

#[test]
fn a_second_hello_is_refused() {
    let modules = Modules::new();
    let cudart = modules.path("libcudart.so.13");
    let line = json!({ "hello": { "modules": [], "cudart": { "path": cudart, "sha256": digest(&cudart) } } });
    let output = run(&format!("{line}\n{line}\n"));
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers[0]["hello"]["protocol"], 1);
    assert_eq!(answers[1]["error"]["code"], "E-PROTOCOL");
    assert_eq!((answers.len(), output.status.code()), (2, Some(2)));
}

#[test]
fn independent_problems_are_reported_together() {
    let modules = Modules::new();
    let (first, second) = (modules.module("first"), modules.module("second"));
    let answer = modules.hello(&[("stock", &first), ("facc", &second)]);
    assert_refused(&answer, "E-MODULE-NAME");
    assert_eq!(answer.0["error"]["related"].as_array().unwrap().len(), 1);
}

#[test]
fn loading_a_driver_library_is_refused() {
    let modules = Modules::new();
    let driver = modules.compile(
        "libcuda.so.1",
        "__attribute__((visibility(\"default\"))) int cuStandIn(void) { return 0; }",
        &["-Wl,-soname,libcuda.so.1"],
    );
    let source = r#"#include "requal/module.h"
        extern int cuStandIn(void);
        static const char* accumulation(void) { return cuStandIn() ? "none" : "fp32"; }
        static const RequalModuleV1 module = { 1, sizeof(RequalModuleV1), "linked", accumulation, 0, 0 };
        __attribute__((visibility("default"))) const RequalModuleV1* requal_module_v1(void) { return &module; }"#;
    let rpath = format!("-Wl,-rpath,{}", modules.folder.path().display());
    let module = modules.compile("linked.so", source, &[driver.to_str().unwrap(), &rpath]);
    let answer = modules.hello(&[("linked", &module)]);
    assert_refused(&answer, "E-WORKER-GPU");
    assert!(answer.0["error"]["found"].as_str().unwrap().contains("libcuda.so.1"));
}

#[test]
fn a_second_cuda_runtime_is_refused() {
    let modules = Modules::new();
    let other = modules.compile(
        "libcudart.so.12",
        "__attribute__((visibility(\"default\"))) int other(void) { return 12; }",
        &["-Wl,-soname,libcudart.so.12"],
    );
    let source = r#"#include "requal/module.h"
        extern int other(void);
        static const char* accumulation(void) { return other() ? "fp32" : "none"; }
        static const RequalModuleV1 module = { 1, sizeof(RequalModuleV1), "mixed", accumulation, 0, 0 };
        __attribute__((visibility("default"))) const RequalModuleV1* requal_module_v1(void) { return &module; }"#;
    let rpath = format!("-Wl,-rpath,{}", modules.folder.path().display());
    let module = modules.compile("mixed.so", source, &[other.to_str().unwrap(), &rpath]);
    assert_refused(&modules.hello(&[("mixed", &module)]), "E-WORKER-CUDART");
}
