//! Observe: what a decision about one Greeting needs.

use super::{Greeter, Greeting};
use k8s_openapi::api::core::v1::ConfigMap;
use lifeboat_engine::{ObjectKey, Trouble};
use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub struct World {
    pub greeting: Arc<Greeting>,
    pub text: Option<Arc<ConfigMap>>,
    /// The Greeting it comes after, where it names one that exists.
    pub first: Option<Arc<Greeting>>,
    pub card_sent: bool,
    pub trouble: Option<Trouble>,
}

pub fn observe(greeter: &Greeter, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
    let greeting = greeter.greetings.get(key)?;
    let first =
        greeting.spec.after.as_ref().map(|after| ObjectKey::new(key.namespace.clone(), after.clone()));
    Some(World {
        text: greeter.texts.get(key),
        first: first.and_then(|first| greeter.greetings.get(&first)),
        card_sent: greeter.post.has(key),
        trouble: trouble.cloned(),
        greeting,
    })
}
