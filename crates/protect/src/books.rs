//! What is known about the stores, and the clerk who writes to them beside the controller: a slow or dead store never holds up a
//! decision, it is only not up to date. What is known is lost with the process; the first write afterwards finds most of it done.

use crate::ledger::{Ledger, LedgerError, Orphan, Reading, Record, Store, Tried, shape, substance};
use crate::mishaps::retry_at;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use lifeboat_engine::{Class, Clock, ObjectKey};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long one piece of work with a store may take.
const WITHIN: Duration = Duration::from_secs(200);

/// What is known about one store for one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreState {
    /// Substance and shape of the record it has.
    pub kept: Option<(String, String)>,
    /// When everything in it was last read back, and at which epoch.
    pub checked: Option<(jiff::Timestamp, i64)>,
    /// The shape that is being written, or `erase`, or `orphan`.
    pub busy: Option<String>,
    /// The last failure, until something works.
    pub failed: Option<Tried>,
    /// Whether the group's records are removed from it.
    pub erased: bool,
    /// Whether it says that the group was orphaned.
    pub orphaned: bool,
}

/// What was read over all stores, for one question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadState {
    /// Which question is being answered.
    pub busy: Option<String>,
    /// The last answer, the question it belongs to, and when it was given.
    pub answer: Option<(String, Reading, jiff::Timestamp)>,
}

#[derive(Debug, Default)]
struct Page {
    stores: BTreeMap<String, StoreState>,
    read: ReadState,
}

/// What is known about the stores, by group; clones see the same.
#[derive(Debug, Clone, Default)]
pub struct Books {
    pages: Arc<Mutex<BTreeMap<ObjectKey, Page>>>,
}

impl Books {
    /// What is known about each store.
    pub fn stores(&self, group: &ObjectKey) -> BTreeMap<String, StoreState> {
        self.pages.lock().get(group).map(|page| page.stores.clone()).unwrap_or_default()
    }

    /// What was read.
    pub fn read(&self, group: &ObjectKey) -> ReadState {
        self.pages.lock().get(group).map(|page| page.read.clone()).unwrap_or_default()
    }

    /// The group is gone.
    pub fn forget(&self, group: &ObjectKey) {
        self.pages.lock().remove(group);
    }

    fn note<T>(&self, group: &ObjectKey, change: impl FnOnce(&mut Page) -> T) -> T {
        change(self.pages.lock().entry(group.clone()).or_default())
    }
}

/// Work for the clerk.
enum Job {
    Keep { stores: Vec<Store>, record: Box<Record>, verify: bool },
    Erase { store: Store, cluster: String, fleet: Option<String>, epoch: i64 },
    Orphan { store: Store, fleet: Option<String>, orphan: Orphan },
    Read { stores: Vec<Store>, missing: Vec<(String, String)>, fleet: Option<String>, question: String },
}

/// Hands work to the clerk.
#[derive(Clone)]
pub struct Desk {
    books: Books,
    jobs: mpsc::UnboundedSender<(ObjectKey, Job)>,
}

impl Desk {
    /// A desk, and the clerk behind it who has to be run.
    pub fn new(ledger: Arc<dyn Ledger>, clock: Clock) -> (Self, Clerk) {
        let (jobs, taken) = mpsc::unbounded_channel();
        let books = Books::default();
        (Self { books: books.clone(), jobs }, Clerk { books, ledger, clock, jobs: taken })
    }

    /// What is known.
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// Has a record written to stores.
    pub fn keep(&self, group: &ObjectKey, mut stores: Vec<Store>, record: Record, verify: bool) {
        let wanted = shape(&record);
        self.books.note(group, |page| {
            stores.retain(|store| {
                let state = page.stores.entry(store.profile.name.clone()).or_default();
                let free = state.busy.is_none();
                state.busy.get_or_insert_with(|| wanted.clone());
                free
            });
        });
        if !stores.is_empty() {
            let job = Job::Keep { stores, record: Box::new(record), verify };
            let _ = self.jobs.send((group.clone(), job));
        }
    }

    /// Has the records of a group removed from one store.
    pub fn erase(&self, group: &ObjectKey, store: Store, cluster: String, fleet: Option<String>, epoch: i64) {
        if self.begins(group, &store, "erase") {
            let _ = self.jobs.send((group.clone(), Job::Erase { store, cluster, fleet, epoch }));
        }
    }

    /// Has one store say that a group was orphaned.
    pub fn orphan(&self, group: &ObjectKey, store: Store, fleet: Option<String>, orphan: Orphan) {
        if self.begins(group, &store, "orphan") {
            let _ = self.jobs.send((group.clone(), Job::Orphan { store, fleet, orphan }));
        }
    }

    fn begins(&self, group: &ObjectKey, store: &Store, what: &str) -> bool {
        self.books.note(group, |page| {
            let state = page.stores.entry(store.profile.name.clone()).or_default();
            let begins = state.busy.is_none();
            state.busy.get_or_insert_with(|| what.to_owned());
            begins
        })
    }

    /// A store that cannot even be asked, for want of its keys.
    pub fn cannot(&self, group: &ObjectKey, store: &str, record: &Record, why: String, now: jiff::Timestamp) {
        let failed = Err(LedgerError::Failed(why));
        let wanted = Goal::kept(record, false);
        self.books.note(group, |page| ended(page, store, wanted, failed, now));
    }

    /// Has all stores read; `missing` are those that cannot even be asked, with the reason.
    pub fn read(
        &self,
        group: &ObjectKey,
        stores: Vec<Store>,
        missing: Vec<(String, String)>,
        fleet: Option<String>,
        question: String,
    ) {
        let begun = self.books.note(group, |page| {
            let begun = page.read.busy.is_none();
            page.read.busy.get_or_insert_with(|| question.clone());
            begun
        });
        if begun {
            let _ = self.jobs.send((group.clone(), Job::Read { stores, missing, fleet, question }));
        }
    }
}

/// Does the work that is handed over at the desk.
pub struct Clerk {
    books: Books,
    ledger: Arc<dyn Ledger>,
    clock: Clock,
    jobs: mpsc::UnboundedReceiver<(ObjectKey, Job)>,
}

impl Clerk {
    /// Works for ever, on everything at once, and says whose work is done.
    pub async fn run(mut self, done: impl Fn(ObjectKey)) {
        let (books, ledger, clock) = (self.books, self.ledger, self.clock);
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(group) = running.next(), if !running.is_empty() => done(group),
                job = self.jobs.recv() => match job {
                    Some((group, job)) => running.push(work(&books, &*ledger, &clock, group, job)),
                    // Nobody is left who could hand anything over.
                    None => std::future::pending().await,
                },
            }
        }
    }
}

async fn work(books: &Books, ledger: &dyn Ledger, clock: &Clock, group: ObjectKey, job: Job) -> ObjectKey {
    let late = || LedgerError::Failed(format!("the store did not answer within {} s", WITHIN.as_secs()));
    match job {
        Job::Keep { stores, record, verify } => {
            let tried = tokio::time::timeout(WITHIN, ledger.keep(&stores, &group, &record, verify)).await;
            let mut results = tried.unwrap_or_default();
            let wanted = Goal::kept(&record, verify);
            let now = clock.now();
            for store in &stores {
                let name = &store.profile.name;
                let result = results.remove(name).unwrap_or_else(|| Err(late()));
                books.note(&group, |page| ended(page, name, wanted.clone(), result, now));
            }
        }
        Job::Erase { store, cluster, fleet, epoch } => {
            let erase = ledger.erase(&store, &group, &cluster, fleet.as_deref(), epoch);
            let tried = tokio::time::timeout(WITHIN, erase).await;
            let result = tried.unwrap_or_else(|_| Err(late()));
            let now = clock.now();
            books.note(&group, |page| ended(page, &store.profile.name, Goal::Erased, result, now));
        }
        Job::Orphan { store, fleet, orphan } => {
            let mark = ledger.orphan(&store, &group, fleet.as_deref(), &orphan);
            let tried = tokio::time::timeout(WITHIN, mark).await;
            let result = tried.unwrap_or_else(|_| Err(late()));
            let now = clock.now();
            books.note(&group, |page| ended(page, &store.profile.name, Goal::Orphaned, result, now));
        }
        Job::Read { stores, missing, fleet, question } => {
            let read = tokio::time::timeout(WITHIN, ledger.read(&stores, &group, fleet.as_deref())).await;
            let mut reading = read.unwrap_or_else(|_| Reading {
                stores: stores
                    .iter()
                    .map(|store| (store.profile.name.clone(), Err(late().to_string())))
                    .collect(),
                ..Reading::default()
            });
            reading.stores.extend(missing.into_iter().map(|(name, why)| (name, Err(why))));
            let now = clock.now();
            books.note(&group, |page| {
                page.read.busy = None;
                page.read.answer = Some((question, reading, now));
            });
        }
    }
    group
}

/// What a store was asked for.
#[derive(Debug, Clone)]
enum Goal {
    /// To keep a record.
    Kept {
        substance: String,
        shape: String,
        /// The epoch at which everything is read back, where it is.
        verified: Option<i64>,
    },
    /// To remove the records.
    Erased,
    /// To say that the group was orphaned.
    Orphaned,
}

impl Goal {
    fn kept(record: &Record, verify: bool) -> Self {
        let verified = verify.then_some(record.epoch);
        Self::Kept { substance: substance(record), shape: shape(record), verified }
    }
}

/// Notes how a try at a store ended.
fn ended(page: &mut Page, store: &str, goal: Goal, result: Result<(), LedgerError>, now: jiff::Timestamp) {
    let state = page.stores.entry(store.to_owned()).or_default();
    state.busy = None;
    match result {
        Ok(()) => {
            state.failed = None;
            match goal {
                Goal::Kept { substance, shape, verified } => {
                    state.kept = Some((substance, shape));
                    state.checked = verified.map(|epoch| (now, epoch)).or(state.checked);
                }
                Goal::Erased => (state.erased, state.kept) = (true, None),
                Goal::Orphaned => state.orphaned = true,
            }
        }
        Err(why) => {
            let tries = state.failed.as_ref().map_or(1, |failed| failed.tries + 1);
            let since = state.failed.as_ref().map_or(now, |failed| failed.since);
            let substance = match goal {
                Goal::Kept { substance, .. } => substance,
                Goal::Erased | Goal::Orphaned => String::new(),
            };
            let retry_at = retry_at(now, tries, Class::Transient);
            state.failed = Some(Tried { substance, why, since, retry_at, tries });
        }
    }
}
