//! Which way a claim is protected: by its storage, by a mover, or by storage that both clusters share; and with which classes.

use crate::decide::plan::Path;
use crate::why::Wait;
use crate::words::{ClaimWords as _, GroupWords as _, OwnedWords as _, Words as _, selected};
use crate::world::World;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_api::ramen::{Identifier, MMode, PeerClass};
use lifeboat_api::replication::VolumeReplicationClass;
use lifeboat_api::{annotations, labels};

/// How a claim is protected.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// Which way.
    pub path: Path,
    /// The replication or snapshot class to use.
    pub class: Option<String>,
    /// Identity of its storage.
    pub storage_id: Option<Identifier>,
    /// Identity of its replication.
    pub replication_id: Option<Identifier>,
    /// What was asked for and is not served, though the claim is.
    pub shortfall: Option<String>,
}

fn bad(why: impl Into<String>) -> Wait {
    Wait::BadClass(why.into())
}

/// How a claim is to be protected, from its storage class; every claim is judged by itself.
pub fn classify(world: &World, claim: &PersistentVolumeClaim) -> Result<Way, Wait> {
    let group = &world.group;
    let name = claim.class_name().ok_or_else(|| bad("the claim has no storage class"))?;
    let class =
        world.classes.get(name).ok_or_else(|| bad(format!("the storage class {name} does not exist")))?;
    if let Some(sync) = &group.spec.sync {
        if !sync.peer_classes.is_empty() {
            peer(&sync.peer_classes, class)?;
        }
        return Ok(way(Path::Shared, None, class, None));
    }
    let Some(mode) = &group.spec.async_ else { return Err(Wait::Invalid("no mode".to_owned())) };
    let volsync = group.uses_volsync() && !world.config.volsync_disabled;
    if !mode.peer_classes.is_empty() {
        return by_peer(world, class, &mode.peer_classes, volsync);
    }
    let fitting = replication_classes(world);
    let same = fitting.iter().any(|candidate| candidate.spec.provisioner == class.provisioner);
    let forced = group.note(annotations::USE_VOLSYNC) == Some("true");
    if !volsync || same && !forced {
        let chosen = choose(world, class, |_| true)?;
        return Ok(way(Path::Replicated, Some(&chosen), class, None));
    }
    if let Some(vanished) = vanished(world, claim) {
        return Err(bad(format!(
            "VolumeReplicationClass {vanished}, by which PVC {} is replicated, does not exist: create it again; to have the PVC copied by a mover instead, delete its VolumeReplication",
            claim.name()
        )));
    }
    Ok(Way { class: snapshot_class(world, class, false)?, ..way(Path::Copied, None, class, None) })
}

/// The class of a replication that runs, where that class is gone. It may come back at once, and ends nothing meanwhile.
fn vanished(world: &World, claim: &PersistentVolumeClaim) -> Option<String> {
    let running = world.replications.get(claim.name()).filter(|one| one.is_owned_by(&world.key()))?;
    let class = &running.spec.volume_replication_class;
    let exists = world.replication_classes.iter().any(|known| known.name() == class);
    let forced = world.group.note(annotations::USE_VOLSYNC) == Some("true");
    (!exists && !forced && !running.is_going()).then(|| class.clone())
}

fn by_peer(world: &World, class: &StorageClass, peers: &[PeerClass], volsync: bool) -> Result<Way, Wait> {
    let peer = peer(peers, class)?;
    if peer.offloaded || peer.global {
        return Err(Wait::Unsupported(format!(
            "replication that the storage runs by itself, or for all its volumes at once, is not served (storage class {})",
            class.name()
        )));
    }
    let shortfall = peer.grouping.then(|| {
        "claims are replicated one by one: cuts of a consistency group are not served yet".to_owned()
    });
    let replication = peer.replication_id.as_deref().filter(|id| !id.is_empty());
    if let Some(replication) = replication {
        let chosen = choose(world, class, |candidate| {
            candidate.label(labels::REPLICATION_ID) == Some(replication)
                && candidate.label(labels::STORAGE_ID) == class.label(labels::STORAGE_ID)
        })?;
        return Ok(way(Path::Replicated, Some(&chosen), class, shortfall));
    }
    if !volsync {
        return Err(bad(format!(
            "storage class {} replicates by mover only, and movers are switched off",
            class.name()
        )));
    }
    Ok(Way { class: snapshot_class(world, class, true)?, ..way(Path::Copied, None, class, shortfall) })
}

fn peer<'a>(peers: &'a [PeerClass], class: &StorageClass) -> Result<&'a PeerClass, Wait> {
    let Some(id) = class.label(labels::STORAGE_ID) else {
        return Err(bad(format!("storage class {} has no label {}", class.name(), labels::STORAGE_ID)));
    };
    let fits = |peer: &&PeerClass| {
        peer.storage_class_name.as_deref() == Some(class.name())
            && peer.storage_id.iter().any(|known| known == id)
    };
    peers.iter().find(fits).ok_or_else(|| {
        bad(format!("peerClass matching storageClassName {} and storageID {id} not found", class.name()))
    })
}

fn way(
    path: Path,
    chosen: Option<&VolumeReplicationClass>,
    class: &StorageClass,
    shortfall: Option<String>,
) -> Way {
    Way {
        path,
        class: chosen.map(|chosen| chosen.name().to_owned()),
        storage_id: class
            .label(labels::STORAGE_ID)
            .map(|id| Identifier { id: id.to_owned(), modes: modes(class) }),
        replication_id: chosen.and_then(|chosen| {
            let id = chosen.label(labels::REPLICATION_ID)?.to_owned();
            Some(Identifier { id, modes: modes(chosen) })
        }),
        shortfall,
    }
}

fn modes(class: &impl kube::Resource) -> Vec<MMode> {
    let listed = class.label(labels::MAINTENANCE_MODES).unwrap_or_default();
    let words = listed.split(',').map(|word| MMode::from(word.trim().to_owned()));
    words.filter(MMode::is_known).collect()
}

/// Replication classes that the group's selector takes.
fn replication_classes(world: &World) -> Vec<&VolumeReplicationClass> {
    let selector = world.group.spec.async_.as_ref().and_then(|mode| mode.replication_class_selector.as_ref());
    let all = world.replication_classes.iter().map(|class| &**class);
    all.filter(|class| selected(selector, class.metadata.labels.as_ref())).collect()
}

/// The replication class of a storage class: same driver, same interval; of several, the one marked as default.
fn choose(
    world: &World,
    class: &StorageClass,
    also: impl Fn(&VolumeReplicationClass) -> bool,
) -> Result<VolumeReplicationClass, Wait> {
    if !world.kinds.replication {
        return Err(Wait::Unsupported(
            "the cluster has no VolumeReplication: install the definitions of replication.storage.openshift.io"
                .to_owned(),
        ));
    }
    let interval = world.group.spec.async_.as_ref().map(|mode| mode.scheduling_interval.as_str());
    let fits = |candidate: &&VolumeReplicationClass| {
        let said = candidate.spec.parameters.get(annotations::parameters::SCHEDULING_INTERVAL);
        candidate.spec.provisioner == class.provisioner
            && said.map(String::as_str) == interval
            && also(candidate)
    };
    let fitting: Vec<&VolumeReplicationClass> = replication_classes(world).into_iter().filter(fits).collect();
    let default = |candidate: &&VolumeReplicationClass| {
        candidate.note(annotations::IS_DEFAULT_REPLICATION_CLASS) == Some("true")
    };
    let of = |what: &str| {
        bad(format!(
            "{what} VolumeReplicationClass has provisioner {} and schedulingInterval {}",
            class.provisioner,
            interval.unwrap_or_default()
        ))
    };
    match fitting.as_slice() {
        [] => Err(of("no")),
        [one] => Ok((*one).clone()),
        several => match several.iter().copied().filter(default).collect::<Vec<_>>().as_slice() {
            [one] => Ok((*one).clone()),
            _ => Err(of("more than one")),
        },
    }
}

/// The snapshot class for a storage class; the default one where several fit. A mover of ours can do without any.
pub(super) fn snapshot_class(
    world: &World,
    class: &StorageClass,
    with_id: bool,
) -> Result<Option<String>, Wait> {
    let selector =
        world.group.spec.async_.as_ref().and_then(|mode| mode.volume_snapshot_class_selector.as_ref());
    let fitting: Vec<_> = world
        .snapshot_classes
        .iter()
        .filter(|candidate| {
            candidate.spec.driver == class.provisioner
                && !is_backup(candidate)
                && selected(selector, candidate.metadata.labels.as_ref())
                && (!with_id || candidate.label(labels::STORAGE_ID) == class.label(labels::STORAGE_ID))
        })
        .collect();
    let default = |candidate: &&&std::sync::Arc<lifeboat_api::snapshot::VolumeSnapshotClass>| {
        candidate.note(annotations::IS_DEFAULT_SNAPSHOT_CLASS) == Some("true")
    };
    match fitting.as_slice() {
        [] if with_id => Err(bad(format!(
            "no VolumeSnapshotClass has driver {} and the storageID of storage class {}",
            class.provisioner,
            class.name()
        ))),
        [] => Ok(None),
        all => {
            let same = |candidate: &&&std::sync::Arc<lifeboat_api::snapshot::VolumeSnapshotClass>| {
                let id = candidate.label(labels::STORAGE_ID);
                id.is_some() && id == class.label(labels::STORAGE_ID)
            };
            let chosen = all.iter().find(default).or_else(|| all.iter().find(same)).unwrap_or(&all[0]);
            Ok(Some(chosen.name().to_owned()))
        }
    }
}

/// Whether snapshots of a class are backups in somebody's store. What is copied for disaster recovery stays with the storage.
fn is_backup(class: &lifeboat_api::snapshot::VolumeSnapshotClass) -> bool {
    let mode = class.spec.parameters.get(annotations::parameters::SNAPSHOT_MODE);
    mode.map(String::as_str) == Some(annotations::parameters::SNAPSHOT_MODE_ONLINE)
}
