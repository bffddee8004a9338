//! Filesystems on volumes: making, mounting, growing, and finding what a crash left mounted.
//!
//! Every program runs with a list of arguments; none that changes something is stopped half-way. What to mount where is left to others.

mod journal;
mod table;

use async_trait::async_trait;
pub use journal::{Journal, is_writable, journal};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
pub use table::{MountPoint, is_shown_elsewhere, mount_points, mount_points_of_host};

/// Looking at a device takes no longer than this, unless the device does not answer.
const LOOK_DEADLINE: Duration = Duration::from_secs(30);

/// A filesystem that volumes may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Filesystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
}

/// What a mount is for; it decides the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Reading a snapshot while its origin may be mounted too: nothing is replayed or written.
    ReadSnapshot,
    /// Reading a writable snapshot of a filesystem that may not have been unmounted: its journal is replayed first, then it is only read.
    ReplaySnapshot,
    /// Reading and writing.
    Use,
}

/// Why something with a filesystem was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// A program failed.
    #[error("{program} failed ({detail}) while {doing}")]
    Failed {
        /// The program.
        program: String,
        /// What was being done.
        doing: String,
        /// What it said.
        detail: String,
    },
    /// The mount is in use.
    #[error("{path} is in use: stop what uses it, then it can be unmounted")]
    Busy {
        /// The mount point.
        path: PathBuf,
    },
    /// Lifeboat does not know the filesystem.
    #[error("{0:?} is no filesystem that is supported: use ext4, xfs or btrfs")]
    Unknown(String),
    /// Nothing is on the device.
    #[error(
        "{device} holds no filesystem: it was never formatted. Mount it once with a pod, or use volumeMode Block, then take a new snapshot"
    )]
    Blank {
        /// The device.
        device: PathBuf,
    },
    /// What was committed is only in the journal, and the device cannot be written to.
    #[error(
        "the {filesystem} on {device} was not unmounted and its snapshot cannot be written to, so its journal cannot be replayed: files that were synced would be missing. Take a new snapshot"
    )]
    NeedsReplay {
        /// The filesystem.
        filesystem: &'static str,
        /// The device.
        device: PathBuf,
    },
    /// The system's table of mounts cannot be read.
    #[error("the table of mounts cannot be read: {0}")]
    Table(String),
}

impl MountError {
    /// Whether the same try may succeed later without anybody changing the volume.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Busy { .. } | Self::Table(_))
    }
}

impl Filesystem {
    /// The filesystem of this name, as `blkid` and StorageClasses spell it; empty for ext4.
    pub fn named(name: &str) -> Result<Self, MountError> {
        match name {
            "" | "ext4" => Ok(Self::Ext4),
            "xfs" => Ok(Self::Xfs),
            "btrfs" => Ok(Self::Btrfs),
            other => Err(MountError::Unknown(other.to_owned())),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// Mount options. A snapshot has the same identity as its origin, and perhaps a journal that was not replayed.
    #[must_use]
    pub fn options(self, purpose: Purpose) -> &'static [&'static str] {
        match (self, purpose) {
            (Self::Ext4, Purpose::ReadSnapshot) => &["ro", "noload"],
            (Self::Xfs, Purpose::ReadSnapshot) => &["ro", "norecovery", "nouuid"],
            (Self::Btrfs, Purpose::ReadSnapshot) | (Self::Ext4 | Self::Btrfs, Purpose::ReplaySnapshot) => {
                &["ro"]
            }
            (Self::Xfs, Purpose::ReplaySnapshot) => &["ro", "nouuid"],
            // A restored or cloned XFS may have the identity of one that is mounted here.
            (Self::Xfs, Purpose::Use) => &["nouuid"],
            (Self::Ext4 | Self::Btrfs, Purpose::Use) => &[],
        }
    }

    /// Whether a snapshot must be writable, and taken while the mounted origin is [frozen](Mounts::freeze), to be read beside its origin. LVM
    /// freezes ext4 and xfs by itself; it does not find btrfs, whose snapshot may also need an identity of its own (see [`Mounts::mount_snapshot`]).
    #[must_use]
    pub fn needs_help_for_snapshots(self) -> bool {
        self == Self::Btrfs
    }

    fn make(self, options: &[String], device: &Path) -> Vec<String> {
        let mut argv = vec![format!("mkfs.{}", self.name())];
        // Old signatures were looked for before, and the tools must not ask.
        match self {
            Self::Ext4 => argv.extend(["-q", "-F"].map(str::to_owned)),
            Self::Xfs | Self::Btrfs => argv.extend(["-q", "-f"].map(str::to_owned)),
        }
        argv.extend_from_slice(options);
        argv.push(text(device));
        argv
    }

    fn grow(self, device: &Path, target: &Path) -> Vec<String> {
        match self {
            Self::Ext4 => vec!["resize2fs".to_owned(), text(device)],
            Self::Xfs => vec!["xfs_growfs".to_owned(), text(target)],
            Self::Btrfs => ["btrfs", "filesystem", "resize", "max"]
                .map(str::to_owned)
                .into_iter()
                .chain([text(target)])
                .collect(),
        }
    }
}

/// Runs the programs of filesystems; tests put something else in this place.
#[async_trait]
pub trait RunTool: Send + Sync + 'static {
    /// Runs a program to its end, or to the deadline if it has one; exit code, standard output and error.
    async fn run(
        &self,
        argv: &[String],
        deadline: Option<Duration>,
    ) -> std::io::Result<(i32, String, String)>;
}

/// The programs of this machine.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    /// What stands before every program, for example to run in the host's mount namespace: `["nsenter", "-m", "-t", "1"]`.
    pub prefix: Vec<String>,
}

#[async_trait]
impl RunTool for Tools {
    #[expect(clippy::disallowed_methods, reason = "the one place of this room that starts filesystem tools")]
    async fn run(
        &self,
        argv: &[String],
        deadline: Option<Duration>,
    ) -> std::io::Result<(i32, String, String)> {
        let mut whole = self.prefix.iter().chain(argv);
        let program = whole.next().ok_or_else(|| std::io::Error::other("no program is named"))?;
        let running = tokio::process::Command::new(program)
            .args(whole)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(deadline.is_some())
            .spawn()?
            .wait_with_output();
        let output = match deadline {
            Some(deadline) => tokio::time::timeout(deadline, running).await.map_err(|_| {
                std::io::Error::new(std::io::ErrorKind::TimedOut, "the device does not answer")
            })??,
            None => running.await?,
        };
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status.code().unwrap_or(-1), lossy(&output.stdout), lossy(&output.stderr)))
    }
}

/// Filesystem operations.
pub struct Mounts<T: RunTool = Tools> {
    tools: T,
}

impl<T: RunTool> Mounts<T> {
    /// Operations with these programs.
    pub fn new(tools: T) -> Self {
        Self { tools }
    }

    /// The filesystem on a device, by its own signature and not by a cache; `None` when there is none.
    pub async fn probe(&self, device: &Path) -> Result<Option<String>, MountError> {
        let argv = ["blkid", "-p", "-u", "filesystem", "-s", "TYPE", "-o", "value"];
        let argv: Vec<String> = argv.map(str::to_owned).into_iter().chain([text(device)]).collect();
        let doing = format!("looking for a filesystem on {}", device.display());
        let (code, stdout, stderr) = self.started(&argv, Some(LOOK_DEADLINE), &doing).await?;
        match code {
            0 => Ok(Some(stdout.trim().to_owned()).filter(|found| !found.is_empty())),
            // Nothing was found, which is not a failure; an ambivalent answer has code 8.
            2 if stderr.trim().is_empty() => Ok(None),
            _ => Err(failed(&argv, &doing, code, &stderr)),
        }
    }

    /// Whether nothing that any tool knows is on a device: no filesystem, no table of partitions, nothing encrypted.
    pub async fn is_blank(&self, device: &Path) -> Result<bool, MountError> {
        let (argv, doing) =
            (["blkid".to_owned(), "-p".to_owned(), text(device)], "looking for anything at all");
        let (code, stdout, stderr) = self.started(&argv, Some(LOOK_DEADLINE), doing).await?;
        Ok(code == 2 && stdout.trim().is_empty() && stderr.trim().is_empty())
    }

    /// Makes a filesystem. Whatever was on the device is lost.
    pub async fn make(
        &self,
        filesystem: Filesystem,
        device: &Path,
        options: &[String],
    ) -> Result<(), MountError> {
        let doing = format!("making {} on {}", filesystem.name(), device.display());
        self.succeeds(&filesystem.make(options, device), &doing).await
    }

    /// Mounts a device, with more options if wanted. The folder is made if it is not there.
    pub async fn mount(
        &self,
        device: &Path,
        target: &Path,
        filesystem: Filesystem,
        purpose: Purpose,
        more: &[String],
    ) -> Result<(), MountError> {
        let mut options: Vec<String> =
            filesystem.options(purpose).iter().map(|option| (*option).to_owned()).collect();
        options.extend(more.iter().filter(|option| !option.is_empty()).cloned());
        let mut argv = ["mount", "-t", filesystem.name()].map(str::to_owned).to_vec();
        if !options.is_empty() {
            argv.extend(["-o".to_owned(), options.join(",")]);
        }
        argv.extend([text(device), text(target)]);
        self.mount_with(&argv, device, target).await
    }

    /// Shows a folder, or a device file, at another place too.
    pub async fn bind(&self, source: &Path, target: &Path, read_only: ReadOnly) -> Result<(), MountError> {
        let argv = ["mount".to_owned(), "--bind".to_owned(), text(source), text(target)];
        self.mount_with(&argv, source, target).await?;
        if read_only == ReadOnly::Yes {
            // A bind mount becomes read-only only in a second step.
            let argv =
                ["mount", "-o", "remount,bind,ro"].map(str::to_owned).into_iter().chain([text(target)]);
            let argv: Vec<String> = argv.collect();
            if let Err(error) = self.succeeds(&argv, "making a bind mount read-only").await {
                self.unmount(target).await?;
                return Err(error);
            }
        }
        Ok(())
    }

    async fn mount_with(&self, argv: &[String], source: &Path, target: &Path) -> Result<(), MountError> {
        let doing = format!("mounting {} on {}", source.display(), target.display());
        std::fs::create_dir_all(target).map_err(|error| MountError::Failed {
            program: "mkdir".to_owned(),
            doing: doing.clone(),
            detail: error.to_string(),
        })?;
        self.succeeds(argv, &doing).await
    }

    /// Unmounts; a place where nothing is mounted is fine.
    pub async fn unmount(&self, target: &Path) -> Result<(), MountError> {
        let doing = format!("unmounting {}", target.display());
        let argv = ["umount".to_owned(), text(target)];
        let (code, _, stderr) = self.started(&argv, None, &doing).await?;
        if code == 0 || stderr.contains("not mounted") || stderr.contains("no mount point") {
            return Ok(());
        }
        if stderr.contains("busy") {
            return Err(MountError::Busy { path: target.to_owned() });
        }
        Err(failed(&argv, &doing, code, &stderr))
    }

    /// Unmounts everything in a folder, the deepest first, and gives what was there: for leftovers of a crash.
    pub async fn release_under(&self, folder: &Path) -> Result<Vec<PathBuf>, MountError> {
        let mut released = Vec::new();
        // Later mounts lie on top of earlier ones.
        for point in mount_points()?.into_iter().rev().filter(|point| point.target.starts_with(folder)) {
            self.unmount(&point.target).await?;
            released.push(point.target);
        }
        Ok(released)
    }

    /// Lets a mounted filesystem fill its device.
    pub async fn grow(&self, filesystem: Filesystem, device: &Path, target: &Path) -> Result<(), MountError> {
        let doing = format!("growing {} on {}", filesystem.name(), device.display());
        self.succeeds(&filesystem.grow(device, target), &doing).await
    }

    /// Mounts a snapshot to read it, whether or not its origin is mounted. A writable one is put in order first, as after any crash, so that
    /// everything that was synced is there; one that cannot be written to must have been taken of a mounted filesystem, which LVM freezes,
    /// and is refused where it says that it was not. A snapshot of btrfs has to be writable: where the kernel refuses a second device with
    /// the same identity (before Linux 6.7), it gets one of its own.
    pub async fn mount_snapshot(
        &self,
        device: &Path,
        target: &Path,
        filesystem: Filesystem,
    ) -> Result<(), MountError> {
        let (writable, before) = (is_writable(device), journal(filesystem, device)?);
        if !writable && before == Journal::Dirty {
            return Err(MountError::NeedsReplay { filesystem: filesystem.name(), device: device.to_owned() });
        }
        let purpose = if writable { Purpose::ReplaySnapshot } else { Purpose::ReadSnapshot };
        let first = match self.mount(device, target, filesystem, purpose, &[]).await {
            Err(error) if filesystem == Filesystem::Btrfs => error,
            mounted_or_not => return mounted_or_not,
        };
        if before != Journal::Clean {
            // A log that was not replayed would be lost with the identity.
            return Err(match first {
                MountError::Failed { program, doing, detail } => MountError::Failed {
                    program,
                    doing,
                    detail: format!(
                        "{detail}. Its log must be replayed first, which Linux before 6.7 does only while its origin is not mounted: stop the pod that uses the origin, or use a newer kernel"
                    ),
                },
                other => other,
            });
        }
        self.give_own_identity(device).await?;
        self.mount(device, target, filesystem, purpose, &[]).await
    }

    /// Brings a mounted filesystem to rest, with everything on the device, and holds its writers until [`Self::thaw`]. Whoever
    /// freezes must thaw whatever happens: after a crash, thaw before anything else.
    pub async fn freeze(&self, target: &Path) -> Result<(), MountError> {
        let argv = ["fsfreeze".to_owned(), "-f".to_owned(), text(target)];
        self.succeeds(&argv, &format!("freezing {}", target.display())).await
    }

    /// Lets writers go on; one that is not frozen is fine.
    pub async fn thaw(&self, target: &Path) -> Result<(), MountError> {
        let argv = ["fsfreeze".to_owned(), "-u".to_owned(), text(target)];
        let doing = format!("thawing {}", target.display());
        let (code, _, stderr) = self.started(&argv, None, &doing).await?;
        if code == 0 || stderr.contains("Invalid argument") {
            Ok(())
        } else {
            Err(failed(&argv, &doing, code, &stderr))
        }
    }

    /// Gives a writable copy of an unmounted btrfs another identity. Only the superblock is rewritten, whatever the size. The copy must
    /// have no log to replay, so it must have been taken from an unmounted or frozen origin: otherwise it cannot be mounted afterwards.
    async fn give_own_identity(&self, device: &Path) -> Result<(), MountError> {
        let doing = format!("giving the btrfs on {} an identity of its own", device.display());
        let argv = ["btrfstune", "-f", "-m"]
            .map(str::to_owned)
            .into_iter()
            .chain([text(device)])
            .collect::<Vec<_>>();
        self.succeeds(&argv, &doing).await
    }

    async fn succeeds(&self, argv: &[String], doing: &str) -> Result<(), MountError> {
        let (code, _, stderr) = self.started(argv, None, doing).await?;
        if code == 0 { Ok(()) } else { Err(failed(argv, doing, code, &stderr)) }
    }

    async fn started(
        &self,
        argv: &[String],
        deadline: Option<Duration>,
        doing: &str,
    ) -> Result<(i32, String, String), MountError> {
        self.tools.run(argv, deadline).await.map_err(|error| MountError::Failed {
            program: argv.first().cloned().unwrap_or_default(),
            doing: doing.to_owned(),
            detail: error.to_string(),
        })
    }
}

/// Whether a bind mount can be written through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnly {
    /// It cannot.
    Yes,
    /// It can.
    No,
}

/// Whether somebody uses a block device: it is mounted anywhere, or held by another program that wants it for itself, such as
/// a filesystem in another namespace. Where that cannot be told, it counts as used.
pub fn is_mounted_or_open(device: &Path) -> Result<bool, MountError> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let unreadable = |error: std::io::Error| MountError::Table(format!("{}: {error}", device.display()));
    let number = std::fs::metadata(device).map_err(unreadable)?.rdev();
    let number = (rustix::fs::major(number), rustix::fs::minor(number));
    if mount_points()?.iter().any(|point| point.device == number || point.source == device) {
        return Ok(true);
    }
    let exclusive = i32::try_from(rustix::fs::OFlags::EXCL.bits()).unwrap_or_default();
    match std::fs::OpenOptions::new().read(true).custom_flags(exclusive).open(device) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => Ok(true),
        Err(error) => Err(unreadable(error)),
    }
}

fn failed(argv: &[String], doing: &str, code: i32, stderr: &str) -> MountError {
    MountError::Failed {
        program: argv.first().cloned().unwrap_or_default(),
        doing: doing.to_owned(),
        detail: format!("exit code {code}: {}", stderr.trim()),
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
