//! Copies under way in this process. They outlive the pass that began them; a decision sees how far they are, and what came of them.

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use lifeboat_engine::Clock;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

/// How far a job is.
#[derive(Debug, Clone, PartialEq)]
pub struct View<L, T, E> {
    /// What it is about.
    pub of: L,
    /// What came of it and when, once it has ended.
    pub outcome: Option<(Timestamp, Result<T, E>)>,
    /// How often it has failed in a row.
    pub failures: u32,
}

struct Job<L, T, E> {
    view: View<L, T, E>,
    /// Told apart from an earlier job of the same object, whose end may still be on its way.
    number: u64,
    stop: Option<oneshot::Sender<()>>,
}

type ByKey<L, T, E> = BTreeMap<String, Job<L, T, E>>;

struct Work<T, E> {
    key: String,
    number: u64,
    work: BoxFuture<'static, Result<T, E>>,
    stopped: oneshot::Receiver<()>,
    ended: oneshot::Sender<()>,
}

/// The jobs of this process by the UID of their object; clones are the same.
pub struct Jobs<L, T, E> {
    jobs: Arc<Mutex<ByKey<L, T, E>>>,
    ends: Arc<Mutex<BTreeMap<String, oneshot::Receiver<()>>>>,
    next: Arc<AtomicU64>,
    at_once: usize,
    begin: mpsc::UnboundedSender<Work<T, E>>,
}

impl<L, T, E> Clone for Jobs<L, T, E> {
    fn clone(&self) -> Self {
        let (jobs, ends) = (self.jobs.clone(), self.ends.clone());
        Self { jobs, ends, next: self.next.clone(), at_once: self.at_once, begin: self.begin.clone() }
    }
}

/// Carries the jobs out; its owner runs it beside the engine.
pub struct Worker<L, T, E> {
    jobs: Jobs<L, T, E>,
    begun: mpsc::UnboundedReceiver<Work<T, E>>,
    clock: Clock,
}

impl<L: Clone, T: Clone + Send, E: Clone + Send> Jobs<L, T, E> {
    /// No jobs yet; at most so many at once.
    #[must_use]
    pub fn new(at_once: usize, clock: Clock) -> (Self, Worker<L, T, E>) {
        let (begin, begun) = mpsc::unbounded_channel();
        let jobs = Self { jobs: Arc::default(), ends: Arc::default(), next: Arc::default(), at_once, begin };
        (jobs.clone(), Worker { jobs, begun, clock })
    }

    /// Begins a job, unless this object has one under way.
    pub fn start(&self, key: &str, of: L, work: BoxFuture<'static, Result<T, E>>) {
        let mut jobs = self.jobs.lock();
        if jobs.get(key).is_some_and(|job| job.view.outcome.is_none()) {
            return;
        }
        let failures = jobs.get(key).map_or(0, |job| job.view.failures);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (stop, stopped) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        let view = View { of, outcome: None, failures };
        jobs.insert(key.to_owned(), Job { view, number, stop: Some(stop) });
        self.ends.lock().insert(key.to_owned(), end);
        // Without a worker nothing runs, and nothing would wait for it either.
        let _ = self.begin.send(Work { key: key.to_owned(), number, work, stopped, ended });
    }

    /// How far the job of an object is.
    #[must_use]
    pub fn of(&self, key: &str) -> Option<View<L, T, E>> {
        self.jobs.lock().get(key).map(|job| job.view.clone())
    }

    /// Whether another one may begin.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.jobs.lock().values().filter(|job| job.view.outcome.is_none()).count() < self.at_once
    }

    /// Objects with a job that are not there any more.
    #[must_use]
    pub fn strays(&self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        self.jobs.lock().keys().filter(|key| !is_there(key)).cloned().collect()
    }

    /// Stops the job of an object, if it has one, and forgets it. When this returns, nothing of it runs any more.
    pub async fn end(&self, key: &str) {
        let stop = self.jobs.lock().remove(key).and_then(|job| job.stop);
        let end = self.ends.lock().remove(key);
        if let Some(stop) = stop {
            // It may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(end) = end {
            let _ = end.await;
        }
    }
}

impl<L: Clone, T: Clone + Send, E: Clone + Send> Worker<L, T, E> {
    /// Runs jobs for ever, and tells the object of each that ends. One that was stopped has an end too: somebody may wait for its place.
    pub async fn run(mut self, mut tell: impl FnMut(&str)) {
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(Work { key, number, work, stopped, ended }) = self.begun.recv() => running.push(async move {
                    let outcome = tokio::select! {
                        biased;
                        // A sender that was dropped is a job that was replaced or forgotten.
                        _ = stopped => None,
                        outcome = work => Some(outcome),
                    };
                    drop(ended);
                    (key, number, outcome)
                }),
                Some((key, number, outcome)) = running.next(), if !running.is_empty() => {
                    if let Some(outcome) = outcome
                        && let Some(job) = self.jobs.jobs.lock().get_mut(&key).filter(|job| job.number == number)
                    {
                        job.view.failures = if outcome.is_ok() { 0 } else { job.view.failures + 1 };
                        job.view.outcome = Some((self.clock.now(), outcome));
                    }
                    tell(&key);
                }
                else => std::future::pending::<()>().await,
            }
        }
    }
}
