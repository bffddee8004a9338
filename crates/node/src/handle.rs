//! What a snapshot is called outside its node: enough to find its bytes from any node of any cluster.

use std::fmt;
use std::str::FromStr;

/// How a snapshot is named on the wire, in a VolumeSnapshotContent and in the restore barrier of a LogicalVolume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Handle {
    /// A volume of one node: the UID of its LogicalVolume, as TopoLVM has it.
    Local(String),
    /// A backup: where it is stored, and the UID of the LogicalVolume it was made from, which the backup carries as a tag.
    Remote {
        /// Namespace of the SnapshotBackupStorage.
        namespace: String,
        /// Name of the SnapshotBackupStorage.
        storage: String,
        /// UID of the LogicalVolume that was backed up.
        volume: String,
    },
}

/// What a remote handle begins with; no Kubernetes UID has a slash in it.
const REMOTE: &str = "backup/";

impl Handle {
    /// The UID of the LogicalVolume.
    #[must_use]
    pub fn volume(&self) -> &str {
        match self {
            Self::Local(volume) | Self::Remote { volume, .. } => volume,
        }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(volume) => f.write_str(volume),
            Self::Remote { namespace, storage, volume } => {
                write!(f, "{REMOTE}{namespace}/{storage}/{volume}")
            }
        }
    }
}

/// The text is no handle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no snapshot handle: expected the UID of a LogicalVolume, or backup/NAMESPACE/STORAGE/UID for one that is in a store"
)]
pub struct NoHandle(String);

impl FromStr for Handle {
    type Err = NoHandle;

    fn from_str(text: &str) -> Result<Self, NoHandle> {
        let bad = || NoHandle(text.to_owned());
        let Some(rest) = text.strip_prefix(REMOTE) else {
            return if text.is_empty() || text.contains('/') {
                Err(bad())
            } else {
                Ok(Self::Local(text.to_owned()))
            };
        };
        match rest.split('/').collect::<Vec<_>>().as_slice() {
            [namespace, storage, volume]
                if [namespace, storage, volume].iter().all(|part| !part.is_empty()) =>
            {
                Ok(Self::Remote {
                    namespace: (*namespace).to_owned(),
                    storage: (*storage).to_owned(),
                    volume: (*volume).to_owned(),
                })
            }
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_read_as_they_are_written() {
        let check = |text: &str, handle: Option<Handle>| {
            assert_eq!(text.parse::<Handle>().ok(), handle, "{text}");
            if let Some(handle) = handle {
                assert_eq!(handle.to_string(), text);
            }
        };
        check("8f0e", Some(Handle::Local("8f0e".into())));
        let remote = Handle::Remote { namespace: "ns".into(), storage: "s3".into(), volume: "8f0e".into() };
        check("backup/ns/s3/8f0e", Some(remote));
        for bad in ["", "a/b", "backup/", "backup/ns/s3", "backup/ns//8f0e", "backup/ns/s3/8f0e/x"] {
            check(bad, None);
        }
    }
}
