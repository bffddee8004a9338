//! Looks: puts the world of a group together from the caches, through indexes.

use crate::books::Desk;
use crate::effects::Usages;
use crate::keys::Keys;
use crate::mishaps::Mishaps;
use crate::pods::UsingPod;
use crate::settings::{CONFIG_MAP, LastGood};
use crate::triggers::{is_using, uses};
use crate::words::{ClaimWords as _, GroupWords as _, OwnedWords as _, VolumeWords as _, Words as _};
use crate::world::{Claim, Kinds, World};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{StorageClass, VolumeAttachment};
use lifeboat_api::multicluster::ServiceExport;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::replication::{VolumeReplication, VolumeReplicationClass};
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotClass};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_api::{annotations, labels};
use lifeboat_engine::{Clock, Index, ObjectKey, Objects, Recorder, Trouble};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the protector is told.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Namespace of the operator: of its configuration and the stores' secrets.
    pub namespace: String,
    /// Identity of this cluster, written into records.
    pub cluster: String,
    /// Only groups of this namespace are served; all where absent.
    pub only: Option<String>,
}

/// By what a group is found from a claim: its namespace and one label that it asks for, or none.
pub type Clue = (String, String, String);

/// The clues of a group.
pub fn clues(group: &VolumeReplicationGroup) -> Vec<Clue> {
    let space = group.space().to_owned();
    let wanted = group.spec.pvc_selector.match_labels.as_ref().and_then(|all| all.iter().next());
    vec![match wanted {
        Some((key, value)) => (space, key.clone(), value.clone()),
        None => (space, String::new(), String::new()),
    }]
}

/// The clues that a claim gives.
pub fn clues_of(claim: &PersistentVolumeClaim) -> Vec<Clue> {
    let space = claim.space().to_owned();
    let labels = claim.metadata.labels.iter().flatten();
    let mut all: Vec<Clue> = labels.map(|(key, value)| (space.clone(), key.clone(), value.clone())).collect();
    all.push((space, String::new(), String::new()));
    all
}

/// Everything that is watched, with its indexes.
#[derive(Clone)]
pub struct Watched {
    pub(crate) groups: Objects<VolumeReplicationGroup>,
    pub(crate) by_clue: Index<Clue, VolumeReplicationGroup>,
    pub(crate) claims: Objects<PersistentVolumeClaim>,
    pub(crate) claims_by_owner: Index<ObjectKey, PersistentVolumeClaim>,
    pub(crate) claims_by_clue: Index<Clue, PersistentVolumeClaim>,
    pub(crate) volumes: Objects<PersistentVolume>,
    pub(crate) volumes_by_claim: Index<ObjectKey, PersistentVolume>,
    pub(crate) orphans: Index<String, PersistentVolume>,
    pub(crate) namespaces: Objects<Namespace>,
    pub(crate) pods: Objects<Pod>,
    pub(crate) pods_by_claim: Index<ObjectKey, Pod>,
    pub(crate) attachments: Objects<VolumeAttachment>,
    pub(crate) attachments_by_volume: Index<String, VolumeAttachment>,
    pub(crate) classes: Objects<StorageClass>,
    pub(crate) replication_classes: Objects<VolumeReplicationClass>,
    pub(crate) snapshot_classes: Objects<VolumeSnapshotClass>,
    pub(crate) replications: Objects<VolumeReplication>,
    pub(crate) replications_by_owner: Index<ObjectKey, VolumeReplication>,
    pub(crate) sources: Objects<ReplicationSource>,
    pub(crate) sources_by_owner: Index<ObjectKey, ReplicationSource>,
    pub(crate) destinations: Objects<ReplicationDestination>,
    pub(crate) destinations_by_owner: Index<ObjectKey, ReplicationDestination>,
    pub(crate) images: Objects<VolumeSnapshot>,
    pub(crate) images_by_owner: Index<ObjectKey, VolumeSnapshot>,
    pub(crate) exports: Objects<ServiceExport>,
    pub(crate) logical: Objects<LogicalVolume>,
    pub(crate) logical_by_handle: Index<String, LogicalVolume>,
    pub(crate) config: Objects<ConfigMap>,
}

/// The controller of VolumeReplicationGroups.
pub struct Groups {
    pub(crate) watched: Watched,
    pub(crate) setup: Setup,
    pub(crate) kinds: Kinds,
    pub(crate) config: LastGood,
    pub(crate) desk: Desk,
    pub(crate) mishaps: Mishaps,
    pub(crate) keys: Keys,
    pub(crate) usages: Usages,
    pub(crate) client: kube::Client,
    pub(crate) clock: Clock,
    pub(crate) recorder: Recorder,
}

/// Claims that a pod mounts.
pub fn claims_of(pod: &Pod) -> Vec<ObjectKey> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let named =
        volumes.filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.clone()));
    named.map(|name| ObjectKey::new(pod.space(), name)).collect()
}

/// Whether a pod is a mover's, whose use of a claim is what it is for.
pub fn is_mover(pod: &Pod) -> bool {
    pod.label(labels::CREATED_BY) == Some(labels::CREATED_BY_VOLSYNC)
}

impl Watched {
    /// The groups that a claim concerns: those that select it, and the one that its labels name.
    pub fn groups_of(&self, claim: &PersistentVolumeClaim) -> Vec<ObjectKey> {
        let mut found: BTreeSet<ObjectKey> = clues_of(claim)
            .iter()
            .flat_map(|clue| self.by_clue.get(clue))
            .filter(|group| group.selects(claim))
            .map(|group| group.key())
            .collect();
        found.extend(claim.owner());
        found.into_iter().collect()
    }

    /// All groups of a namespace.
    pub fn groups_in(&self, namespace: &str) -> Vec<ObjectKey> {
        self.groups.in_namespace(namespace).iter().map(|group| group.key()).collect()
    }

    pub(crate) fn users(&self, claim: &PersistentVolumeClaim) -> Vec<String> {
        let pods = self.pods_by_claim.get(&ObjectKey::of(claim));
        let using = pods.iter().filter(|pod| uses(pod, claim) && !is_mover(pod));
        let mut users: Vec<String> = using.map(|pod| format!("pod {}", pod.name())).collect();
        let attached = claim.volume_name().map(|name| self.attachments_by_volume.get(&name.to_owned()));
        let moved = pods.iter().any(|pod| is_using(pod) && is_mover(pod));
        // A mover's pod attaches the volume too, and that is what it is for.
        if !moved {
            users.extend(attached.iter().flatten().map(|one| format!("node {}", one.spec.node_name)));
        }
        users
    }

    fn pods(&self, claim: &PersistentVolumeClaim) -> Vec<UsingPod> {
        let pods = self.pods_by_claim.get(&ObjectKey::of(claim));
        let using = pods.iter().filter(|pod| is_using(pod) && !is_mover(pod) && !pod.is_going());
        let mut pods: Vec<UsingPod> = using.map(|pod| UsingPod::of(pod)).collect();
        pods.sort_by(|one, other| one.name.cmp(&other.name));
        pods
    }

    fn seen(&self, group: &VolumeReplicationGroup, claim: Arc<PersistentVolumeClaim>) -> Claim {
        let rivals = clues_of(&claim)
            .iter()
            .flat_map(|clue| self.by_clue.get(clue))
            .filter(|other| other.key() != group.key() && other.selects(&claim) && !other.is_going())
            .map(|other| other.key())
            .collect::<BTreeSet<_>>();
        Claim {
            selected: group.selects(&claim),
            volume: claim.volume_name().and_then(|name| self.volumes.get(&ObjectKey::cluster_wide(name))),
            users: self.users(&claim),
            pods: self.pods(&claim),
            rivals: rivals.into_iter().collect(),
            claim,
        }
    }
}

impl Groups {
    /// The world of one group.
    pub(crate) fn world(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        let seen = &self.watched;
        let group = seen.groups.get(key)?;
        let config = seen.config.get(&ObjectKey::new(self.setup.namespace.clone(), CONFIG_MAP));
        let candidates = clues(&group).into_iter().flat_map(|clue| match clue.1.is_empty() {
            true => seen.claims.in_namespace(group.space()),
            false => seen.claims_by_clue.get(&clue),
        });
        let mut claims: BTreeMap<String, Arc<PersistentVolumeClaim>> = candidates
            .filter(|claim| group.selects(claim))
            .map(|claim| (claim.name().to_owned(), claim))
            .collect();
        claims
            .extend(seen.claims_by_owner.get(key).into_iter().map(|claim| (claim.name().to_owned(), claim)));
        let claims: Vec<Claim> = claims.into_values().map(|claim| seen.seen(&group, claim)).collect();
        let books = self.desk.books();
        let read = books.read(key);
        let namespace = seen.namespaces.get(&ObjectKey::cluster_wide(group.space()));
        let mut world = World {
            cluster: self.setup.cluster.clone(),
            namespace_is_deleting: namespace.is_some_and(|namespace| namespace.is_going()),
            config: self.config.read(config.as_deref()),
            kinds: self.kinds,
            named: BTreeMap::new(),
            volumes: BTreeMap::new(),
            places: BTreeMap::new(),
            classes: by_name(seen.classes.all()),
            replication_classes: seen.replication_classes.all(),
            snapshot_classes: seen.snapshot_classes.all(),
            replications: by_name(seen.replications_by_owner.get(key)),
            sources: by_name(seen.sources_by_owner.get(key)),
            destinations: by_name(seen.destinations_by_owner.get(key)),
            images: by_name(seen.images_by_owner.get(key)),
            exports: seen
                .exports
                .in_namespace(group.space())
                .iter()
                .map(|one| one.name().to_owned())
                .collect(),
            mover_key: self.keys.of(key),
            stores: books.stores(key),
            mishaps: self.mishaps.of(key),
            trouble: trouble.cloned(),
            claims,
            read,
            group,
        };
        self.add_named(&mut world);
        Some(world)
    }

    /// What is asked for by name: objects of the names of claims, claims that are to be received, volumes and claims in a record.
    fn add_named(&self, world: &mut World) {
        let seen = &self.watched;
        let space = world.group.space().to_owned();
        let mut names: BTreeSet<String> = world.claims.iter().map(|claim| claim.name().to_owned()).collect();
        let wished = crate::decide::receive::wished(world).into_iter().filter_map(|wish| wish.name.clone());
        let mut asked: BTreeSet<String> = wished.collect();
        asked.extend(world.destinations.keys().cloned());
        let orphans = seen.orphans.get(&world.key().to_string());
        let mut volumes: BTreeSet<String> = orphans.iter().map(|volume| volume.name().to_owned()).collect();
        asked.extend(orphans.iter().filter_map(|volume| Some(volume.claim_key()?.name)));
        if let Some((_, reading, _)) = &world.read.answer
            && let Some(record) = &reading.newest
        {
            asked.extend(record.claims.iter().map(|claim| claim.name().to_owned()));
            volumes.extend(record.volumes.iter().map(|volume| volume.name().to_owned()));
            for handle in record.volumes.iter().flat_map(handles) {
                let found = seen.logical_by_handle.get(&handle);
                let place = found.into_iter().find(|one| !one.is_going());
                world.places.extend(place.map(|one| (handle, one.spec.node_name.clone())));
            }
        }
        for name in asked.difference(&names) {
            let key = ObjectKey::new(space.clone(), name.clone());
            if let Some(claim) = seen.claims.get(&key) {
                world.named.insert(name.clone(), seen.seen(&world.group, claim));
            }
        }
        names.extend(asked);
        for name in names {
            let key = ObjectKey::new(space.clone(), name.clone());
            for volume in seen.volumes_by_claim.get(&key) {
                volumes.insert(volume.name().to_owned());
            }
            if let Some(found) = seen.replications.get(&key) {
                world.replications.insert(name.clone(), found);
            }
            if let Some(found) = seen.sources.get(&key) {
                world.sources.insert(name.clone(), found);
            }
            if let Some(found) = seen.destinations.get(&key) {
                let image = found.status.as_ref().and_then(|status| status.latest_image.as_ref());
                let image = image
                    .and_then(|image| seen.images.get(&ObjectKey::new(space.clone(), image.name.clone())));
                world.images.extend(image.map(|image| (image.name().to_owned(), image)));
                world.destinations.insert(name, found);
            }
        }
        // All images that a receiver of ours has made: a failover may go back to any of them.
        for image in seen.images.in_namespace(&space) {
            if image.note(annotations::RECEIVER).is_some_and(|name| world.destinations.contains_key(name)) {
                world.images.insert(image.name().to_owned(), image);
            }
        }
        for name in volumes {
            if let Some(volume) = seen.volumes.get(&ObjectKey::cluster_wide(name.clone())) {
                world.volumes.insert(name, volume);
            }
        }
    }
}

fn by_name<K: kube::Resource>(all: Vec<Arc<K>>) -> BTreeMap<String, Arc<K>> {
    all.into_iter().map(|object| (object.name().to_owned(), object)).collect()
}

/// What a volume is found by: the claim that it is for.
pub(crate) fn claim_of(volume: &PersistentVolume) -> Option<ObjectKey> {
    volume.claim_key()
}

/// The orphaned group that left a volume, as its annotation names it.
pub(crate) fn orphan_of(volume: &PersistentVolume) -> Option<String> {
    volume.note(annotations::ORPHANED_FROM).map(str::to_owned)
}

/// The handles by which a recorded volume may be known here: its own, and the one that it has at the peer.
fn handles(volume: &PersistentVolume) -> Vec<String> {
    let own = volume.handle().map(|(_, handle)| handle.to_owned());
    own.into_iter().chain(volume.note(annotations::DESTINATION_VOLUME_HANDLE).map(str::to_owned)).collect()
}

/// What a volume on a node's disks is called by those who use it.
pub(crate) fn handle_of(volume: &LogicalVolume) -> Vec<String> {
    let told = volume.status.as_ref().and_then(|status| status.volume_id.clone());
    [volume.uid().to_owned()].into_iter().chain(told).filter(|handle| !handle.is_empty()).collect()
}
