//! The backup of a snapshot.

use super::*;

#[test]
fn backing_it_up() {
    let found = "SnapshotBackupStorageFound=True";
    check(
        "the remote finalizer comes first",
        backing_up(),
        |w| {
            edit(w, |v| v.metadata.finalizers = Some(vec![finalizers::LOGICAL_VOLUME.into()]));
        },
        r#"Claim { finalizers: ["topolvm.io/snapshot-backup"], barrier: None, stored_in: None }"#,
    );
    check(
        "initialize snapshot status",
        backing_up(),
        |w| status(w, |s| s.snapshot = None),
        "wait Recording | Pending",
    );
    check(
        "a phase that peers left empty is none",
        backing_up(),
        |w| snapshot(w, |s| s.phase = SnapshotPhase::default()),
        "wait Recording | Pending",
    );
    check(
        "storage missing: waits, does not fail",
        backing_up(),
        |w| w.storage = Storage::Missing("none".into()),
        "wait StorageMissing | SnapshotBackupStorageFound=False",
    );
    check(
        "storage unnamed",
        backing_up(),
        |w| w.storage = Storage::Unnamed,
        "wait StorageUnnamed | SnapshotBackupStorageFound=False",
    );
    check("mount LV (ro)", backing_up(), |_| {}, &format!("Mount {{ operation: Backup }} | {found}"));
    check("no mount for raw block", backing_up(), |w| w.files = false, "Reserve");
    check(
        "what was to be backed up is gone: it failed, and nobody waits for it",
        backing_up(),
        |w| w.disk = seen(None, None),
        "wait Failed | Failed",
    );
    check("others come first", backing_up(), |w| w.room = false, &format!("wait Queued | {found}"));
    check(
        "others come first, also after RUNNING of an earlier process was found",
        backing_up(),
        |w| {
            running(w, "n1/a", 50);
            w.room = false;
        },
        &format!("wait Queued | {found}"),
    );
    check(
        "whoever has a place and waits for something else gives it back",
        backing_up(),
        |w| {
            w.reserved = true;
            w.storage = Storage::Missing("gone".into());
        },
        "Stop",
    );
    check(
        "what can never be mounted failed, with a code",
        backing_up(),
        |w| w.unmountable = Some("it holds no filesystem".into()),
        &format!("wait Failed | Failed, {found}"),
    );
    let mounted = |w: &mut World| w.mount = Some("/m/u1".into());
    check("a place is kept before RUNNING is on record", backing_up(), mounted, "Reserve");
    check(
        "RUNNING is on record before bytes move",
        backing_up(),
        |w| {
            mounted(w);
            (w.reserved, w.room) = (true, false);
        },
        &format!("wait Recording | Running, {found}"),
    );
    check(
        "execute snapshot operation",
        backing_up(),
        |w| {
            mounted(w);
            running(w, "n1/b", 1);
            w.reserved = true;
        },
        "Start { operation: Backup }",
    );
    check(
        "is operation running? by a process that lives",
        backing_up(),
        |w| running(w, "n1/a", 20),
        "wait OtherProcess +25s",
    );
    check(
        "a dead executor is noticed and its work resumed",
        backing_up(),
        |w| {
            mounted(w);
            running(w, "n1/a", 46);
            w.reserved = true;
        },
        &format!("wait Recording | {found}"),
    );
    check(
        "RUNNING carries a heartbeat",
        backing_up(),
        |w| {
            mounted(w);
            running(w, "n1/b", 10);
            job(w, SnapshotOperation::Backup, None);
        },
        &format!("wait Moving +10s | {found}"),
    );
    check(
        "and says so no more often than that",
        backing_up(),
        |w| {
            mounted(w);
            running(w, "n1/b", 4);
            job(w, SnapshotOperation::Backup, None);
        },
        &format!("wait Moving +6s | {found}"),
    );
    check(
        "unmount after success",
        backing_up(),
        |w| {
            mounted(w);
            running(w, "n1/b", 1);
            job(w, SnapshotOperation::Backup, Some(Ok(())));
        },
        "Unmount",
    );
    check(
        "SUCCEEDED",
        backing_up(),
        |w| {
            running(w, "n1/b", 1);
            job(w, SnapshotOperation::Backup, Some(Ok(())));
        },
        "Stop | Succeeded",
    );
    check(
        "a transient error is retried",
        backing_up(),
        |w| {
            running(w, "n1/b", 1);
            job(w, SnapshotOperation::Backup, Some(Err(MoverError::Transient("reset".into()))));
        },
        &format!("wait Retrying +2s | Pending, {found}"),
    );
    check(
        "FAILED",
        backing_up(),
        |w| {
            running(w, "n1/b", 1);
            job(w, SnapshotOperation::Backup, Some(Err(MoverError::Denied("403".into()))));
        },
        &format!("wait Failed | Failed, {found}"),
    );
    check(
        "is operation complete? FAILED: unmount too",
        backing_up(),
        |w| {
            failed(w);
            mounted(w);
        },
        "Unmount",
    );
    check("is operation complete? FAILED: rest", backing_up(), failed, "wait Failed");
    check(
        "FAILED can be retried by an explicit request",
        backing_up(),
        |w| {
            failed(w);
            note(w, annotations::SNAPSHOT_RETRY_REQUESTED_AT, &now().to_string());
        },
        "wait Recording | Pending",
    );
    check(
        "a request older than the failure is none",
        backing_up(),
        |w| {
            failed(w);
            note(w, annotations::SNAPSHOT_RETRY_REQUESTED_AT, &ago(31).0.to_string());
        },
        "wait Failed",
    );
    check("is operation complete? SUCCEEDED: the local snapshot goes", backing_up(), succeeded, "DropLocal");
    check(
        "and it is said that it went",
        backing_up(),
        |w| {
            succeeded(w);
            w.disk = seen(None, None);
        },
        "settled | LVMSnapshotCleaned=True",
    );
    check(
        "then the node has no more part in it",
        backing_up(),
        |w| {
            succeeded(w);
            w.disk = seen(None, None);
            status(w, |s| {
                s.conditions.push(Condition {
                    type_: "LVMSnapshotCleaned".into(),
                    status: "True".into(),
                    reason: "r".into(),
                    message: String::new(),
                    observed_generation: None,
                    last_transition_time: ago(1),
                });
            });
        },
        "Release",
    );
    check(
        "a short-lived snapshot that overflowed is no backup",
        backing_up(),
        |w| {
            let mut dead = on_disk(UID, GIB).unwrap();
            dead.attr = "swi-I-s---".into();
            w.disk = seen(Some(dead), None);
        },
        "wait Failed | Failed",
    );
    check(
        "and is not kept",
        backing_up(),
        |w| {
            let mut dead = on_disk(UID, GIB).unwrap();
            dead.attr = "swi-I-s---".into();
            w.disk = seen(Some(dead), None);
            failed(w);
        },
        "DropLocal",
    );
}
