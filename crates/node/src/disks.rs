//! What is on the disks of this node, as last listed: the cache that decisions about volumes read, as they read objects from the API
//! server's cache.

use lifeboat_engine::{Class, EffectError};
use lifeboat_lvm::{Error, Lvm, Volume};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A listing, and when it was asked for among all others.
type Listing = (u64, Result<BTreeMap<String, Volume>, Error>);

/// The volumes of this node, and who changes them.
#[derive(Clone)]
pub struct Disks {
    lvm: Arc<dyn Lvm>,
    classes: Arc<RwLock<BTreeMap<String, Listing>>>,
    asked: Arc<AtomicU64>,
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
        Self { lvm, classes: Arc::default(), asked: Arc::default() }
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
            Some((_, Err(error))) => Look::Failed(error.clone()),
            Some((_, Ok(volumes))) => {
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
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let listed = self.lvm.volumes(class).await;
        let listing =
            listed.map(|volumes| volumes.into_iter().map(|volume| (volume.name.clone(), volume)).collect());
        let answer = listing.as_ref().map(drop).map_err(Clone::clone);
        let mut classes = self.classes.write();
        // An answer that was overtaken by a later one tells of a past in which what was made since is missing.
        if classes.get(class).is_none_or(|(known, _)| *known < asked) {
            classes.insert(class.to_owned(), (asked, listing));
        }
        answer
    }

    /// The classes, other than this one, that have any of these names now.
    ///
    /// # Errors
    /// Where a class cannot be listed: what it has is not known then.
    pub async fn elsewhere(&self, class: &str, names: &[&str]) -> Result<Vec<(String, String)>, Error> {
        let mut found = Vec::new();
        for other in
            self.lvm.classes().await?.into_iter().map(|other| other.name).filter(|name| name != class)
        {
            let volumes = match self.lvm.volumes(&other).await {
                Err(Error::NoClass(_)) => continue,
                volumes => volumes?,
            };
            let named = volumes.into_iter().filter(|volume| names.contains(&&*volume.name));
            found.extend(named.map(|volume| (other.clone(), volume.name)));
        }
        Ok(found)
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

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use lifeboat_lvm::{
        Access, AccessMode, Capacity, Change, ClassKind, Create, DeviceClass, Directories, DirectoryClass,
        Snapped, Snapshot,
    };
    use parking_lot::Mutex;
    use std::collections::{BTreeSet, VecDeque};
    use tokio::sync::{oneshot, watch};

    type Answer = (oneshot::Receiver<()>, Vec<Volume>);

    /// Each listing is answered when its word is given.
    struct Late(Mutex<VecDeque<Answer>>);

    fn never<T>() -> Result<T, Error> {
        Err(Error::Unsupported("only lists".to_owned()))
    }

    #[async_trait]
    impl Lvm for Late {
        async fn classes(&self) -> Result<Vec<DeviceClass>, Error> {
            Ok(vec![DeviceClass { name: "c".to_owned(), default: true, kind: ClassKind::Thick }])
        }
        async fn volumes(&self, _: &str) -> Result<Vec<Volume>, Error> {
            let (go, found) = self.0.lock().pop_front().expect("asked as often as told");
            let _ = go.await;
            Ok(found)
        }
        async fn capacity(&self, _: &str) -> Result<Capacity, Error> {
            never()
        }
        async fn create(&self, _: Create) -> Result<Volume, Error> {
            never()
        }
        async fn snapshot(&self, _: Snapshot) -> Result<Snapped, Error> {
            never()
        }
        async fn resize(&self, _: &str, _: &str, _: u64) -> Result<u64, Error> {
            never()
        }
        async fn rename(&self, _: &str, _: &str, _: &str) -> Result<(), Error> {
            never()
        }
        async fn retag(
            &self,
            _: &str,
            _: &str,
            _: &BTreeSet<String>,
            _: &BTreeSet<String>,
        ) -> Result<(), Error> {
            never()
        }
        async fn remove(&self, _: &str, _: &str) -> Result<(), Error> {
            never()
        }
        fn changes(&self) -> watch::Receiver<Change> {
            watch::channel(0).1
        }
    }

    fn volume(name: &str) -> Volume {
        Volume {
            name: name.to_owned(),
            size: 1,
            tags: BTreeSet::new(),
            access: Access::Device("/dev/x".into()),
            origin: None,
            mode: AccessMode::ReadWrite,
            attr: String::new(),
            device: (0, 0),
        }
    }

    #[tokio::test]
    async fn a_listing_that_was_overtaken_changes_nothing() {
        let ((first, one), (second, two)) = (oneshot::channel(), oneshot::channel());
        let answers = [(one, Vec::new()), (two, vec![volume("new")])];
        let disks = Disks::new(Arc::new(Late(Mutex::new(answers.into()))));
        let words = async {
            second.send(()).expect("waits");
            tokio::task::yield_now().await;
            first.send(()).expect("waits");
        };
        let (earlier, later, ()) = tokio::join!(disks.list("c"), disks.list("c"), words);
        assert_eq!((earlier, later), (Ok(()), Ok(())));
        let Look::Listed(found) = disks.look("c", |_| true) else { panic!("listed") };
        assert_eq!(found.keys().collect::<Vec<_>>(), ["new"]);
    }

    #[tokio::test]
    async fn a_volume_is_found_in_another_class_than_it_asks_for() {
        let folder = tempfile::tempdir().expect("folder");
        let class = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(&path).expect("made");
            DirectoryClass::new(name, path)
        };
        let disks = Disks::new(Arc::new(Directories::new(vec![class("a"), class("b")]).expect("opens")));
        let wanted = |name: &str, class: &str| Create {
            name: name.to_owned(),
            class: class.to_owned(),
            size: 1 << 20,
            tags: BTreeSet::new(),
            options: String::new(),
        };
        disks.lvm().create(wanted("u", "b")).await.expect("made");
        disks.lvm().create(wanted("v", "a")).await.expect("made");
        let found = |class: &'static str, name: &'static str| {
            let disks = disks.clone();
            async move { disks.elsewhere(class, &[name]).await.expect("listed") }
        };
        assert_eq!(found("a", "u").await, [("b".to_owned(), "u".to_owned())]);
        assert_eq!(found("b", "u").await, [], "its own class is looked at by others");
        assert_eq!(found("a", "w").await, []);
    }
}
