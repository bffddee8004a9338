//! A process that dies: before or after one of its changes of the disks and writes to the API server.

use crate::watch::Watch;
use lifeboat_apiserver::fault::{Asked, Faults, RequestFault};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// On which side of an effect a process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// It has not happened.
    Before,
    /// It has, and nobody hears of it.
    After,
}

/// Counts what a process does to its disks and writes to the API server, and says when it dies.
#[derive(Clone, Default)]
pub struct Fate {
    done: Arc<Mutex<Vec<String>>>,
    /// The process dies at the effect of this number.
    dies_at: Option<(usize, Moment)>,
    dead: Arc<AtomicBool>,
    pub died: Arc<tokio::sync::Notify>,
    /// Who looks at the disks.
    watch: Arc<Watch>,
}

impl Fate {
    pub fn dying_at(effect: usize, moment: Moment) -> Self {
        Self { dies_at: Some((effect, moment)), ..Self::default() }
    }

    /// The same, seen by one who looks at the disks.
    pub fn watched(mut self, watch: Arc<Watch>) -> Self {
        self.watch = watch;
        self
    }

    pub fn done(&self) -> Vec<String> {
        self.done.lock().clone()
    }

    /// Counts an effect.
    fn begins(&self, what: String) -> usize {
        let mut all = self.done.lock();
        all.push(what);
        all.len()
    }

    /// Whether the process dies of an effect here.
    fn dies(&self, number: usize, moment: Moment) -> bool {
        let dies = self.dies_at.is_some_and(|(last, when)| number >= last && when == moment);
        if dies && !self.dead.swap(true, Ordering::SeqCst) {
            self.died.notify_one();
        }
        dies
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }
}

impl Faults for Fate {
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        if self.is_dead() {
            return RequestFault::DropRequest;
        }
        if !asked.verb.is_write() || asked.path.resource == "events" {
            return RequestFault::None;
        }
        self.watch.look();
        let what = format!("{} {}/{}", asked.verb.as_str(), asked.path.resource, asked.path.name);
        let number = self.begins(what);
        if self.dies(number, Moment::Before) {
            RequestFault::DropRequest
        } else if self.dies(number, Moment::After) {
            RequestFault::DropAnswer
        } else {
            RequestFault::None
        }
    }
}

impl lifeboat_mortal::Fate for Fate {
    async fn change<T: Send>(&self, verb: &str, name: &str, work: impl Future<Output = T> + Send) -> T {
        // Whoever has died does not go on.
        if self.is_dead() {
            return std::future::pending().await;
        }
        let number = self.begins(format!("{verb} {name}"));
        if self.dies(number, Moment::Before) {
            return std::future::pending().await;
        }
        let done = work.await;
        self.watch.look();
        if self.dies(number, Moment::After) { std::future::pending().await } else { done }
    }
}
