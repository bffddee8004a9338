//! Where the filesystems of volumes are mounted while their bytes are moved. A folder of our own holds every mount point, so that what a
//! crash left is found and released.

use async_trait::async_trait;
use lifeboat_lvm::Error;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
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
    /// To be filled or brought up to date, whosever it is: what is on the device stays, and only one that holds nothing at all gets a new
    /// filesystem of this type.
    Receive {
        /// Type of the filesystem.
        filesystem: String,
    },
}

/// What it takes to copy a device so that the copy can be mounted beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyCare {
    /// Nothing: LVM sees to it.
    Nothing,
    /// The copy must be writable, and the filesystem, where it is mounted, must stand still meanwhile.
    Still {
        /// Where it is mounted.
        mounted: Option<PathBuf>,
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
    /// What it takes to copy a device so that the copy can be mounted beside it.
    async fn care(&self, device: &Path) -> Result<CopyCare, Error>;
    /// Holds the writers of a mounted filesystem, with everything on disk.
    async fn freeze(&self, at: &Path) -> Result<(), Error>;
    /// Lets them go on; one that is not frozen is no error.
    async fn thaw(&self, at: &Path) -> Result<(), Error>;
}

/// Begins the name of a note about a filesystem that stands still.
const STILL: &str = "still-";

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

    /// Lets filesystems go on that an earlier process left standing still, and learns what it left mounted; decisions then release that.
    ///
    /// # Errors
    ///
    /// When the table of mounts cannot be read.
    pub async fn learn(&self) -> Result<(), Error> {
        self.let_go().await?;
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

    /// What it takes to copy a device.
    ///
    /// # Errors
    ///
    /// What the tools say.
    pub async fn care(&self, device: &Path) -> Result<CopyCare, Error> {
        self.filesystems.care(device).await
    }

    /// Does something while a filesystem stands still. It goes on even if nobody waits for it any more, and a note beside the mounts tells the
    /// next process which filesystem to let go if this one dies in between: a workload must not hang for ever.
    ///
    /// # Errors
    ///
    /// Of the work, or of holding and letting go.
    pub async fn while_still<T: Send + 'static>(
        &self,
        uid: &str,
        at: PathBuf,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (filesystems, note) = (self.filesystems.clone(), self.folder.join(format!("{STILL}{uid}")));
        let whole = async move {
            write_note(&note, &at)?;
            let result = match filesystems.freeze(&at).await {
                Ok(()) => work.await,
                Err(error) => Err(error),
            };
            filesystems.thaw(&at).await?;
            // A note that stays only makes the next start thaw what is not frozen.
            let _ = std::fs::remove_file(&note);
            result
        };
        #[expect(clippy::disallowed_methods, reason = "a filesystem is let go even when its caller has gone")]
        let whole = tokio::spawn(whole);
        whole.await.unwrap_or_else(|error| Err(Error::Transient(format!("the copy ended early: {error}"))))
    }

    async fn let_go(&self) -> Result<(), Error> {
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if !entry.file_name().to_string_lossy().starts_with(STILL) {
                continue;
            }
            if let Ok(at) = std::fs::read(entry.path()) {
                self.filesystems.thaw(Path::new(OsStr::from_bytes(&at))).await?;
            }
            let _ = std::fs::remove_file(entry.path());
        }
        Ok(())
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

fn write_note(note: &Path, at: &Path) -> Result<(), Error> {
    let written = note.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| {
        let mut file = std::fs::File::create(note)?;
        std::io::Write::write_all(&mut file, at.as_os_str().as_bytes())?;
        file.sync_all()
    });
    written
        .map_err(|error| Error::Transient(format!("the note {} cannot be written: {error}", note.display())))
}
