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

/// What each word does to a command that is otherwise fine.
#[test]
fn each_flag_has_its_verdict() {
    use RefusalKind::*;
    let fine: [&[&str]; 24] = [
        &["-O3"],
        &["-O", "3"],
        &["--std=c++17"],
        &["-lineinfo"],
        &["-G"],
        &["-Xptxas=-v,-O3"],
        &["--use_fast_math"],
        &["--expt-relaxed-constexpr"],
        &["-diag-suppress", "20012,177"],
        &["-gencode=arch=compute_86,code=[sm_86,compute_86]"],
        &["-gencode", "arch=compute_90a,code=sm_90a"],
        &["-t", "2"],
        &["--threads=4"],
        &["-Xcompiler=-fPIC,-Wall,-fno-strict-aliasing"],
        &["-Xcompiler", "-fno-canonical-system-headers -mavx2"],
        &["-Xcompiler=-I${tree}/include"],
        &["-isystem", "${toolchain}/nvidia/cu13/include"],
        &["-I${tree}/a b"],
        &["-UNDEBUG"],
        &["-DF(x)=x"],
        &["-MD", "-MF", "${unit}/k.d"],
        &["-rdc=false"],
        &["-m64"],
        &["-Werror=all-warnings"],
    ];
    for words in fine {
        assert_eq!(compile(words).refusals(), [], "{words:?}");
    }
    let refused: [(&[&str], &[RefusalKind]); 62] = [
        (&["-rdc=true"], &[RelocatableDeviceCode]),
        (&["-dc"], &[RelocatableDeviceCode]),
        (&["--device-w"], &[RelocatableDeviceCode]),
        (&["-dlto"], &[LinkTimeOptimisation]),
        (&["-lto"], &[LinkTimeOptimisation]),
        (&["-arch=lto_86"], &[LinkTimeOptimisation]),
        (&["-Xcompiler=-flto"], &[LinkTimeOptimisation]),
        (&["-arch=native"], &[Native]),
        (&["-gencode", "arch=native,code=sm_86"], &[Native]),
        (&["-arch=all"], &[UnknownFlag]),
        (&["-Xcompiler=-march=native"], &[Native]),
        (&["-Xcompiler", "-mtune=native"], &[Native]),
        (&["-include", "x.h"], &[ForcedInclude]),
        (&["--pre-include=x.h"], &[ForcedInclude]),
        (&["-Xcompiler=-fPIC,-include,x.h"], &[ForcedInclude]),
        (&["-Xcompiler", "-include", "-Xcompiler=x.h"], &[ForcedInclude]),
        (&["-Xcompiler=-includex.h"], &[ForcedInclude]),
        (&["-Xcompiler", "-imacros x.h"], &[ForcedInclude]),
        (&["-Xcompiler=\"-include\",\"x.h\""], &[ForcedInclude]),
        (&["-Xcompiler=-include-pch,x"], &[PrecompiledHeader]),
        (&["-Xcompiler=-fpch-preprocess"], &[PrecompiledHeader]),
        (&["--options-file=x"], &[ResponseFile]),
        (&["-optf", "x"], &[ResponseFile]),
        (&["@x"], &[OtherPhase, ResponseFile]),
        (&["-Xcompiler=@x"], &[ResponseFile]),
        (&["-Xptxas=--options-file,x"], &[ResponseFile]),
        (&["-MMD"], &[ShortDependencies]),
        (&["-Xcompiler=-MMD"], &[ShortDependencies]),
        (&["--generate-nonsystem-dependencies-with-compile"], &[ShortDependencies]),
        (&["-Xcompiler=-MD"], &[OtherPhase]),
        (&["-Xcompiler=-o,x"], &[OtherPhase]),
        (&["-ptx"], &[OtherPhase]),
        (&["-E"], &[OtherPhase]),
        (&["--keep"], &[OtherPhase]),
        (&["-save-temps"], &[OtherPhase]),
        (&["-Xcompiler=-save-temps=obj"], &[OtherPhase]),
        (&["k.o"], &[OtherPhase, OtherPhase]),
        (&["-Xptxas=-o,x"], &[OtherPhase]),
        (&["-split-compile=2"], &[SplitCompile]),
        (&["--split-compile", "0"], &[SplitCompile]),
        (&["-noprof"], &[OtherTool]),
        (&["-ldir", "x"], &[OtherTool]),
        (&["-Xcompiler=-B/x"], &[OtherTool]),
        (&["-Xcompiler=-specs=x"], &[OtherTool]),
        (&["-Xcompiler=-fplugin=x.so"], &[OtherTool]),
        (&["-Xcompiler=-wrapper,x"], &[OtherTool]),
        (&["-Xcompiler=\"-Wa,-I.\""], &[OtherTool]),
        (&["-Xcompiler=-g3"], &[RecordedSwitches]),
        (&["-Xcompiler=-ggdb3"], &[RecordedSwitches]),
        (&["-Xcompiler=-frecord-gcc-switches"], &[RecordedSwitches]),
        (&["-I${tree}/$x"], &[UnsafeCharacter]),
        (&["-Ia#b"], &[UnsafeCharacter]),
        (&["-Ia\\b"], &[UnsafeCharacter]),
        (&["-DA=a\nb"], &[UnsafeCharacter]),
        (&["-DA=`id`"], &[UnsafeCharacter]),
        (&["-I${other}"], &[UnsafeCharacter]),
        (&["-Xcompiler=-O2;id"], &[UnsafeCharacter, UnknownFlag]),
        (&["-DA=\"x"], &[Unparsable]),
        (&["-Xcompiler=-DA='x"], &[Unparsable]),
        (&["-lineinfo=true"], &[UnknownFlag]),
        (&["-lineinfox"], &[UnknownFlag]),
        (&["-fPIC"], &[UnknownFlag]),
    ];
    for (words, expected) in refused {
        assert_eq!(kinds(words), expected, "{words:?}");
    }
}
