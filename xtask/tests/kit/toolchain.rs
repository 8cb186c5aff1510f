//! A fake toolchain of small scripts and headers that say the versions of the real one, and the lock that pins it.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use requal::lock::Lock;

use super::{file, folder, program};

/// The pinned packages: name, version, platform tag of the wheel.
const PACKAGES: [(&str, &str); 5] = [
    ("nvidia-cuda-cccl", "13.0.85"),
    ("nvidia-cuda-crt", "13.0.88"),
    ("nvidia-cuda-nvcc", "13.0.88"),
    ("nvidia-cuda-runtime", "13.0.96"),
    ("nvidia-nvvm", "13.0.88"),
];

/// A toolchain, its lock, a decoy folder, and the caller's environment.
pub(crate) struct Fixture {
    _folder: tempfile::TempDir,
    /// Holds `nvidia/cu13`.
    pub(crate) toolchain: Utf8PathBuf,
    /// A writable folder.
    pub(crate) scratch: Utf8PathBuf,
    /// First on the caller's PATH, empty.
    pub(crate) decoys: Utf8PathBuf,
    /// The lock's text, to be changed.
    pub(crate) lock: String,
    /// The caller's environment.
    pub(crate) caller: BTreeMap<String, String>,
}

impl Fixture {
    /// A sound toolchain of fakes.
    pub(crate) fn new() -> Self {
        let fixture = Self::around(None);
        let cu13 = fixture.toolchain.join("nvidia/cu13");
        for tool in ["bin/nvcc", "bin/ptxas", "bin/cudafe++", "bin/fatbinary", "bin/nvlink", "nvvm/bin/cicc"]
        {
            program(&cu13.join(tool), &says("13.0", "13.0.88"));
        }
        file(&cu13.join("include/cuda_runtime_api.h"), "#define CUDART_VERSION  13000\n", 0o644);
        file(&cu13.join("include/cccl/cuda/std/__cccl/version.h"), "#define CCCL_VERSION 3000001\n", 0o644);
        file(&cu13.join("include/crt/host_config.h"), "#if __GNUC__ > 15\n#error no\n#endif\n", 0o644);
        let metadata = "Metadata-Version: 2.1\nName: nvidia-cuda-crt\nVersion: 13.0.88\n\nText\n";
        file(&fixture.toolchain.join("nvidia_cuda_crt-13.0.88.dist-info/METADATA"), metadata, 0o644);
        fixture
    }

    /// The same around a toolchain that exists.
    pub(crate) fn around(toolchain: Option<Utf8PathBuf>) -> Self {
        let (guard, path) = folder();
        let (scratch, decoys) = (path.join("scratch"), path.join("decoys"));
        for folder in [&scratch, &decoys] {
            fs_err::create_dir(folder).unwrap();
        }
        let packages = PACKAGES.map(|(name, version)| {
            let file = format!("{}-{version}-py3-none-manylinux2014_x86_64.whl", name.replace('-', "_"));
            let sha256 = "00".repeat(32);
            format!(
                "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nfile = \"{file}\"\nsize_bytes = 1\n\
                 sha256 = \"{sha256}\"\nrole = \"toolchain\"\n"
            )
        });
        let search = format!("{decoys}:/usr/bin:/bin");
        Self {
            _folder: guard,
            toolchain: toolchain.unwrap_or_else(|| path.join("toolchain")),
            scratch,
            decoys,
            lock: format!("version = 1\n{}", packages.concat()),
            caller: BTreeMap::from([("PATH".to_owned(), search)]),
        }
    }

    /// The parsed lock.
    pub(crate) fn lock(&self) -> Lock {
        Lock::parse("toolchain.lock", &self.lock).unwrap()
    }

    /// Changes nvidia-nvvm's pin to another version.
    pub(crate) fn pin_nvvm(&mut self, version: &str) {
        for (before, after) in [("name = \"nvidia-nvvm\"\nversion = \"", "\""), ("nvidia_nvvm-", "-py3")] {
            let pinned = format!("{before}13.0.88{after}");
            assert!(self.lock.contains(&pinned));
            self.lock = self.lock.replace(&pinned, &format!("{before}{version}{after}"));
        }
    }

    /// A file of the toolkit.
    pub(crate) fn toolkit(&self, path: &str) -> Utf8PathBuf {
        self.toolchain.join("nvidia/cu13").join(path)
    }

    /// A decoy of this name, first on PATH: it leaves a marker, then says what the real one would.
    pub(crate) fn decoy(&self, name: &str) {
        let text =
            says("13.0", "13.0.88").replace("#!/bin/sh\n", &format!("#!/bin/sh\n: > {}\n", self.marker()));
        program(&self.decoys.join(name), &text);
    }

    /// What a decoy leaves when it was started.
    pub(crate) fn marker(&self) -> Utf8PathBuf {
        self.scratch.join("marker")
    }

    /// Preflight's answer.
    pub(crate) fn check(&self) -> requal::Outcome<requal::versions::Preflight> {
        xtask::preflight::check(&self.toolchain, &self.lock(), &self.scratch, &self.caller)
    }

    /// Preflight's refusal: its code and its text.
    pub(crate) fn refusal(&self) -> (&'static str, String) {
        let failure = self.check().unwrap_err();
        (failure.code, failure.to_string())
    }
}

/// A script that says a version as NVIDIA's tools do.
pub(crate) fn says(release: &str, version: &str) -> String {
    format!("#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{version}'\n")
}

/// A g++ that says a version and leaves nothing else.
pub(crate) fn fake_gxx(path: &Utf8Path, version: &str) {
    let text =
        format!("#!/bin/sh\ncase $1 in --version) echo 'g++ (Fake) {version}';; *) echo {version};; esac\n");
    program(path, &text);
}
