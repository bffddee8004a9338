//! The receiving side: one listener for many volumes, each with a key, an epoch and a staging volume of its own.
//!
//! A sync is applied to the staging volume only. When it is whole, verified and on the disk, the owner is told with [`Event::Completed`]; publishing it
//! (a snapshot, a rename) and registering the next staging volume is the owner's. What was completed and not yet published is told
//! again after a restart.

pub(crate) mod decide;
pub(crate) mod journal;
pub(crate) mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedMutexGuard, Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::apply::{Place, Policy};
use crate::error::Refusal;
use crate::wire::handshake;
use crate::wire::link::{self, Done, Shared, Timing};
use crate::wire::record::{Answer, Hello, MOST_DATA, encode};
use crate::{Error, Key};
use journal::{Complete, Journal};
use session::{Ends, Ran, Session};

/// A volume that changes are expected for.
#[derive(Clone, Debug)]
pub struct Destination {
    /// What senders call it.
    pub id: String,
    /// The key that its senders hold.
    pub key: Key,
    /// A lower epoch is refused, and so is one below the highest that this destination has ever seen.
    pub epoch: u64,
    /// The staging volume: a writable copy of the last good generation, or an empty one; never the live volume.
    pub place: Place,
    /// The generation that it is a copy of; `None` for an empty volume.
    pub base: Option<String>,
    /// A name for this very copy. It must be another whenever the staging volume is made anew.
    pub incarnation: String,
    /// A folder of its own, which outlives staging volumes: how far a sync has come, and the highest epoch.
    pub state: PathBuf,
    /// What a sender may make.
    pub policy: Policy,
    /// After this many bytes, what was applied is made safe, so that a cut link costs no more than this.
    pub checkpoint: u64,
    /// What a copy needs besides.
    pub terms: Terms,
}

/// What a copy needs besides a key and an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Where it is set, a sender hears that its copy is done only once [`Destinations::published`] was called. It is kept on the line for so
    /// long, and asks again later.
    pub publishes: Option<Duration>,
    /// The volume that the complete copy here descends from. A copy of another one is refused.
    pub lineage: Option<String>,
    /// The lineage that may take its place.
    pub accepts: Option<String>,
}

/// Bytes between two checkpoints, unless the owner says otherwise.
pub const CHECKPOINT: u64 = 256 << 20;

impl Destination {
    fn is_device(&self) -> bool {
        matches!(self.place, Place::Device(_))
    }
}

/// How far a sync has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of changed blocks.
    pub bytes: u64,
    /// Steps.
    pub records: u64,
}

/// What a receiver tells its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A sync began, or went on.
    Started {
        /// The destination's id.
        destination: String,
        /// What is being received.
        generation: String,
        /// What it starts from; `None` for everything.
        base: Option<String>,
        /// Whether part of it was there already.
        resumed: bool,
    },
    /// A sync moves.
    Progress {
        /// The destination's id.
        destination: String,
        /// How far it has come.
        progress: Progress,
    },
    /// The staging volume holds the whole generation. May come again for the same generation.
    Completed(Completed),
    /// Somebody showed a key that no destination has: one of theirs may have been changed since it was registered. Told once in a while, however many
    /// come.
    Stranger {
        /// From where.
        peer: SocketAddr,
    },
    /// Somebody was turned away. Who did not show a key at all is not worth an event.
    Refused {
        /// What it asked for.
        destination: String,
        /// From where.
        peer: SocketAddr,
        /// Why.
        refusal: Refusal,
    },
    /// A sync was cut off; it goes on when the sender comes again.
    Failed {
        /// The destination's id.
        destination: String,
        /// Why, for people.
        error: String,
    },
}

/// A generation that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The destination's id.
    pub destination: String,
    /// The incarnation of the staging volume that holds it.
    pub incarnation: String,
    /// What arrived.
    pub generation: String,
    /// What it started from.
    pub base: Option<String>,
    /// The sender's epoch.
    pub epoch: u64,
    /// When the source was cut, by the sender's clock: what was written later is not in it.
    pub cut: Timestamp,
    /// The token of a manual or final sync, if the source was cut after it was given.
    pub token: Option<String>,
    /// Bytes of changed blocks in the last connection.
    pub bytes: u64,
    /// Entries of the tree, its root included; 1 for a device.
    pub entries: u64,
    /// Device nodes that were left out.
    pub skipped: u64,
    /// Whether the whole copy was read and compared.
    pub verified: bool,
    /// The volume that the source descends from, where the sender says it.
    pub lineage: Option<String>,
    /// Why the copy may show different moments, where it may.
    pub fuzzy: Option<String>,
}

impl Completed {
    /// What an earlier process completed in this copy of a volume, and nobody may have published yet.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn left(destination: &str, incarnation: &str, state: &Path) -> Result<Option<Self>, Error> {
        let journal = Journal::read(state)?.filter(|journal| journal.incarnation == incarnation);
        let told = journal
            .and_then(|journal| Some(Event::completed(destination, &journal, journal.complete.as_ref()?)));
        Ok(told.and_then(|event| match event {
            Event::Completed(completed) => Some(completed),
            _ => None,
        }))
    }
}

impl Event {
    fn completed(destination: &str, journal: &Journal, done: &Complete) -> Self {
        Self::Completed(Completed {
            destination: destination.to_owned(),
            incarnation: journal.incarnation.clone(),
            generation: journal.generation.clone(),
            base: journal.base.clone(),
            epoch: journal.epoch,
            cut: Timestamp::new(done.cut.0, done.cut.1).unwrap_or(Timestamp::UNIX_EPOCH),
            token: done.token.clone(),
            bytes: done.bytes,
            entries: done.entries,
            skipped: done.skipped,
            verified: done.verified,
            lineage: journal.more.lineage.clone(),
            fuzzy: journal.more.fuzzy.clone(),
        })
    }
}

/// Listens for senders.
pub struct Receiver {
    listener: TcpListener,
    timing: Timing,
    destinations: Destinations,
}

/// The volumes that changes are expected for; clones are the same.
#[derive(Clone)]
pub struct Destinations {
    slots: Arc<Mutex<BTreeMap<String, Arc<Slot>>>>,
    /// Short names with what they stand for.
    aliases: Arc<Mutex<BTreeSet<(String, String)>>>,
    events: mpsc::UnboundedSender<Event>,
    /// When a stranger was last told of.
    stranger: Arc<Mutex<Option<Instant>>>,
}

/// How often a stranger is told of at most.
const STRANGER_EVERY: Duration = Duration::from_secs(1);

struct Slot {
    destination: Destination,
    /// Held by the connection that applies to it.
    busy: Arc<tokio::sync::Mutex<()>>,
    link: Mutex<Option<Arc<Shared>>>,
    /// Set once the owner has published what was completed in it.
    published: Done,
}

/// Connections that have not shown a key yet, at once.
const STRANGERS: usize = 256;

impl Receiver {
    /// Binds a listener. Nothing is accepted before [`Receiver::run`].
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn bind(
        address: SocketAddr,
        timing: Timing,
    ) -> Result<(Self, Destinations, mpsc::UnboundedReceiver<Event>), Error> {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| Error::Invalid(format!("listening on {address}: {error}")))?;
        let (events, told) = mpsc::unbounded_channel();
        let destinations =
            Destinations { slots: Arc::default(), aliases: Arc::default(), events, stranger: Arc::default() };
        Ok((Self { listener, timing, destinations: destinations.clone() }, destinations, told))
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(|error| Error::link(&error))
    }

    /// Serves senders until it is dropped; every connection ends with it.
    pub async fn run(self) {
        let strangers = Arc::new(Semaphore::new(STRANGERS));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let Ok(permit) = Arc::clone(&strangers).acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((socket, peer)) => {
                    let (destinations, timing) = (self.destinations.clone(), self.timing);
                    connections.spawn(async move { destinations.serve(socket, peer, timing, permit).await });
                }
                Err(error) => {
                    // No more open files, most likely: those that are open come to an end.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

impl Destinations {
    /// Expects changes. What was completed before and not published since is told again.
    ///
    /// # Errors
    /// When its state cannot be read, or a sync into a destination of this name is under way: [`Destinations::remove`] it first.
    pub fn register(&self, destination: Destination) -> Result<(), Error> {
        std::fs::create_dir_all(&destination.state)
            .map_err(|error| Error::target("making", &destination.state, crate::error::errno(&error)))?;
        // Fails closed: without its memory, a destination does not know which epochs are over.
        journal::raise_epoch(&destination.state, destination.epoch)?;
        let told = Journal::read(&destination.state)?
            .filter(|journal| journal.incarnation == destination.incarnation)
            .and_then(|journal| {
                Some(Event::completed(&destination.id, &journal, journal.complete.as_ref()?))
            });
        let mut slots = self.slots.lock();
        if slots.get(&destination.id).is_some_and(|slot| slot.busy.try_lock().is_err()) {
            return Err(Error::Refused(Refusal::Busy));
        }
        let slot =
            Slot { destination, busy: Arc::default(), link: Mutex::default(), published: Done::default() };
        slots.insert(slot.destination.id.clone(), Arc::new(slot));
        if let Some(event) = told {
            self.tell(event);
        }
        Ok(())
    }

    /// Lets senders that do not know the whole name of a destination call it by a short one, until it is removed. A name that could
    /// mean two destinations means none.
    pub fn alias(&self, id: &str, alias: &str) {
        self.aliases.lock().insert((alias.to_owned(), id.to_owned()));
    }

    /// The destination that a sender means.
    fn meant(&self, called: String) -> String {
        if self.slots.lock().contains_key(&called) {
            return called;
        }
        let aliases = self.aliases.lock();
        let mut meant = aliases.iter().filter(|(alias, _)| *alias == called).map(|(_, id)| id);
        match (meant.next(), meant.next()) {
            (Some(id), None) => id.clone(),
            _ => called,
        }
    }

    /// Stops expecting changes. When it returns, nothing writes to the staging volume any more.
    pub async fn remove(&self, id: &str) {
        let slot = self.slots.lock().remove(id);
        self.aliases.lock().retain(|(_, of)| of != id);
        if let Some(slot) = slot {
            if let Some(link) = slot.link.lock().as_ref() {
                link.stop();
            }
            let _ended = slot.busy.lock().await;
        }
    }

    /// Says that what was completed in a copy of a volume is published: its sender may count on it.
    pub async fn published(&self, id: &str, incarnation: &str) {
        let of = |slots: &BTreeMap<String, Arc<Slot>>| {
            slots.get(id).filter(|slot| slot.destination.incarnation == incarnation).cloned()
        };
        let slot = of(&self.slots.lock());
        if let Some(slot) = slot {
            slot.published.set();
            // Whoever waits on the line is told before the owner goes on. One that did not hear it asks again.
            let _told = tokio::time::timeout(Duration::from_secs(1), slot.busy.lock()).await;
        }
    }

    fn tell(&self, event: Event) {
        // Nobody listens any more when the owner goes down.
        let _ = self.events.send(event);
    }

    /// Which of the keys was meant.
    fn key(&self, nonce: &[u8; 16], hint: &[u8; 16]) -> Option<Key> {
        let slots = self.slots.lock();
        let mut keys = slots.values().map(|slot| &slot.destination.key);
        keys.find(|key| key.hint(nonce) == *hint).cloned()
    }

    /// Whether a destination is registered with this key.
    pub fn has_key(&self, id: &str, key: &Key) -> bool {
        self.slots.lock().get(id).is_some_and(|slot| slot.destination.key == *key)
    }

    fn tell_of_stranger(&self, peer: SocketAddr) {
        let mut last = self.stranger.lock();
        if last.is_none_or(|last| last.elapsed() >= STRANGER_EVERY) {
            *last = Some(Instant::now());
            self.tell(Event::Stranger { peer });
        }
    }

    async fn serve(
        self,
        mut socket: TcpStream,
        peer: SocketAddr,
        timing: Timing,
        permit: tokio::sync::OwnedSemaphorePermit,
    ) {
        let meant = |nonce: &[u8; 16], hint: &[u8; 16]| {
            let key = self.key(nonce, hint);
            if key.is_none() {
                self.tell_of_stranger(peer);
            }
            key
        };
        let agreed = handshake::respond(&mut socket, meant, timing.handshake).await;
        drop(permit);
        let (agreed, key) = match agreed {
            Ok(agreed) => agreed,
            Err(error) => return tracing::debug!(%peer, %error, "a stranger was turned away"),
        };
        let ends = socket
            .into_std()
            .map_err(|error| Error::link(&error))
            .and_then(|socket| link::split(socket, agreed.transport, timing, None));
        let Ok((reader, writer, shared)) = ends else { return };
        let stop = StopOnDrop(Arc::clone(&shared));
        let ends = Ends { reader, writer, shared };
        let work = tokio::task::spawn_blocking(move || self.converse(ends, &key, peer, timing));
        if let Err(error) = work.await {
            tracing::error!(%peer, %error, "a connection came to a bad end");
        }
        drop(stop);
    }

    /// Everything after the handshake. Blocks.
    fn converse(&self, mut ends: Ends, key: &Key, peer: SocketAddr, timing: Timing) {
        let hello = match ends.hello() {
            Ok(hello) => Hello { destination: self.meant(hello.destination.clone()), ..hello },
            // A handshake that was recorded and played again ends here: its player cannot say a word.
            Err(error) => return tracing::debug!(%peer, %error, "nothing sensible was said"),
        };
        let mut alive = Vec::new();
        let done = Done::default();
        let outcome = encode(&Answer::Alive, &mut alive).and_then(|()| {
            let writer = ends.writer.clone();
            std::thread::scope(|scope| {
                scope.spawn(|| writer.keep_alive(&alive, timing.keepalive, &done));
                let outcome =
                    self.claim(&hello.destination, key, &ends.shared).and_then(|(slot, claimed)| {
                        let tell = |event| self.tell(event);
                        let mut session = Session {
                            ends: &mut ends,
                            destination: &slot.destination,
                            hello: &hello,
                            tell: &tell,
                        };
                        let outcome = session.run();
                        if let Ok(Ran { event, owed: Some(token) }) = outcome {
                            event.into_iter().for_each(tell);
                            owe(&mut ends, &slot, hello.more.waits, token, claimed);
                            return Ok(None);
                        }
                        *slot.link.lock() = None;
                        drop(claimed);
                        outcome.map(|ran| ran.event)
                    });
                done.set();
                outcome
            })
        });
        let error = match outcome {
            Ok(event) => {
                event.into_iter().for_each(|event| self.tell(event));
                return ends.linger();
            }
            Err(error) => error,
        };
        let destination = hello.destination;
        tracing::info!(destination, %peer, %error, "a sync was not completed");
        let refusal = error.as_refusal();
        let broken = matches!(error, Error::Link(_) | Error::Stopped | Error::Untrusted(_));
        let told = !broken && ends.answer(&Answer::Refused(refusal.clone())).is_ok();
        match error {
            Error::Refused(_) | Error::Damaged(_) | Error::NoRoom(_) => {
                self.tell(Event::Refused { destination, peer, refusal });
            }
            error => self.tell(Event::Failed { destination, error: error.to_string() }),
        }
        if told {
            ends.linger();
        }
    }

    /// Takes a destination for one connection.
    fn claim(
        &self,
        id: &str,
        key: &Key,
        shared: &Arc<Shared>,
    ) -> Result<(Arc<Slot>, OwnedMutexGuard<()>), Error> {
        let slots = self.slots.lock();
        // A key opens its own destinations only.
        let slot = slots.get(id).filter(|slot| slot.destination.key == *key);
        let slot = slot.cloned().ok_or(Error::Refused(Refusal::UnknownDestination))?;
        let busy = Arc::clone(&slot.busy).try_lock_owned();
        let claimed = busy.map_err(|_| Error::Refused(Refusal::Busy))?;
        *slot.link.lock() = Some(Arc::clone(shared));
        Ok((slot, claimed))
    }
}

/// How often it is looked whether a sender that waits has hung up.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Keeps a sender on the line until its copy is published, and tells it so. One that does not hear it asks again.
fn owe(ends: &mut Ends, slot: &Slot, waits: bool, token: Option<String>, claimed: OwnedMutexGuard<()>) {
    let (began, hung_up) = (Instant::now(), AtomicBool::new(false));
    // A sender that does not know of publishing waits as long as it takes.
    let patience = slot.destination.terms.publishes.filter(|_| waits);
    let Ends { reader, writer, .. } = ends;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut frame = Vec::new();
            while reader.read(&mut frame).is_ok() {}
            hung_up.store(true, Ordering::Release);
        });
        let answer = loop {
            if slot.published.wait(LOOK_EVERY) {
                break Some(Answer::Finished { token });
            }
            if hung_up.load(Ordering::Acquire) {
                break None;
            }
            if patience.is_some_and(|patience| began.elapsed() >= patience) {
                let journal = Journal::read(&slot.destination.state).ok().flatten();
                let generation = journal.map(|journal| journal.generation).unwrap_or_default();
                break Some(Answer::Refused(Refusal::Publishing(generation)));
            }
        };
        if let Some(answer) = answer {
            let said = writer.push(MOST_DATA, |frame| encode(&answer, frame)).and_then(|()| writer.flush());
            if let Err(error) = said {
                tracing::debug!(%error, "the sender did not hear what became of its copy");
            }
        }
        *slot.link.lock() = None;
        drop(claimed);
    });
}

/// Ends a link with the future that owns it.
pub(crate) struct StopOnDrop(pub(crate) Arc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
