//! Puts the controllers of snapshots on an engine and says what wakes them.

use crate::central::{Central, Snapshots as Who};
use crate::handle::Handle;
use crate::provision::words::{annotation, claim_of, uid, volume_of};
use crate::provision::world::Office;
use crate::snapshots::desk::Desk;
use crate::snapshots::effects::{Contents, Snapshots, Sources, Studio};
use crate::snapshots::make::{content_name, logical_name};
use crate::stores::{Stores, place_of, secret_name};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Secret};
use lifeboat_api::annotations::SNAPSHOT_RESTORE_REQUIRED;
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent};
use lifeboat_api::topolvm::{LogicalVolume, SnapshotBackupStorage};
use lifeboat_engine::{Change, Engine, Index, ObjectKey, Wiring};
use std::collections::BTreeSet;

/// The controllers of snapshots, as far as they run here.
pub fn controllers(engine: &mut Engine, office: &Office, central: &Central, stores: &Stores) {
    if central.snapshots == Who::Elsewhere {
        return;
    }
    let of_claim: Index<ObjectKey, VolumeSnapshot> =
        office.kinds.snapshots.index(|snapshot: &VolumeSnapshot| {
            let claim = snapshot.spec.source.persistent_volume_claim_name.clone()?;
            Some(ObjectKey::new(snapshot.metadata.namespace.clone().unwrap_or_default(), claim))
        });
    let studio = Studio {
        office: office.clone(),
        stores: stores.clone(),
        of_claim,
        namespace: central.namespace.clone(),
        guards: central.snapshots == Who::Here,
        desk: Desk::default(),
        clock: engine.clock(),
    };
    wake_contents(engine.controller(Contents(studio.clone())), &studio);
    if central.snapshots == Who::Here {
        wake_snapshots(engine.controller(Snapshots(studio.clone())), &studio);
        wake_sources(engine.controller(Sources(studio.clone())), &studio);
    }
}

fn bound_to(content: &VolumeSnapshotContent) -> ObjectKey {
    let back = &content.spec.volume_snapshot_ref;
    ObjectKey::new(back.namespace.clone().unwrap_or_default(), back.name.clone().unwrap_or_default())
}

fn keys<K: kube::Resource>(objects: &[std::sync::Arc<K>]) -> Vec<ObjectKey> {
    objects.iter().map(|object| ObjectKey::of(&**object)).collect()
}

fn wake_snapshots(wiring: Wiring<ObjectKey>, studio: &Studio) {
    let kinds = &studio.office.kinds;
    let (of_claim, of_volume) = (studio.of_claim.clone(), studio.of_claim.clone());
    let all = kinds.snapshots.clone();
    wiring
        .woken_by(&kinds.snapshots, |change: &Change<VolumeSnapshot>| [change.key()])
        .woken_by(&kinds.contents, |change: &Change<VolumeSnapshotContent>| {
            change.versions().map(|content| bound_to(content)).collect::<BTreeSet<_>>()
        })
        .woken_by(&kinds.claims, move |change: &Change<PersistentVolumeClaim>| {
            // Those of the claim, and the one that it is filled from, which may wait for that before it goes.
            let mut woken: BTreeSet<ObjectKey> = keys(&of_claim.get(&change.key())).into_iter().collect();
            let wishes = change.versions().filter_map(|claim| crate::provision::decide::source::wish(claim));
            woken.extend(wishes.map(|wish| ObjectKey::new(change.key().namespace, wish.name)));
            woken
        })
        .woken_by(&kinds.volumes, move |change: &Change<PersistentVolume>| {
            let claims = change.versions().filter_map(|volume| claim_of(volume).map(|(key, _)| key));
            claims.flat_map(|claim| keys(&of_volume.get(&claim))).collect::<BTreeSet<_>>()
        })
        .woken_by(&kinds.snapshot_classes, move |_: &Change<VolumeSnapshotClass>| {
            let waiting = all.all().into_iter().filter(|snapshot| {
                snapshot.status.as_ref().and_then(|status| status.ready_to_use) != Some(true)
            });
            waiting.map(|snapshot| ObjectKey::of(&*snapshot)).collect::<Vec<_>>()
        });
}

fn wake_contents(wiring: Wiring<ObjectKey>, studio: &Studio) {
    let kinds = &studio.office.kinds;
    let by_logical: Index<String, VolumeSnapshotContent> =
        kinds.contents.index(|content: &VolumeSnapshotContent| {
            let named = content.spec.volume_snapshot_ref.uid.as_deref().map(logical_name);
            let source = &content.spec.source;
            let handle = source.snapshot_handle.as_ref().and_then(|handle| handle.parse::<Handle>().ok());
            let handle = handle.map(|handle| handle.volume().to_owned());
            named.into_iter().chain(handle).chain(source.volume_handle.clone()).collect::<Vec<_>>()
        });
    let by_class: Index<String, VolumeSnapshotContent> = kinds
        .contents
        .index(|content: &VolumeSnapshotContent| content.spec.volume_snapshot_class_name.clone());
    let by_place: Index<ObjectKey, VolumeSnapshotContent> =
        kinds.contents.index(|content: &VolumeSnapshotContent| {
            let handle = content.spec.source.snapshot_handle.as_ref()?.parse::<Handle>().ok()?;
            place_of(&handle)
        });
    let (of_storage, of_secret, storages) = (by_place.clone(), by_place, kinds.storages.clone());
    let (known, by_uid) = (kinds.logical.clone(), studio.office.by.by_uid.clone());
    wiring
        .woken_by(&kinds.contents, |change: &Change<VolumeSnapshotContent>| [change.key()])
        .woken_by(&kinds.snapshots, |change: &Change<VolumeSnapshot>| {
            let named = change
                .versions()
                .filter_map(|snapshot| snapshot.spec.source.volume_snapshot_content_name.clone());
            let own = change.versions().map(|snapshot| content_name(snapshot));
            named.chain(own).map(ObjectKey::cluster_wide).collect::<BTreeSet<_>>()
        })
        .woken_by(&kinds.logical, move |change: &Change<LogicalVolume>| {
            let mut names: BTreeSet<String> = BTreeSet::new();
            for volume in change.versions() {
                names.extend([uid(&**volume).to_owned(), volume.metadata.name.clone().unwrap_or_default()]);
                // Copies of it: what they are copied from may wait for them before it goes.
                let source = volume
                    .spec
                    .source
                    .as_ref()
                    .and_then(|source| known.get(&ObjectKey::cluster_wide(source)));
                names.extend(source.iter().flat_map(|source| {
                    [uid(&**source).to_owned(), source.metadata.name.clone().unwrap_or_default()]
                }));
                let barrier = annotation(&volume.metadata, SNAPSHOT_RESTORE_REQUIRED)
                    .and_then(|text| text.parse::<Handle>().ok());
                if let Some(handle) = barrier {
                    names.insert(handle.volume().to_owned());
                    let origin = by_uid.first(&handle.volume().to_owned());
                    names.extend(origin.and_then(|origin| origin.metadata.name.clone()));
                }
            }
            names.iter().flat_map(|name| keys(&by_logical.get(name))).collect::<BTreeSet<_>>()
        })
        .woken_by(&kinds.snapshot_classes, move |change: &Change<VolumeSnapshotClass>| {
            keys(&by_class.get(&change.key().name))
        })
        .woken_by(&kinds.storages, move |change: &Change<SnapshotBackupStorage>| {
            keys(&of_storage.get(&change.key()))
        })
        .woken_by(&kinds.secrets, move |change: &Change<Secret>| {
            let key = change.key();
            let storages = storages.in_namespace(&key.namespace);
            let using = storages.iter().filter(|storage| secret_name(storage) == Some(key.name.as_str()));
            using
                .flat_map(|storage| keys(&of_secret.get(&ObjectKey::of(&**storage))))
                .collect::<BTreeSet<_>>()
        });
}

fn wake_sources(wiring: Wiring<ObjectKey>, studio: &Studio) {
    let kinds = &studio.office.kinds;
    wiring
        .woken_by(&kinds.claims, |change: &Change<PersistentVolumeClaim>| {
            let guarded = change.versions().any(|claim| !volume_of(claim).is_empty());
            guarded.then(|| change.key())
        })
        .woken_by(&kinds.snapshots, |change: &Change<VolumeSnapshot>| {
            let claims = change.versions().filter_map(|snapshot| {
                let claim = snapshot.spec.source.persistent_volume_claim_name.clone()?;
                Some(ObjectKey::new(snapshot.metadata.namespace.clone().unwrap_or_default(), claim))
            });
            claims.collect::<BTreeSet<_>>()
        });
}
