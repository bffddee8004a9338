//! The operations on volumes, each from its first check to its last command.

use super::Served;
use super::class::Kind;
use super::command::{OWNED, REMOVED, STAGED};
use super::failure::{Tried, of_any, of_existing};
use super::group::{Group, Hidden};
use super::report::{Report, Row};
use super::run::{Output, Wipe};
use crate::{Access, Consistency, Create, Error, Snapped, Snapshot, Volume};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Served {
    pub(super) async fn create(
        self: Arc<Self>,
        wanted: Create,
        options: Option<Vec<String>>,
        publish: Option<String>,
    ) -> Result<Volume, Error> {
        let group = self.group.clone();
        let reserved = group.reserve(wanted.size);
        let work = move |group: Arc<Group>| async move {
            let report = group.report().await?;
            for name in [Some(&wanted.name), publish.as_ref()].into_iter().flatten() {
                self.must_be_new(&report, name)?;
            }
            let size = rounded(wanted.size, report.extent)?;
            // Those behind us in the queue have promises too, but we are first.
            self.class.admit(&report, 0, size)?;
            let tags = owned(&wanted.tags);
            let arguments = group.common.create(&self.class, &wanted.name, size, &tags, options.as_deref());
            let output = group.mutate(arguments).await?;
            let mut made = self.made(&group, "creating", &wanted.name, size, &output).await?;
            if let Some(name) = publish {
                let output = group.mutate(group.common.rename(&group.name, &wanted.name, &name)).await?;
                self.succeeded(&group, "publishing", &wanted.name, 0, &output).await?;
                made.name = name;
            }
            drop(reserved);
            Ok(made)
        };
        group.change(work).await
    }

    pub(super) async fn snapshot(self: Arc<Self>, wanted: Snapshot) -> Result<Snapped, Error> {
        if matches!(self.class.kind, Kind::Thick { .. }) && wanted.short_lived.is_none() {
            return Err(Error::Unsupported(format!(
                "device class {:?} is thick: it can only take short-lived snapshots for a backup that follows at once; use a thin class for snapshots that last",
                self.class.name
            )));
        }
        let group = self.group.clone();
        let reserved = group.reserve(wanted.short_lived.unwrap_or(wanted.size));
        let work = move |group: Arc<Group>| async move {
            let report = group.report().await?;
            let source = self.find(&report, &wanted.source).ok_or_else(|| self.no_volume(&wanted.source))?;
            self.must_be_new(&report, &wanted.name)?;
            if wanted.size != 0 && wanted.size < source.size {
                return Err(Error::Invalid(format!(
                    "a snapshot of {:?} needs at least its {} bytes, {} were asked for",
                    wanted.source, source.size, wanted.size
                )));
            }
            let volume = match (&self.class.kind, wanted.short_lived) {
                (Kind::Thick { .. }, Some(room)) => self.cow(&group, &report, source, &wanted, room).await,
                _ => self.thin_copy(&group, &report, source, &wanted).await,
            };
            drop(reserved);
            // LVM suspends the origin, and a mounted filesystem with it, while it takes a snapshot.
            Ok(Snapped { volume: volume?, consistency: Consistency::Crash })
        };
        group.change(work).await
    }

    async fn cow(
        &self,
        group: &Group,
        report: &Report,
        source: &Row,
        wanted: &Snapshot,
        room: u64,
    ) -> Result<Volume, Error> {
        if wanted.size > source.size {
            return Err(Error::Unsupported(format!(
                "a short-lived snapshot of {:?} cannot be larger than its {} bytes",
                wanted.source, source.size
            )));
        }
        // More than the whole origin and its bookkeeping is never used; LVM makes it smaller by itself.
        let room = rounded(room.min(source.size.saturating_mul(2)), report.extent)?;
        self.class.admit(report, 0, room)?;
        let (name, tags) = (&wanted.name, owned(&wanted.tags));
        let arguments =
            group.common.snapshot(&group.name, &wanted.source, name, wanted.mode, &tags, Some(room));
        let output = group.mutate(arguments).await?;
        self.made(group, "taking a short-lived snapshot as", name, room, &output).await
    }

    async fn thin_copy(
        &self,
        group: &Group,
        report: &Report,
        source: &Row,
        wanted: &Snapshot,
    ) -> Result<Volume, Error> {
        let size = rounded(wanted.size.max(source.size), report.extent)?;
        self.class.admit(report, 0, size)?;
        let (name, tags) = (wanted.name.as_str(), owned(&wanted.tags));
        let take =
            |name: &str| group.common.snapshot(&group.name, &wanted.source, name, wanted.mode, &tags, None);
        if size <= source.size {
            let output = group.mutate(take(name)).await?;
            return self.made(group, "taking a snapshot as", name, size, &output).await;
        }
        // Two commands, and only the rename shows the volume: a power cut between them leaves nothing half-sized.
        let staged = format!("{STAGED}{name}");
        if report.volumes.contains_key(&staged) {
            group.mutate(group.common.remove(&group.name, &staged)).await?;
        }
        let output = group.mutate(take(&staged)).await?;
        self.made(group, "taking a snapshot as", &staged, size, &output).await?;
        for arguments in
            [group.common.grow(&group.name, &staged, size), group.common.rename(&group.name, &staged, name)]
        {
            let output = group.mutate(arguments).await?;
            if output.code != 0 {
                let error = of_any(&self.tried("growing a snapshot for", name, size), &output, None);
                group.mutate(group.common.remove(&group.name, &staged)).await?;
                return Err(error);
            }
        }
        self.shown(group, name).await
    }

    pub(super) async fn resize(self: Arc<Self>, name: String, size: u64) -> Result<u64, Error> {
        let group = self.group.clone();
        let work = move |group: Arc<Group>| async move {
            let report = group.report().await?;
            let row = self.find(&report, &name).ok_or_else(|| self.no_volume(&name))?;
            let wanted = rounded(size, report.extent)?;
            if wanted <= row.size {
                return Ok(row.size);
            }
            self.class.admit(&report, 0, wanted - row.size)?;
            let output = group.mutate(group.common.grow(&group.name, &name, wanted)).await?;
            self.succeeded(&group, "growing", &name, wanted - row.size, &output).await?;
            Ok(self.shown(&group, &name).await?.size)
        };
        group.change(work).await
    }

    pub(super) async fn rename(self: Arc<Self>, from: String, to: String) -> Result<(), Error> {
        let group = self.group.clone();
        let work = move |group: Arc<Group>| async move {
            let report = group.report().await?;
            self.find(&report, &from).ok_or_else(|| self.no_volume(&from))?;
            self.must_be_new(&report, &to)?;
            let output = group.mutate(group.common.rename(&group.name, &from, &to)).await?;
            self.succeeded(&group, "renaming", &from, 0, &output).await
        };
        group.change(work).await
    }

    pub(super) async fn retag(
        self: Arc<Self>,
        name: String,
        add: BTreeSet<String>,
        remove: BTreeSet<String>,
    ) -> Result<(), Error> {
        let group = self.group.clone();
        let work = move |group: Arc<Group>| async move {
            let report = group.report().await?;
            let row = self.find(&report, &name).ok_or_else(|| self.no_volume(&name))?;
            let add: BTreeSet<String> = add.difference(&row.tags).cloned().collect();
            let remove: BTreeSet<String> = remove.intersection(&row.tags).cloned().collect();
            if add.is_empty() && remove.is_empty() {
                return Ok(());
            }
            let output = group.mutate(group.common.retag(&group.name, &name, &add, &remove)).await?;
            self.succeeded(&group, "tagging", &name, 0, &output).await
        };
        group.change(work).await
    }

    /// A thick volume first goes out of sight under another name, then its bytes are wiped while others use the group, then it is removed. After
    /// a crash in between, [`recover`](super::Lvm2::recover) finishes.
    pub(super) async fn remove(self: Arc<Self>, name: String) -> Result<(), Error> {
        let group = self.group.clone();
        let work = async move {
            match self.clone().take_out(name).await? {
                Some(hidden) => self.finish_removal(hidden).await,
                None => Ok(()),
            }
        };
        group.detached(work).await
    }

    /// Removes a volume at once, or puts it out of sight if it has to be wiped first.
    async fn take_out(self: Arc<Self>, name: String) -> Result<Option<Hidden>, Error> {
        let group = self.group.clone();
        let work = move |group: Arc<Group>| async move {
            // Never from a cached report: what is not found is believed to be gone for good.
            let report = group.fresh().await?;
            let row = self.find(&report, &name).ok_or_else(|| self.no_volume(&name))?;
            self.must_be_free(&report, row, &name)?;
            if self.class.wipe == Wipe::None || self.is_thin() || row.is_cow() {
                let output = group.mutate(group.common.remove(&group.name, &name)).await?;
                self.succeeded(&group, "removing", &name, 0, &output).await?;
                return Ok(None);
            }
            let hidden = group
                .hide(&format!("{REMOVED}{name}"))
                .filter(|hidden| !report.volumes.contains_key(&hidden.name));
            let hidden = hidden.ok_or_else(|| {
                Error::Transient(format!("an earlier volume {name:?} is still being wiped; try again later"))
            })?;
            if !row.tags.contains(OWNED) {
                let tag = BTreeSet::from([OWNED.to_owned()]);
                let output =
                    group.mutate(group.common.retag(&group.name, &name, &tag, &BTreeSet::new())).await?;
                self.succeeded(&group, "tagging", &name, 0, &output).await?;
            }
            let output = group.mutate(group.common.rename(&group.name, &name, &hidden.name)).await?;
            self.succeeded(&group, "removing", &name, 0, &output).await?;
            Ok(Some(hidden))
        };
        group.change(work).await
    }

    /// Wipes and removes a volume that is out of sight.
    pub(super) async fn finish_removal(self: Arc<Self>, hidden: Hidden) -> Result<(), Error> {
        let group = self.group.clone();
        let report = group.report().await?;
        let Some(row) = report.volumes.get(&hidden.name) else { return Ok(()) };
        let Access::Device(device) = self.show(&report, &hidden.name, row).access else { return Ok(()) };
        if !row.is_active() {
            let name = hidden.name.clone();
            let activate = move |group: Arc<Group>| async move {
                group.mutate(group.common.activate(&group.name, &name)).await.map(drop)
            };
            group.change(activate).await?;
        }
        group.run.wipe(&device, self.class.wipe).await.map_err(|error| {
            Error::Transient(format!(
                "wiping the removed volume {:?} failed: {error}; it stays, out of sight, and is tried again",
                hidden.name
            ))
        })?;
        let work = move |group: Arc<Group>| async move {
            let output = group.mutate(group.common.remove(&group.name, &hidden.name)).await?;
            self.succeeded(&group, "removing", &hidden.name, 0, &output).await
        };
        group.change(work).await
    }

    /// Refuses to remove what somebody uses, or what a short-lived snapshot stands on: LVM would remove both.
    pub(super) fn must_be_free(&self, report: &Report, row: &Row, name: &str) -> Result<(), Error> {
        let busy = |detail: String| Err(Error::Busy { name: name.to_owned(), detail });
        let stands_on =
            |(_, other): &(&String, &Row)| other.is_cow() && other.origin.as_deref() == Some(name);
        if let Some((snapshot, _)) = report.volumes.iter().find(stands_on) {
            return busy(format!("the short-lived snapshot {snapshot:?} stands on it; remove that first"));
        }
        if row.is_open() {
            return busy("its device is open, for example mounted".to_owned());
        }
        Ok(())
    }

    fn must_be_new(&self, report: &Report, name: &str) -> Result<(), Error> {
        if report.volumes.contains_key(name) {
            return Err(Error::Exists { class: self.class.name.clone(), name: name.to_owned() });
        }
        Ok(())
    }

    /// The new volume, or what went wrong. A failed command may have left half a volume, which nobody asked for.
    async fn made(
        &self,
        group: &Group,
        doing: &str,
        name: &str,
        wanted: u64,
        output: &Output,
    ) -> Result<Volume, Error> {
        if output.code == 0 {
            return self.shown(group, name).await;
        }
        let after = group.fresh().await.ok();
        let half = after.as_ref().and_then(|report| report.volumes.get(name));
        // It was not there before the command, and nobody else of this machine changes the group meanwhile.
        if half.is_some_and(|row| row.tags.contains(OWNED)) {
            tracing::warn!(volume = name, "removing what a failed command left");
            group.mutate(group.common.remove(&group.name, name)).await?;
        }
        Err(of_any(&self.tried(doing, name, wanted), output, after.as_deref()))
    }

    pub(super) async fn succeeded(
        &self,
        group: &Group,
        doing: &str,
        name: &str,
        wanted: u64,
        output: &Output,
    ) -> Result<(), Error> {
        if output.code == 0 {
            return Ok(());
        }
        let after = group.fresh().await.ok();
        Err(of_existing(&self.tried(doing, name, wanted), output, after.as_deref()))
    }

    async fn shown(&self, group: &Group, name: &str) -> Result<Volume, Error> {
        let report = group.report().await?;
        let row = report.volumes.get(name).ok_or_else(|| {
            Error::Transient(format!(
                "LVM said that volume {name:?} is done, but does not show it; try again"
            ))
        })?;
        Ok(self.show(&report, name, row))
    }

    fn tried<'a>(&'a self, doing: &'a str, name: &'a str, wanted: u64) -> Tried<'a> {
        Tried { doing, class: &self.class.name, name, wanted }
    }

    pub(super) fn no_volume(&self, name: &str) -> Error {
        Error::NoVolume { class: self.class.name.clone(), name: name.to_owned() }
    }
}

/// The caller's tags, and that the volume is ours.
fn owned(tags: &BTreeSet<String>) -> BTreeSet<String> {
    tags.iter().cloned().chain([OWNED.to_owned()]).collect()
}

fn rounded(size: u64, extent: u64) -> Result<u64, Error> {
    let too_much = || Error::Invalid(format!("a size of {size} bytes is more than can be counted"));
    size.max(1).checked_next_multiple_of(extent).ok_or_else(too_much)
}
