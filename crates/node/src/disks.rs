//! What is on the disks of this node, as last listed: the cache that decisions about volumes read, as they read objects from the API
//! server's cache.

use lifeboat_engine::{Class, EffectError};
use lifeboat_lvm::{Error, Lvm, Volume};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

type Listing = Result<BTreeMap<String, Volume>, Error>;

/// The volumes of this node, and who changes them.
#[derive(Clone)]
pub struct Disks {
    lvm: Arc<dyn Lvm>,
    classes: Arc<RwLock<BTreeMap<String, Listing>>>,
}

/// What is known of one class.
#[derive(Debug, Clone, PartialEq)]
pub enum Look {
    /// Nobody has looked yet.
    Unlisted,
    /// It could not be listed.
    Failed(Error),
    /// These volumes are there.
    Listed(BTreeMap<String, Volume>),
}

impl Disks {
    /// Knows nothing yet.
    #[must_use]
    pub fn new(lvm: Arc<dyn Lvm>) -> Self {
        Self { lvm, classes: Arc::default() }
    }

    /// Who changes them.
    #[must_use]
    pub fn lvm(&self) -> &dyn Lvm {
        &*self.lvm
    }

    /// The same, for work that outlives its caller.
    #[must_use]
    pub fn shared(&self) -> Arc<dyn Lvm> {
        self.lvm.clone()
    }

    /// What is known of some volumes of a class.
    #[must_use]
    pub fn look(&self, class: &str, wanted: impl Fn(&Volume) -> bool) -> Look {
        match self.classes.read().get(class) {
            None => Look::Unlisted,
            Some(Err(error)) => Look::Failed(error.clone()),
            Some(Ok(volumes)) => {
                let wanted = volumes.iter().filter(|(_, volume)| wanted(volume));
                Look::Listed(wanted.map(|(name, volume)| (name.clone(), volume.clone())).collect())
            }
        }
    }

    /// Lists a class.
    ///
    /// # Errors
    ///
    /// Whatever the back end says; it is remembered too, until the next listing.
    pub async fn list(&self, class: &str) -> Result<(), Error> {
        let listed = self.lvm.volumes(class).await;
        let listing =
            listed.map(|volumes| volumes.into_iter().map(|volume| (volume.name.clone(), volume)).collect());
        let answer = listing.as_ref().map(drop).map_err(Clone::clone);
        self.classes.write().insert(class.to_owned(), listing);
        answer
    }

    /// Lists a class; what a missing one means is for the decision to say.
    ///
    /// # Errors
    /// A passing one where the class cannot be listed now.
    pub async fn listed(&self, class: &str) -> Result<(), EffectError> {
        match self.list(class).await {
            Ok(()) | Err(Error::NoClass(_)) => Ok(()),
            Err(error) => {
                Err(EffectError::caused(Class::Transient, format!("listing device class {class:?}"), error))
            }
        }
    }

    /// A change of the disks: what came of it is listed at once, whether it worked or not.
    ///
    /// # Errors
    /// A stale one where somebody was quicker, else a passing one.
    pub async fn change<T>(
        &self,
        class: &str,
        tried: &str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, EffectError> {
        let result = work.await;
        let listed = self.list(class).await;
        match result {
            Ok(done) => {
                listed.map(|()| done).map_err(|error| EffectError::caused(Class::Transient, tried, error))
            }
            // Somebody was quicker, or an earlier try had worked after all: the listing shows it.
            Err(error @ (Error::Exists { .. } | Error::NoVolume { .. })) if listed.is_ok() => {
                Err(EffectError::caused(Class::Stale, tried, error))
            }
            Err(error) => Err(EffectError::caused(Class::Transient, tried, error)),
        }
    }

    /// Lists every class that anybody asked for again whenever something has changed, and tells which names came, went or look
    /// different. Runs for ever.
    pub async fn follow(&self, mut tell: impl FnMut(&str)) {
        let mut changes = self.lvm.changes();
        while changes.changed().await.is_ok() {
            let classes: Vec<String> = self.classes.read().keys().cloned().collect();
            for class in classes {
                let before = self.look(&class, |_| true);
                // A failure is remembered by the listing itself, and shown by whoever needs the class.
                let _ = self.list(&class).await;
                for name in differing(&before, &self.look(&class, |_| true)) {
                    tell(&name);
                }
            }
        }
        std::future::pending::<()>().await;
    }
}

fn differing(before: &Look, after: &Look) -> Vec<String> {
    match (before, after) {
        (Look::Listed(before), Look::Listed(after)) => {
            let gone = before.keys().filter(|name| !after.contains_key(*name));
            let new =
                after.iter().filter(|(name, volume)| before.get(*name) != Some(volume)).map(|(name, _)| name);
            gone.chain(new).cloned().collect()
        }
        (Look::Listed(volumes), _) | (_, Look::Listed(volumes)) => volumes.keys().cloned().collect(),
        _ => Vec::new(),
    }
}
