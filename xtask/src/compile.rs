//! Compile and link one tree: decide by content what is still good, let Ninja make the rest in the place, read it back.

mod machine;
mod reuse;
pub(crate) mod room;

use camino::{Utf8Path, Utf8PathBuf};
use requal::closure::{Closure, File, Found, Located};
use requal::command::Place;
use requal::limits::{Applied, Limits};
use requal::plan::{ModulePlan, UnitPlan};
use requal::receipt::Decision;
use requal::reuse::{Decided, Lists};
use requal::target::Target;
use requal::unit::{KeyParts, ModuleRecord, UnitRecord, key};
use requal::versions::HostCompiler;
use requal::{Digest, Failure, Outcome, command};
use serde::de::DeserializeOwned;

use crate::ninja::{self, Edge};
use crate::progress::while_building;
use crate::sys::sandbox;
use crate::sys::{fs, layout};
use crate::trees::SourceTree;
use crate::wrap::{self, DefineTest};

pub use machine::Machine;
pub use reuse::{Counterpart, Reuse};
pub use room::real_place;

/// What is the same for every tree of one build.
#[derive(Clone, Debug)]
pub struct Site {
    /// The scratch.
    pub scratch: Utf8PathBuf,
    /// Our own binary.
    pub own: Utf8PathBuf,
    /// Where compilers see things.
    pub place: Place,
    /// Whether the place is in a sandbox.
    pub sandboxed: bool,
    /// Root of the toolchain tree on this machine.
    pub toolchain: Utf8PathBuf,
    /// The toolchain tree's files.
    pub toolchain_tree: requal::tree::Tree,
    /// The toolchain tree's links.
    pub toolchain_links: Vec<requal::tree::Link>,
    /// Digest of the toolchain tree.
    pub toolchain_sha256: Digest,
    /// Digest of the host compiler: its programs, and the names of all files in its include folders.
    pub host_sha256: Digest,
    /// Ninja, relative to the toolchain.
    pub ninja: String,
    /// The host compiler.
    pub host: HostCompiler,
    /// Limits of the children.
    pub limits: Limits,
    /// Compiles at one time.
    pub jobs: u32,
}

/// A built module and its units.
#[derive(Clone, Debug)]
pub struct Built {
    /// The records of the units, in the plan's order.
    pub units: Vec<UnitRecord>,
    /// The record of the link.
    pub module: ModuleRecord,
    /// Units that this run compiled.
    pub compiled: usize,
    /// Units whose objects this run took from another tree; the others were still good.
    pub reused: usize,
    /// Whether this run linked.
    pub linked: bool,
    /// Limits as they held in Ninja.
    pub applied: Option<Applied>,
    /// The build folder on this machine.
    pub folder: Utf8PathBuf,
}

/// Builds `plan` from `tree`, taking what `reuse` offers.
///
/// # Errors
/// `E-BUILD` (exit 4) with the last lines of every failed step, `E-NINJA-DEPS`, `E-BUILD-RECORD` if what was built is
/// not what was recorded, and what the sandbox refuses.
pub fn build(
    site: &Site,
    tree: &SourceTree,
    plan: &ModulePlan,
    reuse: &Reuse<'_>,
    machine: &mut Machine,
) -> Outcome<Built> {
    let work = Work { site, tree, plan, reuse, folder: site.scratch.join("build").join(&tree.name) };
    let source = site.scratch.join("trees").join(&tree.name);
    tree.lay_out(&source)?;
    fs_err::create_dir_all(&work.folder)?;
    let room = room::prepare(site, tree, &source, &work.folder, reuse)?;

    let mut units = Vec::new();
    for unit in &plan.units {
        units.push(work.current_unit(unit, machine)?);
    }
    let mut applied = None;
    let missing: Vec<&UnitPlan> =
        plan.units.iter().zip(&units).filter(|(_, record)| record.is_none()).map(|(unit, _)| unit).collect();
    if !missing.is_empty() {
        work.write_offers(&missing, machine)?;
        let edges: Vec<Edge> = plan.units.iter().map(|unit| work.compile_edge(unit)).collect();
        applied = Some(work.run_ninja(&edges, room.as_ref())?);
        for (unit, record) in plan.units.iter().zip(&mut units) {
            *record = work.current_unit(unit, machine)?;
        }
    }
    let made: Vec<&str> = missing.iter().map(|unit| unit.object.as_str()).collect();
    let (mut records, mut reused) = (Vec::new(), 0);
    for (unit, record) in plan.units.iter().zip(units) {
        let record: UnitRecord = record.ok_or_else(|| unrecorded(&unit.object))?;
        let taken = record.decided.decision == Decision::Reused && made.contains(&unit.object.as_str());
        reused += usize::from(taken);
        records.push(work.decided_today(unit, record, machine));
    }
    let (compiled, units) = (made.len() - reused, records);

    let mut module = work.current_module(&units, machine)?;
    let linked = module.is_none();
    if linked {
        let edges: Vec<Edge> =
            plan.units.iter().map(|u| work.compile_edge(u)).chain([work.link_edge(&units)]).collect();
        applied = Some(work.run_ninja(&edges, room.as_ref())?);
        module = work.current_module(&units, machine)?;
    }
    let module = module.ok_or_else(|| unrecorded(&work.module_file()))?;
    Ok(Built { units, module, compiled, reused, linked, applied, folder: work.folder })
}

/// Compiles the units of `plan` from `tree` in a fresh build folder; nothing is taken from elsewhere, and nothing is linked.
///
/// # Errors
/// As [`build`].
pub fn recompile(site: &Site, tree: &SourceTree, plan: &ModulePlan) -> Outcome<Vec<UnitRecord>> {
    let (work, room) = Work::fresh(site, tree, plan)?;
    let edges: Vec<Edge> = plan.units.iter().map(|unit| work.compile_edge(unit)).collect();
    work.run_ninja(&edges, room.as_ref())?;
    let mut machine = Machine::default();
    let record =
        |unit: &UnitPlan| work.current_unit(unit, &mut machine)?.ok_or_else(|| unrecorded(&unit.object));
    plan.units.iter().map(record).collect()
}

/// Runs tests of unused name defines: number, object and test of each; the reason to compile, if there is one, in their order.
///
/// # Errors
/// As [`build`].
pub fn test_defines(
    site: &Site,
    tree: &SourceTree,
    plan: &ModulePlan,
    tests: &[(usize, String, DefineTest)],
) -> Outcome<Vec<Option<Decided>>> {
    if tests.is_empty() {
        return Ok(vec![]);
    }
    let (work, room) = Work::fresh(site, tree, plan)?;
    let mut edges = Vec::new();
    for (_, object, test) in tests {
        let path = wrap::define_test_path(object);
        fs::write(&work.folder.join(&path), &serde_json::to_vec(test).map_err(std::io::Error::from)?)?;
        let mut command = work.wrapper("defines", site.toolchain_sha256, object);
        command.push(format!("--test={path}"));
        command.push("--".to_owned());
        command.extend(test.wanted.iter().cloned());
        edges.push(Edge { output: wrap::tested_path(object).into_string(), inputs: vec![], command });
    }
    work.run_ninja(&edges, room.as_ref())?;
    let outcome = |(_, object, _): &(usize, String, DefineTest)| {
        let bytes = fs_err::read(work.folder.join(wrap::tested_path(object)))?;
        Ok(serde_json::from_slice(&bytes).map_err(std::io::Error::from)?)
    };
    tests.iter().map(outcome).collect()
}

pub(crate) fn unrecorded(output: &str) -> Box<Failure> {
    Failure::build_failed(
        "E-BUILD-RECORD",
        format!("{output} is not what its record says, right after it was made"),
    )
    .expected("the recorded digest and inputs")
    .found("another content: something else writes to the scratch, or an input changed meanwhile")
    .hint("run the same command again when nothing else uses the scratch")
}

struct Work<'a> {
    site: &'a Site,
    tree: &'a SourceTree,
    plan: &'a ModulePlan,
    reuse: &'a Reuse<'a>,
    folder: Utf8PathBuf,
}

impl<'a> Work<'a> {
    /// Work in a build folder of its own in which nothing was made, and the room for it.
    fn fresh(
        site: &'a Site,
        tree: &'a SourceTree,
        plan: &'a ModulePlan,
    ) -> Outcome<(Self, Option<sandbox::Room>)> {
        let folder = site.scratch.join("build").join(&tree.name);
        let source = site.scratch.join("trees").join(&tree.name);
        tree.lay_out(&source)?;
        fs_err::create_dir_all(&folder)?;
        let reuse = &Reuse::NoCounterpart;
        let room = room::prepare(site, tree, &source, &folder, reuse)?;
        Ok((Work { site, tree, plan, reuse, folder }, room))
    }
}

impl Work<'_> {
    fn module_file(&self) -> String {
        format!("{}.so", self.plan.module.name)
    }

    fn unit_key(&self, unit: &UnitPlan) -> Digest {
        self.key(&unit.argv, self.tree.tree.digest())
    }

    /// The objects' digests take the place of the tree: a link reads nothing else of it.
    fn module_key(&self, units: &[UnitRecord]) -> Digest {
        let objects: Vec<u8> = units.iter().flat_map(|unit| *unit.object_sha256.as_bytes()).collect();
        self.key(&self.plan.link_argv, Digest::of(&objects))
    }

    fn key(&self, argv: &[String], tree: Digest) -> Digest {
        let place = &self.site.place;
        key(KeyParts {
            argv,
            environment: &command::environment(&self.site.limits),
            trees: [self.site.toolchain_sha256, tree, self.site.host_sha256],
            place: [&place.toolchain, &place.tree, &place.build, &place.host],
        })
    }

    /// The record of `unit` if the object that stands there is still good; else the object is removed.
    fn current_unit(&self, unit: &UnitPlan, machine: &mut Machine) -> Outcome<Option<UnitRecord>> {
        let record: Option<UnitRecord> = self.record(&unit.object);
        let key = self.unit_key(unit);
        let good = |r: &UnitRecord| {
            r.key == key
                && self.is(&unit.object, r.object_sha256, r.depfile_sha256)
                && self.unchanged(&r.closure, machine)
                && self.still_taken(unit, r, machine)
        };
        self.keep_or_remove(&unit.object, record.filter(good))
    }

    fn current_module(&self, units: &[UnitRecord], machine: &mut Machine) -> Outcome<Option<ModuleRecord>> {
        let file = self.module_file();
        let record: Option<ModuleRecord> = self.record(&file);
        let key = self.module_key(units);
        let good = |r: &ModuleRecord| {
            r.key == key && self.is(&file, r.sha256, r.depfile_sha256) && self.unchanged(&r.closure, machine)
        };
        self.keep_or_remove(&file, record.filter(good))
    }

    fn keep_or_remove<T>(&self, output: &str, record: Option<T>) -> Outcome<Option<T>> {
        if record.is_none() {
            layout::remove_if_there(&self.folder.join(output))?;
            layout::remove_if_there(&wrap::refusal_path(&self.folder, output))?;
        }
        Ok(record)
    }

    /// A record that cannot be read is as good as none: the step is done again.
    fn record<T: DeserializeOwned>(&self, output: &str) -> Option<T> {
        let bytes = fs_err::read(wrap::record_path(&self.folder, output)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Whether every recorded file is the one that the trees list and the machine has: a file that was changed while a
    /// compile read it, and put back after, made an object that nobody may keep.
    fn unchanged(&self, closure: &Closure, machine: &mut Machine) -> bool {
        let lists = self.lists();
        let same = |(at, file): (&Located, &File)| {
            let found = lists.find(at).unwrap_or_else(|| machine.find(self.site, closure, at));
            matches!(found, Found::File(found) if found.sha256 == file.sha256)
        };
        closure.files.iter().all(same)
    }

    fn lists(&self) -> Lists<'_> {
        let (tree, toolchain) = (&self.tree.tree.files, &self.site.toolchain_tree.files);
        Lists { tree, toolchain, links: &self.site.toolchain_links }
    }

    /// Whether `output` and the kept copy of its dependency file have these digests.
    fn is(&self, output: &str, digest: Digest, depfile: Digest) -> bool {
        file_digest(&self.folder.join(output)) == Some(digest)
            && file_digest(&wrap::depfile_path(&self.folder, output)) == Some(depfile)
    }

    fn compile_edge(&self, unit: &UnitPlan) -> Edge {
        let mut command = self.wrapper("compile", self.unit_key(unit), &unit.object);
        if !unit.targets.is_empty() {
            command.push(targets(&unit.targets));
        }
        if self.reuse.is_offered() {
            command.push(format!("--offer={}", wrap::offer_path(&unit.object)));
        }
        command.push("--".to_owned());
        command.extend(unit.argv.iter().cloned());
        let input = format!("{}/{}", self.site.place.tree, unit.source);
        Edge { output: unit.object.clone(), inputs: vec![input], command }
    }

    fn link_edge(&self, units: &[UnitRecord]) -> Edge {
        let (plan, output) = (self.plan, self.module_file());
        let mut command = self.wrapper("link", self.module_key(units), &output);
        command.push(targets(&plan.targets));
        command.push(format!("--exports={}", plan.module.exports.join(",")));
        command.push(format!("--libraries={}", plan.module.libraries.join(",")));
        command.push("--".to_owned());
        command.extend(plan.link_argv.iter().cloned());
        Edge { output, inputs: plan.units.iter().map(|unit| unit.object.clone()).collect(), command }
    }

    fn wrapper(&self, kind: &str, key: Digest, output: &str) -> Vec<String> {
        let own = if self.site.sandboxed { room::OWN.to_owned() } else { self.site.own.to_string() };
        let mut words = vec![own];
        words.extend(wrap::arguments(kind, key, &self.site.place, &self.site.host.mounts, output));
        words
    }

    /// The refusals of all steps of `edges` that gave none of their output, in the paths of this machine.
    fn refused_steps(&self, edges: &[Edge]) -> Outcome<()> {
        let refusal = |edge: &Edge| {
            let text = fs_err::read_to_string(wrap::refusal_path(&self.folder, &edge.output)).ok()?;
            let here = self.in_this_machines_paths(&text);
            let what = format!("{} of module {} was not made", edge.output, self.plan.module.name);
            let log = wrap::log_path(&self.folder, &edge.output);
            Some(
                Failure::build_failed("E-BUILD", what)
                    .found(here.trim_end())
                    .hint(format!("the whole output: {log}")),
            )
        };
        let missing = edges.iter().filter(|edge| !self.folder.join(&edge.output).exists());
        Failure::all(missing.filter_map(refusal).collect())
    }

    /// `text` with the paths of the place turned into those of this machine, so that a command line in it can be pasted.
    fn in_this_machines_paths(&self, text: &str) -> String {
        let (place, scratch) = (&self.site.place, &self.site.scratch);
        let source = scratch.join("trees").join(&self.tree.name);
        text.replace(&place.build, self.folder.as_str())
            .replace(&place.tree, source.as_str())
            .replace(&place.toolchain, self.site.toolchain.as_str())
            .replace(&place.host, "/usr/bin")
    }

    /// Runs Ninja on `edges`, then reads back what it remembers of their inputs.
    fn run_ninja(&self, edges: &[Edge], room: Option<&sandbox::Room>) -> Outcome<Applied> {
        let site = self.site;
        fs::write(&self.folder.join("build.ninja"), ninja::file(edges).as_bytes())?;
        let jobs = site.jobs.to_string();
        let log = site.scratch.join("log").join(format!("{}.log", self.plan.module.name));
        let call = room::ninja_call(site, &["-j", &jobs, "-k", "0"]).log(&log);
        // What was not good was removed, so what is there now is made.
        let made = || edges.iter().filter(|edge| self.folder.join(&edge.output).exists()).count();
        let name = &self.plan.module.name;
        let ran =
            while_building(name, edges.len(), made, || sandbox::run(&site.own, &call, room, &site.limits))?;
        if ran.ended.code != 0 {
            self.refused_steps(edges)?;
            return Err(call.failed(requal::Exit::BuildFailed, "E-BUILD", &ran.ended));
        }
        let outputs: Vec<&str> = edges.iter().map(|edge| edge.output.as_str()).collect();
        let ask: Vec<&str> = ["-t", "deps"].into_iter().chain(outputs.iter().copied()).collect();
        let answer = sandbox::run(&site.own, &room::ninja_call(site, &ask), room, &site.limits)?;
        ninja::judge_deps(&outputs, &answer.ended.output)?;
        Ok(ran.applied)
    }
}

fn targets(targets: &[Target]) -> String {
    format!("--targets={}", targets.iter().map(Target::to_string).collect::<Vec<_>>().join(","))
}

fn file_digest(path: &Utf8Path) -> Option<Digest> {
    let file = fs_err::File::open(path).ok()?;
    Digest::of_reader(file).ok().map(|(digest, _)| digest)
}
