//! Puts the controllers of stores on an engine and says what wakes them.

use crate::central::Kinds;
use crate::handle::Handle;
use crate::provision::words::{annotation, uid};
use crate::provision::world::Office;
use crate::stores::effects::{Prunes, Removals, Storages, Stores, place};
use crate::stores::repository::secret_name;
use k8s_openapi::api::core::v1::Secret;
use lifeboat_api::annotations::SNAPSHOT_RESTORE_REQUIRED;
use lifeboat_api::topolvm::{LogicalVolume, SnapshotBackupStorage};
use lifeboat_engine::{Change, Engine, Index, ObjectKey, Settings};
use lifeboat_mover::Mover;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How long one try of a store, or one removal from it, may take.
const STORE_WITHIN: Duration = Duration::from_secs(300);

/// The controllers of stores.
pub fn controllers(
    engine: &mut Engine,
    kinds: &Kinds,
    office: &Office,
    mover: Arc<dyn Mover>,
    settings: Settings,
) -> Stores {
    let stores = Stores::new(kinds.clone(), mover, engine.clock());
    let settings = Settings { effect_within: STORE_WITHIN, ..settings };
    let by_secret: Index<ObjectKey, SnapshotBackupStorage> =
        kinds.storages.index(|storage: &SnapshotBackupStorage| {
            let namespace = storage.metadata.namespace.clone().unwrap_or_default();
            secret_name(storage).map(|name| ObjectKey::new(namespace, name))
        });
    let by_place: Index<ObjectKey, LogicalVolume> = kinds.logical.index(place);
    let (of_secret, to_prune) = (by_secret.clone(), by_secret.clone());
    engine
        .controller_with(Storages(stores.clone()), settings)
        .woken_by(&kinds.storages, |change: &Change<SnapshotBackupStorage>| [change.key()])
        .woken_by(&kinds.secrets, move |change: &Change<Secret>| {
            of_secret.get(&change.key()).iter().map(|storage| ObjectKey::of(&**storage)).collect::<Vec<_>>()
        });
    let prunes = engine
        .controller_with(Prunes(stores.clone()), settings)
        .woken_by(&kinds.storages, |change: &Change<SnapshotBackupStorage>| [change.key()])
        .woken_by(&kinds.secrets, move |change: &Change<Secret>| {
            to_prune.get(&change.key()).iter().map(|storage| ObjectKey::of(&**storage)).collect::<Vec<_>>()
        });
    let _ = stores.prunes.set(prunes);
    let (of_storage, of_place) = (by_place.clone(), by_place);
    let by_uid = office.by.by_uid.clone();
    let going = |volumes: Vec<Arc<LogicalVolume>>| {
        let going = volumes.into_iter().filter(|volume| volume.metadata.deletion_timestamp.is_some());
        going.map(|volume| ObjectKey::of(&*volume)).collect::<BTreeSet<_>>()
    };
    let removals = Removals { stores: stores.clone(), office: office.clone() };
    engine
        .controller_with(removals, settings)
        .woken_by(&kinds.logical, move |change: &Change<LogicalVolume>| {
            // Itself, and the one whose backup it is restored from, which may wait for that.
            let barriers = change
                .versions()
                .filter_map(|volume| annotation(&volume.metadata, SNAPSHOT_RESTORE_REQUIRED));
            let origins = barriers.filter_map(|text| text.parse::<Handle>().ok());
            let origins = origins.filter_map(|handle| by_uid.first(&handle.volume().to_owned()));
            let own = change.latest().clone();
            origins
                .chain([own])
                .filter(|volume| !uid(&**volume).is_empty())
                .map(|volume| ObjectKey::of(&*volume))
                .collect::<BTreeSet<_>>()
        })
        .woken_by(&kinds.storages, move |change: &Change<SnapshotBackupStorage>| {
            going(of_storage.get(&change.key()))
        })
        .woken_by(&kinds.secrets, move |change: &Change<Secret>| {
            let storages = by_secret.get(&change.key());
            let volumes =
                storages.iter().flat_map(|storage| of_place.get(&ObjectKey::of(&**storage))).collect();
            going(volumes)
        });
    stores
}
