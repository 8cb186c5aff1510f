//! Tables of the grammar: verdicts, spellings, files, and the cases by id.

use std::collections::BTreeSet;

use super::RefusalKind::*;
use super::*;
use crate::command;
use crate::manifest::Manifest;

/// A compile that may be certified, to which words are added.
pub(super) fn compile(more: &[&str]) -> Command {
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

/// Words that may stand in a certified command.
const FINE: [&[&str]; 24] = [
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

/// Words that may not, and why.
const REFUSED: [(&[&str], &[RefusalKind]); 67] = [
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
    (&["-Ia'b"], &[UnsafeCharacter]),
    (&["-D/**/A"], &[Unparsable]),
    (&["-D\"A\""], &[Unparsable]),
    (&["-D1A"], &[Unparsable]),
    (&["-Xcompiler=-D,-fPIC"], &[Unparsable]),
    (&["-DA=\"x"], &[Unparsable]),
    (&["-Xcompiler=-DA='x"], &[Unparsable]),
    (&["-lineinfo=true"], &[UnknownFlag]),
    (&["-lineinfox"], &[UnknownFlag]),
    (&["-fPIC"], &[UnknownFlag]),
];

#[test]
fn each_flag_has_its_verdict() {
    for words in FINE {
        assert_eq!(compile(words).refusals(), [], "{words:?}");
    }
    for (words, expected) in REFUSED {
        assert_eq!(kinds(words), expected, "{words:?}");
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Name, value and place of each definition.
pub(super) fn defined(argv: &[String]) -> BTreeSet<(String, Option<String>, bool)> {
    let defines = parse(argv).defines().into_iter();
    defines.map(|define| (define.name, define.value, define.place == DefinePlace::Nvcc)).collect()
}

fn with_file<'a>(text: &'a str) -> impl FnMut(&str) -> Option<Vec<u8>> + 'a {
    move |name| (name == "flags").then(|| text.as_bytes().to_vec())
}

#[test]
fn f41_a_define_in_a_file_is_expanded_and_its_change_named() {
    let commands = ["nvcc -c @flags k.cu", "nvcc -c -optf flags k.cu", "nvcc -c --options-file=flags k.cu"];
    for command in commands.map(words) {
        assert!(parse(&command).refusals().iter().any(|refusal| refusal.kind == RefusalKind::ResponseFile));
        let [one, two] = ["-O3 -DHIDDEN=1\n", "-O3 -DHIDDEN=2\n"].map(|text| {
            let argv = expand(&command, &mut with_file(text)).unwrap();
            assert_eq!(parse(&argv).refusals(), []);
            argv
        });
        assert_ne!(one, two);
        let (before, after) = (defined(&one), defined(&two));
        let changed: Vec<_> = before.symmetric_difference(&after).map(|(name, ..)| name.as_str()).collect();
        assert_eq!(changed, ["HIDDEN", "HIDDEN"]);
    }
}

#[test]
fn f41_quotes_and_commas_for_the_host_compiler_are_seen_through() {
    type Defined<'a> = &'a [(&'a str, Option<&'a str>)];
    let cases: [(&str, Defined<'_>); 11] = [
        ("-DX=1,-fPIC", &[("X", Some("1"))]),
        ("-fPIC,-DX=1,-DY", &[("X", Some("1")), ("Y", None)]),
        ("-fPIC -DX=1", &[("X", Some("1"))]),
        ("\"-DX=a,b\"", &[("X", Some("a,b"))]),
        ("-DX=\"a,b\"", &[("X", Some("a,b"))]),
        ("-DX=a\\,b", &[("X", Some("a,b"))]),
        ("'-DX=a , b'", &[("X", Some("a b"))]),
        ("-DX=\"a , b\" , -DY", &[("X", Some("a , b")), ("Y", None)]),
        ("-DX=\\\"a,b\\\"", &[("X", Some("a b"))]),
        ("-D,X=1", &[("X", Some("1"))]),
        ("'-DX=a b'", &[("X", Some("a b"))]),
    ];
    for (value, expected) in cases {
        let expected: BTreeSet<_> = expected
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned), false))
            .collect();
        for argv in [compile(&["-Xcompiler", value]), compile(&[&format!("-Xcompiler={value}")])] {
            assert_eq!(defined(&argv.print()), expected, "{value}");
        }
    }
}

#[test]
fn f41_what_cannot_be_split_is_refused() {
    let files: [(&str, RefusalKind); 5] = [
        ("-DA=\"x", RefusalKind::Unparsable),
        ("-DA=\\\"x\\\"", RefusalKind::Unparsable),
        ("-DA='x'", RefusalKind::Unparsable),
        ("-O3 -D", RefusalKind::Unparsable),
        ("-optf absent", RefusalKind::ResponseFile),
    ];
    let command = words("nvcc -c -optf flags k.cu");
    for (text, kind) in files {
        assert_eq!(expand(&command, &mut with_file(text)).unwrap_err().kind, kind, "{text}");
    }
    for (value, hidden) in [(" flags ,", true), (",", false), ("", false)] {
        let command = ["nvcc", "-optf", value].map(str::to_owned);
        let argv = expand(&command, &mut with_file("-DHIDDEN")).unwrap();
        assert_eq!(!defined(&argv).is_empty(), hidden, "{value}");
    }
    let endless = expand(&command, &mut with_file("-optf flags -optf flags"));
    assert_eq!(endless.unwrap_err().kind, RefusalKind::ResponseFile);
}

#[test]
fn files_are_split_by_the_rules_of_their_reader() {
    let text = "-DA=\"a b\" \t-DB=c\r\n-optf inner";
    let mut read = |name: &str| match name {
        "outer" => Some(text.as_bytes().to_vec()),
        "inner" => Some(b"\"-DC\" # -DD".to_vec()),
        "gcc" => Some(b"-DA='a b' -DB=c\\ d \"-DC=\\\"\"".to_vec()),
        _ => None,
    };
    let argv = expand(&words("nvcc -D @x --options-file outer k.cu"), &mut read).unwrap();
    assert_eq!(argv, ["nvcc", "-D", "@x", "-DA=a b", "-DB=c", "-DC", "#", "-DD", "k.cu"]);
    let argv = expand(&words("g++ @gcc k.cpp"), &mut read).unwrap();
    assert_eq!(argv, ["g++", "-DA=a b", "-DB=c d", "-DC=\"", "k.cpp"]);
}

#[test]
fn f45_the_short_listing_of_dependencies_is_refused() {
    let short = compile(&["-MMD", "-isystem", "${toolchain}/nvidia/cu13/include/cccl"]);
    let refusal = Refusal { kind: RefusalKind::ShortDependencies, token: "-MMD".to_owned() };
    assert_eq!(short.refusals(), [refusal]);
    assert_eq!(kinds(&["-Xcompiler=-fPIC,-MM"]), [RefusalKind::ShortDependencies]);
}

#[test]
fn a10_no_identifier_enters_by_a_side_door() {
    let doors: [(&[&str], RefusalKind); 6] = [
        (&["-include", "x.h"], RefusalKind::ForcedInclude),
        (&["-Xcompiler", "\"-include\" x.h"], RefusalKind::ForcedInclude),
        (&["-Xcompiler=-include-pch,x.gch"], RefusalKind::PrecompiledHeader),
        (&["-optf", "x"], RefusalKind::ResponseFile),
        (&["-Xcompiler=@x"], RefusalKind::ResponseFile),
        (&["-Xcompiler=-imacros,x.h"], RefusalKind::ForcedInclude),
    ];
    for (words, kind) in doors {
        assert_eq!(kinds(words), [kind], "{words:?}");
        assert!(kind.hides_input());
    }
}

#[test]
fn a19_code_that_is_settled_at_link_is_refused() {
    for (word, kind) in [
        ("-rdc=true", RelocatableDeviceCode),
        ("--device-c", RelocatableDeviceCode),
        ("-ewp", RelocatableDeviceCode),
        ("--dlink-time-opt", LinkTimeOptimisation),
        ("-gen-opt-lto", LinkTimeOptimisation),
        ("-gencode=arch=compute_86,code=lto_86", LinkTimeOptimisation),
    ] {
        assert_eq!(kinds(&[word]), [kind], "{word}");
    }
}

#[test]
fn a21_what_the_machine_decides_and_what_is_not_known_are_refused() {
    for (word, kind) in [
        ("--split-compile=0", SplitCompile),
        ("-split-compile-extended=4", SplitCompile),
        ("--gpu-architecture=native", Native),
        ("-Xcompiler=-O2,-march=native", Native),
        ("-Ofc=max", UnknownFlag),
        ("--some-new-option", UnknownFlag),
        ("-Xcompiler=-fsome-new-option", UnknownFlag),
        ("-Xptxas=--some-new-option", UnknownFlag),
    ] {
        assert_eq!(kinds(&[word]), [kind], "{word}");
    }
}

#[test]
fn debug_information_is_seen_in_each_spelling() {
    for word in ["-g", "-G", "-lineinfo", "--device-debug", "-Xcompiler=-g", "-Xcompiler=-O2,-gdwarf-5"] {
        assert!(compile(&[word]).has_debug_info(), "{word}");
    }
    for word in ["-O3", "-Xcompiler=-g0", "-DA=-g"] {
        assert!(!compile(&[word]).has_debug_info(), "{word}");
    }
}

#[test]
fn a_define_is_named_as_the_compiler_names_it() {
    let cases: [(&[&str], &str, Option<&str>); 7] = [
        (&["-D", " A"], "A", None),
        (&["-D", "B , A =1"], "A", Some(" =1")),
        (&["-DA x"], "A", Some(" x")),
        (&["-DA+=3"], "A", Some("+=3")),
        (&["-DA(x)=x"], "A", Some("(x)=x")),
        (&["-DA="], "A", Some("")),
        (&["-Xcompiler=-D,' A x'"], "A", Some(" x")),
    ];
    for (words, name, value) in cases {
        let defines = compile(words).defines();
        let found = defines.iter().find(|define| define.name == name);
        assert_eq!(found.map(|define| define.value.as_deref()), Some(value), "{words:?}");
    }
}

#[test]
fn only_a_compile_by_nvcc_may_be_certified() {
    let lines = [
        "ccache nvcc -c -O3 -o k.o k.cu",
        "g++ -c -o k.o k.cpp",
        "g++ -shared -c -o k.o k.cpp",
        "cp a.o k.o",
    ];
    for line in lines {
        let refusals = parse(&words(line)).refusals();
        assert!(refusals.iter().any(|refusal| refusal.kind == OtherPhase), "{line}");
    }
    assert_eq!(parse(&words("g++ -shared -o m.so k.o")).refusals(), []);
    assert_eq!(parse(&[]).refusals(), [Refusal { kind: OtherPhase, token: String::new() }]);
}

#[test]
fn one_of_a_list_of_defines_is_taken_out() {
    let names = BTreeSet::from(["B".to_owned()]);
    for (word, left) in [("-DA,B=1,C", "-DA,C"), ("-D=A,B", "-D=A"), ("-DAB,B(x)=x", "-DAB")] {
        assert_eq!(compile(&[word]).without_defines(&names), compile(&[left]).print());
    }
    let kept = ["-Xcompiler=-DB", "-UB", "-DA=\"x,B\""];
    assert_eq!(compile(&kept).without_defines(&names), compile(&kept).print());
}
