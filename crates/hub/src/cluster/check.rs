//! Whether a store can be used: an object is written, listed, read back and removed, beside the controller and not in it, so that a store that
//! does not answer holds up nothing else. What is known is lost with the process; a new one asks again.

use super::settings::Profile;
use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::conditions::drcluster;
use lifeboat_engine::{Backoff, Clock};
use lifeboat_store::{Error, Objects, S3Store, Secret, Store, certificates};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long one try may take.
const WITHIN: Duration = Duration::from_secs(60);
/// Pauses between tries of a store that fails.
const PAUSES: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(300) };
/// What the keys of tried objects begin with; no record of an application has only two parts.
const PREFIX: &str = "lifeboat-check/";

/// Why a store cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The word that the condition gives.
    pub reason: String,
    /// What happened and what to do, without a secret.
    pub sentence: String,
}

impl Failure {
    /// A store that cannot even be asked.
    pub fn unasked(sentence: impl Into<String>) -> Self {
        Self { reason: drcluster::REASON_S3_CONNECTION_FAILED.to_owned(), sentence: sentence.into() }
    }
}

/// A store and the keys to it.
#[derive(Clone)]
pub struct Opening {
    /// Where it is.
    pub profile: Profile,
    /// The access key.
    pub access_key: Secret,
    /// The secret key.
    pub secret_key: Secret,
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opening({})", self.profile.name)
    }
}

/// Tries stores; tests bring one that dies on the way.
#[async_trait]
pub trait Prover: Send + Sync + 'static {
    /// Writes, lists, reads back and removes an object.
    async fn prove(&self, store: &Opening, key: &str, content: Bytes) -> Result<(), Failure>;
}

/// Stores behind the S3 protocol, or directories (`file:///…`).
pub struct Buckets;

#[async_trait]
impl Prover for Buckets {
    async fn prove(&self, store: &Opening, key: &str, content: Bytes) -> Result<(), Failure> {
        let objects = open(store)?;
        let failed =
            |error: Error| failure(&store.profile.name, &error, drcluster::REASON_S3_CONNECTION_FAILED);
        objects.put(key, content.clone()).await.map_err(failed)?;
        let unlisted = |error: Error| failure(&store.profile.name, &error, drcluster::REASON_S3_LIST_FAILED);
        let listed = objects.list(PREFIX).await.map_err(unlisted)?;
        if !listed.iter().any(|entry| entry.key == key) {
            return Err(Failure {
                reason: drcluster::REASON_S3_LIST_FAILED.to_owned(),
                sentence: format!(
                    "the store {} does not list what was just written to it",
                    store.profile.name
                ),
            });
        }
        if objects.get(key).await.map_err(failed)? != content {
            return Err(Failure::unasked(format!(
                "the store {} gives back other bytes than were written to it",
                store.profile.name
            )));
        }
        match objects.delete(key).await {
            // Keys that may add and not remove are a good choice.
            Ok(()) | Err(Error::Denied { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}

fn failure(profile: &str, error: &Error, reason: &str) -> Failure {
    let reason =
        if matches!(error, Error::NoStore { .. }) { drcluster::REASON_S3_BUCKET_NOT_FOUND } else { reason };
    Failure { reason: reason.to_owned(), sentence: format!("the store {profile} cannot be used: {error}") }
}

fn open(store: &Opening) -> Result<Objects, Failure> {
    let profile = &store.profile;
    let failed = |error: Error| failure(&profile.name, &error, drcluster::REASON_S3_CONNECTION_FAILED);
    if let Some(folder) = profile.endpoint.strip_prefix("file://") {
        return Objects::open(&Store::Local(PathBuf::from(folder).join(&profile.bucket))).map_err(failed);
    }
    let bad = |why| Failure::unasked(format!("the store {} cannot be opened: {why}", profile.name));
    let ca_bundle = certificates(profile.ca_certificates.as_deref()).map_err(bad)?;
    let bucket = S3Store {
        endpoint: profile.endpoint.clone(),
        bucket: profile.bucket.clone(),
        region: profile.region.clone(),
        access_key: store.access_key.clone(),
        secret_key: store.secret_key.clone(),
        ca_bundle,
        ..S3Store::default()
    };
    Objects::open(&Store::S3(bucket)).map_err(failed)
}

/// The last answer about a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What was asked: which store, with which version of its keys.
    pub question: String,
    /// What came of it.
    pub outcome: Result<(), Failure>,
    /// When it may be tried again.
    pub retry_at: Timestamp,
    /// How often it failed in a row.
    pub tries: u32,
}

/// What is known about a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckState {
    /// The question that is being answered.
    pub busy: Option<String>,
    /// The last answer.
    pub answer: Option<Answer>,
}

struct Job {
    cluster: String,
    question: String,
    store: Opening,
}

/// Hands stores to the clerk and knows what came of it; clones share both.
#[derive(Clone)]
pub struct Desk {
    known: Arc<Mutex<BTreeMap<String, CheckState>>>,
    jobs: mpsc::UnboundedSender<Job>,
    clock: Clock,
}

impl Desk {
    /// A desk, and the clerk behind it who has to be run.
    pub fn new(prover: Arc<dyn Prover>, clock: Clock) -> (Self, Clerk) {
        let (jobs, taken) = mpsc::unbounded_channel();
        let desk = Self { known: Arc::default(), jobs, clock };
        (desk.clone(), Clerk { desk, prover, jobs: taken })
    }

    /// What is known about the store of a cluster.
    pub fn of(&self, cluster: &str) -> CheckState {
        self.known.lock().get(cluster).cloned().unwrap_or_default()
    }

    /// The cluster is gone.
    pub fn forget(&self, cluster: &str) {
        self.known.lock().remove(cluster);
    }

    /// Has a store tried, unless that is being done.
    pub fn ask(&self, cluster: &str, question: String, store: Opening) {
        let mut known = self.known.lock();
        let state = known.entry(cluster.to_owned()).or_default();
        if state.busy.is_none() {
            state.busy = Some(question.clone());
            let _ = self.jobs.send(Job { cluster: cluster.to_owned(), question, store });
        }
    }

    /// Notes what came of a try.
    pub fn answer(&self, cluster: &str, question: String, outcome: Result<(), Failure>) {
        let mut known = self.known.lock();
        let state = known.entry(cluster.to_owned()).or_default();
        state.busy = None;
        let before = state.answer.take().filter(|before| before.question == question);
        let tries = match (&outcome, &before) {
            (Ok(()), _) => 0,
            (Err(_), before) => before.as_ref().map_or(0, |before| before.tries) + 1,
        };
        // The same failure in other words is no news: a status that is written anew with each try tells nobody anything.
        let outcome = match (outcome, before.map(|before| before.outcome)) {
            (Err(now), Some(Err(then))) if now.reason == then.reason => Err(then),
            (outcome, _) => outcome,
        };
        let pause = SignedDuration::try_from(PAUSES.after(tries.max(1))).unwrap_or(SignedDuration::MAX);
        let retry_at = self.clock.now().checked_add(pause).unwrap_or(Timestamp::MAX);
        state.answer = Some(Answer { question, outcome, retry_at, tries });
    }
}

/// Tries the stores that are handed over at the desk.
pub struct Clerk {
    desk: Desk,
    prover: Arc<dyn Prover>,
    jobs: mpsc::UnboundedReceiver<Job>,
}

impl Clerk {
    /// Works for ever, on everything at once, and says whose store was tried.
    pub async fn run(mut self, done: impl Fn(String)) {
        let (desk, prover) = (&self.desk, &*self.prover);
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(cluster) = running.next(), if !running.is_empty() => done(cluster),
                Some(job) = self.jobs.recv() => running.push(work(desk, prover, job)),
            }
        }
    }
}

async fn work(desk: &Desk, prover: &dyn Prover, job: Job) -> String {
    let Job { cluster, question, store } = job;
    let key = format!("{PREFIX}{cluster}");
    let content = Bytes::from(format!("{cluster} {}", desk.clock.now()));
    let tried = tokio::time::timeout(WITHIN, prover.prove(&store, &key, content)).await;
    let late = || {
        let name = &store.profile.name;
        Err(Failure::unasked(format!("the store {name} did not answer within {} s", WITHIN.as_secs())))
    };
    desk.answer(&cluster, question, tried.unwrap_or_else(|_| late()));
    cluster
}
