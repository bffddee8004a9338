//! What goes on besides requests: finishing what a crash left, watching thin pools, telling of trouble.

use super::class::{Guard, Kind, Pressure};
use super::command::{OWNED, PoolPart, REMOVED, STAGED, SWAPPED};
use super::group::Group;
use super::report::{Report, Row};
use super::{Lvm2, Served};
use crate::{Error, Trouble, TroubleKind};
use std::sync::Arc;

/// LVM makes no larger metadata volume.
const LARGEST_METADATA: u64 = 16 << 30;

/// Whether somebody waits for the wiping of removed volumes.
#[derive(Clone, Copy)]
enum Wiping {
    IsWaitedFor,
    GoesOn,
}

impl Lvm2 {
    /// Finishes what a crash left: removes volumes that were still being made, goes on with wiping removed ones and with exchanges of names, and activates those
    /// of our volumes that came up inactive. Trouble with one group is told in the log and in [`health`](crate::Lvm::health).
    pub async fn recover(&self) {
        for served in self.classes.values() {
            if let Err(error) = served.recover(Wiping::IsWaitedFor).await {
                tracing::warn!(class = served.class.name, %error, "what a crash may have left is not cleared yet");
            }
        }
    }

    /// Looks after the classes once: meant to be called every half minute or so. Notices what others changed, finishes
    /// leftovers, and lets thin pools grow that may.
    pub async fn tend(&self) {
        for served in self.classes.values() {
            if served.group.wedged().is_some() {
                continue;
            }
            let tended = async {
                served.group.fresh().await?;
                // Others must not wait for a large volume to be wiped; and a pool that fills up does not wait for leftovers.
                let (recovered, extended) =
                    (served.recover(Wiping::GoesOn).await, served.extend_pool().await);
                recovered.and(extended)
            };
            if let Err(error) = tended.await {
                tracing::warn!(class = served.class.name, %error, "looking after a device class");
            }
        }
    }

    pub(super) async fn troubles(&self) -> Vec<Trouble> {
        let mut found = Vec::new();
        for served in self.classes.values() {
            found.extend(served.troubles().await);
        }
        found
    }
}

impl Served {
    async fn recover(self: &Arc<Self>, wiping: Wiping) -> Result<(), Error> {
        let report = self.group.report().await?;
        let mut first = Ok(());
        for (name, row) in report.volumes.iter().filter(|(_, row)| self.class.holds(row)) {
            // One that cannot be finished now holds up no other.
            let finished = self.recover_one(name, row, wiping).await;
            if let Err(error) = &finished {
                tracing::warn!(volume = name, %error, "what a crash left of a volume is not cleared yet");
            }
            first = first.and(finished);
        }
        first
    }

    async fn recover_one(self: &Arc<Self>, name: &str, row: &Row, wiping: Wiping) -> Result<(), Error> {
        if !row.tags.contains(OWNED) {
            return Ok(());
        }
        if name.starts_with(REMOVED) {
            // Not ours to finish while this process is at it.
            let Some(hidden) = self.group.hide(name) else { return Ok(()) };
            let finish = self.clone().finish_removal(hidden);
            match wiping {
                Wiping::IsWaitedFor => self.group.detached(finish).await,
                Wiping::GoesOn => {
                    self.group.go_on(finish);
                    Ok(())
                }
            }
        } else if name.starts_with(SWAPPED) {
            self.clone().finish_exchange(name.to_owned()).await
        } else if name.starts_with(STAGED) {
            self.clear_staged(name.to_owned()).await
        } else if !row.is_active() {
            let name = name.to_owned();
            let activate = move |group: Arc<Group>| async move {
                group.mutate(group.common.activate(&group.name, &name)).await.map(drop)
            };
            self.group.change(activate).await
        } else {
            Ok(())
        }
    }

    /// In its turn, so that a volume being staged right now is seen as published or still there, never removed under its maker.
    async fn clear_staged(self: &Arc<Self>, name: String) -> Result<(), Error> {
        let work = move |group: Arc<Group>| async move {
            if group.report().await?.volumes.contains_key(&name) {
                group.mutate(group.common.remove(&group.name, &name)).await?;
            }
            Ok(())
        };
        self.group.change(work).await
    }

    async fn extend_pool(self: &Arc<Self>) -> Result<(), Error> {
        let Kind::Thin { pool, guard, .. } = &self.class.kind else { return Ok(()) };
        let report = self.group.report().await?;
        let Some(row) = self.class.pool(&report)? else { return Ok(()) };
        for (part, size) in extensions(guard, &report, row) {
            let pool = pool.clone();
            let grow = move |group: Arc<Group>| async move {
                let output = group.mutate(group.common.grow_pool(&group.name, &pool, part, size)).await?;
                if output.code != 0 {
                    let said = super::report::read_errors(&output.stdout, &output.stderr).join("; ");
                    return Err(Error::Transient(format!(
                        "growing thin pool {pool:?} to {size} bytes: {said}"
                    )));
                }
                Ok(())
            };
            self.group.change(grow).await?;
        }
        Ok(())
    }

    async fn troubles(&self) -> Vec<Trouble> {
        let trouble = |kind, message| Trouble { class: self.class.name.clone(), kind, message };
        if let Some((what, elapsed)) = self.group.wedged() {
            // A report would wait for the same lock.
            let message = format!(
                "{what} on volume group {:?} has been running for {} s; it is left alone, since stopping it could leave devices suspended: look for a disk that does not answer",
                self.group.name,
                elapsed.as_secs()
            );
            return vec![trouble(TroubleKind::Wedged, message)];
        }
        let report = match self.group.report().await {
            Ok(report) => report,
            Err(error) => return vec![trouble(TroubleKind::Unusable, error.to_string())],
        };
        let mut found = Vec::new();
        if report.missing > 0 {
            let message = format!(
                "volume group {:?} misses {} of its disks: volumes on them cannot be read; bring the disks back or replace them",
                self.group.name, report.missing
            );
            found.push(trouble(TroubleKind::Degraded, message));
        }
        let stuck = |(name, row): &(&String, &Row)| {
            name.starts_with(REMOVED) && self.class.holds(row) && !self.group.hides(name)
        };
        if let Some((name, _)) = report.volumes.iter().find(stuck) {
            let message = format!(
                "the removed volume {name:?} could not be wiped and still takes room: see that its device can be written to, or set wipe: none"
            );
            found.push(trouble(TroubleKind::Leftover, message));
        }
        match (&self.class.kind, self.class.pool(&report)) {
            (_, Err(error)) => found.push(trouble(TroubleKind::Unusable, error.to_string())),
            (Kind::Thin { pool, guard, .. }, Ok(Some(row))) => {
                let used = format!(
                    "thin pool {pool:?} uses {:.1} % of its data and {:.1} % of its metadata",
                    row.data_percent, row.metadata_percent
                );
                match guard.pressure(row) {
                    Pressure::Fine => {}
                    Pressure::Warn => found.push(trouble(
                        TroubleKind::PoolFilling,
                        format!("{used}: extend it or remove volumes; from {} % on nothing new is made in it", guard.stop_percent),
                    )),
                    Pressure::Stop => found.push(trouble(
                        TroubleKind::PoolFull,
                        format!("{used}: nothing new is made in it; extend it or remove snapshots now, a full pool stops every volume in it"),
                    )),
                }
            }
            _ => {}
        }
        found
    }
}

/// How far a pool's halves should grow now.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a size; beyond 2^53 bytes the error is below one extent"
)]
fn extensions(guard: &Guard, report: &Report, pool: &Row) -> Vec<(PoolPart, u64)> {
    if guard.extend_percent <= 0.0 {
        return Vec::new();
    }
    let mut room = report.free / report.extent * report.extent;
    let mut wanted = Vec::new();
    let halves = [
        // Metadata first: a pool that runs out of it has to be repaired offline.
        (PoolPart::Metadata, pool.metadata_percent, pool.metadata_size, LARGEST_METADATA),
        (PoolPart::Data, pool.data_percent, pool.size, u64::MAX),
    ];
    for (part, percent, size, most) in halves {
        if percent < guard.warn_percent || size == 0 {
            continue;
        }
        let more = (size as f64 * guard.extend_percent / 100.0) as u64;
        let more = more.max(1).next_multiple_of(report.extent).min(room).min(most.saturating_sub(size));
        if more > 0 {
            room -= more;
            wanted.push((part, size + more));
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_grows_by_its_share_while_the_group_has_room() {
        const EXTENT: u64 = 4 << 20;
        let check = |extend, free, data, metadata, expected: &[(PoolPart, u64)]| {
            let guard = Guard { extend_percent: extend, ..Guard::default() };
            let report = Report { free, extent: EXTENT, ..Report::default() };
            let pool = Row {
                size: 100 * EXTENT,
                data_percent: data,
                metadata_percent: metadata,
                metadata_size: EXTENT,
                ..Row::default()
            };
            assert_eq!(extensions(&guard, &report, &pool), expected, "{extend} {free} {data} {metadata}");
        };
        check(0.0, 100 * EXTENT, 99.0, 99.0, &[]);
        check(20.0, 100 * EXTENT, 79.0, 79.0, &[]);
        check(20.0, 100 * EXTENT, 80.0, 10.0, &[(PoolPart::Data, 120 * EXTENT)]);
        check(20.0, 5 * EXTENT, 80.0, 10.0, &[(PoolPart::Data, 105 * EXTENT)]);
        check(20.0, EXTENT - 1, 80.0, 10.0, &[]);
        check(20.0, 100 * EXTENT, 10.0, 80.0, &[(PoolPart::Metadata, 2 * EXTENT)]);
        check(20.0, EXTENT, 90.0, 90.0, &[(PoolPart::Metadata, 2 * EXTENT)]);
    }
}
