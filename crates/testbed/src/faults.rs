//! A bad network and a dying process, as fault hooks for clients of an embedded cluster.

use crate::effects::{CrashPoints, Fate, Kind};
use lifeboat_apiserver::fault::{Asked, EventFault, Faults, RequestFault};
use lifeboat_apiserver::path::ResourcePath;
use lifeboat_apiserver::store::Event;
use parking_lot::Mutex;

/// Counts the writes of a process, and makes them fail once it is dead.
pub(crate) struct Counted {
    pub points: CrashPoints,
    pub after_write: std::sync::Arc<dyn Fn() + Send + Sync>,
}

impl Faults for Counted {
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        if self.points.is_dead() {
            return RequestFault::DropRequest;
        }
        // Leases are renewed by the clock, not by the story.
        if !asked.verb.is_write() || asked.path.resource == "leases" {
            return RequestFault::None;
        }
        match self.points.next(Kind::Api, describe(asked)) {
            Fate::Lives => RequestFault::None,
            Fate::DiesBefore => RequestFault::DropRequest,
            Fate::DiesAfter => RequestFault::DropAnswer,
        }
    }

    fn on_answer(&self, asked: Asked<'_>, _code: u16) {
        if asked.verb.is_write() {
            (self.after_write)();
        }
    }

    fn on_event(&self, _path: &ResourcePath, _event: &Event) -> EventFault {
        if self.points.is_dead() { EventFault::Close } else { EventFault::None }
    }
}

/// A write in words: `update configmaps/status shop/hello`.
fn describe(asked: Asked<'_>) -> String {
    let path = asked.path;
    let mut words = format!("{} {}", asked.verb.as_str(), path.resource);
    if !path.subresource.is_empty() {
        words = format!("{words}/{}", path.subresource);
    }
    let object: Vec<&str> =
        [path.namespace.as_str(), path.name.as_str()].into_iter().filter(|part| !part.is_empty()).collect();
    format!("{words} {}", object.join("/"))
}

/// A network that is bad in a way that a seed decides: the same seed, the same faults.
pub struct Seeded {
    state: Mutex<u64>,
    odds: Odds,
}

/// How often things go wrong, each in a thousand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Odds {
    /// Requests that never arrive.
    pub lost_requests: u64,
    /// Requests that are carried out and never answered.
    pub lost_answers: u64,
    /// Lists and reads that show an older state.
    pub stale_reads: u64,
    /// Requests and events that are late.
    pub delays: u64,
    /// Events that never arrive.
    pub lost_events: u64,
    /// Events that arrive twice.
    pub repeated_events: u64,
    /// Watches that end.
    pub closed_watches: u64,
    /// Watches that are told that the past is forgotten.
    pub expired_watches: u64,
}

impl Odds {
    /// A little of everything.
    pub fn bad() -> Self {
        Self {
            lost_requests: 20,
            lost_answers: 20,
            stale_reads: 50,
            delays: 100,
            lost_events: 20,
            repeated_events: 50,
            closed_watches: 20,
            expired_watches: 10,
        }
    }
}

impl Seeded {
    /// Faults that follow from a seed.
    pub fn new(seed: u64, odds: Odds) -> Self {
        Self { state: Mutex::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1), odds }
    }

    /// No more faults from now on: what follows must converge.
    pub fn stop(&self) {
        *self.state.lock() = 0;
    }

    /// A number below a thousand (xorshift); `None` once faults have stopped.
    fn roll(&self) -> Option<u64> {
        let mut state = self.state.lock();
        if *state == 0 {
            return None;
        }
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        Some((*state >> 20) % 1000)
    }
}

/// The first of some things, each so many in a thousand, that a roll hits.
fn pick<T: Copy>(roll: u64, odds: &[(u64, T)], otherwise: T) -> T {
    let mut reach = 0;
    for (in_thousand, thing) in odds {
        reach += in_thousand;
        if roll < reach {
            return *thing;
        }
    }
    otherwise
}

impl Faults for Seeded {
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        #[derive(Clone, Copy)]
        enum Hit {
            Lost,
            Unanswered,
            Stale,
            Late,
            Nothing,
        }
        let Some(roll) = self.roll() else { return RequestFault::None };
        let odds = &self.odds;
        let rows = [
            (odds.lost_requests, Hit::Lost),
            (odds.lost_answers, Hit::Unanswered),
            (odds.delays, Hit::Late),
            (odds.stale_reads, Hit::Stale),
        ];
        match pick(roll, &rows, Hit::Nothing) {
            Hit::Lost => RequestFault::DropRequest,
            Hit::Unanswered => RequestFault::DropAnswer,
            Hit::Stale if !asked.verb.is_write() => RequestFault::Stale(1 + roll % 7),
            Hit::Late => RequestFault::Delay(std::time::Duration::from_millis(1 + roll * 7 % 3000)),
            Hit::Stale | Hit::Nothing => RequestFault::None,
        }
    }

    fn on_event(&self, _path: &ResourcePath, _event: &Event) -> EventFault {
        let Some(roll) = self.roll() else { return EventFault::None };
        let odds = &self.odds;
        let late = EventFault::Delay(std::time::Duration::from_millis(1 + roll * 7 % 3000));
        let rows = [
            (odds.lost_events, EventFault::Lose),
            (odds.repeated_events, EventFault::Repeat),
            (odds.closed_watches, EventFault::Close),
            (odds.expired_watches, EventFault::Expire),
            (odds.delays, late),
        ];
        pick(roll, &rows, EventFault::None)
    }
}
