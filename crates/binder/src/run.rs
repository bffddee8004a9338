//! Puts the controllers on an engine and says what wakes them.

use crate::desk::Desk;
use crate::effects::{Claims, Office, Volumes};
use crate::ephemeral::Ephemeral;
use crate::expand::Growth;
use crate::lean::{PersistentVolume, PersistentVolumeClaim};
use crate::metrics::Metrics;
use crate::protect::{ClaimGuard, VolumeGuard};
use crate::words::{ClaimWords, VolumeWords, claims_of, ephemeral_claims, is_default, text};
use crate::world::Lookups;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_engine::{Change, Clock, Engine, ObjectKey, Selection, Settings, Wiring};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The name that events and writes carry, as Kubernetes' own binder has it.
pub const NAME: &str = "persistentvolume-controller";

/// Who does the work around binding: guards what is in use, sees to growing, makes claims for volumes that live with a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbours {
    /// This binder does: nobody else is there to.
    Here,
    /// kube-controller-manager does.
    Elsewhere,
}

/// An older name of [`Neighbours`].
pub type Protection = Neighbours;

/// A binder, ready to run, and what it counts.
pub struct Binder {
    /// What runs.
    pub engine: Engine,
    /// What Kubernetes' own binder counts too; the engine counts how it runs.
    pub metrics: Metrics,
}

/// The engine of a [`binder`].
pub fn engine(client: kube::Client, clock: Clock, settings: Settings, neighbours: Neighbours) -> Engine {
    binder(client, clock, settings, neighbours).engine
}

/// The binder of a cluster, ready to run.
pub fn binder(client: kube::Client, clock: Clock, settings: Settings, neighbours: Neighbours) -> Binder {
    let mut engine = Engine::new(NAME, client.clone(), clock.clone(), settings);
    let volumes = engine.objects::<PersistentVolume>(Selection::all());
    let claims = engine.objects::<PersistentVolumeClaim>(Selection::all());
    let classes = engine.objects::<StorageClass>(Selection::all());
    let pods = engine.objects::<Pod>(Selection::all());
    let by = Lookups::over(&volumes, &claims, &classes, &pods);
    let recorder = engine.recorder();
    let desk = Desk::over(&claims);
    let metrics = Metrics::new(volumes.clone(), claims.clone(), clock.clone());
    let office =
        Office { volumes, claims, classes, pods, by, desk, recorder, metrics: metrics.clone(), clock };
    let claims = wake_claims(engine.controller(Claims(office.clone())), &office);
    let volumes = Volumes { office: office.clone(), claims };
    wake_volumes(engine.controller(volumes), &office);
    if neighbours == Neighbours::Here {
        protect(&mut engine, &office, client);
        grow(&mut engine, &office);
        live_with_pods(&mut engine, &office);
    }
    Binder { engine, metrics }
}

fn wake_claims(wiring: Wiring<ObjectKey>, office: &Office) -> Wiring<ObjectKey> {
    let of_volume = office.by.clone();
    let of_class = office.by.clone();
    let known = office.claims.clone();
    wiring
        .woken_by(&office.claims, |change: &Change<PersistentVolumeClaim>| [change.key()])
        .woken_by(&office.volumes, move |change: &Change<PersistentVolume>| {
            let name = change.latest().name().to_owned();
            let mut keys: BTreeSet<ObjectKey> =
                change.versions().filter_map(|volume| volume.claim_key()).collect();
            keys.extend(of_volume.claims_naming.get(&name).iter().map(|claim| claim.key()));
            keys
        })
        .woken_by(&office.classes, move |change: &Change<StorageClass>| {
            let name = text(change.latest().metadata.name.as_ref()).to_owned();
            let mut claims = of_class.unbound_of.get(&Some(name));
            if change.new.as_deref().is_some_and(is_default) {
                claims.extend(of_class.unbound_of.get(&None));
            }
            claims.iter().map(|claim| claim.key()).collect::<Vec<_>>()
        })
        .woken_by(&office.pods, move |change: &Change<Pod>| {
            let waits = |key: &ObjectKey| known.get(key).is_some_and(|claim| !claim.bind_completed());
            let named = change.versions().flat_map(|pod| claims_of(pod)).collect::<BTreeSet<_>>();
            named.into_iter().filter(waits).collect::<Vec<_>>()
        })
}

fn wake_volumes(wiring: Wiring<ObjectKey>, office: &Office) {
    let (by, desk) = (office.by.clone(), office.desk.clone());
    wiring.woken_by(&office.volumes, |change: &Change<PersistentVolume>| [change.key()]).woken_by(
        &office.claims,
        move |change: &Change<PersistentVolumeClaim>| {
            let key = change.key();
            // Half-bound ones know of their claim though the claim does not know of them.
            let ours = by.volumes_for.get(&key);
            let mut names: BTreeSet<String> = ours.iter().map(|volume| volume.name().to_owned()).collect();
            names.extend(change.versions().map(|claim| claim.volume_name().to_owned()));
            let wants = |claim: &PersistentVolumeClaim| !claim.bind_completed();
            if change.new.as_deref().is_some_and(wants) {
                names.extend(desk.offered_to(&key));
            } else if let Some(declined) = desk.decline(&key) {
                names.insert(declined);
                if desk.nothing_offered() {
                    // Whoever was kept waiting by others' offers has nobody to wait for any more.
                    names.extend(by.fresh.get(&()).iter().map(|volume| volume.name().to_owned()));
                }
            }
            names.remove("");
            names.into_iter().map(ObjectKey::cluster_wide).collect::<Vec<_>>()
        },
    );
}

fn protect(engine: &mut Engine, office: &Office, client: kube::Client) {
    engine
        .controller(ClaimGuard::new(office.clone(), client))
        .woken_by(&office.claims, |change: &Change<PersistentVolumeClaim>| [change.key()])
        .woken_by(&office.pods, |change: &Change<Pod>| {
            change.versions().flat_map(|pod| claims_of(pod)).collect::<BTreeSet<_>>()
        });
    engine
        .controller(VolumeGuard(office.clone()))
        .woken_by(&office.volumes, |change: &Change<PersistentVolume>| [change.key()]);
}

fn grow(engine: &mut Engine, office: &Office) {
    let by = office.by.clone();
    engine
        .controller(Growth(office.clone()))
        .woken_by(&office.claims, |change: &Change<PersistentVolumeClaim>| {
            let bound = |claim: &Arc<PersistentVolumeClaim>| claim.bind_completed();
            change.versions().any(bound).then(|| change.key())
        })
        .woken_by(&office.volumes, move |change: &Change<PersistentVolume>| {
            let naming = by.claims_naming.get(&change.latest().name().to_owned());
            naming.iter().map(|claim| claim.key()).collect::<Vec<_>>()
        });
}

fn live_with_pods(engine: &mut Engine, office: &Office) {
    let by = office.by.clone();
    engine
        .controller(Ephemeral(office.clone()))
        .woken_by(&office.pods, |change: &Change<Pod>| {
            let has = ephemeral_claims(change.latest()).next().is_some();
            has.then(|| change.key())
        })
        .woken_by(&office.claims, move |change: &Change<PersistentVolumeClaim>| {
            // Only one that comes or goes changes what a pod has.
            let stays = change.old.is_some() && change.new.is_some();
            let pods = if stays { Vec::new() } else { by.pods_using.get(&change.key()) };
            pods.iter().map(|pod| ObjectKey::of(&**pod)).collect::<Vec<_>>()
        });
}
