//! Where the filesystems of volumes are mounted while their bytes are moved. A folder of our own holds every mount point, so that what a
//! crash left is found and released.

use async_trait::async_trait;
use lifeboat_lvm::Error;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a filesystem is mounted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be read, while the volume it is a snapshot of may be mounted too.
    Backup,
    /// To be filled. A device that was not made ready yet gets a new filesystem of this type first.
    Restore {
        /// Type of the filesystem.
        filesystem: String,
        /// Whether it must be made.
        make: bool,
    },
}

/// Mounts and unmounts; behind a trait so that a test can make it fail.
#[async_trait]
pub trait Filesystems: Send + Sync + 'static {
    /// Mounts a device.
    async fn mount(&self, device: &Path, at: &Path, purpose: Purpose) -> Result<(), Error>;
    /// Releases a mount; one that is not there is no error.
    async fn unmount(&self, at: &Path) -> Result<(), Error>;
    /// Mount points below a folder.
    async fn mounted_under(&self, folder: &Path) -> Result<Vec<PathBuf>, Error>;
    /// Whether a copy of this device can be mounted beside it only after something was written to the copy.
    async fn copy_must_be_writable(&self, device: &Path) -> Result<bool, Error>;
}

/// Our mount points by the UID of their volume.
#[derive(Clone)]
pub struct Mounts {
    filesystems: Arc<dyn Filesystems>,
    folder: PathBuf,
    known: Arc<Mutex<BTreeMap<String, PathBuf>>>,
}

impl Mounts {
    /// Mount points in this folder.
    #[must_use]
    pub fn new(filesystems: Arc<dyn Filesystems>, folder: PathBuf) -> Self {
        Self { filesystems, folder, known: Arc::default() }
    }

    /// Learns what an earlier process left mounted; decisions then release it.
    ///
    /// # Errors
    ///
    /// When the table of mounts cannot be read.
    pub async fn learn(&self) -> Result<(), Error> {
        for at in self.filesystems.mounted_under(&self.folder).await? {
            if let Some(uid) = at.file_name().and_then(|name| name.to_str()) {
                self.known.lock().insert(uid.to_owned(), at.clone());
            }
        }
        Ok(())
    }

    /// Where a volume is mounted by us.
    #[must_use]
    pub fn of(&self, uid: &str) -> Option<PathBuf> {
        self.known.lock().get(uid).cloned()
    }

    /// Mounts that no object accounts for.
    #[must_use]
    pub fn strays(&self, has_object: impl Fn(&str) -> bool) -> Vec<String> {
        self.known.lock().keys().filter(|uid| !has_object(uid)).cloned().collect()
    }

    /// Whether a copy of this device can be mounted beside it only after something was written to the copy.
    ///
    /// # Errors
    ///
    /// What the tools say.
    pub async fn copy_must_be_writable(&self, device: &Path) -> Result<bool, Error> {
        self.filesystems.copy_must_be_writable(device).await
    }

    /// Mounts a volume's device.
    ///
    /// # Errors
    ///
    /// What the tools say.
    pub async fn mount(&self, uid: &str, device: &Path, purpose: Purpose) -> Result<(), Error> {
        let at = self.folder.join(uid);
        std::fs::create_dir_all(&at).map_err(|error| {
            Error::Transient(format!("the mount point {} cannot be made: {error}", at.display()))
        })?;
        self.filesystems.mount(device, &at, purpose).await?;
        self.known.lock().insert(uid.to_owned(), at);
        Ok(())
    }

    /// Releases a volume's mount.
    ///
    /// # Errors
    ///
    /// What the tools say.
    pub async fn unmount(&self, uid: &str) -> Result<(), Error> {
        let Some(at) = self.of(uid) else { return Ok(()) };
        self.filesystems.unmount(&at).await?;
        // An empty folder that stays behind does no harm.
        let _ = std::fs::remove_dir(&at);
        self.known.lock().remove(uid);
        Ok(())
    }
}
