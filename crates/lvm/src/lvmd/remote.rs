//! A remote lvmd as node storage: whoever uses [`Lvm`] need not know whether it is in the same process.

use super::convert::{class_in, error, incomplete, volume_in};
use super::pb::own::storage_client::StorageClient;
use super::pb::own::{self as pb, Nothing};
use crate::{
    AccessMode, Capacity, Change, Consistency, Create, DeviceClass, Error, Lvm, Snapped, Snapshot, ThinPool,
    Trouble, TroubleKind, Volume,
};
use async_trait::async_trait;
use hyper_util::rt::TokioIo;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tonic::transport::{Channel, Endpoint};

/// A list of ten thousands of volumes still fits.
const LARGEST_ANSWER: usize = 64 << 20;

/// How long to wait before listening for changes again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// The client of a `lifeboat lvmd`. Connects when first used, and again after the server came back.
pub struct Remote {
    client: StorageClient<Channel>,
    changes: watch::Receiver<Change>,
    listening: tokio::task::AbortHandle,
}

impl Remote {
    /// A client of the lvmd at `socket`. Needs a tokio runtime; the server need not be there yet.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "listens for changes as long as the client lives")]
    pub fn new(socket: &Path) -> Self {
        let socket = socket.to_owned();
        let connect = tower::service_fn(move |_: tonic::transport::Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        // The address is never looked up: the connector knows where to go.
        let channel = Endpoint::from_static("http://lvmd").connect_with_connector_lazy(connect);
        let client = StorageClient::new(channel).max_decoding_message_size(LARGEST_ANSWER);
        let (sender, changes) = watch::channel(0);
        let listening = tokio::spawn(listen(client.clone(), sender)).abort_handle();
        Self { client, changes, listening }
    }

    fn client(&self) -> StorageClient<Channel> {
        self.client.clone()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Tells of every change that the server tells of, and of one more after every silence, in which some may have been missed.
async fn listen(mut client: StorageClient<Channel>, changes: watch::Sender<Change>) {
    loop {
        if let Ok(stream) = client.watch(Nothing {}).await {
            let mut stream = stream.into_inner();
            while let Ok(Some(_)) = stream.message().await {
                changes.send_modify(|change| *change += 1);
            }
        }
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}

fn name(class: &str) -> pb::ClassName {
    pb::ClassName { class: class.to_owned() }
}

#[async_trait]
impl Lvm for Remote {
    async fn classes(&self) -> Result<Vec<DeviceClass>, Error> {
        let list = self.client().classes(Nothing {}).await.map_err(|status| error(&status))?;
        list.into_inner().classes.into_iter().map(class_in).collect()
    }

    async fn volumes(&self, class: &str) -> Result<Vec<Volume>, Error> {
        let list = self.client().volumes(name(class)).await.map_err(|status| error(&status))?;
        list.into_inner().volumes.into_iter().map(volume_in).collect()
    }

    async fn capacity(&self, class: &str) -> Result<Capacity, Error> {
        let told =
            self.client().get_capacity(name(class)).await.map_err(|status| error(&status))?.into_inner();
        let pool = told.pool.map(|pool| ThinPool {
            data_percent: pool.data_percent,
            metadata_percent: pool.metadata_percent,
            overprovision: pool.overprovision,
            size: pool.size,
        });
        Ok(Capacity { size: told.size, free: told.free, pool })
    }

    async fn create(&self, wanted: Create) -> Result<Volume, Error> {
        let request = pb::CreateRequest {
            name: wanted.name,
            class: wanted.class,
            size: wanted.size,
            tags: wanted.tags.into_iter().collect(),
            options: wanted.options,
        };
        let made = self.client().create(request).await.map_err(|status| error(&status))?;
        volume_in(made.into_inner())
    }

    async fn snapshot(&self, wanted: Snapshot) -> Result<Snapped, Error> {
        let request = pb::SnapshotRequest {
            name: wanted.name,
            class: wanted.class,
            source: wanted.source,
            read_only: wanted.mode == AccessMode::ReadOnly,
            size: wanted.size,
            tags: wanted.tags.into_iter().collect(),
            short_lived: wanted.short_lived,
        };
        let taken = self.client().snapshot(request).await.map_err(|status| error(&status))?.into_inner();
        let volume = volume_in(taken.volume.ok_or_else(|| incomplete("a snapshot without its volume"))?)?;
        let consistency = if taken.crash_consistent { Consistency::Crash } else { Consistency::Fuzzy };
        Ok(Snapped { volume, consistency })
    }

    async fn resize(&self, class: &str, name: &str, size: u64) -> Result<u64, Error> {
        let request = pb::ResizeRequest { class: class.to_owned(), name: name.to_owned(), size };
        Ok(self.client().resize(request).await.map_err(|status| error(&status))?.into_inner().size)
    }

    async fn rename(&self, class: &str, from: &str, to: &str) -> Result<(), Error> {
        let request = pb::RenameRequest { class: class.to_owned(), from: from.to_owned(), to: to.to_owned() };
        self.client().rename(request).await.map(drop).map_err(|status| error(&status))
    }

    async fn exchange(&self, class: &str, one: &str, other: &str) -> Result<(), Error> {
        let (one, other) = (one.to_owned(), other.to_owned());
        let request = pb::ExchangeRequest { class: class.to_owned(), one, other };
        self.client().exchange(request).await.map(drop).map_err(|status| match status.code() {
            // One that is older than the call cannot say so in our words.
            tonic::Code::Unimplemented => Error::Unsupported(status.message().to_owned()),
            _ => error(&status),
        })
    }

    async fn retag(
        &self,
        class: &str,
        name: &str,
        add: &BTreeSet<String>,
        remove: &BTreeSet<String>,
    ) -> Result<(), Error> {
        let request = pb::RetagRequest {
            class: class.to_owned(),
            name: name.to_owned(),
            add: add.iter().cloned().collect(),
            remove: remove.iter().cloned().collect(),
        };
        self.client().retag(request).await.map(drop).map_err(|status| error(&status))
    }

    async fn remove(&self, class: &str, name: &str) -> Result<(), Error> {
        let request = pb::RemoveRequest { class: class.to_owned(), name: name.to_owned() };
        self.client().remove(request).await.map(drop).map_err(|status| error(&status))
    }

    async fn health(&self) -> Vec<Trouble> {
        let told = match self.client().health(Nothing {}).await {
            Ok(told) => told.into_inner().troubles,
            Err(status) => {
                let message = error(&status).to_string();
                return vec![Trouble { class: String::new(), kind: TroubleKind::Unusable, message }];
            }
        };
        let read = |trouble: pb::Trouble| Trouble {
            class: trouble.class,
            kind: TroubleKind::named(&trouble.kind),
            message: trouble.message,
        };
        told.into_iter().map(read).collect()
    }

    fn changes(&self) -> watch::Receiver<Change> {
        self.changes.clone()
    }
}
