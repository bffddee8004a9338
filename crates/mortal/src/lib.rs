//! Disks whose user can die at every change, for the tests of everything that works with disks.
//!
//! What happens to a change is a [`Fate`]'s to say; this crate only makes sure that no change goes past it. It decides nothing, and keeps
//! nothing.

use async_trait::async_trait;
use lifeboat_lvm::{Capacity, Change, Create, DeviceClass, Error, Lvm, Snapped, Snapshot, Trouble, Volume};
use lifeboat_node::{CopyCare, Filesystems, Purpose};
use lifeboat_testbed::{CrashPoints, Kind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// Lets a change happen, or not, or lets nobody hear of it. Whoever dies of it never goes on: the future has no end.
pub trait Fate: Send + Sync + 'static {
    /// A change of this kind to the volume of this name.
    fn change<T: Send>(
        &self,
        verb: &str,
        name: &str,
        work: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send;
}

impl Fate for CrashPoints {
    async fn change<T: Send>(&self, verb: &str, name: &str, work: impl Future<Output = T> + Send) -> T {
        match self.effect(Kind::Lvm, format!("{verb} {name}"), work).await {
            Ok(done) => done,
            Err(_) => std::future::pending().await,
        }
    }
}

/// A back end whose user can die at every change.
pub struct Mortal<F> {
    /// Where the changes are made.
    pub lvm: Arc<dyn Lvm>,
    /// What becomes of them.
    pub fate: F,
}

#[async_trait]
impl<F: Fate> Lvm for Mortal<F> {
    async fn classes(&self) -> Result<Vec<DeviceClass>, Error> {
        self.lvm.classes().await
    }
    async fn volumes(&self, class: &str) -> Result<Vec<Volume>, Error> {
        self.lvm.volumes(class).await
    }
    async fn capacity(&self, class: &str) -> Result<Capacity, Error> {
        self.lvm.capacity(class).await
    }
    async fn create(&self, wanted: Create) -> Result<Volume, Error> {
        let name = wanted.name.clone();
        self.fate.change("create", &name, self.lvm.create(wanted)).await
    }
    async fn snapshot(&self, wanted: Snapshot) -> Result<Snapped, Error> {
        let name = wanted.name.clone();
        self.fate.change("snapshot", &name, self.lvm.snapshot(wanted)).await
    }
    async fn resize(&self, class: &str, name: &str, size: u64) -> Result<u64, Error> {
        self.fate.change("resize", name, self.lvm.resize(class, name, size)).await
    }
    async fn rename(&self, class: &str, from: &str, to: &str) -> Result<(), Error> {
        self.fate.change("rename", from, self.lvm.rename(class, from, to)).await
    }
    async fn exchange(&self, class: &str, one: &str, other: &str) -> Result<(), Error> {
        self.fate.change("exchange", one, self.lvm.exchange(class, one, other)).await
    }
    async fn retag(
        &self,
        class: &str,
        name: &str,
        add: &BTreeSet<String>,
        remove: &BTreeSet<String>,
    ) -> Result<(), Error> {
        self.fate.change("retag", name, self.lvm.retag(class, name, add, remove)).await
    }
    async fn remove(&self, class: &str, name: &str) -> Result<(), Error> {
        self.fate.change("remove", name, self.lvm.remove(class, name)).await
    }
    async fn health(&self) -> Vec<Trouble> {
        self.lvm.health().await
    }
    fn changes(&self) -> watch::Receiver<Change> {
        self.lvm.changes()
    }
}

/// Directories need no mounts; one that is asked for is a mistake of the rules.
pub struct NoMounts;

#[async_trait]
impl Filesystems for NoMounts {
    async fn mount(&self, device: &Path, _: &Path, _: Purpose) -> Result<(), Error> {
        panic!("a directory is mounted: {}", device.display());
    }
    async fn unmount(&self, at: &Path) -> Result<(), Error> {
        panic!("a directory is unmounted: {}", at.display());
    }
    async fn mounted_under(&self, _: &Path) -> Result<Vec<PathBuf>, Error> {
        Ok(Vec::new())
    }
    async fn care(&self, _: &Path) -> Result<CopyCare, Error> {
        Ok(CopyCare::Nothing)
    }
    async fn freeze(&self, at: &Path) -> Result<(), Error> {
        panic!("a directory is frozen: {}", at.display());
    }
    async fn thaw(&self, at: &Path) -> Result<(), Error> {
        panic!("a directory is thawed: {}", at.display());
    }
}
