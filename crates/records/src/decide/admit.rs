//! Who may write, and who may delete.

use super::shelf::Ledger;
use crate::{ClusterId, Epoch};

/// Whether a writer may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The epoch is ours already.
    Held,
    /// Nobody holds the epoch yet: claim it first.
    Claim,
    /// Somebody holds this epoch, which is ours or a higher one.
    Refused(Epoch),
}

/// Decides for one store. `holder` is who holds exactly our epoch there, where something says so.
///
/// A tombstone refuses its own epoch as well: what was deleted begins again only with a higher one.
pub(crate) fn to_write(
    ledger: &Ledger,
    epoch: Epoch,
    holder: Option<&ClusterId>,
    me: &ClusterId,
) -> Admission {
    match ledger.highest() {
        Some(highest) if highest > epoch => Admission::Refused(highest),
        _ if ledger.tombstones.contains(&epoch) => Admission::Refused(epoch),
        _ => match holder {
            Some(holder) if holder == me && ledger.claims.contains(&epoch) => Admission::Held,
            Some(holder) if holder == me => Admission::Claim,
            Some(_) => Admission::Refused(epoch),
            None => Admission::Claim,
        },
    }
}

/// Decides whether a primary may delete the group. Its own tombstone only says that it has begun.
pub(crate) fn to_delete(
    ledger: &Ledger,
    epoch: Epoch,
    holder: Option<&ClusterId>,
    me: &ClusterId,
) -> Admission {
    match ledger.highest() {
        Some(highest) if highest > epoch => Admission::Refused(highest),
        _ => match holder {
            Some(holder) if holder != me => Admission::Refused(epoch),
            _ if ledger.tombstones.contains(&epoch) => Admission::Held,
            _ => Admission::Claim,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Generation;
    use proptest::prelude::*;

    fn ledger(claims: &[u64], tombstones: &[u64], manifests: &[u64]) -> Ledger {
        Ledger {
            claims: claims.iter().map(|epoch| Epoch(*epoch)).collect(),
            tombstones: tombstones.iter().map(|epoch| Epoch(*epoch)).collect(),
            manifests: manifests.iter().map(|epoch| (Epoch(*epoch), Generation(1))).collect(),
        }
    }

    #[test]
    fn a_lower_epoch_is_refused_whatever_carries_the_higher_one() {
        let east = ClusterId("east".into());
        let west = ClusterId("west".into());
        let check = |ledger: Ledger, holder: Option<&ClusterId>, write: Admission, delete: Admission| {
            assert_eq!(to_write(&ledger, Epoch(3), holder, &east), write, "writing on {ledger:?} {holder:?}");
            assert_eq!(
                to_delete(&ledger, Epoch(3), holder, &east),
                delete,
                "deleting on {ledger:?} {holder:?}"
            );
        };
        use Admission::{Claim, Held, Refused};
        check(ledger(&[], &[], &[]), None, Claim, Claim);
        check(ledger(&[2], &[1], &[2]), None, Claim, Claim);
        check(ledger(&[3], &[], &[]), Some(&east), Held, Claim);
        check(ledger(&[3], &[], &[]), Some(&west), Refused(Epoch(3)), Refused(Epoch(3)));
        check(ledger(&[], &[], &[3]), Some(&east), Claim, Claim);
        check(ledger(&[], &[], &[3]), Some(&west), Refused(Epoch(3)), Refused(Epoch(3)));
        check(ledger(&[4], &[], &[]), None, Refused(Epoch(4)), Refused(Epoch(4)));
        check(ledger(&[], &[4], &[]), None, Refused(Epoch(4)), Refused(Epoch(4)));
        check(ledger(&[], &[], &[4]), None, Refused(Epoch(4)), Refused(Epoch(4)));
        check(ledger(&[], &[3], &[]), Some(&east), Refused(Epoch(3)), Held);
        check(ledger(&[], &[3], &[]), Some(&west), Refused(Epoch(3)), Refused(Epoch(3)));
        check(ledger(&[], &[2], &[]), None, Claim, Claim);
    }

    proptest! {
        #[test]
        fn nobody_writes_below_anything_that_is_there(
            claims in proptest::collection::btree_set(0u64..8, 0..4),
            tombstones in proptest::collection::btree_set(0u64..8, 0..3),
            manifests in proptest::collection::btree_set(0u64..8, 0..4),
            epoch in 0u64..8,
        ) {
            let all = claims.iter().chain(&tombstones).chain(&manifests);
            let highest = all.max().copied();
            let ledger = ledger(
                &claims.iter().copied().collect::<Vec<_>>(),
                &tombstones.iter().copied().collect::<Vec<_>>(),
                &manifests.iter().copied().collect::<Vec<_>>(),
            );
            let me = ClusterId("me".into());
            let admitted = to_write(&ledger, Epoch(epoch), Some(&me), &me);
            let refused = matches!(admitted, Admission::Refused(_));
            let buried = tombstones.contains(&epoch);
            prop_assert_eq!(refused, highest.is_some_and(|highest| highest > epoch) || buried);
        }
    }
}
