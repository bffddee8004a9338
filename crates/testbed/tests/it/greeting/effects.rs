//! Act: the only place that writes. Each effect is guarded by the versions it was decided on.

use super::decide::{Decision, Effect, Waits, decide};
use super::status::GreetingStatus;
use super::world::{World, observe};
use super::{FINALIZER, Greeter, Greeting, LABEL};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kube::{Resource, ResourceExt};
use lifeboat_engine::{Class, Controller, EffectError, ObjectKey, Trouble};
use lifeboat_testbed::{CrashPoints, Kind};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Cards that were sent, outside of any cluster: stands for a store, a disk or a mover.
#[derive(Clone)]
pub struct Post {
    pub cards: Cards,
    pub points: CrashPoints,
}

pub type Cards = Arc<Mutex<BTreeMap<ObjectKey, String>>>;

impl Post {
    pub fn new() -> Self {
        Self { cards: Cards::default(), points: CrashPoints::counting() }
    }

    pub fn has(&self, key: &ObjectKey) -> bool {
        self.cards.lock().contains_key(key)
    }

    async fn send(&self, key: &ObjectKey, text: String) -> Result<(), EffectError> {
        let sending = async { drop(self.cards.lock().insert(key.clone(), text)) };
        let sent = self.points.effect(Kind::ObjectStore, format!("send card {key}"), sending).await;
        sent.map_err(|died| EffectError::caused(Class::Transient, "sending the card", died))
    }
}

impl Greeter {
    fn greeting(&self, key: &ObjectKey) -> Result<Greeting, EffectError> {
        let gone = || EffectError::new(Class::Stale, format!("greeting {key} is gone"));
        self.greetings.get(key).map(|greeting| (*greeting).clone()).ok_or_else(gone)
    }

    async fn write_text(&self, key: &ObjectKey, text: String) -> Result<(), EffectError> {
        let greeting = self.greeting(key)?;
        let known = self.texts.get(key);
        let mut map = known.as_deref().cloned().unwrap_or_default();
        map.metadata.namespace = Some(key.namespace.clone());
        map.metadata.name = Some(key.name.clone());
        map.labels_mut().insert(LABEL.to_owned(), key.name.clone());
        map.metadata.owner_references = greeting.controller_owner_ref(&()).map(|owner| vec![owner]);
        map.data = Some([("text".to_owned(), text)].into());
        match known {
            None => self.texts.create(&map).await.map(drop),
            Some(_) => self.texts.replace(&map).await.map(drop),
        }
    }
}

impl Controller for Greeter {
    const NAME: &'static str = "greeter";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Waits;
    type Status = GreetingStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        observe(self, key, trouble)
    }

    fn decide(world: &World, now: Timestamp) -> Decision {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        match effect {
            Effect::Guard => {
                let mut greeting = self.greeting(key)?;
                greeting.finalizers_mut().push(FINALIZER.to_owned());
                self.greetings.replace(&greeting).await.map(drop)
            }
            Effect::WriteText { text } => self.write_text(key, text).await,
            Effect::DeleteText => match self.texts.get(key) {
                Some(text) => self.texts.delete(&text).await,
                None => Ok(()),
            },
            Effect::SendCard { text } => self.post.send(key, text).await,
            Effect::Release => {
                let mut greeting = self.greeting(key)?;
                greeting.finalizers_mut().retain(|name| name != FINALIZER);
                self.greetings.replace(&greeting).await.map(drop)
            }
        }
    }

    fn shown(world: &World) -> Option<&GreetingStatus> {
        world.greeting.status.as_ref()
    }

    async fn show(&self, world: &World, status: GreetingStatus) -> Result<(), EffectError> {
        let mut greeting = (*world.greeting).clone();
        greeting.status = Some(status);
        self.greetings.replace_status(&greeting).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(world.greeting.object_ref(&()))
    }
}

/// The text of a Greeting as it is written.
pub fn text_of(map: &ConfigMap) -> &str {
    map.data.as_ref().and_then(|data| data.get("text")).map(String::as_str).unwrap_or_default()
}
