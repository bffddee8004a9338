//! Rules about what a peer offers and asks.

use super::*;
use lifeboat_mirror::reception::{Known, Verdict, judge, place_for, state};
use lifeboat_mirror::talk::{Answer, Offer, Role, State};
use lifeboat_node::volume::may_publish;

fn offered(epoch: u64) -> Offer {
    Offer {
        theirs: "u9".into(),
        yours: Some(UID.into()),
        name: "pvc-1".into(),
        claim: "app/data".into(),
        mode: "Filesystem".into(),
        filesystem: None,
        size: 64 << 20,
        class: String::new(),
        epoch,
        from: "10.0.0.1:1".parse().unwrap(),
    }
}

fn known(volume: LogicalVolume, disk: Disk) -> Known {
    Known { volume: shared(volume), copies: Some(disk.copies()), memory: probed(), promoting: false }
}

#[track_caller]
fn check(rule: &str, known: Option<Known>, epoch: u64, expected: &str) {
    let said = format!("{:?}", judge(known.as_ref(), &offered(epoch), "n1"));
    assert!(said.starts_with(expected), "{rule}: {said}");
}

#[test]
fn whether_bytes_may_come() {
    let replica = || Disk::default().image(Kind::Replica, &image(3, 60));
    check("unknown: a place is made", None, 3, "Make");
    check("expected", Some(known(secondary(), replica())), 3, "Accept");
    check("a higher epoch", Some(known(secondary(), replica())), 4, "Accept");
    check(
        "a lower one is refused",
        Some(known(secondary(), replica())),
        2,
        "Say(Refused(OldEpoch { offered: 2, seen: 3 }))",
    );
    let live = || Disk::default().live(3);
    check("primary here", Some(known(primary(), live())), 3, "Say(Refused(Primary { epoch: 3 }))");
    check("primary here, later", Some(known(primary(), live())), 2, "Say(Refused(OldEpoch");
    let mut promoting = known(secondary(), replica());
    promoting.promoting = true;
    check("about to be primary", Some(promoting), 3, "Say(Refused(Primary");
    check("being made secondary", Some(known(secondary(), live())), 3, "Say(Later");
    let mut elsewhere = secondary();
    elsewhere.spec.node_name = "n2".into();
    check("on another node", Some(known(elsewhere, replica())), 3, "Say(NotHere");
    let mut other = secondary();
    note(&mut other, annotations::MIRROR_PEER, "u8");
    check("mirrored with another volume", Some(known(other, replica())), 3, "Say(Refused(Unfit");
    let blind = Known { copies: None, ..known(secondary(), replica()) };
    check("the disks cannot be seen", Some(blind), 3, "Say(Later");
}

#[test]
fn what_a_volume_is() {
    let check = |rule: &str, known: Option<Known>, role: Role, epoch: u64, newest: Option<i64>| {
        let newest = newest.map(|seconds| (epoch, ago(seconds)));
        assert_eq!(state(known.as_ref(), "n1"), Answer::State(State { role, epoch, newest }), "{rule}");
    };
    check("absent", None, Role::Absent, 0, None);
    check("primary", Some(known(primary(), Disk::default().live(3))), Role::Primary, 3, None);
    check(
        "not secondary before it is one",
        Some(known(secondary(), Disk::default().live(3))),
        Role::Primary,
        3,
        None,
    );
    let replica = || Disk::default().image(Kind::Replica, &image(3, 60));
    check("secondary", Some(known(secondary(), replica())), Role::Secondary, 3, Some(60));
    let sealed = replica().image(Kind::Filling, &image(3, 5));
    check(
        "what is whole counts before it is published",
        Some(known(secondary(), sealed)),
        Role::Secondary,
        3,
        Some(5),
    );
    let mut arrived = known(secondary(), replica().filling("i"));
    arrived.memory.completed = completed("i", &image(3, 5));
    check("and before it is sealed", Some(arrived), Role::Secondary, 3, Some(5));
    let diverged = Disk::default().image(Kind::Diverged, &image(3, 5));
    check(
        "what diverged is no copy of the peer's",
        Some(known(secondary(), diverged)),
        Role::Secondary,
        3,
        None,
    );
}

#[test]
fn a_place_cannot_be_used_before_it_is_made_primary() {
    let made = place_for(&offered(3), "n1");
    assert!(may_publish(&made).is_err());
    assert_eq!(judge(Some(&known(made, Disk::default())), &offered(3), "n1"), Verdict::Accept);
}
