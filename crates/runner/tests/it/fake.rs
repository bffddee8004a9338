//! A computer without processes, for stories of deaths: what runs on it outlives the runner, until the next one takes it over.

use async_trait::async_trait;
use lifeboat_engine::{Clock, ObjectKey};
use lifeboat_runner::{End, Machine, MachineError, Process, ProcessId, Run, Signal, State};
use lifeboat_testbed::{CrashPoints, Kind};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::watch;

/// What outlives the runner.
#[derive(Clone, Default)]
pub struct Computer {
    running: Arc<Mutex<BTreeMap<ProcessId, (ObjectKey, Process)>>>,
    /// How often anything was started.
    pub starts: Arc<Mutex<u32>>,
}

impl Computer {
    /// How many living processes have a volume.
    pub fn writers(&self, volume: &str) -> usize {
        let running = self.running.lock();
        running.values().filter(|(_, process)| process.is_alive() && process.volumes.contains(volume)).count()
    }

    /// How many processes live.
    pub fn alive(&self) -> usize {
        self.running.lock().values().filter(|(_, process)| process.is_alive()).count()
    }
}

/// One life of a runner on the computer.
pub struct FakeMachine {
    pub computer: Computer,
    pub points: CrashPoints,
    pub clock: Clock,
    pub changes: watch::Sender<u64>,
}

impl FakeMachine {
    /// Takes the computer over: what an earlier runner left is killed.
    pub fn open(computer: Computer, points: CrashPoints, clock: Clock) -> Self {
        computer.running.lock().clear();
        Self { computer, points, clock, changes: watch::Sender::new(0) }
    }

    fn effect(&self, what: String, does: impl FnOnce()) -> Result<(), MachineError> {
        let died = |_| MachineError::Failed { tried: "anything".to_owned(), why: "dead".to_owned() };
        self.points.call(Kind::Mover, what, does).map_err(died)
    }
}

#[async_trait]
impl Machine for FakeMachine {
    fn of(&self, pod: &ObjectKey) -> Vec<Process> {
        let running = self.computer.running.lock();
        running.values().filter(|(key, _)| key == pod).map(|(_, process)| process.clone()).collect()
    }

    fn pods(&self) -> BTreeSet<ObjectKey> {
        self.computer.running.lock().values().map(|(key, _)| key.clone()).collect()
    }

    fn users(&self) -> BTreeMap<String, BTreeSet<(ObjectKey, String)>> {
        let mut users: BTreeMap<String, BTreeSet<(ObjectKey, String)>> = BTreeMap::new();
        let running = self.computer.running.lock();
        for (key, process) in running.values().filter(|(_, process)| process.is_alive()) {
            for volume in &process.volumes {
                users.entry(volume.clone()).or_default().insert((key.clone(), process.id.pod.clone()));
            }
        }
        users
    }

    fn programs(&self) -> BTreeSet<String> {
        ["writer".to_owned()].into()
    }

    async fn start(&self, run: Run) -> Result<(), MachineError> {
        let began = self.clock.now();
        self.effect(format!("start {}", run.key), || {
            *self.computer.starts.lock() += 1;
            let process = Process {
                id: run.id.clone(),
                pid: 1,
                began,
                restarts: run.restarts,
                in_a_row: run.in_a_row,
                state: State::Running { told: None },
                before: None,
                volumes: run.mounts.iter().filter_map(|mount| mount.handle.clone()).collect(),
            };
            self.computer.running.lock().insert(run.id, (run.key, process));
        })
    }

    async fn signal(&self, id: &ProcessId, signal: Signal) -> Result<(), MachineError> {
        let at = self.clock.now();
        self.effect(format!("{signal:?} {}", id.container), || {
            if let Some((_, process)) = self.computer.running.lock().get_mut(id) {
                process.state = State::Ended(End { at, code: 143, signal: Some(15) });
            }
            self.changes.send_modify(|change| *change += 1);
        })
    }

    async fn clear(&self, pod: &str) -> Result<(), MachineError> {
        let pod = pod.to_owned();
        self.effect("clear".to_owned(), || self.computer.running.lock().retain(|id, _| id.pod != pod))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
