//! The manifest from which the fixture's commands are derived.

use crate::fixture::Size;

/// The manifest of the modules `names`.
pub(crate) fn text(names: &[&str], size: Size) -> String {
    let trees = [
        ("stock", "source = \"kernels/k\"\n"),
        ("facc", "source = \"kernels/k\"\noverlay = \"kernels/f\"\ncounterpart = \"stock\"\n"),
        ("p2p", "source = \"kernels/p\"\n"),
    ];
    let head = "version = 1\ntargets = [\"sm_86\", \"compute_86\"]\n\n[[flag]]\nvalue = \"-O3\"\nreason = \"speed\"\n\n\
                [[link_flag]]\nvalue = \"-lc\"\nreason = \"the C library\"\n";
    let module = |(own, source): (&str, &str)| {
        let units = match (own, size) {
            ("p2p", _) => "\"*.cu\"",
            (_, Size::Plain | Size::Paired) => "\"a.cu\", \"b.cpp\"",
            (_, Size::Certified) => "\"a.cu\", \"b.cpp\", \"c.cpp\"",
        };
        format!(
            "\n[[tree]]\nname = \"{own}\"\n{source}\n[[module]]\nname = \"{own}\"\ntree = \"{own}\"\nunits = [{units}]\n\
             exports = [\"requal_module_v1\"]\nlibraries = [\"libc.so.6\"]\nname_defines = {{ NAME = \"{own}\" }}\n"
        )
    };
    let modules = trees.into_iter().filter(|(own, _)| names.contains(own)).map(module);
    head.to_owned() + &modules.collect::<String>()
}
