//! Properties of the grammar over arbitrary commands.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::tests::{compile, defined};
use super::*;

const FRAGMENTS: [&str; 44] = [
    "-D",
    "-DN",
    "-DN=V",
    "N=V",
    "-D=N=V",
    "--define-macro",
    "--define-macro=N=V,M",
    "-Xcompiler",
    "-Xcompiler=",
    "-DX,-I",
    "-Xcompiler=-DX=\"a,b\"",
    "-Xcompiler=-D",
    "\"-DX=a",
    "'",
    "\"",
    "\\",
    ",",
    "@r",
    "-optf",
    "--options-file=r",
    "-optf=r,r",
    "-I",
    "-Iinc",
    "-isystem",
    "-o",
    "k.o",
    "k.cu",
    "-O3",
    "-O",
    "-t",
    "-t2",
    "-arch",
    "-arch=sm_86",
    "-gencode",
    "-Xptxas=-v",
    "-include",
    "x.h",
    "-c",
    "-",
    "--",
    "=",
    "",
    "${tree}/k.cu",
    "-lineinfo",
];

fn commands() -> impl Strategy<Value = Vec<String>> {
    let fragment = prop_oneof![4 => proptest::sample::select(&FRAGMENTS[..]).prop_map(str::to_owned), 1 => any::<String>()];
    let program = prop_oneof![Just("nvcc".to_owned()), Just("g++".to_owned()), any::<String>()];
    (program, proptest::collection::vec(fragment, 0..12)).prop_map(|(program, mut words)| {
        words.insert(0, program);
        words
    })
}

proptest! {
    #[test]
    fn printing_gives_the_argv_back(argv in commands()) {
        let command = parse(&argv);
        prop_assert_eq!(command.print(), argv.clone());
        let _ = command.has_debug_info();
        prop_assert!(command.refusals_at().iter().all(|(word, _)| *word < argv.len()));
        prop_assert_eq!(command.without_defines(&BTreeSet::new()), argv);
    }

    #[test]
    fn defines_are_taken_out_and_no_other(argv in commands()) {
        let command = parse(&argv);
        let names: BTreeSet<_> = ["N", "X"].map(str::to_owned).into();
        let own = |define: &Define| define.place == DefinePlace::Nvcc && names.contains(&define.name);
        let key = |define: Define| (define.name, define.value, define.place);
        let expected: Vec<_> = command.defines().into_iter().filter(|define| !own(define)).map(key).collect();
        let left = parse(&command.without_defines(&names));
        prop_assert_eq!(left.defines().into_iter().map(key).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_define_is_found_in_any_spelling(
        name in "[A-Z_]{1,8}", value in proptest::option::of("[a-z0-9.]{0,4}"), spelling in 0usize..12,
    ) {
        let define = value.as_ref().map_or(name.clone(), |value| format!("{name}={value}"));
        let words = match spelling {
            0 => vec![format!("-D{define}")],
            1 => vec!["-D".to_owned(), define],
            2 => vec![format!("-D={define}")],
            3 => vec!["--define-macro".to_owned(), define],
            4 => vec![format!("--define-macro={define}")],
            5 => vec![format!("-Dfirst,{define},last")],
            6 => vec![format!("-Xcompiler=-D{define}")],
            7 => vec!["-Xcompiler".to_owned(), format!("-fPIC,-D{define},-O2")],
            8 => vec![format!("-Xcompiler=-D,{define}")],
            9 => vec!["-Xcompiler=-D".to_owned(), format!("-Xcompiler={define}")],
            10 => vec![format!("-Xcompiler=\"-D{define}\"")],
            _ => vec![format!("-Xcompiler=-fPIC --define-macro={define}")],
        };
        let command = compile(&words.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(command.refusals(), []);
        prop_assert!(defined(&command.print()).contains(&(name, value, spelling < 6)));
    }

    #[test]
    fn expanding_ends_and_changes_nothing_else(argv in commands(), bytes in any::<Vec<u8>>(), text in commands()) {
        for bytes in [bytes, text.join(" ").into_bytes()] {
            let _ = expand(&argv, &mut |_| Some(bytes.clone()));
        }
        if let Ok(expanded) = expand(&argv, &mut |_| None) {
            // An option that names no file, as nvcc reads it: nothing.
            let empty = |token: &&Token| matches!(token, Token::OptionsFile(_));
            let command = parse(&argv);
            let kept = command.tokens.iter().filter(|token| !empty(token)).flat_map(Token::print);
            prop_assert_eq!(expanded, kept.collect::<Vec<_>>());
        }
    }
}
