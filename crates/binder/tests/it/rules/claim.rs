//! Claims: without a volume name, with one, bound, and what is provisioned for them.

use crate::model::Model;
use crate::rules::{check, hinted, of_claim, start};
use crate::things::{ClaimThings, VolumeThings, claim, class, delayed, volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lifeboat_binder::words::{
    BOUND_BY_CONTROLLER, DEFAULT_CLASS, MIGRATED_TO, PRE_RESIZE_CAPACITY, SELECTED_NODE, STORAGE_PROVISIONER,
};
use lifeboat_testbed::fixtures::{With, pod};

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
                    Some(Box::new(LabelSelector { match_labels: labels, match_expressions: None }));
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
        status.capacity.map(|capacity| capacity.get("storage").unwrap().0.clone())
    };
    let v = || volume("v").sized("5Gi").for_claim("c", "uid-c").in_phase("Bound");
    assert_eq!(shown("Pending", v()).as_deref(), Some("5Gi"));
    assert_eq!(shown("Bound", v()), None, "a difference later is a resize under way");
    assert_eq!(shown("Pending", v().noted(PRE_RESIZE_CAPACITY, "2Gi")).as_deref(), Some("2Gi"));
}
