//! What is on the disks of this node, as last listed: the cache that decisions about volumes read, as they read objects from the API
//! server's cache.

use lifeboat_engine::{Class, EffectError};
use lifeboat_lvm::{DeviceClass, Error, Lvm, Volume};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is known of the volumes of a class.
struct Listing {
    /// When it was asked for among all others.
    asked: u64,
    /// What the class was carved from just before: a class that is pointed at other storage meanwhile has none of the earlier volumes.
    storage: Option<String>,
    found: Result<BTreeMap<String, Volume>, Error>,
}

/// The classes of this node, and when they were asked for.
type Classes = (u64, Vec<DeviceClass>);

/// The volumes of this node, and who changes them.
#[derive(Clone)]
pub struct Disks {
    lvm: Arc<dyn Lvm>,
    classes: Arc<RwLock<BTreeMap<String, Listing>>>,
    /// `None` before the first answer.
    served: Arc<RwLock<Option<Classes>>>,
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
        Self { lvm, classes: Arc::default(), served: Arc::default(), asked: Arc::default() }
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
            Some(Listing { found: Err(error), .. }) => Look::Failed(error.clone()),
            Some(Listing { found: Ok(volumes), .. }) => {
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
        // Where this fails, the listing says so.
        let storage = self.ask_for_classes().await.ok().and_then(|classes| storage_in(&classes, class));
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let listed = self.lvm.volumes(class).await;
        let found =
            listed.map(|volumes| volumes.into_iter().map(|volume| (volume.name.clone(), volume)).collect());
        let listing = Listing { asked, storage, found };
        let answer = listing.found.as_ref().map(drop).map_err(Clone::clone);
        let mut classes = self.classes.write();
        // An answer that was overtaken by a later one tells of a past in which what was made since is missing.
        if classes.get(class).is_none_or(|known| known.asked < asked) {
            classes.insert(class.to_owned(), listing);
        }
        answer
    }

    async fn ask_for_classes(&self) -> Result<Vec<DeviceClass>, Error> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let classes = self.lvm.classes().await?;
        let mut served = self.served.write();
        if served.as_ref().is_none_or(|(known, _)| *known < asked) {
            *served = Some((asked, classes.clone()));
        }
        Ok(classes)
    }

    /// What the volumes that were listed of a class are carved from, where that is known.
    #[must_use]
    pub fn storage_of(&self, class: &str) -> Option<String> {
        self.classes.read().get(class)?.storage.clone()
    }

    /// Whether a class names this storage; `None` where that cannot be told.
    #[must_use]
    pub fn serves(&self, storage: &str) -> Option<bool> {
        let served = self.served.read();
        let (_, classes) = served.as_ref()?;
        let is_told = classes.iter().all(|class| !class.storage.is_empty());
        let is_named = classes.iter().any(|class| class.storage == storage);
        (is_told || is_named).then_some(is_named)
    }

    /// The classes, other than this one, that have any of these names now.
    ///
    /// # Errors
    /// Where a class cannot be listed: what it has is not known then.
    pub async fn elsewhere(&self, class: &str, names: &[&str]) -> Result<Vec<(String, String)>, Error> {
        let mut found = Vec::new();
        let classes = self.ask_for_classes().await?;
        for other in classes.into_iter().map(|other| other.name).filter(|name| name != class) {
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
    /// different; and whenever other classes are served than before. Runs for ever.
    pub async fn follow(&self, mut tell: impl FnMut(&str), mut classes_changed: impl FnMut()) {
        let mut changes = self.lvm.changes();
        let served = || self.served.read().as_ref().map(|(_, classes)| classes.clone());
        let mut known = served();
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
            let before = std::mem::replace(&mut known, served());
            if before.is_some() && before != known {
                classes_changed();
            }
        }
        std::future::pending::<()>().await;
    }
}

/// What the volumes of a class are carved from, where that is told; empty name for the default class.
fn storage_in(classes: &[DeviceClass], class: &str) -> Option<String> {
    let named = |known: &&DeviceClass| if class.is_empty() { known.default } else { known.name == class };
    classes.iter().find(named).map(|found| found.storage.clone()).filter(|storage| !storage.is_empty())
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
    use std::cell::Cell;
    use std::collections::{BTreeSet, VecDeque};
    use tokio::sync::{oneshot, watch};

    type Answer = (oneshot::Receiver<()>, Vec<Volume>);

    /// Each listing is answered when its word is given.
    struct Late {
        answers: Mutex<VecDeque<Answer>>,
        storage: Mutex<&'static str>,
        changes: watch::Sender<Change>,
    }

    impl Late {
        fn new(answers: impl Into<VecDeque<Answer>>) -> Arc<Self> {
            let (answers, storage) = (Mutex::new(answers.into()), Mutex::new("g"));
            Arc::new(Self { answers, storage, changes: watch::Sender::new(0) })
        }
    }

    fn at_once(found: Vec<Volume>) -> Answer {
        let (word, answer) = oneshot::channel();
        word.send(()).expect("waits");
        (answer, found)
    }

    fn never<T>() -> Result<T, Error> {
        Err(Error::Unsupported("only lists".to_owned()))
    }

    #[async_trait]
    impl Lvm for Late {
        async fn classes(&self) -> Result<Vec<DeviceClass>, Error> {
            let (name, storage) = ("c".to_owned(), (*self.storage.lock()).to_owned());
            Ok(vec![DeviceClass { name, default: true, kind: ClassKind::Thick, storage }])
        }
        async fn volumes(&self, _: &str) -> Result<Vec<Volume>, Error> {
            let (go, found) = self.answers.lock().pop_front().expect("asked as often as told");
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
            self.changes.subscribe()
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
        let disks = Disks::new(Late::new([(one, Vec::new()), (two, vec![volume("new")])]));
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

    /// What no class named may be named again, and then nothing on the disks of any class has changed.
    #[tokio::test]
    async fn other_storage_behind_a_class_is_told_once() {
        let late = Late::new((0..4).map(|_| at_once(Vec::new())).collect::<Vec<_>>());
        let disks = Disks::new(late.clone());
        disks.list("c").await.expect("listed");
        let told = Cell::new(0);
        let words = async {
            for storage in ["g", "h", "h"] {
                *late.storage.lock() = storage;
                late.changes.send_modify(|change| *change += 1);
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
            }
        };
        tokio::select! {
            biased;
            () = disks.follow(|name| panic!("{name} is as it was"), || told.set(told.get() + 1)) => {}
            () = words => {}
        }
        assert_eq!((told.get(), late.answers.lock().len()), (1, 0), "each change was looked at");
        assert_eq!(disks.storage_of("c").as_deref(), Some("h"));
    }

    #[tokio::test]
    async fn storage_is_served_as_long_as_any_class_names_it() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("s").display().to_string();
        let class = DirectoryClass::new("a", format!("{path}/")).default_class();
        let disks = Disks::new(Arc::new(Directories::new(vec![class]).expect("opens")));
        assert_eq!((disks.storage_of("a"), disks.serves(&path)), (None, None), "nobody has asked yet");
        for class in ["a", ""] {
            disks.list(class).await.expect("listed");
            assert_eq!(disks.storage_of(class).as_ref(), Some(&path), "{class:?}");
        }
        assert_eq!(disks.storage_of("b"), None);
        assert_eq!((disks.serves(&path), disks.serves("/elsewhere")), (Some(true), Some(false)));
        // An lvmd of an earlier version says nothing of its storage: then nothing can be missing.
        if let Some((_, classes)) = &mut *disks.served.write() {
            classes.iter_mut().for_each(|class| class.storage.clear());
        }
        assert_eq!(disks.serves("/elsewhere"), None);
    }
}
