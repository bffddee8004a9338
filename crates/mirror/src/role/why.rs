//! What a VolumeReplication can wait for, said so that people know what to do.

use jiff::Timestamp;
use lifeboat_engine::{Level, Why};
use serde::Serialize;
use std::fmt;

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum RoleWhy {
    /// What is asked for cannot be done as asked.
    Unsupported(String),
    /// The claim is not there, or not bound.
    Claim(String),
    /// The volume is not made yet, or cannot be looked at.
    Volume(String),
    /// Another cluster has taken over since.
    Superseded(String),
    /// The group's epoch is lower than one that was seen.
    EpochRefused(String),
    /// The peer is asked what the volume is there.
    Asking,
    /// The peer is primary.
    PeerPrimary(String),
    /// The peer has writes that are not here.
    PeerAhead(String),
    /// No complete copy is here.
    NoCopy,
    /// Somebody uses the claim.
    InUse(String),
    /// Both sides were written, and nobody said which one may be given up.
    SplitBrain(String),
    /// The peer has to answer first.
    Peer(String),
    /// A place at the peer is being made.
    Meeting,
    /// Bytes are on their way.
    Sending,
    /// The last try failed; the next one comes by itself.
    Failed(String),
    /// Other copies go first.
    Turn,
    /// The next copy is due then.
    Due(Timestamp),
    /// The peer's data is on its way here.
    Filling(String),
}

impl fmt::Display for RoleWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asking => f.write_str("the peer is asked what the volume is there"),
            Self::NoCopy => f.write_str(
                "no complete copy of the volume has ever arrived here, so there is nothing that could be made primary",
            ),
            Self::Meeting => f.write_str("the peer makes a place for the volume"),
            Self::Sending => f.write_str("a copy is on its way to the peer"),
            Self::Turn => f.write_str("other copies of this node go first"),
            Self::Due(at) => write!(f, "the next copy is due at {at}"),
            Self::Unsupported(why)
            | Self::Claim(why)
            | Self::Volume(why)
            | Self::Superseded(why)
            | Self::EpochRefused(why)
            | Self::PeerPrimary(why)
            | Self::PeerAhead(why)
            | Self::SplitBrain(why)
            | Self::Peer(why)
            | Self::Failed(why)
            | Self::Filling(why) => f.write_str(why),
            Self::InUse(who) => write!(f, "the claim is in use by {who}; it is made secondary when nobody uses it"),
        }
    }
}

impl RoleWhy {
    /// Whether somebody may have to do something.
    #[must_use]
    pub fn is_error(&self) -> bool {
        !matches!(
            self,
            Self::Asking
                | Self::Meeting
                | Self::Sending
                | Self::Turn
                | Self::Due(_)
                | Self::Filling(_)
                | Self::Claim(_)
        )
    }
}

impl Why for RoleWhy {
    fn event(&self) -> Option<Level> {
        self.is_error().then_some(Level::Warning)
    }
}
