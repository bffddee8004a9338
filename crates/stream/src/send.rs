//! The sending side: one call carries what has changed since the last one.

pub(crate) mod job;
pub(crate) mod sink;
mod work;

use std::net::SocketAddr;

use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::receive::StopOnDrop;
use crate::wire::handshake;
use crate::wire::link;
use crate::{Error, Key};
pub use job::{Changed, Job, Limits, Source};
use work::Work;

/// How far a sync has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Bytes of changed blocks so far.
    pub changed: u64,
    /// Bytes on the wire so far, in both directions.
    pub on_wire: u64,
    /// Steps that are safe on the other side.
    pub confirmed: u64,
}

/// A sync that came to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// What it started from; `None` for everything, or when the peer had all of it already.
    pub base: Option<String>,
    /// Bytes that crossed the wire in this connection, in both directions, without those of TCP itself.
    pub bytes_on_wire: u64,
    /// Bytes of blocks that changed.
    pub bytes_changed: u64,
    /// Files, links and special files of which anything was sent.
    pub files: u64,
    /// Entries that were removed, directories counted once.
    pub removed: u64,
    /// Entries of the tree, its root included; 1 for a device.
    pub entries: u64,
    /// Whether the peer had part of it from an earlier connection.
    pub resumed: bool,
    /// The token as the peer echoed it: the sync that carries it is safe there.
    pub token: Option<String>,
}

/// Carries the changes of a source to a peer. Returns once the peer has all of it on its disk, verified. Dropping the future stops the work;
/// another call for the same generation goes on where this one stopped.
///
/// # Errors
/// See [`Error`]; after [`Error::Link`] the same call may be made again.
pub async fn send(
    source: Source,
    peer: SocketAddr,
    key: &Key,
    job: Job,
    progress: watch::Sender<Sending>,
) -> Result<Sent, Error> {
    job.check()?;
    let within = job.limits.timing.handshake;
    let connecting = tokio::time::timeout(within, TcpStream::connect(peer)).await;
    let mut socket = connecting
        .map_err(|_| Error::Link(format!("no connection to {peer} in time")))?
        .map_err(|error| Error::Link(format!("connecting to {peer}: {error}")))?;
    let agreed = handshake::initiate(&mut socket, key, within).await?;
    let socket = socket.into_std().map_err(|error| Error::link(&error))?;
    let (reader, writer, shared) =
        link::split(socket, agreed.transport, job.limits.timing, job.limits.bytes_per_second)?;
    let stop = StopOnDrop(shared.clone());
    let pack = job.compress && agreed.capabilities & handshake::CAPABILITIES != 0;
    let limit = job.limits.within;
    let secret = key.block_secret(&job.destination);
    let work = Work { source, job, pack, secret, reader, writer, shared, progress };
    let working = tokio::task::spawn_blocking(move || work.run());
    let worked = match limit {
        Some(limit) => tokio::time::timeout(limit, working)
            .await
            .map_err(|_| Error::Link(format!("not done within {} s", limit.as_secs())))?,
        None => working.await,
    };
    drop(stop);
    worked.unwrap_or_else(|error| Err(Error::Invalid(format!("the work came to a bad end: {error}"))))
}
