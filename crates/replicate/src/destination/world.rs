//! Observe: what a decision about one receiver needs.

use crate::jobs::JobView;
use crate::memory::Staging;
use crate::place::Place;
use crate::source::failure::Failure;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_engine::{ObjectKey, Trouble};
use lifeboat_lvm::Volume;
use lifeboat_stream::{Completed, Refusal};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

/// All that a decision about a receiver needs.
#[derive(Debug, Clone)]
pub struct World {
    /// Its key.
    pub key: ObjectKey,
    /// The receiver; nothing once it is gone, while something of it is left.
    pub receiver: Option<Arc<ReplicationDestination>>,
    /// Where senders reach this node.
    pub advertise: SocketAddr,
    /// The claim that it writes to.
    pub claim: Option<Arc<PersistentVolumeClaim>>,
    /// Where that claim's bytes are.
    pub place: Place,
    /// Pods that use the claim.
    pub users: Vec<String>,
    /// Whether a pod has used it since this process last said that its content is unknown.
    pub touched: bool,
    /// Images that were made for it.
    pub images: Vec<Arc<VolumeSnapshot>>,
    /// How many of those that are ready are kept.
    pub keeps: usize,
    /// The image that the claim shall be brought back to, on the disks.
    pub back: Option<Place>,
    /// What stands ready to take the volume's place, or what it has taken the place of.
    pub clone: Option<Volume>,
    /// Whether the back end could not make a copy of that image to take the volume's place.
    pub uncloned: bool,
    /// Its service.
    pub service: Option<Arc<Service>>,
    /// Where that leads.
    pub slice: Option<Arc<EndpointSlice>>,
    /// The highest epoch that its group knows.
    pub epoch: u64,
    /// Whether it has a group that was not seen.
    pub orphan: bool,
    /// What the volume is a copy of.
    pub staging: Option<Staging>,
    /// What the stream expects.
    pub expected: Option<Expected>,
    /// What the stream has told.
    pub received: Received,
    /// Our mounts: of the volume, and of the image that it is brought back to.
    pub mounts: (bool, bool),
    /// How far the way back to an image is.
    pub job: Option<JobView<(), Failure>>,
    /// Whether a VolSync runs here.
    pub rival: bool,
    /// What failed last.
    pub trouble: Option<Trouble>,
}

/// What the stream expects for a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The UID of the volume.
    pub volume: String,
    /// The copy that it is.
    pub incarnation: String,
    /// Lower epochs are refused.
    pub epoch: u64,
    /// Copies of another volume are refused, but for one.
    pub lineage: Lineage,
}

/// Which volume copies may descend from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lineage {
    /// The volume that the last complete copy descends from.
    pub held: Option<String>,
    /// Another one that may take its place.
    pub accepted: Option<String>,
}

/// What the stream has told about a receiver.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Received {
    /// A generation that is whole and not yet kept.
    pub completed: Option<Completed>,
    /// Who was turned away last, and when.
    pub refused: Option<(Timestamp, SocketAddr, Refusal)>,
    /// Why the last connection ended early.
    pub failed: Option<String>,
}

/// What the stream expects and has told, by receiver; clones are the same.
#[derive(Clone, Default)]
pub struct Desk {
    /// What the stream expects.
    pub expected: Arc<Mutex<BTreeMap<ObjectKey, Expected>>>,
    /// What it has told.
    pub received: Arc<Mutex<BTreeMap<ObjectKey, Received>>>,
    /// Claims that pods of this node have used.
    pub touched: Arc<Mutex<BTreeSet<ObjectKey>>>,
    /// Images that no copy could be made of, by the receiver whose claim was to be brought back to them.
    pub uncloned: Arc<Mutex<BTreeMap<ObjectKey, String>>>,
}

/// What senders call a receiver.
#[must_use]
pub fn id(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}

/// The receiver that senders call so.
#[must_use]
pub fn key_of(id: &str) -> Option<ObjectKey> {
    let (space, name) = id.split_once('/')?;
    Some(ObjectKey::new(space, name))
}

/// Where the volume of a receiver is mounted, as a name.
#[must_use]
pub fn mount_name(volume: &str) -> String {
    format!("receive-{volume}")
}

/// Begins the name of what stands ready to take a volume's place, and where an image is mounted meanwhile.
pub const BACK_PREFIX: &str = "back-";

/// What stands ready to take a volume's place is called so, and so is where an image is mounted while a claim is brought back to it.
#[must_use]
pub fn back_name(volume: &str) -> String {
    format!("{BACK_PREFIX}{volume}")
}
