//! The fixture with a certificate: one unit reused, one compiled for each kind of reason, and the dependency files kept.

use std::collections::BTreeSet;

use requal::certificate::{Certificate, FILE, ObjectReuse, Pair, Parts, UnitParts};
use requal::closure::{Closure, File, Found, Located, names_digest};
use requal::command::{self, Place};
use requal::limits::Limits;
use requal::receipt::{
    Artifact, Build, CertificateFile, DigestSet, Limitation, Reason, Root, RuntimeBuild, Subject,
    Unit as Told,
};
use requal::reuse::{Answer, Decided, Invocation, Lists, decide};
use requal::tree::mtime_s;
use requal::unit::UnitRecord;
use requal::{Digest, depfile, gzip, json};
use serde_json::Value;

use crate::fixture::{Fixture, Size, name, path, put};

/// A build with its certificate, both as values.
pub(crate) struct Certified {
    /// The build and its receipt.
    pub(crate) fixture: Fixture,
    /// The certificate that [`Certified::publish`] writes.
    pub(crate) certificate: Value,
}

impl Certified {
    /// An untampered build of three modules: of facc's units `a.cu` reads the changed header, `b.cpp` is taken from stock,
    /// and `c.cpp` uses its module's name.
    pub(crate) fn new() -> Self {
        Self::of(&["stock", "facc", "p2p"], Size::Certified)
    }

    /// The least build with a certificate: the pair alone, and without `c.cpp`.
    pub(crate) fn small() -> Self {
        Self::of(&["stock", "facc"], Size::Paired)
    }

    fn of(names: &[&str], size: Size) -> Self {
        let mut fixture = Fixture::sized(names, size);
        let mut receipt: RuntimeBuild = json::read_record(&fixture.bytes()).unwrap();
        let build = &mut receipt.predicate.build;
        let records = records(build);
        let certificate = serde_json::to_value(certificate(build, &records)).unwrap();
        told(build, &records);
        for (unit, record) in build.units.iter().zip(&records) {
            let kept = format!("build/{}/dep/{}.d", unit.tree, unit.object);
            put(&fixture.scratch.join(kept), dependencies(unit, &record.closure).as_bytes());
        }
        // Digests are written when the certificate is published.
        let none = Digest::of(b"");
        build.certificate = Some(CertificateFile { file: path(FILE), sha256: none, size_bytes: 0 });
        receipt.predicate.run.certificate = Some(Artifact { file: path(FILE), sha256: none, size_bytes: 0 });
        fixture.value = serde_json::to_value(receipt).unwrap();
        let mut certified = Self { fixture, certificate };
        certified.publish();
        certified
    }

    /// The certificate's canonical text.
    pub(crate) fn text(&self) -> Vec<u8> {
        format!("{:#}\n", self.certificate).into_bytes()
    }

    /// Writes the certificate in its canonical form, and the receipt with its digests: only the meaning can be at fault.
    pub(crate) fn publish(&mut self) {
        let text = self.text();
        self.publish_text(&text);
    }

    /// Writes `text` as the certificate, and the receipt with its digests.
    pub(crate) fn publish_text(&mut self, text: &[u8]) {
        let compressed = gzip::write(text);
        put(&self.file(), &compressed);
        let (named, told) = ("/predicate/build/certificate", "/predicate/run/certificate");
        for (pointer, bytes) in [(named, text), (told, &compressed)] {
            // A tampering may have removed either.
            if let Some(fields) = self.fixture.value.pointer_mut(pointer) {
                fields["sha256"] = Digest::of(bytes).to_string().into();
                fields["size_bytes"] = bytes.len().into();
            }
        }
        self.fixture.publish();
    }

    /// Makes anew what follows from the rest of the certificate: closures' digests, counts, controls, subjects.
    pub(crate) fn follow(&mut self) {
        let mut record: ObjectReuse = serde_json::from_value(self.certificate.clone()).unwrap();
        let certificate = &mut record.predicate;
        let names = certificate.names();
        let digests: Vec<_> =
            certificate.units.iter().map(|unit| certificate.closure_sha256(unit, &names)).collect();
        for (unit, digest) in certificate.units.iter_mut().zip(digests) {
            unit.closure_sha256 = digest.unwrap_or(unit.closure_sha256);
        }
        certificate.totals = certificate.counted();
        certificate.controls = certificate.tried().unwrap_or_else(|_| certificate.controls.clone());
        record.subject = subjects(certificate);
        self.certificate = serde_json::to_value(record).unwrap();
    }

    /// Path of the compressed certificate.
    pub(crate) fn file(&self) -> camino::Utf8PathBuf {
        self.fixture.receipts().join(FILE)
    }

    /// Changes certificate and receipt and publishes both.
    pub(crate) fn tamper(&mut self, change: impl FnOnce(&mut Value, &mut Value)) {
        change(&mut self.certificate, &mut self.fixture.value);
        self.publish();
    }
}

fn subjects(certificate: &Certificate) -> Vec<Subject> {
    let subject = |unit: &requal::certificate::Unit| Subject {
        name: path(&format!("{}/{}", unit.tree, unit.object)),
        digest: DigestSet { sha256: unit.object_sha256 },
    };
    certificate.units.iter().map(subject).collect()
}

/// The record of each unit, decided as a build decides.
fn records(build: &Build) -> Vec<UnitRecord> {
    let mut records: Vec<UnitRecord> = Vec::new();
    for unit in &build.units {
        let invocation = invocation(unit);
        let stock =
            build.units.iter().position(|other| *other.tree == *"stock" && other.source == unit.source);
        let (decided, closure) = match stock.filter(|_| *unit.tree == *"facc") {
            None => (Decided::compiled(Reason::NoCounterpart), observed(build, unit)),
            Some(stock) => decision(build, unit, &records[stock], &invocation),
        };
        records.push(UnitRecord {
            key: Digest::of(b"key"),
            invocation,
            closure,
            bars: vec![],
            decided,
            depfile_sha256: Digest::of(b"depfile"),
            object_sha256: unit.object_sha256,
            size_bytes: unit.size_bytes,
            device_code_sha256: unit.device_code_sha256,
            targets: unit.targets.clone(),
            kernels: unit.kernels.clone(),
        });
    }
    records
}

/// The decision for `unit` of facc, whose counterpart is `other`, and the closure that its record keeps.
fn decision(build: &Build, unit: &Told, other: &UnitRecord, wanted: &Invocation) -> (Decided, Closure) {
    let names = BTreeSet::from(["NAME".to_owned()]);
    let lists = lists(build, unit);
    let look = |at: &Located| lists.find(at).or_else(|| other.closure.find(at)).unwrap_or(Found::Absent);
    match decide(other.recorded(), wanted, &names, look) {
        Answer::Compile(decided) => (decided, observed(build, unit)),
        Answer::Take { .. } if *unit.source == *"c.cpp" => {
            (Decided::compiled_about(Reason::NameDefineUsed, "NAME"), observed(build, unit))
        }
        Answer::Take { .. } => (Decided::reused(names.into_iter().collect()), other.closure.clone()),
    }
}

fn lists<'a>(build: &'a Build, unit: &Told) -> Lists<'a> {
    let tree = build.trees.iter().find(|tree| tree.name == unit.tree).unwrap();
    Lists { tree: &tree.files, toolchain: &build.toolchain.files, links: &build.toolchain.links }
}

fn invocation(unit: &Told) -> Invocation {
    let place = Place::recorded(true);
    let argv = unit.argv.iter().map(|word| place.named(word, &unit.object)).collect();
    Invocation { argv, environment: command::environment(&Limits::default()), place }
}

/// What a compile of `unit` would be seen to read, and not to find; of facc and stock `a.cu` alone reads the header.
fn observed(build: &Build, unit: &Told) -> Closure {
    let lists = lists(build, unit);
    let at = |root, path: &str| Located::new(root, path).unwrap();
    let mut closure = Closure::default();
    let mut places = vec![
        at(Root::Tree, &unit.source),
        at(Root::Toolchain, "include/cuda.h"),
        at(Root::Toolchain, "nvidia/cu13/bin/nvcc"),
    ];
    places.extend((*unit.source == *"a.cu").then(|| at(Root::Tree, "acc.cuh")));
    for place in places {
        let Some(Found::File(file)) = lists.find(&place) else { panic!("{place}") };
        assert_eq!(file.mtime_s, mtime_s(&place.path));
        closure.files.insert(place, file);
    }
    let bytes = fs_err::read("/usr/bin/env").unwrap();
    let machine = File { sha256: Digest::of(&bytes), size_bytes: bytes.len() as u64, mtime_s: 1_700_000_000 };
    closure.files.insert(at(Root::System, "usr/bin/env"), machine);
    closure.absent.extend([
        at(Root::Tree, "crt/host_runtime.h"),
        at(Root::Tree, "inc/none.h"),
        at(Root::Toolchain, "include/none.h"),
        at(Root::System, "usr/include/none.h"),
    ]);
    closure.folders.extend([at(Root::Toolchain, "include"), at(Root::System, "usr/include")]);
    let libraries = ["libcudart.so", "libcudart.so.13"];
    closure.listed.insert(at(Root::Toolchain, "lib"), names_digest(libraries.into_iter()));
    closure.links.insert(
        at(Root::Toolchain, "lib/libcudart.so"),
        requal::receipt::LinkText::new("libcudart.so.13").unwrap(),
    );
    closure
}

/// The kept dependency file: what the compiler itself says that it read.
fn dependencies(unit: &Told, closure: &Closure) -> String {
    let place = Place::fixed();
    let named = |at: &Located| match at.root {
        Root::Tree => format!("{}/{}", place.tree, at.path),
        Root::Toolchain => format!("{}/{}", place.toolchain, at.path),
        Root::Host => format!("{}/{}", place.host, at.path),
        Root::System => format!("/{}", at.path),
    };
    depfile::write(&unit.object, &closure.files.keys().map(named).collect::<Vec<_>>())
}

fn certificate(build: &Build, records: &[UnitRecord]) -> ObjectReuse {
    let units = build.units.iter().zip(records).map(|(unit, record)| UnitParts {
        tree: &unit.tree,
        source: &unit.source,
        object: &unit.object,
        record,
    });
    let paired = build.trees.iter().any(|tree| *tree.name == *"facc");
    let pair = Pair { tree: name("facc"), counterpart: name("stock"), name_defines: vec![name("NAME")] };
    let parts = Parts {
        place: Place::recorded(true),
        environment: command::environment(&Limits::default()),
        pairs: paired.then_some(pair).into_iter().collect(),
        units: units.collect(),
    };
    ObjectReuse::of(&parts).unwrap()
}

/// Tells in the receipt what the records say: inputs, decisions, and that nothing is off the record.
fn told(build: &mut Build, records: &[UnitRecord]) {
    let inputs: BTreeSet<_> = records.iter().flat_map(|record| record.closure.inputs()).collect();
    build.inputs = inputs.into_iter().collect();
    for (unit, record) in build.units.iter_mut().zip(records) {
        let row = |input| u32::try_from(build.inputs.binary_search(&input).unwrap()).unwrap();
        unit.inputs = record.closure.inputs().into_iter().map(row).collect();
        unit.decision = record.decided.decision;
        unit.reason = record.decided.reason;
    }
    let p2p = build.trees.iter().any(|tree| *tree.name == *"p2p");
    build.limitations.retain(|limitation| match limitation {
        Limitation::ProbesNotRecorded => false,
        Limitation::P2pNotExecuted => p2p,
        _ => true,
    });
}
