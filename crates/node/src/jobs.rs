//! Copies under way in this process. They outlive the pass that began them; a decision sees how far they are, and what came of them.

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use lifeboat_engine::Clock;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Objects whose job is about to begin. Locked after `jobs`.
    reserved: Arc<Mutex<BTreeSet<String>>>,
    next: Arc<AtomicU64>,
    at_once: usize,
    begin: mpsc::UnboundedSender<Work<T, E>>,
}

impl<L, T, E> Clone for Jobs<L, T, E> {
    fn clone(&self) -> Self {
        Self {
            jobs: self.jobs.clone(),
            ends: self.ends.clone(),
            reserved: self.reserved.clone(),
            next: self.next.clone(),
            at_once: self.at_once,
            begin: self.begin.clone(),
        }
    }
}

/// Carries the jobs out; its owner runs it beside the engine.
pub struct Worker<L, T, E> {
    jobs: Jobs<L, T, E>,
    begun: mpsc::UnboundedReceiver<Work<T, E>>,
    clock: Clock,
}

impl<L: Clone, T: Clone + Send + 'static, E: Clone + Send + 'static> Jobs<L, T, E> {
    /// No jobs yet; at most so many at once.
    #[must_use]
    pub fn new(at_once: usize, clock: Clock) -> (Self, Worker<L, T, E>) {
        let (begin, begun) = mpsc::unbounded_channel();
        let (ends, reserved, next) = (Arc::default(), Arc::default(), Arc::default());
        let jobs = Self { jobs: Arc::default(), ends, reserved, next, at_once, begin };
        (jobs.clone(), Worker { jobs, begun, clock })
    }

    /// Keeps a place for the job of an object, until it begins or is [ended](Self::end); whether there was one. Whoever has a place may write
    /// down that its job runs, and nobody else will.
    pub fn reserve(&self, key: &str) -> bool {
        let jobs = self.jobs.lock();
        let mut reserved = self.reserved.lock();
        let running = jobs.values().filter(|job| job.view.outcome.is_none()).count();
        let free = reserved.contains(key) || running + reserved.len() < self.at_once;
        if free {
            reserved.insert(key.to_owned());
        }
        free
    }

    /// Whether a place is kept for the job of an object.
    #[must_use]
    pub fn is_reserved(&self, key: &str) -> bool {
        self.reserved.lock().contains(key)
    }

    /// Begins a job, unless this object has one under way.
    pub fn start(&self, key: &str, of: L, work: BoxFuture<'static, Result<T, E>>) {
        let mut jobs = self.jobs.lock();
        self.reserved.lock().remove(key);
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
        let jobs = self.jobs.lock();
        let running = jobs.values().filter(|job| job.view.outcome.is_none()).count();
        running + self.reserved.lock().len() < self.at_once
    }

    /// Objects with a job that are not there any more.
    #[must_use]
    pub fn strays(&self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let jobs = self.jobs.lock();
        let reserved = self.reserved.lock();
        jobs.keys().chain(reserved.iter()).filter(|key| !is_there(key)).cloned().collect()
    }

    /// Stops the job of an object, if it has one, and forgets it. When this returns, nothing of it runs any more.
    pub async fn end(&self, key: &str) {
        let stop = self.jobs.lock().remove(key).and_then(|job| job.stop);
        let end = self.ends.lock().remove(key);
        if self.reserved.lock().remove(key) {
            // Nothing has begun, but somebody may wait for the place.
            let (stop, stopped) = oneshot::channel();
            let (ended, _) = oneshot::channel();
            drop(stop);
            let work = Box::pin(std::future::pending());
            let _ = self.begin.send(Work { key: key.to_owned(), number: u64::MAX, work, stopped, ended });
        }
        if let Some(stop) = stop {
            // It may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(end) = end {
            let _ = end.await;
        }
    }
}

impl<L: Clone, T: Clone + Send + 'static, E: Clone + Send + 'static> Worker<L, T, E> {
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

#[cfg(test)]
mod tests {
    use super::*;

    type Plain = Jobs<(), (), ()>;

    fn two() -> (Plain, Worker<(), (), ()>) {
        Jobs::new(2, Clock::from_fn(|| Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn of_many_that_see_a_free_place_only_as_many_get_one_as_there_are() {
        let (jobs, _worker) = two();
        assert!(jobs.has_room());
        let got: Vec<bool> = ["a", "b", "c", "d"].map(|key| jobs.reserve(key)).to_vec();
        assert_eq!(got, [true, true, false, false]);
        assert!(!jobs.has_room() && jobs.reserve("a"), "whoever has a place keeps it");
        jobs.start("a", (), Box::pin(std::future::pending()));
        assert!(!jobs.is_reserved("a") && !jobs.reserve("c"), "it is used now");
    }

    #[tokio::test]
    async fn a_place_that_is_given_back_wakes_those_who_wait() {
        let (jobs, worker) = two();
        jobs.reserve("a");
        jobs.reserve("b");
        jobs.end("a").await;
        assert!(jobs.has_room());
        let (told, mut heard) = mpsc::unbounded_channel();
        let tells = worker.run(|key| drop(told.send(key.to_owned())));
        tokio::select! {
            () = tells => {}
            key = heard.recv() => assert_eq!(key.as_deref(), Some("a")),
        }
        jobs.start("b", (), Box::pin(std::future::ready(Ok(()))));
        assert!(jobs.reserve("c") && !jobs.reserve("d"));
    }
}
