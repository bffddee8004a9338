//! One store, seen from one group: bounded reads, deadlines, and errors that name the store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use lifeboat_store::{Entry, Objects};
use tokio::time::timeout;

use super::Settings;
use crate::codec::LONGEST_PACKED;
use crate::decide::shelf::{Ledger, Shelf};
use crate::key::{Spot, ledger};
use crate::manifest::{Hold, HoldKind, Latest};
use crate::{ClusterId, Digest, Epoch, Error, Fault, FleetId, Generation, Group, Listed, Manifest};

pub(crate) struct Reach<'a> {
    pub(crate) name: &'a str,
    pub(crate) group: &'a Group,
    pub(crate) settings: &'a Settings,
    /// Which fleet asks.
    pub(crate) fleet: Option<&'a FleetId>,
    objects: &'a Objects,
    /// Missed a deadline: it gets no second chance in this pass, so it costs one deadline and not one for each object.
    stalled: AtomicBool,
}

impl<'a> Reach<'a> {
    pub(crate) fn new(
        name: &'a str,
        objects: &'a Objects,
        group: &'a Group,
        settings: &'a Settings,
        fleet: Option<&'a FleetId>,
    ) -> Self {
        Self { name, group, settings, fleet, objects, stalled: AtomicBool::new(false) }
    }

    /// A full key.
    pub(crate) fn key(&self, spot: &Spot) -> String {
        format!("{}{spot}", self.group.prefix())
    }

    pub(crate) fn damaged(&self, spot: &Spot, fault: Fault) -> Error {
        Error::Damaged { store: self.name.to_owned(), key: self.key(spot), fault }
    }

    fn late(&self, what: &str) -> Error {
        Error::OutOfTime { store: self.name.to_owned(), what: what.to_owned() }
    }

    async fn within<T>(
        &self,
        limit: Duration,
        what: &str,
        call: impl Future<Output = Result<T, lifeboat_store::Error>>,
    ) -> Result<T, Error> {
        if self.stalled.load(Ordering::Relaxed) {
            return Err(self.late(what));
        }
        match timeout(limit, call).await {
            Ok(answer) => answer.map_err(|error| Error::Store { store: self.name.to_owned(), error }),
            Err(_) => {
                self.stalled.store(true, Ordering::Relaxed);
                Err(self.late(what))
            }
        }
    }

    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<Entry>, Error> {
        self.within(self.settings.list, &format!("listing {prefix}"), self.objects.list(prefix)).await
    }

    /// Everything of the group that is here.
    pub(crate) async fn shelf(&self) -> Result<Shelf, Error> {
        let entries = self.list(&self.group.prefix()).await?;
        let mut shelf = Shelf::sort(self.group, sizes(&entries));
        // A list that left out the newest manifest must not make an older one the newest.
        if let Some(latest) = self.latest().await? {
            let named = (latest.epoch, latest.generation);
            // The hint may outlive what it names, after a deletion.
            if !shelf.ledger.manifests.contains(&named)
                && self.size(&Spot::Manifest(named.0, named.1)).await?.is_some()
            {
                shelf.ledger.manifests.insert(named);
            }
        }
        Ok(shelf)
    }

    async fn latest(&self) -> Result<Option<Latest>, Error> {
        match self.read(&Spot::Latest).await {
            Ok(bytes) => Ok(Latest::decode(&bytes, self.group)),
            Err(Error::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The part that carries epochs, looked at again.
    pub(crate) async fn ledger(&self) -> Result<Ledger, Error> {
        let entries = self.list(&ledger(self.group)).await?;
        Ok(Shelf::sort(self.group, sizes(&entries)).ledger)
    }

    async fn size(&self, spot: &Spot) -> Result<Option<u64>, Error> {
        let key = self.key(spot);
        self.within(self.settings.call, &format!("looking at {key}"), self.objects.size(&key)).await
    }

    /// Reads an object whose length is not known. Never more than an honest one has.
    pub(crate) async fn read(&self, spot: &Spot) -> Result<Bytes, Error> {
        let key = self.key(spot);
        let call = self.objects.get_within(&key, LONGEST_PACKED);
        match self.within(self.settings.call, &format!("reading {key}"), call).await {
            Err(Error::Store { error: lifeboat_store::Error::NotFound { .. }, .. }) => {
                Err(self.damaged(spot, Fault::Missing))
            }
            Err(Error::Store { error: lifeboat_store::Error::TooLong { .. }, .. }) => {
                Err(self.damaged(spot, Fault::TooLong))
            }
            read => read,
        }
    }

    /// Reads an object of this length.
    pub(crate) async fn read_sized(&self, spot: &Spot, size: u64) -> Result<Bytes, Error> {
        let length = usize::try_from(size).ok().filter(|_| size <= LONGEST_PACKED);
        let length = length.ok_or_else(|| self.damaged(spot, Fault::TooLong))?;
        let key = self.key(spot);
        let call = self.objects.get_range(&key, 0, length);
        match self.within(self.settings.call, &format!("reading {key}"), call).await {
            Err(Error::Store { error, .. }) if error.is_not_found() => {
                Err(self.damaged(spot, Fault::Missing))
            }
            Err(Error::Store { error: lifeboat_store::Error::TooShort { .. }, .. }) => {
                Err(self.damaged(spot, Fault::Checksum))
            }
            read => read,
        }
    }

    /// Reads a content and checks it.
    pub(crate) async fn content(&self, spot: &Spot, listed: Listed) -> Result<Bytes, Error> {
        let bytes = self.read_sized(spot, listed.size).await?;
        if Digest::of(&bytes) == listed.sha256 {
            return Ok(bytes);
        }
        Err(self.damaged(spot, Fault::Checksum))
    }

    pub(crate) async fn manifest(&self, epoch: Epoch, generation: Generation) -> Result<Manifest, Error> {
        let spot = Spot::Manifest(epoch, generation);
        let bytes = self.read(&spot).await?;
        Manifest::decode(&bytes, self.group, epoch, generation).map_err(|fault| self.damaged(&spot, fault))
    }

    /// Who holds an epoch, by what lies there, and whether it is held under a condition.
    pub(crate) async fn holder(&self, witness: &Spot) -> Result<(ClusterId, bool), Error> {
        let (kind, epoch) = match witness {
            Spot::Manifest(epoch, generation) => {
                return self.manifest(*epoch, *generation).await.map(|manifest| (manifest.writer, true));
            }
            Spot::Tombstone(epoch) => (HoldKind::Tombstone, *epoch),
            Spot::Claim(epoch) => (HoldKind::Claim, *epoch),
            other => return Err(self.damaged(other, Fault::Missing)),
        };
        let bytes = self.read(witness).await?;
        let hold =
            Hold::decode(kind, &bytes, self.group, epoch).map_err(|fault| self.damaged(witness, fault))?;
        Ok((hold.writer, hold.fenced))
    }

    pub(crate) async fn put(&self, spot: &Spot, content: Bytes) -> Result<(), Error> {
        let key = self.key(spot);
        let call = self.objects.put(&key, content);
        self.within(self.settings.call, &format!("writing {key}"), call).await
    }

    pub(crate) async fn put_if_absent(&self, spot: &Spot, content: Bytes) -> Result<(), Error> {
        let key = self.key(spot);
        let call = self.objects.put_if_absent(&key, content);
        self.within(self.settings.call, &format!("writing {key}"), call).await
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), Error> {
        self.within(self.settings.call, &format!("removing {key}"), self.objects.delete(key)).await
    }

    pub(crate) async fn delete_many(&self, keys: &[String]) -> Result<(), Error> {
        let what = format!("removing {} objects", keys.len());
        self.within(self.settings.list, &what, self.objects.delete_many(keys)).await
    }

    /// Does all of it, several at once; the first error ends it.
    pub(crate) async fn each(&self, work: Vec<BoxFuture<'_, Result<(), Error>>>) -> Result<(), Error> {
        stream::iter(work).buffer_unordered(self.settings.at_once.max(1)).try_collect().await
    }

    /// Does all of it, several at once, and gives every answer, in any order.
    pub(crate) async fn together<T>(&self, work: Vec<BoxFuture<'_, T>>) -> Vec<T> {
        stream::iter(work).buffer_unordered(self.settings.at_once.max(1)).collect().await
    }
}

pub(crate) fn sizes(entries: &[Entry]) -> impl Iterator<Item = (&str, u64)> {
    entries.iter().map(|entry| (entry.key.as_str(), entry.size))
}
