//! Volumes as plain directories: for the demo, and for machines without device-mapper. Same operations and errors as LVM.
//!
//! Sizes are promises that are kept count of, not walls: a directory cannot be kept from growing. `ReadOnly` is told
//! in the list and kept by whoever mounts. Snapshots share blocks where the filesystem can (reflink), else they are copies;
//! a walk over files is one moment only if the writers are held at the [gate](Gate).

mod class;
mod copy;
mod gate;
mod meta;
mod xattr;

use crate::locks::Names;
use crate::names::{check_name, check_tags};
use crate::{
    Capacity, Change, ClassKind, Create, DeviceClass, Error, Lvm, Snapped, Snapshot, Trouble, TroubleKind,
    Volume,
};
use async_trait::async_trait;
use class::Open;
pub use gate::{Closed, Gate, Writing};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A folder that directory volumes are made in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryClass {
    /// Name that StorageClasses use.
    pub name: String,
    /// Whether volumes without a class come from here.
    pub default: bool,
    /// Where the volumes are.
    pub path: PathBuf,
    /// Bytes that all volumes together may have; without it, what the filesystem has.
    pub limit: Option<u64>,
    /// Bytes never given away.
    pub spare: u64,
    /// How long a snapshot waits for writers under way before it goes on and is called fuzzy.
    pub patience: Duration,
}

impl DirectoryClass {
    /// A class that may use the whole filesystem at `path`.
    #[must_use]
    pub fn new(name: &str, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            default: false,
            path: path.into(),
            limit: None,
            spare: 0,
            patience: Duration::from_secs(10),
        }
    }

    /// The same class, used for volumes without a class.
    #[must_use]
    pub fn default_class(mut self) -> Self {
        self.default = true;
        self
    }
}

/// The directory back end: several classes, each a folder. A folder that cannot be served now (a disk not mounted yet, another
/// process in it) fails only the calls to its own class, and is tried again by the next one.
pub struct Directories {
    classes: BTreeMap<String, Arc<Served>>,
    default: Option<String>,
    changes: watch::Sender<Change>,
}

struct Served {
    class: DirectoryClass,
    open: Mutex<Option<Arc<Open>>>,
    names: Names,
}

impl Directories {
    /// Serves these classes and clears what a crash left in them.
    pub fn new(classes: Vec<DirectoryClass>) -> Result<Self, Error> {
        Self::telling(classes, watch::Sender::new(0))
    }

    /// The same, with changes told to somebody who listens to others too.
    pub(crate) fn telling(
        classes: Vec<DirectoryClass>,
        changes: watch::Sender<Change>,
    ) -> Result<Self, Error> {
        let mut served = BTreeMap::new();
        let mut default = None;
        for class in classes {
            if class.default && default.replace(class.name.clone()).is_some() {
                return Err(Error::Invalid("two device classes are the default one; keep one".to_owned()));
            }
            let name = class.name.clone();
            let one = Arc::new(Served { class, open: Mutex::default(), names: Names::default() });
            if let Err(error) = one.open() {
                tracing::warn!(%error, "serving the other device classes meanwhile");
            }
            if served.insert(name.clone(), one).is_some() {
                return Err(Error::Invalid(format!("device class {name:?} is given twice; keep one")));
            }
        }
        Ok(Self { classes: served, default, changes })
    }

    fn served(&self, class: &str) -> Result<Arc<Served>, Error> {
        let name = if class.is_empty() { self.default.as_deref().unwrap_or("") } else { class };
        self.classes.get(name).cloned().ok_or_else(|| Error::NoClass(class.to_owned()))
    }

    /// Runs a change to the end, whether or not the caller still waits; others who want these names wait for it.
    async fn change<T: Send + 'static>(
        &self,
        class: &str,
        names: &[&str],
        work: impl FnOnce(&Open) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        for name in names {
            check_name(name)?;
        }
        let served = self.served(class)?;
        let held = served.names.hold(names).await;
        let changes = self.changes.clone();
        let work = move || {
            let done = served.open().and_then(|open| work(&open));
            if done.is_ok() {
                changes.send_modify(|change| *change += 1);
            }
            drop(held);
            done
        };
        blocking(work).await
    }
}

impl Served {
    fn open(&self) -> Result<Arc<Open>, Error> {
        let mut open = self.open.lock();
        if let Some(open) = open.as_ref() {
            return Ok(open.clone());
        }
        let fresh = Open::take(self.class.clone()).map(Arc::new).map_err(|error| {
            let (name, path) = (&self.class.name, self.class.path.display());
            Error::Transient(format!("device class {name:?} cannot be served from {path}: {error}"))
        })?;
        Ok(open.insert(fresh).clone())
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let stopped = |error| Err(Error::Transient(format!("the work stopped before its end: {error}")));
    tokio::task::spawn_blocking(work).await.unwrap_or_else(stopped)
}

#[async_trait]
impl Lvm for Directories {
    async fn classes(&self) -> Result<Vec<DeviceClass>, Error> {
        let show = |served: &Arc<Served>| DeviceClass {
            name: served.class.name.clone(),
            default: served.class.default,
            kind: ClassKind::Directory,
            // The same however it is written.
            storage: served.class.path.components().collect::<PathBuf>().display().to_string(),
        };
        Ok(self.classes.values().map(show).collect())
    }

    async fn volumes(&self, class: &str) -> Result<Vec<Volume>, Error> {
        let served = self.served(class)?;
        blocking(move || Ok(served.open()?.volumes())).await
    }

    async fn capacity(&self, class: &str) -> Result<Capacity, Error> {
        let served = self.served(class)?;
        blocking(move || served.open()?.capacity()).await
    }

    async fn create(&self, wanted: Create) -> Result<Volume, Error> {
        check_tags(&wanted.tags)?;
        let (class, name) = (wanted.class.clone(), wanted.name.clone());
        self.change(&class, &[&name], move |open| open.create(&wanted)).await
    }

    async fn snapshot(&self, wanted: Snapshot) -> Result<Snapped, Error> {
        check_tags(&wanted.tags)?;
        let (class, name, source) = (wanted.class.clone(), wanted.name.clone(), wanted.source.clone());
        let (volume, consistency) =
            self.change(&class, &[&name, &source], move |open| open.snapshot(&wanted)).await?;
        Ok(Snapped { volume, consistency })
    }

    async fn resize(&self, class: &str, name: &str, size: u64) -> Result<u64, Error> {
        let owned = name.to_owned();
        self.change(class, &[name], move |open| open.resize(&owned, size)).await
    }

    async fn rename(&self, class: &str, from: &str, to: &str) -> Result<(), Error> {
        let (old, new) = (from.to_owned(), to.to_owned());
        self.change(class, &[from, to], move |open| open.rename(&old, &new)).await
    }

    async fn exchange(&self, class: &str, one: &str, other: &str) -> Result<(), Error> {
        let (first, second) = (one.to_owned(), other.to_owned());
        self.change(class, &[one, other], move |open| open.exchange(&first, &second)).await
    }

    async fn retag(
        &self,
        class: &str,
        name: &str,
        add: &BTreeSet<String>,
        remove: &BTreeSet<String>,
    ) -> Result<(), Error> {
        check_tags(add)?;
        let (owned, add, remove) = (name.to_owned(), add.clone(), remove.clone());
        self.change(class, &[name], move |open| open.retag(&owned, &add, &remove)).await
    }

    async fn remove(&self, class: &str, name: &str) -> Result<(), Error> {
        let owned = name.to_owned();
        self.change(class, &[name], move |open| open.remove(&owned)).await
    }

    async fn health(&self) -> Vec<Trouble> {
        let mut found = Vec::new();
        for (class, served) in &self.classes {
            let served = served.clone();
            if let Err(error) = blocking(move || served.open()?.capacity()).await {
                let (class, message) = (class.clone(), error.to_string());
                found.push(Trouble { class, kind: TroubleKind::Unusable, message });
            }
        }
        found
    }

    fn changes(&self) -> watch::Receiver<Change> {
        self.changes.subscribe()
    }
}
