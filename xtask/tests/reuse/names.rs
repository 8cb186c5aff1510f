//! Attacks through name defines: a use that no search of the text finds, and an object that holds a name without one.

use requal::receipt::Reason;

use crate::bases::{CHAIN, HOST, NAMED};
use crate::court::Court;

/// No search of the text finds these.
#[test]
fn a09_a_name_that_is_put_together_is_found_by_the_preprocessor() {
    let mut court = Court::new();
    let word = "#define WORD2(x) #x\n#define WORD(x) WORD2(x)\n#define GLUE2(a, b) a##b\n#define GLUE(a, b) GLUE2(a, b)\n";
    let cases = [
        ("GLUE(MODULE_, NAME)", None),
        ("MODULE\\\n_NAME", None),
        ("ALIAS", Some("-DALIAS=MODULE_NAME")),
        ("MODULE??/\n_NAME", Some("-Xcompiler=-trigraphs")),
        ("GLUE(GLUE(MOD, ULE), GLUE(_NA, ME))", None),
    ];
    for (said, argument) in cases {
        let source = format!("{word}char const* said() {{ return WORD({said}); }}\n");
        let mut before = court.base(HOST);
        before.put(HOST, &source);
        argument.into_iter().for_each(|token| before.argument(token));
        let mut after = before.clone();
        after.rename("two");
        let did = court.0.first(&before);
        let asked = court.0.ask(&after, &did);
        let verdict = court.0.verdict(&after, &did, &asked).unwrap();
        let names_it = court.0.compile(&after).unwrap().object != did.object;
        assert_eq!(verdict.reused, !names_it, "{said}: {verdict:?}");
        if names_it {
            // A flag that changes how names are read is on the refusal list already.
            let by = argument.filter(|token| token.starts_with("-Xcompiler"));
            let expected = by.map_or(Reason::NameDefineUsed, |_| Reason::FlagRefused);
            assert_eq!(verdict.reason, expected, "{said}: {}", verdict.about);
        }
    }
    let pair = court.pair(NAMED, |world| world.rename("two"));
    court.refused(&pair, Reason::NameDefineUsed, "MODULE_NAME");
    let pair = court.pair(CHAIN, |world| world.rename("two"));
    assert_eq!(court.taken(&pair).record.decided.unused, ["MODULE_NAME"]);
}

/// Flags with which the preprocessor alone does not go the way of the compile.
#[test]
fn a09_flags_that_hide_a_use_or_put_every_macro_into_the_object() {
    let mut court = Court::new();
    let word =
        "#define WORD2(x) #x\n#define WORD(x) WORD2(x)\nchar const* said() { return WORD(MODULE_NAME); }\n";
    let cases = [
        ("-Xcompiler=-fdirectives-only", word),
        ("-Xcompiler=-traditional-cpp", word),
        ("-Xcompiler=-g3", "int one;\n"),
        ("-Xcompiler=-ggdb3", "int one;\n"),
    ];
    for (flag, text) in cases {
        let mut before = court.base(HOST);
        before.put(HOST, text);
        before.argument(flag);
        before.rename("2");
        let mut after = before.clone();
        after.rename("8");
        let did = court.0.first(&before);
        let asked = court.0.ask(&after, &did);
        assert_eq!(court.0.verdict(&after, &did, &asked).unwrap().reason, Reason::FlagRefused, "{flag}");
        assert!(asked.unwrap().object != did.object, "{flag}");
    }
}
