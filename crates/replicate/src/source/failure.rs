//! Why a copy was not sent, in words that can be compared and told, and how long to wait before the next try.

use crate::why::Wait;
use jiff::{SignedDuration, Timestamp};
use lifeboat_stream::{Error, Refusal};

/// Why a copy was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind of thing it is.
    pub kind: Kind,
    /// What happened and what to do, without any secret.
    pub message: String,
}

/// Kinds of failures, as far as they are treated differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The receiver is not ready for this copy yet.
    Busy,
    /// The link failed, or nobody could be asked or reached.
    Link,
    /// The key is missing, unusable or another one.
    Key,
    /// The peer does not speak our language.
    Peer,
    /// Another cluster has taken over.
    Superseded,
    /// The snapshot cannot be read any more.
    Source,
    /// The volume is empty, and was not.
    Emptied,
    /// All of it arrived, and the receiver has not published it yet.
    Publishing,
    /// What the receiver has cannot be gone on with: it compares anew.
    Spoiled,
    /// The receiver has a complete copy of another volume.
    Lineage,
    /// Something else.
    Other,
}

impl Failure {
    /// A failure.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// How long to wait after so many of them in a row.
    #[must_use]
    pub fn pause(&self, failures: u32) -> SignedDuration {
        let doubled = |first: i64, longest: i64| {
            SignedDuration::from_secs((first << failures.min(8).saturating_sub(1)).min(longest))
        };
        match self.kind {
            Kind::Busy => doubled(1, 5),
            Kind::Publishing => doubled(1, 30),
            Kind::Lineage => doubled(2, 30),
            // Nobody tells when a lost site is back, and until its first copy nothing is safe: asking costs one packet.
            Kind::Link => doubled(1, 5),
            // Each try may read both volumes as a whole.
            Kind::Source | Kind::Spoiled | Kind::Other => doubled(1, 60),
            Kind::Key | Kind::Peer => doubled(5, 60),
            // It is cut anew for each try.
            Kind::Emptied => SignedDuration::from_secs(15),
            Kind::Superseded => SignedDuration::from_secs(60),
        }
    }

    /// When the next try may begin. A failure that lies in the future was noted by a clock that has been corrected since: it holds nobody up.
    #[must_use]
    pub fn not_before(&self, ended: Timestamp, failures: u32, now: Timestamp) -> Option<Timestamp> {
        let next = ended.checked_add(self.pause(failures)).unwrap_or(ended);
        Some(next).filter(|next| *next > now && ended <= now)
    }

    /// The same as a wait, after so many of them in a row.
    #[must_use]
    pub fn wait(&self, failures: u32) -> Wait {
        let message = self.message.clone();
        match self.kind {
            Kind::Publishing => Wait::Publishing(format!(
                "{message}. It counts once the receiver's image of it is ready: if that takes long, look at the status of the ReplicationDestination and its VolumeSnapshots"
            )),
            Kind::Spoiled if failures >= 3 => Wait::Failed(format!(
                "{message}. It failed {failures} times in a row, and each try compares both volumes as a whole: look for errors of the receiver's disk, and if there are none, delete the receiver's PVC so that it begins with an empty one"
            )),
            Kind::Lineage => Wait::Lineage(message),
            Kind::Key => Wait::Key(message),
            Kind::Peer => Wait::Peer(message),
            Kind::Superseded => Wait::Superseded(message),
            _ => Wait::Failed(message),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Link(_) | Error::Stopped => Kind::Link,
            Error::Key(_) | Error::Untrusted(_) => Kind::Key,
            Error::Refused(Refusal::OldEpoch { .. }) => Kind::Superseded,
            Error::Refused(Refusal::Busy | Refusal::UnknownDestination) => Kind::Busy,
            Error::Refused(Refusal::Spoiled(_)) | Error::Damaged(_) => Kind::Spoiled,
            Error::Refused(Refusal::Publishing(_)) => Kind::Publishing,
            Error::Refused(Refusal::OtherLineage { .. }) => Kind::Lineage,
            Error::Protocol(_) => Kind::Peer,
            Error::Source(_) => Kind::Source,
            Error::SourceEmpty(_) => Kind::Emptied,
            _ => Kind::Other,
        };
        let emptied = match kind {
            Kind::Emptied => format!(" (annotation {}: \"true\")", lifeboat_api::annotations::MAY_BE_EMPTY),
            _ => String::new(),
        };
        Self::new(kind, format!("{error}{emptied}"))
    }
}
