//! Every rule about a LogicalVolume, a row each, named after the box of the flow or the defect that it answers.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lifeboat_api::topolvm::{
    AccessType, LogicalVolume, LogicalVolumeStatus, SnapshotOperation, SnapshotPhase, SnapshotStatus,
};
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_engine::{Class, Next, Trouble};
use lifeboat_lvm::{Access, AccessMode, Error, Volume};
use lifeboat_mover::{Error as MoverError, Progress, Snapshot};
use lifeboat_node::volume::decide::decide;
use lifeboat_node::volume::may_publish;
use lifeboat_node::volume::world::{Disk, Source, Storage, StorageRef, World};
use lifeboat_node::{JobView, Moved};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const UID: &str = "u1";
const GIB: u64 = 1 << 30;
const HANDLE: &str = "backup/ns/store/u0";

fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}

fn ago(seconds: i64) -> Time {
    Time(now() - SignedDuration::from_secs(seconds))
}

fn on_disk(name: &str, size: u64) -> Option<Box<Volume>> {
    Some(Box::new(Volume {
        name: name.into(),
        size,
        tags: BTreeSet::from(["lifeboat.consistency=Crash".to_owned()]),
        access: Access::Device("/dev/vg/x".into()),
        origin: None,
        mode: AccessMode::ReadWrite,
        attr: "-wi-a-----".into(),
        device: (0, 0),
    }))
}

fn seen(published: Option<Box<Volume>>, staging: Option<Box<Volume>>) -> Disk {
    Disk::Seen { published, staging, dependants: Vec::new() }
}

/// A volume of 1 GiB that carries our finalizer and label, with nothing on disk.
fn world() -> World {
    let mut volume = LogicalVolume::default();
    volume.metadata.name = Some("pvc-1".into());
    volume.metadata.uid = Some(UID.into());
    volume.metadata.generation = Some(1);
    volume.metadata.finalizers = Some(vec![finalizers::LOGICAL_VOLUME.into()]);
    volume.metadata.labels =
        Some(BTreeMap::from([(labels::CREATED_BY.into(), labels::CREATED_BY_TOPOLVM.into())]));
    volume.spec.name = "pvc-1".into();
    volume.spec.node_name = "n1".into();
    volume.spec.size = Quantity("1Gi".into());
    World {
        node: "n1".into(),
        process: "n1/b".into(),
        volume: Arc::new(volume),
        disk: seen(None, None),
        source: Source::None,
        backup: None,
        storage: Storage::Unnamed,
        persistent_volume: true,
        files: true,
        mount: None,
        job: None,
        room: true,
        refused: None,
        trouble: None,
    }
}

fn edit(world: &mut World, change: impl FnOnce(&mut LogicalVolume)) {
    change(Arc::make_mut(&mut world.volume));
}

fn status(world: &mut World, change: impl FnOnce(&mut LogicalVolumeStatus)) {
    edit(world, |volume| change(volume.status.get_or_insert_default()));
}

fn snapshot(world: &mut World, change: impl FnOnce(&mut SnapshotStatus)) {
    status(world, |status| change(status.snapshot.get_or_insert_default()));
}

fn note(world: &mut World, key: &str, value: &str) {
    edit(world, |volume| {
        drop(volume.metadata.annotations.get_or_insert_default().insert(key.into(), value.into()))
    });
}

fn made(world: &mut World) {
    status(world, |status| {
        status.volume_id = Some(UID.into());
        status.current_size = Some(Quantity(GIB.to_string()));
    });
}

fn source(phase: Option<SnapshotPhase>, id: Option<&str>, backup: bool) -> Source {
    let mut volume = (*world().volume).clone();
    volume.metadata.name = Some("src".into());
    volume.metadata.uid = Some("u0".into());
    let status = volume.status.get_or_insert_default();
    status.volume_id = Some("u0".into());
    status.snapshot = phase.map(|phase| SnapshotStatus {
        operation: Some(SnapshotOperation::Backup),
        phase,
        snapshot_id: id.map(str::to_owned),
        ..SnapshotStatus::default()
    });
    let storage = StorageRef { namespace: "ns".into(), name: "store".into() };
    Source::Found { volume: Arc::new(volume), backup: backup.then_some(storage) }
}

fn ready() -> Storage {
    Storage::Ready(StorageRef { namespace: "ns".into(), name: "store".into() })
}

fn copies(world: &mut World, access: &str, from: Source) {
    edit(world, |volume| {
        volume.spec.source = Some("src".into());
        volume.spec.access_type = Some(AccessType::from(access));
    });
    world.source = from;
}

/// A snapshot whose class asks for a backup, taken and on record as pending.
fn backing_up() -> World {
    let mut world = world();
    copies(&mut world, "ro", source(None, None, false));
    edit(&mut world, |volume| {
        volume.metadata.finalizers.get_or_insert_default().push(finalizers::REMOTE_SNAPSHOT.into());
    });
    world.backup = Some(StorageRef { namespace: "ns".into(), name: "store".into() });
    world.storage = ready();
    world.disk = seen(on_disk(UID, GIB), None);
    made(&mut world);
    snapshot(&mut world, |snapshot| {
        snapshot.operation = Some(SnapshotOperation::Backup);
        snapshot.phase = SnapshotPhase::Pending;
        snapshot.start_time = Some(ago(60));
    });
    world
}

/// A volume behind the barrier, staged and on record as pending.
fn restoring() -> World {
    let mut world = world();
    note(&mut world, annotations::SNAPSHOT_RESTORE_REQUIRED, HANDLE);
    world.storage = ready();
    world.disk = seen(None, on_disk("staging-u1", GIB));
    made(&mut world);
    snapshot(&mut world, |snapshot| {
        snapshot.operation = Some(SnapshotOperation::Restore);
        snapshot.phase = SnapshotPhase::Pending;
        snapshot.start_time = Some(ago(60));
    });
    world
}

fn running(world: &mut World, process: &str, heartbeat: i64) {
    snapshot(world, |snapshot| {
        snapshot.phase = SnapshotPhase::Running;
        snapshot.executor = Some(process.into());
        snapshot.heartbeat_time = Some(ago(heartbeat));
        snapshot.attempt = Some(1);
    });
}

fn job(world: &mut World, operation: SnapshotOperation, outcome: Option<Result<(), MoverError>>) {
    let snapshot = Snapshot {
        id: "5a".into(),
        tags: BTreeMap::new(),
        path: "/app/data".into(),
        bytes: 9,
        files: 3,
        device: false,
    };
    let moved = Moved { snapshot, repository: "s3:http://s3/bucket".into() };
    let progress = Progress { bytes_total: 200, bytes_done: 50, files_total: 4, files_done: 1 };
    let outcome = outcome.map(|outcome| (now(), outcome.map(|()| moved)));
    world.job = Some(JobView { operation, progress, outcome });
}

fn failed(world: &mut World) {
    snapshot(world, |snapshot| {
        snapshot.phase = SnapshotPhase::Failed;
        snapshot.completion_time = Some(ago(30));
        snapshot.message = Some("no bucket".into());
    });
}

fn succeeded(world: &mut World) {
    snapshot(world, |snapshot| {
        snapshot.phase = SnapshotPhase::Succeeded;
        snapshot.snapshot_id = Some("5a".into());
    });
}

fn deleting(world: &mut World) {
    edit(world, |volume| volume.metadata.deletion_timestamp = Some(ago(1)));
}

/// A decision in one line: what is done or waited for, then what the status says where it changes.
fn outline(world: &World) -> String {
    let decision = decide(world, now());
    let next = match &decision.next {
        Next::Do(effects) => format!("{effects:?}").trim_matches(['[', ']']).replace("VolumeEffect::", ""),
        Next::Wait { why, until } => {
            let until =
                until.map_or_else(String::new, |until| format!(" +{}s", (until - now()).get_seconds()));
            format!("wait {}{until}", lifeboat_engine::variant(why))
        }
        Next::Settled => "settled".to_owned(),
    };
    let before = world.volume.status.clone().unwrap_or_default();
    let mut told = Vec::new();
    if let Some(after) = &decision.status {
        if after.volume_id != before.volume_id {
            told.push("made".to_owned());
        }
        if after.code != before.code {
            told.push(format!("code {}", after.code.unwrap_or_default()));
        }
        let phase = |status: &LogicalVolumeStatus| {
            status.snapshot.as_ref().map(|snapshot| snapshot.phase.to_string())
        };
        if phase(after) != phase(&before) {
            told.push(phase(after).unwrap_or_default());
        }
        for condition in after.conditions.iter().filter(|condition| !before.conditions.contains(condition)) {
            told.push(format!("{}={}", condition.type_, condition.status));
        }
    }
    if told.is_empty() { next } else { format!("{next} | {}", told.join(", ")) }
}

#[track_caller]
fn check(rule: &str, world: World, change: impl FnOnce(&mut World), expected: &str) {
    let mut world = world;
    change(&mut world);
    assert_eq!(outline(&world), expected, "{rule}");
}

#[test]
fn whose_it_is() {
    check("belongs to this node?", world(), |w| w.node = "n2".into(), "settled");
    check(
        "pending deletion?",
        world(),
        |w| note(w, annotations::PENDING_DELETION, "true"),
        "wait PendingDeletion",
    );
    check(
        "add finalizer",
        world(),
        |w| edit(w, |v| v.metadata.finalizers = None),
        r#"Claim { finalizers: ["topolvm.io/logicalvolume"], barrier: None }"#,
    );
    check(
        "add label (created-by)",
        world(),
        |w| edit(w, |v| v.metadata.labels = None),
        "Claim { finalizers: [], barrier: None }",
    );
    check(
        "finalizers of others are none of ours",
        world(),
        |w| edit(w, |v| v.metadata.finalizers = Some(vec!["other".into()])),
        r#"Claim { finalizers: ["topolvm.io/logicalvolume"], barrier: None }"#,
    );
}

#[test]
fn creating() {
    check("list first", world(), |w| w.disk = Disk::Unlisted, "List");
    check("CreateLV", world(), |_| {}, "Create { size: 1073741824 }");
    check(
        "volume exists already: adopt it",
        world(),
        |w| w.disk = seen(on_disk(UID, GIB), None),
        "settled | made",
    );
    check(
        "a half-made volume is not adopted",
        world(),
        |w| w.disk = seen(None, on_disk("staging-u1", GIB)),
        "DropStaging",
    );
    let no_room = Error::NoRoom { class: String::new(), wanted: 2, free: 1 };
    check(
        "no room: the maker looks elsewhere",
        world(),
        |w| w.refused = Some(no_room.clone()),
        "wait Refused | code 8",
    );
    check(
        "unknown device class",
        world(),
        |w| w.disk = Disk::Unreadable(Error::NoClass("x".into())),
        "wait Refused | code 5",
    );
    check(
        "a failed listing is retried and sets no code",
        world(),
        |w| w.disk = Disk::Unreadable(Error::Transient("busy".into())),
        "List",
    );
    check(
        "a transient failure sets no code",
        world(),
        |w| {
            let since = now();
            w.trouble = Some(Trouble {
                effect: "Create".into(),
                class: Class::Transient,
                message: "lvm is busy".into(),
                since,
            });
        },
        "Create { size: 1073741824 }",
    );
    check(
        "a peer's failure is left to its maker",
        world(),
        |w| status(w, |s| s.code = Some(13)),
        "wait Refused",
    );
    check("what was made and is gone is not made anew", world(), made, "wait Failed");
    check(
        "a refusal never reaches a volume that exists",
        world(),
        |w| {
            made(w);
            w.disk = seen(on_disk(UID, GIB), None);
            w.refused = Some(no_room);
        },
        "settled",
    );
}

#[test]
fn copying() {
    let taken = |w: &mut World| copies(w, "ro", source(None, None, false));
    check(
        "CreateLVSnapshot",
        world(),
        taken,
        r#"Copy { source: "u0", size: 1073741824, read_only: true, short_lived: false }"#,
    );
    check(
        "clone",
        world(),
        |w| copies(w, "rw", source(None, None, false)),
        r#"Copy { source: "u0", size: 1073741824, read_only: false, short_lived: false }"#,
    );
    check(
        "source missing: never a plain create",
        world(),
        |w| copies(w, "rw", Source::Missing("src".into())),
        "wait SourceMissing",
    );
    check(
        "once made, the source may go",
        world(),
        |w| {
            copies(w, "rw", Source::Missing("src".into()));
            made(w);
            w.disk = seen(on_disk(UID, GIB), None);
        },
        "settled",
    );
    check(
        "access type is ro or rw",
        world(),
        |w| copies(w, "x", source(None, None, false)),
        "wait Refused | code 3",
    );
    check(
        "source without a volume",
        world(),
        |w| {
            taken(w);
            if let Source::Found { volume, .. } = &mut w.source {
                Arc::make_mut(volume).status = None;
            }
        },
        "wait SourceNotMade",
    );
    check(
        "source on another node",
        world(),
        |w| {
            taken(w);
            if let Source::Found { volume, .. } = &mut w.source {
                Arc::make_mut(volume).spec.node_name = "n2".into();
            }
        },
        "wait Refused | code 3",
    );
    check(
        "source in another device class",
        world(),
        |w| {
            taken(w);
            edit(w, |v| v.spec.device_class = Some("ssd".into()));
        },
        "wait Refused | code 3",
    );
    let thick = Error::Unsupported("thick".into());
    check(
        "CreateLVSnapshot on a thick class",
        world(),
        |w| {
            taken(w);
            w.refused = Some(thick);
        },
        "wait Refused | code 12",
    );
    check(
        "a backup of a thick volume uses a short-lived snapshot",
        backing_up(),
        |w| {
            edit(w, |v| v.status = None);
            w.disk = seen(None, None);
        },
        r#"Copy { source: "u0", size: 1073741824, read_only: true, short_lived: true }"#,
    );
}

#[test]
fn expanding() {
    let grown = |w: &mut World| {
        made(w);
        w.disk = seen(on_disk(UID, GIB), None);
        edit(w, |v| v.spec.size = Quantity("2Gi".into()));
    };
    check("ResizeLV", world(), grown, "Grow { size: 2147483648 }");
    check(
        "never shrinks",
        world(),
        |w| {
            grown(w);
            edit(w, |v| v.spec.size = Quantity("1Mi".into()));
        },
        "settled",
    );
    check(
        "a failed expand sets no code",
        world(),
        |w| {
            grown(w);
            w.trouble = Some(Trouble {
                effect: "Grow".into(),
                class: Class::Transient,
                message: "no room".into(),
                since: now(),
            });
        },
        "Grow { size: 2147483648 }",
    );
}

#[test]
fn backing_it_up() {
    let found = "SnapshotBackupStorageFound=True";
    check(
        "the remote finalizer comes first",
        backing_up(),
        |w| {
            edit(w, |v| v.metadata.finalizers = Some(vec![finalizers::LOGICAL_VOLUME.into()]));
        },
        r#"Claim { finalizers: ["topolvm.io/snapshot-backup"], barrier: None }"#,
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
    check(
        "no mount for raw block",
        backing_up(),
        |w| w.files = false,
        &format!("wait Recording | Running, {found}"),
    );
    check("others come first", backing_up(), |w| w.room = false, &format!("wait Queued | {found}"));
    let mounted = |w: &mut World| w.mount = Some("/m/u1".into());
    check(
        "RUNNING is on record before bytes move",
        backing_up(),
        mounted,
        &format!("wait Recording | Running, {found}"),
    );
    check(
        "execute snapshot operation",
        backing_up(),
        |w| {
            mounted(w);
            running(w, "n1/b", 1);
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
                })
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
    let barrier = r#"Claim { finalizers: [], barrier: Some("backup/ns/store/u0") }"#;
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
    check("source FAILED", restoring(), behind(Some(SnapshotPhase::Failed), None), "wait Refused | code 9");
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
        "wait Refused | code 3",
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
}

#[test]
fn finalizing() {
    let gone = |w: &mut World| deleting(w);
    check(
        "has finalizer? no",
        world(),
        |w| {
            gone(w);
            edit(w, |v| v.metadata.finalizers = None);
        },
        "settled",
    );
    check(
        "stop what runs",
        backing_up(),
        |w| {
            gone(w);
            job(w, SnapshotOperation::Backup, None);
            w.mount = Some("/m".into());
        },
        "Stop",
    );
    check(
        "unmount if mounted",
        backing_up(),
        |w| {
            gone(w);
            w.mount = Some("/m".into());
        },
        "Unmount",
    );
    check(
        "list before removing",
        world(),
        |w| {
            gone(w);
            w.disk = Disk::Unlisted;
        },
        "List",
    );
    check(
        "RemoveLV",
        world(),
        |w| {
            gone(w);
            w.disk = seen(on_disk(UID, GIB), None);
        },
        "Remove",
    );
    check("a staging volume goes too", restoring(), gone, "Remove");
    check("not found is success", world(), gone, "Release");
    check(
        "a missing device class never drops the finalizer",
        world(),
        |w| {
            gone(w);
            w.disk = Disk::Unreadable(Error::NoClass("x".into()));
        },
        "wait ClassMissing",
    );
    check(
        "a disk that cannot be read is not an empty one",
        world(),
        |w| {
            gone(w);
            w.disk = Disk::Unreadable(Error::Transient("busy".into()));
        },
        "List",
    );
    check(
        "snapshots that would die with it come first",
        world(),
        |w| {
            gone(w);
            w.disk =
                Disk::Seen { published: on_disk(UID, GIB), staging: None, dependants: vec!["u9".into()] };
        },
        "wait Needed",
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
}
