//! All classes of a node behind one trait, whatever each is made of.

use crate::config::Config;
use crate::{
    Capacity, Change, Create, DeviceClass, Directories, Error, Lvm, Lvm2, LvmSettings, Pace, Run, Snapped,
    Snapshot, Trouble, Volume,
};
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// Where processes that change the same volume groups find each other. In a container it has to be the host's.
const LOCKS: &str = "/run/lock/lifeboat";

/// The storage that a configuration describes.
pub struct Storage {
    lvm: Lvm2,
    directories: Directories,
    on_lvm: BTreeSet<String>,
    default: Option<String>,
    changes: watch::Sender<Change>,
}

impl Storage {
    /// Opens the classes; one that cannot be used now fails alone and is tried again with every call.
    pub fn open(config: Config, run: Arc<dyn Run>) -> Result<Self, Error> {
        let changes = watch::Sender::new(0);
        let on_lvm = config.lvm.iter().map(|class| class.name.clone()).collect();
        let default = config.lvm.iter().find(|class| class.default).map(|class| &class.name);
        let plain = config.directories.iter().find(|class| class.default).map(|class| &class.name);
        let default = default.or(plain).cloned();
        let settings = LvmSettings {
            config: config.lvm_config,
            option_classes: config.option_classes,
            pace: Pace { locks: Some(PathBuf::from(LOCKS)), ..Pace::default() },
        };
        Ok(Self {
            lvm: Lvm2::telling(config.lvm, settings, run, changes.clone())?,
            directories: Directories::telling(config.directories, changes.clone())?,
            on_lvm,
            default,
            changes,
        })
    }

    /// Looks after the classes once: finishes what a crash left, watches thin pools, notices what others changed. To be called at
    /// the start and every half minute or so.
    pub async fn tend(&self) {
        self.lvm.tend().await;
    }

    /// Finishes what a crash left, and waits until it is done.
    pub async fn recover(&self) {
        self.lvm.recover().await;
    }

    /// The back end of a class, and the class's own name.
    fn of<'a>(&'a self, class: &'a str) -> Result<(&'a dyn Lvm, &'a str), Error> {
        let name = match (class, &self.default) {
            ("", Some(default)) => default,
            ("", None) => return Err(Error::NoClass(String::new())),
            (name, _) => name,
        };
        let back_end: &dyn Lvm = if self.on_lvm.contains(name) { &self.lvm } else { &self.directories };
        Ok((back_end, name))
    }
}

#[async_trait]
impl Lvm for Storage {
    async fn classes(&self) -> Result<Vec<DeviceClass>, Error> {
        let mut classes = self.lvm.classes().await?;
        classes.extend(self.directories.classes().await?);
        classes.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(classes)
    }

    async fn volumes(&self, class: &str) -> Result<Vec<Volume>, Error> {
        let (back_end, class) = self.of(class)?;
        back_end.volumes(class).await
    }

    async fn capacity(&self, class: &str) -> Result<Capacity, Error> {
        let (back_end, class) = self.of(class)?;
        back_end.capacity(class).await
    }

    async fn create(&self, mut wanted: Create) -> Result<Volume, Error> {
        let asked = std::mem::take(&mut wanted.class);
        let (back_end, class) = self.of(&asked)?;
        class.clone_into(&mut wanted.class);
        back_end.create(wanted).await
    }

    async fn create_as(&self, mut wanted: Create, name: &str) -> Result<(), Error> {
        let asked = std::mem::take(&mut wanted.class);
        let (back_end, class) = self.of(&asked)?;
        class.clone_into(&mut wanted.class);
        back_end.create_as(wanted, name).await
    }

    async fn snapshot(&self, mut wanted: Snapshot) -> Result<Snapped, Error> {
        let asked = std::mem::take(&mut wanted.class);
        let (back_end, class) = self.of(&asked)?;
        class.clone_into(&mut wanted.class);
        back_end.snapshot(wanted).await
    }

    async fn resize(&self, class: &str, name: &str, size: u64) -> Result<u64, Error> {
        let (back_end, class) = self.of(class)?;
        back_end.resize(class, name, size).await
    }

    async fn rename(&self, class: &str, from: &str, to: &str) -> Result<(), Error> {
        let (back_end, class) = self.of(class)?;
        back_end.rename(class, from, to).await
    }

    async fn exchange(&self, class: &str, one: &str, other: &str) -> Result<(), Error> {
        let (back_end, class) = self.of(class)?;
        back_end.exchange(class, one, other).await
    }

    async fn retag(
        &self,
        class: &str,
        name: &str,
        add: &BTreeSet<String>,
        remove: &BTreeSet<String>,
    ) -> Result<(), Error> {
        let (back_end, class) = self.of(class)?;
        back_end.retag(class, name, add, remove).await
    }

    async fn remove(&self, class: &str, name: &str) -> Result<(), Error> {
        let (back_end, class) = self.of(class)?;
        back_end.remove(class, name).await
    }

    async fn health(&self) -> Vec<Trouble> {
        let mut troubles = self.lvm.health().await;
        troubles.extend(self.directories.health().await);
        troubles
    }

    fn changes(&self) -> watch::Receiver<Change> {
        self.changes.subscribe()
    }
}
