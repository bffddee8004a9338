//! Where the filesystems of volumes are mounted while their bytes are moved. A folder of our own holds every mount point, so that what a
//! crash left is found and released.

use async_trait::async_trait;
use lifeboat_lvm::Error;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

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
    /// The copy must be writable, and the filesystem, where it is mounted, must stand still meanwhile. One that is not mounted may have been
    /// left by a crash: its copy is put in order when it is mounted, so that what was synced is there.
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

/// When a filesystem that could not be let go is let go again.
const THAW_AGAIN: [Duration; 6] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];

/// How a mount that is being made comes out, once it has.
type Outcome = watch::Receiver<Option<Result<(), Error>>>;

/// Our mount points by the UID of their volume.
#[derive(Clone)]
pub struct Mounts {
    filesystems: Arc<dyn Filesystems>,
    folder: PathBuf,
    known: Arc<Mutex<BTreeMap<String, PathBuf>>>,
    /// Mounts that are being made, with their filesystem perhaps: nobody stops a tool that writes, or starts a second one.
    making: Arc<Mutex<BTreeMap<String, Outcome>>>,
}

/// The right to write a volume of this node; no two processes have it.
pub(crate) struct Fence {
    path: PathBuf,
    _file: std::fs::File,
}

impl Drop for Fence {
    fn drop(&mut self) {
        // While it is still held: whoever opened the file before sees that it has gone.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Mounts {
    /// Mount points in this folder.
    #[must_use]
    pub fn new(filesystems: Arc<dyn Filesystems>, folder: PathBuf) -> Self {
        Self { filesystems, folder, known: Arc::default(), making: Arc::default() }
    }

    /// Lets filesystems go on that an earlier process left standing still, and learns what it left mounted; decisions then release that.
    ///
    /// # Errors
    ///
    /// When the table of mounts cannot be read.
    pub async fn learn(&self) -> Result<(), Error> {
        self.let_go().await?;
        // The folder itself may be a mount point, and whoever mounted it wants it so.
        let ours = |at: &PathBuf| at.parent() == Some(&*self.folder);
        for at in self.filesystems.mounted_under(&self.folder).await?.into_iter().filter(ours) {
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
            // A workload hangs until this works.
            for pause in THAW_AGAIN {
                let Err(error) = filesystems.thaw(&at).await else { break };
                tracing::error!(%error, at = %at.display(), "a filesystem stands still and cannot be let go; it is tried again");
                tokio::time::sleep(pause).await;
            }
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
            let Ok(at) = std::fs::read(entry.path()) else { continue };
            let at = Path::new(OsStr::from_bytes(&at));
            match self.filesystems.thaw(at).await {
                Ok(()) => {}
                // Nothing that stood still is left after a restart of the machine.
                Err(_) if !at.exists() => {}
                Err(error) => {
                    tracing::warn!(%error, at = %at.display(), "a filesystem that an earlier process froze could not be let go");
                    continue;
                }
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
        let mut made = self.begin(uid, device, at.clone(), purpose);
        let made = made.wait_for(Option::is_some).await.map(|made| made.clone());
        let made = made.ok().flatten();
        self.making.lock().remove(uid);
        made.unwrap_or_else(|| Err(Error::Transient("the mount ended early".to_owned())))?;
        self.known.lock().insert(uid.to_owned(), at);
        Ok(())
    }

    /// Begins a mount, or joins the one that is being made: a caller who stopped waiting comes back here.
    fn begin(
        &self,
        uid: &str,
        device: &Path,
        at: PathBuf,
        purpose: Purpose,
    ) -> watch::Receiver<Option<Result<(), Error>>> {
        let mut making = self.making.lock();
        if let Some(made) = making.get(uid) {
            return made.clone();
        }
        let (tell, made) = watch::channel(None);
        making.insert(uid.to_owned(), made.clone());
        let (filesystems, device) = (self.filesystems.clone(), device.to_owned());
        #[expect(
            clippy::disallowed_methods,
            reason = "a tool that writes a filesystem outlives whoever asked for it"
        )]
        tokio::spawn(async move {
            let result = filesystems.mount(&device, &at, purpose).await;
            tell.send_replace(Some(result));
        });
        made
    }

    /// Takes the right to write a volume, which ends with the process at the latest.
    ///
    /// # Errors
    ///
    /// Where another process has it, or an earlier job of this one that has not ended yet.
    pub(crate) fn fence(&self, uid: &str) -> Result<Fence, Error> {
        let path = self.folder.join(format!("writing-{uid}"));
        let taken = std::fs::create_dir_all(&self.folder).and_then(|()| {
            let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
            rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
            let (held, named) = (file.metadata()?.ino(), std::fs::metadata(&path)?.ino());
            if held == named { Ok(file) } else { Err(std::io::ErrorKind::WouldBlock.into()) }
        });
        match taken {
            Ok(file) => Ok(Fence { path, _file: file }),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Err(Error::Transient(
                "another process of this node, or an earlier try, still writes it; it is waited for"
                    .to_owned(),
            )),
            Err(error) => Err(Error::Transient(format!("{} cannot be locked: {error}", path.display()))),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    /// Tools that wait for a word, fail as often as told, and count.
    #[derive(Default)]
    struct Slow {
        began: AtomicUsize,
        go: Option<Semaphore>,
        thaw_fails: AtomicUsize,
        mounted: Vec<PathBuf>,
    }

    #[async_trait]
    impl Filesystems for Slow {
        async fn mount(&self, _: &Path, _: &Path, _: Purpose) -> Result<(), Error> {
            self.began.fetch_add(1, Ordering::SeqCst);
            if let Some(go) = &self.go {
                go.acquire().await.expect("open").forget();
            }
            Ok(())
        }
        async fn unmount(&self, _: &Path) -> Result<(), Error> {
            Ok(())
        }
        async fn mounted_under(&self, _: &Path) -> Result<Vec<PathBuf>, Error> {
            Ok(self.mounted.clone())
        }
        async fn care(&self, _: &Path) -> Result<CopyCare, Error> {
            Ok(CopyCare::Nothing)
        }
        async fn freeze(&self, _: &Path) -> Result<(), Error> {
            Ok(())
        }
        async fn thaw(&self, _: &Path) -> Result<(), Error> {
            let left =
                self.thaw_fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            left.map_or(Ok(()), |_| Err(Error::Transient("it does not answer".to_owned())))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_nobody_waits_for_goes_on_and_the_next_try_waits_for_it() {
        let folder = tempfile::tempdir().expect("folder");
        let slow = Arc::new(Slow { go: Some(Semaphore::new(0)), ..Slow::default() });
        let mounts = Mounts::new(slow.clone(), folder.path().to_owned());
        let make = || Purpose::Restore { filesystem: "ext4".to_owned(), make: true };
        for _ in 0..3 {
            let mount = mounts.mount("u", Path::new("/dev/x"), make());
            assert!(tokio::time::timeout(Duration::from_secs(60), mount).await.is_err());
        }
        assert_eq!(slow.began.load(Ordering::SeqCst), 1, "one device, one mkfs");
        if let Some(go) = &slow.go {
            go.add_permits(1);
        }
        mounts.mount("u", Path::new("/dev/x"), make()).await.expect("mounted");
        assert_eq!(slow.began.load(Ordering::SeqCst), 1);
        assert!(mounts.of("u").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_filesystem_that_cannot_be_let_go_at_once_is_let_go_soon() {
        let folder = tempfile::tempdir().expect("folder");
        let slow = Arc::new(Slow { thaw_fails: AtomicUsize::new(4), ..Slow::default() });
        let mounts = Mounts::new(slow.clone(), folder.path().to_owned());
        let done = mounts.while_still("u", "/at".into(), async { Ok(7) }).await;
        assert_eq!((done, slow.thaw_fails.load(Ordering::SeqCst)), (Ok(7), 0));
        assert!(!folder.path().join("still-u").exists());
    }

    #[tokio::test]
    async fn a_note_about_a_filesystem_that_is_gone_holds_up_nothing() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join("still-old"), "/gone/after/the/reboot").expect("note");
        let left = folder.path().join("u1");
        let mounted = vec![folder.path().to_owned(), left.clone()];
        let slow = Slow { thaw_fails: AtomicUsize::new(usize::MAX), mounted, ..Slow::default() };
        let mounts = Mounts::new(Arc::new(slow), folder.path().to_owned());
        mounts.learn().await.expect("learnt");
        assert_eq!(mounts.of("u1"), Some(left), "what an earlier process left mounted is known");
        assert_eq!(mounts.strays(|_| false), ["u1"], "the folder itself is nobody's leftover");
        assert!(!folder.path().join("still-old").exists());
    }

    #[test]
    fn two_writers_of_one_volume_are_never_at_work_together() {
        let folder = tempfile::tempdir().expect("folder");
        // Each opens the file anew, as another process would.
        let process = || Mounts::new(Arc::new(Slow::default()), folder.path().to_owned());
        let (one, other) = (process(), process());
        let held = one.fence("u").expect("free");
        assert!(other.fence("u").is_err_and(|error| error.is_transient()));
        let _elsewhere = other.fence("v").expect("another volume");
        drop(held);
        other.fence("u").map(drop).expect("free again");
    }
}
