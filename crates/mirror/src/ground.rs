//! What all parts of the mirror work with.

use crate::calls::Word;
use crate::copies::{Copies, Kind, Seen, look};
use crate::desk::Desk;
use crate::failure::Failure;
use crate::kinds::Kinds;
use crate::words::{Words as _, stale};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::{Class, Clock, EffectError, ObjectKey};
use lifeboat_lvm::{Access, Error, Lvm};
use lifeboat_node::Disks;
use lifeboat_node::provision::words::device_class;
use lifeboat_replicate::jobs::Jobs;
use lifeboat_stream::{Completed, Destination, Destinations, Event, Key, Place, Policy, Timing};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{OwnedMutexGuard, mpsc};

/// What the mirror of a node is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node; only volumes on it are read and written.
    pub node: String,
    /// The name by which replication classes, maintenance modes and fences call the driver.
    pub driver: String,
    /// Where mirrors of the peer cluster are listened for.
    pub listen: SocketAddr,
    /// Where they reach that; a port of 0 stands for the one that is listened on.
    pub advertise: SocketAddr,
    /// A folder of its own: what was sent last, and how far receptions are.
    pub state: PathBuf,
    /// Volumes sent at once.
    pub jobs_at_once: usize,
    /// Bytes on the wire in a second for each, at most.
    pub bytes_per_second: Option<u64>,
    /// How long a link may be silent.
    pub timing: Timing,
    /// After this many bytes the receiver makes safe what it has, so that a cut link costs no more than this.
    pub checkpoint: u64,
}

impl Config {
    /// The usual choices for a node that is reached at an address.
    #[must_use]
    pub fn new(
        node: &str,
        driver: &str,
        listen: SocketAddr,
        advertise: SocketAddr,
        state: impl Into<PathBuf>,
    ) -> Self {
        Self {
            node: node.to_owned(),
            driver: driver.to_owned(),
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

/// What the mirror of a node works with.
#[derive(Clone)]
pub struct Parts {
    /// The node's volumes.
    pub lvm: Arc<dyn Lvm>,
}

/// One hand on each volume at a time: two controllers work with its copies.
#[derive(Clone, Default)]
struct Hands(Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>>);

/// What all parts share for as long as the kinds of the cluster stay the same.
#[derive(Clone)]
pub struct Ground {
    pub(crate) client: kube::Client,
    pub(crate) clock: Clock,
    pub(crate) config: Arc<Config>,
    pub(crate) advertise: SocketAddr,
    pub(crate) kinds: Kinds,
    pub(crate) disks: Disks,
    pub(crate) desk: Desk,
    pub(crate) destinations: Destinations,
    pub(crate) prober: Prober,
    pub(crate) jobs: Jobs<Word, Failure>,
    hands: Hands,
}

impl Ground {
    #[expect(clippy::too_many_arguments, reason = "each is one thing that the parts share")]
    pub(crate) fn new(
        client: kube::Client,
        clock: Clock,
        config: Arc<Config>,
        advertise: SocketAddr,
        kinds: Kinds,
        disks: Disks,
        desk: Desk,
        destinations: Destinations,
        prober: Prober,
        jobs: Jobs<Word, Failure>,
    ) -> Self {
        let hands = Hands::default();
        Self { client, clock, config, advertise, kinds, disks, desk, destinations, prober, jobs, hands }
    }

    /// Takes a volume in hand.
    pub(crate) async fn hold(&self, uid: &str) -> OwnedMutexGuard<()> {
        let hand = self.hands.0.lock().entry(uid.to_owned()).or_default().clone();
        hand.lock_owned().await
    }

    pub(crate) fn copies(&self, logical: &LogicalVolume) -> Seen {
        look(&self.disks, device_class(logical), logical.uid())
    }

    /// The copies of a volume, where they can be seen.
    pub(crate) fn seen(&self, logical: &LogicalVolume) -> Result<Copies, EffectError> {
        match self.copies(logical) {
            Seen::Listed(copies) => Ok(*copies),
            _ => Err(stale("the copies of the volume are not known any more")),
        }
    }

    pub(crate) async fn rename(
        &self,
        logical: &LogicalVolume,
        from: Kind,
        to: Kind,
    ) -> Result<(), EffectError> {
        let (class, uid) = (device_class(logical), logical.uid());
        let work = self.disks.lvm().rename(class, &from.name(uid), &to.name(uid)).await;
        self.disks
            .change(class, &format!("making the {from:?} copy of {uid} the {to:?} one"), async { work })
            .await
    }

    pub(crate) async fn retag(
        &self,
        logical: &LogicalVolume,
        kind: Kind,
        add: BTreeSet<String>,
        remove: BTreeSet<String>,
    ) -> Result<(), EffectError> {
        let (class, name) = (device_class(logical), kind.name(logical.uid()));
        let remove = remove.difference(&add).cloned().collect();
        let work = self.disks.lvm().retag(class, &name, &add, &remove);
        self.disks.change(class, &format!("noting on {name} what it is"), work).await
    }

    pub(crate) async fn remove(&self, logical: &LogicalVolume, kinds: &[Kind]) -> Result<(), EffectError> {
        let (class, uid) = (device_class(logical), logical.uid());
        let work = async {
            for kind in kinds {
                match self.disks.lvm().remove(class, &kind.name(uid)).await {
                    Ok(()) | Err(Error::NoVolume { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        self.disks.change(class, &format!("removing copies of {uid}: {kinds:?}"), work).await
    }

    /// Stops expecting bytes for a volume. When it returns, nothing writes to its copy any more.
    pub(crate) async fn close(&self, uid: &str) {
        self.destinations.remove(uid).await;
        self.desk.note(uid, |memory| memory.expected = None);
    }

    /// Whether a volume is being made primary here.
    pub(crate) fn is_promoting(&self, uid: &str) -> bool {
        self.desk.of(uid).promoting && self.kinds.is_wanted(uid)
    }

    /// Where the stream keeps how far the reception of a volume is.
    pub(crate) fn reception(&self, uid: &str) -> PathBuf {
        self.config.state.join("receive").join(uid)
    }

    /// Where the memory of what was sent to a peer's volume is kept.
    pub(crate) fn index(&self, uid: &str, peer: &str) -> Result<PathBuf, EffectError> {
        let folder = self.config.state.join("send").join(uid);
        std::fs::create_dir_all(&folder).map_err(|error| {
            EffectError::caused(Class::Transient, format!("making {}", folder.display()), error)
        })?;
        Ok(folder.join(peer))
    }

    /// The LogicalVolume of a key.
    pub(crate) fn logical(&self, key: &ObjectKey) -> Result<Arc<LogicalVolume>, EffectError> {
        self.kinds.logical.get(key).ok_or_else(|| stale(format!("LogicalVolume {key} is gone")))
    }
}

/// What the stream applies to, or reads from: whole devices, whatever is on them, and directories file by file.
pub(crate) fn place(access: &Access) -> Place {
    match access {
        Access::Directory(path) => Place::Tree(path.clone()),
        Access::Device(device) => Place::Device(real(device)),
    }
}

/// LVM's names are links to the devices, and the stream follows none.
pub(crate) fn real(device: &Path) -> PathBuf {
    std::fs::canonicalize(device).unwrap_or_else(|_| device.to_owned())
}

/// Finds out whether a copy is whole, as the stream's own memory says, without letting anybody send to it.
#[derive(Clone)]
pub(crate) struct Prober {
    destinations: Destinations,
    told: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Event>>>,
}

/// Nobody listens behind it, so it opens nothing.
const NO_KEY: &str = "probe:00000000000000000000000000000000";

impl Prober {
    pub(crate) fn new(destinations: Destinations, told: mpsc::UnboundedReceiver<Event>) -> Self {
        Self { destinations, told: Arc::new(tokio::sync::Mutex::new(told)) }
    }

    /// What a copy holds, if it is whole.
    pub(crate) async fn probe(
        &self,
        uid: &str,
        incarnation: &str,
        place: Place,
        state: PathBuf,
    ) -> Result<Option<Completed>, lifeboat_stream::Error> {
        let mut told = self.told.lock().await;
        while told.try_recv().is_ok() {}
        self.destinations.register(Destination {
            id: uid.to_owned(),
            key: Key::parse(NO_KEY)?,
            epoch: 0,
            place,
            base: None,
            incarnation: incarnation.to_owned(),
            state,
            policy: Policy::default(),
            checkpoint: lifeboat_stream::CHECKPOINT,
            terms: lifeboat_stream::Terms::default(),
        })?;
        self.destinations.remove(uid).await;
        Ok(match told.try_recv() {
            Ok(Event::Completed(done)) => Some(done),
            _ => None,
        })
    }
}
