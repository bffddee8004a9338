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

/// What a key waits for, as it is kept: there can be one for every object of a cluster.
pub(crate) struct Wait {
    pub reason: String,
    pub sentence: String,
    pub since: Timestamp,
    pub until: Option<Timestamp>,
}

impl Wait {
    fn of(&self, controller: &str, key: &str) -> Waiting {
        Waiting {
            controller: controller.to_owned(),
            key: key.to_owned(),
            reason: self.reason.clone(),
            sentence: self.sentence.clone(),
            since: self.since,
            until: self.until,
        }
    }
}

/// All waits of an engine, by controller and key; clones see the same.
#[derive(Clone, Default)]
pub struct Waits {
    waits: Arc<Mutex<BTreeMap<&'static str, BTreeMap<String, Wait>>>>,
    metrics: Metrics,
}

impl Waits {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self { waits: Arc::default(), metrics }
    }

    /// Everything that waits, by controller and key.
    pub fn list(&self) -> Vec<Waiting> {
        let waits = self.waits.lock();
        let all =
            waits.iter().flat_map(|(controller, waits)| waits.iter().map(move |wait| (controller, wait)));
        all.map(|(controller, (key, wait))| wait.of(controller, key)).collect()
    }

    /// What a key of a controller waits for.
    pub fn of(&self, controller: &str, key: &str) -> Option<Waiting> {
        Some(self.waits.lock().get(controller)?.get(key)?.of(controller, key))
    }

    /// A key waits. Says whether it did not already wait for the same reason.
    pub(crate) fn begin(&self, controller: &'static str, key: String, mut wait: Wait) -> bool {
        let mut waits = self.waits.lock();
        let waits = waits.entry(controller).or_default();
        let before = waits.get(&key);
        let same = before.is_some_and(|before| before.reason == wait.reason);
        match before {
            Some(before) if same => wait.since = before.since,
            Some(before) => self.metrics.waits(controller, &before.reason, -1),
            None => {}
        }
        if !same {
            self.metrics.waits(controller, &wait.reason, 1);
        }
        waits.insert(key, wait);
        !same
    }

    pub(crate) fn end(&self, controller: &str, key: &str) {
        let ended = self.waits.lock().get_mut(controller).and_then(|waits| waits.remove(key));
        if let Some(ended) = ended {
            self.metrics.waits(controller, &ended.reason, -1);
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
            let since = Timestamp::from_second(second).unwrap();
            waits.begin(
                "c",
                "k".into(),
                Wait { reason: reason.into(), sentence: "s".into(), since, until: None },
            )
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
