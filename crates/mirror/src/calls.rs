//! Calls the mirrors of the peer cluster: with the key and the addresses that the replication class names, read when they are used and kept
//! by nobody.

use crate::copies::FUZZY;
use crate::failure::{Failure, Kind};
use crate::talk::{self, Answer, Ask, Offer, Request, Role, Shared, State};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use lifeboat_api::annotations::parameters;
use lifeboat_stream::{Job, Limits, Sending, Sent, Source, Timing, send};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;

/// Under what the secret holds the key.
const PSK: &str = "psk.txt";
/// Under what the secret may hold the addresses of the peer's mirrors, with commas.
const PEERS: &str = "peers";
/// How long a peer may take to say what a volume is: a lost one must not hold up a failover.
const SAYS_WITHIN: Duration = Duration::from_secs(5);
/// How long a peer may take to get ready for bytes.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(20);

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// What the volume is over there.
    State(State),
    /// The peer has a place for the volume, under this id.
    Met(String),
    /// The peer has a whole generation.
    Sent(Sent),
}

/// A way to the peer.
#[derive(Clone)]
pub struct Line {
    /// Reads the secret.
    pub client: kube::Client,
    /// What the class says.
    pub parameters: BTreeMap<String, String>,
    /// Bounds of a connection.
    pub timing: Timing,
}

/// Where the class says that its secret is.
pub(crate) fn secret_of(parameters: &BTreeMap<String, String>) -> Option<(&str, &str)> {
    let text = |key: &str| parameters.get(key).map(String::as_str).filter(|text| !text.is_empty());
    Some((text(parameters::REPLICATION_SECRET_NAMESPACE)?, text(parameters::REPLICATION_SECRET_NAME)?))
}

/// The key of a class, and where it leads if the secret says so.
pub(crate) async fn key(
    client: &kube::Client,
    parameters: &BTreeMap<String, String>,
) -> Result<(Shared, Option<String>), Failure> {
    let bad = |why: String| Failure::new(Kind::Setup, why);
    let (space, name) = secret_of(parameters).ok_or_else(|| {
        bad(format!(
            "the replication class names no secret: set its parameters {} and {}",
            parameters::REPLICATION_SECRET_NAME,
            parameters::REPLICATION_SECRET_NAMESPACE
        ))
    })?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), space);
    let found = secrets.get_opt(name).await;
    let found = found.map_err(|error| {
        Failure::new(Kind::Link, format!("the secret {space}/{name} cannot be read: {error}"))
    })?;
    let secret = found.ok_or_else(|| {
        bad(format!(
            "the secret {space}/{name} does not exist: make it with the key of both clusters under {PSK}"
        ))
    })?;
    let text = |key: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key))?;
        std::str::from_utf8(&bytes.0).ok().map(str::to_owned)
    };
    let line = text(PSK).ok_or_else(|| bad(format!("the secret {space}/{name} has no text under {PSK}")))?;
    let key = Shared::parse(&line).map_err(|error| bad(format!("in the secret {space}/{name}: {error}")))?;
    Ok((key, text(PEERS)))
}

impl Line {
    async fn open(&self) -> Result<(Shared, Vec<SocketAddr>), Failure> {
        let (key, peers) = key(&self.client, &self.parameters).await?;
        let peers =
            peers.or_else(|| self.parameters.get(parameters::MIRROR_PEERS).cloned()).unwrap_or_default();
        let mut found = Vec::new();
        let mut unknown = None;
        for peer in peers.split(',').map(str::trim).filter(|peer| !peer.is_empty()) {
            match tokio::net::lookup_host(peer).await {
                Ok(addresses) => found.extend(addresses),
                Err(error) => unknown = Some(format!("where {peer} is could not be found out: {error}")),
            }
        }
        match unknown {
            Some(why) if found.is_empty() => Err(Failure::new(Kind::Link, why)),
            _ if found.is_empty() => Err(Failure::new(
                Kind::Setup,
                format!(
                    "nothing says where the peer's mirrors are: set the parameter {} of the replication class, or {PEERS} in its secret",
                    parameters::MIRROR_PEERS
                ),
            )),
            _ => Ok((key, found)),
        }
    }

    /// What a volume is over there.
    pub async fn ask(self, ask: Ask) -> Result<Word, Failure> {
        let (key, peers) = self.open().await?;
        let (request, mut failed, mut absent) = (Request::Ask(ask), None, None);
        for peer in peers {
            match talk::ask(peer, &key, &request, self.timing.handshake.min(SAYS_WITHIN)).await {
                Ok(Answer::State(state)) if state.role == Role::Absent => absent = Some(state),
                Ok(Answer::State(state)) => return Ok(Word::State(state)),
                Ok(Answer::Refused(refused)) => failed = Some(refused.into()),
                Ok(Answer::Later(why)) => failed = Some(Failure::new(Kind::Busy, why)),
                Ok(Answer::NotHere | Answer::Ready { .. }) => {}
                Err(error) => failed = Some(error.into()),
            }
        }
        // One that did not answer may have it.
        match (failed, absent) {
            (None, Some(state)) => Ok(Word::State(state)),
            (Some(failure), _) => Err(failure),
            (None, None) => {
                Err(Failure::new(Kind::Other, "no mirror of the peer said what the volume is there"))
            }
        }
    }

    async fn offer(&self, offer: &Offer) -> Result<(SocketAddr, Shared, String), Failure> {
        let (key, peers) = self.open().await?;
        let request = Request::Offer(offer.clone());
        let mut failed = None;
        for peer in peers {
            let failure: Failure = match talk::ask(peer, &key, &request, READY_WITHIN * 2).await {
                Ok(Answer::Ready { volume }) => return Ok((peer, key, volume)),
                Ok(Answer::NotHere | Answer::State(_)) => continue,
                Ok(Answer::Later(why)) => return Err(Failure::new(Kind::Busy, why)),
                Ok(Answer::Refused(refused)) => refused.into(),
                Err(error) => error.into(),
            };
            // Who refuses knows more than who does not answer.
            if failed.as_ref().is_none_or(|known: &Failure| known.kind == Kind::Link) {
                failed = Some(failure);
            }
        }
        Err(failed
            .unwrap_or_else(|| Failure::new(Kind::Other, "no mirror of the peer has the volume's node")))
    }

    /// Asks for a place for the volume.
    pub async fn meet(self, offer: Offer) -> Result<Word, Failure> {
        self.offer(&offer).await.map(|(_, _, volume)| Word::Met(volume))
    }

    /// Carries one generation over.
    pub async fn send(self, offer: Offer, parcel: Parcel) -> Result<Word, Failure> {
        let (peer, key, volume) = self.offer(&offer).await?;
        if offer.yours.as_ref() != Some(&volume) {
            let why = format!("the peer has the volume as {volume} now");
            return Err(Failure::new(Kind::Renamed(volume), why));
        }
        let fuzzy = parcel.image.fuzzy;
        let mut job =
            Job::new(volume, parcel.image.epoch, parcel.image.generation, parcel.image.cut, parcel.index);
        // What a user deletes is to be deleted over there too; whether the source was mounted is no question for a mirror of whole volumes.
        job.may_be_empty = true;
        job.fuzzy = fuzzy.then(|| FUZZY.to_owned());
        job.limits = Limits { bytes_per_second: parcel.bytes_per_second, within: None, timing: self.timing };
        let progress = watch::Sender::new(Sending::default());
        let sent = send(parcel.content, peer, &key.stream, job, progress).await?;
        Ok(Word::Sent(sent))
    }
}

/// One generation, ready to go.
pub struct Parcel {
    /// Which one.
    pub image: crate::copies::Image,
    /// Its bytes.
    pub content: Source,
    /// The memory of the last one.
    pub index: PathBuf,
    /// Bytes on the wire in a second, at most.
    pub bytes_per_second: Option<u64>,
}
