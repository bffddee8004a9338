//! Where the bytes of a claim are: claim, PersistentVolume, LogicalVolume, and the volume on the disks of this node.

use crate::kinds::Kinds;
use crate::words::{Words as _, is_bound};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::ObjectKey;
use lifeboat_lvm::{Access, Volume};
use lifeboat_node::provision::words::{claim_of, csi_of, device_class, volume_id};
use lifeboat_node::{Disks, Look};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the bytes of a claim are, as far as can be seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// There is no such claim.
    NoClaim,
    /// It has no volume yet.
    Unbound,
    /// Its volume is none of node storage, with a sentence about it.
    Foreign(String),
    /// Its volume is on another node.
    Elsewhere(String),
    /// Its volume is not made yet, or not there any more.
    NotMade,
    /// Nobody has looked at the disks yet.
    Unlisted(String),
    /// They cannot be looked at.
    Unreadable(String),
    /// Here.
    Here(Box<Here>),
}

/// A volume on the disks of this node.
#[derive(Debug, Clone, PartialEq)]
pub struct Here {
    /// UID of its LogicalVolume, which it is called by.
    pub uid: String,
    /// Its device class.
    pub class: String,
    /// The volume.
    pub volume: Volume,
    /// Whether its bytes are the data itself and no filesystem.
    pub block: bool,
    /// Type of the filesystem that it would get.
    pub filesystem: String,
}

impl Here {
    /// Whether it has to be mounted to be read or written.
    #[must_use]
    pub fn needs_mount(&self) -> bool {
        !self.block && matches!(self.volume.access, Access::Device(_))
    }
}

/// Where the bytes of a claim are.
#[must_use]
pub fn find(kinds: &Kinds, disks: &Disks, node: &str, claim: Option<&PersistentVolumeClaim>) -> Place {
    let Some(claim) = claim else { return Place::NoClaim };
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
    if named.is_empty() || !is_bound(claim) {
        return Place::Unbound;
    }
    let Some(persistent) = kinds.volumes.get(&ObjectKey::cluster_wide(named)) else { return Place::Unbound };
    if claim_of(&persistent).is_none_or(|(_, uid)| uid != claim.uid()) {
        return Place::Unbound;
    }
    let handle = csi_of(&persistent).map(|(_, handle)| handle.to_owned());
    let logical = handle.and_then(|handle| kinds.by_handle.first(&handle));
    let Some(logical) = logical else {
        return Place::Foreign(format!(
            "the volume {named} of the claim {} is not on any node's own disks, so Lifeboat cannot read it: use a storage class of node storage, or a VolSync",
            claim.name()
        ));
    };
    if logical.spec.node_name != node {
        return Place::Elsewhere(logical.spec.node_name.clone());
    }
    let block = claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref()) == Some("Block");
    on_disk(disks, &logical, block)
}

/// Where the volume of a LogicalVolume of this node is.
#[must_use]
pub fn on_disk(disks: &Disks, logical: &LogicalVolume, block: bool) -> Place {
    if volume_id(logical).is_none() {
        return Place::NotMade;
    }
    let (class, uid) = (device_class(logical).to_owned(), logical.uid().to_owned());
    match disks.look(&class, |volume| volume.name == uid) {
        Look::Unlisted => Place::Unlisted(class),
        Look::Failed(error) => Place::Unreadable(error.to_string()),
        Look::Listed(mut found) => match found.remove(&uid) {
            None => Place::NotMade,
            Some(volume) => {
                let filesystem = logical.note(lifeboat_api::annotations::parameters::FS_TYPE);
                let filesystem = filesystem.filter(|type_| !type_.is_empty()).unwrap_or("ext4").to_owned();
                Place::Here(Box::new(Here { uid, class, volume, block, filesystem }))
            }
        },
    }
}

/// Volumes of one class by name.
#[must_use]
pub fn listed(disks: &Disks, class: &str, name: &str) -> Option<Volume> {
    match disks.look(class, |volume| volume.name == name) {
        Look::Listed(mut found) => found.remove(name),
        _ => None,
    }
}

/// What a volume's tags say, by the word before the equals sign.
#[must_use]
pub fn tags(volume: &Volume) -> BTreeMap<&str, &str> {
    volume.tags.iter().filter_map(|tag| tag.split_once('=')).collect()
}

/// On a volume: the highest epoch at which it was sent or received.
pub const EPOCH_TAG: &str = "lifeboat.epoch";

/// On a volume: the image that it was brought back to, and nothing was written to it since.
pub const BACK_TAG: &str = "lifeboat.back";

/// On a volume: its filesystem is ours and not what an earlier owner left; as node storage says it.
pub const FORMATTED_TAG: &str = "lifeboat.formatted";

/// On a volume: the generation that it was last a whole copy of.
pub const REPLICA_TAG: &str = "lifeboat.replica";

/// The generation that a volume was last a whole copy of.
#[must_use]
pub fn replica_of(volume: &Volume) -> Option<&str> {
    volume.tags.iter().find_map(|tag| tag.strip_prefix(REPLICA_TAG)?.strip_prefix('='))
}

/// The image that a volume was brought back to.
#[must_use]
pub fn back_of(volume: &Volume) -> Option<&str> {
    volume.tags.iter().find_map(|tag| tag.strip_prefix(BACK_TAG)?.strip_prefix('='))
}

/// The highest epoch that a volume carries.
#[must_use]
pub fn epoch_of(volume: &Volume) -> u64 {
    let all = volume.tags.iter().filter_map(|tag| tag.strip_prefix(EPOCH_TAG)?.strip_prefix('='));
    all.filter_map(|epoch| epoch.parse().ok()).max().unwrap_or(0)
}

/// The claim of a namespace by name.
#[must_use]
pub fn claim(kinds: &Kinds, space: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
    kinds.claims.get(&ObjectKey::new(space, name))
}
