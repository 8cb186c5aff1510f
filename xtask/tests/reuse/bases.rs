//! The small trees that are changed: each has something that a compile depends on in its own way.

use requal::command;
use requal::limits::Limits;
use requal::manifest::{Flag, Manifest, Module};
use requal::target::Target;

use crate::place::OUTSIDE;
use crate::world::{Entries, Entry, NAME, World};

/// Include folders of every unit, in order. `late` is not there.
pub(crate) const INCLUDE: [&str; 3] = ["early", "include", "late"];
/// A unit with device code whose names hold its path, two levels of headers, and code for one side only.
pub(crate) const CHAIN: &str = "units/chain.cu";
/// A unit that says its module's name.
pub(crate) const NAMED: &str = "units/named.cu";
/// A host unit that knows its own columns.
pub(crate) const HOST: &str = "units/host.cpp";
/// A unit with a table that only the assembler reads.
pub(crate) const TABLE: &str = "units/table.cpp";
/// A unit with headers of equal bytes and an optional one.
pub(crate) const TWINS: &str = "units/twins.cpp";
/// A unit whose headers lie behind links.
pub(crate) const LINKED: &str = "units/linked.cpp";
/// A unit with PTX alone.
pub(crate) const PTX: &str = "units/ptx.cu";
/// All of them.
pub(crate) const ALL: [&str; 7] = [CHAIN, NAMED, HOST, TABLE, TWINS, LINKED, PTX];

/// The world of one unit, compiled by `host`.
pub(crate) fn base(source: &str, host: &str) -> World {
    let machine = [Target::MachineCode(86)];
    let targets: &[Target] = match source {
        PTX => &[Target::Ptx(86)],
        _ if command::has_device_code(source) => &machine,
        _ => &[],
    };
    let module = module(source);
    let manifest = manifest(if targets.is_empty() { &machine } else { targets });
    let mut world = World {
        source: source.to_owned(),
        tree: Entries::new(),
        outside: [("empty".to_owned(), Entry::Folder)].into(),
        tools: [].into(),
        environment: command::environment(&Limits::default()).into_iter().collect(),
        argv: command::compile(&manifest, &module, source, host),
        targets: targets.to_vec(),
    };
    world.environment.remove("TMPDIR");
    let own = FILES.iter().find(|(unit, _)| *unit == source).unwrap().1;
    for (path, text) in own.iter().chain(EVERYWHERE) {
        world.put(path, text);
    }
    if source == LINKED {
        links(&mut world);
    }
    world
}

fn links(world: &mut World) {
    for (path, holds) in [("include/linked/current", "v1"), ("include/linked/idle", "v1")] {
        world.tree.insert(path.to_owned(), Entry::Link(holds.to_owned()));
    }
    for (path, text) in [("v1/vendor.h", "#define VENDOR 1\n"), ("v2/vendor.h", "#define VENDOR 2\n")] {
        world.outside.insert(path.to_owned(), Entry::File(text.to_owned(), requal::tree::mtime_s(path)));
    }
    for path in ["current", "idle"] {
        world.outside.insert(path.to_owned(), Entry::Link("v1".to_owned()));
    }
    world.argument(&format!("-isystem={OUTSIDE}/current"));
}

fn module(source: &str) -> Module {
    Module {
        name: "one".to_owned(),
        tree: "one".to_owned(),
        units: vec![source.to_owned()],
        include: INCLUDE.map(str::to_owned).to_vec(),
        name_defines: [(NAME.to_owned(), "one".to_owned())].into(),
        exports: Vec::new(),
        libraries: Vec::new(),
    }
}

fn manifest(targets: &[Target]) -> Manifest {
    let flag = |value: &str| Flag { value: value.to_owned(), reason: String::new() };
    Manifest {
        version: 1,
        targets: targets.to_vec(),
        flags: ["-std=c++20", "-O1", "-Xcompiler=-fPIC"].map(flag).to_vec(),
        link_flags: Vec::new(),
        trees: Vec::new(),
        modules: Vec::new(),
        limits: Limits::default(),
        profiles: [].into(),
    }
}

/// Files of every tree, which no unit reads.
const EVERYWHERE: &[(&str, &str)] = &[
    ("early/other.h", "#define OTHER 1\n"),
    ("include/unread.h", "#pragma once\n#ifndef __CUDA_ARCH__\n#define UNREAD 10\n#endif\n"),
    ("aside/notes.h", "// 1\n#define NOTES 1\n"),
];

/// Files of each unit's tree.
const FILES: &[(&str, &[(&str, &str)])] = &[
    (
        CHAIN,
        &[
            (
                CHAIN,
                "#include \"chain/outer.h\"\n\nnamespace {\n__global__ void kernel(float* values) {\n  values[threadIdx.x] = step(values[threadIdx.x]);\n}\n}\n\nint launch(float* values) {\n  kernel<<<1, 32>>>(values);\n  return side() + TUNED;\n}\n",
            ),
            (
                "include/chain/outer.h",
                "#pragma once\n#include \"chain/inner.h\"\n#if __has_include(\"chain/tuned.h\")\n#include \"chain/tuned.h\"\n#endif\n#ifndef TUNED\n#define TUNED 10\n#endif\n",
            ),
            (
                "include/chain/inner.h",
                "#pragma once\n#define FACTOR 3.5f\n\n__device__ inline float step(float x) { return x * FACTOR; }\n\ninline int side() {\n#ifndef __CUDA_ARCH__\n  return 41;\n#else\n  return 0;\n#endif\n}\n",
            ),
        ],
    ),
    (
        NAMED,
        &[
            (
                NAMED,
                "#include \"named/quote.h\"\n\n__global__ void kernel(int* values) { values[threadIdx.x] += 7; }\n\nchar const* name() { return QUOTED(MODULE_NAME); }\n",
            ),
            ("include/named/quote.h", "#pragma once\n#define QUOTE(x) #x\n#define QUOTED(x) QUOTE(x)\n"),
        ],
    ),
    (
        HOST,
        &[
            (
                HOST,
                "#include \"host/where.h\"\n\nunsigned here() { return column(); }\n\nunsigned sum() { return here() + 12; }\n",
            ),
            (
                "include/host/where.h",
                "#pragma once\n#include <source_location>\n\ninline unsigned column(std::source_location at = std::source_location::current()) {\n  return at.column() + at.line();\n}\n",
            ),
        ],
    ),
    (
        TABLE,
        &[
            (
                TABLE,
                "#include \"table/embed.h\"\n\n__asm__(\".pushsection .rodata\\n.globl table\\ntable:\\n\" EMBED(\"/requal/tree/data/table.bin\") \".popsection\\n\");\nextern \"C\" char const table;\nchar first() { return table; }\n",
            ),
            (
                "include/table/embed.h",
                "#pragma once\n#define EMBED(path) \".inc\" \"bin \\\"\" path \"\\\"\\n\"\n",
            ),
            ("data/table.bin", "0123456789"),
            ("data/spare.bin", "0123456789"),
        ],
    ),
    (
        TWINS,
        &[
            (
                TWINS,
                "#include \"one/twin.h\"\n#include \"two/twin.h\"\n#if __has_include(<opt/tuned.h>)\n#include <opt/tuned.h>\n#endif\n#ifndef TUNED\n#define TUNED 10\n#endif\nint tuned() { return TUNED; }\n",
            ),
            ("include/one/twin.h", TWIN),
            ("include/two/twin.h", TWIN),
        ],
    ),
    (
        LINKED,
        &[
            (
                LINKED,
                "#include <vendor.h>\n#include \"linked/current/value.h\"\n\nint value() { return VALUE + VENDOR; }\n",
            ),
            ("include/linked/v1/value.h", "#define VALUE 100\n"),
            ("include/linked/v2/value.h", "#define VALUE 200\n"),
        ],
    ),
    (PTX, &[(PTX, "__global__ void kernel(int* values) { values[threadIdx.x] += 9; }\n")]),
];

/// Read twice it gives a function, read once it gives none.
const TWIN: &str = "#pragma once\n#ifdef SEEN\nint twice() { return 2; }\n#endif\n#define SEEN 1\n";
