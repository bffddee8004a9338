//! Puts the controllers of provisioning on an engine and says what wakes them.

use crate::central::Kinds;
use crate::provision::decide::place::says_something_new;
use crate::provision::desk::Desk;
use crate::provision::effects::{Claims, Growth, Leftovers, Volumes};
use crate::provision::words::{claim_noted, claim_of, name, uid, volume_of};
use crate::provision::world::{Lookups, Office};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotContent};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::{Change, Engine, ObjectKey, Wiring};
use std::collections::BTreeSet;

/// Provisioning for the StorageClasses of a driver. What it returns finds LogicalVolumes for others.
pub fn controllers(engine: &mut Engine, kinds: &Kinds, driver: &str) -> Office {
    let by = Lookups::over(kinds);
    let office = Office { driver: driver.to_owned(), kinds: kinds.clone(), by, desk: Desk::default() };
    let clock = engine.clock();
    wake_claims(engine.controller(Claims { office: office.clone(), clock: clock.clone() }), &office);
    wake_leftovers(engine.controller(Leftovers(office.clone())), &office);
    wake_volumes(engine.controller(Volumes(office.clone())), &office);
    wake_growth(engine.controller(Growth { office: office.clone(), clock }), &office);
    office
}

fn keys(claims: &[std::sync::Arc<PersistentVolumeClaim>]) -> Vec<ObjectKey> {
    claims.iter().map(|claim| ObjectKey::of(&**claim)).collect()
}

fn is_news(change: &Change<Node>) -> bool {
    says_something_new(change.old.as_deref(), change.new.as_deref())
}

fn own_claim(change: &Change<PersistentVolumeClaim>) -> [ObjectKey; 1] {
    [change.key()]
}

fn wake_claims(wiring: Wiring<ObjectKey>, office: &Office) {
    let by = &office.by;
    let (asking, driver) = (by.asking.clone(), office.driver.clone());
    // Room comes back when a volume goes or a node reports; who waits for it is woken.
    let on_node = move || keys(&asking.get(&driver));
    let on_volume = on_node.clone();
    let of_class = by.of_class.clone();
    let (from_snapshot, from_content, from_claim) =
        (by.filling_from.clone(), by.filling_from.clone(), by.filling_from.clone());
    let from_logical = by.filling_from.clone();
    let handles = by.by_handle.clone();
    wiring
        .woken_by(&office.kinds.claims, own_claim)
        .woken_by(&office.kinds.claims, move |change: &Change<PersistentVolumeClaim>| {
            keys(&from_claim.get(&("PersistentVolumeClaim".to_owned(), change.key())))
        })
        .woken_by(&office.kinds.volumes, |change: &Change<PersistentVolume>| {
            change
                .versions()
                .filter_map(|volume| claim_of(volume).map(|(key, _)| key))
                .collect::<BTreeSet<_>>()
        })
        .woken_by(&office.kinds.logical, move |change: &Change<LogicalVolume>| {
            let mut woken: BTreeSet<ObjectKey> =
                change.versions().filter_map(|volume| claim_noted(volume)).collect();
            if change.new.is_none() {
                woken.extend(on_volume());
            }
            // A claim that waits for its source to be there or to be filled.
            for volume in handles.get(&uid(&**change.latest()).to_owned()) {
                if let Some((claim, _)) = claim_of(&volume) {
                    woken.extend(keys(&from_logical.get(&("PersistentVolumeClaim".to_owned(), claim))));
                }
            }
            woken
        })
        .woken_by(
            &office.kinds.nodes,
            move |change: &Change<Node>| {
                if is_news(change) { on_node() } else { Vec::new() }
            },
        )
        .woken_by(&office.kinds.classes, move |change: &Change<StorageClass>| {
            let waiting = of_class.get(&name(&**change.latest()).to_owned());
            waiting
                .iter()
                .filter(|claim| volume_of(claim).is_empty())
                .map(|claim| ObjectKey::of(&**claim))
                .collect::<Vec<_>>()
        })
        .woken_by(&office.kinds.snapshots, move |change: &Change<VolumeSnapshot>| {
            keys(&from_snapshot.get(&("VolumeSnapshot".to_owned(), change.key())))
        })
        .woken_by(&office.kinds.contents, move |change: &Change<VolumeSnapshotContent>| {
            let back = &change.latest().spec.volume_snapshot_ref;
            let key = ObjectKey::new(
                back.namespace.clone().unwrap_or_default(),
                back.name.clone().unwrap_or_default(),
            );
            keys(&from_content.get(&("VolumeSnapshot".to_owned(), key)))
        });
}

fn wake_leftovers(wiring: Wiring<ObjectKey>, office: &Office) {
    wiring
        .woken_by(&office.kinds.logical, |change: &Change<LogicalVolume>| [change.key()])
        .woken_by(&office.kinds.volumes, |change: &Change<PersistentVolume>| [change.key()])
        .woken_by(&office.kinds.claims, |change: &Change<PersistentVolumeClaim>| {
            let names = change.versions().map(|claim| crate::provision::words::volume_name(claim));
            names.map(ObjectKey::cluster_wide).collect::<BTreeSet<_>>()
        });
}

fn wake_volumes(wiring: Wiring<ObjectKey>, office: &Office) {
    let (of_claim, by) = (office.by.of_claim.clone(), office.by.clone());
    let known = office.kinds.logical.clone();
    wiring
        .woken_by(&office.kinds.volumes, |change: &Change<PersistentVolume>| [change.key()])
        .woken_by(&office.kinds.claims, move |change: &Change<PersistentVolumeClaim>| {
            of_claim.get(&change.key()).iter().map(|volume| ObjectKey::of(&**volume)).collect::<Vec<_>>()
        })
        .woken_by(&office.kinds.logical, move |change: &Change<LogicalVolume>| {
            // Its own volume, and that of what it is a copy of, which may wait for the copy to be done.
            let mut uids: BTreeSet<String> =
                change.versions().map(|volume| uid(&**volume).to_owned()).collect();
            let sources = change.versions().filter_map(|volume| volume.spec.source.clone());
            let sources = sources.filter_map(|source| known.get(&ObjectKey::cluster_wide(source)));
            uids.extend(sources.map(|source| uid(&*source).to_owned()));
            uids.iter()
                .flat_map(|uid| by.by_handle.get(uid))
                .map(|volume| ObjectKey::of(&*volume))
                .collect::<BTreeSet<_>>()
        });
}

fn wake_growth(wiring: Wiring<ObjectKey>, office: &Office) {
    let (by, known) = (office.by.clone(), office.kinds.clone());
    let grows = move |volume: &PersistentVolume| claim_of(volume).map(|(key, _)| key);
    let of_class = office.by.of_class.clone();
    wiring
        .woken_by(&office.kinds.claims, own_claim)
        .woken_by(&office.kinds.volumes, move |change: &Change<PersistentVolume>| {
            change.versions().filter_map(|volume| grows(volume)).collect::<BTreeSet<_>>()
        })
        .woken_by(&office.kinds.logical, {
            let by = by.clone();
            move |change: &Change<LogicalVolume>| {
                let volumes = by.by_handle.get(&uid(&**change.latest()).to_owned());
                volumes
                    .iter()
                    .filter_map(|volume| claim_of(volume).map(|(key, _)| key))
                    .collect::<BTreeSet<_>>()
            }
        })
        .woken_by(&office.kinds.classes, move |change: &Change<StorageClass>| {
            keys(&of_class.get(&name(&**change.latest()).to_owned()))
        })
        .woken_by(&office.kinds.nodes, move |change: &Change<Node>| {
            // Only who waits for room cares: a claim that asks for more than its volume has.
            let node = is_news(change).then(|| name(&**change.latest()).to_owned());
            let here = node.map(|node| by.on_node.get(&node)).unwrap_or_default();
            let volumes = here.iter().flat_map(|logical| by.by_handle.get(&uid(&**logical).to_owned()));
            let claims = volumes.filter_map(|volume| claim_of(&volume).map(|(key, _)| key));
            claims
                .filter(|key| known.claims.get(key).is_some_and(|claim| wants_more(&claim)))
                .collect::<BTreeSet<_>>()
        });
}

fn wants_more(claim: &PersistentVolumeClaim) -> bool {
    let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
    let request =
        crate::provision::words::storage(resources.and_then(|resources| resources.requests.as_ref()));
    let shown =
        crate::provision::words::storage(claim.status.as_ref().and_then(|status| status.capacity.as_ref()));
    request > shown
}
