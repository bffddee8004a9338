//! Who is primary, at which epoch, and by which action: written on the DRPlacementControl before any work carries it, and on every group that follows
//! from it, so that a hub that lost its memory finds it again.

use crate::words::Words;
use lifeboat_api::annotations;
use lifeboat_api::ramen::DRAction;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What made a cluster primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Act {
    /// Deployed for the first time.
    Deploy,
    /// Failed over: what was not replicated is lost.
    Failover,
    /// Relocated: nothing is lost.
    Relocate,
}

impl Act {
    /// The action that a spec asks for; nothing where the word is unknown.
    pub fn asked(action: Option<&DRAction>) -> Option<Self> {
        match action {
            None => Some(Self::Deploy),
            Some(DRAction::Failover) => Some(Self::Failover),
            Some(DRAction::Relocate) => Some(Self::Relocate),
            Some(other) if other.as_str().is_empty() => Some(Self::Deploy),
            Some(_) => None,
        }
    }

    /// The action, as a group is told.
    pub fn action(self) -> Option<DRAction> {
        match self {
            Self::Deploy => None,
            Self::Failover => Some(DRAction::Failover),
            Self::Relocate => Some(DRAction::Relocate),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Deploy, Self::Failover, Self::Relocate].into_iter().find(|act| act.to_string() == text)
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One change of role, once and for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Commission {
    /// Its number; a higher one replaces it everywhere.
    pub epoch: i64,
    /// The cluster that is primary at it.
    pub holder: String,
    /// What made it so.
    pub act: Act,
}

impl Commission {
    /// The commission that an object carries.
    pub fn on<K: Words>(object: &K) -> Option<Self> {
        let epoch = object.note(annotations::EPOCH)?.parse().ok().filter(|epoch| *epoch > 0)?;
        let holder = object.note(annotations::EPOCH_HOLDER).filter(|name| !name.is_empty())?.to_owned();
        let act = Act::parse(object.note(annotations::EPOCH_ACTION)?)?;
        Some(Self { epoch, holder, act })
    }

    /// The annotations that say it.
    pub fn notes(&self) -> BTreeMap<String, String> {
        [
            (annotations::EPOCH, self.epoch.to_string()),
            (annotations::EPOCH_HOLDER, self.holder.clone()),
            (annotations::EPOCH_ACTION, self.act.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }
}

/// The epoch that an object carries, 0 where it carries none.
pub fn epoch_on<K: Words>(object: &K) -> i64 {
    object.note(annotations::EPOCH).and_then(|text| text.parse().ok()).unwrap_or(0)
}
