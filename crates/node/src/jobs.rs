//! Backups and restores under way in this process. They outlive the pass that began them; a decision sees how far they are, and
//! what came of them.

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use lifeboat_api::topolvm::SnapshotOperation;
use lifeboat_engine::Clock;
use lifeboat_mover::{Error, Progress, Snapshot};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// How far a job is.
#[derive(Debug, Clone, PartialEq)]
pub struct JobView {
    /// What it does.
    pub operation: SnapshotOperation,
    /// How far it is.
    pub progress: Progress,
    /// What came of it and when, once it has ended.
    pub outcome: Option<(Timestamp, Result<Moved, Error>)>,
}

/// What a job has done.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// The snapshot in the repository.
    pub snapshot: Snapshot,
    /// Where the repository is, without secrets.
    pub repository: String,
}

struct Job {
    operation: SnapshotOperation,
    progress: watch::Receiver<Progress>,
    outcome: Option<(Timestamp, Result<Moved, Error>)>,
    stop: Option<oneshot::Sender<()>>,
}

type Work = (String, BoxFuture<'static, Result<Moved, Error>>, oneshot::Receiver<()>);

/// The jobs of this process by the UID of their volume.
#[derive(Clone)]
pub struct Jobs {
    jobs: Arc<Mutex<BTreeMap<String, Job>>>,
    at_once: usize,
    begin: mpsc::UnboundedSender<Work>,
}

/// Carries the jobs out; its owner runs it beside the engine.
pub struct Worker {
    jobs: Jobs,
    begun: mpsc::UnboundedReceiver<Work>,
    clock: Clock,
}

impl Jobs {
    /// No jobs yet; at most so many at once.
    #[must_use]
    pub fn new(at_once: usize, clock: Clock) -> (Self, Worker) {
        let (begin, begun) = mpsc::unbounded_channel();
        let jobs = Self { jobs: Arc::default(), at_once, begin };
        (jobs.clone(), Worker { jobs, begun, clock })
    }

    /// Begins a job, unless this volume has one.
    pub fn start(
        &self,
        volume: &str,
        operation: SnapshotOperation,
        progress: watch::Receiver<Progress>,
        work: BoxFuture<'static, Result<Moved, Error>>,
    ) {
        let mut jobs = self.jobs.lock();
        if jobs.get(volume).is_some_and(|job| job.outcome.is_none()) {
            return;
        }
        let (stop, stopped) = oneshot::channel();
        jobs.insert(volume.to_owned(), Job { operation, progress, outcome: None, stop: Some(stop) });
        // Without a worker nothing runs, and nothing would wait for it either.
        let _ = self.begin.send((volume.to_owned(), work, stopped));
    }

    /// How far the job of a volume is.
    #[must_use]
    pub fn of(&self, volume: &str) -> Option<JobView> {
        let jobs = self.jobs.lock();
        let job = jobs.get(volume)?;
        let progress = *job.progress.borrow();
        Some(JobView { operation: job.operation.clone(), progress, outcome: job.outcome.clone() })
    }

    /// Whether another one may begin.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.jobs.lock().values().filter(|job| job.outcome.is_none()).count() < self.at_once
    }

    /// Stops the job of a volume, if it has one, and forgets it.
    pub fn drop_job(&self, volume: &str) {
        if let Some(stop) = self.jobs.lock().remove(volume).and_then(|job| job.stop) {
            // It may have ended by itself.
            let _ = stop.send(());
        }
    }
}

impl Worker {
    /// Runs jobs for ever, and tells the volume of each that ends.
    pub async fn run(mut self, mut tell: impl FnMut(&str)) {
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some((volume, work, stopped)) = self.begun.recv() => running.push(async move {
                    tokio::select! {
                        biased;
                        // A sender that was dropped is a job that was replaced or forgotten.
                        _ = stopped => (volume, None),
                        outcome = work => (volume, Some(outcome)),
                    }
                }),
                Some((volume, outcome)) = running.next(), if !running.is_empty() => {
                    if let Some(outcome) = outcome {
                        if let Some(job) = self.jobs.jobs.lock().get_mut(&volume) {
                            job.outcome = Some((self.clock.now(), outcome));
                        }
                        tell(&volume);
                    }
                }
                else => std::future::pending::<()>().await,
            }
        }
    }
}
