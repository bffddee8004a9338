//! The work of one backup or restore, from reading the credentials to the checked result.

use crate::stores;
use crate::volume::words::VolumeWords;
use crate::volume::world::Moved;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use lifeboat_api::annotations;
use lifeboat_api::topolvm::{LogicalVolume, SnapshotBackupStorage};
use lifeboat_lvm::{Access, Volume};
use lifeboat_mover::{Backup, Content, Error, Limits, Mover, Progress, Repository, Restore, Store};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// The tag that a backup is found by: UID of the LogicalVolume it was made from.
pub const VOLUME_TAG: &str = "volume";

/// One backup, or one restore where `snapshot_of` says whose backup it is.
pub(crate) struct Move {
    pub client: kube::Client,
    pub mover: Arc<dyn Mover>,
    pub storage: Arc<SnapshotBackupStorage>,
    pub volume: Arc<LogicalVolume>,
    pub content: Content,
    pub snapshot_of: Option<String>,
    pub node: String,
}

/// What is read or written on the volume's side.
pub(crate) fn content(found: &Volume, mount: Option<PathBuf>) -> Content {
    match (&found.access, mount) {
        (Access::Directory(path), _) => Content::Files(path.clone()),
        (Access::Device(_), Some(mount)) => Content::Files(mount),
        // LVM's names are links to the devices, and the mover follows none.
        (Access::Device(path), None) => {
            let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            Content::Device { path, size: found.size }
        }
    }
}

impl Move {
    pub async fn run(self, progress: watch::Sender<Progress>) -> Result<Moved, Error> {
        // Credentials are read when they are needed and kept by nobody.
        let secret = self.secret().await?;
        let (repository, rates) = stores::repository(&self.storage, &secret)
            .map_err(|error| Error::Transient(error.to_string()))?;
        match &self.snapshot_of {
            Some(source) => self.restore(&repository, rates.restore, source, progress).await,
            None => self.backup(&repository, rates.backup, progress).await,
        }
    }

    async fn secret(&self) -> Result<Secret, Error> {
        let namespace = self.storage.metadata.namespace.as_deref().unwrap_or_default();
        let name = stores::secret_name(&self.storage).unwrap_or_default();
        let read = Api::<Secret>::namespaced(self.client.clone(), namespace).get_opt(name).await;
        let found = read.map_err(|error| {
            Error::Transient(format!("the Secret {namespace}/{name} cannot be read: {error}"))
        })?;
        found.ok_or_else(|| {
            Error::Transient(format!(
                "the Secret {namespace}/{name} does not exist: create it with the store's credentials"
            ))
        })
    }

    async fn backup(
        &self,
        repository: &Repository,
        limits: Limits,
        progress: watch::Sender<Progress>,
    ) -> Result<Moved, Error> {
        let tags = BTreeMap::from([(VOLUME_TAG.to_owned(), self.volume.uid().to_owned())]);
        // A process that died after the last byte and before the word about it has left a complete backup.
        if let Some(snapshot) = self.found(repository, &tags).await? {
            let (bytes, files) = (snapshot.bytes, snapshot.files);
            progress.send_replace(Progress {
                bytes_total: bytes,
                bytes_done: bytes,
                files_total: files,
                files_done: files,
            });
            return Ok(Moved { snapshot, repository: place(&repository.store) });
        }
        let claim = self.volume.note(annotations::CLAIM).unwrap_or(&self.volume.spec.name);
        let backup = Backup {
            content: self.content.clone(),
            path: format!("/{claim}"),
            host: self.node.clone(),
            tags,
            limits,
        };
        let made = self.mover.backup(repository, backup, progress).await?;
        Ok(Moved { snapshot: made.snapshot, repository: place(&repository.store) })
    }

    async fn restore(
        &self,
        repository: &Repository,
        limits: Limits,
        source: &str,
        progress: watch::Sender<Progress>,
    ) -> Result<Moved, Error> {
        let tags = BTreeMap::from([(VOLUME_TAG.to_owned(), source.to_owned())]);
        let snapshot = self.found(repository, &tags).await?;
        let snapshot = snapshot.ok_or_else(|| Error::NoSnapshot(format!("of volume {source}")))?;
        let restore = Restore {
            snapshot: snapshot.id.clone(),
            content: self.content.clone(),
            special_files: true,
            limits,
        };
        self.mover.restore(repository, restore, progress).await?;
        Ok(Moved { snapshot, repository: place(&repository.store) })
    }

    async fn found(
        &self,
        repository: &Repository,
        tags: &BTreeMap<String, String>,
    ) -> Result<Option<lifeboat_mover::Snapshot>, Error> {
        match self.mover.find(repository, tags).await {
            Ok(mut snapshots) => Ok(snapshots.pop()),
            Err(Error::NoRepository(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Where a repository is, as restic writes it; no credentials are in it.
fn place(store: &Store) -> String {
    match store {
        Store::S3(s3) => {
            let prefix = if s3.prefix.is_empty() { String::new() } else { format!("/{}", s3.prefix) };
            format!("s3:{}/{}{prefix}", s3.endpoint, s3.bucket)
        }
        Store::Local(path) => path.display().to_string(),
    }
}
