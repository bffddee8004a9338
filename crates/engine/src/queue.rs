//! Which keys wait for a look, in which order. Plain data: the loop in `run` gives it the time and takes keys out.
//!
//! A key is in line once however often it is woken; it is never handed out while it is being looked at, and comes again if
//! it was woken meanwhile. Ready keys go first come, first served, so a key that is woken all the time goes behind the
//! others each time. A failed key comes back after a pause that doubles; an event brings it, like any other, back at once.
//!
//! Where looks are costly and events come in swarms, a key that has just been looked at rests for a moment, and what wakes it
//! meanwhile is gathered into one look. The first event after a quiet time is never held up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Add;
use std::time::Duration;

/// How long failed keys pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first pause.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Backoff {
    /// The pause after so many failures in a row.
    pub fn after(&self, failures: u32) -> Duration {
        let doubled = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

/// How a look at a key ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended<T> {
    /// Nothing more to do until it is woken.
    Quiet,
    /// To be looked at again at a time, unless woken before.
    At(T),
    /// It failed; it comes back after its pause.
    Failed {
        /// The least pause, for failures that a quick retry cannot mend.
        at_least: Duration,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place<T> {
    Ready,
    Delayed(T),
    Running { woken: bool },
}

/// The line of keys. `T` is a moment in time.
#[derive(Debug)]
pub struct WorkQueue<K, T> {
    places: BTreeMap<K, Place<T>>,
    /// In order, each with since when it stands there.
    ready: VecDeque<(K, T)>,
    delayed: BTreeSet<(T, K)>,
    failures: BTreeMap<K, u32>,
    /// Until when keys rest that have just been looked at; and the same in order of time.
    rests: BTreeMap<K, T>,
    rested: BTreeSet<(T, K)>,
    backoff: Backoff,
    gather: Duration,
}

impl<K: Ord + Clone, T: Ord + Copy + Add<Duration, Output = T>> WorkQueue<K, T> {
    /// An empty line.
    pub fn new(backoff: Backoff, gather: Duration) -> Self {
        Self {
            places: BTreeMap::new(),
            ready: VecDeque::new(),
            delayed: BTreeSet::new(),
            failures: BTreeMap::new(),
            rests: BTreeMap::new(),
            rested: BTreeSet::new(),
            backoff,
            gather,
        }
    }

    /// Something about a key has changed. Says whether this put it in line.
    pub fn wake(&mut self, key: K, now: T) -> bool {
        match self.places.get_mut(&key) {
            Some(Place::Ready) => return false,
            Some(Place::Running { woken }) => return !std::mem::replace(woken, true),
            Some(Place::Delayed(at)) => {
                let at = *at;
                if self.rests.get(&key).is_some_and(|rests| at <= *rests) {
                    return false;
                }
                self.delayed.remove(&(at, key.clone()));
            }
            None => {}
        }
        self.line_up_rested(key, now);
        true
    }

    /// The next key to look at, and since when it stood in line.
    pub fn take(&mut self, now: T) -> Option<(K, T)> {
        self.ripen(now);
        let (key, since) = self.ready.pop_front()?;
        self.places.insert(key.clone(), Place::Running { woken: false });
        Some((key, since))
    }

    /// The key is about to be looked at (again): what woke it until now will be seen.
    pub fn looking(&mut self, key: &K) {
        if let Some(Place::Running { woken }) = self.places.get_mut(key) {
            *woken = false;
        }
    }

    /// Whether a running key was woken since it was last looked at.
    pub fn woken(&self, key: &K) -> bool {
        matches!(self.places.get(key), Some(Place::Running { woken: true }))
    }

    /// A look has ended. Gives the moment at which the key comes back by itself, if it does.
    pub fn done(&mut self, key: &K, ended: Ended<T>, now: T) -> Option<T> {
        let Some(Place::Running { woken }) = self.places.remove(key) else { return None };
        let back = match ended {
            Ended::Failed { at_least } => {
                let failures = self.failures.entry(key.clone()).or_default();
                *failures = failures.saturating_add(1);
                // Its own writes wake it too, so being woken during a look that failed does not end the pause; but somebody
                // may have mended what it failed on, so it does not wait for longer than the failures alone ask for.
                let pause = self.backoff.after(*failures);
                Some(now + if woken { pause } else { pause.max(at_least) })
            }
            Ended::Quiet => {
                self.failures.remove(key);
                None
            }
            Ended::At(at) => {
                self.failures.remove(key);
                Some(at)
            }
        };
        let failed = matches!(ended, Ended::Failed { .. });
        if !failed && !self.gather.is_zero() {
            let until = now + self.gather;
            if let Some(before) = self.rests.insert(key.clone(), until) {
                self.rested.remove(&(before, key.clone()));
            }
            self.rested.insert((until, key.clone()));
        }
        if woken && !failed {
            self.line_up_rested(key.clone(), now);
            return None;
        }
        if let Some(at) = back {
            self.delay(key.clone(), at);
        }
        back
    }

    /// When the next delayed key is due.
    pub fn next_due(&self) -> Option<T> {
        self.delayed.first().map(|(at, _)| *at)
    }

    /// Keys ready to be looked at.
    pub fn depth(&self) -> usize {
        self.ready.len()
    }

    /// Failures in a row of a key.
    pub fn failures(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or_default()
    }

    fn ripen(&mut self, now: T) {
        while let Some((at, _)) = self.delayed.first()
            && *at <= now
            && let Some((_, key)) = self.delayed.pop_first()
        {
            self.line_up(key, now);
        }
        while let Some((until, _)) = self.rested.first()
            && *until <= now
            && let Some((_, key)) = self.rested.pop_first()
        {
            self.rests.remove(&key);
        }
    }

    /// In line at once, or when it has rested.
    fn line_up_rested(&mut self, key: K, now: T) {
        match self.rests.get(&key) {
            Some(until) => self.delay(key, *until),
            None => self.line_up(key, now),
        }
    }

    fn delay(&mut self, key: K, at: T) {
        self.places.insert(key.clone(), Place::Delayed(at));
        self.delayed.insert((at, key));
    }

    fn line_up(&mut self, key: K, now: T) {
        self.places.insert(key.clone(), Place::Ready);
        self.ready.push_back((key, now));
    }
}

#[cfg(test)]
mod tests;
