//! A process that dies: before or after one of its changes of the disks and writes to the API server.

use crate::watch::Watch;
use async_trait::async_trait;
use lifeboat_apiserver::fault::{Asked, Faults, RequestFault};
use lifeboat_lvm::{Capacity, Change, Create, DeviceClass, Error, Lvm, Snapped, Snapshot, Volume};
use lifeboat_node::{CopyCare, Filesystems, Purpose};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// On which side of an effect a process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// It has not happened.
    Before,
    /// It has, and nobody hears of it.
    After,
}

/// Counts what a process does to its disks and writes to the API server, and says when it dies.
#[derive(Clone, Default)]
pub struct Fate {
    done: Arc<Mutex<Vec<String>>>,
    /// The process dies at the effect of this number.
    dies_at: Option<(usize, Moment)>,
    dead: Arc<AtomicBool>,
    pub died: Arc<tokio::sync::Notify>,
    /// Who looks at the disks.
    watch: Arc<Watch>,
}

impl Fate {
    pub fn dying_at(effect: usize, moment: Moment) -> Self {
        Self { dies_at: Some((effect, moment)), ..Self::default() }
    }

    /// The same, seen by one who looks at the disks.
    pub fn watched(mut self, watch: Arc<Watch>) -> Self {
        self.watch = watch;
        self
    }

    pub fn done(&self) -> Vec<String> {
        self.done.lock().clone()
    }

    /// Counts an effect.
    fn begins(&self, what: String) -> usize {
        let mut all = self.done.lock();
        all.push(what);
        all.len()
    }

    /// Whether the process dies of an effect here.
    fn dies(&self, number: usize, moment: Moment) -> bool {
        let dies = self.dies_at.is_some_and(|(last, when)| number >= last && when == moment);
        if dies && !self.dead.swap(true, Ordering::SeqCst) {
            self.died.notify_one();
        }
        dies
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }
}

impl Faults for Fate {
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        if self.is_dead() {
            return RequestFault::DropRequest;
        }
        if !asked.verb.is_write() || asked.path.resource == "events" {
            return RequestFault::None;
        }
        self.watch.look();
        let what = format!("{} {}/{}", asked.verb.as_str(), asked.path.resource, asked.path.name);
        let number = self.begins(what);
        if self.dies(number, Moment::Before) {
            RequestFault::DropRequest
        } else if self.dies(number, Moment::After) {
            RequestFault::DropAnswer
        } else {
            RequestFault::None
        }
    }
}

/// A back end whose caller can die at every change.
pub struct Mortal {
    pub inner: Arc<dyn Lvm>,
    pub fate: Fate,
}

impl Mortal {
    async fn effect<R>(&self, what: String, work: impl Future<Output = R>) -> R {
        // Whoever has died does not go on.
        if self.fate.is_dead() {
            return std::future::pending().await;
        }
        let number = self.fate.begins(what);
        if self.fate.dies(number, Moment::Before) {
            return std::future::pending().await;
        }
        let done = work.await;
        self.fate.watch.look();
        if self.fate.dies(number, Moment::After) { std::future::pending().await } else { done }
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
