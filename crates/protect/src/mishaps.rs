//! What went wrong with one claim or one store, remembered so that it delays nobody else: the effect counts as done, the next decision
//! sees the mishap and leaves that one thing alone until it may be tried again.

use jiff::{SignedDuration, Timestamp};
use lifeboat_engine::{Class, ObjectKey};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Something that failed and will be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mishap {
    /// What was tried and why it failed.
    pub message: String,
    /// Since when it fails.
    pub since: Timestamp,
    /// When it is tried again.
    pub retry_at: Timestamp,
    /// How often it has failed.
    pub tries: u32,
}

/// The first pause after a failure.
const FIRST: SignedDuration = SignedDuration::from_secs(1);
/// The longest pause.
const LONGEST: SignedDuration = SignedDuration::from_secs(60);

/// When to try again after the `tries`th failure at `now`.
pub fn retry_at(now: Timestamp, tries: u32, class: Class) -> Timestamp {
    let doubled = SignedDuration::from_secs(FIRST.as_secs() << tries.saturating_sub(1).min(6));
    let slowly = matches!(class, Class::Refused | Class::BadInput);
    let pause = if slowly { LONGEST } else { doubled.min(LONGEST) };
    now.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// All mishaps, by group and by what they befell; clones see the same.
#[derive(Debug, Clone, Default)]
pub struct Mishaps {
    all: Arc<Mutex<BTreeMap<(ObjectKey, String), Mishap>>>,
}

impl Mishaps {
    /// Something failed.
    pub fn failed(&self, group: &ObjectKey, what: &str, class: Class, message: String, now: Timestamp) {
        let mut all = self.all.lock();
        let known = all.get(&(group.clone(), what.to_owned()));
        let tries = known.map_or(1, |known| known.tries + 1);
        let since = known.map_or(now, |known| known.since);
        let mishap = Mishap { message, since, retry_at: retry_at(now, tries, class), tries };
        all.insert((group.clone(), what.to_owned()), mishap);
    }

    /// It worked.
    pub fn worked(&self, group: &ObjectKey, what: &str) {
        self.all.lock().remove(&(group.clone(), what.to_owned()));
    }

    /// The mishaps of a group.
    pub fn of(&self, group: &ObjectKey) -> BTreeMap<String, Mishap> {
        let all = self.all.lock();
        let from = (group.clone(), String::new());
        let range = all.range(from..).take_while(|((key, _), _)| key == group);
        range.map(|((_, what), mishap)| (what.clone(), mishap.clone())).collect()
    }

    /// The group is gone.
    pub fn forget(&self, group: &ObjectKey) {
        self.all.lock().retain(|(key, _), _| key != group);
    }
}
