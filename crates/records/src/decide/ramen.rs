//! Whether what Ramen left in a store can be restored from: it writes no manifest, so the records must vouch for each other.

use std::collections::BTreeMap;

use crate::codec::is_ours;
use crate::record::{claims, group, volumes};
use crate::{Digest, Manifest, RecordId, Records};

/// Why a set of Ramen's records is not whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Two volumes say that they belong to one claim: two primaries have written here.
    #[error(
        "volumes {first} and {second} both belong to claim {claim}: decide which one is right and remove the other's record"
    )]
    TwoVolumes {
        /// The claim.
        claim: String,
        /// One volume.
        first: String,
        /// The other.
        second: String,
    },
    /// The numbers of volumes and claims differ: a record is missing.
    #[error("there are {volumes} volumes and {claims} claims")]
    Count {
        /// How many volumes.
        volumes: usize,
        /// How many claims.
        claims: usize,
    },
    /// A claim's volume is not there.
    #[error("claim {claim} wants volume {volume}, which is not there")]
    NoVolume {
        /// The claim.
        claim: String,
        /// Its volume.
        volume: String,
    },
}

/// The first flaw, if any. Unreadable records are judged by the caller.
pub(crate) fn flaw(records: &Records) -> Option<Flaw> {
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    for volume in volumes(records) {
        let name = volume.metadata.name.clone().unwrap_or_default();
        // A volume without a claim is odd but harms nobody.
        let Some(claim) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else { continue };
        let namespace = claim.namespace.clone().unwrap_or_default();
        let claim = format!("{namespace}/{}", claim.name.clone().unwrap_or_default());
        if let Some(first) = owners.insert(claim.clone(), name.clone()) {
            return Some(Flaw::TwoVolumes { claim, first, second: name });
        }
    }
    let (volume_count, claim_count) = (volumes(records).count(), claims(records).count());
    if volume_count != claim_count {
        return Some(Flaw::Count { volumes: volume_count, claims: claim_count });
    }
    claims(records).find_map(|claim| {
        let volume = claim.spec.as_ref()?.volume_name.clone()?;
        if records.contains_key(&RecordId::volume(&volume)) {
            return None;
        }
        let metadata = &claim.metadata;
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let claim = format!("{namespace}/{}", metadata.name.clone().unwrap_or_default());
        Some(Flaw::NoVolume { claim, volume })
    })
}

/// Whether Ramen has written since a manifest, by what lies under the group's key beside it. A store is given contents first, then Ramen's keys, then
/// the manifest; so what is not what the manifest says, and was not packed by us, came later. (A primary of ours that lost its role, or died before
/// its manifest, can leave another version there, which we packed.) No clock is asked.
pub(crate) fn wrote_after(manifest: &Manifest, group: &[u8]) -> bool {
    let said = manifest.records.get(&RecordId::Group).map(|listed| listed.sha256);
    !is_ours(group) && said != Some(Digest::of(group))
}

/// By what sets of different stores are ranked: when the group's status last changed, by its cluster's clock. There is nothing
/// better in what Ramen writes; a set without it comes last.
pub(crate) fn age(records: &Records) -> Option<jiff::Timestamp> {
    group(records)?.status.as_ref()?.last_update_time.as_ref().map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use serde_json::json;

    fn volume(name: &str, claim: &str) -> Record {
        let claim = json!({"namespace": "shop", "name": claim});
        let volume = json!({"metadata": {"name": name}, "spec": {"claimRef": claim}});
        Record::volume(&serde_json::from_value(volume).unwrap()).unwrap()
    }

    fn claim(name: &str, volume: &str) -> Record {
        let claim = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": {"volumeName": volume}});
        Record::claim(&serde_json::from_value(claim).unwrap()).unwrap()
    }

    #[test]
    fn records_without_a_manifest_must_vouch_for_each_other() {
        let check = |of: Vec<Record>, expected: Option<Flaw>| {
            let records: Records = of.into_iter().map(|record| (record.id().clone(), record)).collect();
            assert_eq!(flaw(&records), expected);
        };
        check(vec![], None);
        check(vec![volume("pv-1", "a"), claim("a", "pv-1")], None);
        check(
            vec![volume("pv-1", "a"), volume("pv-2", "a"), claim("a", "pv-1"), claim("b", "pv-2")],
            Some(Flaw::TwoVolumes { claim: "shop/a".into(), first: "pv-1".into(), second: "pv-2".into() }),
        );
        check(vec![volume("pv-1", "a")], Some(Flaw::Count { volumes: 1, claims: 0 }));
        check(vec![claim("a", "pv-1")], Some(Flaw::Count { volumes: 0, claims: 1 }));
        check(
            vec![volume("pv-1", "b"), claim("a", "pv-9")],
            Some(Flaw::NoVolume { claim: "shop/a".into(), volume: "pv-9".into() }),
        );
    }
}
