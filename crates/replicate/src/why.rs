//! What a copy can wait for, said so that people know what to do.

use jiff::Timestamp;
use lifeboat_engine::{Level, Why};
use serde::Serialize;
use std::fmt;

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Wait {
    /// Another mover does it.
    OtherMover,
    /// Somebody asked for a pause.
    Paused,
    /// What is asked for cannot be done as asked.
    Unsupported(String),
    /// The claim is not there, or not bound.
    Claim(String),
    /// The volume is none of node storage, or not made yet.
    Volume(String),
    /// Another cluster has taken over since.
    Superseded(String),
    /// The receiver has a complete copy of another volume.
    Lineage(String),
    /// Copies are held back on the claim.
    Held,
    /// The schedule makes no sense.
    Schedule(String),
    /// The next copy is due then.
    Due(Timestamp),
    /// Nothing is asked for.
    Manual,
    /// Other copies go first.
    Turn,
    /// Bytes move.
    Sending,
    /// The last try failed; the next one comes by itself.
    Failed(String),
    /// The peer cannot be spoken to.
    Peer(String),
    /// The key is missing or makes no sense.
    Key(String),
    /// Somebody uses the claim that would be written to.
    InUse(String),
    /// Ready for the sender.
    Listening,
    /// What arrived is being kept as an image.
    Publishing(String),
    /// The claim is being brought back to an image.
    RollingBack(String),
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherMover => f.write_str(
                "a VolSync runs on this cluster and does this; stop it where Lifeboat shall move the bytes",
            ),
            Self::Paused => f.write_str("paused: nothing is copied until spec.paused is taken away"),
            Self::Held => f.write_str(
                "the annotation volsync.backube/use-copy-trigger on the claim holds copies back until it is taken off",
            ),
            Self::Due(next) => write!(f, "the next copy is due at {next}"),
            Self::Manual => f.write_str("nothing is asked for; a new spec.trigger.manual asks for a copy"),
            Self::Turn => f.write_str("other copies of this node go first"),
            Self::Sending => f.write_str("the copy is on its way to the receiver"),
            Self::Listening => f.write_str("ready: the next copy comes when the sender sends it"),
            Self::Unsupported(what)
            | Self::Claim(what)
            | Self::Volume(what)
            | Self::Superseded(what)
            | Self::Lineage(what)
            | Self::Schedule(what)
            | Self::Failed(what)
            | Self::Peer(what)
            | Self::Key(what)
            | Self::InUse(what)
            | Self::Publishing(what)
            | Self::RollingBack(what) => f.write_str(what),
        }
    }
}

impl Wait {
    /// Whether somebody may have to do something.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(
            self,
            Self::Unsupported(_)
                | Self::Superseded(_)
                | Self::Lineage(_)
                | Self::Schedule(_)
                | Self::Failed(_)
                | Self::Peer(_)
                | Self::Key(_)
                | Self::InUse(_)
        )
    }
}

impl Why for Wait {
    fn event(&self) -> Option<Level> {
        self.is_error().then_some(Level::Warning)
    }
}
