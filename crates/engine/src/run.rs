//! Puts caches and controllers together and runs them as one future. Nothing is spawned: dropping the future stops everything at
//! its next `await`, which is how tests kill a controller, and everything runs in one order, which is how a simulation repeats.

use crate::cache::Change;
use crate::clock::Clock;
use crate::controller::Controller;
use crate::events::{EventPump, Recorder};
use crate::feed::{Feed, FeedSettings, Selection};
use crate::metrics::{LineMetrics, Metrics};
use crate::objects::Objects;
use crate::pass::Passes;
use crate::queue::{Backoff, WorkQueue};
use crate::waits::Waits;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use kube::Resource;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How controllers run.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Keys of one controller looked at in the same time.
    pub keys_at_once: usize,
    /// Effects of one decision performed in the same time.
    pub effects_at_once: usize,
    /// Decisions of one pass, at most; more is a controller that argues with itself.
    pub turns: u32,
    /// How often one pass may find the world changed under its hands before it pauses.
    pub stale_turns: u32,
    /// How long one effect may take.
    pub effect_within: Duration,
    /// Pauses of a key that failed.
    pub backoff: Backoff,
    /// The least pause of a key whose effect was refused or cannot be done as asked.
    pub slow_retry: Duration,
    /// How long a key rests after a look, while events about it gather; none unless looks are costly and events come in swarms.
    pub gather: Duration,
    /// How kinds are watched.
    pub feed: FeedSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            keys_at_once: 32,
            effects_at_once: 16,
            turns: 50,
            stale_turns: 10,
            effect_within: Duration::from_secs(60),
            backoff: Backoff { first: Duration::from_millis(10), longest: Duration::from_secs(60) },
            slow_retry: Duration::from_secs(60),
            gather: Duration::ZERO,
            feed: FeedSettings::default(),
        }
    }
}

/// The line of keys of one controller.
pub(crate) struct Line<K> {
    queue: Mutex<WorkQueue<K, Instant>>,
    changed: Notify,
    pub metrics: LineMetrics,
}

impl<K: Ord + Clone> Line<K> {
    fn wake(&self, key: K) {
        let mut queue = self.queue.lock();
        if queue.wake(key, Instant::now()) {
            self.metrics.added(queue.depth());
            self.changed.notify_one();
        }
    }

    pub fn looking(&self, key: &K) {
        self.queue.lock().looking(key);
    }

    fn take(&self) -> Option<K> {
        let mut queue = self.queue.lock();
        let (key, since) = queue.take(Instant::now())?;
        self.metrics.taken(since, queue.depth());
        Some(key)
    }
}

/// Says what wakes a controller.
pub struct Wiring<K> {
    line: Arc<Line<K>>,
}

impl<K> Clone for Wiring<K> {
    fn clone(&self) -> Self {
        Self { line: self.line.clone() }
    }
}

impl<K: Ord + Clone + Send + Sync + 'static> Wiring<K> {
    /// Every change of an object of this kind, its disappearance included, wakes the keys that `keys` names. `keys` may read
    /// caches and indexes, which have the change already; it must not write.
    pub fn woken_by<O, I>(
        self,
        objects: &Objects<O>,
        keys: impl Fn(&Change<O>) -> I + Send + Sync + 'static,
    ) -> Self
    where
        O: Resource<DynamicType = ()> + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
    {
        let line = self.line.clone();
        objects.listen(move |change| keys(change).into_iter().for_each(|key| line.wake(key)));
        self
    }

    /// Wakes a key for a reason that no watch tells of.
    pub fn wake(&self, key: K) {
        self.line.wake(key);
    }
}

type Start = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// Some kinds, some controllers, and what they share.
pub struct Engine {
    client: kube::Client,
    name: String,
    clock: Clock,
    settings: Settings,
    metrics: Metrics,
    waits: Waits,
    recorder: Recorder,
    pump: EventPump,
    feeds: Vec<BoxFuture<'static, ()>>,
    synced: Vec<watch::Receiver<bool>>,
    listed: watch::Sender<bool>,
    controllers: Vec<Start>,
}

/// Tells when every kind of an engine has been listed: before that, what no cache has may be there all the same.
#[derive(Clone)]
pub struct Listed(watch::Receiver<bool>);

impl Listed {
    /// Waits until it is so; for ever, if the engine ends before.
    pub async fn wait(&mut self) {
        if self.0.wait_for(|listed| *listed).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Engine {
    /// An engine that writes as `name` (field manager, reporter of events).
    pub fn new(name: &str, client: kube::Client, clock: Clock, settings: Settings) -> Self {
        let metrics = Metrics::default();
        let (recorder, pump) = Recorder::new(name, client.clone(), clock.clone(), metrics.clone());
        Self {
            client,
            name: name.to_owned(),
            clock,
            settings,
            waits: Waits::new(metrics.clone()),
            metrics,
            recorder,
            pump,
            feeds: Vec::new(),
            synced: Vec::new(),
            listed: watch::Sender::new(false),
            controllers: Vec::new(),
        }
    }

    /// Watches a kind. Controllers of this engine share what it returns by cloning.
    pub fn objects<K>(&mut self, selection: Selection) -> Objects<K>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
    {
        let objects = Objects::new(self.client.clone(), &self.name);
        let (synced, is_synced) = watch::channel(false);
        let feed = Feed {
            cache: objects.cache().clone(),
            client: self.client.clone(),
            selection,
            settings: self.settings.feed,
            metrics: self.metrics.clone(),
            synced,
        };
        self.feeds.push(Box::pin(feed.run()));
        self.synced.push(is_synced);
        objects
    }

    /// Runs a controller with the engine's settings; what it returns says what wakes it.
    pub fn controller<C: Controller>(&mut self, controller: C) -> Wiring<C::Key> {
        self.controller_with(controller, self.settings)
    }

    /// Runs a controller with settings of its own.
    pub fn controller_with<C: Controller>(&mut self, controller: C, settings: Settings) -> Wiring<C::Key> {
        let line = Arc::new(Line {
            queue: Mutex::new(WorkQueue::new(settings.backoff, settings.gather)),
            changed: Notify::new(),
            metrics: self.metrics.line(C::NAME),
        });
        let passes = Passes {
            controller,
            line: line.clone(),
            clock: self.clock.clone(),
            settings,
            metrics: self.metrics.clone(),
            waits: self.waits.clone(),
            recorder: self.recorder.clone(),
            troubles: Mutex::default(),
        };
        self.controllers.push(Box::new(move |stop| Box::pin(run_controller(passes, stop))));
        Wiring { line }
    }

    /// What is counted.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Who waits for what.
    pub fn waits(&self) -> Waits {
        self.waits.clone()
    }

    /// Writes events.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Tells when everything has been listed, which is when controllers begin.
    pub fn listed(&self) -> Listed {
        Listed(self.listed.subscribe())
    }

    /// The clock that controllers are given the time from.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Runs until `stop`: then no key is taken up any more, and those being looked at are finished.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let stopping = CancellationToken::new();
        let feeds: FuturesUnordered<_> = self.feeds.into_iter().collect();
        let feeding = feeds.collect::<()>();
        let (synced, listed) = (self.synced, self.listed);
        let controllers: Vec<_> = self.controllers.into_iter().map(|start| start(stopping.clone())).collect();
        let controlling = async {
            // A decision on half a picture would take what is not there yet for gone.
            let all = futures::future::join_all(synced.into_iter().map(|mut synced| async move {
                let _ = synced.wait_for(|synced| *synced).await;
            }));
            tokio::select! {
                biased;
                () = stopping.cancelled() => return,
                _ = all => {}
            }
            listed.send_replace(true);
            controllers.into_iter().collect::<FuturesUnordered<_>>().collect::<()>().await;
            // Without a controller the caches are the point.
            stopping.cancelled().await;
        };
        let stop = async {
            stop.await;
            stopping.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = controlling => {}
            () = stop => {}
            () = async { futures::future::join(feeding, self.pump.run()).await; std::future::pending().await } => {}
        }
    }
}

async fn run_controller<C: Controller>(passes: Passes<C>, stop: CancellationToken) {
    let line = passes.line.clone();
    let passes = &passes;
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < passes.settings.keys_at_once && !stop.is_cancelled() {
            let Some(key) = line.take() else { break };
            running.push(async move {
                let ended = passes.pass(&key).await;
                (key, ended)
            });
        }
        if stop.is_cancelled() && running.is_empty() {
            return;
        }
        let free = running.len() < passes.settings.keys_at_once && !stop.is_cancelled();
        let due = line.queue.lock().next_due();
        tokio::select! {
            biased;
            Some((key, ended)) = running.next(), if !running.is_empty() => {
                line.queue.lock().done(&key, ended, Instant::now());
            }
            () = stop.cancelled(), if !stop.is_cancelled() => {}
            () = line.changed.notified(), if free => {}
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if free && due.is_some() => {}
        }
    }
}
