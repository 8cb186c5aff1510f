//! The kernel trees keep their shape: which units there are, what each instantiates, and what each can reach.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its supporting functions too")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels")
}

fn units(tree: &str) -> BTreeSet<String> {
    let folder = kernels().join(tree).join("units");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

/// The tree's own headers that a file includes, directly or not.
fn reached(include: &Path, file: &Path, found: &mut BTreeSet<String>) {
    let text = std::fs::read_to_string(file).unwrap();
    let quoted = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'));
    for header in quoted {
        if found.insert(header.to_owned()) {
            reached(include, &include.join(header), found);
        }
    }
}

#[test]
fn exl3_has_one_unit_for_each_family_bits_and_codebook() {
    let mut expected = BTreeSet::from(["hadamard.cu".to_owned(), "module.cu".to_owned()]);
    for (codebook, constant) in [("3inst", "inst3"), ("mcg", "mcg"), ("mul1", "mul1")] {
        for bits in 1..=8 {
            for (family, class) in [("decode", "Decode"), ("linear", "Linear")] {
                let name = format!("{family}_k{bits}_{codebook}.cu");
                let text = std::fs::read_to_string(kernels().join("exl3/units").join(&name)).unwrap();
                let instance =
                    format!("\ntemplate struct exl3::{class}<{bits}, exl3::Codebook::{constant}>;\n");
                assert!(text.ends_with(&instance), "{name}");
                expected.insert(name);
            }
        }
    }
    assert_eq!(units("exl3"), expected);
}

/// Other objects can then be reused between the two trees.
#[test]
fn only_linear_units_reach_the_accumulation() {
    let include = kernels().join("exl3/include");
    for unit in units("exl3") {
        let mut found = BTreeSet::new();
        reached(&include, &kernels().join("exl3/units").join(&unit), &mut found);
        assert!(found.contains("exl3/entry.h"), "{unit}");
        assert_eq!(found.contains("exl3/accumulate.cuh"), unit.starts_with("linear_"), "{unit}");
    }
}

#[test]
fn the_overlay_is_the_one_header() {
    let overlay = kernels().join("exl3-facc");
    let files: Vec<PathBuf> =
        walk(&overlay).into_iter().map(|file| file.strip_prefix(&overlay).unwrap().to_owned()).collect();
    assert_eq!(files, [Path::new("include/exl3/accumulate.cuh")]);
    assert!(kernels().join("exl3").join(&files[0]).exists());
}

/// The name may differ between trees only because nothing but the table sees it.
#[test]
fn only_module_units_use_the_name_define() {
    for file in ["exl3", "exl3-facc", "p2p"].iter().flat_map(|tree| walk(&kernels().join(tree))) {
        let uses = std::fs::read_to_string(&file).unwrap().contains("REQUAL_MODULE_NAME");
        assert_eq!(uses, file.ends_with("units/module.cu"), "{}", file.display());
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}
