//! What Ninja runs in place of the compiler and the linker: one compile or link in a fresh private folder, its result
//! judged before it gets its name.

mod closure;
pub(crate) mod stamps;
pub(crate) mod take;
mod unused;

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, Subcommand};
use requal::command::{Place, file_name};
use requal::judge::{self, DeclaredModule};
use requal::observation::Observation;
use requal::receipt::{ENVIRONMENT, Reason};
use requal::reuse::{Bar, Decided, Invocation};
use requal::target::Target;
use requal::unit::{ModuleRecord, Offer, UnitRecord};
use requal::{Digest, Exit, Outcome, depfile, grammar, ptxas};

use closure::Ground;

use serde::{Deserialize, Serialize};

use crate::sys::proc::{self, Call};
use crate::sys::{env, fs, layout, trace};

/// The hidden commands of Ninja's rules.
#[derive(Debug, Subcommand)]
pub enum Wrap {
    /// One compile.
    Compile(Compile),
    /// One link.
    Link(Link),
    /// One test of unused name defines.
    Defines(Defines),
}

/// What a compile and a link have in common.
#[derive(Debug, Args)]
pub struct Step {
    /// Digest of everything that the step is a function of.
    #[arg(long)]
    key: Digest,
    /// Toolchain tree, source tree, build folder, and folder of the host's programs.
    #[arg(long, value_parser = place)]
    place: Place,
    /// Files and folders of the host that may be read.
    #[arg(long, value_delimiter = ',', num_args = 1)]
    system: Vec<String>,
    /// What the result must hold.
    #[arg(long, value_delimiter = ',', num_args = 1)]
    targets: Vec<Target>,
    /// The result, relative to the build folder.
    #[arg(long)]
    output: String,
    /// The command, naming places.
    #[arg(last = true)]
    argv: Vec<String>,
}

/// Arguments of a compile.
#[derive(Debug, Args)]
pub struct Compile {
    #[command(flatten)]
    step: Step,
    /// Whether another tree's object may be taken: a file of the build folder
    #[arg(long)]
    offer: Option<Utf8PathBuf>,
}

/// Arguments of a link.
#[derive(Debug, Args)]
pub struct Link {
    #[command(flatten)]
    step: Step,
    /// Symbols that the module exports.
    #[arg(long, value_delimiter = ',', num_args = 1)]
    exports: Vec<String>,
    /// Shared libraries that it may need.
    #[arg(long, value_delimiter = ',', num_args = 1)]
    libraries: Vec<String>,
}

/// Arguments of a test of unused name defines.
#[derive(Debug, Args)]
pub struct Defines {
    #[command(flatten)]
    step: Step,
    /// The test: a file of the build folder
    #[arg(long)]
    test: Utf8PathBuf,
}

/// A test of unused name defines, for an auditor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefineTest {
    /// The command of the compile whose object was taken, naming places.
    pub recorded: Vec<String>,
    /// The command that was saved.
    pub wanted: Vec<String>,
    /// The names.
    pub names: BTreeSet<String>,
    /// Digest of what both compiles depend on.
    pub closure_sha256: Digest,
}

/// Runs one hidden command.
///
/// # Errors
/// `E-COMPILE` or `E-LINK` (exit 4) if the tool failed, whatever judging its result refuses.
pub fn run(wrap: &Wrap) -> Outcome<()> {
    let (step, outcome) = match wrap {
        Wrap::Compile(compile) => (&compile.step, compile.run()),
        Wrap::Link(link) => (&link.step, link.run()),
        Wrap::Defines(defines) => (&defines.step, defines.run()),
    };
    if let Err(failure) = &outcome {
        fs::write(&refusal_path(step.build(), &step.output), failure.to_string().as_bytes())?;
    }
    outcome
}

/// Where the record of the result `output` lies in the build folder.
#[must_use]
pub fn record_path(build: &Utf8Path, output: &str) -> Utf8PathBuf {
    build.join("record").join(format!("{output}.json"))
}

/// Where the kept copy of the dependency file of `output` lies in the build folder.
#[must_use]
pub fn depfile_path(build: &Utf8Path, output: &str) -> Utf8PathBuf {
    build.join("dep").join(format!("{output}.d"))
}

/// Where the whole output of the step that made `output` lies in the build folder.
#[must_use]
pub fn log_path(build: &Utf8Path, output: &str) -> Utf8PathBuf {
    build.join("log").join(format!("{output}.log"))
}

/// Where the offer for `output` lies, relative to the build folder.
#[must_use]
pub fn offer_path(output: &str) -> Utf8PathBuf {
    Utf8PathBuf::from("offer").join(format!("{output}.json"))
}

/// Where the refusal of the step that did not make `output` lies in the build folder.
#[must_use]
pub fn refusal_path(build: &Utf8Path, output: &str) -> Utf8PathBuf {
    build.join("refused").join(format!("{output}.txt"))
}

/// Where the test of the names of `output` lies, relative to the build folder.
#[must_use]
pub fn define_test_path(output: &str) -> Utf8PathBuf {
    Utf8PathBuf::from("define-test").join(format!("{output}.json"))
}

/// Where the outcome of that test lies, relative to the build folder.
#[must_use]
pub fn tested_path(output: &str) -> Utf8PathBuf {
    Utf8PathBuf::from("define-tested").join(format!("{output}.json"))
}

impl Defines {
    fn run(&self) -> Outcome<()> {
        let step = &self.step;
        let bytes = fs_err::read(step.build().join(&self.test))?;
        let test: DefineTest = serde_json::from_slice(&bytes).map_err(std::io::Error::from)?;
        let temporary = step.fresh_temporary()?;
        let pair = unused::Pair { recorded: &test.recorded, wanted: &test.wanted };
        let outcome = unused::test(step, &temporary, pair, &test.names, test.closure_sha256)?;
        let tested = step.build().join(tested_path(&step.output));
        // What the passes read is of no matter here: the outcome is read once and thrown away.
        let rule = depfile::write(tested_path(&step.output).as_str(), std::slice::from_ref(&step.place.tree));
        fs::write(&step.build().join(format!("{}.d", tested_path(&step.output))), rule.as_bytes())?;
        fs::write(&tested, &serde_json::to_vec(&outcome).map_err(std::io::Error::from)?)
    }
}

impl Compile {
    /// Takes the offered object, or compiles and records why.
    fn run(&self) -> Outcome<()> {
        let offer: Offer = match &self.offer {
            None => Offer::Compile(Decided::compiled(Reason::NoCounterpart)),
            Some(path) => {
                let bytes = fs_err::read(self.step.build().join(path))?;
                serde_json::from_slice(&bytes).map_err(std::io::Error::from)?
            }
        };
        let decided = match offer {
            Offer::Compile(decided) => decided,
            Offer::Take(taking) => match take::take(&self.step, &taking)? {
                take::Taken::Object(record) => return self.step.publish(&*record),
                take::Taken::Not(decided) => decided,
            },
        };
        self.step.compile(decided)
    }
}

impl Step {
    fn compile(&self, decided: Decided) -> Outcome<()> {
        let (output, observed) = self.execute("E-COMPILE")?;
        let bytes = fs_err::read(self.result())?;
        let device_code = judge::object(&self.output, &bytes, &self.targets)?;
        let read = self.read_files(&observed)?;
        let judged = self.ground(&[]).judge(&read, &observed)?;
        let (invocation, more) = self.invocation()?;
        let record = UnitRecord {
            key: self.key,
            invocation,
            closure: judged.closure,
            bars: judged.bars.into_iter().chain(more).collect(),
            decided,
            depfile_sha256: self.keep_rule(&read)?,
            object_sha256: Digest::of(&bytes),
            size_bytes: bytes.len() as u64,
            device_code_sha256: device_code.as_ref().map(|code| code.sha256),
            targets: device_code.map_or(Vec::new(), |code| code.targets),
            kernels: ptxas::read(&output)?,
        };
        self.publish(&record)
    }

    fn ground<'a>(&'a self, made: &'a [String]) -> Ground<'a> {
        Ground { place: &self.place, system: &self.system, made, output: &self.output }
    }

    /// The command as the reuse rule compares it, and what in it bars the unit.
    fn invocation(&self) -> Outcome<(Invocation, Option<Bar>)> {
        let mut read = |path: &str| fs_err::read(self.place.resolve(path, &self.output)).ok();
        let (argv, mut bar) = match grammar::expand(&self.argv, &mut read) {
            Ok(argv) => (argv, None),
            Err(refusal) => {
                (self.argv.clone(), Some(Bar { reason: Reason::FlagRefused, about: refusal.token }))
            }
        };
        // A working folder stands in debug information, and without a room each tree builds in a folder of its own.
        if self.place != Place::fixed() && grammar::parse(&argv).has_debug_info() {
            bar = bar.or(Some(Bar { reason: Reason::PathInObject, about: self.output.clone() }));
        }
        let environment = self.environment(&self.folder().join("tmp")).into_iter();
        let named = |(name, value): (String, String)| (name, self.place.named(&value, &self.output));
        let environment = environment.map(named).collect();
        Ok((Invocation { argv, environment, place: self.place.clone() }, bar))
    }

    /// Runs the command in a fresh folder of its own, which is also its temporary folder: what is planted in a shared
    /// one is found by nvcc's generated sources before the toolkit's headers (facts/nvcc-and-reuse.md, section 0).
    fn execute(&self, code: &'static str) -> Outcome<(String, Observation)> {
        let folder = self.folder();
        let temporary = self.fresh_temporary()?;
        let mut argv = self.resolved(&self.argv);
        let log = log_path(self.build(), &self.output);
        let call = Call {
            program: argv.remove(0).into(),
            args: argv,
            env: self.environment(&temporary),
            cwd: temporary,
            log: Some(log.clone()),
        };
        let (ended, observed) = trace::observe(&proc::own_binary()?, &call)?;
        if ended.code != 0 {
            return Err(call.failed(Exit::BuildFailed, code, &ended));
        }
        Ok((fs_err::read_to_string(log)?, observed.outside(folder.canonicalize_utf8()?.as_str())))
    }

    /// The step's own folder, made anew, and in it the temporary folder, which is given.
    fn fresh_temporary(&self) -> Outcome<Utf8PathBuf> {
        let folder = self.folder();
        layout::fresh_folder(&folder)?;
        let temporary = folder.join("tmp");
        fs_err::create_dir(&temporary)?;
        Ok(temporary)
    }

    fn resolved(&self, argv: &[String]) -> Vec<String> {
        argv.iter().map(|token| self.place.resolve(token, &self.output)).collect()
    }

    /// Ninja's own environment is the closed one that it was started with; what its shell added is taken away again, and
    /// the temporary folder is added.
    fn environment(&self, temporary: &Utf8Path) -> BTreeMap<String, String> {
        let mut environment = env::all();
        environment.retain(|name, _| ENVIRONMENT.contains(&name.as_str()));
        environment.insert("TMPDIR".to_owned(), temporary.to_string());
        environment
    }

    /// The files that the tool was seen to open, and those that it says it read.
    fn read_files(&self, observed: &Observation) -> Outcome<Vec<String>> {
        let result = self.result();
        let text = fs_err::read_to_string(format!("{result}.dep"))?;
        let mut read = depfile::read(&self.output, &text, result.as_str())?;
        read.extend(closure::opened(observed, &self.place)?);
        read.sort_unstable();
        read.dedup();
        Ok(read)
    }

    /// Writes the dependency file for Ninja, which removes it when it has read it, and the copy that is kept.
    fn keep_rule(&self, read: &[String]) -> Outcome<Digest> {
        let rule = depfile::write(&self.output, read);
        fs::write(&self.build().join(format!("{}.d", self.output)), rule.as_bytes())?;
        fs::write(&depfile_path(self.build(), &self.output), rule.as_bytes())?;
        Ok(Digest::of(rule.as_bytes()))
    }

    /// Record and dependency file get their names first: an object that has its name has both.
    fn publish(&self, record: &impl serde::Serialize) -> Outcome<()> {
        let json = serde_json::to_vec(record).map_err(std::io::Error::from)?;
        fs::write(&record_path(self.build(), &self.output), &json)?;
        layout::publish(&self.result(), &self.build().join(&self.output))?;
        Ok(fs_err::remove_dir_all(self.folder())?)
    }

    /// The files of the build folder that the command names: a link's objects.
    fn objects(&self) -> Vec<String> {
        let resolved = self.argv.iter().map(|token| self.place.resolve(token, &self.output));
        resolved.filter(|token| Utf8Path::new(token).starts_with(&self.place.build)).collect()
    }

    fn build(&self) -> &Utf8Path {
        Utf8Path::new(&self.place.build)
    }

    fn folder(&self) -> Utf8PathBuf {
        self.place.unit_folder(&self.output).into()
    }

    fn result(&self) -> Utf8PathBuf {
        self.folder().join(file_name(&self.output))
    }
}

impl Link {
    fn run(&self) -> Outcome<()> {
        let step = &self.step;
        let (_, observed) = step.execute("E-LINK")?;
        let bytes = fs_err::read(step.result())?;
        let declared =
            DeclaredModule { targets: &step.targets, exports: &self.exports, libraries: &self.libraries };
        let module = judge::module(&step.output, &bytes, declared)?;
        let read = step.read_files(&observed)?;
        let objects = step.objects();
        let judged = step.ground(&objects).judge(&read, &observed)?;
        let record = ModuleRecord {
            key: step.key,
            closure: judged.closure,
            bars: judged.bars,
            depfile_sha256: step.keep_rule(&read)?,
            sha256: Digest::of(&bytes),
            size_bytes: bytes.len() as u64,
            device_code_sha256: module.device_code.sha256,
            exports: module.exports,
            needed: module.needed,
        };
        step.publish(&record)
    }
}

/// Reads the four paths of a place; none of them holds a comma.
fn place(text: &str) -> Result<Place, String> {
    let paths: Vec<String> = text.split(',').map(str::to_owned).collect();
    let [toolchain, tree, build, host] = paths.try_into().map_err(|_| "four paths are needed".to_owned())?;
    Ok(Place { toolchain, tree, build, host })
}

/// The arguments of Ninja's rule for `step`; the twin of the parser above.
#[must_use]
pub fn arguments(
    kind: &str,
    key: Digest,
    place: &Place,
    system: &[Utf8PathBuf],
    output: &str,
) -> Vec<String> {
    let system: Vec<&str> = system.iter().map(|path| path.as_str()).collect();
    let mut words = vec!["wrap".to_owned(), kind.to_owned(), format!("--key={key}")];
    words.push(format!("--place={},{},{},{}", place.toolchain, place.tree, place.build, place.host));
    words.push(format!("--system={}", system.join(",")));
    words.push(format!("--output={output}"));
    words
}
