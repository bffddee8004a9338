//! What can go wrong, and whether trying again helps.

use std::io;
use std::path::Path;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Why a sync did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The pre-shared key makes no sense; its content is not shown.
    #[error(
        "the pre-shared key is not usable: {0}; write it as one line `id:hex` with at least 32 hex digits"
    )]
    Key(&'static str),
    /// What was asked for cannot be done as asked.
    #[error("{0}")]
    Invalid(String),
    /// The peer did not show that it holds the same key, or somebody changed bytes on the way.
    #[error(
        "the peer does not hold the same key, or the link changes bytes: {0}; compare the key secrets of both sides"
    )]
    Untrusted(&'static str),
    /// The link broke or fell silent; the next try goes on where this one stopped.
    #[error("the link to the peer failed: {0}; another try goes on where this one stopped")]
    Link(String),
    /// The peer refused the sync.
    #[error("the peer refused: {0}")]
    Refused(#[from] Refusal),
    /// The peer speaks something that this version does not.
    #[error("the peer sent what makes no sense: {0}")]
    Protocol(String),
    /// The source could not be read whole. Nothing of it counts.
    #[error("the source could not be read whole: {0}")]
    Source(String),
    /// The source is empty where the last sync found files: more likely not mounted than emptied.
    #[error(
        "the source is empty, but the last sync found {0} entries: if it was emptied on purpose, say so; if not, look whether it is mounted"
    )]
    SourceEmpty(u64),
    /// The target could not be written.
    #[error("the target could not be written: {0}")]
    Target(String),
    /// The target is full.
    #[error("no room on the target: {0}")]
    NoRoom(String),
    /// What was applied is not what was sent: the copy must be thrown away.
    #[error(
        "the copy does not match what was sent: {0}; make the staging volume anew from the last good generation"
    )]
    Damaged(String),
    /// The caller gave up.
    #[error("stopped by the caller")]
    Stopped,
}

/// Why a receiver refuses a sync; said to the sender only after it showed the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// Nobody expects this destination here under this key.
    #[error("no such destination under this key")]
    UnknownDestination,
    /// Another sync of the same destination is under way.
    #[error("another sync into this destination is under way")]
    Busy,
    /// The sender acts for a role that was given to somebody else since.
    #[error(
        "epoch {offered} is over, epoch {seen} was seen: the sender is no longer the primary and must not send"
    )]
    OldEpoch {
        /// What the sender came with.
        offered: u64,
        /// The highest that the receiver has seen.
        seen: u64,
    },
    /// Neither side can say what has changed since the copy that the receiver has.
    #[error("the receiver has generation {have:?}, the sender can start from {offered:?} only")]
    BaseMismatch {
        /// The generation that the staging volume is a copy of.
        have: Option<String>,
        /// What the sender knows.
        offered: Option<String>,
    },
    /// The staging volume holds part of something else.
    #[error("the staging volume was begun with something else: {0}; it must be made anew")]
    Spoiled(String),
    /// The staging volume is not of the kind that the source is, or too small.
    #[error("the staging volume does not fit the source: {0}")]
    Unfit(String),
    /// The receiver failed by itself.
    #[error("the receiver failed: {0}")]
    Failed(String),
    /// The receiver's volume is full.
    #[error("the receiver has no room: {0}")]
    NoRoom(String),
    /// All of it arrived, and its owner has not published it yet. Said only to senders that understand it.
    #[error("the receiver has all of generation {0} and has not published it yet; it is asked again")]
    Publishing(String),
    /// The receiver has a complete copy of another volume.
    #[error(
        "the receiver has a complete copy of another volume (lineage {have}), the sender's is of lineage {offered}: nothing was overwritten"
    )]
    OtherLineage {
        /// What the copy descends from.
        have: String,
        /// What the sender's volume descends from.
        offered: String,
    },
}

impl Error {
    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Link(_)
                | Self::Refused(
                    Refusal::Busy | Refusal::Failed(_) | Refusal::UnknownDestination | Refusal::Publishing(_)
                )
        )
    }

    /// A failed call on the source.
    pub(crate) fn source(doing: &str, path: &Path, error: impl std::fmt::Display) -> Self {
        Self::Source(format!("{doing} {}: {error}", path.display()))
    }

    /// A failed call on the target.
    pub(crate) fn target(doing: &str, path: &Path, error: Errno) -> Self {
        let text = format!("{doing} {}: {error}", path.display());
        match error {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::NoRoom(text),
            _ => Self::Target(text),
        }
    }

    /// A failed call on a socket.
    pub(crate) fn link(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Self::Link("the peer fell silent".to_owned())
            }
            io::ErrorKind::UnexpectedEof => Self::Link("the peer hung up".to_owned()),
            _ => Self::Link(error.to_string()),
        }
    }

    /// What the sender is told when the receiver fails so.
    pub(crate) fn as_refusal(&self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal.clone(),
            Self::NoRoom(text) => Refusal::NoRoom(text.clone()),
            Self::Damaged(text) => Refusal::Spoiled(text.clone()),
            other => Refusal::Failed(other.to_string()),
        }
    }
}

/// The number behind an I/O error.
pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
