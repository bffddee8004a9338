//! Epochs, and the documents that carry them: a manifest says what belongs together, a claim who writes in an epoch, a
//! tombstone that the group was deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::codec::{seal, unseal};
use crate::{Digest, Fault, Group, RecordId};

/// The number of a role change of an application. It only grows; a lower one is refused everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Orders the manifests of one epoch. It grows with every change, also while a store is out of reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which cluster wrote something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterId(pub String);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which fleet something belongs to: the fingerprint of its hub's key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FleetId(pub String);

impl fmt::Display for FleetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A record as a manifest names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Checksum of the packed record.
    pub sha256: Digest,
    /// Its length in bytes.
    pub size: u64,
}

/// Everything that belonged together at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Whose records.
    pub group: Group,
    /// In which epoch it was written.
    pub epoch: Epoch,
    /// Its place in the epoch.
    pub generation: Generation,
    /// Who wrote it.
    pub writer: ClusterId,
    /// Of which fleet; nothing where the writer did not know, such as a group without a hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetId>,
    /// When, by the writer's clock. For people: nothing is decided by it.
    pub time: Timestamp,
    /// The complete list of records.
    pub records: BTreeMap<RecordId, Listed>,
    /// Records that were removed on purpose and whose keys may not be gone everywhere yet.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<RecordId>,
}

const MANIFEST: &str = "lifeboat.manifest/v1";

impl Manifest {
    pub(crate) fn encode(&self) -> Result<Bytes, Fault> {
        seal(MANIFEST, self)
    }

    /// Reads one that lies under the key of this epoch and generation.
    pub(crate) fn decode(
        bytes: &[u8],
        group: &Group,
        epoch: Epoch,
        generation: Generation,
    ) -> Result<Self, Fault> {
        let manifest: Self = unseal(MANIFEST, bytes)?;
        if (&manifest.group, manifest.epoch, manifest.generation) == (group, epoch, generation) {
            return Ok(manifest);
        }
        Err(Fault::Other(format!(
            "generation {} of epoch {} of {}",
            manifest.generation, manifest.epoch, manifest.group
        )))
    }
}

/// Who holds an epoch: the content of a claim and of a tombstone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hold {
    pub(crate) group: Group,
    pub(crate) epoch: Epoch,
    pub(crate) writer: ClusterId,
    pub(crate) time: Timestamp,
    /// Whether the store was seen to refuse a second write of one key. Without that the hold is a word, no lock.
    pub(crate) fenced: bool,
}

/// Which manifest is the newest: a hint by which a list that left it out is found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latest {
    pub(crate) group: Group,
    pub(crate) epoch: Epoch,
    pub(crate) generation: Generation,
}

const LATEST: &str = "lifeboat.latest/v1";

impl Latest {
    pub(crate) fn encode(&self) -> Result<Bytes, Fault> {
        seal(LATEST, self)
    }

    /// Reads one; what cannot be read is no hint.
    pub(crate) fn decode(bytes: &[u8], group: &Group) -> Option<Self> {
        unseal::<Self>(LATEST, bytes).ok().filter(|latest| latest.group == *group)
    }
}

/// Which fleet a group belongs to. It is written once, only where none lies yet, and goes with the last record: of two fleets that share a bucket
/// one gets it and the other is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) group: Group,
    pub(crate) fleet: FleetId,
}

const FLEET: &str = "lifeboat.fleet/v1";

impl Mark {
    pub(crate) fn encode(&self) -> Result<Bytes, Fault> {
        seal(FLEET, self)
    }

    /// Reads one; what cannot be read tells nothing.
    pub(crate) fn decode(bytes: &[u8], group: &Group) -> Option<Self> {
        unseal::<Self>(FLEET, bytes).ok().filter(|mark| mark.group == *group)
    }
}

/// The mark of a group that was deleted without the order to end its protection. It refuses nobody and buries nothing: it tells readers that the records
/// beside it have no group at present, and where its volumes were left. The next write of records removes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orphan {
    /// Whose records.
    pub group: Group,
    /// The epoch at which the group was primary.
    pub epoch: Epoch,
    /// The cluster that it was on.
    pub cluster: ClusterId,
    /// UID of the VolumeReplicationGroup that was deleted.
    pub uid: String,
    /// When, by that cluster's clock. For people: nothing is decided by it.
    pub time: Timestamp,
    /// PersistentVolumes that were left on that cluster.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub volumes: BTreeSet<String>,
}

const ORPHAN: &str = "lifeboat.orphan/v1";

impl Orphan {
    pub(crate) fn encode(&self) -> Result<Bytes, Fault> {
        seal(ORPHAN, self)
    }

    /// Reads one; what cannot be read tells nothing.
    pub(crate) fn decode(bytes: &[u8], group: &Group) -> Option<Self> {
        unseal::<Self>(ORPHAN, bytes).ok().filter(|orphan| orphan.group == *group)
    }
}

/// The two kinds of hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldKind {
    /// Writes in an epoch.
    Claim,
    /// Deleted the group in an epoch.
    Tombstone,
}

impl HoldKind {
    fn format(self) -> &'static str {
        match self {
            Self::Claim => "lifeboat.claim/v1",
            Self::Tombstone => "lifeboat.tombstone/v1",
        }
    }
}

impl Hold {
    pub(crate) fn encode(&self, kind: HoldKind) -> Result<Bytes, Fault> {
        seal(kind.format(), self)
    }

    pub(crate) fn decode(kind: HoldKind, bytes: &[u8], group: &Group, epoch: Epoch) -> Result<Self, Fault> {
        let hold: Self = unseal(kind.format(), bytes)?;
        if (&hold.group, hold.epoch) == (group, epoch) {
            return Ok(hold);
        }
        Err(Fault::Other(format!("epoch {} of {}", hold.epoch, hold.group)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_under_another_key_is_refused() {
        let group = Group::new("shop", "orders").unwrap();
        let listed = Listed { sha256: Digest::of(b"x"), size: 1 };
        let manifest = Manifest {
            group: group.clone(),
            epoch: Epoch(3),
            generation: Generation(7),
            writer: ClusterId("east".into()),
            fleet: Some(FleetId("f1".into())),
            time: Timestamp::UNIX_EPOCH,
            records: [(RecordId::Group, listed), (RecordId::claim("shop", "data"), listed)].into(),
            removed: [RecordId::volume("old")].into(),
        };
        let bytes = manifest.encode().unwrap();
        let read = |group: &Group, epoch, generation| {
            Manifest::decode(&bytes, group, Epoch(epoch), Generation(generation))
        };
        assert_eq!(read(&group, 3, 7).unwrap(), manifest);
        // One of an earlier version has no fleet.
        let plain = Manifest { fleet: None, ..manifest.clone() }.encode().unwrap();
        assert!(!String::from_utf8_lossy(&plain).contains("fleet"));
        assert_eq!(Manifest::decode(&plain, &group, Epoch(3), Generation(7)).unwrap().fleet, None);
        assert!(matches!(read(&group, 4, 7), Err(Fault::Other(_))));
        assert!(matches!(read(&group, 3, 8), Err(Fault::Other(_))));
        assert!(matches!(read(&Group::new("shop", "other").unwrap(), 3, 7), Err(Fault::Other(_))));
        let hold = Hold {
            group: group.clone(),
            epoch: Epoch(3),
            writer: manifest.writer,
            time: manifest.time,
            fenced: true,
        };
        let bytes = hold.encode(HoldKind::Claim).unwrap();
        assert_eq!(Hold::decode(HoldKind::Claim, &bytes, &group, Epoch(3)).unwrap(), hold);
        assert!(
            Hold::decode(HoldKind::Tombstone, &bytes, &group, Epoch(3)).is_err(),
            "a claim buries nobody"
        );
        assert!(Hold::decode(HoldKind::Claim, &bytes, &group, Epoch(2)).is_err());
    }
}
