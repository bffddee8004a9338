//! What a person is told about a claim: a row for each thing it can wait for, and the near misses.

use crate::things::{ClaimThings, VolumeThings, claim, class, delayed, volume};
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_binder::explain::{self, Account, Snapshot, State};
use lifeboat_binder::lean::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_binder::words::{SELECTED_NODE, STORAGE_PROVISIONER};
use lifeboat_engine::ObjectKey;
use lifeboat_testbed::fixtures::{With, pod};

fn of(claim: PersistentVolumeClaim) -> Snapshot {
    Snapshot { claims: vec![claim], ..Snapshot::default() }
}

trait Around {
    fn and(self, volume: PersistentVolume) -> Self;
    fn class(self, class: StorageClass) -> Self;
}

impl Around for Snapshot {
    fn and(mut self, volume: PersistentVolume) -> Self {
        self.volumes.push(volume);
        self
    }
    fn class(mut self, class: StorageClass) -> Self {
        self.classes.push(class);
        self
    }
}

fn told(snapshot: &Snapshot) -> Account {
    let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
    explain::claim(snapshot, &ObjectKey::new("ns", "c"), now).expect("the claim is there")
}

#[test]
fn a_claim_is_told_what_it_waits_for() {
    let row = |rule: &str, snapshot: Snapshot, state: State, reason: Option<&str>, says: &str| {
        let account = told(&snapshot);
        assert_eq!(account.state, state, "{rule}: {account:#?}");
        assert_eq!(account.reason.as_deref(), reason, "{rule}");
        assert!(account.summary.contains(says), "{rule}: {}", account.summary);
        let bound = state == State::Bound;
        assert_eq!(account.next.is_empty(), bound, "{rule}: whoever is not bound is told what to do");
    };
    let mine = || volume("v").for_claim("c", "uid-c").in_phase("Bound");
    let bound = || claim().naming("v").completed().in_phase("Bound");
    row("bound", of(bound()).and(mine()), State::Bound, None, "bound to the volume v.");
    row("to be grown", of(bound().sized("3Gi")).and(mine()), State::Bound, None, "1Gi and is to be grown");
    row("fits", of(claim()).and(volume("v")), State::Ready, Some("Reserve"), "v fits and will be bound");
    row(
        "half bound",
        of(claim()).and(mine()),
        State::Ready,
        Some("Complete"),
        "v is its own; binding goes on",
    );
    row("nothing and no class", of(claim()), State::Waiting, Some("NothingFits"), "asks for no class");
    row(
        "nothing, and nothing said of a class",
        of(claim().of_class(None)),
        State::Waiting,
        Some("NothingFits"),
        "has no default class",
    );
    row(
        "the class is missing",
        of(claim().of_class(Some("gold"))),
        State::Waiting,
        Some("ClassMissing"),
        "\"gold\" does not exist",
    );
    row(
        "static only",
        of(claim().of_class(Some("s"))).class(class("s", "kubernetes.io/no-provisioner")),
        State::Waiting,
        Some("NoProvisioner"),
        "made by hand",
    );
    row(
        "a provisioner is about to be asked",
        of(claim().of_class(Some("e"))).class(class("e", "x.io/y")),
        State::Ready,
        Some("AskProvisioner"),
        "x.io/y will be asked",
    );
    row(
        "a provisioner was asked",
        of(claim().of_class(Some("e")).noted(STORAGE_PROVISIONER, "x.io/y")).class(class("e", "x.io/y")),
        State::Waiting,
        Some("Provisioner"),
        "x.io/y was asked",
    );
    row(
        "a provisioner was asked once a node was selected",
        of(claim().of_class(Some("d")).noted(SELECTED_NODE, "n").noted(STORAGE_PROVISIONER, "x"))
            .class(delayed("d", "x")),
        State::Waiting,
        Some("Provisioner"),
        "x was asked",
    );
    row(
        "no pod needs it",
        of(claim().of_class(Some("d"))).class(delayed("d", "x")),
        State::Waiting,
        Some("FirstConsumer"),
        "no pod does",
    );
    row(
        "its pod has no node",
        of(claim().of_class(Some("d")))
            .class(delayed("d", "x"))
            .with(|snapshot| snapshot.pods.push(pod("ns", "p", &["c"]))),
        State::Waiting,
        Some("PodsScheduled"),
        "as soon as p has a node",
    );
    row("names what is missing", of(claim().naming("v")), State::Waiting, Some("VolumeMissing"), "not exist");
    row(
        "names what does not fit",
        of(claim().naming("v").sized("2Gi")).and(volume("v")),
        State::Waiting,
        Some("VolumeUnfit"),
        "too small",
    );
    row(
        "names another's",
        of(claim().naming("v")).and(volume("v").for_claim("d", "uid-d")),
        State::Waiting,
        Some("VolumeTaken"),
        "reserved for the claim ns/d",
    );
    row("lost its name", of(claim().completed()), State::Lost, Some("LostName"), "names no volume any more");
    row("lost its volume", of(bound()), State::Lost, Some("LostVolume"), "v, which is gone");
    row(
        "its volume is another's",
        of(bound()).and(volume("v").for_claim("d", "uid-d")),
        State::Lost,
        Some("Misbound"),
        "now reserved for the claim ns/d",
    );
}

#[test]
fn volumes_are_told_with_all_they_lack() {
    let snapshot = of(claim().sized("5Gi"))
        .and(volume("bound").sized("9Gi").for_claim("x", "uid-x").in_phase("Bound"))
        .and(volume("far").of_class(Some("slow")))
        .and(volume("kept").sized("9Gi").for_claim("c", "uid-old").in_phase("Released"))
        .and(volume("ro").sized("9Gi").access(&["ReadOnlyMany"]))
        .and(volume("small"));
    let account = told(&snapshot);
    let near: Vec<String> =
        account.near_misses.iter().map(|m| format!("{}: {}", m.volume, m.lacks.join("; "))).collect();
    assert_eq!(
        near,
        [
            "kept: released by ns/c; free it by removing spec.claimRef if its data may be used",
            "ro: lacks the access mode ReadWriteOnce",
            "small: too small, 1Gi of 5Gi",
        ]
    );
    let others: Vec<(&str, usize)> = account.others.iter().map(|(why, n)| (why.as_str(), *n)).collect();
    assert_eq!(others, [("bound to others", 1), ("lack more than one thing", 1)]);
}

#[test]
fn many_near_misses_are_counted_after_the_first_ten() {
    let snapshot = (0..25).fold(of(claim().sized("5Gi")), |all, n| all.and(volume(&format!("v{n:02}"))));
    let account = told(&snapshot);
    assert_eq!(account.near_misses.len(), 10);
    assert_eq!(account.others["more that nearly fit"], 15);
}

#[test]
fn what_is_told_is_what_the_binder_does() {
    // The account and the controller share `decide`; a free volume of a delayed class is the one place where they could differ
    // in words: it fits, and is still not taken.
    let snapshot =
        of(claim().of_class(Some("d"))).class(delayed("d", "x")).and(volume("v").of_class(Some("d")));
    let account = told(&snapshot);
    assert_eq!(account.state, State::Waiting);
    assert_eq!(account.near_misses[0].lacks, ["left to the scheduler until a pod needs it"]);
}

#[test]
fn nobody_is_told_of_a_claim_that_is_not_there() {
    let now = jiff::Timestamp::UNIX_EPOCH;
    assert_eq!(explain::claim(&of(claim()), &ObjectKey::new("ns", "other"), now), None);
}

#[test]
fn a_claim_that_is_going_says_who_holds_it() {
    let going = claim().naming("v").completed().in_phase("Bound").with(|claim| {
        claim.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
    });
    let scheduled =
        pod("ns", "p", &["c"]).with(|pod| pod.spec.as_mut().unwrap().node_name = Some("n".to_owned()));
    let snapshot = of(going)
        .and(volume("v").for_claim("c", "uid-c").in_phase("Bound"))
        .with(|snapshot| snapshot.pods.push(scheduled));
    assert!(told(&snapshot).summary.starts_with("It is being deleted and kept as long as it is used by p."));
}
