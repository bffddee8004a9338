//! The one port of a mirror: words go to the reception, bytes to the stream behind it, and whoever is fenced gets nowhere.

use crate::calls;
use crate::ground::Ground;
use crate::halt;
use crate::reception::Reception;
use crate::talk::{self, MAGIC, Shared};
use crate::words::Words as _;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Connections at once.
const GUESTS: usize = 1024;
/// How long keys are known before they are read again.
const FRESH: SignedDuration = SignedDuration::from_secs(5);
/// How long it is known that there are none.
const NOTHING_FRESH: SignedDuration = SignedDuration::from_secs(1);

/// Connections that carry bytes at this moment; clones are the same.
#[derive(Clone)]
pub struct Connections {
    open: Arc<Mutex<(u64, BTreeMap<u64, IpAddr>)>>,
    changed: watch::Sender<u64>,
}

impl Default for Connections {
    fn default() -> Self {
        Self { open: Arc::default(), changed: watch::Sender::new(0) }
    }
}

impl Connections {
    /// Whether any of them comes from an address that this holds for.
    pub fn any(&self, from: impl Fn(IpAddr) -> bool) -> bool {
        self.open.lock().1.values().any(|ip| from(*ip))
    }

    /// Makes every connection look whether it may still be there.
    pub fn look_again(&self) {
        self.changed.send_modify(|number| *number += 1);
    }

    /// Told after every change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn open(&self, ip: IpAddr) -> Guest {
        let mut open = self.open.lock();
        open.0 += 1;
        let number = open.0;
        open.1.insert(number, ip);
        Guest { number, of: self.clone() }
    }
}

struct Guest {
    number: u64,
    of: Connections,
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.of.open.lock().1.remove(&self.number);
        self.of.look_again();
    }
}

type Keys = Arc<tokio::sync::Mutex<Option<(Timestamp, Vec<(String, Shared)>)>>>;

/// Lets guests in.
#[derive(Clone)]
pub(crate) struct Door {
    pub ground: Ground,
    pub reception: Reception,
    pub connections: Connections,
    /// Where the stream listens, for this door only.
    pub inner: SocketAddr,
    pub keys: Keys,
}

impl Door {
    /// Serves until it is dropped; every connection ends with it.
    pub async fn run(self, listener: &TcpListener) {
        let guests = Arc::new(Semaphore::new(GUESTS));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let Ok(permit) = guests.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((socket, peer)) => {
                    let door = self.clone();
                    connections.spawn(async move {
                        if let Err(error) = door.serve(socket, peer.ip()).await {
                            tracing::debug!(%peer, error, "a guest was turned away");
                        }
                        drop(permit);
                    });
                }
                Err(error) => {
                    // No more open files, most likely: those that are open come to an end.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn serve(self, mut socket: TcpStream, ip: IpAddr) -> Result<(), String> {
        let lost = |error: std::io::Error| error.to_string();
        let within = self.ground.config.timing.handshake;
        let mut first = [0; 8];
        let read = tokio::time::timeout(within, socket.read_exact(&mut first)).await;
        read.map_err(|_| "it said nothing".to_owned())?.map_err(lost)?;
        if first == MAGIC {
            let keys = self.keys().await;
            let talking = talk::answer(&mut socket, &keys, |classes, key, request| {
                self.reception.answer(ip, classes, key, request)
            });
            return tokio::time::timeout(within + calls::READY_WITHIN * 2, talking)
                .await
                .map_err(|_| "it fell silent".to_owned())?;
        }
        let mut changes = self.connections.changes();
        let _guest = self.connections.open(ip);
        if let Some(fence) = halt::fenced(&self.ground.kinds, ip) {
            return Err(format!("it is cut off by NetworkFence {fence}"));
        }
        let mut inner = TcpStream::connect(self.inner).await.map_err(lost)?;
        inner.write_all(&first).await.map_err(lost)?;
        let carrying = copy_bidirectional(&mut socket, &mut inner);
        tokio::pin!(carrying);
        loop {
            tokio::select! {
                done = &mut carrying => return done.map(drop).map_err(lost),
                _ = changes.changed() => {
                    if let Some(fence) = halt::fenced(&self.ground.kinds, ip) {
                        return Err(format!("it is cut off by NetworkFence {fence}"));
                    }
                }
            }
        }
    }

    /// The keys of our classes, read when they are needed and forgotten soon after, so that strangers cannot keep the API server busy.
    async fn keys(&self) -> Vec<(String, Shared)> {
        let now = self.ground.clock.steady();
        let mut known = self.keys.lock().await;
        if let Some((read, keys)) = known.as_ref() {
            // Classes may only just have come.
            let fresh = if keys.is_empty() { NOTHING_FRESH } else { FRESH };
            if now.duration_since(*read) < fresh {
                return keys.clone();
            }
        }
        let mut keys = Vec::new();
        for class in self.ground.kinds.classes.all() {
            if !self.ground.kinds.is_ours(&class) {
                continue;
            }
            match calls::key(&self.ground.client, &class.spec.parameters).await {
                Ok((key, _)) => keys.push((class.name().to_owned(), key)),
                Err(failure) => tracing::debug!(class = class.name(), failure.message, "a class has no key"),
            }
        }
        *known = Some((now, keys.clone()));
        keys
    }
}
