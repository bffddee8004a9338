//! Brings a volume back to an image of it: a copy from one to the other inside of this process, of what differs and nothing else.

use crate::source::failure::Failure;
use jiff::Timestamp;
use lifeboat_stream::{
    Destination, Job, Key, Limits, Place, Policy, Receiver, Sending, Source, Timing, send,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tokio::sync::watch;

/// One way back.
pub(super) struct Back {
    pub image: Source,
    pub volume: Place,
    /// The key of the pair: nobody else can get between.
    pub key: Key,
    /// A folder for what must be remembered meanwhile; its content is thrown away.
    pub folder: PathBuf,
    pub timing: Timing,
    pub now: Timestamp,
}

const ID: &str = "roll-back";

impl Back {
    pub async fn run(self) -> Result<(), Failure> {
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
