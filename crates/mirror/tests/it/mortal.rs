//! A process that dies: after so many changes of its disks and writes to the API server.

use async_trait::async_trait;
use lifeboat_apiserver::fault::{Asked, Faults, RequestFault};
use lifeboat_lvm::{
    Capacity, Change, Create, DeviceClass, Directories, Error, Lvm, Snapped, Snapshot, Volume,
};
use lifeboat_node::{CopyCare, Filesystems, Purpose};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// Counts what a process does to its disks and writes to the API server, and says when it dies.
#[derive(Clone, Default)]
pub struct Fate {
    done: Arc<Mutex<Vec<String>>>,
    /// The process dies after this many effects, before it hears what came of the last one.
    dies_after: Option<usize>,
    pub died: Arc<tokio::sync::Notify>,
}

impl Fate {
    pub fn dying_after(effects: usize) -> Self {
        Self { dies_after: Some(effects), ..Self::default() }
    }

    pub fn done(&self) -> Vec<String> {
        self.done.lock().clone()
    }

    /// Counts an effect, and says whether the process dies of it.
    fn dies(&self, what: String) -> bool {
        let number = {
            let mut all = self.done.lock();
            all.push(what);
            all.len()
        };
        let dies = self.dies_after.is_some_and(|last| number >= last);
        if dies {
            self.died.notify_one();
        }
        dies
    }

    pub fn is_dead(&self) -> bool {
        self.dies_after.is_some_and(|last| self.done.lock().len() >= last)
    }
}

impl Faults for Fate {
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        let counts = asked.verb.is_write() && asked.path.resource != "events";
        if self.is_dead() {
            return RequestFault::DropRequest;
        }
        let what = || format!("{} {}/{}", asked.verb.as_str(), asked.path.resource, asked.path.name);
        if counts && self.dies(what()) { RequestFault::DropAnswer } else { RequestFault::None }
    }
}

/// A back end whose caller can die at every change.
pub struct Mortal {
    pub inner: Directories,
    pub fate: Fate,
}

impl Mortal {
    async fn effect<R>(&self, what: String, work: impl Future<Output = R>) -> R {
        if self.fate.is_dead() {
            return std::future::pending().await;
        }
        let done = work.await;
        // Whoever has died does not go on.
        if self.fate.dies(what) { std::future::pending().await } else { done }
    }
}

#[async_trait]
impl Lvm for Mortal {
    async fn classes(&self) -> Result<Vec<DeviceClass>, Error> {
        self.inner.classes().await
    }
    async fn volumes(&self, class: &str) -> Result<Vec<Volume>, Error> {
        self.inner.volumes(class).await
    }
    async fn capacity(&self, class: &str) -> Result<Capacity, Error> {
        self.inner.capacity(class).await
    }
    async fn create(&self, wanted: Create) -> Result<Volume, Error> {
        self.effect(format!("create {}", wanted.name), self.inner.create(wanted)).await
    }
    async fn snapshot(&self, wanted: Snapshot) -> Result<Snapped, Error> {
        self.effect(format!("snapshot {}", wanted.name), self.inner.snapshot(wanted)).await
    }
    async fn resize(&self, class: &str, name: &str, size: u64) -> Result<u64, Error> {
        self.effect(format!("resize {name}"), self.inner.resize(class, name, size)).await
    }
    async fn rename(&self, class: &str, from: &str, to: &str) -> Result<(), Error> {
        self.effect(format!("rename {from}"), self.inner.rename(class, from, to)).await
    }
    async fn retag(
        &self,
        class: &str,
        name: &str,
        add: &BTreeSet<String>,
        remove: &BTreeSet<String>,
    ) -> Result<(), Error> {
        self.effect(format!("retag {name}"), self.inner.retag(class, name, add, remove)).await
    }
    async fn remove(&self, class: &str, name: &str) -> Result<(), Error> {
        self.effect(format!("remove {name}"), self.inner.remove(class, name)).await
    }
    fn changes(&self) -> watch::Receiver<Change> {
        self.inner.changes()
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
