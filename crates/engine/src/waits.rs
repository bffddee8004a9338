//! Who waits for what, and since when: the answer to "why does nothing happen?".

use crate::metrics::Metrics;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One key that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Which controller.
    pub controller: String,
    /// Which of its keys.
    pub key: String,
    /// What for, in one word.
    pub reason: String,
    /// What for, as a sentence.
    pub sentence: String,
    /// Since when, for this reason.
    pub since: Timestamp,
    /// When it will look again by itself.
    pub until: Option<Timestamp>,
}

/// All waits of an engine; clones see the same.
#[derive(Clone, Default)]
pub struct Waits {
    waits: Arc<Mutex<BTreeMap<(String, String), Waiting>>>,
    metrics: Metrics,
}

impl Waits {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self { waits: Arc::default(), metrics }
    }

    /// Everything that waits, by controller and key.
    pub fn list(&self) -> Vec<Waiting> {
        self.waits.lock().values().cloned().collect()
    }

    /// What a key of a controller waits for.
    pub fn of(&self, controller: &str, key: &str) -> Option<Waiting> {
        self.waits.lock().get(&(controller.to_owned(), key.to_owned())).cloned()
    }

    /// A key waits. Says whether it did not already wait for the same reason.
    pub(crate) fn begin(&self, mut waiting: Waiting) -> bool {
        let place = (waiting.controller.clone(), waiting.key.clone());
        let mut waits = self.waits.lock();
        let before = waits.get(&place);
        let same = before.is_some_and(|before| before.reason == waiting.reason);
        match before {
            Some(before) if same => waiting.since = before.since,
            Some(before) => self.metrics.waits(&before.controller, &before.reason, -1),
            None => {}
        }
        if !same {
            self.metrics.waits(&waiting.controller, &waiting.reason, 1);
        }
        waits.insert(place, waiting);
        !same
    }

    pub(crate) fn end(&self, controller: &str, key: &str) {
        let ended = self.waits.lock().remove(&(controller.to_owned(), key.to_owned()));
        if let Some(ended) = ended {
            self.metrics.waits(&ended.controller, &ended.reason, -1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_from_its_beginning_until_its_reason_changes() {
        let waits = Waits::default();
        let begin = |reason: &str, second: i64| {
            waits.begin(Waiting {
                controller: "c".into(),
                key: "k".into(),
                reason: reason.into(),
                sentence: "s".into(),
                since: Timestamp::from_second(second).unwrap(),
                until: None,
            })
        };
        let since = || waits.of("c", "k").map(|waiting| waiting.since.as_second());
        assert!(begin("A", 1));
        assert!(!begin("A", 2));
        assert_eq!(since(), Some(1));
        assert!(begin("B", 3));
        assert_eq!(since(), Some(3));
        waits.end("c", "k");
        assert_eq!(since(), None);
    }
}
