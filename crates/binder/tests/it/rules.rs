//! One row for each rule: a world, and what is decided about it. `Do(..)` names the effects, `Wait(..)` what is waited for, and
//! `=> Phase` the phase that is newly shown.

use crate::model::Model;
use crate::things::{ClaimThings, VolumeThings, claim, class, delayed, named_claim, volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lifeboat_binder::decide::claim as claims;
use lifeboat_binder::decide::volume as volumes;
use lifeboat_binder::words::{
    BETA_STORAGE_CLASS, BOUND_BY_CONTROLLER, DEFAULT_CLASS, EXTERNAL_FINALIZER, IN_TREE_FINALIZER,
    MIGRATED_TO, PRE_RESIZE_CAPACITY, PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER,
};
use lifeboat_engine::{Next, ObjectKey, variant};
use lifeboat_testbed::fixtures::{With, pod};
use std::fmt::Debug;

fn told<E: Debug, W: Debug>(next: &Next<E, W>, shows: Option<String>) -> String {
    let next = match next {
        Next::Do(effects) => {
            format!("Do({})", effects.iter().map(variant).collect::<Vec<_>>().join(", "))
        }
        Next::Wait { why, .. } => format!("Wait({})", variant(why)),
        Next::Settled => "Settled".to_owned(),
    };
    shows.map_or(next.clone(), |phase| format!("{next} => {phase}"))
}

fn of_claim(model: &Model) -> String {
    let world = model.claim_world(&ObjectKey::new("ns", "c"));
    let decision = claims::decide(&world, model.now);
    let shows = decision.status.filter(|status| world.claim.status.as_ref() != Some(status));
    told(&decision.next, shows.and_then(|status| status.phase))
}

/// The same after the claim was told which volumes nearly fit, which comes before it rests.
fn hinted(model: Model) -> Model {
    let key = ObjectKey::new("ns", "c");
    if let Some(near) = model.claim_world(&key).near {
        model.mind.desk.tell(&key, near);
    }
    model
}

fn of_volume(model: &Model) -> String {
    let world = model.volume_world("v");
    let decision = volumes::decide(&world, model.now);
    let shows = decision.status.filter(|status| world.shown.as_ref() != Some(status));
    told(&decision.next, shows.map(|status| status.phase.as_str().to_owned()))
}

fn start() -> Model {
    Model::default()
}

#[track_caller]
fn check(rule: &str, decided: &str, expected: &str) {
    assert_eq!(decided, expected, "{rule}");
}

#[test]
fn a_claim_without_a_volume_name() {
    let row = |rule: &str, model: Model, expected: &str| check(rule, &of_claim(&hinted(model)), expected);
    row(
        "a free volume that fits is reserved",
        start().with_claim(claim()).with_volume(volume("v")),
        "Do(Reserve)",
    );
    row(
        "a volume reserved by name is taken, though a smaller one is free",
        start()
            .with_claim(claim())
            .with_volume(volume("w"))
            .with_volume(volume("v").sized("9Gi").for_claim("c", "")),
        "Do(Reserve)",
    );
    row(
        "a crash after the first write goes on with the second",
        start().with_claim(claim()).with_volume(volume("v").for_claim("c", "uid-c")),
        "Do(ShowVolumeBound)",
    );
    row(
        "a crash after the second write goes on with the third",
        start().with_claim(claim()).with_volume(volume("v").for_claim("c", "uid-c").in_phase("Bound")),
        "Do(Complete)",
    );
    row("nothing fits and there is no class", start().with_claim(claim()), "Wait(NothingFits)");
    row(
        "nothing fits: back to Pending",
        start().with_claim(claim().in_phase("Bound")),
        "Wait(NothingFits) => Pending",
    );
    row(
        "delayed binding leaves free volumes to the scheduler",
        start()
            .with_class(delayed("d", "x"))
            .with_claim(claim().of_class(Some("d")))
            .with_volume(volume("v").of_class(Some("d"))),
        "Wait(FirstConsumer)",
    );
    row(
        "delayed binding with an unscheduled pod says so",
        start().with_class(delayed("d", "x")).with_claim(claim().of_class(Some("d"))).with_pod(pod(
            "ns",
            "p",
            &["c"],
        )),
        "Wait(PodsScheduled)",
    );
    row(
        "delayed binding takes what the scheduler reserved",
        start()
            .with_class(delayed("d", "x"))
            .with_claim(claim().of_class(Some("d")))
            .with_volume(volume("v").of_class(Some("d")).for_claim("c", "")),
        "Do(Reserve)",
    );
    row(
        "delayed binding provisions once a node is selected",
        start()
            .with_class(delayed("d", "x.io/y"))
            .with_claim(claim().of_class(Some("d")).noted(SELECTED_NODE, "n")),
        "Do(AskProvisioner)",
    );
    row(
        "a claim that says nothing of a class is given the default",
        start()
            .with_class(class("gold", "x.io/y").with(|class| {
                class.metadata.annotations = Some([(DEFAULT_CLASS.to_owned(), "true".to_owned())].into());
            }))
            .with_claim(claim().of_class(None)),
        "Do(AssignClass)",
    );
    row(
        "a claim that asks for no class is not given the default",
        start()
            .with_class(class("gold", "x.io/y").with(|class| {
                class.metadata.annotations = Some([(DEFAULT_CLASS.to_owned(), "true".to_owned())].into());
            }))
            .with_claim(claim()),
        "Wait(NothingFits)",
    );
    row(
        "a claim without a class takes a volume without one before it is given the default",
        start()
            .with_class(class("gold", "x.io/y").with(|class| {
                class.metadata.annotations = Some([(DEFAULT_CLASS.to_owned(), "true".to_owned())].into());
            }))
            .with_claim(claim().of_class(None))
            .with_volume(volume("v")),
        "Do(Reserve)",
    );
    row(
        "a volume with our uid and another mode is told",
        start().with_claim(claim()).with_volume(volume("v").of_mode("Block").for_claim("c", "uid-c")),
        "Wait(ReservedUnfit)",
    );
}

#[test]
fn provisioning() {
    let row = |rule: &str, model: Model, expected: &str| check(rule, &of_claim(&hinted(model)), expected);
    let of = |class: &str| claim().of_class(Some(class));
    row(
        "a missing class is told and the status left alone",
        start().with_claim(of("no").in_phase("Bound")),
        "Wait(ClassMissing)",
    );
    row(
        "an external provisioner is asked",
        start().with_class(class("e", "x.io/y")).with_claim(of("e")),
        "Do(AskProvisioner)",
    );
    row(
        "an external provisioner that was asked is waited for",
        start().with_class(class("e", "x.io/y")).with_claim(of("e").noted(STORAGE_PROVISIONER, "x.io/y")),
        "Wait(Provisioner)",
    );
    row(
        "no in-tree provisioner is here",
        start().with_class(class("s", "kubernetes.io/no-provisioner")).with_claim(of("s")),
        "Wait(NoProvisioner)",
    );
    row(
        "a migrated in-tree provisioner is asked by the name of its driver",
        start()
            .with_class(class("g", "kubernetes.io/gce-pd"))
            .with_claim(of("g").noted(STORAGE_PROVISIONER, "pd.csi.storage.gke.io")),
        "Wait(Provisioner)",
    );
    row(
        "a migrated provisioner on a claim is noted",
        start()
            .with_class(class("g", "kubernetes.io/gce-pd"))
            .with_claim(of("g").noted(STORAGE_PROVISIONER, "kubernetes.io/gce-pd")),
        "Do(NoteMigration)",
    );
    row(
        "a stale note of a migration is taken off",
        start()
            .with_class(class("e", "x.io/y"))
            .with_claim(of("e").noted(STORAGE_PROVISIONER, "x.io/y").noted(MIGRATED_TO, "z")),
        "Do(NoteMigration)",
    );
}

#[test]
fn a_claim_that_names_its_volume() {
    let row = |rule: &str, model: Model, expected: &str| check(rule, &of_claim(&hinted(model)), expected);
    let c = || claim().naming("v");
    row("the volume is missing", start().with_claim(c()), "Wait(VolumeMissing)");
    row("unclaimed and fitting", start().with_claim(c()).with_volume(volume("v")), "Do(Reserve)");
    row(
        "unclaimed and too small",
        start().with_claim(c().sized("2Gi")).with_volume(volume("v")),
        "Wait(VolumeUnfit)",
    );
    row(
        "unclaimed, of ten exbibytes and more",
        start().with_claim(c()).with_volume(volume("v").sized("10E")),
        "Do(Reserve)",
    );
    row(
        "unclaimed and of another class",
        start().with_claim(c()).with_volume(volume("v").of_class(Some("x"))),
        "Wait(VolumeUnfit)",
    );
    row(
        "unclaimed and of other attributes",
        start().with_claim(c().attributes("a")).with_volume(volume("v")),
        "Wait(VolumeUnfit)",
    );
    row(
        "unclaimed and of another volume mode",
        start().with_claim(c().of_mode("Block")).with_volume(volume("v")),
        "Wait(VolumeUnfit)",
    );
    row(
        "unclaimed and of other access modes",
        start().with_claim(c().access(&["ReadWriteMany"])).with_volume(volume("v")),
        "Wait(VolumeUnfit)",
    );
    row(
        "unclaimed and being deleted",
        start().with_claim(c()).with_volume(volume("v").deleting()),
        "Wait(VolumeUnfit)",
    );
    row(
        "a selector does not count",
        start()
            .with_claim(c().with(|claim| {
                let labels = Some([("a".to_owned(), "b".to_owned())].into());
                claim.spec.as_mut().unwrap().selector =
                    Some(LabelSelector { match_labels: labels, match_expressions: None });
            }))
            .with_volume(volume("v")),
        "Do(Reserve)",
    );
    row(
        "reserved for us, fitting or not",
        start().with_claim(c().sized("2Gi")).with_volume(volume("v").for_claim("c", "")),
        "Do(Reserve)",
    );
    row(
        "reserved for us with our uid",
        start().with_claim(c()).with_volume(volume("v").for_claim("c", "uid-c")),
        "Do(ShowVolumeBound)",
    );
    row(
        "another's",
        start().with_claim(c().in_phase("Bound")).with_volume(volume("v").for_claim("d", "uid-d")),
        "Wait(VolumeTaken) => Pending",
    );
    row(
        "our name with another uid",
        start().with_claim(c()).with_volume(volume("v").for_claim("c", "uid-old")),
        "Wait(VolumeTaken)",
    );
    row(
        "another's, though a controller chose it: the status is left alone",
        start()
            .with_claim(c().noted(BOUND_BY_CONTROLLER, "yes").in_phase("Bound"))
            .with_volume(volume("v").for_claim("d", "uid-d")),
        "Wait(VolumeTakenFromUs)",
    );
}

#[test]
fn a_claim_that_was_bound() {
    let row = |rule: &str, model: Model, expected: &str| check(rule, &of_claim(&hinted(model)), expected);
    let c = || claim().naming("v").completed().in_phase("Bound");
    row(
        "its volume name is lost",
        start().with_claim(claim().completed().in_phase("Bound")),
        "Wait(LostName) => Lost",
    );
    row("its volume is lost", start().with_claim(c()), "Wait(LostVolume) => Lost");
    row("its volume has come unclaimed", start().with_claim(c()).with_volume(volume("v")), "Do(Reserve)");
    row(
        "its volume is not shown as bound",
        start().with_claim(c()).with_volume(volume("v").for_claim("c", "uid-c")),
        "Do(ShowVolumeBound)",
    );
    row(
        "a crash after the third write goes on with the fourth",
        start()
            .with_claim(c().in_phase("Pending"))
            .with_volume(volume("v").for_claim("c", "uid-c").in_phase("Bound")),
        "Settled => Bound",
    );
    row(
        "lost, and its volume is back",
        start()
            .with_claim(c().in_phase("Lost"))
            .with_volume(volume("v").for_claim("c", "uid-c").in_phase("Bound")),
        "Settled => Bound",
    );
    row(
        "its volume is another's",
        start().with_claim(c()).with_volume(volume("v").for_claim("d", "uid-d")),
        "Wait(Misbound) => Lost",
    );
    row(
        "its volume is reserved without a uid",
        start().with_claim(c()).with_volume(volume("v").for_claim("c", "")),
        "Wait(Misbound) => Lost",
    );
}

#[test]
fn the_size_shown_follows_the_volume_only_when_it_becomes_bound() {
    let shown = |phase: &str, volume| {
        let mut model =
            start().with_claim(claim().naming("v").completed().in_phase(phase)).with_volume(volume);
        model.settle();
        let status = model.claims.values().next().unwrap().status.clone().unwrap();
        status.capacity.map(|capacity| capacity["storage"].0.clone())
    };
    let v = || volume("v").sized("5Gi").for_claim("c", "uid-c").in_phase("Bound");
    assert_eq!(shown("Pending", v()).as_deref(), Some("5Gi"));
    assert_eq!(shown("Bound", v()), None, "a difference later is a resize under way");
    assert_eq!(shown("Pending", v().noted(PRE_RESIZE_CAPACITY, "2Gi")).as_deref(), Some("2Gi"));
}

#[test]
fn what_a_free_volume_must_be_to_be_chosen() {
    let row = |rule: &str, claim, volume, takes: bool| {
        let decided = of_claim(&hinted(start().with_claim(claim).with_volume(volume)));
        assert_eq!(decided == "Do(Reserve)", takes, "{rule}: {decided}");
    };
    let v = || volume("v");
    row("as large", claim(), v(), true);
    row("larger", claim(), v().sized("2Gi"), true);
    row("smaller", claim().sized("1025Mi"), v(), false);
    row("another class", claim(), v().of_class(Some("x")), false);
    row("the old annotation names the class", claim(), v().noted(BETA_STORAGE_CLASS, "x"), false);
    row("another volume mode", claim().of_mode("Block"), v(), false);
    row("no volume mode is a file system", claim().of_mode("Filesystem"), v(), true);
    row("other attributes", claim(), v().attributes("a"), false);
    row("empty attributes are none", claim(), v().attributes(""), true);
    row("more access modes", claim(), v().access(&["ReadWriteMany", "ReadWriteOnce"]), true);
    row("fewer access modes", claim().access(&["ReadWriteMany", "ReadWriteOnce"]), v(), false);
    row("being deleted", claim(), v().deleting(), false);
    row("fresh, without a phase", claim(), v().in_phase("Pending"), true);
    row("released", claim(), v().in_phase("Released"), false);
    row("failed", claim(), v().in_phase("Failed"), false);
    row("another's by uid", claim(), v().for_claim("c", "uid-old"), false);
    row(
        "reserved for us, of another class and released",
        claim(),
        v().of_class(Some("x")).in_phase("Released").for_claim("c", ""),
        true,
    );
    row("reserved for us and too small", claim().sized("2Gi"), v().for_claim("c", ""), false);
}

#[test]
fn which_free_volume_is_chosen() {
    let row = |rule: &str, volumes: Vec<k8s_openapi::api::core::v1::PersistentVolume>, expected: &str| {
        let model = volumes.into_iter().fold(start().with_claim(claim()), Model::with_volume);
        let lifeboat_binder::world::Found::Free(found) = model.claim_world(&ObjectKey::new("ns", "c")).found
        else {
            panic!("{rule}: nothing found")
        };
        assert_eq!(found.metadata.name.as_deref(), Some(expected), "{rule}");
    };
    row(
        "the smallest that fits",
        vec![volume("a").sized("3Gi"), volume("b").sized("2Gi"), volume("d").sized("9Gi")],
        "b",
    );
    row(
        "the fewest access modes before the size",
        vec![volume("a").sized("1Gi").access(&["ReadWriteOnce", "ReadOnlyMany"]), volume("b").sized("2Gi")],
        "b",
    );
    row(
        "by exact size, whatever the notation",
        vec![volume("a").sized("2G"), volume("b").sized("2000000001")],
        "a",
    );
    row("of equals the first by name", vec![volume("b"), volume("a")], "a");
}

#[test]
fn a_volume() {
    let row = |rule: &str, model: Model, expected: &str| check(rule, &of_volume(&model), expected);
    let bound = || volume("v").for_claim("c", "uid-c").in_phase("Bound");
    row(
        "unclaimed is Available",
        start().with_volume(volume("v").in_phase("Pending")),
        "Settled => Available",
    );
    row(
        "unclaimed and failed before is Available",
        start().with_volume(volume("v").in_phase("Failed")),
        "Settled => Available",
    );
    row(
        "reserved without a uid is Available",
        start().with_volume(volume("v").in_phase("Pending").for_claim("c", "")),
        "Settled => Available",
    );
    row(
        "fresh and wanted is offered, not written",
        start().with_claim(claim()).with_volume(volume("v").in_phase("Pending")),
        "Do(Offer)",
    );
    row(
        "fresh and reserved for a claim that waits is offered, not written",
        start().with_claim(claim()).with_volume(volume("v").in_phase("Pending").for_claim("c", "")),
        "Do(Offer)",
    );
    row(
        "its claim is bound to it",
        start().with_claim(claim().naming("v")).with_volume(bound().in_phase("Available")),
        "Settled => Bound",
    );
    row(
        "its claim has still to be completed",
        start().with_claim(claim()).with_volume(bound()),
        "Wait(Claim)",
    );
    row(
        "its claim is of another mode",
        start().with_claim(claim().of_mode("Block")).with_volume(bound()),
        "Wait(ClaimUnfit)",
    );
    row(
        "its claim went elsewhere",
        start().with_claim(claim().naming("w")).with_volume(bound()),
        "Do(Unbind)",
    );
    row(
        "its claim went elsewhere and it was provisioned for it: first the server is asked",
        start()
            .with_claim(claim().naming("w"))
            .with_volume(bound().policy("Delete").noted(PROVISIONED_BY, "x.io/y")),
        "Do(ReadClaim)",
    );
    row("its claim is gone: first the server is asked", start().with_volume(bound()), "Do(ReadClaim)");
    row(
        "its claim is another of the same name: first the server is asked",
        start()
            .with_claim(claim().with(|claim| claim.metadata.uid = Some("new".into())))
            .with_volume(bound()),
        "Do(ReadClaim)",
    );
    row(
        "its claim is being deleted and still there",
        start()
            .with_claim(claim().naming("v").with(|claim| {
                claim.metadata.deletion_timestamp =
                    Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
            }))
            .with_volume(bound()),
        "Settled",
    );
    row(
        "released already: the server is not asked again",
        start().with_volume(bound().in_phase("Released")),
        "Settled",
    );
}

#[test]
fn reclaiming() {
    let row = |rule: &str, volume, phase: &str, reason: Option<&str>, writes: usize| {
        let mut model = start().with_volume(volume);
        model.volume_pass("v").unwrap();
        let shown = model.volumes.values().next().unwrap().status.clone().unwrap();
        assert_eq!(shown.phase.as_deref(), Some(phase), "{rule}");
        assert_eq!(model.rest.as_deref(), reason, "{rule}");
        assert_eq!(model.writes.len(), writes, "{rule}");
        let before = model.writes.len();
        model.settle();
        assert_eq!(model.writes.len(), before, "{rule}: a second look writes nothing");
    };
    let v = |policy: &str| volume("v").for_claim("c", "uid-c").in_phase("Bound").policy(policy);
    row("Retain keeps it", v("Retain"), "Released", None, 1);
    row("Delete by CSI is the driver's business", v("Delete").csi("x.io"), "Released", Some("Deleter"), 1);
    row(
        "Delete by who provisioned it",
        v("Delete").noted(PROVISIONED_BY, "x.io/y"),
        "Released",
        Some("Deleter"),
        1,
    );
    row("Delete of what nobody here can delete", v("Delete"), "Failed", Some("NoDeleter"), 1);
    row(
        "Delete of what an in-tree plugin made",
        v("Delete").noted(PROVISIONED_BY, "kubernetes.io/host-path"),
        "Failed",
        Some("NoDeleter"),
        2,
    );
    row(
        "Delete of what was migrated",
        v("Delete").noted(PROVISIONED_BY, "kubernetes.io/gce-pd").noted(MIGRATED_TO, "pd.csi.storage.gke.io"),
        "Released",
        Some("Deleter"),
        1,
    );
    row("Recycle is not supported", v("Recycle"), "Failed", Some("NoRecycler"), 1);
    row("an unknown policy", v("Burn"), "Failed", Some("UnknownPolicy"), 1);
}

#[test]
fn finalizers_and_migration_of_volumes() {
    let row = |rule: &str, volume, expected: &[&str], migrated: Option<&str>| {
        let mut model = start().with_volume(volume);
        model.volume_pass("v").unwrap();
        let meta = model.volumes.values().next().unwrap().metadata.clone();
        assert_eq!(meta.finalizers.unwrap_or_default(), expected, "{rule}");
        let noted = meta.annotations.unwrap_or_default().get(MIGRATED_TO).cloned();
        assert_eq!(noted.as_deref(), migrated, "{rule}");
    };
    let v = |by: &str, policy: &str| volume("v").noted(PROVISIONED_BY, by).policy(policy);
    let in_tree = "kubernetes.io/host-path";
    row("in-tree and Delete is guarded", v(in_tree, "Delete"), &[IN_TREE_FINALIZER], None);
    row("in-tree and Retain is not", v(in_tree, "Retain").finalizer(IN_TREE_FINALIZER), &[], None);
    row(
        "a migration taken back",
        v(in_tree, "Delete").finalizer(EXTERNAL_FINALIZER).noted(MIGRATED_TO, "x"),
        &[IN_TREE_FINALIZER],
        None,
    );
    row(
        "migrated",
        v("kubernetes.io/gce-pd", "Delete").finalizer(IN_TREE_FINALIZER),
        &[],
        Some("pd.csi.storage.gke.io"),
    );
    row(
        "external ones keep theirs",
        v("x.io/y", "Delete").finalizer(EXTERNAL_FINALIZER),
        &[EXTERNAL_FINALIZER],
        None,
    );
    row(
        "not provisioned: nothing is touched",
        volume("v").finalizer(EXTERNAL_FINALIZER).policy("Delete"),
        &[EXTERNAL_FINALIZER],
        None,
    );
}

#[test]
fn taking_a_claim_off() {
    let end = |v: k8s_openapi::api::core::v1::PersistentVolume| {
        let mut model = start().with_claim(claim().naming("w")).with_volume(v);
        model.volume_pass("v").unwrap();
        let volume = model.volumes.values().next().unwrap().clone();
        let reference = volume.spec.unwrap().claim_ref;
        (
            reference.map(|reference| reference.uid),
            volume.status.unwrap().phase.unwrap(),
            volume.metadata.annotations,
        )
    };
    let v = || volume("v").for_claim("c", "uid-c").in_phase("Bound");
    assert_eq!(
        end(v().noted(BOUND_BY_CONTROLLER, "yes")),
        (None, "Available".into(), None),
        "what a controller chose is free"
    );
    assert_eq!(end(v()), (Some(None), "Available".into(), None), "what a person reserved stays reserved");
}

#[test]
fn a_pair_costs_four_writes_and_a_fresh_volume_no_fifth() {
    let mut model = start().with_volume(volume("v").in_phase("Pending")).with_claim(claim());
    model.volume_pass("v").unwrap();
    assert_eq!(model.writes.len(), 0, "it is offered");
    model.settle();
    assert_eq!(model.writes.len(), 4, "{:?}", model.writes);
}

#[test]
fn a_volume_that_nobody_takes_in_time_is_shown_as_available() {
    let mut model = start().with_volume(volume("v").in_phase("Pending")).with_claim(claim());
    model.volume_pass("v").unwrap();
    model.now += jiff::SignedDuration::from_secs(6);
    model.volume_pass("v").unwrap();
    assert_eq!(model.writes, ["update persistentvolumes/status"]);
}

#[test]
fn each_volume_is_offered_to_a_claim_of_its_own() {
    let mut model = start();
    for n in 0..5 {
        model.store_volume(volume(&format!("v{n}")).in_phase("Pending"));
        model.store_claim(named_claim(&format!("c{n}")));
    }
    model.see_all();
    let mut offered = std::collections::BTreeSet::new();
    for n in 0..5 {
        model.volume_pass(&format!("v{n}")).unwrap();
        offered.insert(model.mind.desk.offer_of(&format!("v{n}")).unwrap().claim);
    }
    assert_eq!(offered.len(), 5);
}

#[test]
fn a_claim_is_told_once_which_volumes_nearly_fit() {
    let mut model = start()
        .with_claim(claim().sized("5Gi"))
        .with_volume(volume("a").sized("2Gi"))
        .with_volume(volume("b").sized("9Gi").of_class(Some("slow")))
        .with_volume(volume("d").of_class(Some("slow")));
    model.settle();
    assert_eq!(
        model.hints,
        ["no free volume fits; nearest: a (too small, 2Gi of 5Gi), b (of class \"slow\")"],
        "what lacks more than one thing is not near"
    );
}

#[test]
fn finding_the_best_of_many_looks_at_one() {
    let mut model = start();
    for n in 0..100_000 {
        model.store_volume(volume(&format!("v{n}")).sized(&format!("{}Mi", n % 5000)));
    }
    model.see_all();
    for size in ["1Mi", "2500Mi", "4999Mi"] {
        let looks = std::cell::Cell::new(0);
        let found =
            lifeboat_binder::decide::matching::best(&model.mind.by.free, &claim().sized(size), |_| {
                looks.set(looks.get() + 1);
                true
            });
        assert_eq!(found.unwrap().spec.as_ref().unwrap().capacity.as_ref().unwrap()["storage"].0, size);
        assert!(looks.get() <= 8, "one look for each set of modes at most, not {}", looks.get());
    }
}

#[test]
fn guarding() {
    use lifeboat_binder::protect::{
        CLAIM_FINALIZER, ClaimGuardWorld, VOLUME_FINALIZER, decide_claim, decide_volume,
    };
    let going = |mut claim: k8s_openapi::api::core::v1::PersistentVolumeClaim| {
        claim.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
        claim
    };
    let guarded = || claim().with(|claim| claim.metadata.finalizers = Some(vec![CLAIM_FINALIZER.into()]));
    let row = |rule: &str, claim, pods: &[&str], asked: Option<bool>, expected: &str| {
        let pods = pods.iter().map(|pod| (*pod).to_owned()).collect();
        let world = ClaimGuardWorld { claim: std::sync::Arc::new(claim), pods, asked };
        check(rule, &told(&decide_claim(&world, start().now).next, None), expected);
    };
    row("a claim without the finalizer gets it", claim(), &[], None, "Do(Guard)");
    row("a claim that has it is left alone", guarded(), &[], None, "Settled");
    row("one that is going and used stays", going(guarded()), &["p"], None, "Wait(ByPods)");
    row(
        "one that is going and seems unused: the server is asked",
        going(guarded()),
        &[],
        None,
        "Do(AskForPods)",
    );
    row("the server knows a pod", going(guarded()), &[], Some(true), "Wait(ByUnseenPod)");
    row("the server knows none", going(guarded()), &[], Some(false), "Do(Release)");
    row("one that is going gets no finalizer any more", going(claim()), &[], None, "Settled");
    let row =
        |rule: &str, volume, expected: &str| check(rule, &told(&decide_volume(&volume).next, None), expected);
    row("a volume without the finalizer gets it", volume("v"), "Do(Guard)");
    row(
        "going and bound stays",
        volume("v").finalizer(VOLUME_FINALIZER).deleting().in_phase("Bound"),
        "Wait(ByClaim)",
    );
    row("going and not bound", volume("v").finalizer(VOLUME_FINALIZER).deleting(), "Do(Release)");
}
