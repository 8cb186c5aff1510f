//! Changes of the command and of names in it.

use super::Change;
use crate::chance::Chance;
use crate::world::NAME;

impl Change {
    pub(super) fn flag(&mut self, chance: &mut Chance) -> String {
        let flags =
            ["-O2", "-lineinfo", "--use_fast_math", "-Xcompiler=-fno-exceptions", "-Xptxas=-O1", "-w"];
        let flag = chance.one(&flags);
        let how = if chance.below(4) == 0 {
            // On both sides: nothing differs.
            self.both(|world| world.argument(flag));
            "on both sides"
        } else {
            self.after.argument(flag);
            "more"
        };
        format!("{flag} {how}")
    }

    pub(super) fn flag_order(&mut self, chance: &mut Chance) -> String {
        let argv = &mut self.after.argv;
        let last = argv.iter().position(|token| token == "-o").unwrap();
        let first = argv.iter().position(|token| token.starts_with("-std=")).unwrap();
        let (one, other) = (first + chance.below(last - first), first + chance.below(last - first));
        argv.swap(one, other);
        format!("arguments {one} and {other} changed places")
    }

    pub(super) fn define(&mut self, chance: &mut Chance) -> String {
        let define = chance.one(&["-DTUNED=30", "-DSEEN", "-DNEVER=1", "-DUNREAD=5"]);
        match chance.below(3) {
            0 => self.before.argument(define),
            1 => self.both(|world| world.argument(define)),
            _ => self.after.argument(define),
        }
        format!("{define} went, stayed or came")
    }

    /// Another value of the name define.
    fn other_name(&mut self, chance: &mut Chance) -> &'static str {
        let value = chance.one(&["two", "one_more", "o"]);
        self.after.rename(value);
        value
    }

    pub(super) fn name_define(&mut self, chance: &mut Chance) -> String {
        let source = self.before.source.clone();
        let reached = match chance.below(6) {
            0 => format!("#ifdef {NAME}\nint asked;\n#endif\n"),
            1 => format!("#if 0\nchar const* said = {NAME};\n#endif\n"),
            2 => format!("// {NAME}\nchar const* said() {{ return \"{NAME}\"; }}\n"),
            _ => String::new(),
        };
        let text = self.before.text(&source).to_owned() + &reached;
        self.both(|world| world.put(&source, &text));
        format!("{NAME} is {} with {reached:?}", self.other_name(chance))
    }

    /// The name is put together from two pieces, in code of one side or in none.
    pub(super) fn pasted_name(&mut self, chance: &mut Chance) -> String {
        let source = self.before.source.clone();
        let glue = "#define GLUE2(a, b) a##b\n#define GLUE(a, b) GLUE2(a, b)\n#define WORD2(x) #x\n#define WORD(x) WORD2(x)\n";
        let word = "char const* said() { return WORD(GLUE(MODULE_, NAME)); }\n";
        let added = match chance.below(5) {
            0 => word.to_owned(),
            1 => "#ifndef __CUDA_ARCH__\n#define SAID WORD(GLUE(MODULE_, NAME))\n#else\n#define SAID \"\"\n#endif\nchar const* said() { return SAID; }\n".to_owned(),
            2 => "char const* said() { return WORD2(GLUE(MODULE_, NAME)); }\n".to_owned(),
            3 => "#define SAID WORD(GLUE(MODULE_, NAME))\n".to_owned(),
            _ => "char const* said() { return WORD(MODULE_\\\nNAME); }\n".to_owned(),
        };
        let text = self.before.text(&source).to_owned() + glue + &added;
        self.both(|world| world.put(&source, &text));
        format!("{NAME} is {} with {added:?}", self.other_name(chance))
    }

    /// The name is the value of another define.
    pub(super) fn aliased_name(&mut self, chance: &mut Chance) -> String {
        let source = self.before.source.clone();
        let added = match chance.below(3) {
            0 => {
                "#define WORD2(x) #x\n#define WORD(x) WORD2(x)\nchar const* said() { return WORD(ALIAS); }\n"
            }
            1 => "#define WORD2(x) #x\nchar const* said() { return WORD2(ALIAS); }\n",
            _ => "#ifdef ALIAS\nint asked;\n#endif\n",
        };
        let text = self.before.text(&source).to_owned() + added;
        self.both(|world| {
            world.argument(&format!("-DALIAS={NAME}"));
            world.put(&source, &text);
        });
        format!("{NAME} is {} with {added:?}", self.other_name(chance))
    }

    pub(super) fn response_file(&mut self, chance: &mut Chance) -> String {
        self.both(|world| {
            world.put("flags.txt", "-DFIRST=1\n");
            world.argument("--options-file=${tree}/flags.txt");
        });
        match chance.below(3) {
            0 => self.after.put("flags.txt", "-DFIRST=2\n"),
            1 => self.after.put("flags.txt", "-DFIRST=1 \n"),
            _ => self.after.put("flags2.txt", "-DFIRST=1 \n"),
        }
        "an options file".to_owned()
    }
}
