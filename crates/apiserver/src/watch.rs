//! Watch: the events of a resource from a version on, as a stream of lines. A watcher keeps a position, not a queue: when
//! it wakes it reads what the history has since, so a slow one costs nothing and one that falls too far behind is told.

use crate::cluster::Cluster;
use crate::error::{ApiError, Result};
use crate::fault::{EventFault, Faults};
use crate::list::{Include, Selection, partial, table, too_old};
use crate::negotiate::Form;
use crate::object::{self, Object};
use crate::path::ResourcePath;
use crate::query::Query;
use crate::registry::Resource;
use crate::store::{Entry, Event, EventKind};
use bytes::{Bytes, BytesMut};
use futures::Stream;
use lifeboat_schema::FieldError;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a watch lives that names no end.
const LONGEST: Duration = Duration::from_secs(45 * 60);
/// No watch lives longer, whatever its client asks for.
const AT_MOST: Duration = Duration::from_secs(24 * 3600);
/// How often an idle watch is told how far it has come.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Lines are gathered into one chunk up to this size.
const CHUNK: usize = 64 << 10;

/// What a watch was asked for.
pub struct Watch {
    /// The cluster.
    pub cluster: Arc<Cluster>,
    /// The resource.
    pub resource: Arc<Resource>,
    /// The path, for fault hooks.
    pub path: ResourcePath,
    /// Which objects.
    pub selection: Selection,
    /// In which form.
    pub form: Form,
    /// What Table rows carry.
    pub include: Include,
    /// Faults to play.
    pub faults: Option<Arc<dyn Faults>>,
}

struct Watcher {
    watch: Watch,
    position: u64,
    wake: tokio::sync::watch::Receiver<u64>,
    lines: VecDeque<Bytes>,
    deadline: Instant,
    bookmark: Option<Instant>,
    columns_sent: bool,
    pause: Option<Duration>,
    over: bool,
}

impl Watch {
    /// Starts the watch; errors that Kubernetes answers before the stream begins come back at once.
    pub fn start(self, query: &Query) -> Result<impl Stream<Item = Bytes> + Send + 'static> {
        let asked = query.revision()?;
        let initial = query.get("sendInitialEvents").map(|text| text == "true" || text == "1");
        let rule = query.get("resourceVersionMatch");
        check_options(initial, rule)?;
        let bookmarks = query.flag("allowWatchBookmarks");
        let life = query.timeout()?.filter(|life| !life.is_zero()).unwrap_or(LONGEST).min(AT_MOST);
        let store = &self.cluster.store;
        // Subscribe before reading, or an event between the two would be lost.
        let wake = store.watch(&self.resource.collection);
        let current = store.revision();
        if let Some(asked) = asked.filter(|asked| *asked > current) {
            return Err(ApiError::too_large_version(asked, current));
        }
        let now = Instant::now();
        let mut watcher = Watcher {
            position: current,
            wake,
            lines: VecDeque::new(),
            deadline: now + life,
            bookmark: bookmarks.then(|| now + BOOKMARK_EVERY),
            columns_sent: false,
            pause: None,
            over: false,
            watch: self,
        };
        let from_now = initial == Some(true) || (initial.is_none() && asked.unwrap_or(0) == 0);
        if from_now {
            watcher.send_state()?;
            if initial == Some(true) && bookmarks {
                watcher.send_bookmark(true);
            }
        } else if let Some(asked) = asked.filter(|asked| *asked > 0) {
            watcher.position = asked;
        }
        Ok(futures::stream::unfold(watcher, |mut watcher| async move {
            let chunk = watcher.next().await?;
            Some((chunk, watcher))
        }))
    }
}

fn check_options(initial: Option<bool>, rule: Option<&str>) -> Result<()> {
    let what = match (initial, rule) {
        (Some(_), Some("NotOlderThan")) | (None, None) => return Ok(()),
        (Some(_), _) => "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        (None, Some(_)) => "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
    };
    Err(ApiError::invalid_option("ListOptions", FieldError::forbidden("resourceVersionMatch", what)))
}

impl Watcher {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(pause) = self.pause.take() {
                tokio::time::sleep(pause).await;
            }
            if !self.lines.is_empty() {
                return Some(self.chunk());
            }
            if self.over {
                return None;
            }
            self.wake.borrow_and_update();
            self.read();
            if !self.lines.is_empty() || self.over || self.pause.is_some() {
                continue;
            }
            let bookmark = self.bookmark.unwrap_or(self.deadline);
            tokio::select! {
                biased;
                changed = self.wake.changed() => if changed.is_err() { self.over = true },
                () = tokio::time::sleep_until(self.deadline) => {
                    self.over = true;
                    if self.bookmark.is_some() {
                        self.send_bookmark(false);
                    }
                }
                () = tokio::time::sleep_until(bookmark) => {
                    self.bookmark = self.bookmark.map(|at| at + BOOKMARK_EVERY);
                    self.send_bookmark(false);
                }
            }
        }
    }

    /// One line alone goes out as it is, shared with all other watchers; several are joined.
    fn chunk(&mut self) -> Bytes {
        let first = self.lines.pop_front().unwrap_or_default();
        if self.lines.is_empty() {
            return first;
        }
        let mut joined = BytesMut::from(&first[..]);
        while let Some(line) = self.lines.front()
            && joined.len() + line.len() <= CHUNK
        {
            joined.extend_from_slice(line);
            self.lines.pop_front();
        }
        joined.freeze()
    }

    /// Everything visible that this watcher has not been sent.
    fn read(&mut self) {
        let store = &self.watch.cluster.store;
        let Ok(until) = store.health() else {
            self.over = true;
            return;
        };
        if until <= self.position {
            return;
        }
        match store.events(&self.watch.resource.collection, self.position, until) {
            Ok(events) => {
                for event in events {
                    if !self.take(&event) {
                        return;
                    }
                }
                self.position = until;
            }
            Err(forgotten) => self.fail(&too_old(self.position, forgotten.oldest)),
        }
    }

    /// Queues one event; `false` when reading must stop here.
    fn take(&mut self, event: &Arc<Event>) -> bool {
        let Some(kind) = self.relevance(event) else { return true };
        let faults = self.watch.faults.as_ref();
        let fault = faults.map_or(EventFault::None, |faults| faults.on_event(&self.watch.path, event));
        match fault {
            EventFault::None => {}
            EventFault::Lose => return true,
            EventFault::Delay(pause) => self.pause = Some(pause),
            EventFault::Repeat => self.send(kind, event),
            EventFault::Close => {
                self.over = true;
                return false;
            }
            EventFault::Expire => {
                self.fail(&too_old(self.position, event.revision));
                return false;
            }
        }
        self.send(kind, event);
        if self.pause.is_some() {
            self.position = event.revision;
            return false;
        }
        true
    }

    /// What an event means to this watcher: leaving the selection looks like a deletion, entering it like a creation.
    fn relevance(&self, event: &Event) -> Option<EventKind> {
        let selection = &self.watch.selection;
        let before = event.before.as_ref().is_some_and(|before| selection.matches(before));
        let after = event.kind != EventKind::Deleted && selection.matches(&event.entry);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(EventKind::Added),
            (true, true) => Some(EventKind::Modified),
            (true, false) => Some(EventKind::Deleted),
        }
    }

    fn send(&mut self, kind: EventKind, event: &Event) {
        let plain = self.watch.form == Form::Object && self.watch.resource.serves_as_stored(&event.entry);
        // Leaving the selection shows the object as it was when it still belonged, at the version of leaving.
        let left = kind == EventKind::Deleted && event.kind != EventKind::Deleted;
        if plain && !left {
            self.lines.push_back(event.frame(kind));
            return;
        }
        let mut object = match (&event.before, left) {
            (Some(before), true) => object::parse(&before.json),
            _ => object::parse(&event.entry.json),
        };
        object::set_meta(&mut object, "resourceVersion", Some(event.revision.to_string().into()));
        self.send_object(kind.as_str(), object);
    }

    fn send_object(&mut self, kind: &str, stored: Value) {
        let resource = self.watch.resource.clone();
        let object = resource.shown(stored);
        let shown = match self.watch.form {
            Form::Object => object,
            Form::Metadata => partial(object),
            Form::Table => {
                let metadata = json!({"resourceVersion": object.meta_str("resourceVersion")});
                let now = self.watch.cluster.now();
                let mut shown = table(&resource, vec![object], metadata, self.watch.include, now);
                // Columns come with the first event only.
                if std::mem::replace(&mut self.columns_sent, true) {
                    shown["columnDefinitions"] = Value::Null;
                }
                shown
            }
        };
        self.lines.push_back(line(kind, &shown));
    }

    /// The objects that exist now, as additions.
    fn send_state(&mut self) -> Result<()> {
        let watch = &self.watch;
        let page = watch.cluster.store.page(
            &watch.resource.collection,
            watch.selection.namespace.as_deref(),
            None,
            None,
            |entry| watch.selection.matches(entry),
            usize::MAX,
        );
        let page = page.map_err(|forgotten| too_old(0, forgotten.oldest))?;
        self.position = page.revision;
        let (whole, resource) = (watch.form == Form::Object, watch.resource.clone());
        for entry in page.entries {
            if whole && resource.serves_as_stored(&entry) {
                self.lines.push_back(crate::store::frame("ADDED", &entry.json));
            } else {
                self.send_entry(&entry);
            }
        }
        Ok(())
    }

    fn send_entry(&mut self, entry: &Entry) {
        self.send_object("ADDED", object::parse(&entry.json));
    }

    fn send_bookmark(&mut self, initial_end: bool) {
        let resource = &self.watch.resource;
        let mut metadata = json!({"resourceVersion": self.position.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (kind, api_version) = match self.watch.form {
            Form::Object => (resource.kind.as_str(), resource.api_version.as_str()),
            Form::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1"),
            Form::Table => {
                let row = json!({"cells": [], "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}});
                let table = json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": self.position.to_string()}, "columnDefinitions": null, "rows": [row]});
                self.lines.push_back(line("BOOKMARK", &table));
                return;
            }
        };
        let mut object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        // Typed clients decode a bookmark as the whole object and refuse one without its required parts.
        if matches!(self.watch.form, Form::Object) {
            for part in ["spec", "status"] {
                if resource.schema().property(part).is_some() {
                    object[part] = json!({});
                }
            }
        }
        self.lines.push_back(line("BOOKMARK", &object));
    }

    fn fail(&mut self, error: &ApiError) {
        self.lines.push_back(line("ERROR", &error.to_status()));
        self.over = true;
    }
}

fn line(kind: &str, object: &Value) -> Bytes {
    crate::store::frame(kind, object.to_string().as_bytes())
}
