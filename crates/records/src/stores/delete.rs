//! Deleting a group's records: a tombstone first, then everything below its prefix.

use futures::future::join_all;
use jiff::Timestamp;
use tokio::time::timeout;

use super::reach::{Reach, sizes};
use super::{Observed, Stores, observe};
use crate::decide::admit::{Admission, to_delete};
use crate::decide::plan::Author;
use crate::key::Spot;
use crate::manifest::HoldKind;
use crate::{ClusterId, Epoch, Error, Group};

/// Deletes a group. Only for the one who is its primary: a secondary's copy of the group says nothing about its records.
#[derive(Clone, Debug)]
pub struct Deletion {
    /// Whose records.
    pub group: Group,
    /// The epoch in which we are the primary.
    pub epoch: Epoch,
    /// This cluster.
    pub writer: ClusterId,
    /// The time now, by this cluster's clock.
    pub time: Timestamp,
}

/// One store's outcome of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "what is left in a store is told here and nowhere else"]
pub struct Cleared {
    /// The profile.
    pub store: String,
    /// How many objects this pass removed and nothing but the tombstone is left; or what is left and why.
    pub outcome: Result<usize, Error>,
}

/// How many objects go with one request.
const BATCH: usize = 1000;
/// After so many failures in one batch the store is given up for this pass.
const FAILURES: usize = 20;

impl Stores {
    /// Deletes a group's records in all stores side by side. It may be called again until nothing is left.
    ///
    /// # Errors
    /// Only where there is no store to delete from; what happened in each store is in the outcome.
    pub async fn delete(&self, deletion: &Deletion) -> Result<Vec<Cleared>, Error> {
        if self.profiles.is_empty() {
            return Err(Error::NoStores);
        }
        let reaches = self.reaches(&deletion.group);
        let observed = observe(&reaches, Some(deletion.epoch)).await;
        let author = Author { epoch: deletion.epoch, writer: &deletion.writer, fleet: self.fleet.as_ref() };
        let refused = refusal(&reaches, &observed, author).await;
        let outcomes = join_all(reaches.iter().zip(&observed).map(|(reach, observed)| async {
            let (reach, observed) =
                (reach.as_ref().map_err(Clone::clone)?, observed.as_ref().map_err(Clone::clone)?);
            if let Some(refused) = &refused {
                return Err(refused.clone());
            }
            let late = || Error::OutOfTime {
                store: reach.name.to_owned(),
                what: "deleting the records; the next pass goes on".into(),
            };
            let clear = reach.clear(observed, author, deletion.time);
            timeout(self.settings.whole, clear).await.map_err(|_| late())?
        }))
        .await;
        let cleared = self.profiles.iter().zip(outcomes);
        Ok(cleared.map(|(profile, outcome)| Cleared { store: profile.name.clone(), outcome }).collect())
    }
}

/// Whether any store shows that somebody else has taken over; then nothing is deleted anywhere.
async fn refusal(
    reaches: &[Result<Reach<'_>, Error>],
    observed: &[Result<Observed, Error>],
    author: Author<'_>,
) -> Option<Error> {
    for (reach, observed) in reaches.iter().zip(observed) {
        let (Ok(reach), Ok(observed)) = (reach, observed) else { continue };
        let ledger = &observed.shelf.ledger;
        let admission = to_delete(ledger, author.epoch, observed.holder.as_ref(), author.writer);
        if let Admission::Refused(epoch) = admission {
            return Some(reach.refused(ledger, epoch, author.epoch).await);
        }
    }
    None
}

impl Reach<'_> {
    async fn clear(&self, observed: &Observed, author: Author<'_>, time: Timestamp) -> Result<usize, Error> {
        let ledger = &observed.shelf.ledger;
        if to_delete(ledger, author.epoch, observed.holder.as_ref(), author.writer) != Admission::Held {
            self.hold(HoldKind::Tombstone, author, time).await?;
        }
        let keys = self.doomed(author.epoch).await?;
        let mut failure = None;
        let mut removed = 0;
        for batch in keys[..keys.len().min(self.settings.deletions)].chunks(BATCH) {
            // Whoever begins again with a higher epoch must not lose what it has written since.
            self.still_ours(author).await?;
            match self.remove(batch).await {
                Ok(()) => removed += batch.len(),
                Err(error) => failure = Some(error),
            }
            if failure.is_some() {
                break;
            }
        }
        // What the store says is gone may not be.
        let left = self.doomed(author.epoch).await?;
        match left.first() {
            None => Ok(removed),
            Some(example) => Err(Error::Left {
                store: self.name.to_owned(),
                left: left.len(),
                example: example.clone(),
                why: failure.map(Box::new),
            }),
        }
    }

    /// Everything of the group but the tombstone that keeps a returning primary out. Manifests go before what they
    /// name, and claims last.
    async fn doomed(&self, epoch: Epoch) -> Result<Vec<String>, Error> {
        let prefix = self.group.prefix();
        let entries = self.list(&prefix).await?;
        let rank = |key: &str| match Spot::parse(self.group, key.strip_prefix(&prefix).unwrap_or(key)) {
            Spot::Tombstone(found) if found >= epoch => None,
            Spot::Latest => Some(0),
            Spot::Manifest(..) => Some(1),
            Spot::Blob(_) => Some(3),
            Spot::Claim(_) | Spot::Tombstone(_) | Spot::Probe => Some(4),
            // As long as anything of ours lies here, another fleet keeps off.
            Spot::Fleet => Some(5),
            _ => Some(2),
        };
        let mut keys: Vec<_> =
            sizes(&entries).filter_map(|(key, _)| Some((rank(key)?, key.to_owned()))).collect();
        keys.sort_unstable();
        Ok(keys.into_iter().map(|(_, key)| key).collect())
    }

    /// Removes a batch; where that fails, one by one, so that one that resists keeps no other.
    async fn remove(&self, keys: &[String]) -> Result<(), Error> {
        let Err(first) = self.delete_many(keys).await else { return Ok(()) };
        if matches!(first, Error::OutOfTime { .. }) {
            return Err(first);
        }
        let mut failures = Vec::new();
        for key in keys {
            if let Err(error) = self.delete(key).await {
                failures.push(error);
            }
            if failures.len() >= FAILURES {
                break;
            }
        }
        failures.pop().map_or(Ok(()), Err)
    }
}
