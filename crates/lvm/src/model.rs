//! The words of node storage, and the trait that every back end speaks: real LVM2, plain directories, a remote `lvmd`.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tokio::sync::watch;

/// A class of devices that volumes are carved from: one volume group, or one thin pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceClass {
    /// Name that StorageClasses use.
    pub name: String,
    /// Whether volumes without a class come from here.
    pub default: bool,
    /// How volumes are laid out.
    pub kind: ClassKind,
    /// What its volumes are carved from, whatever the class is called: `GROUP`, `GROUP/POOL` or a folder. Empty where an lvmd of an earlier
    /// version does not say.
    #[serde(default)]
    pub storage: String,
}

/// How the volumes of a class are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClassKind {
    /// Fully allocated LVM volumes.
    Thick,
    /// Volumes in a thin pool.
    Thin,
    /// Directories of a filesystem.
    Directory,
}

/// One volume that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Its name in its class.
    pub name: String,
    /// Size in bytes, as rounded by the back end.
    pub size: u64,
    /// What it carries in tags.
    pub tags: BTreeSet<String>,
    /// Where its bytes are.
    pub access: Access,
    /// Name of the volume it is a snapshot of, while that still exists.
    pub origin: Option<String>,
    /// Whether it can be written to.
    pub mode: AccessMode,
    /// LVM's ten letters, or the nearest thing that the back end can say.
    pub attr: String,
    /// Kernel device number, 0:0 where there is none.
    pub device: (u32, u32),
}

/// Where the bytes of a volume are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// A block device.
    Device(PathBuf),
    /// A directory that holds the files.
    Directory(PathBuf),
}

/// Whether a volume can be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessMode {
    /// Only read.
    ReadOnly,
    /// Read and written.
    ReadWrite,
}

/// A volume to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// Its name.
    pub name: String,
    /// Its class; empty for the default one.
    pub class: String,
    /// Bytes it must hold at least.
    pub size: u64,
    /// Tags it carries from the first moment.
    pub tags: BTreeSet<String>,
    /// Named set of creation options in place of the class's own; empty for none.
    pub options: String,
}

/// A snapshot to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// Class of the source and of the snapshot; empty for the default one.
    pub class: String,
    /// The volume to copy.
    pub source: String,
    /// Whether the copy can be written to.
    pub mode: AccessMode,
    /// Bytes it must hold at least; not less than the source.
    pub size: u64,
    /// Tags it carries from the first moment.
    pub tags: BTreeSet<String>,
    /// Accept, in a thick class, a copy-on-write snapshot that dies when this many bytes of the origin have changed.
    /// Without it a thick class refuses: such a snapshot is fit for a backup that follows at once, and for nothing else.
    pub short_lived: Option<u64>,
}

/// A snapshot that was taken, and what it is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapped {
    /// The new volume.
    pub volume: Volume,
    /// Whether it shows one moment.
    pub consistency: Consistency,
}

/// What the content of a snapshot can be trusted to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Consistency {
    /// All bytes are of one moment, as after a power cut.
    Crash,
    /// Files were copied while they may have been written.
    Fuzzy,
}

/// Room in a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// All bytes of the volume group, or what the pool may promise.
    pub size: u64,
    /// Bytes that a new volume may have: spare room and promises already taken off.
    pub free: u64,
    /// The pool's own figures, in a thin class.
    pub pool: Option<ThinPool>,
}

/// How full a thin pool really is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThinPool {
    /// Used data, in percent.
    pub data_percent: f64,
    /// Used metadata, in percent.
    pub metadata_percent: f64,
    /// Bytes that may still be promised under the overprovision ratio.
    pub overprovision: u64,
    /// Bytes of the pool.
    pub size: u64,
}

/// Something that people should know about a class, while it goes on serving as far as it can.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Trouble {
    /// The class.
    pub class: String,
    /// What kind of thing it is.
    pub kind: TroubleKind,
    /// What happened, what it means and what to do next.
    pub message: String,
}

/// Kinds of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TroubleKind {
    /// The class cannot be used at all: its volume group, pool or folder is missing, or LVM does not answer.
    Unusable,
    /// A disk of the volume group is gone.
    Degraded,
    /// A thin pool fills up.
    PoolFilling,
    /// A thin pool is so full that nothing new is made in it.
    PoolFull,
    /// A removed volume still takes room, since its bytes could not be wiped.
    Leftover,
    /// A change to the volume group has been running for very long and is left alone, since stopping it could do harm.
    Wedged,
}

impl TroubleKind {
    /// The kind that calls itself so in debug output; what is not known is taken for the worst.
    #[must_use]
    pub(crate) fn named(name: &str) -> Self {
        let all =
            [Self::Unusable, Self::Degraded, Self::PoolFilling, Self::PoolFull, Self::Leftover, Self::Wedged];
        all.into_iter().find(|kind| format!("{kind:?}") == name).unwrap_or(Self::Unusable)
    }

    /// Whether requests to the class fail because of it, so that a health check must say so.
    #[must_use]
    pub fn stops_service(self) -> bool {
        matches!(self, Self::Unusable | Self::Wedged)
    }
}

impl Volume {
    /// Whether this is a copy-on-write snapshot that ran out of room: its content is lost, and it can only be removed.
    #[must_use]
    pub fn is_invalidated(&self) -> bool {
        matches!(self.attr.as_bytes(), [b's' | b'S', _, _, _, b'I' | b'S', ..])
    }

    /// Whether this is a copy-on-write snapshot: it lives until its origin has changed too much, and dies with it.
    #[must_use]
    pub fn is_copy_on_write(&self) -> bool {
        self.attr.starts_with(['s', 'S'])
    }

    /// What LVM's letters say is wrong with the volume.
    #[must_use]
    pub fn trouble(&self) -> Option<&'static str> {
        let letters = self.attr.as_bytes();
        let state = match letters.get(4)? {
            b'I' | b'S' => Some("the snapshot ran out of room and is lost"),
            b's' => Some("the device is suspended"),
            b'm' | b'M' => Some("merging the snapshot failed"),
            b'd' | b'i' => Some("the device has no table, or an inactive one"),
            b'c' | b'C' => Some("the thin pool needs a check"),
            b'X' => Some("the state of the device is not known"),
            _ => None,
        };
        state.or_else(|| match letters.get(8)? {
            b'p' => Some("a disk under the volume is missing"),
            b'X' => Some("the health of the volume is not known"),
            b'r' => Some("a disk of the array had write errors and needs a refresh"),
            b'm' => Some("the halves of the array differ"),
            b'F' => Some("the thin pool or volume failed"),
            b'D' => Some("the thin pool is out of data space"),
            b'M' => Some("the metadata of the thin pool is read-only"),
            b'E' => Some("the cache or pool had errors"),
            _ => None,
        })
    }
}

/// Told to watchers after every change that this process made or noticed; the number only grows.
pub type Change = u64;

/// Why an operation was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Error {
    /// There is no such class, so nothing can be said about its volumes.
    #[error(
        "device class {0:?} is not configured on this node: add it to lvmd's configuration or correct the request"
    )]
    NoClass(String),
    /// The volume does not exist.
    #[error("volume {name:?} does not exist in device class {class:?}")]
    NoVolume {
        /// The class looked in.
        class: String,
        /// The name looked for.
        name: String,
    },
    /// The name is taken.
    #[error("a volume {name:?} already exists in device class {class:?}")]
    Exists {
        /// The class.
        class: String,
        /// The name.
        name: String,
    },
    /// There is not enough room.
    #[error(
        "device class {class:?} has {free} bytes free, {wanted} are needed: free or add space, or ask for less"
    )]
    NoRoom {
        /// The class.
        class: String,
        /// Bytes asked for.
        wanted: u64,
        /// Bytes that can be had.
        free: u64,
    },
    /// This class cannot do that.
    #[error("{0}")]
    Unsupported(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The volume is open or mounted.
    #[error("volume {name:?} is in use: {detail}")]
    Busy {
        /// The volume.
        name: String,
        /// What LVM said.
        detail: String,
    },
    /// It did not work this time; trying again may.
    #[error("{0}")]
    Transient(String),
}

impl Error {
    /// Whether the same request may succeed later without anybody changing it.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Transient(_) | Self::Busy { .. } | Self::NoRoom { .. })
    }
}

/// Volumes on one node. Every operation is idempotent as far as its error says: a second create of the same name is [`Error::Exists`], a second
/// removal is [`Error::NoVolume`].
///
/// A future that is dropped does not stop a change that has begun: it goes on in the background, and the next call waits for it.
#[async_trait]
pub trait Lvm: Send + Sync + 'static {
    /// The classes of this node.
    async fn classes(&self) -> Result<Vec<DeviceClass>, Error>;

    /// All volumes of a class; empty name for the default class.
    async fn volumes(&self, class: &str) -> Result<Vec<Volume>, Error>;

    /// Room in a class.
    async fn capacity(&self, class: &str) -> Result<Capacity, Error>;

    /// Makes a volume.
    async fn create(&self, wanted: Create) -> Result<Volume, Error>;

    /// Makes a volume and publishes it under another name: whoever looks sees the final name only on one that is complete. Where the back
    /// end can, both are one change, so that neither waits for changes to other volumes in between, and a caller who stops waiting
    /// finds the volume published.
    async fn create_as(&self, wanted: Create, name: &str) -> Result<(), Error> {
        let (class, staged) = (wanted.class.clone(), wanted.name.clone());
        self.create(wanted).await?;
        self.rename(&class, &staged, name).await
    }

    /// Takes a snapshot.
    async fn snapshot(&self, wanted: Snapshot) -> Result<Snapped, Error>;

    /// Grows a volume to at least `size`; a smaller size changes nothing. Answers with the size it has then.
    async fn resize(&self, class: &str, name: &str, size: u64) -> Result<u64, Error>;

    /// Gives a volume another name, atomically: this is how a staged volume is published.
    async fn rename(&self, class: &str, from: &str, to: &str) -> Result<(), Error>;

    /// Gives each of two unused volumes the name of the other: whoever looks sees both names, before and after. What a crash leaves half
    /// done is finished by the next start. A back end that cannot promise that refuses.
    async fn exchange(&self, class: &str, one: &str, other: &str) -> Result<(), Error> {
        Err(Error::Unsupported(format!(
            "{one:?} and {other:?} of device class {class:?} cannot change names"
        )))
    }

    /// Adds and removes tags.
    async fn retag(
        &self,
        class: &str,
        name: &str,
        add: &BTreeSet<String>,
        remove: &BTreeSet<String>,
    ) -> Result<(), Error>;

    /// Removes a volume and its bytes.
    async fn remove(&self, class: &str, name: &str) -> Result<(), Error>;

    /// What people should know; nothing when all is well.
    async fn health(&self) -> Vec<Trouble> {
        Vec::new()
    }

    /// Wakes whoever shows capacity or lists volumes.
    fn changes(&self) -> watch::Receiver<Change>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_lvm_say_what_is_wrong() {
        let check = |attr: &str, invalidated: bool, trouble: Option<&str>| {
            let volume = Volume {
                name: String::new(),
                size: 0,
                tags: BTreeSet::new(),
                access: Access::Device(PathBuf::new()),
                origin: None,
                mode: AccessMode::ReadWrite,
                attr: attr.to_owned(),
                device: (0, 0),
            };
            assert_eq!(volume.is_invalidated(), invalidated, "{attr}");
            let told = volume.trouble();
            assert_eq!(told.is_some(), trouble.is_some(), "{attr}: {told:?}");
            assert!(told.unwrap_or("").contains(trouble.unwrap_or("")), "{attr}: {told:?}");
        };
        check("-wi-a-----", false, None);
        check("-wi-------", false, None);
        check("Vwi-aotz--", false, None);
        check("swi-a-s---", false, None);
        check("swi-I-s---", true, Some("ran out of room"));
        check("sri-S-s---", true, Some("ran out of room"));
        check("-wi-s-----", false, Some("suspended"));
        check("-wi-a---p-", false, Some("missing"));
        check("rwi-a-r-r-", false, Some("refresh"));
        check("rwi-a-r-m-", false, Some("differ"));
        check("Vwi-a-tzF-", false, Some("failed"));
        check("twi-aotzD-", false, Some("out of data"));
        check("twi-aotzM-", false, Some("read-only"));
        check("twi-cotz--", false, Some("check"));
        check("", false, None);
    }
}
