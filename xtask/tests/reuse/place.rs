//! Where worlds are compiled: the real wrapper in the real room, at the one place that all builds have.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use requal::Digest;
use requal::command::Place;
use requal::limits::Limits;
use requal::target::Target;
use requal::tree::mtime_s;
use requal::unit::{Offer, Taking, UnitRecord};
use requal::versions::HostCompiler;
use xtask::sys::fs::write;
use xtask::sys::proc::Call;
use xtask::sys::sandbox::{Link, Mount, Room, run};
use xtask::unpack::Toolchain;

use crate::kit;
use crate::world::{NAME, World, lay_out};

/// Where the folder of the machine lies in the room.
pub(crate) const OUTSIDE: &str = "/opt/outside";
const OWN: &str = "/requal/bin/xtask";

/// The real toolchain and host compiler, and a build folder.
pub(crate) struct Ground {
    _folder: tempfile::TempDir,
    root: Utf8PathBuf,
    /// The unpacked toolchain.
    pub(crate) toolchain: Toolchain,
    /// The host compiler.
    pub(crate) host: HostCompiler,
    /// The A side of worlds that were compiled before.
    known: BTreeMap<Digest, Made>,
}

/// An object and the record of how it came about.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) record: UnitRecord,
    pub(crate) object: Vec<u8>,
}

/// An ended compile: what it made, or what it said.
pub(crate) type Ended = Result<Made, String>;

impl Ground {
    pub(crate) fn new() -> Self {
        let (folder, root) = kit::folder();
        let toolchain = kit::real::unpacked();
        let caller = kit::variables(&[("PATH", "/usr/bin:/bin")]);
        let found = xtask::host_compiler::find(&caller).unwrap();
        let host = xtask::host_compiler::probe(&found, 15, &caller).unwrap();
        kit::copy(&kit::own(), &root.join("xtask"), "755");
        fs_err::create_dir(root.join("build")).unwrap();
        Self { _folder: folder, root, toolchain, host, known: BTreeMap::new() }
    }

    /// A folder of the room as the machine has it.
    pub(crate) fn on_machine(&self, name: &str) -> Utf8PathBuf {
        self.root.join(name)
    }

    /// A file of the toolchain as `world` has it.
    pub(crate) fn tool(&self, world: &World, path: &str) -> Utf8PathBuf {
        if world.tools.contains_key(path) {
            self.root.join("tools").join(path)
        } else {
            self.toolchain.root.join(path)
        }
    }

    /// Compiles `world` under observation, or gives what was made of it before.
    pub(crate) fn first(&mut self, world: &World) -> Made {
        let key = Digest::of(format!("{world:?}").as_bytes());
        if let Some(made) = self.known.get(&key) {
            return made.clone();
        }
        let made = self.compile(world).unwrap_or_else(|said| panic!("{said}\n{world:#?}"));
        self.known.insert(key, made.clone());
        made
    }

    /// Compiles `world`.
    pub(crate) fn compile(&self, world: &World) -> Ended {
        self.lay_out(world);
        self.step(world, &[])
    }

    /// Asks for `world`, which is offered the object of `made`.
    pub(crate) fn ask(&self, world: &World, made: &Made) -> Ended {
        self.lay_out(world);
        self.take(world, made)
    }

    /// The same in a world that is laid out already.
    pub(crate) fn take(&self, world: &World, made: &Made) -> Ended {
        let build = self.root.join("build");
        write(&build.join("offered.o"), &made.object).unwrap();
        let (record, object) = (made.record.clone(), "/requal/build/offered.o".to_owned());
        let offer = Offer::Take(Box::new(Taking { record, object, names: names() }));
        write(&build.join("offer.json"), &serde_json::to_vec(&offer).unwrap()).unwrap();
        self.step(world, &["--offer=offer.json"])
    }

    /// Writes everything that `world` has.
    pub(crate) fn lay_out(&self, world: &World) {
        lay_out(&self.root.join("tree"), &world.tree);
        lay_out(&self.root.join("outside"), &world.outside);
        xtask::sys::fs::remove(&self.root.join("tools")).unwrap();
        for (path, added) in &world.tools {
            let (from, to) = (self.toolchain.root.join(path), self.root.join("tools").join(path));
            let text = format!(
                "mkdir -p {} && cp {from} {to} && chmod 755 {to} && printf '{added}' >> {to} && touch -d @{} {to}",
                to.parent().unwrap(),
                mtime_s(path)
            );
            let ended = kit::script(&text).run().unwrap();
            assert_eq!(ended.code, 0, "{}", ended.output);
        }
    }

    /// One run of the wrapper.
    fn step(&self, world: &World, more: &[&str]) -> Ended {
        let (build, object, place) = (self.root.join("build"), world.object(), Place::fixed());
        for path in [object.clone(), format!("record/{object}.json"), format!("unused/{object}.json")] {
            xtask::sys::layout::remove_if_there(&build.join(path)).unwrap();
        }
        let mut system = self.host.mounts.clone();
        system.push(OUTSIDE.into());
        let key = Digest::of(b"a test's");
        let mut args = xtask::wrap::arguments("compile", key, &place, &system, &object);
        if !world.targets.is_empty() {
            let targets: Vec<_> = world.targets.iter().map(Target::to_string).collect();
            args.push(format!("--targets={}", targets.join(",")));
        }
        args.extend(more.iter().map(ToString::to_string));
        args.push("--".to_owned());
        args.extend(world.argv.iter().cloned());
        let environment = world.environment.iter();
        let env = environment.map(|(name, value)| (name.clone(), place.resolve(value, &object))).collect();
        let call = Call { program: OWN.into(), args, env, cwd: "/requal/build".into(), log: None };
        let ran = run(&self.root.join("xtask"), &call, Some(&self.room(world)), &Limits::default()).unwrap();
        if ran.ended.code != 0 {
            return Err(ran.ended.output);
        }
        let record = fs_err::read(build.join(format!("record/{object}.json"))).unwrap();
        let record = serde_json::from_slice(&record).unwrap();
        Ok(Made { record, object: fs_err::read(build.join(object)).unwrap() })
    }

    fn room(&self, world: &World) -> Room {
        let mount =
            |to: &str, from: &Utf8Path, writable| Mount { to: to.into(), from: from.to_owned(), writable };
        let mut room = Room { mounts: Vec::new(), links: kit::room().links };
        room.mounts.extend(self.host.mounts.iter().map(|path| mount(path.as_str(), path, false)));
        room.mounts.push(mount("/requal/toolchain", &self.toolchain.root, false));
        room.mounts.push(mount("/requal/tree", &self.root.join("tree"), false));
        room.mounts.push(mount("/requal/build", &self.root.join("build"), true));
        room.mounts.push(mount(OWN, &self.root.join("xtask"), false));
        room.mounts.push(mount(OUTSIDE, &self.root.join("outside"), false));
        for path in world.tools.keys() {
            room.mounts.push(mount(&format!("/requal/toolchain/{path}"), &self.tool(world, path), false));
        }
        let on_path =
            self.host.programs.iter().filter(|program| ["as", "ld"].contains(&program.name.as_str()));
        let link =
            |name: &str, to: &Utf8PathBuf| Link { at: format!("/requal/host/{name}").into(), to: to.clone() };
        room.links.extend(on_path.map(|program| link(&program.name, &program.path)));
        room
    }
}

/// The names of the name defines.
pub(crate) fn names() -> BTreeSet<String> {
    [NAME.to_owned()].into()
}
