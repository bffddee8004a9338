//! What containers run on, as a trait: processes with their ends, and signals. Rules see [`Process`]es as they see objects; who starts them
//! for real is [`LocalMachine`](crate::LocalMachine), and a test may have another.

use async_trait::async_trait;
use jiff::Timestamp;
use lifeboat_engine::ObjectKey;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tokio::sync::watch;

/// One container of one life of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ProcessId {
    /// Uid of the pod.
    pub pod: String,
    /// Name of the container.
    pub container: String,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct End {
    /// When it was seen to have ended.
    pub at: Timestamp,
    /// Its exit code; 128 and the signal for one that a signal ended, as shells have it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// How a process is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum State {
    /// It runs.
    Running {
        /// What it was told last.
        told: Option<Signal>,
    },
    /// It has ended.
    Ended(End),
}

/// The newest process of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Which container of which pod.
    pub id: ProcessId,
    /// Its number on the machine.
    pub pid: u32,
    /// When it was started.
    pub began: Timestamp,
    /// How often the container had been started before.
    pub restarts: i32,
    /// How many starts in a row ended soon.
    pub in_a_row: u32,
    /// How it is.
    pub state: State,
    /// How the one before it ended.
    pub before: Option<End>,
    /// Handles of the volumes it was given.
    pub volumes: BTreeSet<String>,
}

impl Process {
    /// Whether it runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }
}

/// A folder that a process finds under a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mounted {
    /// The pod's name for the volume.
    pub volume: String,
    /// Where the container wants it.
    pub path: String,
    /// A folder below the volume's own that is shown in its place.
    pub below: Option<String>,
    /// The folder; `None` for one that lives with the pod, which the machine makes.
    pub folder: Option<PathBuf>,
    /// The volume's handle, where it has one.
    pub handle: Option<String>,
}

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Run {
    /// Which container of which pod.
    pub id: ProcessId,
    /// Namespace and name of the pod, for logs and look-ups.
    #[serde(skip)]
    pub key: ObjectKey,
    /// How often the container had been started before.
    pub restarts: i32,
    /// How many starts in a row ended soon.
    pub in_a_row: u32,
    /// Program and arguments; `$(NAME)` stands for a variable.
    pub argv: Vec<String>,
    /// Variables, in the order in which later ones may refer to earlier ones.
    pub env: Vec<(String, String)>,
    /// Folders that it finds under its own folder.
    pub mounts: Vec<Mounted>,
}

/// What a process is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Signal {
    /// End in order.
    Terminate,
    /// End at once.
    Kill,
}

/// What a machine cannot do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// The program is not on the list.
    #[error(
        "{0:?} is not among the programs that pods may run here; add it to the runner's list, or run another"
    )]
    NotAllowed(String),
    /// It was tried and failed.
    #[error("{tried}: {why}")]
    Failed {
        /// What was tried.
        tried: String,
        /// What came of it.
        why: String,
    },
}

/// Where processes run.
#[async_trait]
pub trait Machine: Send + Sync + 'static {
    /// The newest processes of all lives of a pod, alive or not, until they are cleared.
    fn of(&self, pod: &ObjectKey) -> Vec<Process>;

    /// The pods that it has processes of.
    fn pods(&self) -> BTreeSet<ObjectKey>;

    /// Living processes that have a volume, by pod.
    fn users(&self) -> BTreeMap<String, BTreeSet<(ObjectKey, String)>>;

    /// Names of the programs that may be run.
    fn programs(&self) -> BTreeSet<String>;

    /// Starts a process, unless it runs already.
    async fn start(&self, run: Run) -> Result<(), MachineError>;

    /// Tells a process something; one that has ended hears nothing.
    async fn signal(&self, id: &ProcessId, signal: Signal) -> Result<(), MachineError>;

    /// Forgets the ended processes of a pod's life and removes what it had for itself.
    async fn clear(&self, pod: &str) -> Result<(), MachineError>;

    /// Changes whenever a process ends.
    fn changes(&self) -> watch::Receiver<u64>;
}
