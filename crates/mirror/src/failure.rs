//! How a word to the peer, or a copy, can fail, and how soon it is tried again.

use crate::talk::{Refused, TalkError};
use jiff::SignedDuration;
use lifeboat_stream::{Error, Refusal};
use serde::Serialize;

/// What kind of failure it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// The peer does not answer.
    Link,
    /// The class says no key or no peer that could be used.
    Setup,
    /// The peer is not ready yet.
    Busy,
    /// Another cluster has taken over since.
    Superseded,
    /// The peer says no.
    Refused,
    /// The snapshot could not be read whole.
    Source,
    /// The peer has the volume under another id than it had.
    Renamed(String),
    /// Something else.
    Other,
}

/// A failure, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What kind it was.
    pub kind: Kind,
    /// What happened.
    pub message: String,
}

impl Failure {
    /// A failure.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// How long to wait after so many in a row.
    #[must_use]
    pub fn pause(&self, failures: u32) -> SignedDuration {
        let doubled =
            |most: i64| SignedDuration::from_secs((1 << failures.saturating_sub(1).min(6)).min(most));
        match self.kind {
            Kind::Busy | Kind::Renamed(_) => SignedDuration::from_secs(1),
            // Asking is cheap, and a peer that returns is to be served soon.
            Kind::Link | Kind::Refused => doubled(10),
            Kind::Source | Kind::Setup | Kind::Other => doubled(60),
            Kind::Superseded => SignedDuration::from_secs(30),
        }
    }
}

impl From<TalkError> for Failure {
    fn from(error: TalkError) -> Self {
        let kind = match &error {
            TalkError::Link(..) => Kind::Link,
            TalkError::Untrusted(_) | TalkError::Protocol(..) => Kind::Setup,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let kind = match refused {
            Refused::OldEpoch { .. } => Kind::Superseded,
            _ => Kind::Refused,
        };
        Self::new(kind, refused.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Link(_) | Error::Stopped | Error::Untrusted(_) => Kind::Link,
            Error::Key(_) => Kind::Setup,
            Error::Refused(Refusal::OldEpoch { .. }) => Kind::Superseded,
            Error::Refused(Refusal::Busy | Refusal::Spoiled(_) | Refusal::UnknownDestination) => Kind::Busy,
            Error::Source(_) => Kind::Source,
            _ => Kind::Other,
        };
        Self::new(kind, error.to_string())
    }
}
