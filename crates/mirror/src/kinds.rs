//! Every kind that the mirror looks at, and the indexes over them.

use crate::words::{Words as _, claims_of, group};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::Resource;
use lifeboat_api::csiaddons::{self, NetworkFence, NetworkFenceClass};
use lifeboat_api::ramen::{self, MaintenanceMode, VolumeReplicationGroup};
use lifeboat_api::replication::{ReplicationState, VolumeReplication, VolumeReplicationClass};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_api::{annotations, replication};
use lifeboat_engine::{Engine, Index, ObjectKey, Objects, Selection};
use lifeboat_node::provision::words::{claim_of, csi_of};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Which optional kinds a cluster has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Present {
    /// VolumeReplication and its class.
    pub replications: bool,
    /// VolumeReplicationGroup, which knows the epoch.
    pub groups: bool,
    /// MaintenanceMode.
    pub modes: bool,
    /// NetworkFence.
    pub fences: bool,
    /// NetworkFenceClass.
    pub fence_classes: bool,
}

impl Present {
    /// Looks at the cluster.
    ///
    /// # Errors
    /// When the server does not say.
    pub async fn look(client: &kube::Client) -> Result<Self, kube::Error> {
        let has = async |group: &str, kinds: &[&str]| {
            let listed = match client.list_api_group_resources(&format!("{group}/v1alpha1")).await {
                Ok(listed) => listed.resources.into_iter().map(|resource| resource.kind).collect(),
                Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
                Err(error) => return Err(error),
            };
            Ok(kinds.iter().map(|kind| listed.iter().any(|has| has == kind)).collect::<Vec<_>>())
        };
        let pairs = has(replication::GROUP, &["VolumeReplication", "VolumeReplicationClass"]).await?;
        let asked = has(ramen::GROUP, &["VolumeReplicationGroup", "MaintenanceMode"]).await?;
        let fences = has(csiaddons::GROUP, &["NetworkFence", "NetworkFenceClass"]).await?;
        Ok(Self {
            replications: pairs.iter().all(|there| *there),
            groups: asked[0],
            modes: asked[1],
            fences: fences[0],
            fence_classes: fences[1],
        })
    }
}

/// Every kind that the mirror looks at; clones share their caches.
#[derive(Clone)]
pub struct Kinds {
    /// The driver's name.
    pub driver: String,
    /// VolumeReplications.
    pub replications: Objects<VolumeReplication>,
    /// Their classes.
    pub classes: Objects<VolumeReplicationClass>,
    /// Groups, which know the epoch.
    pub groups: Objects<VolumeReplicationGroup>,
    /// Claims.
    pub claims: Objects<PersistentVolumeClaim>,
    /// Volumes.
    pub volumes: Objects<PersistentVolume>,
    /// LogicalVolumes.
    pub logical: Objects<LogicalVolume>,
    /// Pods.
    pub pods: Objects<Pod>,
    /// Maintenance modes.
    pub modes: Objects<MaintenanceMode>,
    /// Fences.
    pub fences: Objects<NetworkFence>,
    /// Their classes.
    pub fence_classes: Objects<NetworkFenceClass>,
    /// LogicalVolumes by their UID, which PersistentVolumes call them by.
    pub by_uid: Index<String, LogicalVolume>,
    /// LogicalVolumes by the id of their peer.
    pub by_peer: Index<String, LogicalVolume>,
    /// PersistentVolumes by their handle.
    pub by_handle: Index<String, PersistentVolume>,
    /// VolumeReplications by their claim.
    pub by_claim: Index<ObjectKey, VolumeReplication>,
    /// VolumeReplications by their own UID.
    pub by_own_uid: Index<String, VolumeReplication>,
    /// VolumeReplications by their group.
    pub of_group: Index<ObjectKey, VolumeReplication>,
    /// Pods by the claims that they hold.
    pub users: Index<ObjectKey, Pod>,
}

/// The claim that a VolumeReplication is about.
#[must_use]
pub fn claim_key(replication: &VolumeReplication) -> Option<ObjectKey> {
    let source = &replication.spec.data_source;
    (source.kind == "PersistentVolumeClaim").then(|| ObjectKey::new(replication.space(), source.name.clone()))
}

impl Kinds {
    /// Watches every kind that the cluster has.
    pub fn watch(
        engine: &mut Engine,
        client: &kube::Client,
        manager: &str,
        driver: &str,
        has: Present,
    ) -> Self {
        fn maybe<K>(engine: &mut Engine, client: &kube::Client, manager: &str, there: bool) -> Objects<K>
        where
            K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
        {
            if there { engine.objects(Selection::all()) } else { Objects::new(client.clone(), manager) }
        }
        let replications = maybe::<VolumeReplication>(engine, client, manager, has.replications);
        let logical = engine.objects::<LogicalVolume>(Selection::all());
        let volumes = engine.objects::<PersistentVolume>(Selection::all());
        let pods = engine.objects::<Pod>(Selection::all());
        Self {
            driver: driver.to_owned(),
            by_uid: logical.index(|logical: &LogicalVolume| Some(logical.uid().to_owned())),
            by_peer: logical
                .index(|logical: &LogicalVolume| logical.note(annotations::MIRROR_PEER).map(str::to_owned)),
            by_handle: volumes
                .index(|volume: &PersistentVolume| csi_of(volume).map(|(_, handle)| handle.to_owned())),
            by_claim: replications.index(claim_key),
            by_own_uid: replications.index(|one: &VolumeReplication| Some(one.uid().to_owned())),
            of_group: replications.index(|one: &VolumeReplication| group(one)),
            users: pods.index(claims_of),
            classes: maybe(engine, client, manager, has.replications),
            groups: maybe(engine, client, manager, has.groups),
            claims: engine.objects(Selection::all()),
            modes: maybe(engine, client, manager, has.modes),
            fences: maybe(engine, client, manager, has.fences),
            fence_classes: maybe(engine, client, manager, has.fence_classes),
            replications,
            logical,
            volumes,
            pods,
        }
    }

    /// Whether a class is ours.
    #[must_use]
    pub fn is_ours(&self, class: &VolumeReplicationClass) -> bool {
        class.spec.provisioner == self.driver
    }

    /// The VolumeReplications of a LogicalVolume.
    #[must_use]
    pub fn replications_of(&self, uid: &str) -> Vec<ObjectKey> {
        let volumes = self.by_handle.get(&uid.to_owned());
        let claims = volumes.iter().filter_map(|volume| Some(claim_of(volume)?.0));
        claims.flat_map(|claim| self.by_claim.get(&claim)).map(|one| ObjectKey::of(&*one)).collect()
    }

    /// Whether somebody wants a LogicalVolume to be primary here.
    #[must_use]
    pub fn is_wanted(&self, uid: &str) -> bool {
        let wanted = |key: &ObjectKey| {
            self.replications
                .get(key)
                .is_some_and(|one| one.spec.replication_state == ReplicationState::Primary && !one.is_going())
        };
        self.replications_of(uid).iter().any(wanted)
    }

    /// The LogicalVolume behind a VolumeReplication.
    #[must_use]
    pub fn logical_of(&self, replication: &VolumeReplication) -> Option<ObjectKey> {
        let claim = self.claims.get(&claim_key(replication)?)?;
        let named = claim.spec.as_ref()?.volume_name.clone()?;
        let volume = self.volumes.get(&ObjectKey::cluster_wide(named))?;
        let (_, handle) = csi_of(&volume)?;
        self.by_uid.first(&handle.to_owned()).map(|logical| ObjectKey::of(&*logical))
    }
}
