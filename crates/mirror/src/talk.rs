//! What two mirrors say to each other before bytes flow: which volume is whose, who is primary at which epoch.
//!
//! One question and one answer under a Noise handshake with the pre-shared key of the replication class. It comes in by the same port as
//! the bytes and is told apart by its first word. Who does not hold the key gets silence.

use crate::copies::Image;
use lifeboat_stream::Key;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The first word of a conversation; the stream's own connections begin with chance.
pub const MAGIC: [u8; 8] = *b"LBMIRROR";
const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_BLAKE2s";
/// An ephemeral key and a tag.
const HANDSHAKE: usize = 48;
/// Most bytes of a question or an answer.
const LONGEST: usize = 16 << 10;
const TAG: usize = 16;

/// Why a conversation came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TalkError {
    /// Nobody answers there.
    #[error("the mirror at {0} does not answer: {1}")]
    Link(SocketAddr, String),
    /// Somebody is there and does not hold the key.
    #[error(
        "the mirror at {0} does not hold the same key: compare the secrets of both clusters' replication classes"
    )]
    Untrusted(SocketAddr),
    /// What was said makes no sense.
    #[error("the mirror at {0} speaks another language: {1}")]
    Protocol(SocketAddr, String),
}

/// A key as both kinds of connection use it. Prints as dots.
#[derive(Clone, PartialEq, Eq)]
pub struct Shared {
    /// For the bytes.
    pub stream: Key,
    talk: [u8; 32],
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared(••••)")
    }
}

impl Shared {
    /// Reads the one line of a `psk.txt`.
    ///
    /// # Errors
    /// When it is no key; the error does not show it.
    pub fn parse(text: &str) -> Result<Self, lifeboat_stream::Error> {
        let stream = Key::parse(text)?;
        let line = text.trim();
        let line = line
            .split_once(':')
            .map_or_else(|| line.to_owned(), |(id, hex)| format!("{id}:{}", hex.to_lowercase()));
        let talk = blake3::derive_key("lifeboat mirror v1 pre-shared key", line.as_bytes());
        Ok(Self { stream, talk })
    }

    fn hint(&self, nonce: &[u8]) -> [u8; 16] {
        let key = blake3::derive_key("lifeboat mirror v1 hint", &self.talk);
        let mut hint = [0; 16];
        hint.copy_from_slice(&blake3::keyed_hash(&key, nonce).as_bytes()[..16]);
        hint
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Changes of a volume are about to come.
    Offer(Offer),
    /// What is a volume over there?
    Ask(Ask),
}

/// A volume whose changes are about to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The sender's id of it.
    pub theirs: String,
    /// The receiver's id of it, where the sender knows it.
    pub yours: Option<String>,
    /// What it is called on both sides.
    pub name: String,
    /// Namespace and name of the claim whose bytes it holds.
    pub claim: String,
    /// Block or Filesystem.
    pub mode: String,
    /// Type of its filesystem.
    pub filesystem: Option<String>,
    /// Bytes that it has.
    pub size: u64,
    /// Its device class; empty for the default one.
    pub class: String,
    /// The epoch at which the sender is primary.
    pub epoch: u64,
    /// Where the sender is reached.
    pub from: SocketAddr,
}

/// Asks about a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The asker's id of it.
    pub theirs: String,
    /// The answerer's id of it, where the asker knows it.
    pub yours: Option<String>,
    /// Where the asker is reached.
    pub from: SocketAddr,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Bytes may come, for this volume.
    Ready {
        /// The receiver's id of it.
        volume: String,
    },
    /// Another node has it.
    NotHere,
    /// Not yet.
    Later(String),
    /// No.
    Refused(Refused),
    /// This is what it is here.
    State(State),
}

/// Why no bytes may come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refused {
    /// The sender acts for a role that was given to somebody else since.
    #[error(
        "epoch {offered} is over, epoch {seen} was seen there: this cluster is no longer the primary; make the volume secondary here"
    )]
    OldEpoch {
        /// What the sender came with.
        offered: u64,
        /// The highest that the receiver has seen.
        seen: u64,
    },
    /// It is primary there too, or about to be.
    #[error(
        "the peer has the volume as primary at epoch {epoch}: one of the two must become secondary. If a VRG that was deleted there left its PV behind, `lifeboat forget` on that cluster shows it and gives it up"
    )]
    Primary {
        /// The epoch at which it is.
        epoch: u64,
    },
    /// The sender is cut off.
    #[error("the peer is told to fence this cluster off by NetworkFence {0}")]
    Fenced(String),
    /// The receiver stands still.
    #[error("the peer has stopped mirroring for MaintenanceMode {0}")]
    Frozen(String),
    /// The receiver cannot hold it.
    #[error("the peer cannot hold the volume: {0}")]
    Unfit(String),
}

/// What a volume is on a side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Its role.
    pub role: Role,
    /// The highest epoch that any of its copies carries.
    pub epoch: u64,
    /// The newest complete copy, of a secondary: its epoch and the time of its cut.
    pub newest: Option<(u64, jiff::Timestamp)>,
}

/// Roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// There is no such volume.
    Absent,
    /// It can be written.
    Primary,
    /// It is received.
    Secondary,
}

impl State {
    /// How an image compares with another one's.
    #[must_use]
    pub fn newest_of(image: Option<&Image>) -> Option<(u64, jiff::Timestamp)> {
        image.map(|image| (image.epoch, image.cut))
    }
}

/// Asks one mirror.
///
/// # Errors
/// When nobody answers who holds the key.
pub async fn ask(
    peer: SocketAddr,
    key: &Shared,
    request: &Request,
    within: Duration,
) -> Result<Answer, TalkError> {
    let silent = || TalkError::Link(peer, "no answer in time".to_owned());
    tokio::time::timeout(within, asked(peer, key, request)).await.unwrap_or_else(|_| Err(silent()))
}

async fn asked(peer: SocketAddr, key: &Shared, request: &Request) -> Result<Answer, TalkError> {
    let link = |error: std::io::Error| TalkError::Link(peer, error.to_string());
    let untrusted = |_| TalkError::Untrusted(peer);
    let mut socket = TcpStream::connect(peer).await.map_err(link)?;
    let mut opening = [0; 40];
    opening[..8].copy_from_slice(&MAGIC);
    SystemRandom::new()
        .fill(&mut opening[8..24])
        .map_err(|_| TalkError::Link(peer, "no randomness".to_owned()))?;
    let hint = key.hint(&opening[8..24]);
    opening[24..].copy_from_slice(&hint);
    let mut state = builder(key, &opening).and_then(snow::Builder::build_initiator).map_err(untrusted)?;
    let mut message = [0; HANDSHAKE];
    state.write_message(&[], &mut message).map_err(untrusted)?;
    socket.write_all(&opening).await.map_err(link)?;
    socket.write_all(&message).await.map_err(link)?;
    // Who does not know the key hangs up without a word.
    socket.read_exact(&mut message).await.map_err(|_| TalkError::Untrusted(peer))?;
    state.read_message(&message, &mut []).map_err(untrusted)?;
    let mut transport = state.into_transport_mode().map_err(untrusted)?;
    let protocol = |why: String| TalkError::Protocol(peer, why);
    write(&mut socket, &mut transport, request).await.map_err(protocol)?;
    read(&mut socket, &mut transport).await.map_err(protocol)
}

/// Answers one mirror whose first word was [`MAGIC`]. Says nothing before it has shown a key that is known.
///
/// # Errors
/// For a log: what went wrong.
pub async fn answer<F: Future<Output = Answer>>(
    socket: &mut TcpStream,
    keys: &[(String, Shared)],
    answering: impl FnOnce(Vec<String>, Shared, Request) -> F,
) -> Result<(), String> {
    let lost = |error: std::io::Error| error.to_string();
    let untrusted = |error: snow::Error| error.to_string();
    let mut opening = [0; 40];
    opening[..8].copy_from_slice(&MAGIC);
    socket.read_exact(&mut opening[8..]).await.map_err(lost)?;
    let meant = |key: &Shared| key.hint(&opening[8..24]) == opening[24..];
    let classes: Vec<String> =
        keys.iter().filter(|(_, key)| meant(key)).map(|(class, _)| class.clone()).collect();
    let key = keys
        .iter()
        .map(|(_, key)| key)
        .find(|key| meant(key))
        .ok_or("it showed no key that is known here")?;
    let mut state = builder(key, &opening).and_then(snow::Builder::build_responder).map_err(untrusted)?;
    let mut message = [0; HANDSHAKE];
    socket.read_exact(&mut message).await.map_err(lost)?;
    state.read_message(&message, &mut []).map_err(untrusted)?;
    state.write_message(&[], &mut message).map_err(untrusted)?;
    socket.write_all(&message).await.map_err(lost)?;
    let mut transport = state.into_transport_mode().map_err(untrusted)?;
    let request = read(socket, &mut transport).await?;
    let said = answering(classes, key.clone(), request).await;
    write(socket, &mut transport, &said).await?;
    let _ = socket.shutdown().await;
    Ok(())
}

fn builder<'a>(key: &'a Shared, opening: &'a [u8]) -> Result<snow::Builder<'a>, snow::Error> {
    let params = PATTERN.parse()?;
    snow::Builder::new(params).psk(0, &key.talk)?.prologue(opening)
}

async fn write(
    socket: &mut TcpStream,
    transport: &mut snow::TransportState,
    said: &impl Serialize,
) -> Result<(), String> {
    let plain = serde_json::to_vec(said).map_err(|error| error.to_string())?;
    if plain.len() > LONGEST {
        return Err("more to say than fits".to_owned());
    }
    let mut sealed = vec![0; plain.len() + TAG];
    let length = transport.write_message(&plain, &mut sealed).map_err(|error| error.to_string())?;
    let announced = u16::try_from(length).map_err(|_| "more to say than fits".to_owned())?;
    socket.write_all(&announced.to_le_bytes()).await.map_err(|error| error.to_string())?;
    socket.write_all(&sealed[..length]).await.map_err(|error| error.to_string())
}

async fn read<T: DeserializeOwned>(
    socket: &mut TcpStream,
    transport: &mut snow::TransportState,
) -> Result<T, String> {
    let mut length = [0; 2];
    socket.read_exact(&mut length).await.map_err(|error| error.to_string())?;
    let length = usize::from(u16::from_le_bytes(length));
    if length > LONGEST + TAG {
        return Err("more than fits was announced".to_owned());
    }
    let mut sealed = vec![0; length];
    socket.read_exact(&mut sealed).await.map_err(|error| error.to_string())?;
    let mut plain = vec![0; length];
    let length = transport.read_message(&sealed, &mut plain).map_err(|error| error.to_string())?;
    serde_json::from_slice(&plain[..length]).map_err(|error| error.to_string())
}
