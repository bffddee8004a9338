//! What is agreed inside this process and not yet on the server: bytes that are just being promised on a node, and why a claim failed
//! last. All of it can be lost at any time: promises are in the LogicalVolumes a moment later, and failures happen again.

use jiff::{SignedDuration, Timestamp};
use lifeboat_engine::ObjectKey;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The pause after a first failure, doubled with each, and the longest.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// Why the last LogicalVolume of a claim could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// gRPC code.
    pub code: i32,
    /// What was said.
    pub message: String,
    /// Where.
    pub node: String,
    /// When to try again.
    pub until: Timestamp,
    /// How many times in a row.
    pub times: u32,
}

#[derive(Default)]
struct Papers {
    /// By LogicalVolume: node, device class and bytes.
    held: BTreeMap<String, (String, String, u64)>,
    failures: BTreeMap<ObjectKey, Failure>,
}

/// The desk that the controllers of provisioning share.
#[derive(Clone, Default)]
pub struct Desk(Arc<Mutex<Papers>>);

/// Bytes that count as promised as long as this lives.
pub struct Hold {
    desk: Desk,
    volume: String,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.desk.0.lock().held.remove(&self.volume);
    }
}

impl Desk {
    /// Promises bytes, if `fits` says of what others have just been promised on this node that it does.
    pub fn promise(
        &self,
        volume: &str,
        (node, class): (&str, &str),
        bytes: u64,
        fits: impl FnOnce(Vec<(String, u64)>) -> bool,
    ) -> Option<Hold> {
        let mut papers = self.0.lock();
        if !fits(held(&papers, node, volume)) {
            return None;
        }
        papers.held.insert(volume.to_owned(), (node.to_owned(), class.to_owned(), bytes));
        Some(Hold { desk: self.clone(), volume: volume.to_owned() })
    }

    /// What is just being promised on a node: device class and bytes.
    pub fn held(&self, node: &str) -> Vec<(String, u64)> {
        held(&self.0.lock(), node, "")
    }

    /// Remembers a failure of a claim.
    pub fn fail(&self, claim: &ObjectKey, code: i32, message: &str, node: &str, now: Timestamp) {
        let mut papers = self.0.lock();
        let times = papers.failures.get(claim).map_or(0, |failure| failure.times);
        let pause = (0..times.min(16)).fold(FIRST_PAUSE, |pause, _| (pause * 2).min(LONGEST_PAUSE));
        let failure = Failure {
            code,
            message: message.to_owned(),
            node: node.to_owned(),
            until: now + pause,
            times: times.saturating_add(1),
        };
        papers.failures.insert(claim.clone(), failure);
    }

    /// The last failure of a claim.
    pub fn failure(&self, claim: &ObjectKey) -> Option<Failure> {
        self.0.lock().failures.get(claim).cloned()
    }

    /// Forgets the failures of a claim.
    pub fn forget(&self, claim: &ObjectKey) {
        self.0.lock().failures.remove(claim);
    }
}

fn held(papers: &Papers, node: &str, but: &str) -> Vec<(String, u64)> {
    let here = papers.held.iter().filter(|(volume, (at, ..))| at == node && *volume != but);
    here.map(|(_, (_, class, bytes))| (class.clone(), *bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_counts_for_others_until_it_is_dropped() {
        let desk = Desk::default();
        let first = desk.promise("a", ("n", "ssd"), 5, |held| held.is_empty()).unwrap();
        assert!(desk.promise("b", ("n", "ssd"), 5, |held| held.is_empty()).is_none());
        assert_eq!(desk.held("n"), [("ssd".to_owned(), 5)]);
        assert!(desk.promise("b", ("m", "ssd"), 5, |held| held.is_empty()).is_some());
        drop(first);
        assert!(desk.held("n").is_empty());
    }

    #[test]
    fn failures_pause_longer_and_longer() {
        let (desk, key) = (Desk::default(), ObjectKey::new("ns", "c"));
        let now = Timestamp::UNIX_EPOCH;
        let mut pauses = Vec::new();
        for _ in 0..7 {
            desk.fail(&key, 8, "no", "n", now);
            pauses.push(desk.failure(&key).unwrap().until.duration_since(now).as_secs());
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 300, 300]);
        desk.forget(&key);
        assert_eq!(desk.failure(&key), None);
    }
}
