//! Objects and modules for the fixture: real ELF files with a real fat binary, made by the system's own compiler driver.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use camino::Utf8Path;

use crate::fixture::put;

/// The object of `source` in `tree`. Sources that end in `.cu` have device code of both targets, other in each tree.
pub(crate) fn object(tree: &str, source: &str) -> &'static [u8] {
    &made()[&format!("{tree}/{source}.o")]
}

/// The module linked from the objects of `tree`.
pub(crate) fn module(tree: &str) -> &'static [u8] {
    &made()[&format!("{tree}.so")]
}

/// An object of stock's `a.cu` as a compile for sm_90 would give it.
pub(crate) fn object_for_another_target() -> &'static [u8] {
    &made()["other/a.cu.o"]
}

fn made() -> &'static BTreeMap<String, Vec<u8>> {
    static MADE: OnceLock<BTreeMap<String, Vec<u8>>> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        // A cubin is an ELF file too; any one with a `.text` section does.
        assemble(root, "cubin.o", ".text\nnop\n");
        let cubin = fs_err::read(root.join("cubin.o")).unwrap();
        let mut names = Vec::new();
        for (tree, source, capability) in [
            ("stock", "a.cu", 86),
            ("stock", "b.cpp", 86),
            ("facc", "a.cu", 86),
            ("facc", "b.cpp", 86),
            ("p2p", "p.cu", 86),
            ("other", "a.cu", 90),
            ("stock", "c.cpp", 86),
            ("facc", "c.cpp", 86),
        ] {
            let object = format!("{tree}/{source}.o");
            let ptx = format!(".version 9.0\n.target sm_{capability}\n// {source} of {tree}\n");
            let entries = [entry(2, capability, &cubin), entry(1, capability, ptx.as_bytes())].concat();
            put(&root.join("fatbin"), &binary(&entries));
            let device = ".section .nv_fatbin,\"a\"\n.balign 8\n.incbin \"fatbin\"\n.text\n.globl requal_module_v1\n\
                          .type requal_module_v1,@function\nrequal_module_v1: ret\n";
            // The third source spells its module's name out.
            let named = format!(".section .rodata\n.ascii \"{tree}\"\n.text\nret\n");
            let text = match source {
                "c.cpp" => &named,
                "b.cpp" => ".text\nret\n",
                _ => device,
            };
            assemble(root, &object, text);
            names.push(object);
        }
        for (tree, objects) in
            [("stock", &["a.cu", "b.cpp"][..]), ("facc", &["a.cu", "b.cpp"]), ("p2p", &["p.cu"])]
        {
            let module = format!("{tree}.so");
            let objects: Vec<_> = objects.iter().map(|source| format!("{tree}/{source}.o")).collect();
            let mut args = vec!["-shared", "-nostdlib", "-o", &module];
            args.extend(objects.iter().map(String::as_str));
            // The library is named though nothing of it is used, so that the module needs something.
            args.extend(["-Wl,--no-as-needed", "-lc"]);
            gcc(root, &args);
            names.push(module);
        }
        names.into_iter().map(|name| (name.clone(), fs_err::read(root.join(name)).unwrap())).collect()
    })
}

fn assemble(root: &Utf8Path, object: &str, text: &str) {
    let source = format!("{object}.s");
    put(&root.join(&source), format!("{text}.section .note.GNU-stack,\"\",@progbits\n").as_bytes());
    gcc(root, &["-c", "-o", object, &source]);
}

#[expect(clippy::disallowed_methods, reason = "the fixture's objects are made by the system's own compiler")]
fn gcc(root: &Utf8Path, args: &[&str]) {
    let output = std::process::Command::new("gcc").current_dir(root).args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// One uncompressed entry of a fat binary: kind 1 is PTX, 2 machine code.
fn entry(kind: u16, capability: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let padded = payload.len().next_multiple_of(8);
    bytes[0..2].copy_from_slice(&kind.to_le_bytes());
    bytes[2..4].copy_from_slice(&0x101_u16.to_le_bytes());
    bytes[4..8].copy_from_slice(&64_u32.to_le_bytes());
    bytes[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
    bytes[28..32].copy_from_slice(&capability.to_le_bytes());
    bytes.extend(payload);
    bytes.resize(64 + padded, 0);
    bytes
}

fn binary(entries: &[u8]) -> Vec<u8> {
    let mut bytes = 0xBA55_ED50_u32.to_le_bytes().to_vec();
    bytes.extend([1_u16, 16].map(u16::to_le_bytes).concat());
    bytes.extend((entries.len() as u64).to_le_bytes());
    bytes.extend(entries);
    bytes
}
