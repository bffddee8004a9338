//! What this process has learned from stores. It can be lost at any time: then the stores are asked again.

use jiff::Timestamp;
use lifeboat_engine::ObjectKey;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What came of trying a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What was tried: the storage's generation and the Secret's version.
    pub of: String,
    /// When.
    pub at: Timestamp,
    /// What came of it; the sentence carries no secret.
    pub answer: Result<(), String>,
    /// How many times in a row it failed.
    pub failures: u32,
}

#[derive(Default)]
struct Papers {
    verdicts: BTreeMap<ObjectKey, Verdict>,
    forgotten: BTreeSet<String>,
    /// Stores that backups were removed from since their last run.
    owed: BTreeSet<ObjectKey>,
    prunes: BTreeMap<ObjectKey, Verdict>,
}

/// What the controllers of stores share.
#[derive(Clone, Default)]
pub struct Desk(Arc<Mutex<Papers>>);

impl Desk {
    /// Notes what came of trying a store.
    pub fn judge(&self, storage: &ObjectKey, of: String, at: Timestamp, answer: Result<(), String>) {
        let mut papers = self.0.lock();
        let before = papers.verdicts.get(storage).filter(|before| before.of == of);
        let failures = before.map_or(0, |before| before.failures);
        let failures = if answer.is_ok() { 0 } else { failures.saturating_add(1) };
        papers.verdicts.insert(storage.clone(), Verdict { of, at, answer, failures });
    }

    /// What came of trying a store last.
    pub fn verdict(&self, storage: &ObjectKey) -> Option<Verdict> {
        self.0.lock().verdicts.get(storage).cloned()
    }

    /// Forgets a store.
    pub fn drop_verdict(&self, storage: &ObjectKey) {
        let mut papers = self.0.lock();
        papers.verdicts.remove(storage);
        papers.prunes.remove(storage);
        papers.owed.remove(storage);
    }

    /// Notes that a store has data that nothing uses.
    pub fn owe(&self, storage: &ObjectKey) {
        self.0.lock().owed.insert(storage.clone());
    }

    /// Unused data of a store is about to be removed: what is removed from now on is for the next run.
    pub fn begin_prune(&self, storage: &ObjectKey) {
        self.0.lock().owed.remove(storage);
    }

    /// Notes what came of removing unused data.
    pub fn pruned(&self, storage: &ObjectKey, at: Timestamp, answer: Result<(), String>) {
        let mut papers = self.0.lock();
        let before = papers.prunes.get(storage).map_or(0, |before| before.failures);
        let failures = if answer.is_ok() { 0 } else { before.saturating_add(1) };
        papers.prunes.insert(storage.clone(), Verdict { of: String::new(), at, answer, failures });
    }

    /// Whether backups were removed from a store since its last run, and what came of that.
    pub fn prune_of(&self, storage: &ObjectKey) -> (bool, Option<Verdict>) {
        let papers = self.0.lock();
        (papers.owed.contains(storage), papers.prunes.get(storage).cloned())
    }

    /// Notes that the store has nothing of a LogicalVolume any more.
    pub fn forgot(&self, volume: &str) {
        self.0.lock().forgotten.insert(volume.to_owned());
    }

    /// Whether the store has nothing of a LogicalVolume any more.
    pub fn has_forgotten(&self, volume: &str) -> bool {
        self.0.lock().forgotten.contains(volume)
    }

    /// The LogicalVolume is gone too.
    pub fn drop_forgotten(&self, volume: &str) {
        self.0.lock().forgotten.remove(volume);
    }
}
