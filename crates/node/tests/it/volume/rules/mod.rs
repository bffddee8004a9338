//! Every rule about a LogicalVolume, a row each, named after the box of the flow or the defect that it answers.

mod backup;
mod make;
mod remove;
mod restore;

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
use lifeboat_node::volume::status::VolumeWhy;
use lifeboat_node::volume::world::{Disk, Home, JobView, Moved, Source, Storage, StorageRef, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) const UID: &str = "u1";
pub(super) const GIB: u64 = 1 << 30;
pub(super) const HANDLE: &str = "backup/ns/store/u0";

pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}

pub(super) fn ago(seconds: i64) -> Time {
    Time(now() - SignedDuration::from_secs(seconds))
}

pub(super) fn on_disk(name: &str, size: u64) -> Option<Box<Volume>> {
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

pub(super) fn seen(published: Option<Box<Volume>>, staging: Option<Box<Volume>>) -> Disk {
    Disk::Seen { published, staging, dependants: Vec::new() }
}

/// A volume of 1 GiB that carries our finalizer and label, with nothing on disk.
pub(super) fn world() -> World {
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
        class_storage: None,
        home: Home::Unknown,
        source: Source::None,
        backup: None,
        storage: Storage::Unnamed,
        persistent_volume: true,
        files: true,
        mount: None,
        job: None,
        room: true,
        reserved: false,
        unmountable: None,
        refused: None,
        trouble: None,
    }
}

pub(super) fn edit(world: &mut World, change: impl FnOnce(&mut LogicalVolume)) {
    change(Arc::make_mut(&mut world.volume));
}

pub(super) fn status(world: &mut World, change: impl FnOnce(&mut LogicalVolumeStatus)) {
    edit(world, |volume| change(volume.status.get_or_insert_default()));
}

pub(super) fn snapshot(world: &mut World, change: impl FnOnce(&mut SnapshotStatus)) {
    status(world, |status| change(status.snapshot.get_or_insert_default()));
}

pub(super) fn note(world: &mut World, key: &str, value: &str) {
    edit(world, |volume| {
        drop(volume.metadata.annotations.get_or_insert_default().insert(key.into(), value.into()));
    });
}

pub(super) fn made(world: &mut World) {
    status(world, |status| {
        status.volume_id = Some(UID.into());
        status.current_size = Some(Quantity(GIB.to_string()));
    });
}

pub(super) fn source(phase: Option<SnapshotPhase>, id: Option<&str>, backup: bool) -> Source {
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

pub(super) fn ready() -> Storage {
    Storage::Ready(StorageRef { namespace: "ns".into(), name: "store".into() })
}

pub(super) fn copies(world: &mut World, access: &str, from: Source) {
    edit(world, |volume| {
        volume.spec.source = Some("src".into());
        volume.spec.access_type = Some(AccessType::from(access));
    });
    world.source = from;
}

/// A snapshot whose class asks for a backup, taken and on record as pending.
pub(super) fn backing_up() -> World {
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
pub(super) fn restoring() -> World {
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

pub(super) fn running(world: &mut World, process: &str, heartbeat: i64) {
    snapshot(world, |snapshot| {
        snapshot.phase = SnapshotPhase::Running;
        snapshot.executor = Some(process.into());
        snapshot.heartbeat_time = Some(ago(heartbeat));
        snapshot.attempt = Some(1);
    });
}

pub(super) fn job(world: &mut World, operation: SnapshotOperation, outcome: Option<Result<(), MoverError>>) {
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

pub(super) fn failed(world: &mut World) {
    snapshot(world, |snapshot| {
        snapshot.phase = SnapshotPhase::Failed;
        snapshot.completion_time = Some(ago(30));
        snapshot.message = Some("no bucket".into());
    });
}

pub(super) fn succeeded(world: &mut World) {
    snapshot(world, |snapshot| {
        snapshot.phase = SnapshotPhase::Succeeded;
        snapshot.snapshot_id = Some("5a".into());
    });
}

pub(super) fn deleting(world: &mut World) {
    edit(world, |volume| volume.metadata.deletion_timestamp = Some(ago(1)));
}

/// A decision in one line: what is done or waited for, then what the status says where it changes.
pub(super) fn outline(world: &World) -> String {
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
pub(super) fn check(rule: &str, world: World, change: impl FnOnce(&mut World), expected: &str) {
    let mut world = world;
    change(&mut world);
    assert_eq!(outline(&world), expected, "{rule}");
    nothing_waits_silently(rule, &world);
}

/// What is waited for is said in the status, in words.
#[track_caller]
fn nothing_waits_silently(rule: &str, world: &World) {
    let decision = decide(world, now());
    let Next::Wait { why, .. } = &decision.next else { return };
    let said = match why {
        // The status that goes with it is what is waited for, or shows that bytes move.
        VolumeWhy::Recording | VolumeWhy::Moving(_) => return,
        VolumeWhy::OtherProcess(who) => who.clone(),
        VolumeWhy::Failed(why) | VolumeWhy::Retrying(why) | VolumeWhy::Refused(why) => why.clone(),
        why => why.to_string(),
    };
    let status = decision.status.or_else(|| world.volume.status.clone());
    let status = serde_json::to_value(status).unwrap().to_string();
    let said = serde_json::to_string(&said).unwrap();
    assert!(status.contains(said.trim_matches('"')), "{rule}: {said} is not in {status}");
}
