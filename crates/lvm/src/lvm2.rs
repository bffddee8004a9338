//! Volumes on real LVM2: thick volumes of a group, thin volumes of a pool.
//!
//! Changes to a group run one after the other and are never stopped half-way; reads come from a report that all readers
//! share. What LVM did is judged by a report afterwards, not by its prose. A change of several commands works on a staged volume under a name
//! and a tag of its own and is published by a rename, so that a power cut between two commands leaves something that the next start removes.

mod class;
mod command;
mod exchange;
mod failure;
mod group;
mod host;
mod ops;
mod report;
mod run;
mod tend;

use crate::names::{check_name, check_tags};
use crate::{
    Access, AccessMode, Capacity, Change, ClassKind, Create, DeviceClass, Error, Lvm, Snapped, Snapshot,
    Trouble, Volume,
};
use async_trait::async_trait;
pub use class::{Guard, Kind, LvmClass};
use command::{Common, OWNED, is_hidden};
use group::Group;
pub use group::Pace;
use report::{Report, Row};
pub use run::{Output, Patience, Program, Run, Wipe};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// Everything that LVM is told besides the classes.
#[derive(Clone, Debug, Default)]
pub struct LvmSettings {
    /// More of LVM's own configuration, as `--config` takes it; for example `activation/udev_sync=0`.
    pub config: String,
    /// Named sets of `lvcreate` options.
    pub option_classes: BTreeMap<String, Vec<String>>,
    /// How the groups are asked.
    pub pace: Pace,
}

/// The LVM2 back end. A group that is missing or does not answer fails only the calls to its own classes.
pub struct Lvm2 {
    classes: BTreeMap<String, Arc<Served>>,
    default: Option<String>,
    option_classes: BTreeMap<String, Vec<String>>,
    changes: watch::Sender<Change>,
}

/// A class and the group that it shares with others.
struct Served {
    class: LvmClass,
    group: Arc<Group>,
}

impl Lvm2 {
    /// Serves these classes; asks LVM nothing yet.
    pub fn new(classes: Vec<LvmClass>, settings: LvmSettings, run: Arc<dyn Run>) -> Result<Self, Error> {
        Self::telling(classes, settings, run, watch::Sender::new(0))
    }

    /// The same, with changes told to somebody who listens to others too.
    pub(crate) fn telling(
        classes: Vec<LvmClass>,
        settings: LvmSettings,
        run: Arc<dyn Run>,
        changes: watch::Sender<Change>,
    ) -> Result<Self, Error> {
        let mut groups: BTreeMap<String, Arc<Group>> = BTreeMap::new();
        let mut served = BTreeMap::new();
        let mut default = None;
        for class in classes {
            if class.default && default.replace(class.name.clone()).is_some() {
                return Err(Error::Invalid("two device classes are the default one; keep one".to_owned()));
            }
            let common = Common { config: settings.config.clone() };
            let group = groups.entry(class.group.clone()).or_insert_with(|| {
                let (name, pace) = (class.group.clone(), settings.pace.clone());
                Arc::new(Group::new(name, run.clone(), common, pace, changes.clone()))
            });
            let name = class.name.clone();
            if served.insert(name.clone(), Arc::new(Served { class, group: group.clone() })).is_some() {
                return Err(Error::Invalid(format!("device class {name:?} is given twice; keep one")));
            }
        }
        Ok(Self { classes: served, default, option_classes: settings.option_classes, changes })
    }

    fn served(&self, class: &str) -> Result<Arc<Served>, Error> {
        let name = if class.is_empty() { self.default.as_deref().unwrap_or("") } else { class };
        self.classes.get(name).cloned().ok_or_else(|| Error::NoClass(class.to_owned()))
    }

    /// The options of a named set, where one is asked for.
    fn options(&self, wanted: &Create) -> Result<Option<Vec<String>>, Error> {
        let named = |name: &str| {
            self.option_classes.get(name).cloned().ok_or_else(|| {
                Error::Invalid(format!("lvcreate option class {name:?} is not configured on this node"))
            })
        };
        Some(wanted.options.as_str()).filter(|name| !name.is_empty()).map(named).transpose()
    }

    /// A change to volumes whose names are good.
    fn target(&self, class: &str, names: &[&str]) -> Result<Arc<Served>, Error> {
        for name in names {
            check_name(name)?;
        }
        self.served(class)
    }
}

impl Served {
    fn show(&self, report: &Report, name: &str, row: &Row) -> Volume {
        let path =
            if row.path.is_empty() { format!("/dev/{}/{name}", self.class.group) } else { row.path.clone() };
        let ours = |tag: &&String| tag.as_str() != OWNED;
        Volume {
            name: name.to_owned(),
            size: row.size,
            tags: row.tags.iter().filter(ours).cloned().collect(),
            access: Access::Device(PathBuf::from(path)),
            origin: row
                .origin
                .clone()
                .filter(|origin| report.volumes.contains_key(origin) && !is_hidden(origin)),
            mode: if row.is_read_only() { AccessMode::ReadOnly } else { AccessMode::ReadWrite },
            attr: row.attr.clone(),
            device: row.device,
        }
    }

    /// The volume of this class in a report. One of another class of the same group is not this one's.
    fn find<'a>(&self, report: &'a Report, name: &str) -> Option<&'a Row> {
        report.volumes.get(name).filter(|row| self.class.holds(row))
    }

    fn is_thin(&self) -> bool {
        matches!(self.class.kind, Kind::Thin { .. })
    }
}

#[async_trait]
impl Lvm for Lvm2 {
    async fn classes(&self) -> Result<Vec<DeviceClass>, Error> {
        let show = |served: &Arc<Served>| DeviceClass {
            name: served.class.name.clone(),
            default: served.class.default,
            kind: if served.is_thin() { ClassKind::Thin } else { ClassKind::Thick },
            storage: served.class.storage(),
        };
        Ok(self.classes.values().map(show).collect())
    }

    async fn volumes(&self, class: &str) -> Result<Vec<Volume>, Error> {
        let served = self.served(class)?;
        let report = served.group.report().await?;
        let shown = report.volumes.iter().filter(|(_, row)| served.class.holds(row));
        // Whoever changes names has one all the time.
        let shown = shown.filter_map(|(name, row)| match is_hidden(name) {
            false => Some(served.show(&report, name, row)),
            true => exchange::seen_as(&report, name).map(|name| served.show(&report, name, row)),
        });
        Ok(shown.collect())
    }

    async fn capacity(&self, class: &str) -> Result<Capacity, Error> {
        let served = self.served(class)?;
        let report = served.group.report().await?;
        served.class.capacity(&report, served.group.reserved())
    }

    async fn create(&self, wanted: Create) -> Result<Volume, Error> {
        check_tags(&wanted.tags)?;
        let served = self.target(&wanted.class, &[&wanted.name])?;
        let options = self.options(&wanted)?;
        served.create(wanted, options, None).await
    }

    async fn create_as(&self, wanted: Create, name: &str) -> Result<(), Error> {
        check_tags(&wanted.tags)?;
        let served = self.target(&wanted.class, &[&wanted.name, name])?;
        let options = self.options(&wanted)?;
        served.create(wanted, options, Some(name.to_owned())).await.map(drop)
    }

    async fn snapshot(&self, wanted: Snapshot) -> Result<Snapped, Error> {
        check_tags(&wanted.tags)?;
        let served = self.target(&wanted.class, &[&wanted.name, &wanted.source])?;
        served.snapshot(wanted).await
    }

    async fn resize(&self, class: &str, name: &str, size: u64) -> Result<u64, Error> {
        self.target(class, &[name])?.resize(name.to_owned(), size).await
    }

    async fn rename(&self, class: &str, from: &str, to: &str) -> Result<(), Error> {
        self.target(class, &[from, to])?.rename(from.to_owned(), to.to_owned()).await
    }

    async fn exchange(&self, class: &str, one: &str, other: &str) -> Result<(), Error> {
        self.target(class, &[one, other])?.exchange(one.to_owned(), other.to_owned()).await
    }

    async fn retag(
        &self,
        class: &str,
        name: &str,
        add: &BTreeSet<String>,
        remove: &BTreeSet<String>,
    ) -> Result<(), Error> {
        check_tags(add)?;
        self.target(class, &[name])?.retag(name.to_owned(), add.clone(), remove.clone()).await
    }

    async fn remove(&self, class: &str, name: &str) -> Result<(), Error> {
        self.target(class, &[name])?.remove(name.to_owned()).await
    }

    async fn health(&self) -> Vec<Trouble> {
        self.troubles().await
    }

    fn changes(&self) -> watch::Receiver<Change> {
        self.changes.subscribe()
    }
}
