//! The mark of a group that was deleted without the order to end its protection: an object of its own beside the records, which stay.

use futures::future::join_all;

use super::Stores;
use super::reach::Reach;
use crate::decide::shelf::Shelf;
use crate::key::Spot;
use crate::{Epoch, Error, Orphan};

impl Stores {
    /// Writes the mark into every store that answers; each has its own outcome, in the order of the profiles. Where a higher epoch has
    /// written, the group is not the one that was left: nothing is written there.
    pub async fn orphan(&self, orphan: &Orphan) -> Vec<(String, Result<(), Error>)> {
        let reaches = self.reaches(&orphan.group);
        let outcomes = join_all(reaches.iter().map(|reach| async {
            let reach = reach.as_ref().map_err(Clone::clone)?;
            let shelf = reach.shelf().await?;
            reach.not_of_others(&shelf).await?;
            let ledger = shelf.ledger;
            if let Some(highest) = ledger.highest().filter(|highest| *highest > orphan.epoch) {
                return Err(reach.refused(&ledger, highest, orphan.epoch).await);
            }
            let content = orphan.encode().map_err(|fault| reach.damaged(&Spot::Orphan, fault))?;
            reach.put(&Spot::Orphan, content).await
        }))
        .await;
        let names = self.profiles.iter().map(|profile| profile.name.clone());
        names.zip(outcomes).collect()
    }
}

impl Reach<'_> {
    /// Whoever writes records has a group again.
    pub(super) async fn unorphan(&self, shelf: &Shelf) -> Result<(), Error> {
        if !shelf.orphan {
            return Ok(());
        }
        self.delete(&self.key(&Spot::Orphan)).await
    }
}

/// The mark of the highest epoch, where no store shows a higher one than it.
pub(crate) async fn found(reached: &[(&Reach<'_>, &Shelf)]) -> Option<Orphan> {
    let highest = reached.iter().filter_map(|(_, shelf)| shelf.ledger.highest()).max().unwrap_or(Epoch(0));
    let marks = join_all(reached.iter().filter(|(_, shelf)| shelf.orphan).map(|(reach, _)| async move {
        let bytes = reach.read(&Spot::Orphan).await.ok()?;
        Orphan::decode(&bytes, reach.group)
    }))
    .await;
    marks.into_iter().flatten().filter(|orphan| orphan.epoch >= highest).max_by_key(|orphan| orphan.epoch)
}
