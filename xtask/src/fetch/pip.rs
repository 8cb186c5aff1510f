//! Calls of pip: a closed environment, private folders, and the user's index, proxy and certificate settings.

use camino::{Utf8Path, Utf8PathBuf};
use requal::lock::Package;
use requal::{Failure, Outcome};

use crate::sys::env::{self, Variables};
use crate::sys::fs;
use crate::sys::proc::{Call, Ended};

/// The user's Python, whose pip is used.
#[derive(Clone, Debug)]
pub struct Pip {
    python: Utf8PathBuf,
    settings: Variables,
}

/// The folders of one pip call: `tmp`, `out`, `cache`, and what keeps other tools' writes out of HOME.
#[derive(Clone, Debug)]
pub struct Work {
    /// The folder that holds them.
    pub folder: Utf8PathBuf,
}

impl Work {
    /// Where pip puts a finished wheel.
    #[must_use]
    pub fn out(&self) -> Utf8PathBuf {
        self.folder.join("out")
    }

    fn cache(&self) -> Utf8PathBuf {
        self.folder.join("cache")
    }

    /// Empty `tmp` and `out`.
    fn renew(&self) -> Outcome<()> {
        self.clear()?;
        fs_err::create_dir_all(self.folder.join("tmp"))?;
        Ok(fs_err::create_dir_all(self.out())?)
    }

    /// Removes everything but the cache.
    ///
    /// # Errors
    /// `E-IO`.
    pub fn clear(&self) -> Outcome<()> {
        fs::remove(&self.folder.join("tmp"))?;
        fs::remove(&self.out())
    }

    /// Removes the cache.
    ///
    /// # Errors
    /// `E-IO`.
    pub fn drop_cache(&self) -> Outcome<()> {
        fs::remove(&self.cache())
    }

    /// Names the cache file that holds a wheel's bytes, for the words about a damaged one; empty if there is none.
    #[must_use]
    pub fn cached(&self, package: &Package) -> String {
        let entries = walkdir::WalkDir::new(self.cache()).into_iter().filter_map(Result::ok);
        let large = entries.filter(|entry| {
            entry.metadata().is_ok_and(|file| file.is_file() && file.len() >= package.size_bytes)
        });
        let names: Vec<_> = large.map(|entry| entry.path().display().to_string()).collect();
        if names.is_empty() { String::new() } else { format!("; its cache entry was {}", names.join(", ")) }
    }
}

impl Pip {
    /// Finds python3 on PATH and asks it once which program it really is: `python3` may be a shim.
    ///
    /// # Errors
    /// `E-TOOL-MISSING` or `E-PIP-MISSING` (exit 3).
    pub fn find(settings: &Variables) -> Outcome<Self> {
        let shim = env::tool("python3")?;
        let mut call = Call::new(&shim, &["-c", "import sys; print(sys.executable)"], Utf8Path::new("/"));
        call.env = env::all();
        call.env.insert("PYTHONDONTWRITEBYTECODE".into(), "1".into());
        let ended = call.run()?;
        let python = ended.output.lines().last().unwrap_or_default();
        if ended.code != 0 || !python.starts_with('/') {
            return Err(Failure::could_not_judge(
                "E-PIP-MISSING",
                format!("{shim} does not say which program it is"),
            )
            .found(&ended.output)
            .hint(call.command_line()));
        }
        Ok(Self { python: python.into(), settings: settings.clone() })
    }

    /// `pip download` of exactly the pinned file; its hash selects it.
    ///
    /// # Errors
    /// `E-PROC-START`, `E-IO`; a failed pip is no error here.
    pub fn download(&self, package: &Package, work: &Work) -> Outcome<Ended> {
        work.renew()?;
        let pin = format!("{}=={} --hash=sha256:{}\n", package.name, package.version, package.sha256);
        fs::write(&work.folder.join("tmp/one.txt"), pin.as_bytes())?;
        let (mut args, out) = (
            vec!["download", "--progress-bar=off", "--no-deps", "--only-binary=:all:", "--require-hashes"],
            work.out(),
        );
        let tags = tag_args(package);
        args.extend(tags.iter().map(String::as_str));
        args.extend(["-d", out.as_str(), "-r", "tmp/one.txt"]);
        self.run(&args, work)
    }

    /// Runs pip with `args` in `work`'s folder.
    ///
    /// # Errors
    /// `E-PROC-START`, `E-IO`; a failed pip is no error here.
    pub fn run(&self, args: &[&str], work: &Work) -> Outcome<Ended> {
        fs_err::create_dir_all(work.folder.join("tmp"))?;
        // Only with `-vv` does pip say that an index could not be reached, rather than that it had nothing.
        let before = ["-m", "pip", "-vv", "--disable-pip-version-check", "--no-input", "--no-color"];
        let mut call = Call::new(&self.python, &[&before[..], args].concat(), &work.folder);
        call.env.clone_from(&self.settings);
        let own = [
            ("PATH", "/usr/bin:/bin".to_owned()),
            ("PIP_CACHE_DIR", work.cache().into_string()),
            ("PIP_REQUIRE_VIRTUALENV", "0".to_owned()),
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
            // pip asks `rustc --version`; a rustup behind it would write to HOME.
            ("RUSTUP_HOME", work.folder.join("tmp/rustup").into_string()),
            ("TMPDIR", work.folder.join("tmp").into_string()),
        ];
        call.env.extend(own.map(|(name, value)| (name.to_owned(), value)));
        call.run()
    }
}

/// The options that ask for the platforms of the package's file name, whatever machine this is.
#[must_use]
pub fn tag_args(package: &Package) -> Vec<String> {
    let tags = package.tags();
    let option = |name: &'static str, values: Vec<String>| {
        values.into_iter().flat_map(move |value| [name.to_owned(), value])
    };
    let digits = |tag: &String| tag.trim_start_matches(|c: char| c.is_ascii_alphabetic()).to_owned();
    let version = tags.pythons.first().map(digits).unwrap_or_default();
    let implementation =
        tags.pythons.first().map(|tag| tag.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
    option("--platform", tags.platforms)
        .chain(option("--implementation", implementation.into_iter().collect()))
        .chain(option("--abi", tags.abis))
        .chain(option("--python-version", vec![version]))
        // `--python-version 3` means 3.0, and no wheel is ever run by this Python.
        .chain(["--ignore-requires-python".to_owned()])
        .collect()
}
