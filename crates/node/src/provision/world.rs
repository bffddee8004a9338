//! Observe: what decisions about claims, volumes and their storage need, read from caches. No judgement beyond looking things up.

use crate::central::Kinds;
use crate::handle::Handle;
use crate::provision::decide::claim::nodes_that_matter;
use crate::provision::decide::place::Room;
use crate::provision::decide::source::{SourceView, wish};
use crate::provision::desk::{Desk, Failure};
use crate::provision::words::{
    annotation, claim_noted, claim_of, class_of, csi_of, is_backing_up, is_restoring, name, provisioner_of,
    uid, volume_id, volume_name, volume_of,
};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_api::annotations;
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::{Index, ObjectKey};
use std::sync::Arc;

/// Finds objects by what they point to.
#[derive(Clone)]
pub struct Lookups {
    /// LogicalVolumes by node.
    pub on_node: Index<String, LogicalVolume>,
    /// LogicalVolumes by UID.
    pub by_uid: Index<String, LogicalVolume>,
    /// LogicalVolumes that are still being filled, by the name or UID of what from.
    pub filled_from: Index<String, LogicalVolume>,
    /// Claims that somebody is asked to make a volume for, by who is.
    pub asking: Index<String, PersistentVolumeClaim>,
    /// The same by class.
    pub of_class: Index<String, PersistentVolumeClaim>,
    /// The same by what they are filled from: kind, namespace and name.
    pub filling_from: Index<(String, ObjectKey), PersistentVolumeClaim>,
    /// Volumes by CSI handle.
    pub by_handle: Index<String, PersistentVolume>,
    /// Volumes by claim.
    pub of_claim: Index<ObjectKey, PersistentVolume>,
}

impl Lookups {
    /// Keeps lookups from now on.
    pub fn over(kinds: &Kinds) -> Self {
        let unbound = |claim: &PersistentVolumeClaim| volume_of(claim).is_empty();
        Self {
            on_node: kinds.logical.index(|volume: &LogicalVolume| [volume.spec.node_name.clone()]),
            by_uid: kinds.logical.index(|volume: &LogicalVolume| [uid(volume).to_owned()]),
            filled_from: kinds.logical.index(filled_from),
            asking: kinds.claims.index(move |claim: &PersistentVolumeClaim| {
                provisioner_of(claim).filter(|_| unbound(claim)).map(str::to_owned)
            }),
            of_class: kinds.claims.index(|claim: &PersistentVolumeClaim| [class_of(claim).to_owned()]),
            filling_from: kinds.claims.index(move |claim: &PersistentVolumeClaim| {
                let wish = wish(claim).filter(|_| unbound(claim))?;
                let namespace = claim.metadata.namespace.clone().unwrap_or_default();
                Some((wish.kind, ObjectKey::new(namespace, wish.name)))
            }),
            by_handle: kinds
                .volumes
                .index(|volume: &PersistentVolume| csi_of(volume).map(|(_, handle)| handle.to_owned())),
            of_claim: kinds.volumes.index(|volume: &PersistentVolume| claim_of(volume).map(|(key, _)| key)),
        }
    }
}

/// What a volume is still being filled from: the LogicalVolume it names, or the one whose backup it restores.
fn filled_from(volume: &LogicalVolume) -> Vec<String> {
    let source = volume.spec.source.clone();
    let copies = volume_id(volume).is_none() || is_backing_up(volume);
    let barrier = annotation(&volume.metadata, annotations::SNAPSHOT_RESTORE_REQUIRED);
    let handle = barrier.and_then(|text| text.parse::<Handle>().ok()).filter(|_| is_restoring(volume));
    source.filter(|_| copies).into_iter().chain(handle.map(|handle| handle.volume().to_owned())).collect()
}

/// What a decision about a claim that asks for a volume needs.
#[derive(Debug, Clone)]
pub struct ClaimWorld {
    /// Our name.
    pub driver: String,
    /// The claim.
    pub claim: Arc<PersistentVolumeClaim>,
    /// Its class.
    pub class: Option<Arc<StorageClass>>,
    /// The LogicalVolume of its name.
    pub logical: Option<Arc<LogicalVolume>>,
    /// The PersistentVolume of its name.
    pub volume: Option<Arc<PersistentVolume>>,
    /// The nodes that matter.
    pub rooms: Vec<Room>,
    /// What it is filled from.
    pub source: SourceView,
    /// Its last failure.
    pub failure: Option<Failure>,
}

/// What a decision about a LogicalVolume that is not published needs.
#[derive(Debug, Clone)]
pub struct LogicalWorld {
    /// The LogicalVolume.
    pub logical: Arc<LogicalVolume>,
    /// Where its claim should be.
    pub claim_key: Option<ObjectKey>,
    /// The claim that is there.
    pub claim: Option<Arc<PersistentVolumeClaim>>,
    /// The PersistentVolume of its name.
    pub volume: Option<Arc<PersistentVolume>>,
}

/// What a decision about a volume of ours needs.
#[derive(Debug, Clone)]
pub struct VolumeWorld {
    /// Our name.
    pub driver: String,
    /// The volume.
    pub volume: Arc<PersistentVolume>,
    /// The claim of the name it is for.
    pub claim: Option<Arc<PersistentVolumeClaim>>,
    /// The LogicalVolume behind it.
    pub logical: Option<Arc<LogicalVolume>>,
    /// Names of LogicalVolumes that are still being filled from it.
    pub copies: Vec<String>,
}

/// What a decision about a claim that grows needs.
#[derive(Debug, Clone)]
pub struct ExpandWorld {
    /// Our name.
    pub driver: String,
    /// The claim.
    pub claim: Arc<PersistentVolumeClaim>,
    /// Its class.
    pub class: Option<Arc<StorageClass>>,
    /// Its volume.
    pub volume: Option<Arc<PersistentVolume>>,
    /// The LogicalVolume behind that.
    pub logical: Option<Arc<LogicalVolume>>,
    /// The node that has it.
    pub room: Option<Room>,
}

/// All that can be looked at.
#[derive(Clone)]
pub struct Office {
    /// Our name.
    pub driver: String,
    /// The kinds.
    pub kinds: Kinds,
    /// Lookups over them.
    pub by: Lookups,
    /// What is agreed in this process.
    pub desk: Desk,
}

impl Office {
    /// The world of a claim that asks for a volume.
    pub fn claim(&self, key: &ObjectKey) -> Option<ClaimWorld> {
        let claim = self.kinds.claims.get(key)?;
        let own = ObjectKey::cluster_wide(volume_name(&claim));
        let (logical, volume) = (self.kinds.logical.get(&own), self.kinds.volumes.get(&own));
        let asks =
            provisioner_of(&claim) == Some(&self.driver) && volume_of(&claim).is_empty() && volume.is_none();
        let class = self.kinds.classes.get(&ObjectKey::cluster_wide(class_of(&claim)));
        let source = if asks { self.source(&claim) } else { SourceView::default() };
        let nodes = match nodes_that_matter(&claim, class.as_deref(), logical.as_deref(), &source) {
            _ if !asks => Vec::new(),
            None => self.kinds.nodes.all(),
            Some(names) => names
                .into_iter()
                .filter_map(|name| self.kinds.nodes.get(&ObjectKey::cluster_wide(name)))
                .collect(),
        };
        Some(ClaimWorld {
            driver: self.driver.clone(),
            class,
            rooms: nodes.into_iter().map(|node| self.room(node)).collect(),
            source,
            failure: self.desk.failure(key),
            logical,
            volume,
            claim,
        })
    }

    /// A node and what is promised on it.
    pub fn room(&self, node: Arc<Node>) -> Room {
        let held = self.desk.held(name(&*node));
        self.room_holding(node, held)
    }

    /// The same, for who knows what is just being promised on it.
    pub fn room_holding(&self, node: Arc<Node>, held: Vec<(String, u64)>) -> Room {
        Room { volumes: self.by.on_node.get(&name(&*node).to_owned()), held, node }
    }

    fn source(&self, claim: &PersistentVolumeClaim) -> SourceView {
        let Some(wish) = wish(claim) else { return SourceView::default() };
        let namespace = claim.metadata.namespace.clone().unwrap_or_default();
        let key = ObjectKey::new(namespace, wish.name);
        let mut view = SourceView::default();
        if wish.kind == "VolumeSnapshot" {
            view.snapshot = self.kinds.snapshots.get(&key);
            let status = view.snapshot.as_ref().and_then(|snapshot| snapshot.status.as_ref());
            let content = status.and_then(|status| status.bound_volume_snapshot_content_name.clone());
            view.content = content.and_then(|name| self.kinds.contents.get(&ObjectKey::cluster_wide(name)));
            let status = view.content.as_ref().and_then(|content| content.status.as_ref());
            let handle = status.and_then(|status| status.snapshot_handle.as_ref()?.parse::<Handle>().ok());
            view.logical = handle.and_then(|handle| self.by.by_uid.first(&handle.volume().to_owned()));
        } else {
            view.claim = self.kinds.claims.get(&key);
            let name = view.claim.as_deref().map(volume_of).unwrap_or_default().to_owned();
            view.volume = self.kinds.volumes.get(&ObjectKey::cluster_wide(name));
            view.logical = view.volume.as_deref().and_then(|volume| self.behind(volume));
        }
        view
    }

    /// The LogicalVolume behind a volume.
    pub fn behind(&self, volume: &PersistentVolume) -> Option<Arc<LogicalVolume>> {
        let (_, handle) = csi_of(volume)?;
        self.by.by_uid.first(&handle.to_owned())
    }

    /// The world of a LogicalVolume that is not published.
    pub fn logical(&self, key: &ObjectKey) -> Option<LogicalWorld> {
        let logical = self.kinds.logical.get(key)?;
        let claim_key = claim_noted(&logical);
        Some(LogicalWorld {
            claim: claim_key.as_ref().and_then(|key| self.kinds.claims.get(key)),
            volume: self.kinds.volumes.get(key),
            claim_key,
            logical,
        })
    }

    /// Names of LogicalVolumes that are still being filled from another.
    pub fn copies_of(&self, logical: &LogicalVolume) -> Vec<String> {
        let mut copies = self.by.filled_from.get(&name(logical).to_owned());
        copies.extend(self.by.filled_from.get(&uid(logical).to_owned()));
        copies.iter().map(|copy| name(&**copy).to_owned()).collect()
    }

    /// The world of a volume.
    pub fn volume(&self, key: &ObjectKey) -> Option<VolumeWorld> {
        let volume = self.kinds.volumes.get(key)?;
        let logical = self.behind(&volume);
        Some(VolumeWorld {
            driver: self.driver.clone(),
            claim: claim_of(&volume).and_then(|(key, _)| self.kinds.claims.get(&key)),
            copies: logical.as_deref().map(|logical| self.copies_of(logical)).unwrap_or_default(),
            logical,
            volume,
        })
    }

    /// The world of a claim that grows.
    pub fn expand(&self, key: &ObjectKey) -> Option<ExpandWorld> {
        let claim = self.kinds.claims.get(key)?;
        let volume = match volume_of(&claim) {
            "" => None,
            name => self.kinds.volumes.get(&ObjectKey::cluster_wide(name)),
        };
        let logical = volume.as_deref().and_then(|volume| self.behind(volume));
        let node = logical.as_ref().map(|logical| ObjectKey::cluster_wide(logical.spec.node_name.clone()));
        Some(ExpandWorld {
            driver: self.driver.clone(),
            class: self.kinds.classes.get(&ObjectKey::cluster_wide(class_of(&claim))),
            room: node.and_then(|key| self.kinds.nodes.get(&key)).map(|node| self.room(node)),
            logical,
            volume,
            claim,
        })
    }
}
