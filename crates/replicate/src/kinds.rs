//! Every kind that the mover looks at, and the indexes over them.

use crate::words::{self, Words as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotContent};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_api::{annotations, labels};
use lifeboat_engine::{Engine, Index, ObjectKey, Objects, Selection};
use lifeboat_node::provision::words::{claim_of, volume_id};

/// Every kind that the mover looks at; clones share their caches.
#[derive(Clone)]
pub struct Kinds {
    /// Senders.
    pub sources: Objects<ReplicationSource>,
    /// Receivers.
    pub destinations: Objects<ReplicationDestination>,
    /// Groups, which know the epoch; none are seen while the cluster lacks the kind.
    pub groups: Objects<VolumeReplicationGroup>,
    /// Claims.
    pub claims: Objects<PersistentVolumeClaim>,
    /// Storage classes.
    pub classes: Objects<StorageClass>,
    /// Volumes.
    pub volumes: Objects<PersistentVolume>,
    /// LogicalVolumes.
    pub logical: Objects<LogicalVolume>,
    /// Images.
    pub snapshots: Objects<VolumeSnapshot>,
    /// Their contents.
    pub contents: Objects<VolumeSnapshotContent>,
    /// Services of our receivers.
    pub services: Objects<Service>,
    /// Where those lead.
    pub slices: Objects<EndpointSlice>,
    /// Pods of this node.
    pub pods: Objects<Pod>,
    /// VolSync's own controller, where there is one.
    pub rivals: Objects<Deployment>,
    /// LogicalVolumes by the id that a PersistentVolume has.
    pub by_handle: Index<String, LogicalVolume>,
    /// Senders by their claim.
    pub sending: Index<ObjectKey, ReplicationSource>,
    /// Receivers by their claim.
    pub receiving: Index<ObjectKey, ReplicationDestination>,
    /// Senders by their group.
    pub sources_of: Index<ObjectKey, ReplicationSource>,
    /// Receivers by their group.
    pub destinations_of: Index<ObjectKey, ReplicationDestination>,
    /// Images by their receiver.
    pub images_of: Index<ObjectKey, VolumeSnapshot>,
    /// Volumes by the claim they are bound to.
    pub volume_of: Index<ObjectKey, PersistentVolume>,
}

/// The claim that a receiver writes to: the one it names, or one of its own.
#[must_use]
pub fn claim_of_receiver(receiver: &ReplicationDestination) -> ObjectKey {
    let tls = receiver.spec.rsync_tls.as_ref();
    let named = tls.and_then(|tls| tls.volume.destination_pvc.clone()).filter(|name| !name.is_empty());
    let name = named.unwrap_or_else(|| fitting(receiver.name(), "-dst"));
    ObjectKey::new(receiver.space(), name)
}

/// Longest name of a claim or a snapshot.
const LONGEST: usize = 253;

/// What something is called that is made for a receiver, as VolSync has it: `volsync-NAME` and this end. Where that is too long, the
/// rest of the name is replaced by a checksum of the whole.
pub(crate) fn fitting(receiver: &str, end: &str) -> String {
    let whole = format!("volsync-{receiver}{end}");
    if whole.len() <= LONGEST {
        return whole;
    }
    // FNV-1a with 64 bits: names of one namespace must not meet by chance.
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let sum = format!("-{:016x}{end}", receiver.bytes().fold(0xcbf2_9ce4_8422_2325, step));
    let room = LONGEST.saturating_sub("volsync-".len() + sum.len());
    let begin = receiver.get(..room).unwrap_or_default().trim_end_matches(['-', '.']);
    format!("volsync-{begin}{sum}")
}

impl Kinds {
    /// Watches every kind; groups on an engine of their own, for a cluster may lack them.
    pub fn watch(engine: &mut Engine, for_groups: &mut Engine, node: &str) -> Self {
        let ours = || Selection::all().labels(format!("{}={}", labels::CREATED_BY, labels::CREATED_BY_MOVER));
        let sources = engine.objects::<ReplicationSource>(Selection::all());
        let destinations = engine.objects::<ReplicationDestination>(Selection::all());
        let snapshots = engine.objects::<VolumeSnapshot>(Selection::all());
        let logical = engine.objects::<LogicalVolume>(Selection::all());
        let volumes = engine.objects::<PersistentVolume>(Selection::all());
        let groups = for_groups.objects(Selection::all());
        Self {
            by_handle: logical.index(|logical: &LogicalVolume| volume_id(logical).map(str::to_owned)),
            sending: sources.index(|source: &ReplicationSource| {
                Some(ObjectKey::new(source.space(), source.spec.source_pvc.clone()?))
            }),
            receiving: destinations
                .index(|receiver: &ReplicationDestination| Some(claim_of_receiver(receiver))),
            sources_of: sources.index(|source: &ReplicationSource| words::group(source)),
            destinations_of: destinations.index(|receiver: &ReplicationDestination| words::group(receiver)),
            images_of: snapshots.index(|image: &VolumeSnapshot| {
                let ours = image.label(labels::CREATED_BY) == Some(labels::CREATED_BY_MOVER);
                ours.then(|| {
                    ObjectKey::new(image.space(), image.note(annotations::RECEIVER).unwrap_or_default())
                })
            }),
            volume_of: volumes.index(|volume: &PersistentVolume| claim_of(volume).map(|(key, _)| key)),
            groups,
            claims: engine.objects(Selection::all()),
            classes: engine.objects(Selection::all()),
            contents: engine.objects(Selection::all()),
            services: engine.objects(ours()),
            slices: engine.objects(ours()),
            pods: engine.objects(Selection::all().fields(format!("spec.nodeName={node}"))),
            rivals: engine.objects(Selection::all().labels("app.kubernetes.io/name=volsync")),
            sources,
            destinations,
            snapshots,
            logical,
            volumes,
        }
    }

    /// The device class of a storage class, where it names one.
    #[must_use]
    pub fn device_class(&self, class: Option<&str>) -> Option<String> {
        let class = self.classes.get(&ObjectKey::cluster_wide(class?))?;
        class.parameters.as_ref()?.get(annotations::DEVICE_CLASS).filter(|name| !name.is_empty()).cloned()
    }

    /// Whether a VolSync runs on this cluster.
    #[must_use]
    pub fn has_rival(&self) -> bool {
        let ready =
            |one: &Deployment| one.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
        self.rivals.all().iter().any(|one| ready(one) > 0)
    }
}
