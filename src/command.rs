//! The argv of each compile and link, a pure function of the manifest. Builder and auditor derive the same tokens.
//!
//! Tokens name places, not paths: `${toolchain}`, `${tree}`, `${build}`, `${host}` and `${unit}` (the unit's own fresh
//! folder). [`Place`] turns them into paths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::manifest::{Manifest, Module};
use crate::target::gencode;
use crate::tree::EPOCH_S;

/// Where a build sees its folders. In a sandbox the places are fixed; without one they are real paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The toolchain tree, read-only.
    pub toolchain: String,
    /// The source tree that is being built, read-only. The trees of a pair stand here one after the other.
    pub tree: String,
    /// The one writable folder.
    pub build: String,
    /// The folder of the host's assembler and linker, the only part of its PATH.
    pub host: String,
}

impl Place {
    /// The fixed places inside a sandbox.
    #[must_use]
    pub fn fixed() -> Self {
        let at = |name: &str| format!("/requal/{name}");
        Self { toolchain: at("toolchain"), tree: at("tree"), build: at("build"), host: at("host") }
    }

    /// The places as a receipt names them: fixed ones, or `${scratch}` for the real path of a build without a sandbox.
    #[must_use]
    pub fn recorded(sandboxed: bool) -> Self {
        if sandboxed {
            return Self::fixed();
        }
        let at = |name: &str| format!("${{scratch}}/{name}");
        Self {
            toolchain: at("toolchain"),
            tree: at("place/tree"),
            build: at("place/build"),
            host: at("place/host"),
        }
    }

    /// `token` with each place replaced by its path; `${unit}` is the folder of the unit that makes `object`.
    #[must_use]
    pub fn resolve(&self, token: &str, object: &str) -> String {
        token
            .replace("${toolchain}", &self.toolchain)
            .replace("${tree}", &self.tree)
            .replace("${unit}", &self.unit_folder(object))
            .replace("${build}", &self.build)
            .replace("${host}", &self.host)
    }

    /// `text` with each path of the place replaced by its name: the inverse of [`Place::resolve`].
    #[must_use]
    pub fn named(&self, text: &str, object: &str) -> String {
        text.replace(&self.unit_folder(object), "${unit}")
            .replace(&self.toolchain, "${toolchain}")
            .replace(&self.tree, "${tree}")
            .replace(&self.build, "${build}")
            .replace(&self.host, "${host}")
    }

    /// The folder that one compile writes to and that is empty before it.
    #[must_use]
    pub fn unit_folder(&self, object: &str) -> String {
        format!("{}/unit/{object}.d", self.build)
    }
}

/// The object of the unit `source`: `units/a.cu` gives `units/a.cu.o`. Relative to the tree; it seeds the compile and
/// names the file, and never holds the module's name.
#[must_use]
pub fn object_path(source: &str) -> String {
    format!("{source}.o")
}

/// Whether nvcc compiles device code from `source`.
#[must_use]
pub fn has_device_code(source: &str) -> bool {
    source.ends_with(".cu")
}

/// The final component of `object`, without folders.
#[must_use]
pub fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The argv that compiles unit `source` of `module` with host compiler `host` (an absolute path).
#[must_use]
pub fn compile(manifest: &Manifest, module: &Module, source: &str, host: &str) -> Vec<String> {
    let object = object_path(source);
    let name = file_name(&object);
    let mut argv = vec!["${toolchain}/nvidia/cu13/bin/nvcc".to_owned(), "-c".to_owned()];
    argv.push(format!("-ccbin={host}"));
    argv.extend(gencode(&manifest.targets));
    // Intermediates go to the unit's own folder, and every generated id comes from the tree-relative object path:
    // without these two no object is ever the same twice (facts/nvcc-and-reuse.md, section 3).
    argv.push("--objdir-as-tempdir".to_owned());
    argv.push(format!("-frandom-seed={object}"));
    argv.push("-Xptxas=-v".to_owned());
    // Without it gcc asks after each folder of each system header's path: a third of all observed calls, for a shorter name.
    argv.push("-Xcompiler=-fno-canonical-system-headers".to_owned());
    argv.extend(["-MD".to_owned(), "-MF".to_owned(), format!("${{unit}}/{name}.dep")]);
    argv.extend(manifest.flags.iter().map(|flag| flag.value.clone()));
    argv.extend(module.name_defines.iter().map(|(define, value)| format!("-D{define}={value}")));
    argv.extend(module.include.iter().map(|folder| match folder.as_str() {
        "." => "-I${tree}".to_owned(),
        _ => format!("-I${{tree}}/{folder}"),
    }));
    argv.extend(["-o".to_owned(), format!("${{unit}}/{name}"), format!("${{tree}}/{source}")]);
    argv
}

/// The argv that links `objects`, in their order, into `module` with host compiler `host`.
#[must_use]
pub fn link(manifest: &Manifest, module: &Module, objects: &[String], host: &str) -> Vec<String> {
    let mut argv = vec![host.to_owned(), "-shared".to_owned()];
    argv.extend(["-o".to_owned(), format!("${{unit}}/{}.so", module.name)]);
    argv.extend(objects.iter().map(|object| format!("${{build}}/{object}")));
    argv.push("-L${toolchain}/nvidia/cu13/lib".to_owned());
    argv.push(format!("-Wl,--dependency-file=${{unit}}/{}.so.dep", module.name));
    argv.extend(manifest.link_flags.iter().map(|flag| flag.value.clone()));
    argv
}

/// The whole environment of a compile or link, naming places, sorted by name: name and value. `limits` adds the variables
/// that carry its limit of threads.
#[must_use]
pub fn environment(limits: &Limits) -> Vec<(String, String)> {
    let path = "${toolchain}/nvidia/cu13/bin:${toolchain}/nvidia/cu13/nvvm/bin:${host}";
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut environment = vec![
        pair("LC_ALL", "C"),
        pair("PATH", path),
        pair("SOURCE_DATE_EPOCH", &EPOCH_S.to_string()),
        pair("TMPDIR", "${unit}/tmp"),
        pair("TZ", "UTC"),
    ];
    environment.extend(limits.environment());
    environment.sort();
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let text = r#"
            version = 1
            targets = ["sm_86"]
            flag = [{ value = "-O3", reason = "speed" }]
            link_flag = [{ value = "-lcudart", reason = "shared run-time library" }]
            tree = [{ name = "a", source = "kernels/a" }]
            [[module]]
            name = "stock"
            tree = "a"
            units = ["units/k.cu"]
            include = [".", "include"]
            exports = ["f"]
            libraries = []
            name_defines = { NAME = "stock" }
        "#;
        Manifest::parse("m.toml", text).unwrap()
    }

    #[test]
    fn a_compile_names_places_and_the_object_but_not_the_module() {
        let manifest = manifest();
        let argv = compile(&manifest, &manifest.modules[0], "units/k.cu", "/usr/bin/g++");
        assert_eq!(
            argv.join(" "),
            "${toolchain}/nvidia/cu13/bin/nvcc -c -ccbin=/usr/bin/g++ -gencode=arch=compute_86,code=[sm_86] \
             --objdir-as-tempdir -frandom-seed=units/k.cu.o -Xptxas=-v -Xcompiler=-fno-canonical-system-headers -MD -MF \
             ${unit}/k.cu.o.dep -O3 -DNAME=stock -I${tree} -I${tree}/include -o ${unit}/k.cu.o ${tree}/units/k.cu"
        );
        let place = Place::fixed();
        assert_eq!(
            place.resolve("${unit}/k.cu.o", "units/k.cu.o"),
            "/requal/build/unit/units/k.cu.o.d/k.cu.o"
        );
        assert_eq!(place.resolve("-I${tree}/include", ""), "-I/requal/tree/include");
    }

    #[test]
    fn a_link_keeps_the_order_of_its_objects() {
        let manifest = manifest();
        let objects = ["units/b.o".to_owned(), "units/a.o".to_owned()];
        assert_eq!(
            link(&manifest, &manifest.modules[0], &objects, "/usr/bin/g++").join(" "),
            "/usr/bin/g++ -shared -o ${unit}/stock.so ${build}/units/b.o ${build}/units/a.o \
             -L${toolchain}/nvidia/cu13/lib -Wl,--dependency-file=${unit}/stock.so.dep -lcudart"
        );
    }
}
