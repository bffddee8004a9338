//! Events on objects (`events.k8s.io/v1`), for `kubectl describe`. Repetitions become a series of one event, an object that
//! talks too much is cut short, and nothing that goes wrong here ever fails or delays a controller.
//!
//! kube's own recorder is not used: it names events by the machine's clock and waits for the server inside the caller.

use crate::clock::Clock;
use crate::decision::Level;
use crate::metrics::Metrics;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;

/// Notices that wait to be written, at most.
const BACKLOG: usize = 1024;
/// A repetition after a longer silence is a new event.
const SERIES_WITHIN: Duration = Duration::from_secs(6 * 60);
/// How many events of one object are written at once, and how long one more takes to be earned.
const BURST: u32 = 25;
const EARNED_EVERY: Duration = Duration::from_secs(5 * 60);
/// Objects remembered, at most.
const REMEMBERED: usize = 4096;

/// Something to tell about an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// The object.
    pub subject: ObjectReference,
    /// How much it matters.
    pub level: Level,
    /// Why, in one CamelCase word.
    pub reason: String,
    /// What happened, as a sentence.
    pub note: String,
}

/// Takes notices; clones share one line.
#[derive(Clone)]
pub struct Recorder {
    sender: mpsc::Sender<Notice>,
    metrics: Metrics,
}

impl Recorder {
    pub(crate) fn new(
        reporter: &str,
        client: kube::Client,
        clock: Clock,
        metrics: Metrics,
    ) -> (Self, EventPump) {
        let (sender, notices) = mpsc::channel(BACKLOG);
        let writer = Writer { client, reporter: reporter.to_owned(), clock, metrics: metrics.clone() };
        (Self { sender, metrics }, EventPump { notices, writer, series: Series::default() })
    }

    /// Tells about an object; returns at once, and forgets the notice where too many wait.
    pub fn record(&self, subject: ObjectReference, level: Level, reason: &str, note: &str) {
        let notice = Notice { subject, level, reason: reason.to_owned(), note: note.to_owned() };
        if self.sender.try_send(notice).is_err() {
            self.metrics.event_dropped();
        }
    }
}

/// What becomes of a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A new event of this name.
    Create(String),
    /// The event of this name has happened so many times now.
    Repeat(String, i32),
    /// Too much talk about this object.
    Drop,
}

type About = (String, String, String);

struct Known {
    name: String,
    count: i32,
    last: Timestamp,
}

#[derive(Default)]
struct Talk {
    events: BTreeMap<(&'static str, String, String), Known>,
    spent: u32,
    earned_since: Option<Timestamp>,
}

/// Which notices belong together. Pure: the time comes in, names follow from what is said and when.
#[derive(Default)]
pub struct Series {
    talks: BTreeMap<About, Talk>,
}

impl Series {
    /// Takes a notice.
    pub fn take(&mut self, notice: &Notice, now: Timestamp) -> Verdict {
        let subject = &notice.subject;
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let about = (text(&subject.uid), text(&subject.namespace), text(&subject.name));
        if self.talks.len() >= REMEMBERED && !self.talks.contains_key(&about) {
            self.forget_silent();
        }
        let talk = self.talks.entry(about).or_default();
        if !talk.may_speak(now) {
            return Verdict::Drop;
        }
        let said = (notice.level.as_str(), notice.reason.clone(), notice.note.clone());
        match talk.events.get_mut(&said) {
            Some(known) if since(known.last, now) < SERIES_WITHIN => {
                known.count += 1;
                known.last = now;
                Verdict::Repeat(known.name.clone(), known.count)
            }
            _ => {
                let name = event_name(notice, now);
                talk.events.retain(|_, known| since(known.last, now) < SERIES_WITHIN);
                talk.events.insert(said, Known { name: name.clone(), count: 1, last: now });
                Verdict::Create(name)
            }
        }
    }

    /// The event could not be written, so it is no series that could go on.
    pub fn forget(&mut self, name: &str) {
        for talk in self.talks.values_mut() {
            talk.events.retain(|_, known| known.name != name);
        }
    }

    /// Forgets the half that has been silent for longest: not often, so cheap enough.
    fn forget_silent(&mut self) {
        let last = |talk: &Talk| talk.events.values().map(|known| known.last).max();
        let mut order: Vec<_> = self.talks.iter().map(|(about, talk)| (last(talk), about.clone())).collect();
        order.sort();
        for (_, about) in order.into_iter().take(REMEMBERED / 2) {
            self.talks.remove(&about);
        }
    }
}

impl Talk {
    fn may_speak(&mut self, now: Timestamp) -> bool {
        let from = *self.earned_since.get_or_insert(now);
        let earned = u32::try_from(since(from, now).as_secs() / EARNED_EVERY.as_secs()).unwrap_or(u32::MAX);
        if earned > 0 {
            self.spent = self.spent.saturating_sub(earned);
            self.earned_since = Some(crate::clock::after(from, EARNED_EVERY.saturating_mul(earned)));
        }
        let may = self.spent < BURST;
        if may {
            self.spent += 1;
        }
        may
    }
}

fn since(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or_default()
}

/// The object's name and sixteen digits that follow from what is said, about what and when.
fn event_name(notice: &Notice, now: Timestamp) -> String {
    let subject = &notice.subject;
    let mut digest = Fnv::default();
    for part in [&subject.uid, &subject.kind, &subject.namespace, &subject.name].into_iter().flatten() {
        digest.eat(part);
    }
    digest.eat(&notice.reason);
    digest.eat(&notice.note);
    digest.eat(&now.as_nanosecond().to_string());
    // Room for the digits within the 253 characters of a name.
    let name: String = subject.name.iter().flat_map(|name| name.chars()).take(236).collect();
    format!("{name}.{:016x}", digest.0)
}

/// FNV-1a: the same in every process, unlike the standard library's hashes.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn eat(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Writes what recorders take.
pub(crate) struct EventPump {
    notices: mpsc::Receiver<Notice>,
    writer: Writer,
    series: Series,
}

impl EventPump {
    /// Writes until all recorders are gone.
    pub async fn run(mut self) {
        while let Some(notice) = self.notices.recv().await {
            let now = self.writer.clock.now();
            let verdict = self.series.take(&notice, now);
            let (name, written) = match &verdict {
                Verdict::Create(name) => (name, self.writer.create(name, &notice, now).await),
                Verdict::Repeat(name, count) => (name, self.writer.repeat(name, *count, &notice, now).await),
                Verdict::Drop => {
                    self.writer.metrics.event_dropped();
                    continue;
                }
            };
            if let Err(error) = written {
                self.writer.metrics.event_dropped();
                tracing::debug!(%error, reason = notice.reason, "an event was not written");
                self.series.forget(name);
            }
        }
    }
}

struct Writer {
    client: kube::Client,
    reporter: String,
    clock: Clock,
    metrics: Metrics,
}

/// How long one event may take to be written: others wait behind it.
const WRITE_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("the server did not answer in time")]
    Late(#[from] tokio::time::error::Elapsed),
}

impl Writer {
    fn api(&self, notice: &Notice) -> Api<Event> {
        // Events of cluster-wide objects live in the default namespace.
        Api::namespaced(self.client.clone(), notice.subject.namespace.as_deref().unwrap_or("default"))
    }

    async fn create(&self, name: &str, notice: &Notice, now: Timestamp) -> Result<(), WriteError> {
        let event = Event {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            event_time: Some(MicroTime(now)),
            type_: Some(notice.level.as_str().to_owned()),
            reason: Some(notice.reason.clone()),
            // Kubernetes refuses longer notes.
            note: Some(notice.note.chars().take(1000).collect()),
            action: Some(notice.reason.clone()),
            regarding: Some(notice.subject.clone()),
            reporting_controller: Some(format!("lifeboat.io/{}", self.reporter)),
            reporting_instance: Some(self.reporter.clone()),
            ..Event::default()
        };
        let params = PostParams { field_manager: Some(self.reporter.clone()), dry_run: false };
        tokio::time::timeout(WRITE_WITHIN, self.api(notice).create(&params, &event)).await??;
        Ok(())
    }

    async fn repeat(
        &self,
        name: &str,
        count: i32,
        notice: &Notice,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        let series = EventSeries { count, last_observed_time: MicroTime(now) };
        let patch = Patch::Merge(json!({ "series": series }));
        let params = PatchParams { field_manager: Some(self.reporter.clone()), ..PatchParams::default() };
        tokio::time::timeout(WRITE_WITHIN, self.api(notice).patch(name, &params, &patch)).await??;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
