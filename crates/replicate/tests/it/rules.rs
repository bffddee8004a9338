//! Rules about senders, one row each.

use jiff::{SignedDuration, Timestamp};
use lifeboat_api::volsync::{ReplicationSource, ReplicationSourceStatus, Trigger};
use lifeboat_engine::Next;
use lifeboat_lvm::{Access, AccessMode, Volume};
use lifeboat_replicate::jobs::JobView;
use lifeboat_replicate::place::{Here, Place};
use lifeboat_replicate::source::decide::{Effect, decide};
use lifeboat_replicate::source::failure::{Failure, Kind};
use lifeboat_replicate::source::world::{Cut, World};
use lifeboat_replicate::why::Wait;
use lifeboat_stream::Sent;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

fn now() -> Timestamp {
    "2030-01-01T12:00:30Z".parse().unwrap()
}

fn volume(name: &str, tags: BTreeSet<String>) -> Volume {
    Volume {
        name: name.to_owned(),
        size: 4096,
        tags,
        access: Access::Directory("/data".into()),
        origin: None,
        mode: AccessMode::ReadWrite,
        attr: "-wi-a-----".to_owned(),
        device: (0, 0),
    }
}

fn here(epoch: u64) -> Place {
    let tags = if epoch > 0 { BTreeSet::from([format!("lifeboat.epoch={epoch}")]) } else { BTreeSet::new() };
    let volume = volume("v", tags);
    let (uid, class) = ("v".to_owned(), String::new());
    Place::Here(Box::new(Here { uid, class, volume, block: false, filesystem: "ext4".to_owned() }))
}

/// A sender that was never served, asked by hand.
fn world() -> World {
    let source: ReplicationSource = serde_json::from_value(json!({
        "apiVersion": "volsync.backube/v1alpha1", "kind": "ReplicationSource",
        "metadata": {"name": "data", "namespace": "app", "uid": "u", "generation": 3},
        "spec": {"sourcePVC": "data", "trigger": {"manual": "word"},
                 "rsyncTLS": {"address": "there", "keySecret": "key"}},
    }))
    .unwrap();
    World {
        source: Arc::new(source),
        place: here(0),
        cut: None,
        mount: None,
        epochs: None,
        orphan: false,
        held: false,
        job: None,
        room: true,
        rival: false,
        trouble: None,
    }
}

fn with(change: impl FnOnce(&mut World)) -> World {
    let mut world = world();
    change(&mut world);
    world
}

fn edit(world: &mut World, change: impl FnOnce(&mut ReplicationSource)) {
    change(Arc::make_mut(&mut world.source));
}

fn status(world: &mut World, status: Value) {
    edit(world, |source| source.status = Some(serde_json::from_value(status).unwrap()));
}

fn trigger(world: &mut World, schedule: Option<&str>, manual: Option<&str>) {
    let trigger = Trigger { schedule: schedule.map(str::to_owned), manual: manual.map(str::to_owned) };
    edit(world, |source| source.spec.trigger = Some(trigger));
}

fn cut(world: &mut World, epoch: u64, token: Option<&str>) {
    let at = now().checked_sub(SignedDuration::from_secs(10)).unwrap();
    world.cut = Cut::of(volume("send-u", Cut::tags("g1", at, epoch, token)));
    assert!(world.cut.is_some());
}

fn ended(world: &mut World, ago: i64, outcome: Result<Sent, Failure>) {
    let at = now().checked_sub(SignedDuration::from_secs(ago)).unwrap();
    let failures = u32::from(outcome.is_err());
    world.job = Some(JobView { of: "g1".to_owned(), outcome: Some((at, outcome)), failures });
}

fn does(world: &World, effect: Effect) -> Option<ReplicationSourceStatus> {
    let decision = decide(world, now());
    assert_eq!(decision.next, Next::Do(vec![effect]), "{world:#?}");
    decision.status
}

fn waits(
    world: &World,
    wanted: impl Fn(&Wait) -> bool,
    until: Option<&str>,
) -> Option<ReplicationSourceStatus> {
    let decision = decide(world, now());
    let Next::Wait { why, until: at } = &decision.next else { panic!("{decision:#?}") };
    assert!(wanted(why), "{why:?}");
    assert_eq!(*at, until.map(|text| text.parse().unwrap()), "{why:?}");
    decision.status
}

#[test]
fn a_copy_is_cut_when_it_is_due() {
    let cut = |token: Option<&str>| Effect::Cut { token: token.map(str::to_owned), epoch: 0 };
    does(&world(), cut(Some("word")));
    // By schedule: at once the first time, then after the last cut, whenever that copy ended.
    does(&with(|world| trigger(world, Some("*/5 * * * *"), None)), cut(None));
    let last = |world: &mut World, at: &str| {
        trigger(world, Some("*/5 * * * *"), None);
        status(world, json!({"lastSyncTime": "2030-01-01T12:00:20Z", "external": {"cut": at}}));
    };
    does(&with(|world| last(world, "2030-01-01T11:59:59Z")), cut(None));
    let due = |why: &Wait| matches!(why, Wait::Due(_));
    waits(&with(|world| last(world, "2030-01-01T12:00:01Z")), due, Some("2030-01-01T12:05:00Z"));
    // A clock that was ahead and has been corrected: nobody knows how old that copy is.
    does(&with(|world| last(world, "2030-01-01T18:00:00Z")), cut(None));
    let always = with(|world| {
        last(world, "2030-01-01T18:00:00Z");
        trigger(world, None, None);
    });
    does(&always, cut(None));
    // A hand goes before the clock.
    let both = with(|world| {
        last(world, "2030-01-01T12:00:01Z");
        trigger(world, Some("*/5 * * * *"), Some("word"));
    });
    does(&both, cut(Some("word")));
}

#[test]
fn a_word_is_served_once_and_only_with_the_receivers_echo() {
    let served = |echo: &str| {
        with(|world| status(world, json!({"lastManualSync": "word", "external": {"echo": echo}})))
    };
    waits(&served("word"), |why| *why == Wait::Manual, None);
    // D3: another mover may have given the word to a copy that had begun before.
    does(&served("other"), Effect::Cut { token: Some("word".to_owned()), epoch: 0 });
}

#[test]
fn what_was_cut_is_sent_whatever_is_asked_for_meanwhile() {
    let cut_first = |change: &dyn Fn(&mut World)| {
        with(|world| {
            cut(world, 0, Some("older"));
            change(world);
        })
    };
    does(&cut_first(&|_| {}), Effect::Start);
    waits(&cut_first(&|world| world.room = false), |why| *why == Wait::Turn, None);
    let running = JobView { of: "g1".to_owned(), outcome: None, failures: 0 };
    let sending = cut_first(&|world| world.job = Some(running.clone()));
    let decision = waits(&sending, |why| *why == Wait::Sending, None);
    assert_eq!(decision.unwrap().conditions[0].status, "True");
    // Told of before it is removed, so that a death in between repeats nothing.
    let sent = Sent { token: Some("older".to_owned()), bytes_on_wire: 7, ..Sent::default() };
    let done = cut_first(&|world| ended(world, 1, Ok(sent.clone())));
    let status = does(&done, Effect::Drop).unwrap();
    assert_eq!(status.last_manual_sync.as_deref(), Some("older"));
    assert_eq!(status.external["echo"], "older");
    assert_eq!(status.external["bytesOnWire"], "7");
    // The end less the duration is the cut.
    assert_eq!(status.last_sync_duration.unwrap().0, "9s");
    let told = cut_first(&|world| self::status(world, json!({"external": {"generation": "g1"}})));
    does(&told, Effect::Drop);
    // A receiver that echoes another word has not got this one.
    let other = cut_first(&|world| ended(world, 1, Ok(Sent::default())));
    assert_eq!(does(&other, Effect::Drop), None);
}

#[test]
fn a_failure_is_told_and_tried_again_in_time() {
    let after = |kind: Kind, ago: i64| {
        with(|world| {
            cut(world, 0, None);
            ended(world, ago, Err(Failure::new(kind, "it failed")));
        })
    };
    let decision = waits(
        &after(Kind::Link, 0),
        |why| *why == Wait::Failed("it failed".to_owned()),
        Some("2030-01-01T12:00:31Z"),
    );
    let status = decision.unwrap();
    assert_eq!(status.conditions[0].reason, "Error");
    assert_eq!(status.latest_mover_status.unwrap().logs.as_deref(), Some("it failed"));
    does(&after(Kind::Link, 1), Effect::Start);
    waits(&after(Kind::Key, 1), |why| matches!(why, Wait::Key(_)), Some("2030-01-01T12:00:34Z"));
    waits(
        &after(Kind::Superseded, 1),
        |why| matches!(why, Wait::Superseded(_)),
        Some("2030-01-01T12:01:29Z"),
    );
    // A snapshot that cannot be read is cut anew.
    does(&after(Kind::Source, 0), Effect::Drop);
    // So is one of a volume that was empty: it may be filled by now.
    does(&after(Kind::Emptied, 0), Effect::Drop);
    let again = |ago: i64| with(|world| ended(world, ago, Err(Failure::new(Kind::Emptied, "it is empty"))));
    let empty = |why: &Wait| *why == Wait::Failed("it is empty".to_owned());
    waits(&again(0), empty, Some("2030-01-01T12:00:45Z"));
    assert!(
        matches!(decide(&again(15), now()).next, Next::Do(effects) if matches!(effects[..], [Effect::Cut { .. }]))
    );
    // A failure that a clock noted which has been corrected since holds nobody up.
    does(&after(Kind::Superseded, -3600), Effect::Start);
    // Compares of whole volumes back off, and say what to do.
    let mut spoiled = after(Kind::Spoiled, 0);
    waits(&spoiled, |why| matches!(why, Wait::Failed(_)), Some("2030-01-01T12:00:31Z"));
    spoiled.job.as_mut().unwrap().failures = 7;
    let told = |why: &Wait| matches!(why, Wait::Failed(text) if text.contains("delete the receiver's PVC"));
    waits(&spoiled, told, Some("2030-01-01T12:01:30Z"));
    // Complete and not published is no error, and no busy loop.
    let mut publishing = after(Kind::Publishing, 0);
    publishing.job.as_mut().unwrap().failures = 7;
    let status = waits(&publishing, |why| matches!(why, Wait::Publishing(_)), Some("2030-01-01T12:01:00Z"));
    assert_eq!(status.unwrap().last_sync_time, None);
    waits(&after(Kind::Lineage, 0), |why| matches!(why, Wait::Lineage(_)), Some("2030-01-01T12:00:32Z"));
}

#[test]
fn what_was_copied_while_it_was_written_is_told() {
    let told = |fuzzy: bool| {
        let mut world = world();
        cut(&mut world, 0, Some("word"));
        let mut volume = world.cut.take().unwrap().volume;
        volume.tags.insert(Cut::lineage_tag("l"));
        volume.tags.extend(fuzzy.then(|| "lifeboat.fuzzy".to_owned()));
        world.cut = Cut::of(volume);
        ended(&mut world, 0, Ok(Sent { token: Some("word".to_owned()), ..Sent::default() }));
        let external = does(&world, Effect::Drop).unwrap().external;
        assert_eq!(external["lineage"], "l");
        external.contains_key("fuzzy")
    };
    assert!(told(true));
    assert!(!told(false));
}

#[test]
fn only_the_primary_sends() {
    let superseded = |why: &Wait| matches!(why, Wait::Superseded(_));
    let epochs = |highest: u64, ours: Option<u64>, tag: u64| {
        with(|world| (world.epochs, world.place) = (Some((highest, ours)), here(tag)))
    };
    does(&epochs(2, Some(2), 1), Effect::Cut { token: Some("word".to_owned()), epoch: 2 });
    // A group that knows of no epochs is a peer's.
    does(&epochs(0, None, 0), Effect::Cut { token: Some("word".to_owned()), epoch: 0 });
    waits(&epochs(2, None, 0), superseded, None);
    waits(&epochs(3, Some(2), 0), superseded, None);
    // The volume has seen a later primary, whatever the group says.
    waits(&epochs(2, Some(2), 3), superseded, None);
    // A group that nobody sees cannot say who is primary.
    waits(&with(|world| world.orphan = true), superseded, None);
    // What was cut in an earlier role is not sent.
    let older = with(|world| {
        world.epochs = Some((2, Some(2)));
        cut(world, 1, None);
    });
    does(&older, Effect::Drop);
}

#[test]
fn what_holds_a_sender_back_is_told() {
    waits(&with(|world| edit(world, |source| source.spec.paused = true)), |why| *why == Wait::Paused, None);
    waits(&with(|world| world.held = true), |why| *why == Wait::Held, None);
    waits(&with(|world| world.place = Place::NoClaim), |why| matches!(why, Wait::Claim(_)), None);
    waits(&with(|world| world.place = Place::Unbound), |why| matches!(why, Wait::Claim(_)), None);
    waits(&with(|world| world.place = Place::NotMade), |why| matches!(why, Wait::Volume(_)), None);
    let foreign = with(|world| world.place = Place::Foreign("not ours".to_owned()));
    waits(&foreign, |why| *why == Wait::Unsupported("not ours".to_owned()), None);
    waits(&with(|world| trigger(world, Some("never"), None)), |why| matches!(why, Wait::Schedule(_)), None);
    let keyless = with(|world| {
        edit(world, |source| source.spec.rsync_tls.as_mut().unwrap().key_secret = None);
    });
    waits(&keyless, |why| matches!(why, Wait::Key(_)), None);
    // Another mover's status is not touched.
    let decision = waits(&with(|world| world.rival = true), |why| *why == Wait::OtherMover, None);
    assert_eq!(decision, None);
}

#[test]
fn a_second_look_at_the_same_world_shows_the_same() {
    let first = with(|world| world.place = Place::Unbound);
    let shown = decide(&first, now()).status.unwrap();
    let second = with(|world| {
        world.place = Place::Unbound;
        edit(world, |source| source.status = Some(shown.clone()));
    });
    let later = now().checked_add(SignedDuration::from_secs(90)).unwrap();
    assert_eq!(decide(&second, later).status.unwrap(), shown);
}
