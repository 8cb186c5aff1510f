//! Tests of the grammar: tables, and properties over arbitrary commands.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::command;
use crate::manifest::Manifest;

/// A compile that may be certified, to which words are added.
fn compile(more: &[&str]) -> Command {
    let mut words = vec!["${toolchain}/nvidia/cu13/bin/nvcc", "-c", "-arch=sm_86", "-o", "${unit}/k.o"];
    words.extend(more);
    words.push("${tree}/k.cu");
    parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
}

fn kinds(more: &[&str]) -> Vec<RefusalKind> {
    compile(more).refusals().into_iter().map(|refusal| refusal.kind).collect()
}

#[test]
fn what_the_build_and_its_manifest_say_may_be_certified() {
    let text = include_str!("../../manifests/runtime.toml");
    let manifest = Manifest::parse("runtime.toml", text).unwrap();
    for module in &manifest.modules {
        let argv = command::compile(&manifest, module, "units/k.cu", "/usr/bin/g++");
        let command = parse(&argv);
        assert_eq!(command.print(), argv);
        assert_eq!(command.refusals(), []);
        assert!(!command.has_debug_info());
        let names: BTreeSet<_> = command.defines().into_iter().map(|define| define.name).collect();
        assert_eq!(names, module.name_defines.keys().cloned().collect());
        let without = command.without_defines(&names);
        assert_eq!(without.len() + names.len(), argv.len());
        let link = command::link(&manifest, module, &["units/k.cu.o".to_owned()], "/usr/bin/g++");
        assert_eq!(parse(&link).refusals(), []);
    }
}
