//! What the agent looks at on its cluster: whoever wants to see an object says so, and is woken when it changes.
//!
//! Watches are shared. A kind of few objects is watched whole, the others object by object (see [`crate::allowed`]). A watch that
//! breaks is taken up again with growing pauses; what was seen stays until it is known to be otherwise, and after some failures it
//! is said that nothing can be seen.

use super::kinds::{Kind, Target};
use crate::allowed::watched_whole;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use kube::Api;
use kube::api::DynamicObject;
use kube::core::TypeMeta;
use kube::runtime::watcher::{self, watcher};
use lifeboat_engine::{FeedSettings, version};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// So many failures in a row mean that the cluster cannot be seen; fewer are a hiccup.
const HICCUPS: u32 = 3;

/// How an object is seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// Nobody has looked yet.
    NotYet,
    /// It cannot be seen, and why; what was seen before may still be so.
    Failing(String),
    /// It does not exist.
    Absent,
    /// It is there.
    Present(Arc<DynamicObject>),
}

impl Seen {
    /// The object, if it is there.
    pub fn object(&self) -> Option<&Arc<DynamicObject>> {
        match self {
            Self::Present(object) => Some(object),
            _ => None,
        }
    }
}

/// Who wants to see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Follower {
    /// The agent itself, which wants to know that its cluster is there.
    Member,
    /// A work of this name.
    Work(String),
    /// A view of this name.
    View(String),
}

/// One watch: a whole kind, or one object of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Watch {
    kind: Kind,
    only: Option<(String, String)>,
}

impl Watch {
    fn of(target: &Target) -> Self {
        let whole = watched_whole(&target.kind.group, &target.kind.kind);
        let only = (!whole).then(|| target.place());
        Self { kind: target.kind.clone(), only }
    }
}

type Place = (String, String);

#[derive(Default)]
struct Picture {
    objects: BTreeMap<Place, Arc<DynamicObject>>,
    /// Who looks at which place; a picture that nobody looks at is dropped.
    followers: BTreeMap<Place, BTreeSet<Follower>>,
    whole: bool,
    failing: Option<String>,
    stop: CancellationToken,
    running: bool,
}

#[derive(Default)]
struct State {
    wants: BTreeMap<Follower, BTreeSet<Target>>,
    pictures: BTreeMap<Watch, Picture>,
}

type Listener = Box<dyn Fn(&Follower) + Send + Sync>;

/// What is looked at.
#[derive(Default)]
pub struct Sight {
    state: Mutex<State>,
    changed: Notify,
    listeners: Mutex<Vec<Listener>>,
}

impl Sight {
    /// Calls this for every follower whose objects have changed.
    pub fn listen(&self, listener: impl Fn(&Follower) + Send + Sync + 'static) {
        self.listeners.lock().push(Box::new(listener));
    }

    /// From now on this follower wants to see these objects, and no others.
    pub fn follow(&self, follower: &Follower, targets: BTreeSet<Target>) {
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.wants.get(follower).map_or(targets.is_empty(), |known| *known == targets) {
            return;
        }
        let before = match targets.is_empty() {
            true => state.wants.remove(follower),
            false => state.wants.insert(follower.clone(), targets.clone()),
        };
        let before = before.unwrap_or_default();
        for target in targets.difference(&before) {
            let picture = state.pictures.entry(Watch::of(target)).or_default();
            picture.followers.entry(target.place()).or_default().insert(follower.clone());
        }
        for target in before.difference(&targets) {
            let watch = Watch::of(target);
            let Some(picture) = state.pictures.get_mut(&watch) else { continue };
            if let Some(followers) = picture.followers.get_mut(&target.place()) {
                followers.remove(follower);
                if followers.is_empty() {
                    picture.followers.remove(&target.place());
                }
            }
            if picture.followers.is_empty() {
                picture.stop.cancel();
                state.pictures.remove(&watch);
            }
        }
        self.changed.notify_one();
    }

    /// How an object is seen; only what is followed is.
    pub fn get(&self, target: &Target) -> Seen {
        let state = self.state.lock();
        let Some(picture) = state.pictures.get(&Watch::of(target)) else { return Seen::NotYet };
        match (picture.objects.get(&target.place()), &picture.failing) {
            (_, Some(why)) => Seen::Failing(why.clone()),
            (Some(object), None) => Seen::Present(object.clone()),
            (None, None) if picture.whole => Seen::Absent,
            (None, None) => Seen::NotYet,
        }
    }

    /// The answer to a write of ours: the next decision builds on it.
    pub fn wrote(&self, target: &Target, object: DynamicObject) {
        self.put(&Watch::of(target), object);
    }

    /// A write of ours was told that the object is gone.
    pub fn gone(&self, target: &Target) {
        let place = target.place();
        self.change(&Watch::of(target), |picture| match picture.objects.remove(&place) {
            Some(_) => BTreeSet::from([place]),
            None => BTreeSet::new(),
        });
    }

    /// Watches what is wanted until dropped.
    pub async fn run(&self, client: kube::Client, settings: FeedSettings) {
        let mut running = FuturesUnordered::new();
        loop {
            let starting: Vec<(Watch, CancellationToken)> = {
                let mut state = self.state.lock();
                let idle = state.pictures.iter_mut().filter(|(_, picture)| !picture.running);
                idle.map(|(watch, picture)| {
                    picture.running = true;
                    (watch.clone(), picture.stop.clone())
                })
                .collect()
            };
            for (watch, stop) in starting {
                let client = client.clone();
                let looking = async move {
                    stop.run_until_cancelled(self.look(&client, &watch, settings)).await;
                };
                running.push(looking.boxed());
            }
            tokio::select! {
                biased;
                Some(()) = running.next(), if !running.is_empty() => {}
                () = self.changed.notified() => {}
            }
        }
    }

    async fn look(&self, client: &kube::Client, watch: &Watch, settings: FeedSettings) {
        let resource = watch.kind.api_resource();
        // A connection that died in silence is noticed a little after this.
        let lasts = u32::try_from(settings.watch_for.as_secs()).unwrap_or(290);
        let mut config = watcher::Config::default().timeout(lasts);
        let api: Api<DynamicObject> = match &watch.only {
            None => Api::all_with(client.clone(), &resource),
            Some((namespace, name)) => {
                config = config.fields(&format!("metadata.name={name}"));
                match namespace.is_empty() {
                    true => Api::all_with(client.clone(), &resource),
                    false => Api::namespaced_with(client.clone(), namespace, &resource),
                }
            }
        };
        let mut failures = 0;
        loop {
            // Now and then a new picture is taken though nothing seems wrong: so long a lost event can last.
            let until = Instant::now() + settings.picture_every;
            let mut events = pin!(watcher(api.clone(), config.clone()));
            let mut listed = Vec::new();
            while let Ok(Some(event)) = tokio::time::timeout_at(until, events.next()).await {
                match event {
                    Ok(watcher::Event::Init) => listed.clear(),
                    Ok(watcher::Event::InitApply(object)) => listed.push(object),
                    Ok(watcher::Event::InitDone) => {
                        failures = 0;
                        self.replace(watch, std::mem::take(&mut listed));
                    }
                    Ok(watcher::Event::Apply(object)) => {
                        failures = 0;
                        self.put(watch, object);
                    }
                    Ok(watcher::Event::Delete(object)) => {
                        failures = 0;
                        self.remove(watch, &object);
                    }
                    Err(error) => {
                        failures += 1;
                        tracing::debug!(kind = watch.kind.qualified(), failures, %error, "watching failed");
                        if failures >= HICCUPS {
                            self.fail(watch, sentence(&error));
                        }
                        tokio::time::sleep(settings.backoff.after(failures)).await;
                        if failures >= HICCUPS {
                            // A watch that is taken up again says nothing until something happens; a new picture says at once
                            // that all is well.
                            break;
                        }
                    }
                }
            }
        }
    }

    fn replace(&self, watch: &Watch, objects: Vec<DynamicObject>) {
        let objects: BTreeMap<Place, Arc<DynamicObject>> =
            objects.into_iter().map(|object| (place(&object), Arc::new(lean(watch, object)))).collect();
        self.change(watch, |picture| {
            let first = !picture.whole || picture.failing.is_some();
            let mut places: BTreeSet<Place> = picture.objects.keys().chain(objects.keys()).cloned().collect();
            if !first {
                places.retain(|place| picture.objects.get(place) != objects.get(place));
            }
            picture.objects = objects;
            picture.whole = true;
            picture.failing = None;
            places
        });
    }

    fn put(&self, watch: &Watch, object: DynamicObject) {
        self.change(watch, |picture| {
            let place = place(&object);
            let back = picture.failing.take().is_some();
            if picture.objects.get(&place).is_some_and(|known| version(&**known) >= version(&object)) {
                return if back { picture.objects.keys().cloned().collect() } else { BTreeSet::new() };
            }
            picture.objects.insert(place.clone(), Arc::new(lean(watch, object)));
            BTreeSet::from([place])
        });
    }

    fn remove(&self, watch: &Watch, gone: &DynamicObject) {
        self.change(watch, |picture| {
            let place = place(gone);
            let newer = |known: &Arc<DynamicObject>| {
                version(&**known) > version(gone) && known.metadata.uid != gone.metadata.uid
            };
            if picture.objects.get(&place).is_none_or(newer) {
                return BTreeSet::new();
            }
            picture.objects.remove(&place);
            BTreeSet::from([place])
        });
    }

    fn fail(&self, watch: &Watch, why: String) {
        self.change(watch, |picture| match picture.failing.replace(why) {
            Some(_) => BTreeSet::new(),
            None => picture.followers.keys().cloned().collect(),
        });
    }

    /// Changes a picture and wakes whoever looks at the places that changed.
    fn change(&self, watch: &Watch, change: impl FnOnce(&mut Picture) -> BTreeSet<Place>) {
        let followers: BTreeSet<Follower> = {
            let mut state = self.state.lock();
            let Some(picture) = state.pictures.get_mut(watch) else { return };
            let first = !picture.whole;
            let was_failing = picture.failing.is_some();
            let places = change(picture);
            // The first picture, and the first after a failure, is news to everybody who waits for one.
            let all = (first && picture.whole) || (was_failing && picture.failing.is_none());
            match all {
                true => picture.followers.values().flatten().cloned().collect(),
                // One object of thousands has changed: the others are not even looked at.
                false => {
                    let concerned = places.iter().filter_map(|place| picture.followers.get(place));
                    concerned.flatten().cloned().collect()
                }
            }
        };
        let listeners = self.listeners.lock();
        for follower in &followers {
            listeners.iter().for_each(|listener| listener(follower));
        }
    }
}

fn place(object: &DynamicObject) -> Place {
    let meta = &object.metadata;
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

/// The object with its kind, which lists leave out, and without the record of who set which field, which nobody reads.
fn lean(watch: &Watch, mut object: DynamicObject) -> DynamicObject {
    object.types = Some(TypeMeta { api_version: watch.kind.api_version(), kind: watch.kind.kind.clone() });
    object.metadata.managed_fields = None;
    object
}

fn sentence(error: &watcher::Error) -> String {
    use watcher::Error as E;
    match error {
        E::InitialListFailed(error) | E::WatchStartFailed(error) | E::WatchFailed(error) => match error {
            kube::Error::Api(status) => status.message.clone(),
            error => error.to_string(),
        },
        E::WatchError(status) => status.message.clone(),
        error => error.to_string(),
    }
}
