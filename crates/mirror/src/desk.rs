//! What this process remembers and no disk needs to: what peers offer, what the stream expects and what it has told. After a restart the
//! disks and the peers say it all again.

use crate::talk::Shared;
use lifeboat_stream::Completed;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::sync::watch;

/// A peer's offer to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The epoch at which it is primary.
    pub epoch: u64,
    /// The key it showed.
    pub key: Shared,
    /// Where it says that it is.
    pub from: SocketAddr,
    /// Where its connection came from.
    pub came_from: IpAddr,
    /// Identities of the replication classes that have its key.
    pub identities: BTreeSet<String>,
    /// Bytes that the volume has over there.
    pub size: u64,
}

/// What the stream expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The copy that it is applied to.
    pub incarnation: String,
    /// Lower epochs are refused.
    pub epoch: u64,
}

/// What is remembered of one volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// A peer's offer to send.
    pub offer: Option<Standing>,
    /// What the stream expects.
    pub expected: Option<Expected>,
    /// A generation that is whole and not yet published.
    pub completed: Option<Completed>,
    /// A copy that nobody can go on with.
    pub spoiled: Option<String>,
    /// The copy of which it is known whether it is whole.
    pub probed: Option<String>,
    /// Whether it is being made primary: nothing that comes now would be in it.
    pub promoting: bool,
}

impl Memory {
    /// Whether bytes at an epoch can be taken now.
    #[must_use]
    pub fn is_ready(&self, epoch: u64) -> bool {
        let Some(expected) = &self.expected else { return false };
        let whole = self.completed.as_ref().is_some_and(|done| done.incarnation == expected.incarnation);
        let spoiled = self.spoiled.as_ref() == Some(&expected.incarnation);
        expected.epoch == epoch && !whole && !spoiled
    }
}

/// What is remembered of all volumes by their UID; clones are the same.
#[derive(Clone)]
pub struct Desk {
    all: Arc<Mutex<BTreeMap<String, Memory>>>,
    changed: watch::Sender<u64>,
}

impl Default for Desk {
    fn default() -> Self {
        Self { all: Arc::default(), changed: watch::Sender::new(0) }
    }
}

impl Desk {
    /// What is remembered of a volume.
    #[must_use]
    pub fn of(&self, uid: &str) -> Memory {
        self.all.lock().get(uid).cloned().unwrap_or_default()
    }

    /// Changes what is remembered.
    pub fn note(&self, uid: &str, change: impl FnOnce(&mut Memory)) {
        change(self.all.lock().entry(uid.to_owned()).or_default());
        self.changed.send_modify(|number| *number += 1);
    }

    /// Forgets a volume.
    pub fn forget(&self, uid: &str) {
        self.all.lock().remove(uid);
        self.changed.send_modify(|number| *number += 1);
    }

    /// Forgets offers, and says of which volumes.
    pub fn withdraw(&self, is_over: impl Fn(&Standing) -> bool) -> Vec<String> {
        let mut gone = Vec::new();
        for (uid, memory) in self.all.lock().iter_mut() {
            if memory.offer.as_ref().is_some_and(&is_over) {
                memory.offer = None;
                gone.push(uid.clone());
            }
        }
        self.changed.send_modify(|number| *number += 1);
        gone
    }

    /// Volumes that bytes are expected for, with who offered them.
    #[must_use]
    pub fn expecting(&self) -> Vec<(String, Option<Standing>)> {
        let all = self.all.lock();
        let expecting = all.iter().filter(|(_, memory)| memory.expected.is_some());
        expecting.map(|(uid, memory)| (uid.clone(), memory.offer.clone())).collect()
    }

    /// Every volume that anything is remembered of.
    #[must_use]
    pub fn known(&self) -> Vec<String> {
        self.all.lock().keys().cloned().collect()
    }

    /// Told after every change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}
