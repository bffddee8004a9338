//! Which manifest to believe, over all stores.

use std::collections::BTreeMap;

use super::shelf::Ledger;
use crate::{Epoch, Generation};

/// A manifest that some stores have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) epoch: Epoch,
    pub(crate) generation: Generation,
    /// Which stores have it, by their place in the list.
    pub(crate) stores: Vec<usize>,
}

/// The highest epoch in which the group was deleted anywhere. What is not newer is dead in every store: one that was
/// out of reach during the deletion must not bring it back.
pub(crate) fn buried<'a>(ledgers: impl IntoIterator<Item = &'a Ledger>) -> Option<Epoch> {
    ledgers.into_iter().filter_map(|ledger| ledger.tombstones.last().copied()).max()
}

/// The living manifests over all stores that answered, newest first.
pub(crate) fn candidates<'a>(ledgers: impl IntoIterator<Item = (usize, &'a Ledger)>) -> Vec<Candidate> {
    let ledgers: Vec<_> = ledgers.into_iter().collect();
    let buried = buried(ledgers.iter().map(|(_, ledger)| *ledger));
    let mut found: BTreeMap<(Epoch, Generation), Vec<usize>> = BTreeMap::new();
    for (store, ledger) in &ledgers {
        for manifest in &ledger.manifests {
            if buried.is_none_or(|buried| manifest.0 > buried) {
                found.entry(*manifest).or_default().push(*store);
            }
        }
    }
    let newest_first = found.into_iter().rev();
    newest_first.map(|((epoch, generation), stores)| Candidate { epoch, generation, stores }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ledger(manifests: &[(u64, u64)], tombstones: &[u64]) -> Ledger {
        Ledger {
            claims: [].into(),
            tombstones: tombstones.iter().map(|epoch| Epoch(*epoch)).collect(),
            manifests: manifests
                .iter()
                .map(|(epoch, generation)| (Epoch(*epoch), Generation(*generation)))
                .collect(),
        }
    }

    #[test]
    fn the_epoch_counts_before_the_generation_and_the_dead_stay_dead() {
        let check = |ledgers: &[Ledger], expected: &[(u64, u64, &[usize])]| {
            let found = candidates(ledgers.iter().enumerate());
            let found: Vec<_> = found
                .iter()
                .map(|found| (found.epoch.0, found.generation.0, found.stores.as_slice()))
                .collect();
            assert_eq!(found, expected);
        };
        check(&[], &[]);
        check(&[ledger(&[], &[])], &[]);
        check(&[ledger(&[(1, 90)], &[]), ledger(&[(2, 3)], &[])], &[(2, 3, &[1]), (1, 90, &[0])]);
        check(&[ledger(&[(1, 1), (1, 2)], &[]), ledger(&[(1, 2)], &[])], &[(1, 2, &[0, 1]), (1, 1, &[0])]);
        // One store was out of reach while the group was deleted elsewhere.
        check(&[ledger(&[(2, 5)], &[]), ledger(&[], &[2])], &[]);
        check(&[ledger(&[(2, 5), (3, 6)], &[]), ledger(&[], &[2])], &[(3, 6, &[0])]);
    }

    proptest! {
        #[test]
        fn the_first_is_the_greatest_that_lives(
            stores in proptest::collection::vec(
                (proptest::collection::vec((0u64..5, 0u64..5), 0..6), proptest::collection::vec(0u64..5, 0..2)),
                0..4,
            ),
        ) {
            let ledgers: Vec<_> = stores.iter().map(|(manifests, graves)| ledger(manifests, graves)).collect();
            let grave = stores.iter().flat_map(|(_, graves)| graves).max();
            let living = stores.iter().flat_map(|(manifests, _)| manifests);
            let greatest = living.filter(|(epoch, _)| grave.is_none_or(|grave| epoch > grave)).max();
            let found = candidates(ledgers.iter().enumerate());
            prop_assert_eq!(found.first().map(|found| (found.epoch.0, found.generation.0)), greatest.copied());
        }
    }
}
