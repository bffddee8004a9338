//! Mounting with the tools of this machine.

use crate::mounts::{CopyCare, Filesystems, Purpose};
use async_trait::async_trait;
use lifeboat_lvm::Error;
use lifeboat_lvm::mount::{
    Filesystem, MountError, Mounts, Purpose as Use, Tools, is_mounted_or_open, mount_points,
    mount_points_of_host,
};
use std::path::{Path, PathBuf};

/// Filesystems of this machine, by its own tools.
pub struct LocalFilesystems(Mounts<Tools>);

impl LocalFilesystems {
    /// With the programs found on the path.
    #[must_use]
    pub fn new() -> Self {
        Self(Mounts::new(Tools::default()))
    }

    async fn on(&self, device: &Path) -> Result<Option<Filesystem>, MountError> {
        self.0.probe(device).await?.map(|found| Filesystem::named(&found)).transpose()
    }

    async fn make_where_blank(&self, filesystem: &str, device: &Path) -> Result<Filesystem, MountError> {
        let filesystem = Filesystem::named(filesystem)?;
        if !self.0.is_blank(device).await? {
            return Err(MountError::Unknown(format!("what is on {}", device.display())));
        }
        self.0.make(filesystem, device, &[]).await?;
        Ok(filesystem)
    }

    async fn mount_for(&self, device: &Path, at: &Path, purpose: Purpose) -> Result<(), MountError> {
        match purpose {
            Purpose::Backup => {
                let found = self.on(device).await?;
                let filesystem = found.ok_or_else(|| MountError::Blank { device: device.to_owned() })?;
                self.0.mount_snapshot(device, at, filesystem).await
            }
            Purpose::Restore { filesystem, make } => {
                let filesystem = Filesystem::named(&filesystem)?;
                // What is on a device that we did not format is an earlier owner's.
                if make {
                    self.0.make(filesystem, device, &[]).await?;
                }
                self.0.mount(device, at, filesystem, Use::Use, &[]).await
            }
            Purpose::Receive { filesystem } => {
                let filesystem = match self.on(device).await? {
                    Some(found) => found,
                    None => self.make_where_blank(&filesystem, device).await?,
                };
                self.0.mount(device, at, filesystem, Use::Use, &[]).await
            }
        }
    }
}

impl Default for LocalFilesystems {
    fn default() -> Self {
        Self::new()
    }
}

fn said(error: MountError) -> Error {
    match error {
        MountError::Busy { path } => Error::Busy {
            name: path.display().to_string(),
            detail: "something still uses the mount".to_owned(),
        },
        other if other.is_transient() => Error::Transient(other.to_string()),
        other => Error::Unsupported(other.to_string()),
    }
}

#[async_trait]
impl Filesystems for LocalFilesystems {
    async fn mount(&self, device: &Path, at: &Path, purpose: Purpose) -> Result<(), Error> {
        self.mount_for(device, at, purpose).await.map_err(said)
    }

    async fn unmount(&self, at: &Path) -> Result<(), Error> {
        self.0.unmount(at).await.map_err(said)
    }

    async fn mounted_under(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let points = mount_points().map_err(said)?;
        Ok(points.into_iter().map(|point| point.target).filter(|target| target.starts_with(folder)).collect())
    }

    async fn care(&self, device: &Path) -> Result<CopyCare, Error> {
        let found = self.0.probe(device).await.map_err(said)?;
        let Some(filesystem) = found.and_then(|found| Filesystem::named(&found).ok()) else {
            return Ok(CopyCare::Nothing);
        };
        // The kernel knows of mounts in every namespace, and the table only of ours.
        if !is_mounted_or_open(device).map_err(said)? {
            return Ok(CopyCare::Still { mounted: None });
        }
        if !filesystem.needs_help_for_snapshots() {
            return Ok(CopyCare::Nothing);
        }
        let real = std::fs::canonicalize(device).unwrap_or_else(|_| device.to_owned());
        let is_it = |source: &Path| {
            source == device || std::fs::canonicalize(source).is_ok_and(|source| source == real)
        };
        let points = mount_points().map_err(said)?.into_iter();
        let mut points = points.chain(mount_points_of_host().map_err(said)?);
        let mounted = points.find(|point| is_it(&point.source)).map(|point| point.target);
        // Taken while it is written to, its copy could not be mounted beside it.
        let mounted = mounted.ok_or_else(|| {
            Error::Transient(format!(
                "the {} on {} is in use and must be frozen for a copy, but its mount point is not visible: run the node agent with hostPID: true",
                filesystem.name(),
                device.display()
            ))
        })?;
        Ok(CopyCare::Still { mounted: Some(mounted) })
    }

    async fn freeze(&self, at: &Path) -> Result<(), Error> {
        self.0.freeze(at).await.map_err(said)
    }

    async fn thaw(&self, at: &Path) -> Result<(), Error> {
        self.0.thaw(at).await.map_err(said)
    }
}
