//! `verify --recompile`: compiles published units again from sources and wheels alone, in a place of its own and under
//! observation, and hands what it saw to the verdict.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use requal::certificate::{Certificate, Unit};
use requal::challenge::{Candidate, Drawn, Grade, Graded, Nonce, Wanted, grade, sample};
use requal::closure::{Closure, Located};
use requal::command;
use requal::plan::{self, ModulePlan, UnitPlan};
use requal::receipt::Decision;
use requal::reuse::{Decided, compare};
use requal::tree::Tree;
use requal::unit::UnitRecord;
use requal::verify::{self, Published, Reproduced, ReproducedUnit};
use requal::verify_command::{self, Verify};
use requal::wheel::Pinned;
use requal::{Digest, Exit, Failure, Outcome};

use crate::build_runtime::ninja;
use crate::compile::{self, Site};
use crate::sys::sandbox::{self, Mode};
use crate::sys::{env, fs, proc, scratch};
use crate::trees::{self, SourceTree};
use crate::wrap::DefineTest;
use crate::{fetch, preflight, say, unpack};

/// What the command line asks for.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is verified.
    pub verify: Verify,
    /// How many units are compiled again.
    pub wanted: Wanted,
    /// The auditor's random bytes.
    pub nonce: Nonce,
    /// Where the auditor compiles.
    pub scratch: Utf8PathBuf,
    /// Where sources are read from.
    pub repository: Utf8PathBuf,
    /// Where wheels come from.
    pub origin: fetch::Origin,
}

/// Compiles the drawn units and gives the verdict.
///
/// # Errors
/// `E-CHALLENGE-TOOLCHAIN` or `E-CHALLENGE-TREE` (exit 3) if what is at hand is not what the receipt names, and what
/// fetching, unpacking, the sandbox and compiles refuse.
pub fn run(options: &Options) -> Outcome<(String, Exit)> {
    let request = options.verify.request();
    let published = verify::published(&request.receipts)?;
    let _held = scratch::hold(&options.scratch)?;
    let site = site(options, &published)?;
    let trees = sources(options, &published)?;
    let certificate = &published.certificate.record.predicate;
    let drawn = draw(options, &published);
    let mut reproduced = Reproduced {
        nonce: options.nonce.clone(),
        kinds: kinds(certificate, &drawn),
        units: vec![],
        defines: vec![],
    };
    for tree in &trees {
        let Some(plan) = plan_of(&published, tree)? else { continue };
        let challenge = Challenge { site: &site, tree, plan: &plan, certificate, request: &request };
        let own: Vec<usize> =
            drawn.iter().copied().filter(|i| *certificate.units[*i].tree == *tree.name).collect();
        say::stage(&format!("compile {} units of {} again", own.len(), tree.name));
        reproduced.units.extend(challenge.compile(&own)?);
        reproduced.defines.extend(challenge.test_defines()?);
    }
    reproduced.units.sort_by_key(|one| one.unit);
    let verdict = verify::with_challenge(&request, &reproduced)?;
    verify_command::say(&options.verify, &verdict)
}

fn draw(options: &Options, published: &Published) -> Vec<usize> {
    let units = &published.certificate.record.predicate.units;
    let candidate = |unit: &'_ Unit| (unit.tree.to_string(), unit.object.to_string(), reused(unit));
    let named: Vec<(String, String, bool)> = units.iter().map(candidate).collect();
    let candidates: Vec<Candidate<'_>> =
        named.iter().map(|(tree, object, reused)| Candidate { tree, object, reused: *reused }).collect();
    sample(&options.nonce, published.certificate.sha256, &candidates, options.wanted)
}

fn reused(unit: &Unit) -> bool {
    unit.decision == Decision::Reused
}

/// Reused and compiled units, and how many of each were drawn.
fn kinds(certificate: &Certificate, drawn: &[usize]) -> [Drawn; 2] {
    [true, false].map(|kind| Drawn {
        population: certificate.units.iter().filter(|unit| reused(unit) == kind).count(),
        sample: drawn.iter().filter(|i| reused(&certificate.units[**i]) == kind).count(),
    })
}

/// The auditor's own toolchain, from the published lock, and a place to compile in.
fn site(options: &Options, published: &Published) -> Outcome<Site> {
    let build = &published.receipt.predicate.build;
    say::stage("fetch and unpack the toolchain of the published lock");
    let fetched = fetch::fetch(&published.lock.packages, &options.origin)?;
    let wheels: Vec<Pinned> = fetched.into_iter().map(|wheel| wheel.pinned).collect();
    let toolchain = unpack::unpack(&wheels, &unpack::toolchain_links(), &options.scratch.join("toolchain"))?;
    same("E-CHALLENGE-TOOLCHAIN", "the toolchain", build.toolchain.tree_sha256, toolchain.tree.digest())?;
    let preflight = preflight::check(&toolchain.root, &published.lock, &options.scratch, &env::all())?;
    let own = proc::own_binary()?;
    let mode = if build.place.sandboxed { Mode::Require } else { Mode::Off };
    let sandboxed = sandbox::probe(&own, mode)? == sandbox::Place::Sandbox;
    // Nothing of an earlier challenge is good enough for this one.
    let folder = options.scratch.join("challenge");
    fs::remove(&folder)?;
    let place = if sandboxed { command::Place::fixed() } else { compile::real_place(&folder)? };
    let limits = published.receipt.predicate.run.limits.requested.clone();
    let host_sha256 = compile::room::host_digest(&preflight.host);
    Ok(Site {
        scratch: folder,
        own,
        place,
        sandboxed,
        toolchain: toolchain.root,
        toolchain_sha256: toolchain.tree.digest(),
        toolchain_tree: toolchain.tree,
        toolchain_links: toolchain.links,
        host_sha256,
        ninja: ninja(&published.lock)?,
        host: preflight.host,
        jobs: crate::sys::limits::jobs(&limits),
        limits,
    })
}

/// The source trees of the published manifest, from the repository.
fn sources(options: &Options, published: &Published) -> Outcome<Vec<SourceTree>> {
    let trees = trees::collect(&options.repository, &published.manifest)?;
    for tree in &trees {
        let told = published.receipt.predicate.build.trees.iter().find(|told| *told.name == *tree.name);
        let told = told.map_or(Digest::of(b""), |told| told.tree_sha256);
        same("E-CHALLENGE-TREE", &format!("tree {}", tree.name), told, tree.tree.digest())?;
    }
    Ok(trees)
}

fn same(code: &'static str, what: &str, expected: Digest, found: Digest) -> Outcome<()> {
    if expected == found {
        return Ok(());
    }
    Err(Failure::could_not_judge(code, format!("{what} at hand is not the one that the receipt names"))
        .expected(expected)
        .found(found)
        .hint("check out the sources and the lock of the published build"))
}

fn plan_of(published: &Published, tree: &SourceTree) -> Outcome<Option<ModulePlan>> {
    let manifest = &published.manifest;
    let host = &published.receipt.predicate.build.host_compiler.path;
    let Some(module) = manifest.modules.iter().find(|module| module.tree == tree.name) else {
        return Ok(None);
    };
    plan::module(manifest, module, &Tree::new(tree.tree.files.clone()), host).map(Some)
}

/// The challenge of one tree.
struct Challenge<'a> {
    site: &'a Site,
    tree: &'a SourceTree,
    plan: &'a ModulePlan,
    certificate: &'a Certificate,
    request: &'a verify::Request,
}

impl Challenge<'_> {
    /// Compiles the units of these rows; one that the manifest does not have is judged at level 2.
    fn compile(&self, rows: &[usize]) -> Outcome<Vec<ReproducedUnit>> {
        let planned = |row: &usize| Some((*row, self.unit_plan(&self.certificate.units[*row])?.clone()));
        let (rows, units): (Vec<usize>, Vec<UnitPlan>) = rows.iter().filter_map(planned).unzip();
        if units.is_empty() {
            return Ok(vec![]);
        }
        let plan = ModulePlan { units, ..self.plan.clone() };
        let records = compile::recompile(self.site, self.tree, &plan)?;
        rows.iter()
            .zip(&plan.units)
            .zip(&records)
            .map(|((row, unit), record)| self.compared(*row, unit, record))
            .collect()
    }

    fn unit_plan(&self, unit: &Unit) -> Option<&UnitPlan> {
        self.plan.units.iter().find(|plan| plan.source == *unit.source)
    }

    /// The object and the closure of one compile against the certificate.
    fn compared(&self, row: usize, plan: &UnitPlan, record: &UnitRecord) -> Outcome<ReproducedUnit> {
        let unit = &self.certificate.units[row];
        let graded = if record.object_sha256 == unit.object_sha256 {
            Graded { grade: Grade::BitIdentical, sections: vec![] }
        } else {
            self.graded(unit, plan)?
        };
        let closure_differs = match self.certificate.closure(unit) {
            None => Some("rows beyond the tables".to_owned()),
            Some(_) if !record.bars.is_empty() => {
                record.bars.first().map(|bar| format!("not observed: {}", bar.about))
            }
            Some(closure) => self.closure_differs(unit, &closure, record),
        };
        Ok(ReproducedUnit { unit: row, graded, closure_differs })
    }

    /// How much of an object that is not the published one is the same, if the published bytes are at hand.
    fn graded(&self, unit: &Unit, plan: &UnitPlan) -> Outcome<Graded> {
        let below = |scratch: &Utf8Path| scratch.join("build").join(&*unit.tree).join(&*unit.object);
        let rebuilt = fs_err::read(below(&self.site.scratch))?;
        let published = self.request.tree.as_deref().and_then(|tree| fs_err::read(below(tree)).ok());
        match published.filter(|bytes| Digest::of(bytes) == unit.object_sha256) {
            Some(published) => grade(&unit.object, &published, &rebuilt, &plan.targets),
            None => Ok(Graded {
                grade: Grade::Differs,
                sections: vec!["which ones is not known without the published bytes (--tree):".to_owned()],
            }),
        }
    }

    /// The first thing that the certified closure has otherwise than this compile, or lacks.
    fn closure_differs(&self, unit: &Unit, certified: &Closure, record: &UnitRecord) -> Option<String> {
        let mut invocation = record.invocation.clone();
        invocation.place = self.certificate.invocation(unit).place;
        let observed = &record.closure;
        let look =
            |at: &Located| observed.find(at).unwrap_or(requal::closure::Found::Other("not-asked-for".into()));
        let names = BTreeSet::new();
        let comparison = compare(&self.certificate.invocation(unit), certified, &invocation, &names, look);
        if let Some(difference) = comparison.differences.first() {
            return Some(format!(
                "{}: certified {}, observed {}",
                difference.about, difference.recorded, difference.found
            ));
        }
        let known: BTreeSet<&Located> = certified.places().collect();
        let missing = observed.places().find(|at| !known.contains(at))?;
        Some(format!("{missing}: observed, and not in the certificate"))
    }

    /// Tests again that the names are unused, for each reused unit whose command differs from its counterpart's.
    fn test_defines(&self) -> Outcome<Vec<(usize, Option<Decided>)>> {
        let mut tests = Vec::new();
        for (row, unit) in self.certificate.units.iter().enumerate() {
            if *unit.tree != *self.tree.name || !reused(unit) || unit.unused.is_empty() {
                continue;
            }
            let pair = self.certificate.pairs.iter().find(|pair| pair.tree == unit.tree);
            let Some((pair, plan)) = pair.zip(self.unit_plan(unit)) else { continue };
            let other = |other: &&Unit| other.tree == pair.counterpart && other.source == unit.source;
            let Some(other) = self.certificate.units.iter().find(other) else { continue };
            let test = DefineTest {
                recorded: self.certificate.invocation(other).argv,
                wanted: plan.argv.clone(),
                names: pair.name_defines.iter().map(ToString::to_string).collect(),
                closure_sha256: unit.closure_sha256,
            };
            tests.push((row, plan.object.clone(), test));
        }
        let outcomes = compile::test_defines(self.site, self.tree, self.plan, &tests)?;
        Ok(tests.iter().map(|(row, ..)| *row).zip(outcomes).collect())
    }
}
