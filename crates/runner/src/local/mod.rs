//! This machine as a [`Machine`]: child processes with a folder, a log and an empty environment of their own. No shell, no image; programs
//! come from a list. `farm` lays out the folder, `hold` keeps writers still while a snapshot is taken, `leftovers` ends what an
//! earlier runner left.

mod farm;
mod hold;
mod leftovers;

use crate::machine::{End, Machine, MachineError, Process, ProcessId, Run, Signal, State};
use async_trait::async_trait;
use farm::Farm;
use lifeboat_engine::{Clock, ObjectKey};
use parking_lot::Mutex;
use rustix::process::{Pid, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// Variable that marks every process of a runner, and all that it starts in turn: the runner's folder.
const MARK: &str = "LIFEBOAT_RUNNER";

/// What processes are started with.
#[derive(Debug, Clone)]
pub struct LocalSetup {
    /// Where pods have their folders; one runner for each.
    pub folder: PathBuf,
    /// Where what processes write is kept.
    pub logs: PathBuf,
    /// Programs that may be run, by the name that pods use.
    pub programs: BTreeMap<String, PathBuf>,
}

impl LocalSetup {
    /// Folders below `home`, and this very program, which pods call `lifeboat`.
    ///
    /// # Errors
    /// When this program cannot be found.
    pub fn below(home: &Path) -> std::io::Result<Self> {
        // Not by its path: the file there may be another version by the time that a pod starts.
        let itself = PathBuf::from("/proc/self/exe");
        std::fs::metadata(&itself)?;
        Ok(Self {
            folder: home.join("pods"),
            logs: home.join("logs"),
            programs: [("lifeboat".to_owned(), itself)].into(),
        })
    }
}

struct Entry {
    key: ObjectKey,
    process: Process,
    /// Open as long as the runner lives: a process that reads it sees its end when the runner is gone.
    stdin: Option<ChildStdin>,
}

struct Shared {
    entries: Mutex<BTreeMap<ProcessId, Entry>>,
    changes: watch::Sender<u64>,
    clock: Clock,
}

/// Child processes of this one. Dropping it kills them.
pub struct LocalMachine {
    setup: LocalSetup,
    farm: Farm,
    mark: String,
    shared: Arc<Shared>,
}

impl LocalMachine {
    /// Takes the folder over: processes that an earlier runner left in it are killed first, for nobody knows any more what they are
    /// for, and two must not write to one volume.
    ///
    /// # Errors
    /// When a folder cannot be made, or a leftover does not end.
    pub fn open(setup: LocalSetup, clock: Clock) -> std::io::Result<Self> {
        std::fs::create_dir_all(&setup.folder)?;
        std::fs::create_dir_all(&setup.logs)?;
        let folder = setup.folder.canonicalize()?;
        let mark = folder.display().to_string();
        leftovers::kill(MARK, &mark)?;
        let shared = Shared { entries: Mutex::default(), changes: watch::Sender::new(0), clock };
        Ok(Self { farm: Farm::in_folder(folder), setup, mark, shared: Arc::new(shared) })
    }

    /// The file that has what a pod's container wrote.
    #[must_use]
    pub fn log(&self, pod: &ObjectKey, container: &str) -> PathBuf {
        self.setup.logs.join(format!("{}_{}_{container}.log", pod.namespace, pod.name))
    }

    /// Kills everything at once, as a machine that loses its power does.
    pub fn kill_all(&self) {
        let entries = self.shared.entries.lock();
        for entry in entries.values().filter(|entry| entry.process.is_alive()) {
            tell(entry.process.pid, rustix::process::Signal::KILL);
        }
    }

    fn command(&self, run: &Run) -> Result<Command, MachineError> {
        let program = run.argv.first().cloned().unwrap_or_default();
        let path = self.setup.programs.get(&program).ok_or(MachineError::NotAllowed(program))?;
        let failed = |tried: &str, error: &std::io::Error| MachineError::Failed {
            tried: format!("{tried} for container {} of pod {}", run.id.container, run.key),
            why: error.to_string(),
        };
        let laid = self.farm.lay(run).map_err(|error| failed("making the folder", &error))?;
        let log = self.log(&run.key, &run.id.container);
        let log = OpenOptions::new().create(true).append(true).open(log);
        let log = log.map_err(|error| failed("opening the log", &error))?;
        let errors = log.try_clone().map_err(|error| failed("opening the log", &error))?;
        #[expect(clippy::disallowed_methods, reason = "this is the room that starts processes")]
        let mut command = Command::new(path);
        command
            .arg0(&run.argv[0])
            .args(&laid.args)
            .env_clear()
            .envs(&laid.env)
            .env(MARK, &self.mark)
            .current_dir(&laid.root)
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors)
            // A group of its own, so that Ctrl-C in the runner's terminal is the runner's business.
            .process_group(0);
        Ok(command)
    }
}

impl Drop for LocalMachine {
    fn drop(&mut self) {
        self.kill_all();
    }
}

/// One that is gone already needs nothing to be told.
fn tell(pid: u32, signal: rustix::process::Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, signal);
    }
}

/// Waits for the end on a thread of its own. The process stays a zombie until the table knows, so that its number is nobody else's when
/// somebody signals it.
fn follow(shared: &Arc<Shared>, id: ProcessId, mut child: Child, alive: Arc<AtomicBool>) {
    let shared = shared.clone();
    let wait = move || {
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        }
        alive.store(false, Ordering::Relaxed);
        let mut entries = shared.entries.lock();
        // What it had started goes with it.
        tell(child.id(), rustix::process::Signal::KILL);
        let status = child.wait();
        let (code, signal) = match &status {
            Ok(status) => {
                let signal = status.signal();
                (status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(255), signal)
            }
            Err(_) => (255, None),
        };
        if let Some(entry) = entries.get_mut(&id) {
            entry.process.state = State::Ended(End { at: shared.clock.now(), code, signal });
            entry.stdin = None;
        }
        drop(entries);
        shared.changes.send_modify(|change| *change += 1);
    };
    #[expect(clippy::disallowed_methods, reason = "waiting for a child blocks, and it may run for days")]
    std::thread::spawn(wait);
}

#[async_trait]
impl Machine for LocalMachine {
    fn of(&self, pod: &ObjectKey) -> Vec<Process> {
        let entries = self.shared.entries.lock();
        entries.values().filter(|entry| entry.key == *pod).map(|entry| entry.process.clone()).collect()
    }

    fn pods(&self) -> BTreeSet<ObjectKey> {
        self.shared.entries.lock().values().map(|entry| entry.key.clone()).collect()
    }

    fn users(&self) -> BTreeMap<String, BTreeSet<(ObjectKey, String)>> {
        let mut users: BTreeMap<String, BTreeSet<(ObjectKey, String)>> = BTreeMap::new();
        for entry in self.shared.entries.lock().values().filter(|entry| entry.process.is_alive()) {
            for volume in &entry.process.volumes {
                let user = (entry.key.clone(), entry.process.id.pod.clone());
                users.entry(volume.clone()).or_default().insert(user);
            }
        }
        users
    }

    fn programs(&self) -> BTreeSet<String> {
        self.setup.programs.keys().cloned().collect()
    }

    async fn start(&self, run: Run) -> Result<(), MachineError> {
        let mut entries = self.shared.entries.lock();
        let known = entries.get(&run.id).map(|entry| &entry.process);
        if known.is_some_and(Process::is_alive) {
            return Ok(());
        }
        let before = known.and_then(|process| match &process.state {
            State::Ended(end) => Some(end.clone()),
            State::Running { .. } => None,
        });
        let mut command = self.command(&run)?;
        let failed = |tried: &str, error: std::io::Error| MachineError::Failed {
            tried: format!("{tried} container {} of pod {}", run.id.container, run.key),
            why: error.to_string(),
        };
        let folders: Vec<PathBuf> = run.mounts.iter().filter_map(|mount| mount.folder.clone()).collect();
        // From before its first write on, a snapshot waits for it.
        let held = hold::pass(&folders).map_err(|error| failed("holding the volumes of", error))?;
        let mut child = command.spawn().map_err(|error| failed("starting", error))?;
        let alive = Arc::new(AtomicBool::new(true));
        hold::guard(held, child.id(), &alive);
        let process = Process {
            id: run.id.clone(),
            pid: child.id(),
            began: self.shared.clock.now(),
            restarts: run.restarts,
            in_a_row: run.in_a_row,
            state: State::Running { told: None },
            before,
            volumes: run.mounts.iter().filter_map(|mount| mount.handle.clone()).collect(),
        };
        let stdin = child.stdin.take();
        entries.insert(run.id.clone(), Entry { key: run.key.clone(), process, stdin });
        drop(entries);
        follow(&self.shared, run.id, child, alive);
        Ok(())
    }

    async fn signal(&self, id: &ProcessId, signal: Signal) -> Result<(), MachineError> {
        let mut entries = self.shared.entries.lock();
        let Some(entry) = entries.get_mut(id) else { return Ok(()) };
        if let State::Running { told } = &mut entry.process.state {
            *told = Some(signal);
            let number = match signal {
                Signal::Terminate => rustix::process::Signal::TERM,
                Signal::Kill => rustix::process::Signal::KILL,
            };
            tell(entry.process.pid, number);
        }
        Ok(())
    }

    async fn clear(&self, pod: &str) -> Result<(), MachineError> {
        self.shared.entries.lock().retain(|id, entry| id.pod != pod || entry.process.is_alive());
        self.farm.clear(pod).map_err(|error| MachineError::Failed {
            tried: format!("removing the folder of pod {pod}"),
            why: error.to_string(),
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }
}
