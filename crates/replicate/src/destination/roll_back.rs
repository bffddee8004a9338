//! Brings a volume back to an image of it in place, where [`super::swap`] cannot: a copy from one to the other inside of this process, of what differs and nothing else.

use super::effects::Receivers;
use super::world::{back_name, mount_name};
use crate::ground::stale;
use crate::place::{BACK_TAG, Place as Found, back_of, on_disk};
use crate::source::failure::Failure;
use crate::words::Words as _;
use jiff::Timestamp;
use lifeboat_api::annotations;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_engine::{Class, EffectError, ObjectKey};
use lifeboat_lvm::Access;
use lifeboat_node::Purpose;
use lifeboat_stream::{
    Destination, Job, Key, Limits, Place, Policy, Receiver, Sending, Source, Timing, Trust, send,
};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tokio::sync::watch;

/// One way back.
struct Back {
    image: Source,
    volume: Place,
    /// The key of the pair: nobody else can get between.
    key: Key,
    /// A folder for what must be remembered meanwhile; its content is thrown away.
    folder: PathBuf,
    timing: Timing,
    now: Timestamp,
}

const ID: &str = "roll-back";

impl Back {
    async fn run(self) -> Result<(), Failure> {
        // Whatever an earlier try left says nothing: both sides are compared anew.
        let _ = std::fs::remove_dir_all(&self.folder);
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (receiver, destinations, _told) = Receiver::bind(loopback, self.timing).await?;
        let address = receiver.address()?;
        destinations.register(Destination {
            id: ID.to_owned(),
            key: self.key.clone(),
            epoch: 0,
            place: self.volume,
            base: Some("before".to_owned()),
            incarnation: "volume".to_owned(),
            state: self.folder.join("journal"),
            policy: Policy { devices: true, ..Policy::default() },
            checkpoint: lifeboat_stream::CHECKPOINT,
            terms: lifeboat_stream::Terms::default(),
        })?;
        let mut job = Job::new(ID, 0, "image", self.now, self.folder.join("index"));
        // An image that is empty was empty when it was made.
        job.may_be_empty = true;
        job.full = false;
        job.compress = false;
        job.limits = Limits { timing: self.timing, ..Limits::default() };
        let sending = send(self.image, address, &self.key, job, watch::Sender::new(Sending::default()));
        let sent = tokio::select! {
            sent = sending => sent,
            () = receiver.run() => Err(lifeboat_stream::Error::Stopped),
        };
        destinations.remove(ID).await;
        let _ = std::fs::remove_dir_all(&self.folder);
        Ok(sent.map(drop)?)
    }
}

impl Receivers {
    /// Where an image is on the disks.
    pub(super) fn image(&self, space: &str, name: &str, block: bool) -> Option<Found> {
        let kinds = &self.ground.kinds;
        let image = kinds.snapshots.get(&ObjectKey::new(space, name))?;
        let content = image.status.as_ref()?.bound_volume_snapshot_content_name.clone()?;
        let content = kinds.contents.get(&ObjectKey::cluster_wide(content))?;
        let handle = content.status.as_ref()?.snapshot_handle.clone()?;
        let logical = kinds.by_handle.first(&handle)?;
        if logical.spec.node_name != self.ground.config.node {
            return Some(Found::Elsewhere(logical.spec.node_name.clone()));
        }
        Some(on_disk(&self.ground.disks, &logical, block))
    }

    pub(super) async fn start_back(&self, receiver: &ReplicationDestination) -> Result<(), EffectError> {
        let here = self.here(receiver)?;
        let name = receiver.note(annotations::ROLL_BACK_TO).unwrap_or_default().to_owned();
        let Some(Found::Here(image)) = self.image(receiver.space(), &name, here.block) else {
            return Err(stale("the image is gone"));
        };
        let ground = &self.ground;
        let (path, block) = ground.path(&here, &mount_name(&here.uid))?;
        let (from, _) = ground.path(&image, &back_name(&here.uid))?;
        let (image, volume) = match block {
            true => (Source::Device { path: from, changed: None }, Place::Device(path)),
            false => (Source::Tree { path: from, trust: Trust::Stamps }, Place::Tree(path)),
        };
        let secret =
            receiver.spec.rsync_tls.as_ref().and_then(|tls| tls.key_secret.clone()).unwrap_or_default();
        let key = crate::secret::key(&ground.client, receiver.space(), &secret).await;
        let key = key.map_err(|failure| EffectError::new(Class::Transient, failure.message))?;
        if let Some(earlier) = back_of(&here.volume) {
            let (none, tag) = (BTreeSet::new(), BTreeSet::from([format!("{BACK_TAG}={earlier}")]));
            let work = ground.disks.lvm().retag(&here.class, &here.uid, &none, &tag);
            ground.disks.change(&here.class, "noting that the volume changes", work).await?;
        }
        // From here on the volume is neither the one nor the other.
        self.distrust(&here.uid, receiver)?;
        let folder = self.memory.folder(&here.uid).join("back");
        let back = Back { image, volume, key, folder, timing: ground.config.timing, now: ground.clock.now() };
        self.jobs.start(receiver.uid(), name, Box::pin(back.run()));
        Ok(())
    }

    pub(super) async fn mount_back(&self, receiver: &ReplicationDestination) -> Result<(), EffectError> {
        let here = self.here(receiver)?;
        let name = receiver.note(annotations::ROLL_BACK_TO).unwrap_or_default();
        let Some(Found::Here(image)) = self.image(receiver.space(), name, here.block) else {
            return Err(stale("the image is gone"));
        };
        let Access::Device(device) = &image.volume.access else { return Ok(()) };
        let name = back_name(&here.uid);
        let work = self.ground.mounts.mount(&name, device, Purpose::Backup);
        self.ground.disks.change(&image.class, "mounting the image", work).await
    }
}
