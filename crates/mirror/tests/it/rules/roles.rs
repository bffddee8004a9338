//! Rules about VolumeReplications.

use super::*;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::replication::{ReplicationState, VolumeReplication, VolumeReplicationClass};
use lifeboat_engine::{Next, variant};
use lifeboat_mirror::calls::Word;
use lifeboat_mirror::copies::{FUZZY_TAG, Seen, passing_tags};
use lifeboat_mirror::failure::{Failure, Kind as Failed};
use lifeboat_mirror::role::decide::decide;
use lifeboat_mirror::role::world::{Here, Place, World};
use lifeboat_mirror::talk::{Role, State};
use lifeboat_replicate::jobs::JobView;
use lifeboat_stream::Sent;

fn world(role: ReplicationState, volume: LogicalVolume, disk: Disk) -> World {
    let mut replication = VolumeReplication::default();
    replication.metadata.name = Some("data".into());
    replication.metadata.uid = Some("vr".into());
    replication.metadata.generation = Some(1);
    replication.metadata.finalizers = Some(vec![finalizers::VOLUME_REPLICATION.into()]);
    replication.spec.replication_state = role;
    replication.spec.data_source.kind = "PersistentVolumeClaim".into();
    replication.spec.data_source.name = "data".into();
    let mut class = VolumeReplicationClass::default();
    class.spec.parameters.insert("schedulingInterval".into(), "1m".into());
    let seen = Seen::Listed(Box::new(disk.copies()));
    World {
        replication: Arc::new(replication),
        class: Some(Arc::new(class)),
        place: Place::Here(Box::new(Here { volume: shared(volume), class: String::new(), seen })),
        epochs: None,
        users: Vec::new(),
        memory: probed(),
        job: None,
        room: true,
        trouble: None,
    }
}

fn edit(world: &mut World, change: impl FnOnce(&mut VolumeReplication)) {
    change(Arc::make_mut(&mut world.replication));
}

fn called(of: &str, outcome: Option<Result<Word, Failure>>) -> Option<JobView<Word, Failure>> {
    let failures = u32::from(matches!(outcome, Some(Err(_))));
    Some(JobView { of: of.into(), outcome: outcome.map(|outcome| (ago(0), outcome)), failures })
}

fn peer(role: Role, epoch: u64, newest: Option<(u64, Timestamp)>) -> Option<Result<Word, Failure>> {
    Some(Ok(Word::State(State { role, epoch, newest })))
}

fn failed(kind: Failed) -> Option<Result<Word, Failure>> {
    Some(Err(Failure::new(kind, "it failed")))
}

/// What is done or waited for, and then the state and the conditions that are not as they are at rest.
#[track_caller]
fn check(rule: &str, mut world: World, change: impl FnOnce(&mut World), expected: &str) {
    change(&mut world);
    let decision = decide(&world, now());
    let next = match &decision.next {
        Next::Do(effects) => format!("{effects:?}").trim_matches(['[', ']']).to_owned(),
        Next::Wait { why, .. } => format!("wait {}", variant(why)),
        Next::Settled => "settled".to_owned(),
    };
    let said = decision.status.as_ref().map_or_else(String::new, |status| {
        assert_eq!(status.observed_generation, Some(1), "{rule}");
        let of = |type_: &str| {
            let found = status.conditions.iter().find(|it| it.type_ == type_);
            found.map(|it| format!(" {}", it.reason)).unwrap_or_default()
        };
        let state = status.state.as_ref().map(|state| state.as_str().to_owned()).unwrap_or_default();
        format!(" | {state}{}{}{}", of("Completed"), of("Degraded"), of("Replicating"))
    });
    assert_eq!(format!("{next}{said}"), expected, "{rule}");
}

use ReplicationState::{Primary, Secondary};

fn live() -> World {
    world(Primary, primary(), Disk::default().live(1))
}

const AT_REST: &str = " | Primary Promoted Healthy Replicating";
const SILENT: &str = " | Primary Promoted Healthy NotReplicating";

#[test]
fn what_cannot_be_mirrored_says_so() {
    let refused = "wait Unsupported | Primary FailedToPromote Error";
    let group = |w: &mut World| edit(w, |one| one.spec.data_source.kind = "VolumeGroupReplication".into());
    check("a group", live(), group, refused);
    check("no class", live(), |w| w.class = None, refused);
    let interval = |w: &mut World| {
        let class = Arc::make_mut(w.class.as_mut().unwrap());
        class.spec.parameters.insert("schedulingInterval".into(), "soon".into());
    };
    check("no interval", live(), interval, refused);
    check(
        "no claim",
        live(),
        |w| w.place = Place::NoClaim,
        "wait Claim | Unknown FailedToPromote VolumeDegraded",
    );
    check(
        "not bound",
        live(),
        |w| w.place = Place::Unbound,
        "wait Claim | Unknown FailedToPromote VolumeDegraded",
    );
    check(
        "not of node storage",
        live(),
        |w| w.place = Place::Foreign("x".into()),
        "wait Unsupported | Unknown FailedToPromote Error",
    );
    let odd = |w: &mut World| edit(w, |one| one.spec.replication_state = ReplicationState::from("third"));
    check("no such role", live(), odd, "wait Unsupported | Primary FailedToDemote Error");
    check("held first", live(), |w| edit(w, |one| one.metadata.finalizers = None), "Hold");
}

#[test]
fn a_primary_sends_at_every_interval() {
    let unpaired = |w: &mut World| {
        let mut volume = primary();
        volume.metadata.annotations = None;
        let seen = Seen::Listed(Box::new(Disk::default().live(1).copies()));
        w.place = Place::Here(Box::new(Here { volume: shared(volume), class: String::new(), seen }));
    };
    check("a place at the peer first", live(), unpaired, "Meet");
    let met = |w: &mut World| {
        unpaired(w);
        w.job = called("meet", Some(Ok(Word::Met("u9".into()))));
    };
    check("its id is noted before bytes flow", live(), met, "Pair { peer: \"u9\" }");
    let dead = |w: &mut World| {
        unpaired(w);
        w.job = called("meet", failed(Failed::Link));
    };
    check("no peer", live(), dead, &format!("wait Peer{SILENT}"));
    check("the first copy is due at once", live(), |_| {}, "Cut { epoch: 1, last: false }");
    let recent = |w: &mut World| {
        edit(w, |one| one.status.get_or_insert_default().last_sync_time = Some(Time(ago(10))));
    };
    let often = |w: &mut World| {
        recent(w);
        let class = Arc::make_mut(w.class.as_mut().unwrap());
        class.spec.parameters.insert("topolvm.io/mirror-every".into(), "5s".into());
    };
    check("more often than the policy asks for", live(), often, "Cut { epoch: 1, last: false }");
    check("the next after the interval", live(), recent, &format!("wait Due{AT_REST}"));
    let ahead = |w: &mut World| {
        edit(w, |one| one.status.get_or_insert_default().last_sync_time = Some(Time(ago(-3600))));
    };
    check("a clock that was ahead", live(), ahead, "Cut { epoch: 1, last: false }");
    let cut = || world(Primary, primary(), Disk::default().live(1).image(Kind::Cut, &image(1, 5)));
    check("what was cut is sent", cut(), |_| {}, &format!("Send{AT_REST}"));
    check("in its turn", cut(), |w| w.room = false, &format!("wait Turn{AT_REST}"));
    check("under way", cut(), |w| w.job = called("send/g5", None), &format!("wait Sending{AT_REST}"));
    let sent = |w: &mut World| w.job = called("send/g5", Some(Ok(Word::Sent(Sent::default()))));
    check("there", cut(), sent, &format!("Drop([Cut]){AT_REST}"));
    let broken = |w: &mut World| w.job = called("send/g5", failed(Failed::Link));
    check("the link broke: the same cut goes on", cut(), broken, &format!("wait Peer{SILENT}"));
    let ahead = |w: &mut World| {
        broken(w);
        w.job.as_mut().unwrap().outcome.as_mut().unwrap().0 = ago(-3600);
    };
    check("it broke by a clock that was ahead", cut(), ahead, &format!("Send{AT_REST}"));
    let unread = |w: &mut World| w.job = called("send/g5", failed(Failed::Source));
    check("unreadable: a new cut", cut(), unread, "Drop([Cut])");
    let renamed = |w: &mut World| w.job = called("send/g5", failed(Failed::Renamed("u8".into())));
    check("the peer has it under another id", cut(), renamed, "Pair { peer: \"u8\" }");
    let old = |w: &mut World| w.job = called("send/g5", failed(Failed::Superseded));
    check("somebody else is primary now", cut(), old, &format!("wait Superseded{SILENT}"));
    let last = world(Primary, primary(), Disk::default().live(1).last_cut(&image(1, 5)));
    check("a last copy that is the last no more", last, |_| {}, "Drop([Cut])");
}

#[test]
fn the_time_of_a_copy_is_that_of_its_cut() {
    let mut w = world(Primary, primary(), Disk::default().live(1).image(Kind::Cut, &image(1, 5)));
    w.job = called("send/g5", Some(Ok(Word::Sent(Sent { bytes_changed: 7, ..Sent::default() }))));
    let status = decide(&w, now()).status.unwrap();
    assert_eq!(status.last_sync_time, Some(Time(ago(5))));
    assert_eq!(status.last_sync_bytes, Some(7));
    assert_eq!(status.destination_volume_id.as_deref(), Some("u9"));
}

#[test]
fn a_copy_of_files_that_were_written_meanwhile_is_told_on_both_sides() {
    let fuzzy = Image { fuzzy: true, ..image(1, 5) };
    let said = |world: &World| {
        let status = decide(world, now()).status.unwrap();
        let found = status.conditions.into_iter().find(|it| it.type_ == "Consistent");
        found.map(|it| format!("{} {}", it.status, it.reason))
    };
    let told = Some("False WrittenMeanwhile".to_owned());
    let sent = |image: &Image| {
        let mut w = world(Primary, primary(), Disk::default().live(1).image(Kind::Cut, image));
        w.job = called("send/g5", Some(Ok(Word::Sent(Sent::default()))));
        w
    };
    assert_eq!(said(&sent(&fuzzy)), told);
    assert_eq!(said(&sent(&image(1, 5))), None);
    // It is told until the next copy is complete, and that one's word counts.
    let status = decide(&sent(&fuzzy), now()).status;
    let mut next = live();
    edit(&mut next, |one| one.status.clone_from(&status));
    assert_eq!(said(&next), told);
    let mut next = sent(&image(1, 5));
    edit(&mut next, |one| one.status = status);
    assert_eq!(said(&next), None);
    let there = |image: &Image| world(Secondary, secondary(), Disk::default().image(Kind::Replica, image));
    assert_eq!(said(&there(&fuzzy)), told);
    assert_eq!(said(&there(&image(1, 5))), None);
    // The word is kept with the copy, and goes when somebody writes to it.
    let copies = Disk::default().live(1).image(Kind::Cut, &fuzzy).copies();
    let cut = copies.cut.unwrap();
    assert!(cut.image.fuzzy);
    assert!(passing_tags(&cut.volume).contains(FUZZY_TAG));
}

#[test]
fn epochs_never_go_back() {
    let group = |epochs| move |w: &mut World| w.epochs = Some(epochs);
    check("raised with the group's", live(), group((4, Some(4))), "Stamp { epoch: 4 }");
    check("the group is over", live(), group((5, Some(4))), &format!("wait Superseded{SILENT}"));
    check("the group is secondary", live(), group((5, None)), &format!("wait Superseded{SILENT}"));
    let higher = || world(Primary, primary(), Disk::default().live(6));
    check(
        "the volume was written later",
        higher(),
        group((4, Some(4))),
        &format!("wait EpochRefused{SILENT}"),
    );
    let replica = || world(Primary, secondary(), Disk::default().image(Kind::Replica, &image(6, 60)));
    let expected = "wait EpochRefused | Secondary FailedToPromote Error";
    check("nor is it made primary below what it received", replica(), group((4, Some(4))), expected);
    let over = |w: &mut World| {
        w.epochs = Some((5, Some(4)));
        w.job = called("send/g5", None);
    };
    check("what is on its way is stopped", live(), over, "Stop");
}

fn replica() -> World {
    world(Primary, secondary(), Disk::default().image(Kind::Replica, &image(1, 60)))
}

#[test]
fn a_secondary_asks_before_it_becomes_primary() {
    let asked = "promote/1/2";
    let answered = |answer| move |w: &mut World| w.job = called(asked, answer);
    check("ask", replica(), |_| {}, "Ask { of: \"promote/1/2\" }");
    check(
        "asking",
        replica(),
        |w| w.job = called(asked, None),
        "wait Asking | Secondary FailedToPromote VolumeDegraded",
    );
    check("something else is under way", replica(), |w| w.job = called("send/x", None), "Stop");
    check("the peer is dead", replica(), answered(failed(Failed::Link)), "Take");
    check("the peer has another key", replica(), answered(failed(Failed::Setup)), "Take");
    let unsure = "wait Peer | Secondary FailedToPromote Error";
    check("the peer has only just begun", replica(), answered(failed(Failed::Busy)), unsure);
    check("the peer knows nothing", replica(), answered(peer(Role::Absent, 0, None)), "Take");
    let no = "wait PeerPrimary | Secondary FailedToPromote Error";
    check("primary there at our epoch", replica(), answered(peer(Role::Primary, 2, None)), no);
    check("primary there at a higher one", replica(), answered(peer(Role::Primary, 9, None)), no);
    check(
        "primary there at a lower one: it is over",
        replica(),
        answered(peer(Role::Primary, 1, None)),
        "Take",
    );
    let newer = peer(Role::Secondary, 1, Some((1, ago(1))));
    check(
        "it has what is not here",
        replica(),
        answered(newer),
        "wait PeerAhead | Secondary FailedToPromote Error",
    );
    let no_more = |w: &mut World| {
        w.job = called(asked, peer(Role::Primary, 2, None));
        w.job.as_mut().unwrap().outcome.as_mut().unwrap().0 = ago(-3600);
    };
    check("asked by a clock that was ahead", replica(), no_more, "Ask { of: \"promote/1/2\" }");
    let same = peer(Role::Secondary, 1, Some((1, ago(60))));
    check("it has what is here", replica(), answered(same), "Take");
    let forced = |w: &mut World| {
        edit(w, |one| {
            one.metadata.annotations =
                Some([(annotations::FORCE_PROMOTE.to_owned(), "true".to_owned())].into());
        });
    };
    check("somebody insists", replica(), forced, "Take");
}

#[test]
fn only_what_is_complete_becomes_primary() {
    let go = |w: &mut World| {
        w.job = called("promote/1/2", failed(Failed::Link));
        w.memory.promoting = true;
    };
    let with = |disk: Disk| world(Primary, secondary(), disk);
    let replica = || Disk::default().image(Kind::Replica, &image(1, 60));
    check("renamed", with(replica()), go, "Rename { from: Replica, to: Live }");
    let open = |w: &mut World| {
        go(w);
        w.memory.expected = expected("i", 1);
    };
    check("nothing comes in any more", with(replica().filling("i")), open, "Close");
    check("what is half there goes", with(replica().filling("i")), go, "Drop([Filling, Spare])");
    let unknown = |w: &mut World| {
        go(w);
        w.memory.probed = None;
    };
    check("nobody knows whether it is whole: look", with(replica().filling("i")), unknown, "Probe");
    let arrived = |w: &mut World| {
        go(w);
        w.memory.completed = completed("i", &image(1, 5));
    };
    check(
        "what arrived last counts",
        with(replica().filling("i")),
        arrived,
        "Seal(Image { generation: \"g5\", cut: 1970-01-12T13:46:35Z, epoch: 1, fuzzy: false })",
    );
    let sealed = replica().image(Kind::Filling, &image(1, 5));
    check("it takes the place of the one before", with(sealed), go, "MakeWay");
    let alone = Disk::default().image(Kind::Filling, &image(1, 5));
    check("and is published", with(alone), go, "Rename { from: Filling, to: Replica }");
    let diverged = Disk::default().image(Kind::Diverged, &image(1, 5));
    check(
        "what was kept aside, if nothing else is complete",
        with(diverged),
        go,
        "Rename { from: Diverged, to: Live }",
    );
    let stamped = Disk::default().image(Kind::Live, &image(1, 60));
    check("at the next epoch", with(stamped), go, "Stamp { epoch: 2 }");
    let nothing = |w: &mut World| {
        w.job = called("promote/1/1", failed(Failed::Link));
        w.memory.promoting = true;
    };
    check(
        "nothing ever arrived",
        with(Disk::default()),
        nothing,
        "wait NoCopy | Secondary FailedToPromote Error",
    );
    let done = |w: &mut World| {
        w.job = called("promote/1/2", failed(Failed::Link));
        w.memory.promoting = true;
    };
    check("allowed to be used last of all", with(Disk::default().live(2)), done, "Open");
}

fn demoting() -> World {
    world(Secondary, secondary(), Disk::default().live(1))
}

#[test]
fn a_primary_becomes_secondary_with_everything_at_the_peer() {
    let waits = |why: &str, state: &str| format!("wait {why} | {state} FailedToDemote Error");
    let used = |w: &mut World| w.users = vec!["pod web".into()];
    check(
        "not while it is used",
        world(Secondary, primary(), Disk::default().live(1)),
        used,
        &waits("InUse", "Primary"),
    );
    check("shut first", world(Secondary, primary(), Disk::default().live(1)), |_| {}, "Shut");
    check("used all the same", demoting(), used, &waits("InUse", "Unknown"));
    check("ask", demoting(), |_| {}, "Ask { of: \"demote/1\" }");
    let told = |answer| move |w: &mut World| w.job = called("demote/1", answer);
    let here = peer(Role::Secondary, 1, Some((1, ago(60))));
    check("the peer is gone", demoting(), told(failed(Failed::Link)), &waits("Peer", "Unknown"));
    check("cut when nobody writes", demoting(), told(here.clone()), "Cut { epoch: 1, last: true }");
    let earlier = || world(Secondary, secondary(), Disk::default().live(1).image(Kind::Cut, &image(1, 5)));
    check("an earlier cut is not all", earlier(), told(here.clone()), "Drop([Cut])");
    let last = || world(Secondary, secondary(), Disk::default().live(1).last_cut(&image(1, 5)));
    check("sent", last(), told(here), "Send | Unknown FailedToDemote VolumeDegraded");
    let sent = |w: &mut World| w.job = called("send/g5", Some(Ok(Word::Sent(Sent::default()))));
    check(
        "only then a replica",
        last(),
        sent,
        "Retire(Image { generation: \"g5\", cut: 1970-01-12T13:46:35Z, epoch: 1, fuzzy: false })",
    );
    let broken = |w: &mut World| w.job = called("send/g5", failed(Failed::Link));
    check("not before", last(), broken, &waits("Peer", "Unknown"));
    let over = |w: &mut World| w.job = called("send/g5", failed(Failed::Superseded));
    check("the peer went on: ask what it is", last(), over, "Ask { of: \"demote/1\" }");
}

#[test]
fn what_only_one_side_has_is_kept() {
    let ahead = |auto_resync: bool| {
        move |w: &mut World| {
            edit(w, |one| one.spec.auto_resync = auto_resync);
            w.job = called("demote/1", peer(Role::Primary, 2, None));
        }
    };
    check(
        "nobody said that it may go",
        demoting(),
        ahead(false),
        "wait SplitBrain | Unknown FailedToResync Error",
    );
    check("set aside", demoting(), ahead(true), "SetAside");
    let behind = |w: &mut World| w.job = called("demote/1", peer(Role::Primary, 1, None));
    check("the peer is not later", demoting(), behind, "wait PeerPrimary | Unknown FailedToDemote Error");
    let filling = || world(Secondary, secondary(), Disk::default().image(Kind::Diverged, &image(1, 90)));
    check("until it is replaced", filling(), |_| {}, "wait Filling | Secondary Demoted VolumeDegraded");
    let replaced = world(Secondary, secondary(), Disk::default().image(Kind::Replica, &image(2, 5)));
    check("complete", replaced, |_| {}, "settled | Secondary Demoted Healthy");
}

#[test]
fn ending() {
    let going = |w: &mut World| edit(w, |one| one.metadata.deletion_timestamp = Some(Time(ago(1))));
    let calling = |w: &mut World| {
        going(w);
        w.job = called("send/g5", None);
    };
    check("stopped", live(), calling, "Stop");
    let cut = world(Primary, primary(), Disk::default().live(1).image(Kind::Cut, &image(1, 5)));
    check("what was cut goes", cut, going, "Drop([Cut])");
    check("let go; the volume stays", live(), going, "Release");
    check(
        "without its claim too",
        live(),
        |w| {
            going(w);
            w.place = Place::NoClaim;
        },
        "Release",
    );
    let gone = |w: &mut World| {
        going(w);
        edit(w, |one| one.metadata.finalizers = None);
    };
    check("gone", live(), gone, "settled");
}
