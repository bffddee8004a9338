//! List and watch of one kind into its [`Cache`], for ever.
//!
//! kube's own `watcher` does nearly this. It is not used because its pauses are jittered by the process's random source, so that a
//! simulation would never run twice the same; because it does not tell the version of a list, without which an object of our
//! own making that is newer than the list looks deleted; and because it decodes every event, also those that our own
//! writes caused and that the cache already has.
//!
//! The first picture comes by a streaming list where the server has it, else page by page. A watch that ends goes on
//! where it was; one whose past is forgotten starts from a new picture. Now and then a new picture is taken anyway: should an
//! event ever be lost, that is how long the loss can last.

use crate::cache::{Cache, ObjectKey, parse_version};
use crate::decode::Head;
use crate::error::told;
use crate::metrics::Metrics;
use crate::queue::Backoff;
use futures::StreamExt;
use futures::stream::BoxStream;
use kube::Resource;
use kube::api::{ListParams, WatchParams};
use kube::core::{Request, Status, WatchEvent};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Which objects of a kind are watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only with these labels, as in `app=web,tier!=test`.
    pub labels: Option<String>,
    /// Only with these field values, as in `spec.nodeName=n1`.
    pub fields: Option<String>,
}

impl Selection {
    /// Every object of the kind.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only objects of a namespace.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// The same, only with these labels.
    #[must_use]
    pub fn labels(mut self, labels: impl Into<String>) -> Self {
        self.labels = Some(labels.into());
        self
    }

    /// The same, only with these field values.
    #[must_use]
    pub fn fields(mut self, fields: impl Into<String>) -> Self {
        self.fields = Some(fields.into());
        self
    }
}

/// How a feed behaves.
#[derive(Debug, Clone, Copy)]
pub struct FeedSettings {
    /// How often a full picture is taken though nothing seems wrong.
    pub picture_every: Duration,
    /// How long one watch is asked to last; a silence much longer than this is a dead connection.
    pub watch_for: Duration,
    /// Objects in one page of a list.
    pub page: u32,
    /// Pauses after failures.
    pub backoff: Backoff,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self {
            picture_every: Duration::from_secs(30 * 60),
            watch_for: Duration::from_secs(290),
            page: 500,
            backoff: Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(30) },
        }
    }
}

/// A silence this much longer than the watch was to last means that nobody is there.
const GRACE: Duration = Duration::from_secs(10);
/// A picture older than what is known is refused this often; after that the cluster itself has gone back, as
/// after a restore of its own data.
const REFUSALS: u32 = 5;

type Raw = Box<RawValue>;
/// All objects of a kind by key, with those that are news.
type Picture<K> = BTreeMap<ObjectKey, Option<Arc<K>>>;
type Events = BoxStream<'static, Result<WatchEvent<Raw>, kube::Error>>;

#[derive(Deserialize)]
struct Page {
    metadata: PageMeta,
    #[serde(default)]
    items: Vec<Raw>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

/// Why a session with the server ended.
enum Ended {
    /// The watch is over; go on where it was.
    Resume,
    /// Take a new picture.
    Again,
    /// The server does not stream lists.
    NoStreaming,
    /// The picture is older than what is known.
    Old,
    /// It failed.
    Failed(kube::Error),
}

impl From<kube::Error> for Ended {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 410 || is_too_large(status) => Self::Again,
            _ => Self::Failed(error),
        }
    }
}

pub(crate) struct Feed<K> {
    pub cache: Arc<Cache<K>>,
    pub client: kube::Client,
    pub selection: Selection,
    pub settings: FeedSettings,
    pub metrics: Metrics,
    /// Told when the first picture is there.
    pub synced: watch::Sender<bool>,
}

impl<K> Feed<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    /// Feeds the cache until dropped.
    pub async fn run(self) {
        let kind = K::kind(&()).into_owned();
        let mut failures = 0;
        let mut refusals = 0;
        let mut streaming = true;
        let mut picture = true;
        let mut picture_due = Instant::now();
        loop {
            if picture || Instant::now() >= picture_due {
                picture_due = Instant::now() + self.settings.picture_every;
                picture = true;
            }
            let ended = match (picture, streaming) {
                (false, _) => self.watch(picture_due).await,
                (true, true) => match self.stream_picture(refusals >= REFUSALS).await {
                    Ok(events) => {
                        picture = false;
                        self.follow(events, self.cache.position(), picture_due).await
                    }
                    Err(ended) => ended,
                },
                (true, false) => self.page_picture(refusals >= REFUSALS).await,
            };
            let pause = match ended {
                Ended::Resume => {
                    picture = false;
                    failures = 0;
                    refusals = 0;
                    None
                }
                Ended::Again => {
                    // At once, but not as fast as a confused server can say "gone".
                    picture = true;
                    failures += 1;
                    (failures > 1).then(|| self.settings.backoff.after(failures - 1))
                }
                Ended::NoStreaming => {
                    streaming = false;
                    None
                }
                Ended::Old => {
                    refusals += 1;
                    tracing::warn!(kind, refusals, "the server shows an older state than is known");
                    Some(self.settings.backoff.after(refusals))
                }
                Ended::Failed(error) => {
                    failures += 1;
                    self.metrics.feed_failed(&kind);
                    tracing::warn!(kind, failures, error = told(&error), "watching failed");
                    // Whoever answers next may have been rebuilt or restored, and its versions may look like a continuation.
                    picture |= matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_));
                    Some(self.settings.backoff.after(failures))
                }
            };
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
        }
    }

    fn request(&self) -> Request {
        Request::new(K::url_path(&(), self.selection.namespace.as_deref()))
    }

    fn watch_params(&self) -> WatchParams {
        WatchParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            timeout: Some(u32::try_from(self.settings.watch_for.as_secs()).unwrap_or(290)),
            ..WatchParams::default()
        }
    }

    /// A full picture as the beginning of a watch, and the rest of that watch.
    async fn stream_picture(&self, accept_old: bool) -> Result<Events, Ended> {
        let params = self.watch_params().initial_events();
        // No version: a consistent read, never an old one.
        let request = self.request().watch(&params, "").map_err(kube::Error::BuildRequest)?;
        let mut events: Events = match self.client.request_events(request).await {
            Ok(events) => events.boxed(),
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422) => {
                return Err(Ended::NoStreaming);
            }
            Err(error) => return Err(error.into()),
        };
        let mut picture = BTreeMap::new();
        let at = loop {
            match tokio::time::timeout(self.settings.watch_for + GRACE, events.next()).await {
                Err(_) | Ok(None) => return Err(Ended::Failed(ended_early())),
                Ok(Some(Err(error))) => return Err(error.into()),
                Ok(Some(Ok(WatchEvent::Added(item) | WatchEvent::Modified(item)))) => {
                    self.paint(&mut picture, &item, accept_old);
                }
                // The picture takes a while on a large kind; what is deleted meanwhile is not in it.
                Ok(Some(Ok(WatchEvent::Deleted(item)))) => {
                    Head::of(item.get()).ok().and_then(|head| picture.remove(&head.key()));
                }
                Ok(Some(Ok(WatchEvent::Error(status)))) => return Err(kube::Error::Api(status).into()),
                Ok(Some(Ok(WatchEvent::Bookmark(mark)))) => {
                    if mark.metadata.annotations.contains_key("k8s.io/initial-events-end") {
                        break parse_version(Some(&mark.metadata.resource_version));
                    }
                }
            }
        };
        match self.take_picture(picture, at, accept_old) {
            Some(old) => Err(old),
            None => Ok(events),
        }
    }

    /// A full picture page by page.
    async fn page_picture(&self, accept_old: bool) -> Ended {
        let mut params = ListParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            limit: Some(self.settings.page),
            ..ListParams::default()
        };
        let mut picture = BTreeMap::new();
        let at = loop {
            let request = match self.request().list(&params) {
                Ok(request) => request,
                Err(error) => return Ended::Failed(kube::Error::BuildRequest(error)),
            };
            let page: Page = match self.client.request(request).await {
                Ok(page) => page,
                Err(error) => return error.into(),
            };
            page.items.iter().for_each(|item| self.paint(&mut picture, item, accept_old));
            if page.metadata.next.is_empty() {
                break parse_version(Some(&page.metadata.resource_version));
            }
            params.continue_token = Some(page.metadata.next);
        };
        self.take_picture(picture, at, accept_old).unwrap_or(Ended::Resume)
    }

    /// Adds an object to a picture, decoded at once if it is news: a picture of raw objects beside the decoded ones would be most
    /// of what a process ever needs. Where the server may have gone back, versions do not tell what is news.
    fn paint(&self, picture: &mut Picture<K>, item: &RawValue, gone_back: bool) {
        let Ok(head) = Head::of(item.get()) else { return };
        let key = head.key();
        let wants = gone_back || self.cache.is_news(&key, head.uid(), head.version());
        let news = wants.then(|| self.decode(&head)).flatten();
        picture.insert(key, news.map(Arc::new));
    }

    /// Brings a picture into the cache, unless it is older than what is known.
    fn take_picture(&self, picture: Picture<K>, at: u64, accept_old: bool) -> Option<Ended> {
        match at < self.cache.position() {
            true if !accept_old => return Some(Ended::Old),
            true => {
                let kind = K::kind(&());
                tracing::warn!(%kind, at, "the server has gone back: it was rebuilt, or restored from a copy");
                self.cache.begins_anew(picture, at);
            }
            false => self.cache.saw_all(picture, at),
        }
        self.metrics.picture_taken(&K::kind(&()));
        self.synced.send_replace(true);
        None
    }

    /// Goes on where the cache is.
    async fn watch(&self, until: Instant) -> Ended {
        let from = self.cache.position();
        let request = match self.request().watch(&self.watch_params(), &from.to_string()) {
            Ok(request) => request,
            Err(error) => return Ended::Failed(kube::Error::BuildRequest(error)),
        };
        match self.client.request_events::<Raw>(request).await {
            Ok(events) => self.follow(events.boxed(), from, until).await,
            Err(error) => error.into(),
        }
    }

    /// Takes what a watch tells that was begun at a version.
    async fn follow(&self, mut events: Events, from: u64, until: Instant) -> Ended {
        let (mut heard, began) = (0u64, Instant::now());
        loop {
            let silence = (Instant::now() + self.settings.watch_for + GRACE).min(until);
            match tokio::time::timeout_at(silence, events.next()).await {
                // A new picture is due, as the loop will see.
                Err(_) if Instant::now() >= until => return Ended::Resume,
                // Not even a bookmark in all that time: a server that was restored from a copy may wait for a version that it had once.
                Err(_) | Ok(None) if heard == 0 && began.elapsed() > self.settings.watch_for / 2 => {
                    return Ended::Again;
                }
                // A server that hangs up without a word is not asked again at once.
                Err(_) | Ok(None) if heard == 0 => return Ended::Failed(ended_early()),
                Err(_) | Ok(None) => return Ended::Resume,
                Ok(Some(Err(error))) => return error.into(),
                Ok(Some(Ok(WatchEvent::Added(item) | WatchEvent::Modified(item)))) => {
                    if let Ok(head) = Head::of(item.get()) {
                        self.take_event(&head);
                    }
                }
                Ok(Some(Ok(WatchEvent::Deleted(item)))) => {
                    if let Ok(head) = Head::of(item.get()) {
                        self.cache.saw_deleted(&head.key(), head.uid(), head.version());
                    }
                }
                Ok(Some(Ok(WatchEvent::Bookmark(mark)))) => {
                    let at = parse_version(Some(&mark.metadata.resource_version));
                    // It has come less far than where the watch began: it is not the server that it was.
                    if at < from {
                        return Ended::Again;
                    }
                    self.cache.reached(at);
                }
                Ok(Some(Ok(WatchEvent::Error(status)))) => return kube::Error::Api(status).into(),
            }
            heard += 1;
        }
    }

    fn take_event(&self, head: &Head<'_>) {
        if !self.cache.wants(&head.key(), head.version()) {
            self.cache.reached(head.version());
        } else if let Some(object) = self.decode(head) {
            self.cache.saw(object);
        } else {
            self.cache.reached(head.version());
        }
    }

    fn decode(&self, head: &Head<'_>) -> Option<K> {
        match head.decode() {
            Ok(object) => Some(object),
            Err(error) => {
                let (kind, key) = (K::kind(&()), head.key());
                tracing::warn!(%kind, %key, %error, "an object cannot be read; it is left alone");
                self.metrics.feed_failed(&kind);
                self.cache.saw_unreadable(key, error.to_string());
                None
            }
        }
    }
}

/// Whether the server has not come to a version that was seen. One that lags behind will; one that was rebuilt or restored from a copy may never.
fn is_too_large(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
}

fn ended_early() -> kube::Error {
    let early = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the watch ended without a word");
    kube::Error::ReadEvents(early)
}
