//! Changes of files of the tree.

use requal::tree::mtime_s;

use super::Change;
use crate::bases::{HOST, TWINS};
use crate::chance::Chance;
use crate::world::{Entry, World};

impl Change {
    /// A file of the tree.
    fn file(&self, chance: &mut Chance) -> String {
        chance.of(&self.after.files())
    }

    pub(super) fn header_byte(&mut self, chance: &mut Chance) -> String {
        let path = self.file(chance);
        let text = self.after.text(&path);
        let digits: Vec<usize> = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
        let mut bytes = text.as_bytes().to_vec();
        // A digit for a digit, where there is one, leaves something that can be compiled.
        let at = if digits.is_empty() { bytes.len() - 1 } else { chance.of(&digits) };
        bytes[at] = if digits.is_empty() { b' ' } else { b'1' + (bytes[at] - b'0' + 1) % 9 };
        self.after.put(&path, &String::from_utf8(bytes).unwrap());
        format!("byte {at} of {path}")
    }

    /// Puts `added` at the end of a line, or `instead` as a line of its own.
    fn add(&mut self, chance: &mut Chance, added: &str, instead: &str) -> String {
        let path = self.file(chance);
        let mut lines: Vec<String> = self.after.text(&path).split('\n').map(str::to_owned).collect();
        let at = chance.below(lines.len());
        if chance.coin() {
            lines[at].push_str(added);
        } else {
            lines.insert(at, instead.to_owned());
        }
        self.after.put(&path, &lines.join("\n"));
        format!("line {at} of {path}")
    }

    pub(super) fn comment(&mut self, chance: &mut Chance) -> String {
        self.add(chance, "  // a note", "/* a note */")
    }

    pub(super) fn whitespace(&mut self, chance: &mut Chance) -> String {
        self.add(chance, "  ", "")
    }

    pub(super) fn shadowing_header(&mut self, chance: &mut Chance) -> String {
        let below = |path: &String| path.strip_prefix("include/").map(str::to_owned);
        let headers: Vec<String> = self.after.files().iter().filter_map(below).collect();
        let (header, folder) = (chance.of(&headers), chance.one(&["early", "late", "aside", "units", "."]));
        let text = self.after.text(&format!("include/{header}")).to_owned();
        let text = if chance.coin() { text } else { text + "#define SHADOW 1\nint shadow;\n" };
        let path = if folder == "." { header } else { format!("{folder}/{header}") };
        self.after.put(&path, &text);
        format!("{path} appeared")
    }

    pub(super) fn late_header(&mut self, chance: &mut Chance) -> String {
        let folder = chance.one(&["early", "include", "late", "units", "aside", "aside"]);
        let name =
            chance.one(&["crt/host_runtime.h", "fatbinary_section.h", "cuda_runtime.h", "math_constants.h"]);
        let path = format!("{folder}/{name}");
        self.after.put(&path, "static int planted = 1;\n");
        format!("{path} appeared")
    }

    pub(super) fn has_include(&mut self, chance: &mut Chance) -> String {
        let folder = if self.after.source == TWINS { "opt" } else { "chain" };
        let name = chance.one(&["tuned.h", "tuned.h", "untuned.h"]);
        let root = chance.one(&["early", "include", "late", "aside"]);
        let path = format!("{root}/{folder}/{name}");
        if chance.coin() {
            self.before.put(&path, "#define TUNED 20\n");
            return format!("{path} went");
        }
        self.after.put(&path, "#define TUNED 20\n");
        format!("{path} appeared")
    }

    pub(super) fn incbin_table(&mut self, chance: &mut Chance) -> String {
        let path = chance.one(&["data/table.bin", "data/spare.bin"]);
        let text = chance.one(&["012345678x", "0123456789x", "01234"]);
        self.after.put(path, text);
        format!("{path} holds {text}")
    }

    /// The macro as it is, or where a search of the text does not find it.
    pub(super) fn timestamp(&mut self, chance: &mut Chance) -> String {
        let source = self.before.source.clone();
        let plain = chance.below(4) == 0;
        let said = if plain { "__TIMESTAMP__" } else { "GLUED(__TIME, STAMP__)" };
        let added = format!("#define GLUED(a, b) a##b\nchar const* stamp() {{ return {said}; }}\n");
        let text = self.before.text(&source).to_owned() + &added;
        self.both(|world| world.put(&source, &text));
        let path = match chance.below(3) {
            0 => source,
            1 => "aside/notes.h".to_owned(),
            _ => return format!("{said} and no change"),
        };
        self.after.date(&path, mtime_s(&path) + 86_400);
        format!("{said} and the time of {path}")
    }

    pub(super) fn link_retarget(&mut self, chance: &mut Chance) -> String {
        // Where the two folders hold the same, only the link differs.
        let same = chance.coin();
        if same {
            let text = self.after.text("include/linked/v1/value.h").to_owned();
            self.both(|world| world.put("include/linked/v2/value.h", &text));
        }
        let link = Entry::Link("v2".to_owned());
        let name = chance.one(&["current", "idle"]);
        if chance.coin() {
            self.after.tree.insert(format!("include/linked/{name}"), link);
            return format!("include/linked/{name} leads elsewhere");
        }
        self.after.outside.insert(name.to_owned(), link);
        format!("{name} outside of the tree leads elsewhere")
    }

    /// A link to an equal file, in place of the file.
    pub(super) fn link_instead(&mut self, chance: &mut Chance) -> String {
        let path = self.file(chance);
        let entry = self.after.tree.remove(&path).unwrap();
        self.after.tree.insert(format!("real/{path}"), entry);
        let up = "../".repeat(path.matches('/').count());
        self.after.tree.insert(path.clone(), Entry::Link(format!("{up}real/{path}")));
        format!("{path} is a link to what it was")
    }

    pub(super) fn mtime(&mut self, chance: &mut Chance, line_info: bool) -> String {
        if line_info {
            self.both(|world| world.argument("-lineinfo"));
        }
        let path = self.file(chance);
        self.after.date(&path, mtime_s(&path) + 1 + i64::try_from(chance.below(100_000)).unwrap());
        format!("time of {path}")
    }

    pub(super) fn twins(&mut self, chance: &mut Chance) -> String {
        let (one, two) = ("include/one/twin.h", "include/two/twin.h");
        if chance.coin() {
            // Copies that nobody reads.
            let text = self.after.text(one).to_owned();
            self.both(|world| ["aside/a.h", "aside/b.h"].iter().for_each(|path| world.put(path, &text)));
            self.after.date("aside/a.h", mtime_s("aside/b.h"));
            return "unread twins of equal bytes and time".to_owned();
        }
        if chance.coin() {
            self.before.edit(two, "return 2", "return 3");
        }
        self.after.date(two, mtime_s(one));
        "twins of equal bytes and time".to_owned()
    }

    pub(super) fn host_only_code(&mut self, chance: &mut Chance) -> String {
        if chance.coin() {
            self.after.edit("include/unread.h", "UNREAD 10", "UNREAD 11");
            return "host code that is not read".to_owned();
        }
        self.after.edit("include/chain/inner.h", "return 41", "return 42");
        "host code two levels down".to_owned()
    }

    pub(super) fn source_location(&mut self, chance: &mut Chance) -> String {
        let (path, from, to) = chance.of(&[
            (HOST, "return column", "return   column"),
            (HOST, "unsigned sum", "unsigned  sum"),
            (HOST, "column(); }", "column();  }"),
            ("aside/notes.h", "// 1", "//  1"),
            ("include/unread.h", " 10", "  10"),
        ]);
        self.after.edit(path, from, to);
        format!("`{from}` of {path} is `{to}`")
    }

    pub(super) fn unrelated_file(&mut self, chance: &mut Chance) -> String {
        let folder = chance.one(&["aside", "early", "include", "units", "deep/er", "late"]);
        let path = format!("{folder}/unrelated.h");
        match chance.below(3) {
            0 => self.before.put(&path, "#define GONE 1\n"),
            1 => self.after.put(&path, "#define NEW 1\n"),
            _ => {
                self.before.put(&path, "#define CHANGED 1\n");
                self.after.put(&path, "#define CHANGED 2\n");
            }
        }
        format!("{path}, which no unit reads")
    }

    pub(super) fn equal_copy(&mut self, chance: &mut Chance) -> String {
        let path = self.file(chance);
        // Each layout writes every file anew.
        format!("{path} is another file with the same bytes")
    }

    pub(super) fn folder_removed(&mut self, chance: &mut Chance) -> String {
        let folder = chance.one(&["early", "aside", "late", "spare"]);
        let made = |world: &mut World| drop(world.tree.insert(format!("{folder}/empty"), Entry::Folder));
        let remove = |world: &mut World| {
            world.tree.retain(|path, _| !path.starts_with(&format!("{folder}/")));
        };
        if chance.coin() {
            made(&mut self.before);
            remove(&mut self.after);
            return format!("{folder} went");
        }
        remove(&mut self.before);
        made(&mut self.after);
        format!("{folder} appeared")
    }
}
