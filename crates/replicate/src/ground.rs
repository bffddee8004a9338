//! What both halves of the mover work with.

use crate::kinds::Kinds;
use crate::place::Here;
use crate::resolve::Resolve;
use crate::words::{self, Words as _, epochs};
use lifeboat_api::annotations;
use lifeboat_engine::{Class, Clock, EffectError};
use lifeboat_lvm::{Access, Lvm};
use lifeboat_node::{Disks, Filesystems, Mounts};
use lifeboat_stream::Timing;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the mover of a node is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node; only volumes on it are read and written.
    pub node: String,
    /// Where senders of other nodes and clusters are listened for.
    pub listen: SocketAddr,
    /// Where senders reach that; a port of 0 stands for the one that is listened on.
    pub advertise: SocketAddr,
    /// A folder of its own: what was sent and received last, and mount points.
    pub state: PathBuf,
    /// Copies sent at once.
    pub jobs_at_once: usize,
    /// Bytes on the wire in a second for each copy, at most.
    pub bytes_per_second: Option<u64>,
    /// How long a link may be silent.
    pub timing: Timing,
    /// After this many bytes the receiver makes safe what it has, so that a cut link costs no more than this.
    pub checkpoint: u64,
}

impl Config {
    /// The usual choices for a node that is reached at an address.
    #[must_use]
    pub fn new(node: &str, listen: SocketAddr, advertise: SocketAddr, state: impl Into<PathBuf>) -> Self {
        Self {
            node: node.to_owned(),
            listen,
            advertise,
            state: state.into(),
            jobs_at_once: 4,
            bytes_per_second: None,
            timing: Timing::default(),
            checkpoint: lifeboat_stream::CHECKPOINT,
        }
    }
}

/// What the mover of a node works with.
#[derive(Clone)]
pub struct Parts {
    /// The node's volumes.
    pub lvm: Arc<dyn Lvm>,
    /// Mounts.
    pub filesystems: Arc<dyn Filesystems>,
    /// Finds receivers.
    pub resolve: Arc<dyn Resolve>,
}

/// What both halves share for as long as the kinds of the cluster stay the same.
#[derive(Clone)]
pub struct Ground {
    pub(crate) client: kube::Client,
    pub(crate) clock: Clock,
    pub(crate) config: Arc<Config>,
    pub(crate) kinds: Kinds,
    pub(crate) disks: Disks,
    pub(crate) mounts: Mounts,
    pub(crate) resolve: Arc<dyn Resolve>,
    /// Device classes of this node; empty where they could not be asked for.
    pub(crate) classes: BTreeSet<String>,
    /// Those whose volumes share no blocks: each image takes the room of the whole volume.
    pub(crate) thick: BTreeSet<String>,
}

impl Ground {
    /// Whether an object belongs to a group that was not seen: nobody knows which epoch it is then.
    pub(crate) fn is_orphan(&self, object: &impl kube::Resource) -> bool {
        words::group(object).is_some_and(|key| self.kinds.groups.get(&key).is_none())
    }

    /// Whether a claim of this storage class can be made on this node.
    pub(crate) fn serves(&self, class: Option<&str>) -> bool {
        let device = self.kinds.device_class(class);
        self.classes.is_empty() || device.is_none_or(|device| self.classes.contains(&device))
    }

    /// The epochs that an object's group knows; one that the object itself was given counts where there is no group.
    pub(crate) fn epochs(&self, object: &impl kube::Resource) -> Option<(u64, Option<u64>)> {
        let group = words::group(object).and_then(|key| self.kinds.groups.get(&key));
        let noted = object.note(annotations::EPOCH).and_then(|text| text.parse::<u64>().ok());
        group.map(|group| epochs(&group)).or(noted.map(|epoch| (epoch, Some(epoch))))
    }

    /// Where the files of a volume are, or its device where it has none.
    pub(crate) fn path(&self, here: &Here, mount: &str) -> Result<(PathBuf, bool), EffectError> {
        match (&here.volume.access, here.block) {
            (Access::Directory(path), _) => Ok((path.clone(), false)),
            (Access::Device(device), true) => Ok((real(device), true)),
            (Access::Device(_), false) => {
                let at = self.mounts.of(mount);
                at.map(|at| (at, false)).ok_or_else(|| stale(format!("{mount} is not mounted")))
            }
        }
    }
}

/// LVM's names are links to the devices, and the stream follows none.
fn real(device: &Path) -> PathBuf {
    std::fs::canonicalize(device).unwrap_or_else(|_| device.to_owned())
}

/// The world has changed since the decision.
pub(crate) fn stale(what: impl Into<String>) -> EffectError {
    EffectError::new(Class::Stale, what)
}
