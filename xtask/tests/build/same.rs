//! The same inputs give the same bytes: other scratches, users, job counts and surroundings, with and without a sandbox.

use requal::target::Target;
use requal::{judge, receipt};

use crate::kit::build::{Ended, Fixture, MANIFEST, ended};
use crate::kit::{copy, script};

const ALL: [&str; 3] = ["one", "over", "three"];

/// An ordinary user's run; the wheels and the folder around the scratch become the user's.
fn as_ordinary_user(fixture: &mut Fixture) -> Ended {
    let house = fixture.root.join("wheelhouse");
    fs_err::create_dir(&house).unwrap();
    for wheel in crate::kit::real::lock().packages {
        copy(&fixture.wheelhouse.join(&wheel.file), &house.join(&wheel.file), "644");
    }
    fixture.wheelhouse = house;
    let mut call = fixture.call(&[]);
    if xtask::sys::user::is_root() {
        assert_eq!(script(&format!("chown 65534 {}", fixture.root)).run().unwrap().code, 0);
        let mut args = ["--reuid=65534", "--regid=65534", "--clear-groups"].map(str::to_owned).to_vec();
        args.push(call.program.to_string());
        args.append(&mut call.args);
        (call.program, call.args) = ("/usr/bin/setpriv".into(), args);
    }
    ended(&call)
}

#[test]
fn every_byte_is_the_same_in_another_scratch_by_another_user_with_other_jobs() {
    let first = Fixture::new(&ALL);
    let run = first.run(&["--jobs", "1"]);
    assert_eq!((&run.succeeded()["sandboxed"], &run.said["load_orders"]), (&true.into(), &9.into()));
    let (digests, expected) = (first.digests(), first.receipt());
    assert_eq!(digests.len(), 12, "six objects, and three modules in the build folders and placed");
    let distinct: std::collections::BTreeSet<_> = digests.values().collect();
    assert_eq!(distinct.len(), 9, "no two units and no two modules are the same bytes: {digests:#?}");

    let mut far = Fixture::new(&ALL);
    far.scratch = far.root.join("a/much/longer/path/to/the/scratch");
    far.caller.insert("HOME".to_owned(), "/nowhere/at/all".to_owned());
    far.caller.insert("TMPDIR".to_owned(), "/nowhere/either".to_owned());
    far.caller.insert("LANG".to_owned(), "de_DE.UTF-8".to_owned());
    let run = far.run(&["--jobs", "2"]);
    run.succeeded();

    let mut ordinary = Fixture::new(&ALL);
    as_ordinary_user(&mut ordinary).succeeded();
    assert_eq!(ordinary.receipt().predicate.run.user, receipt::User::Ordinary);

    for (other, jobs) in [(&far, Some(2)), (&ordinary, None)] {
        assert_eq!(other.digests(), digests);
        let found = other.receipt();
        assert_eq!(receipt::differences(&expected, &found), Vec::<String>::new());
        assert!(jobs.is_none_or(|jobs| found.predicate.run.jobs == jobs));
    }
}

/// At another place the raw bytes of objects and modules differ; their device code is the same.
#[test]
fn without_a_sandbox_the_same_place_gives_the_same_bytes() {
    let fixture = Fixture::new(&["one"]);
    let sandboxed = fixture.build(&[]);
    let inside = fixture.receipt();
    let mut builds = Vec::new();
    for _ in 0..2 {
        fixture.forget();
        let run = fixture.run(&["--sandbox", "off"]);
        assert_eq!(run.succeeded()["sandboxed"], false);
        assert_eq!(run.made()["one"], (2, true));
        builds.push((fixture.digests(), fixture.receipt()));
    }
    assert_eq!(builds[0].0, builds[1].0);
    assert_eq!(receipt::differences(&builds[0].1, &builds[1].1), Vec::<String>::new());
    let device = |receipt: &receipt::RuntimeBuild| {
        let units = receipt.predicate.build.units.iter();
        units.map(|unit| (unit.object.clone(), unit.device_code_sha256)).collect::<Vec<_>>()
    };
    assert_eq!(device(&inside), device(&builds[0].1));
    assert!(!builds[0].1.predicate.run.sandbox.entered);
    assert_eq!(sandboxed.keys().collect::<Vec<_>>(), builds[0].0.keys().collect::<Vec<_>>());
}

#[test]
fn f18_targets_are_added_in_one_order_and_each_object_holds_exactly_these() {
    let mut fixture = Fixture::new(&["one"]);
    let targets = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<Target>>();
    let judged = |fixture: &Fixture, declared: &[Target]| {
        let objects = ["units/module.cu.o", "units/scale.cu.o"].map(|object| {
            let bytes = fs_err::read(fixture.built(&format!("one/{object}"))).unwrap();
            judge::object(object, &bytes, declared)
        });
        objects.into_iter().collect::<Result<Vec<_>, _>>()
    };
    let more = targets(&["sm_86", "sm_90", "compute_86"]);
    let digests = fixture.build(&["--arch", "sm_90"]);
    judged(&fixture, &more).unwrap();
    assert_eq!(judged(&fixture, &targets(&["sm_86", "compute_86"])).unwrap_err().code, "E-OBJECT-TARGETS");
    fixture.caller.insert("TORCH_CUDA_ARCH_LIST".to_owned(), "8.0;9.0+PTX".to_owned());
    let again = fixture.run(&["--arch", "sm_90,sm_86"]);
    assert_eq!((again.made()["one"], fixture.digests()), ((0, false), digests));
    let replaced = fixture.receipt().predicate.run.replaced_environment;
    assert!(replaced.iter().any(|name| name.to_string() == "TORCH_CUDA_ARCH_LIST"));
}

#[test]
fn a_profile_that_this_machine_cannot_give_is_refused_and_nothing_less_is_given() {
    let fixture = Fixture::new(&["one"]);
    fixture.edit(MANIFEST, "30, 31]", "30, 1000]");
    fixture.run(&["--profile", "seed"]).refused(3, "E-LIMIT-CPU", &["missing CPUs [", "1000]"]);
    assert!(fixture.digests().is_empty());
}
