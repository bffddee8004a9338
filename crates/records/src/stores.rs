//! The shell: asks stores, lets `decide` judge, and does what it says.
//!
//! Stores are worked on side by side, each with its own deadlines and its own outcome: one that is bad, slow or not even
//! configured delays no other and is never passed over in silence.

mod delete;
mod fence;
mod fleet;
mod keep;
mod orphan;
mod reach;
mod read;
mod sweep;
mod write;

use std::time::Duration;

use futures::future::join_all;
use lifeboat_store::Objects;

use crate::decide::fleet::Owner;
use crate::decide::shelf::Shelf;
use crate::{ClusterId, Epoch, Error, FleetId, Group};
use reach::Reach;

pub use delete::{Cleared, Deletion};
pub use read::{Found, Held, Reached, Search, Seen};
pub use write::{Check, Kept, Told, Writing, Written};

/// One object store, or why it cannot be opened.
#[derive(Clone, Debug)]
pub struct Profile {
    name: String,
    objects: Result<Objects, String>,
}

impl Profile {
    /// A store that can be asked.
    #[must_use]
    pub fn new(name: impl Into<String>, objects: Objects) -> Self {
        Self { name: name.into(), objects: Ok(objects) }
    }

    /// A store that cannot be opened, for want of its profile, its secret or a sensible address. It is named in every
    /// outcome: leaving it out would make nobody notice that nothing is kept there.
    #[must_use]
    pub fn unavailable(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { name: name.into(), objects: Err(why.into()) }
    }

    /// Name of the profile.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// What to do with a store that ignores conditional writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conditions {
    /// Write nothing there.
    Required,
    /// Write there, look first, and tell that two primaries at once could not be kept apart.
    Preferred,
}

/// How long to wait, how much to keep and how much to do at once.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// For one object of one store.
    pub call: Duration,
    /// For one listing of one store, with all its pages.
    pub list: Duration,
    /// For everything in one store; what was done by then counts when it goes on.
    pub whole: Duration,
    /// Manifests to keep in each store.
    pub keep: usize,
    /// Requests at once in one store.
    pub at_once: usize,
    /// Objects that one deletion removes from one store at most.
    pub deletions: usize,
    /// What to do with a store that ignores conditional writes.
    pub conditions: Conditions,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(12),
            list: Duration::from_secs(30),
            whole: Duration::from_secs(180),
            keep: 5,
            at_once: 8,
            deletions: 10_000,
            conditions: Conditions::Preferred,
        }
    }
}

/// The object stores of a group.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    profiles: Vec<Profile>,
    settings: Settings,
    fleet: Option<FleetId>,
}

/// What one store showed.
pub(crate) struct Observed {
    pub(crate) shelf: Shelf,
    /// Who holds exactly our epoch, where something says so.
    pub(crate) holder: Option<ClusterId>,
    /// Whether its claim was made under a condition.
    pub(crate) fenced: bool,
    /// Whose the group is there.
    pub(crate) owner: Owner,
}

impl Stores {
    /// The stores of these profiles.
    #[must_use]
    pub fn new(profiles: Vec<Profile>, settings: Settings) -> Self {
        Self { profiles, settings, fleet: None }
    }

    /// The same for a fleet: what another fleet has there is neither read, written nor removed. Without one nothing is asked.
    #[must_use]
    pub fn of_fleet(self, fleet: Option<FleetId>) -> Self {
        Self { fleet, ..self }
    }

    fn reaches<'a>(&'a self, group: &'a Group) -> Vec<Result<Reach<'a>, Error>> {
        self.profiles
            .iter()
            .map(|profile| match &profile.objects {
                Ok(objects) => {
                    Ok(Reach::new(&profile.name, objects, group, &self.settings, self.fleet.as_ref()))
                }
                Err(why) => Err(Error::Unavailable { store: profile.name.clone(), why: why.clone() }),
            })
            .collect()
    }
}

/// Looks at all stores side by side; each answers or fails on its own.
pub(crate) async fn observe(
    reaches: &[Result<Reach<'_>, Error>],
    epoch: Option<Epoch>,
) -> Vec<Result<Observed, Error>> {
    join_all(reaches.iter().map(|reach| async move {
        let reach = reach.as_ref().map_err(Clone::clone)?;
        let shelf = reach.shelf().await?;
        let owner = reach.not_of_others(&shelf).await?;
        let (holder, fenced) = match epoch {
            Some(epoch) => reach.held(&shelf, epoch).await?,
            None => (None, true),
        };
        Ok(Observed { shelf, holder, fenced, owner })
    }))
    .await
}
