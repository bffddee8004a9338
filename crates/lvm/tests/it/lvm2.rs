//! The LVM2 back end over an LVM in memory: the promises of every back end, and what it does when LVM misbehaves.

use crate::fake::{EXTENT, FakeLvm, Fault, Lv};
use crate::suite::{self, SMALL, copy, find, tags, volume};
use lifeboat_lvm::{
    AccessMode, Error, Guard, Kind, Lvm, Lvm2, LvmClass, LvmSettings, Pace, Snapshot, TroubleKind, Wipe,
};
use std::sync::Arc;
use std::time::Duration;

fn thick(spare: u64) -> LvmClass {
    LvmClass::new("thick", "g", Kind::Thick { spare })
}

fn thin(overprovision: f64) -> LvmClass {
    let guard = Guard { extend_percent: 20.0, ..Guard::default() };
    LvmClass::new("thin", "g", Kind::Thin { pool: "pool".to_owned(), overprovision, guard })
}

fn open(fake: &FakeLvm) -> Arc<Lvm2> {
    let classes = vec![thick(0), thin(2.0)];
    let settings = LvmSettings {
        option_classes: [("fancy".to_owned(), vec!["--type".to_owned(), "raid1".to_owned()])].into(),
        ..LvmSettings::default()
    };
    Arc::new(Lvm2::new(classes, settings, Arc::new(fake.clone())).unwrap())
}

pub fn both() -> (FakeLvm, Arc<Lvm2>) {
    let fake = FakeLvm::new(200 * EXTENT, Some(50 * EXTENT));
    let lvm = open(&fake);
    (fake, lvm)
}

#[tokio::test]
async fn lvm_keeps_the_promises_of_every_back_end() {
    let (_, lvm) = both();
    for class in ["thick", "thin"] {
        suite::life_of_a_volume(&*lvm, class).await;
        suite::bad_requests(&*lvm, class).await;
        suite::exchanges(&*lvm, class).await;
    }
    suite::snapshots(&*lvm, "thin").await;
}

#[tokio::test]
async fn volumes_are_tagged_as_ours_and_nobody_is_shown_that() {
    let (fake, lvm) = both();
    let made = lvm.create(volume("thick", "a", SMALL)).await.unwrap();
    assert_eq!(made.tags, tags(&["owner=test"]));
    assert_eq!(fake.state.lock().volumes["a"].tags, tags(&["lifeboat.volume", "owner=test"]));
}

#[tokio::test]
async fn options_of_a_request_take_the_place_of_the_class() {
    let (fake, lvm) = both();
    let mut wanted = volume("thick", "a", SMALL);
    wanted.options = "fancy".to_owned();
    lvm.create(wanted.clone()).await.unwrap();
    let create =
        fake.state.lock().commands.iter().find(|arguments| arguments[0] == "lvcreate").unwrap().clone();
    assert!(create.windows(2).any(|pair| pair == ["--type", "raid1"]), "{create:?}");
    wanted.options = "unheard-of".to_owned();
    assert!(matches!(lvm.create(wanted).await, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn a_thick_class_takes_only_short_lived_snapshots() {
    let (fake, lvm) = both();
    lvm.create(volume("thick", "a", SMALL)).await.unwrap();
    let lasting = copy("thick", "s", "a", AccessMode::ReadOnly);
    assert!(matches!(lvm.snapshot(lasting.clone()).await, Err(Error::Unsupported(_))));
    let short = Snapshot { short_lived: Some(EXTENT), ..lasting };
    let taken = lvm.snapshot(short.clone()).await.unwrap().volume;
    assert_eq!((taken.size, taken.origin.as_deref()), (SMALL, Some("a")));
    assert_eq!(fake.state.lock().volumes["s"].cow, Some(EXTENT));
    let larger = Snapshot { name: "t".to_owned(), size: 2 * SMALL, ..short };
    assert!(matches!(lvm.snapshot(larger).await, Err(Error::Unsupported(_))));
    // LVM would remove the snapshot together with its origin.
    assert!(matches!(lvm.remove("thick", "a").await, Err(Error::Busy { .. })));
    lvm.remove("thick", "s").await.unwrap();
    lvm.remove("thick", "a").await.unwrap();
}

#[tokio::test]
async fn a_removed_thick_volume_is_wiped_and_one_in_use_is_left_alone() {
    let (fake, lvm) = both();
    lvm.create(volume("thick", "a", SMALL)).await.unwrap();
    fake.state.lock().volumes.get_mut("a").unwrap().open = true;
    assert!(matches!(lvm.remove("thick", "a").await, Err(Error::Busy { .. })));
    assert!(fake.state.lock().wiped.is_empty());
    fake.state.lock().volumes.get_mut("a").unwrap().open = false;
    lvm.remove("thick", "a").await.unwrap();
    assert_eq!(fake.state.lock().wiped, ["lb.removed.a"]);
    lvm.create(volume("thin", "b", SMALL)).await.unwrap();
    lvm.remove("thin", "b").await.unwrap();
    assert_eq!(fake.state.lock().wiped.len(), 1, "a pool hands out zeroed chunks");
    let fake = FakeLvm::new(50 * EXTENT, None);
    let class = LvmClass { wipe: Wipe::None, ..thick(0) };
    let lvm = Lvm2::new(vec![class], LvmSettings::default(), Arc::new(fake.clone())).unwrap();
    lvm.create(volume("thick", "a", SMALL)).await.unwrap();
    lvm.remove("thick", "a").await.unwrap();
    assert!(fake.state.lock().wiped.is_empty());
}

#[tokio::test]
async fn others_use_the_group_while_a_volume_is_wiped() {
    let (fake, lvm) = both();
    lvm.create(volume("thick", "a", SMALL)).await.unwrap();
    fake.fault("wipe", Fault::Waits);
    let removal = tokio::spawn({
        let lvm = lvm.clone();
        async move { lvm.remove("thick", "a").await }
    });
    while !fake.state.lock().volumes.contains_key("lb.removed.a") {
        tokio::task::yield_now().await;
    }
    lvm.create(volume("thick", "b", SMALL)).await.unwrap();
    assert_eq!(find(&*lvm, "thick", "a").await, None);
    lvm.recover().await;
    assert!(fake.state.lock().volumes.contains_key("lb.removed.a"), "recovery leaves our own work alone");
    fake.go();
    removal.await.unwrap().unwrap();
    assert!(!fake.state.lock().volumes.contains_key("lb.removed.a"));
}

#[tokio::test]
async fn a_restart_finishes_what_a_crash_left() {
    let (fake, lvm) = both();
    let ours = |pool: Option<&str>| Lv {
        size: SMALL,
        tags: tags(&["lifeboat.volume"]),
        pool: pool.map(str::to_owned),
        ..Lv::default()
    };
    {
        let mut state = fake.state.lock();
        state.volumes.insert("lb.staged.s".to_owned(), ours(Some("pool")));
        state.volumes.insert("lb.removed.r".to_owned(), ours(None));
        state.volumes.insert("asleep".to_owned(), ours(None));
        state.volumes.insert("foreign".to_owned(), Lv { size: SMALL, ..Lv::default() });
    }
    lvm.recover().await;
    let state = fake.state.lock();
    assert_eq!(state.volumes.keys().collect::<Vec<_>>(), ["asleep", "foreign"]);
    assert_eq!(state.wiped, ["lb.removed.r"]);
    assert!(state.volumes["asleep"].active);
    assert!(!state.volumes["foreign"].active, "what is not ours is left alone");
}

#[tokio::test]
async fn a_wipe_that_failed_is_tried_again() {
    let (fake, lvm) = both();
    lvm.create(volume("thick", "a", SMALL)).await.unwrap();
    fake.fault("wipe", Fault::Unstartable);
    assert!(matches!(lvm.remove("thick", "a").await, Err(Error::Transient(_))));
    assert!(fake.state.lock().volumes.contains_key("lb.removed.a"));
    let [trouble] = &lvm.health().await[..] else { panic!("one trouble") };
    assert_eq!((trouble.class.as_str(), trouble.kind), ("thick", TroubleKind::Leftover));
    lvm.tend().await;
    while !fake.state.lock().volumes.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(lvm.health().await, []);
}

#[tokio::test]
async fn a_missing_group_is_never_taken_for_a_missing_volume() {
    let (fake, lvm) = both();
    lvm.create(volume("thick", "a", SMALL)).await.unwrap();
    fake.state.lock().present = false;
    let refused = lvm.remove("thick", "a").await;
    assert!(
        matches!(&refused, Err(Error::Transient(why)) if why.contains("\"g\" is not there")),
        "{refused:?}"
    );
    let troubles = lvm.health().await;
    assert!(troubles.iter().all(|trouble| trouble.kind == TroubleKind::Unusable), "{troubles:?}");
    assert_eq!(troubles.len(), 2);
    fake.state.lock().present = true;
    assert_eq!(lvm.health().await, []);
    lvm.remove("thick", "a").await.unwrap();
}

#[tokio::test]
async fn what_a_failed_create_left_is_removed() {
    let (fake, lvm) = both();
    fake.fault("lvcreate", Fault::HalfDone);
    assert!(matches!(lvm.create(volume("thick", "a", SMALL)).await, Err(Error::Transient(_))));
    assert!(fake.state.lock().volumes.is_empty());
    lvm.create(volume("thin", "a", SMALL)).await.unwrap();
    let mut larger = copy("thin", "s", "a", AccessMode::ReadWrite);
    larger.size = 2 * SMALL;
    for command in ["lvcreate", "lvextend", "lvrename"] {
        fake.fault(command, Fault::Fails(5, "no"));
        assert!(lvm.snapshot(larger.clone()).await.is_err(), "{command}");
        assert_eq!(fake.state.lock().volumes.keys().collect::<Vec<_>>(), ["a"], "{command}");
    }
    lvm.snapshot(larger).await.unwrap();
}

#[tokio::test]
async fn failures_of_lvm_become_errors_that_say_what_to_do() {
    let (fake, lvm) = both();
    lvm.create(volume("thick", "a", SMALL)).await.unwrap();
    let create = async |fault| {
        fake.fault("lvcreate", fault);
        lvm.create(volume("thick", "b", SMALL)).await.unwrap_err()
    };
    let no_room =
        create(Fault::Fails(5, "Volume group \"g\" has insufficient free space (1 extents): 2 required."))
            .await;
    assert!(matches!(no_room, Error::NoRoom { .. }), "{no_room:?}");
    assert!(matches!(create(Fault::Fails(3, "")).await, Error::Invalid(_)));
    assert!(matches!(create(Fault::Unstartable).await, Error::Transient(_)));
    assert!(matches!(create(Fault::Fails(5, "something new")).await, Error::Transient(_)));
    for text in ["garbage", "{", "", r#"{"report":[{"vg":[{"vg_name":"g","vg_size":"many"}]}]}"#] {
        let lvm = open(&fake);
        fake.fault("fullreport", Fault::Prints(text));
        let read = lvm.volumes("thick").await;
        assert!(matches!(read, Err(Error::Transient(_))), "{text:?}: {read:?}");
        assert_eq!(lvm.volumes("thick").await.unwrap().len(), 1, "the next report is fine");
    }
}

#[tokio::test]
async fn readers_share_one_report_until_something_changes() {
    let (fake, lvm) = both();
    let before = fake.count("fullreport");
    let reads: Vec<_> = (0..50)
        .map(|_| {
            let lvm = lvm.clone();
            tokio::spawn(
                async move { (lvm.volumes("thick").await.unwrap(), lvm.capacity("thin").await.unwrap()) },
            )
        })
        .collect();
    for read in reads {
        read.await.unwrap();
    }
    assert_eq!(fake.count("fullreport") - before, 1);
    lvm.create(volume("thick", "a", SMALL)).await.unwrap();
    assert_eq!(lvm.volumes("thick").await.unwrap().len(), 1);
    assert_eq!(fake.count("fullreport") - before, 2, "a create costs one command and one report");
}

#[tokio::test(start_paused = true)]
async fn an_old_report_is_not_trusted_and_foreign_changes_wake_watchers() {
    let (fake, lvm) = both();
    assert_eq!(lvm.volumes("thick").await.unwrap(), []);
    fake.state.lock().volumes.insert("foreign".to_owned(), Lv { size: SMALL, ..Lv::default() });
    assert_eq!(lvm.volumes("thick").await.unwrap(), []);
    let mut changes = lvm.changes();
    changes.mark_unchanged();
    tokio::time::advance(Duration::from_secs(11)).await;
    assert_eq!(lvm.volumes("thick").await.unwrap().len(), 1);
    assert!(changes.has_changed().unwrap());
}

#[tokio::test]
async fn a_change_whose_caller_went_away_is_finished_and_waited_for() {
    let (fake, lvm) = both();
    fake.fault("lvcreate", Fault::Waits);
    let began = tokio::time::timeout(Duration::from_millis(20), lvm.create(volume("thick", "a", SMALL)));
    assert!(began.await.is_err());
    let next = tokio::spawn({
        let lvm = lvm.clone();
        async move { lvm.create(volume("thick", "a", SMALL)).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(fake.count("lvcreate"), 1, "one change at a time");
    fake.go();
    let exists = Error::Exists { class: "thick".to_owned(), name: "a".to_owned() };
    assert_eq!(next.await.unwrap(), Err(exists));
}

/// Two processes on one group: lvmd and an agent that has its own, or an old one that is still ending.
#[tokio::test]
async fn the_volume_of_another_process_is_never_taken_for_a_leftover() {
    let locks = tempfile::tempdir().unwrap();
    let fake = FakeLvm::new(200 * EXTENT, None);
    let process = || {
        let pace = Pace { locks: Some(locks.path().to_owned()), ..Pace::default() };
        let settings = LvmSettings { pace, ..LvmSettings::default() };
        Lvm2::new(vec![thick(0)], settings, Arc::new(fake.clone())).unwrap()
    };
    let (one, other) = (process(), process());
    assert_eq!(one.volumes("thick").await.unwrap(), [], "seen by the first, and remembered");
    other.create(volume("thick", "a", SMALL)).await.unwrap();
    let exists = Err(Error::Exists { class: "thick".to_owned(), name: "a".to_owned() });
    assert_eq!(one.create(volume("thick", "a", SMALL)).await, exists);
    assert!(fake.state.lock().volumes.contains_key("a"));
}

#[tokio::test]
async fn processes_of_one_machine_change_a_group_one_after_the_other() {
    let locks = tempfile::tempdir().unwrap();
    let fake = FakeLvm::new(200 * EXTENT, None);
    let process = || {
        let pace = Pace { locks: Some(locks.path().to_owned()), ..Pace::default() };
        let settings = LvmSettings { pace, ..LvmSettings::default() };
        Arc::new(Lvm2::new(vec![thick(0)], settings, Arc::new(fake.clone())).unwrap())
    };
    fake.fault("lvcreate", Fault::Waits);
    let making = |lvm: Arc<Lvm2>, name: &'static str| {
        tokio::spawn(async move { lvm.create(volume("thick", name, SMALL)).await })
    };
    let first = making(process(), "a");
    while fake.count("lvcreate") == 0 {
        tokio::task::yield_now().await;
    }
    let second = making(process(), "b");
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(fake.count("lvcreate"), 1, "the second waits for the first");
    fake.go();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(fake.count("lvcreate"), 2);
}

#[tokio::test]
async fn a_volume_is_made_and_published_in_one_turn() {
    let (fake, lvm) = both();
    fake.fault("lvcreate", Fault::Waits);
    let wanted = || volume("thick", "staging-a", SMALL);
    let began = tokio::time::timeout(Duration::from_millis(20), lvm.create_as(wanted(), "a"));
    assert!(began.await.is_err(), "nobody waits for it any more");
    let others = (0..5).map(|n| {
        let lvm = lvm.clone();
        tokio::spawn(async move {
            lvm.create_as(volume("thick", &format!("s{n}"), SMALL), &format!("v{n}")).await
        })
    });
    let others: Vec<_> = others.collect();
    let again = tokio::spawn({
        let lvm = lvm.clone();
        async move { lvm.create_as(volume("thick", "staging-a", SMALL), "a").await }
    });
    tokio::task::yield_now().await;
    fake.go();
    let exists = Error::Exists { class: "thick".to_owned(), name: "a".to_owned() };
    assert_eq!(again.await.unwrap(), Err(exists), "what was begun is found published");
    for other in others {
        other.await.unwrap().unwrap();
    }
    let names: Vec<_> = fake.state.lock().volumes.keys().cloned().collect();
    assert_eq!(names, ["a", "v0", "v1", "v2", "v3", "v4"]);
}

#[tokio::test]
async fn one_leftover_that_cannot_be_finished_holds_up_nothing_else() {
    let (fake, lvm) = both();
    let ours = || Lv { size: SMALL, tags: tags(&["lifeboat.volume"]), ..Lv::default() };
    for name in ["lb.staged.x", "lb.staged.y", "z"] {
        fake.state.lock().volumes.insert(name.to_owned(), Lv { active: name != "z", ..ours() });
    }
    fake.state.lock().data_percent = 90.0;
    fake.fault("lvremove", Fault::Unstartable);
    lvm.tend().await;
    let state = fake.state.lock();
    assert!(!state.volumes.contains_key("lb.staged.y"), "the other leftover is gone");
    assert!(state.volumes["z"].active, "and the volume is active");
    assert_eq!(state.pool, Some(60 * EXTENT), "and the pool has grown");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_hangs_is_told_of_and_not_stopped() {
    let fake = FakeLvm::new(200 * EXTENT, None);
    let pace = Pace { wedged_after: Duration::from_secs(60), ..Pace::default() };
    let settings = LvmSettings { pace, ..LvmSettings::default() };
    let lvm = Arc::new(Lvm2::new(vec![thick(0)], settings, Arc::new(fake.clone())).unwrap());
    fake.fault("lvcreate", Fault::Waits);
    let hanging = tokio::spawn({
        let lvm = lvm.clone();
        async move { lvm.create(volume("thick", "a", SMALL)).await }
    });
    while fake.count("lvcreate") == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(lvm.health().await, []);
    tokio::time::advance(Duration::from_secs(61)).await;
    let [trouble] = &lvm.health().await[..] else { panic!("one trouble") };
    assert_eq!(trouble.kind, TroubleKind::Wedged);
    assert!(trouble.message.contains("lvcreate"), "{}", trouble.message);
    fake.go();
    hanging.await.unwrap().unwrap();
    assert_eq!(lvm.health().await, []);
}

#[tokio::test]
async fn room_promised_to_a_volume_under_way_is_not_shown_to_others() {
    let (fake, lvm) = both();
    let free = lvm.capacity("thick").await.unwrap().free;
    fake.fault("lvcreate", Fault::Waits);
    let making = tokio::spawn({
        let lvm = lvm.clone();
        async move { lvm.create(volume("thick", "a", SMALL)).await }
    });
    while fake.count("lvcreate") == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(lvm.capacity("thick").await.unwrap().free, free - SMALL);
    fake.go();
    making.await.unwrap().unwrap();
    assert_eq!(lvm.capacity("thick").await.unwrap().free, free - SMALL);
}

#[tokio::test]
async fn spare_room_is_kept_on_create_as_on_report() {
    let fake = FakeLvm::new(100 * EXTENT, None);
    let lvm = Lvm2::new(vec![thick(40 * EXTENT)], LvmSettings::default(), Arc::new(fake)).unwrap();
    assert_eq!(lvm.capacity("thick").await.unwrap().free, 60 * EXTENT);
    let refused = lvm.create(volume("thick", "a", 60 * EXTENT + 1)).await;
    assert_eq!(
        refused,
        Err(Error::NoRoom { class: "thick".to_owned(), wanted: 61 * EXTENT, free: 60 * EXTENT })
    );
    lvm.create(volume("thick", "a", 60 * EXTENT)).await.unwrap();
    assert!(matches!(lvm.resize("thick", "a", 61 * EXTENT).await, Err(Error::NoRoom { .. })));
}

#[tokio::test]
async fn a_pool_that_fills_up_warns_stops_and_grows() {
    let (fake, lvm) = both();
    lvm.create(volume("thin", "a", SMALL)).await.unwrap();
    let fill = |percent| fake.state.lock().data_percent = percent;
    let kinds = async || {
        let lvm = open(&fake);
        lvm.health().await.into_iter().map(|trouble| trouble.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds().await, []);
    fill(85.0);
    assert_eq!(kinds().await, [TroubleKind::PoolFilling]);
    fill(96.0);
    assert_eq!(kinds().await, [TroubleKind::PoolFull]);
    let lvm = open(&fake);
    for refused in [
        lvm.snapshot(copy("thin", "s", "a", AccessMode::ReadOnly)).await.map(drop),
        lvm.create(volume("thin", "b", SMALL)).await.map(drop),
    ] {
        assert!(matches!(refused, Err(Error::NoRoom { free: 0, .. })), "{refused:?}");
    }
    lvm.tend().await;
    assert_eq!(fake.state.lock().pool, Some(60 * EXTENT), "a fifth more");
}
