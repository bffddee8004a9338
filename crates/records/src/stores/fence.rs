//! Taking an epoch in a store, so that of two who want it one gets it and the other is told.

use bytes::Bytes;
use jiff::Timestamp;

use super::Conditions;
use super::reach::Reach;
use crate::decide::plan::Author;
use crate::decide::shelf::{Ledger, Shelf};
use crate::key::Spot;
use crate::manifest::{Hold, HoldKind};
use crate::{ClusterId, Epoch, Error};

impl Reach<'_> {
    /// Who holds an epoch here, if anybody, and whether under a condition. A claim that cannot be read is not the end: a
    /// manifest of the epoch tells as well.
    pub(crate) async fn held(&self, shelf: &Shelf, epoch: Epoch) -> Result<(Option<ClusterId>, bool), Error> {
        let Some(witness) = shelf.ledger.witness(epoch) else { return Ok((None, true)) };
        let damage = match self.holder(&witness).await {
            Ok((holder, fenced)) => return Ok((Some(holder), fenced)),
            Err(error @ Error::Damaged { .. }) => error,
            Err(error) => return Err(error),
        };
        for (_, generation) in shelf.ledger.manifests.iter().rev().filter(|(found, _)| *found == epoch) {
            if let Ok(manifest) = self.manifest(epoch, *generation).await {
                return Ok((Some(manifest.writer), true));
            }
        }
        Err(damage)
    }

    /// Says who refuses us. Who it is, is looked up as well as it can be.
    pub(crate) async fn refused(&self, ledger: &Ledger, epoch: Epoch, mine: Epoch) -> Error {
        let held_by = match ledger.witness(epoch) {
            Some(witness) => self.holder(&witness).await.map(|(holder, _)| holder.to_string()),
            None => Ok("somebody".to_owned()),
        };
        let held_by = held_by.unwrap_or_else(|_| "a cluster whose name cannot be read".to_owned());
        Error::Refused { store: self.name.to_owned(), held_by, epoch, mine }
    }

    /// Looks again whether anybody with a higher epoch, or another fleet, has come.
    pub(crate) async fn still_ours(&self, author: Author<'_>) -> Result<(), Error> {
        self.still_our_fleet().await?;
        let ledger = self.ledger().await?;
        match ledger.highest() {
            Some(highest) if highest > author.epoch => {
                Err(self.refused(&ledger, highest, author.epoch).await)
            }
            _ => Ok(()),
        }
    }

    /// Takes an epoch. Answers whether the store kept others from doing the same.
    pub(crate) async fn hold(
        &self,
        kind: HoldKind,
        author: Author<'_>,
        time: Timestamp,
    ) -> Result<bool, Error> {
        let fenced = self.knows_conditions(author).await?;
        let spot = match kind {
            HoldKind::Claim => Spot::Claim(author.epoch),
            HoldKind::Tombstone => Spot::Tombstone(author.epoch),
        };
        let hold = Hold {
            group: self.group.clone(),
            epoch: author.epoch,
            writer: author.writer.clone(),
            time,
            fenced,
        };
        let content = hold.encode(kind).map_err(|fault| self.damaged(&spot, fault))?;
        match self.put_new(&spot, content, fenced).await {
            Err(Error::Store { error: lifeboat_store::Error::Exists { .. }, .. }) => {}
            other => other?,
        }
        // Read back in any case: a lost write would leave the epoch to whoever comes next.
        let (holder, fenced) = self.holder(&spot).await?;
        if holder == *author.writer {
            return Ok(fenced);
        }
        Err(Error::Refused {
            store: self.name.to_owned(),
            held_by: holder.to_string(),
            epoch: author.epoch,
            mine: author.epoch,
        })
    }

    /// Writes an object whose key must be free, as well as the store can.
    pub(crate) async fn put_new(&self, spot: &Spot, content: Bytes, fenced: bool) -> Result<(), Error> {
        if fenced {
            return self.put_if_absent(spot, content).await;
        }
        match self.read(spot).await {
            Ok(there) if there == content => Ok(()),
            Ok(_) => {
                let key = self.key(spot);
                let error = lifeboat_store::Error::Exists { store: self.name.to_owned(), key };
                Err(Error::Store { store: self.name.to_owned(), error })
            }
            Err(Error::Damaged { .. }) => self.put(spot, content).await,
            Err(error) => Err(error),
        }
    }

    /// Tries whether a second write of one key is refused: some servers ignore the condition, some do not know it.
    async fn knows_conditions(&self, author: Author<'_>) -> Result<bool, Error> {
        let first = Bytes::from(format!("{} {}\n", author.writer, author.epoch));
        let second = Bytes::from(format!("{} {} again\n", author.writer, author.epoch));
        let known = match self.put_if_absent(&Spot::Probe, first).await {
            Ok(()) => self.put_if_absent(&Spot::Probe, second).await,
            taken => taken,
        };
        let knows = match known {
            Ok(()) => false,
            Err(Error::Store { error: lifeboat_store::Error::Exists { .. }, .. }) => true,
            Err(Error::Store { error: lifeboat_store::Error::Lacking { .. }, .. }) => false,
            Err(error) => return Err(error),
        };
        if !knows && self.settings.conditions == Conditions::Required {
            return Err(Error::Unconditional { store: self.name.to_owned() });
        }
        Ok(knows)
    }
}
