//! A sender and a receiver, each with folders of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use lifeboat_stream::{
    Completed, Destination, Destinations, Error, Event, Job, Key, Place, Policy, Receiver, Sending, Sent,
    Source, Timing, Trust, send,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub const SECRET: &str = "tests:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

pub fn key() -> Key {
    Key::parse(SECRET).unwrap()
}

/// Short, so that tests of silence are short.
pub fn timing() -> Timing {
    Timing {
        keepalive: Duration::from_millis(500),
        silence: Duration::from_secs(10),
        handshake: Duration::from_secs(10),
    }
}

/// The receiving side.
pub struct Peer {
    pub folder: PathBuf,
    pub address: SocketAddr,
    pub destinations: Destinations,
    pub events: mpsc::UnboundedReceiver<Event>,
    running: JoinHandle<()>,
    copies: u32,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Peer {
    /// Listens, and expects changes for `vol` into an empty volume.
    pub async fn new(folder: &Path) -> Self {
        let mut peer = Self::without_destination(folder).await;
        std::fs::create_dir_all(peer.staging()).unwrap();
        peer.expect(None, |_| {});
        peer
    }

    pub async fn without_destination(folder: &Path) -> Self {
        Self::timed(folder, timing()).await
    }

    pub async fn timed(folder: &Path, timing: Timing) -> Self {
        let (receiver, destinations, events) =
            Receiver::bind("127.0.0.1:0".parse().unwrap(), timing).await.unwrap();
        let address = receiver.address().unwrap();
        let running = tokio::spawn(receiver.run());
        Self { folder: folder.to_owned(), address, destinations, events, running, copies: 0 }
    }

    pub fn staging(&self) -> PathBuf {
        self.folder.join(format!("staging-{}", self.copies))
    }

    /// Expects changes to a copy of `base`.
    pub fn expect(&mut self, base: Option<&str>, change: impl FnOnce(&mut Destination)) {
        let mut destination = Destination {
            id: "vol".into(),
            key: key(),
            epoch: 0,
            place: Place::Tree(self.staging()),
            base: base.map(str::to_owned),
            incarnation: format!("copy-{}", self.copies),
            state: self.folder.join("state"),
            policy: Policy::default(),
            checkpoint: lifeboat_stream::CHECKPOINT,
            terms: lifeboat_stream::Terms::default(),
        };
        change(&mut destination);
        self.destinations.register(destination).unwrap();
    }

    /// What an owner does after a sync: keeps what arrived, and gives the next sync a copy of it.
    pub fn publish(&mut self, generation: &str) {
        let published = self.staging();
        self.copies += 1;
        super::trees::copy(&published, &self.staging());
        self.expect(Some(generation), |_| {});
    }

    /// Waits for the end of a sync.
    pub async fn completed(&mut self) -> Completed {
        loop {
            match self.events.recv().await.unwrap() {
                Event::Completed(completed) => return completed,
                Event::Started { .. }
                | Event::Progress { .. }
                | Event::Failed { .. }
                | Event::Stranger { .. } => {}
                Event::Refused { refusal, .. } => panic!("{refusal}"),
            }
        }
    }
}

/// The usual sync of the tests: everything is compared at the end.
pub fn job(folder: &Path, generation: &str) -> Job {
    let cut = Timestamp::from_second(1_700_000_000).unwrap();
    let mut job = Job::new("vol", 1, generation, cut, folder.join("index"));
    job.limits.timing = timing();
    job.verify = true;
    job
}

pub fn tree(path: &Path) -> Source {
    Source::Tree { path: path.to_owned(), trust: Trust::Stamps }
}

pub async fn sync(source: Source, to: SocketAddr, job: Job) -> Result<Sent, Error> {
    send(source, to, &key(), job, watch::Sender::new(Sending::default())).await
}
