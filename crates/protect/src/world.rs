//! Observe: all that a decision about a group needs, as it stands in the caches. No judgement here.

use crate::books::{ReadState, StoreState};
pub use crate::keys::MoverKey;
use crate::mishaps::Mishap;
pub use crate::pods::UsingPod;
use crate::settings::Config;
use crate::words::{ClaimWords as _, GroupWords as _, Words as _};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::replication::{VolumeReplication, VolumeReplicationClass};
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotClass};
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_api::{finalizers, ramen};
use lifeboat_engine::{ObjectKey, Trouble};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Which kinds the cluster has beside those of the group itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds {
    /// VolumeReplication and its class.
    pub replication: bool,
    /// ReplicationSource and ReplicationDestination.
    pub volsync: bool,
    /// VolumeSnapshot and its class.
    pub snapshots: bool,
    /// ServiceExport.
    pub exports: bool,
    /// NetworkFenceClass.
    pub fences: bool,
    /// VolumeGroupReplicationClass.
    pub group_replication: bool,
    /// DRClusterConfig and ProtectedVolumeReplicationGroupList.
    pub surveys: bool,
    /// LogicalVolume: volumes that are on the disks of one node.
    pub local: bool,
}

impl Kinds {
    /// A cluster that has them all.
    pub const ALL: Self = Self {
        replication: true,
        volsync: true,
        snapshots: true,
        exports: true,
        fences: true,
        group_replication: true,
        surveys: true,
        local: true,
    };
}

/// A claim that a group selects or owns.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The claim.
    pub claim: Arc<PersistentVolumeClaim>,
    /// Whether the group's selector takes it.
    pub selected: bool,
    /// The volume it is bound to.
    pub volume: Option<Arc<PersistentVolume>>,
    /// Who uses it: pods by name, and nodes that its volume is attached to.
    pub users: Vec<String>,
    /// Pods of the application that use it and are not being deleted.
    pub pods: Vec<UsingPod>,
    /// Other groups that want it too.
    pub rivals: Vec<ObjectKey>,
}

impl Claim {
    /// Its name.
    pub fn name(&self) -> &str {
        self.claim.name()
    }

    /// Whether it stands under our protection for replication by the storage.
    pub fn is_replicated(&self) -> bool {
        self.claim.has_finalizer(finalizers::PVC_VR)
    }

    /// Whether it stands under our protection for copies by a mover.
    pub fn is_copied(&self) -> bool {
        self.claim.has_finalizer(finalizers::PVC_VOLSYNC)
    }
}

/// All that a decision about a group needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The group.
    pub group: Arc<VolumeReplicationGroup>,
    /// Identity of this cluster, as it stands in records that it writes.
    pub cluster: String,
    /// Whether the group's namespace is being deleted, with all that is in it.
    pub namespace_is_deleting: bool,
    /// The operator's configuration.
    pub config: Config,
    /// What the cluster can do.
    pub kinds: Kinds,
    /// Claims that the group selects or owns, in order of name.
    pub claims: Vec<Claim>,
    /// Claims that are asked for by name: those to receive and those in a record.
    pub named: BTreeMap<String, Claim>,
    /// Volumes that a record names, those that are for claims of the group, and those that an orphaned group of its name left.
    pub volumes: BTreeMap<String, Arc<PersistentVolume>>,
    /// Storage classes.
    pub classes: BTreeMap<String, Arc<StorageClass>>,
    /// Replication classes.
    pub replication_classes: Vec<Arc<VolumeReplicationClass>>,
    /// Snapshot classes.
    pub snapshot_classes: Vec<Arc<VolumeSnapshotClass>>,
    /// VolumeReplications in the group's namespace that have the name of a claim or belong to the group.
    pub replications: BTreeMap<String, Arc<VolumeReplication>>,
    /// Senders, likewise.
    pub sources: BTreeMap<String, Arc<ReplicationSource>>,
    /// Receivers, likewise.
    pub destinations: BTreeMap<String, Arc<ReplicationDestination>>,
    /// Images that receivers have made, and those that belong to the group.
    pub images: BTreeMap<String, Arc<VolumeSnapshot>>,
    /// Services that are exported.
    pub exports: BTreeSet<String>,
    /// Whether the key that movers share is there.
    pub mover_key: MoverKey,
    /// What is known about the stores.
    pub stores: BTreeMap<String, StoreState>,
    /// What was read from the stores.
    pub read: ReadState,
    /// Nodes that have the volumes of a record, by handle, as the storage of this cluster tells.
    pub places: BTreeMap<String, String>,
    /// What went wrong with single claims.
    pub mishaps: BTreeMap<String, Mishap>,
    /// The last failure of the group as a whole.
    pub trouble: Option<Trouble>,
}

impl World {
    /// The group's key.
    pub fn key(&self) -> ObjectKey {
        self.group.key()
    }

    /// Stores that the group names, without the word for none.
    pub fn store_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in &self.group.spec.s3_profiles {
            if name != ramen::NO_S3 && !name.is_empty() && !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Whether the group says that it wants no store at all.
    pub fn wants_no_store(&self) -> bool {
        self.store_names().is_empty() && self.group.spec.s3_profiles.iter().any(|name| name == ramen::NO_S3)
    }

    /// The secret with the key that movers share.
    pub fn key_secret(&self) -> String {
        key_secret(self.group.name())
    }

    /// A claim of the group's namespace by name, selected or asked for.
    pub fn claim(&self, name: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.name() == name).or_else(|| self.named.get(name))
    }

    /// The volume of a claim, also one that the claim left behind.
    pub fn volume_for(&self, claim: &str) -> Option<&Arc<PersistentVolume>> {
        use crate::words::VolumeWords as _;
        let bound = self.claim(claim).and_then(|claim| claim.volume.as_ref());
        let key = ObjectKey::new(self.group.space(), claim);
        bound.or_else(|| self.volumes.values().find(|volume| volume.claim_key().as_ref() == Some(&key)))
    }

    /// The storage class of a claim.
    pub fn class_of(&self, claim: &PersistentVolumeClaim) -> Option<&Arc<StorageClass>> {
        self.classes.get(claim.class_name()?)
    }
}

/// Name of the secret with the key that the movers of a group share.
pub fn key_secret(group: &str) -> String {
    format!("{group}-vs-secret")
}
