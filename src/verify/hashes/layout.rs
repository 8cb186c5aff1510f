//! Where a scratch keeps what a receipt names, and each named file with what the receipt says of it.

use camino::{Utf8Path, Utf8PathBuf};

use crate::Digest;
use crate::receipt::{Build, Root, RuntimeBuild};
use crate::tree::TreeFile;

/// Where a scratch keeps what a receipt names. The one place that knows.
pub(super) struct Layout<'a>(pub(super) &'a Utf8Path);

impl Layout<'_> {
    pub(super) fn wheels(&self) -> Utf8PathBuf {
        self.0.join("wheels")
    }

    pub(super) fn toolchain(&self) -> Utf8PathBuf {
        self.0.join("toolchain")
    }

    pub(super) fn tree(&self, name: &str) -> Utf8PathBuf {
        self.0.join("trees").join(name)
    }

    pub(super) fn object(&self, tree: &str, object: &str) -> Utf8PathBuf {
        self.0.join("build").join(tree).join(object)
    }

    pub(super) fn module(&self, file: &str) -> Utf8PathBuf {
        self.0.join("modules").join(file)
    }
}

/// One file and what the receipt says of it.
pub(super) struct Item {
    pub(super) path: Utf8PathBuf,
    pub(super) sha256: Digest,
    pub(super) size_bytes: Option<u64>,
    pub(super) mode: Option<u32>,
    pub(super) pointer: String,
    pub(super) code: &'static str,
}

pub(super) fn file_items(
    root: &Utf8Path,
    files: &[TreeFile],
    pointer: &str,
    code: &'static str,
) -> Vec<Item> {
    let of = |(i, file): (usize, &TreeFile)| Item {
        path: root.join(&file.path),
        sha256: file.sha256,
        size_bytes: Some(file.size_bytes),
        mode: Some(file.mode),
        pointer: format!("{pointer}/{i}"),
        code,
    };
    files.iter().enumerate().map(of).collect()
}

pub(super) fn object_items(build: &Build, layout: &Layout<'_>) -> Vec<Item> {
    let of = |(i, unit): (usize, &crate::receipt::Unit)| Item {
        path: layout.object(&unit.tree, &unit.object),
        sha256: unit.object_sha256,
        size_bytes: Some(unit.size_bytes),
        mode: None,
        pointer: format!("/predicate/build/units/{i}/object_sha256"),
        code: "E-HASH-OBJECT",
    };
    build.units.iter().enumerate().map(of).collect()
}

pub(super) fn module_items(build: &Build, layout: &Layout<'_>) -> Vec<Item> {
    let of = |(i, module): (usize, &crate::receipt::Module)| Item {
        path: layout.module(&module.file),
        sha256: module.sha256,
        size_bytes: Some(module.size_bytes),
        mode: None,
        pointer: format!("/predicate/build/modules/{i}/sha256"),
        code: "E-HASH-MODULE",
    };
    build.modules.iter().enumerate().map(of).collect()
}

pub(super) fn log_items(receipt: &RuntimeBuild, receipts: &Utf8Path) -> Vec<Item> {
    let run = &receipt.predicate.run;
    let logs = run
        .logs
        .iter()
        .enumerate()
        .map(|(i, log)| (format!("logs/{i}"), &log.file, log.sha256, log.size_bytes));
    let attempts = run.attempts.iter().enumerate();
    let attempts = attempts.map(|(i, log)| (format!("attempts/{i}"), &log.file, log.sha256, log.size_bytes));
    let of = |(at, file, sha256, size_bytes): (String, &crate::receipt::RelativePath, Digest, u64)| Item {
        path: receipts.join(&**file),
        sha256,
        size_bytes: Some(size_bytes),
        mode: None,
        pointer: format!("/predicate/run/{at}"),
        code: "E-HASH-LOG",
    };
    logs.chain(attempts).map(of).collect()
}

pub(super) fn system_items(build: &Build) -> Vec<Item> {
    let item = |path: Utf8PathBuf, sha256, size_bytes, pointer| Item {
        path,
        sha256,
        size_bytes,
        mode: None,
        pointer,
        code: "E-SYSTEM-OTHER",
    };
    let inputs = build.inputs.iter().enumerate().filter(|(_, input)| input.root == Root::System);
    let inputs = inputs.map(|(i, input)| {
        let pointer = format!("/predicate/build/inputs/{i}");
        item(Utf8Path::new("/").join(&*input.path), input.sha256, Some(input.size_bytes), pointer)
    });
    let programs = build.host_compiler.programs.iter().enumerate().map(|(i, program)| {
        let pointer = format!("/predicate/build/host_compiler/programs/{i}");
        item(Utf8PathBuf::from(&*program.path), program.sha256, None, pointer)
    });
    inputs.chain(programs).collect()
}
