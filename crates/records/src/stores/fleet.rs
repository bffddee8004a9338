//! Telling fleets apart that share a bucket: a mark beside the records of a group says which fleet they are of.

use super::reach::Reach;
use crate::decide::fleet::{Owner, Told, owner};
use crate::decide::shelf::Shelf;
use crate::key::Spot;
use crate::manifest::Mark;
use crate::{Error, FleetId};

impl Reach<'_> {
    /// Whose the group is here, by the mark and, without one, by the newest manifest that can be read.
    async fn owner(&self, shelf: &Shelf) -> Result<Owner, Error> {
        let Some(mine) = self.fleet else { return Ok(Owner::Ours) };
        if !shelf.is_used() {
            return Ok(Owner::Unmarked);
        }
        let mark = self.mark().await?;
        let mut manifest = None;
        if mark.is_none() {
            for (epoch, generation) in shelf.ledger.manifests.iter().rev() {
                match self.manifest(*epoch, *generation).await {
                    Ok(found) => {
                        manifest = found.fleet;
                        break;
                    }
                    Err(Error::Damaged { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(owner(Some(mine), Told { mark: mark.as_ref(), manifest: manifest.as_ref() }))
    }

    /// Refuses a store that has another fleet's records of the group; says otherwise whose it is.
    pub(super) async fn not_of_others(&self, shelf: &Shelf) -> Result<Owner, Error> {
        match self.owner(shelf).await? {
            Owner::Other(fleet) => Err(self.of_another(fleet)),
            known => Ok(known),
        }
    }

    /// Looks again whether another fleet has come.
    pub(super) async fn still_our_fleet(&self) -> Result<(), Error> {
        let Some(mine) = self.fleet else { return Ok(()) };
        match self.mark().await? {
            Some(fleet) if fleet != *mine => Err(self.of_another(fleet)),
            _ => Ok(()),
        }
    }

    /// Makes the group ours before anything is written. Of two fleets that do so at once one is told that it comes too late.
    pub(super) async fn take(&self, owner: &Owner) -> Result<(), Error> {
        let Some(mine) = self.fleet else { return Ok(()) };
        match owner {
            Owner::Ours => return Ok(()),
            Owner::Other(fleet) => return Err(self.of_another(fleet.clone())),
            Owner::Unmarked => {}
        }
        let mark = Mark { group: self.group.clone(), fleet: mine.clone() };
        let content = mark.encode().map_err(|fault| self.damaged(&Spot::Fleet, fault))?;
        match self.put_if_absent(&Spot::Fleet, content.clone()).await {
            Err(Error::Store { error: lifeboat_store::Error::Exists { .. }, .. }) => {
                // Another fleet's, or one that cannot be read and stands beside no manifest of others.
                if self.mark().await?.is_none() {
                    self.put(&Spot::Fleet, content).await?;
                }
            }
            Err(Error::Store { error: lifeboat_store::Error::Lacking { .. }, .. }) => {
                self.put_new(&Spot::Fleet, content, false).await?;
            }
            other => other?,
        }
        // Read back in any case: a store may ignore the condition, or lose what it was given.
        match self.mark().await? {
            Some(fleet) if fleet == *mine => Ok(()),
            Some(fleet) => Err(self.of_another(fleet)),
            None => Err(Error::Lost { store: self.name.to_owned(), keys: vec![Spot::Fleet.to_string()] }),
        }
    }

    /// What the mark says; nothing where there is none, or none that can be read.
    async fn mark(&self) -> Result<Option<FleetId>, Error> {
        match self.read(&Spot::Fleet).await {
            Ok(bytes) => Ok(Mark::decode(&bytes, self.group).map(|mark| mark.fleet)),
            Err(Error::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn of_another(&self, fleet: FleetId) -> Error {
        Error::OtherFleet { store: self.name.to_owned(), group: self.group.clone(), fleet }
    }
}
