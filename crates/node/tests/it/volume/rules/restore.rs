//! The restore of a volume, and the gate before it.

use super::*;

#[test]
fn restoring_it() {
    let found = "SnapshotBackupStorageFound=True";
    let online = |phase, id| {
        move |w: &mut World| {
            edit(w, |v| {
                v.metadata.annotations = None;
                v.status = None;
            });
            w.disk = seen(None, None);
            copies(w, "rw", source(phase, id, true));
        }
    };
    let barrier = r#"Claim { finalizers: [], barrier: Some("backup/ns/store/u0"), stored_in: None }"#;
    check(
        "should perform restore: the barrier is written before anything is made",
        restoring(),
        online(Some(SnapshotPhase::Succeeded), Some("5a")),
        barrier,
    );
    let behind = |phase: Option<SnapshotPhase>, id: Option<&'static str>| {
        move |w: &mut World| {
            edit(w, |v| v.status = None);
            w.disk = seen(None, None);
            w.source = source(phase, id, true);
        }
    };
    check(
        "source SUCCEEDED with an id",
        restoring(),
        behind(Some(SnapshotPhase::Succeeded), Some("5a")),
        "Stage { size: 1073741824 }",
    );
    check(
        "source SUCCEEDED without an id",
        restoring(),
        behind(Some(SnapshotPhase::Succeeded), None),
        "wait SourceNotBackedUp",
    );
    check("source without a status", restoring(), behind(None, None), "wait SourceNotBackedUp");
    check(
        "source PENDING",
        restoring(),
        behind(Some(SnapshotPhase::Pending), None),
        "wait SourceNotBackedUp",
    );
    check(
        "source RUNNING",
        restoring(),
        behind(Some(SnapshotPhase::Running), None),
        "wait SourceNotBackedUp",
    );
    check(
        "source FAILED",
        restoring(),
        behind(Some(SnapshotPhase::Failed), None),
        "wait Refused | code 9, Refused=True",
    );
    check(
        "source LV exists? no: by handle",
        restoring(),
        |w| {
            edit(w, |v| v.status = None);
            w.disk = seen(None, None);
        },
        "Stage { size: 1073741824 }",
    );
    check(
        "a barrier that cannot be read is no plain create",
        restoring(),
        |w| {
            edit(w, |v| v.status = None);
            note(w, annotations::SNAPSHOT_RESTORE_REQUIRED, "nonsense/x");
        },
        "wait Refused | code 3, Refused=True",
    );
    check(
        "made and pending are one write",
        restoring(),
        |w| edit(w, |v| v.status = None),
        "wait Recording | made, Pending",
    );
    check(
        "wait for PV to be ready",
        restoring(),
        |w| w.persistent_volume = false,
        "wait PersistentVolumeMissing",
    );
    check("mount LV", restoring(), |_| {}, &format!("Mount {{ operation: Restore }} | {found}"));
    let mounted = |w: &mut World| w.mount = Some("/m/u1".into());
    check(
        "execute restore operation",
        restoring(),
        |w| {
            mounted(w);
            running(w, "n1/b", 1);
            w.reserved = true;
        },
        "Start { operation: Restore }",
    );
    check(
        "restore success? unmount first",
        restoring(),
        |w| {
            mounted(w);
            running(w, "n1/b", 1);
            job(w, SnapshotOperation::Restore, Some(Ok(())));
        },
        "Unmount",
    );
    check(
        "renaming is what publishes",
        restoring(),
        |w| {
            running(w, "n1/b", 1);
            job(w, SnapshotOperation::Restore, Some(Ok(())));
        },
        "Publish",
    );
    check(
        "SUCCEEDED after it is published",
        restoring(),
        |w| {
            running(w, "n1/b", 1);
            job(w, SnapshotOperation::Restore, Some(Ok(())));
            w.disk = seen(on_disk(UID, GIB), None);
        },
        "wait Recording | Succeeded",
    );
    check(
        "published by a process that died before it said so",
        restoring(),
        |w| {
            running(w, "n1/a", 1);
            w.disk = seen(on_disk(UID, GIB), None);
        },
        "wait Recording | Succeeded",
    );
    check(
        "restore failed",
        restoring(),
        |w| {
            running(w, "n1/b", 1);
            job(w, SnapshotOperation::Restore, Some(Err(MoverError::NoSnapshot("x".into()))));
        },
        &format!("wait Failed | Failed, {found}"),
    );
    check(
        "what can never be mounted failed, with a code",
        restoring(),
        |w| w.unmountable = Some("zfs is no filesystem that is supported".into()),
        &format!("wait Failed | Failed, {found}"),
    );
    let code = |error: Option<MoverError>| {
        let mut world = restoring();
        running(&mut world, "n1/b", 1);
        match error {
            Some(error) => job(&mut world, SnapshotOperation::Restore, Some(Err(error))),
            None => world.unmountable = Some("no".into()),
        }
        let snapshot = decide(&world, now()).status.unwrap().snapshot.unwrap();
        snapshot.error.unwrap().code.unwrap()
    };
    assert_eq!(code(None), "VolumeBindMountFailed");
    assert_eq!(code(Some(MoverError::NoSnapshot("x".into()))), "RestoreExecutionFailed");
    check("FAILED keeps the staging volume for another try", restoring(), failed, "wait Failed");
    check(
        "once restored it is a volume like any other",
        restoring(),
        |w| {
            succeeded(w);
            w.disk = seen(on_disk(UID, GIB), None);
            edit(w, |v| v.spec.size = Quantity("2Gi".into()));
        },
        "Grow { size: 2147483648 }",
    );
    let gone = |w: &mut World| {
        succeeded(w);
        snapshot(w, |snapshot| snapshot.completion_time = Some(ago(30)));
        w.disk = seen(None, None);
    };
    check("what was restored and is gone is not restored anew", restoring(), gone, "wait Failed");
    check(
        "unless somebody asks for it",
        restoring(),
        |w| {
            gone(w);
            note(w, annotations::SNAPSHOT_RETRY_REQUESTED_AT, &now().to_string());
        },
        "Stage { size: 1073741824 }",
    );
    check(
        "half restored into storage that no class names any more",
        restoring(),
        |w| {
            w.disk = seen(None, None);
            w.home = Home::Unserved("g".into());
        },
        "wait Unserved",
    );
    check(
        "half restored, and what was filled is gone",
        restoring(),
        |w| w.disk = seen(None, None),
        "Stage { size: 1073741824 }",
    );
}

#[test]
fn the_gate_is_at_mount() {
    let check = |rule: &str, world: World, change: &dyn Fn(&mut World), allowed: bool| {
        let mut world = world;
        change(&mut world);
        assert_eq!(may_publish(&world.volume).is_ok(), allowed, "{rule}: {:?}", may_publish(&world.volume));
    };
    check("not made yet", world(), &|_| {}, false);
    check("made", world(), &made, true);
    check(
        "behind the barrier, without any status",
        restoring(),
        &|w| status(w, |s| s.snapshot = None),
        false,
    );
    check("being restored", restoring(), &|_| {}, false);
    check("restored", restoring(), &succeeded, true);
    check("restore failed", restoring(), &failed, false);
    check(
        "the secondary of a mirror",
        world(),
        &|w| {
            made(w);
            note(w, annotations::MIRROR_ROLE, annotations::MIRROR_SECONDARY);
        },
        false,
    );
}
