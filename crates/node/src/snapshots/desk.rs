//! What this process has seen in stores of snapshots that were not taken here. It can be lost at any time.

use jiff::Timestamp;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a store has under a handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The handle that was looked for.
    pub handle: String,
    /// When.
    pub at: Timestamp,
    /// Bytes that a volume made from it must have at least, as far as that is known; `None` where nothing was found.
    pub found: Option<u64>,
}

#[derive(Default)]
struct Papers {
    sightings: BTreeMap<String, Sighting>,
    forgotten: BTreeSet<String>,
}

/// What the controller of contents remembers, by content.
#[derive(Clone, Default)]
pub struct Desk(Arc<Mutex<Papers>>);

impl Desk {
    /// Notes what a store has.
    pub fn saw(&self, content: &str, sighting: Sighting) {
        self.0.lock().sightings.insert(content.to_owned(), sighting);
    }

    /// What the store of a content had when it was last looked at.
    pub fn sighting(&self, content: &str) -> Option<Sighting> {
        self.0.lock().sightings.get(content).cloned()
    }

    /// Notes that nothing is left in the store.
    pub fn forgot(&self, content: &str) {
        self.0.lock().forgotten.insert(content.to_owned());
    }

    /// Whether nothing is left in the store.
    pub fn has_forgotten(&self, content: &str) -> bool {
        self.0.lock().forgotten.contains(content)
    }

    /// The content is gone.
    pub fn drop_all(&self, content: &str) {
        let mut papers = self.0.lock();
        papers.sightings.remove(content);
        papers.forgotten.remove(content);
    }
}
