//! What must be written so that a store has what it should have.

use std::collections::{BTreeMap, BTreeSet};

use super::shelf::Shelf;
use crate::key::Spot;
use crate::{ClusterId, Digest, Epoch, Error, FleetId, Generation, Listed, Manifest, RecordId};

/// What a caller wants to be changed. What it does not name stays: nothing is removed by omission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) put: BTreeMap<RecordId, Listed>,
    pub(crate) removed: BTreeSet<RecordId>,
}

impl Change {
    /// The records after the change. `base` are those before it.
    pub(crate) fn apply(
        &self,
        base: &BTreeMap<RecordId, Listed>,
    ) -> Result<BTreeMap<RecordId, Listed>, Error> {
        if let Some(both) = self.removed.iter().find(|id| self.put.contains_key(id)) {
            return Err(Error::Contradiction(both.clone()));
        }
        let kept = base.iter().filter(|(id, _)| !self.removed.contains(id));
        Ok(kept.chain(&self.put).map(|(id, listed)| (id.clone(), *listed)).collect())
    }
}

/// Who writes what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Author<'a> {
    pub(crate) epoch: Epoch,
    pub(crate) writer: &'a ClusterId,
    /// Of which fleet, where that is known.
    pub(crate) fleet: Option<&'a FleetId>,
}

/// Whether the newest manifest already says what it should: then no new generation is made, only copied where it lacks.
pub(crate) fn says(
    newest: &Manifest,
    author: Author<'_>,
    records: &BTreeMap<RecordId, Listed>,
    after: Generation,
) -> bool {
    newest.epoch == author.epoch
        && newest.writer == *author.writer
        && (author.fleet.is_none() || newest.fleet.as_ref() == author.fleet)
        && newest.generation >= after
        && newest.records == *records
}

/// The number of a new generation: above all that was seen or is remembered. The clock makes it grow also past a
/// generation in a store that cannot be seen now.
pub(crate) fn next(seen: Generation, after: Generation, clock_millis: u64) -> Generation {
    Generation((seen.max(after).0.saturating_add(1)).max(clock_millis))
}

/// What to do in one store, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Contents to write.
    pub(crate) blobs: BTreeSet<Digest>,
    /// Ramen's keys to write.
    pub(crate) keys: BTreeSet<RecordId>,
    /// Whether the manifest is to be written.
    pub(crate) manifest: bool,
    /// Keys below the prefix to remove afterwards.
    pub(crate) remove: BTreeSet<String>,
}

impl Plan {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the content of a record is written there.
    pub(crate) fn writes(&self, spot: &Spot) -> bool {
        match spot {
            Spot::Blob(digest) => self.blobs.contains(digest),
            Spot::Record(id) => self.keys.contains(id),
            _ => false,
        }
    }
}

/// Plans for one store. `own` is its newest manifest so far; `target` is the one that it should have.
pub(crate) fn plan(shelf: &Shelf, own: Option<&Manifest>, target: &Manifest) -> Plan {
    let there = shelf.ledger.manifests.contains(&(target.epoch, target.generation));
    // A key is known to hold what the manifest before said, as far as lengths can tell; reading back tells the rest.
    let said = |id: &RecordId| own.and_then(|own| own.records.get(id)).copied();
    let stale = |id: &&RecordId| {
        let listed = target.records[*id];
        said(id) != Some(listed) || shelf.records.get(*id) != Some(&listed.size)
    };
    let went =
        own.into_iter().flat_map(|own| own.records.keys()).filter(|id| !target.records.contains_key(id));
    let gone = target.removed.iter().chain(went);
    let gone = gone.flat_map(|id| [Spot::Record(id.clone()), Spot::OldClaim(id.clone())]);
    // A claim under both of its keys would count twice for Ramen.
    let doubled = target.records.keys().map(|id| Spot::OldClaim(id.clone()));
    let lies = |spot: &Spot| match spot {
        Spot::Record(id) => shelf.records.contains_key(id),
        Spot::OldClaim(id) => shelf.old_claims.contains_key(id),
        _ => false,
    };
    Plan {
        blobs: shelf.lacks(target).map(|id| target.records[id].sha256).collect(),
        keys: target.records.keys().filter(stale).cloned().collect(),
        manifest: !there,
        remove: gone.chain(doubled).filter(lies).map(|spot| spot.to_string()).collect(),
    }
}

/// What may be swept: manifests beyond the newest `keep`, and contents that none of the others names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// Manifests to delete first.
    pub(crate) manifests: BTreeSet<(Epoch, Generation)>,
    /// Manifests whose contents must stay.
    pub(crate) kept: BTreeSet<(Epoch, Generation)>,
}

/// Chooses what goes. The newest, which was just seen complete, always stays.
pub(crate) fn sweep(shelf: &Shelf, newest: (Epoch, Generation), keep: usize) -> Sweep {
    let mut sweep = Sweep { kept: [newest].into(), ..Sweep::default() };
    for manifest in shelf.ledger.manifests.iter().rev().filter(|manifest| **manifest != newest) {
        // One above the newest would be somebody else's; it is not ours to judge.
        if *manifest > newest || sweep.kept.len() < keep.max(1) {
            sweep.kept.insert(*manifest);
        } else {
            sweep.manifests.insert(*manifest);
        }
    }
    sweep
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
