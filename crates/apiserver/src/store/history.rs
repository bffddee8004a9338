//! The recent past of one collection: enough to replay a watch from a version and to show a list as it was. Bounded in
//! events and bytes; who asks for more is told that it is gone and lists again.

use super::{Entry, Forgotten};
use bytes::Bytes;
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

/// Events kept for each collection.
const MAX_EVENTS: usize = 65_536;
/// Bytes of superseded versions kept for each collection.
const MAX_BYTES: usize = 64 << 20;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

impl EventKind {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One committed write.
#[derive(Debug)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The revision of the write.
    pub revision: u64,
    /// When it was made.
    pub at: Timestamp,
    /// The version it wrote; for a deletion the last version, at the revision of the deletion.
    pub entry: Arc<Entry>,
    /// The version it replaced.
    pub before: Option<Arc<Entry>>,
    frames: [OnceLock<Bytes>; 3],
}

impl Event {
    pub(super) fn new(
        kind: EventKind,
        revision: u64,
        at: Timestamp,
        entry: Arc<Entry>,
        before: Option<Arc<Entry>>,
    ) -> Self {
        Self { kind, revision, at, entry, before, frames: Default::default() }
    }

    /// The line that a JSON watch sends, made once for all watchers.
    pub fn frame(&self, kind: EventKind) -> Bytes {
        self.frames[kind as usize].get_or_init(|| frame(kind.as_str(), &self.entry.json)).clone()
    }
}

/// One line of a watch.
pub fn frame(kind: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + 32);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(kind.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.into()
}

/// What was in a collection before later writes: `None` where nothing was.
pub(super) type Past = BTreeMap<(Arc<str>, Arc<str>), Option<Arc<Entry>>>;

pub(super) struct History {
    events: VecDeque<Arc<Event>>,
    /// Everything after this revision is still here.
    floor: u64,
    bytes: usize,
}

impl History {
    pub(super) fn new(floor: u64) -> Self {
        Self { events: VecDeque::new(), floor, bytes: 0 }
    }

    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.bytes += weight(&event);
        self.events.push_back(event);
        while self.events.len() > MAX_EVENTS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= weight(&oldest);
            self.floor = oldest.revision;
        }
    }

    pub(super) fn since(&self, after: u64, until: u64) -> Result<Vec<Arc<Event>>, Forgotten> {
        if after < self.floor {
            return Err(Forgotten { oldest: self.floor });
        }
        let start = self.events.partition_point(|event| event.revision <= after);
        Ok(self.events.range(start..).take_while(|event| event.revision <= until).cloned().collect())
    }

    /// For every object written after `at`: what it was then.
    pub(super) fn undo(&self, at: u64) -> Result<Past, Forgotten> {
        let mut past = Past::new();
        for event in self.since(at, u64::MAX)? {
            let key = &event.entry.key;
            past.entry((key.namespace.clone(), key.name.clone())).or_insert_with(|| event.before.clone());
        }
        Ok(past)
    }
}

/// Only what the past alone keeps alive counts.
fn weight(event: &Event) -> usize {
    event.before.as_ref().map_or(128, |before| before.json.len() + 256)
}
