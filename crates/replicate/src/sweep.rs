//! Clears away what senders, receivers and volumes that are gone have left: snapshots, what stands beside a volume, mounts, and what was
//! remembered.

use crate::destination::world::BACK_PREFIX;
use crate::ground::Ground;
use crate::jobs::Jobs;
use crate::kinds::{Kinds, claim_of_receiver};
use crate::memory::Memory;
use crate::place::listed;
use crate::run::LOOK_EVERY;
use crate::source::failure::Failure;
use crate::source::world::{CUT_PREFIX, cut_name};
use crate::words::Words as _;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_engine::Listed;
use lifeboat_node::Look;
use lifeboat_node::provision::words::csi_of;
use lifeboat_stream::Sent;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::Notify;

/// How the mounts of receivers begin.
const MOUNTS: [&str; 2] = ["receive-", BACK_PREFIX];

/// The volume that a receiver writes to.
fn volume_of(kinds: &Kinds, receiver: &ReplicationDestination) -> Option<String> {
    let volume = kinds.volume_of.first(&claim_of_receiver(receiver))?;
    csi_of(&volume).map(|(_, handle)| handle.to_owned())
}

/// Clears away what senders and volumes that are gone have left: snapshots, mounts, and what was remembered.
pub(crate) struct Sweeper {
    pub(crate) ground: Ground,
    pub(crate) jobs: Jobs<Sent, Failure>,
    pub(crate) memory: Memory,
    pub(crate) listed: Listed,
    pub(crate) gone: Arc<Notify>,
}

impl Sweeper {
    /// Looks once everything was listed, and again whenever something has gone. Runs for ever.
    pub(crate) async fn run(mut self) {
        // Before the first listing everything looks left behind.
        self.listed.wait().await;
        loop {
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "what a former sender left cannot be cleared away yet");
                tokio::time::sleep(LOOK_EVERY).await;
                continue;
            }
            self.gone.notified().await;
        }
    }

    async fn sweep(&self) -> Result<(), lifeboat_lvm::Error> {
        let Ground { kinds, disks, mounts, .. } = &self.ground;
        let alive: BTreeSet<String> = kinds.sources.all().iter().map(|one| cut_name(one.uid())).collect();
        let received: BTreeSet<String> =
            kinds.destinations.all().iter().filter_map(|one| volume_of(kinds, one)).collect();
        let volumes: BTreeSet<String> = kinds.logical.all().iter().map(|one| one.uid().to_owned()).collect();
        for class in disks.lvm().classes().await? {
            disks.list(&class.name).await?;
            let whole = |uid: &str| listed(disks, &class.name, uid).is_some() || !volumes.contains(uid);
            // What stands beside a volume goes only where that volume is there, or nobody wants it any more.
            let beside = |uid: &str| !received.contains(uid) && whole(uid);
            let stray = |name: &str| match name.strip_prefix(BACK_PREFIX) {
                Some(uid) => beside(uid),
                None => name.starts_with(CUT_PREFIX) && !alive.contains(name),
            };
            let Look::Listed(left) = disks.look(&class.name, |volume| stray(&volume.name)) else { continue };
            for name in left.into_keys() {
                self.jobs.end(name.strip_prefix(CUT_PREFIX).unwrap_or_default()).await;
                mounts.unmount(&name).await?;
                match disks.lvm().remove(&class.name, &name).await {
                    Ok(()) | Err(lifeboat_lvm::Error::NoVolume { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        for uid in self.memory.all().into_iter().filter(|uid| !volumes.contains(uid)) {
            self.memory.forget(&uid);
        }
        for name in mounts.strays(|name| MOUNTS.iter().all(|prefix| !name.starts_with(prefix))) {
            let uid = MOUNTS.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or_default();
            if !received.contains(uid) {
                mounts.unmount(&name).await?;
            }
        }
        Ok(())
    }
}
