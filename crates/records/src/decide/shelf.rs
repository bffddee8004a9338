//! A listing, sorted by meaning: what one store has of one group.

use std::collections::{BTreeMap, BTreeSet};

use crate::key::Spot;
use crate::{Digest, Epoch, Generation, Group, Manifest, RecordId};

/// What carries epochs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) claims: BTreeSet<Epoch>,
    pub(crate) tombstones: BTreeSet<Epoch>,
    pub(crate) manifests: BTreeSet<(Epoch, Generation)>,
}

impl Ledger {
    /// The highest epoch that anything here carries.
    pub(crate) fn highest(&self) -> Option<Epoch> {
        let manifest = self.manifests.last().map(|(epoch, _)| *epoch);
        self.claims.last().copied().max(self.tombstones.last().copied()).max(manifest)
    }

    /// The highest generation of any epoch.
    pub(crate) fn generation(&self) -> Generation {
        self.manifests.iter().map(|(_, generation)| *generation).max().unwrap_or_default()
    }

    /// What tells best who holds an epoch.
    pub(crate) fn witness(&self, epoch: Epoch) -> Option<Spot> {
        if self.claims.contains(&epoch) {
            return Some(Spot::Claim(epoch));
        }
        if self.tombstones.contains(&epoch) {
            return Some(Spot::Tombstone(epoch));
        }
        let of_epoch = self.manifests.iter().rev().find(|(found, _)| *found == epoch);
        of_epoch.map(|(epoch, generation)| Spot::Manifest(*epoch, *generation))
    }
}

/// What one store has of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shelf {
    pub(crate) ledger: Ledger,
    /// Contents by checksum, with their lengths.
    pub(crate) blobs: BTreeMap<Digest, u64>,
    /// Records under Ramen's keys, with their lengths.
    pub(crate) records: BTreeMap<RecordId, u64>,
    /// Claims under Ramen's older keys.
    pub(crate) old_claims: BTreeMap<RecordId, u64>,
    /// Captures of the application's objects.
    pub(crate) kube_objects: usize,
    /// Whether the mark of an orphaned group lies here.
    pub(crate) orphan: bool,
    /// Whether something says which fleet the group belongs to.
    pub(crate) fleet: bool,
    /// Keys that nobody we know has written.
    pub(crate) foreign: BTreeSet<String>,
}

impl Shelf {
    /// Sorts a listing. Order and repetitions do not matter; keys of other groups are not ours to look at.
    pub(crate) fn sort<'a>(group: &Group, entries: impl IntoIterator<Item = (&'a str, u64)>) -> Self {
        let prefix = group.prefix();
        let mut shelf = Self::default();
        for (key, size) in entries {
            let Some(rest) = key.strip_prefix(&prefix) else { continue };
            match Spot::parse(group, rest) {
                Spot::Record(id) => drop(shelf.records.insert(id, size)),
                Spot::OldClaim(id) => drop(shelf.old_claims.insert(id, size)),
                Spot::KubeObjects => shelf.kube_objects += 1,
                Spot::Claim(epoch) => drop(shelf.ledger.claims.insert(epoch)),
                Spot::Tombstone(epoch) => drop(shelf.ledger.tombstones.insert(epoch)),
                Spot::Manifest(epoch, generation) => {
                    shelf.ledger.manifests.insert((epoch, generation));
                }
                Spot::Blob(digest) => drop(shelf.blobs.insert(digest, size)),
                Spot::Orphan => shelf.orphan = true,
                Spot::Fleet => shelf.fleet = true,
                Spot::Probe | Spot::Latest => {}
                Spot::Foreign => drop(shelf.foreign.insert(rest.to_owned())),
            }
        }
        shelf
    }

    /// The records of a manifest whose content is not here, or has another length.
    pub(crate) fn lacks<'a>(&'a self, manifest: &'a Manifest) -> impl Iterator<Item = &'a RecordId> {
        manifest
            .records
            .iter()
            .filter(|(_, listed)| self.blobs.get(&listed.sha256) != Some(&listed.size))
            .map(|(id, _)| id)
    }

    /// Whether there is anything that a fleet may have written.
    pub(crate) fn is_used(&self) -> bool {
        self.fleet || self.has_ramens() || self.orphan || self.ledger.highest().is_some()
    }

    /// Whether anything that Ramen would restore from lies here.
    pub(crate) fn has_ramens(&self) -> bool {
        !self.records.is_empty() || !self.old_claims.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEYS: [&str; 12] = [
        "shop/orders/v1.PersistentVolume/pv-1",
        "shop/orders/v1.PersistentVolumeClaim/shop/data",
        "shop/orders/v1.PersistentVolumeClaim/old",
        "shop/orders/v1alpha1.VolumeReplicationGroup/a",
        "shop/orders/kube-objects/0/velero/backups/x",
        "shop/orders/lifeboat/v1/ledger/00000000000000000003/claim",
        "shop/orders/lifeboat/v1/ledger/00000000000000000002/tombstone",
        "shop/orders/lifeboat/v1/ledger/00000000000000000003/manifest-00000000000000000009",
        "shop/orders/lifeboat/v1/ledger/00000000000000000001/manifest-00000000000000000012",
        "shop/orders/odd",
        "shop/orders2/v1.PersistentVolume/other",
        "shop/order",
    ];

    #[test]
    fn each_key_finds_its_place() {
        let group = Group::new("shop", "orders").unwrap();
        let shelf = Shelf::sort(&group, KEYS.iter().map(|key| (*key, 5)));
        assert_eq!(shelf.records.len(), 3);
        assert_eq!(shelf.old_claims.len(), 1);
        assert_eq!(shelf.kube_objects, 1);
        assert_eq!(shelf.foreign, ["odd".to_owned()].into());
        assert_eq!(shelf.ledger.highest(), Some(Epoch(3)));
        assert_eq!(shelf.ledger.generation(), Generation(12));
        assert_eq!(shelf.ledger.witness(Epoch(3)), Some(Spot::Claim(Epoch(3))));
        assert_eq!(shelf.ledger.witness(Epoch(2)), Some(Spot::Tombstone(Epoch(2))));
        assert_eq!(shelf.ledger.witness(Epoch(1)), Some(Spot::Manifest(Epoch(1), Generation(12))));
        assert_eq!(shelf.ledger.witness(Epoch(7)), None);
        assert_eq!(Ledger::default().highest(), None);
    }

    proptest! {
        #[test]
        fn order_and_repetition_of_a_listing_do_not_matter(
            order in Just((0..KEYS.len()).collect::<Vec<_>>()).prop_shuffle(),
            again in proptest::collection::vec(0..KEYS.len(), 0..5),
        ) {
            let group = Group::new("shop", "orders").unwrap();
            let plain = Shelf::sort(&group, KEYS.iter().map(|key| (*key, 5)));
            let mixed = order.iter().chain(&again).map(|index| (KEYS[*index], 5));
            let mut mixed = Shelf::sort(&group, mixed);
            mixed.kube_objects = plain.kube_objects;
            prop_assert_eq!(mixed, plain);
        }
    }
}
