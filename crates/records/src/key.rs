//! Where things lie: Ramen's keys as Ramen spells them, and ours beside them.
//!
//! Ramen lists by type prefix, so it never sees what lies below `lifeboat/`. Pure text; nothing is read or written here.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Digest, Epoch, Error, Generation};

/// A protected application: namespace and name of its VolumeReplicationGroup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Group {
    namespace: String,
    name: String,
}

impl<'de> Deserialize<'de> for Group {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Plain {
            namespace: String,
            name: String,
        }
        let plain = Plain::deserialize(deserializer)?;
        Self::new(plain.namespace, plain.name).map_err(de::Error::custom)
    }
}

impl Group {
    /// Names a group.
    ///
    /// # Errors
    /// [`Error::Invalid`] where a part could not be part of a key: deletion by prefix must never reach beyond its group.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Result<Self, Error> {
        let group = Self { namespace: namespace.into(), name: name.into() };
        if is_part(&group.namespace) && is_part(&group.name) {
            return Ok(group);
        }
        Err(Error::Invalid(format!(
            "{:?}/{:?} names no group: both parts must be names of Kubernetes objects",
            group.namespace, group.name
        )))
    }

    /// Namespace of the group.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Name of the group.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What every key of the group begins with.
    #[must_use]
    pub fn prefix(&self) -> String {
        format!("{}/{}/", self.namespace, self.name)
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Whether a text can be one part of a key.
fn is_part(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 253
        && text != "."
        && text != ".."
        && !text.contains('/')
        && !text.chars().any(char::is_control)
}

/// One record of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordId {
    /// The VolumeReplicationGroup itself.
    Group,
    /// A PersistentVolume.
    Volume {
        /// Its name.
        name: String,
    },
    /// A PersistentVolumeClaim.
    Claim {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A VolumeGroupReplicationContent.
    VolumeGroupContent {
        /// Its name.
        name: String,
    },
    /// A VolumeGroupReplication.
    VolumeGroup {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

const GROUP: &str = "v1alpha1.VolumeReplicationGroup/a";
const VOLUME: &str = "v1.PersistentVolume/";
const CLAIM: &str = "v1.PersistentVolumeClaim/";
const VOLUME_GROUP_CONTENT: &str = "v1alpha1.VolumeGroupReplicationContent/";
const VOLUME_GROUP: &str = "v1alpha1.VolumeGroupReplication/";
const KUBE_OBJECTS: &str = "kube-objects/";
const LEDGER: &str = "lifeboat/v1/ledger/";
const BLOBS: &str = "lifeboat/v1/blobs/";
const PROBE: &str = "lifeboat/v1/probe";
const LATEST: &str = "lifeboat/v1/latest";
const ORPHAN: &str = "lifeboat/v1/orphan";
const FLEET: &str = "lifeboat/v1/fleet";

impl RecordId {
    /// A volume's record.
    #[must_use]
    pub fn volume(name: &str) -> Self {
        Self::Volume { name: name.to_owned() }
    }

    /// A claim's record.
    #[must_use]
    pub fn claim(namespace: &str, name: &str) -> Self {
        Self::Claim { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// The key below the group's prefix, as Ramen spells it.
impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group => f.write_str(GROUP),
            Self::Volume { name } => write!(f, "{VOLUME}{name}"),
            Self::Claim { namespace, name } => write!(f, "{CLAIM}{namespace}/{name}"),
            Self::VolumeGroupContent { name } => write!(f, "{VOLUME_GROUP_CONTENT}{name}"),
            Self::VolumeGroup { namespace, name } => write!(f, "{VOLUME_GROUP}{namespace}/{name}"),
        }
    }
}

impl FromStr for RecordId {
    type Err = Error;

    fn from_str(key: &str) -> Result<Self, Error> {
        if key == GROUP {
            return Ok(Self::Group);
        }
        let one = |text: &str| is_part(text).then(|| text.to_owned());
        let two = |text: &str| {
            let (namespace, name) = text.split_once('/')?;
            Some((one(namespace)?, one(name)?))
        };
        let found = if let Some(rest) = key.strip_prefix(VOLUME) {
            one(rest).map(|name| Self::Volume { name })
        } else if let Some(rest) = key.strip_prefix(CLAIM) {
            two(rest).map(|(namespace, name)| Self::Claim { namespace, name })
        } else if let Some(rest) = key.strip_prefix(VOLUME_GROUP_CONTENT) {
            one(rest).map(|name| Self::VolumeGroupContent { name })
        } else if let Some(rest) = key.strip_prefix(VOLUME_GROUP) {
            two(rest).map(|(namespace, name)| Self::VolumeGroup { namespace, name })
        } else {
            None
        };
        found.ok_or_else(|| Error::Invalid(format!("{key:?} is the key of no record")))
    }
}

impl Serialize for RecordId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RecordId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// What lies at a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Spot {
    /// A record under Ramen's key.
    Record(RecordId),
    /// A claim under the key that older releases of Ramen used.
    OldClaim(RecordId),
    /// A capture of the application's objects, in Velero's layout.
    KubeObjects,
    /// Who may write in an epoch.
    Claim(Epoch),
    /// The group was deleted in this epoch.
    Tombstone(Epoch),
    /// What belonged together at one time.
    Manifest(Epoch, Generation),
    /// A record's content, by its checksum.
    Blob(Digest),
    /// By which we learn whether a store knows conditional writes.
    Probe,
    /// Names the newest manifest, so that a list that left it out is found out.
    Latest,
    /// Says that the group was deleted without the order to end its protection.
    Orphan,
    /// Says which fleet the group belongs to.
    Fleet,
    /// Nothing that we know.
    Foreign,
}

impl Spot {
    /// Reads the part of a key below the group's prefix.
    pub(crate) fn parse(group: &Group, key: &str) -> Self {
        if let Ok(id) = key.parse() {
            return Self::Record(id);
        }
        if let Some(name) = key.strip_prefix(CLAIM).filter(|rest| is_part(rest)) {
            return Self::OldClaim(RecordId::claim(group.namespace(), name));
        }
        if key.starts_with(KUBE_OBJECTS) {
            return Self::KubeObjects;
        }
        match key {
            PROBE => return Self::Probe,
            LATEST => return Self::Latest,
            ORPHAN => return Self::Orphan,
            FLEET => return Self::Fleet,
            _ => {}
        }
        if let Some(digest) = key.strip_prefix(BLOBS).and_then(|rest| rest.parse().ok()) {
            return Self::Blob(digest);
        }
        key.strip_prefix(LEDGER).and_then(Self::ledger).unwrap_or(Self::Foreign)
    }

    fn ledger(rest: &str) -> Option<Self> {
        let (epoch, what) = rest.split_once('/')?;
        let epoch = Epoch(number(epoch)?);
        match what {
            "claim" => Some(Self::Claim(epoch)),
            "tombstone" => Some(Self::Tombstone(epoch)),
            _ => {
                let generation = number(what.strip_prefix("manifest-")?)?;
                Some(Self::Manifest(epoch, Generation(generation)))
            }
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(id) => id.fmt(f),
            Self::OldClaim(RecordId::Claim { name, .. }) => write!(f, "{CLAIM}{name}"),
            Self::Claim(epoch) => write!(f, "{LEDGER}{:020}/claim", epoch.0),
            Self::Tombstone(epoch) => write!(f, "{LEDGER}{:020}/tombstone", epoch.0),
            Self::Manifest(epoch, generation) => {
                write!(f, "{LEDGER}{:020}/manifest-{:020}", epoch.0, generation.0)
            }
            Self::Blob(digest) => write!(f, "{BLOBS}{digest}"),
            Self::Probe => f.write_str(PROBE),
            Self::Latest => f.write_str(LATEST),
            Self::Orphan => f.write_str(ORPHAN),
            Self::Fleet => f.write_str(FLEET),
            Self::OldClaim(_) | Self::KubeObjects | Self::Foreign => f.write_str(KUBE_OBJECTS),
        }
    }
}

/// Where the ledger of a group lies.
pub(crate) fn ledger(group: &Group) -> String {
    format!("{}{LEDGER}", group.prefix())
}

/// A number in the one form that sorts as text: twenty digits.
fn number(text: &str) -> Option<u64> {
    let good = text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit());
    good.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> Group {
        Group::new("shop", "orders").unwrap()
    }

    #[test]
    fn keys_are_ramens_and_read_back() {
        let check = |id: RecordId, expected: &str| {
            assert_eq!(id.to_string(), expected);
            assert_eq!(expected.parse::<RecordId>().unwrap(), id);
            assert_eq!(Spot::parse(&group(), expected), Spot::Record(id));
        };
        check(RecordId::Group, "v1alpha1.VolumeReplicationGroup/a");
        check(RecordId::volume("pv-1"), "v1.PersistentVolume/pv-1");
        check(RecordId::claim("shop", "data"), "v1.PersistentVolumeClaim/shop/data");
        check(RecordId::VolumeGroupContent { name: "c".into() }, "v1alpha1.VolumeGroupReplicationContent/c");
        check(
            RecordId::VolumeGroup { namespace: "n".into(), name: "g".into() },
            "v1alpha1.VolumeGroupReplication/n/g",
        );
    }

    #[test]
    fn every_other_key_has_its_meaning() {
        let check = |key: &str, expected: Spot| assert_eq!(Spot::parse(&group(), key), expected, "{key}");
        check("v1.PersistentVolumeClaim/data", Spot::OldClaim(RecordId::claim("shop", "data")));
        check("kube-objects/1/velero/backups/x/y.tar.gz", Spot::KubeObjects);
        check("lifeboat/v1/probe", Spot::Probe);
        check("lifeboat/v1/latest", Spot::Latest);
        check("lifeboat/v1/orphan", Spot::Orphan);
        for junk in [
            "",
            "v1.PersistentVolume/",
            "v1.PersistentVolume/a/b",
            "v1.PersistentVolumeClaim/a/b/c",
            "v1alpha1.VolumeReplicationGroup/b",
            "v1.Secret/x",
            "lifeboat/v1/ledger/1/claim",
            "lifeboat/v1/ledger/0000000000000000000x/claim",
            "lifeboat/v1/ledger/99999999999999999999/claim",
            "lifeboat/v1/ledger/00000000000000000001/manifest-+0000000000000000001",
            "lifeboat/v1/blobs/abc",
        ] {
            check(junk, Spot::Foreign);
        }
        for spot in [
            Spot::Claim(Epoch(3)),
            Spot::Tombstone(Epoch(u64::MAX)),
            Spot::Manifest(Epoch(1), Generation(2)),
            Spot::Blob(Digest::of(b"x")),
            Spot::OldClaim(RecordId::claim("shop", "data")),
        ] {
            check(&spot.to_string(), spot);
        }
    }

    #[test]
    fn a_group_is_named_by_two_plain_names() {
        let check = |namespace: &str, name: &str, good: bool| {
            assert_eq!(Group::new(namespace, name).is_ok(), good, "{namespace:?}/{name:?}");
        };
        check("shop", "orders", true);
        check("", "orders", false);
        check("shop", "", false);
        check("shop", "..", false);
        check("shop", "a/b", false);
        check("shop", "a\nb", false);
        assert!(serde_json::from_str::<Group>(r#"{"namespace":"a/b","name":"c"}"#).is_err());
    }
}
