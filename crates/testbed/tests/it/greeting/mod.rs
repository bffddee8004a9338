//! A controller small enough to be read in one sitting, in the shape that all have: every `Greeting` gets a `ConfigMap` with its
//! text, and a card in the post where it asks for one.
//!
//! Watches Greetings and the ConfigMaps labelled as theirs. A Greeting is woken by itself, by its ConfigMap, and by the Greeting it
//! comes after.

pub mod decide;
pub mod effects;
pub mod status;
pub mod world;

use effects::Post;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, ResourceExt};
use lifeboat_engine::{Clock, Engine, ObjectKey, Objects, Selection, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use status::GreetingStatus;

pub const FINALIZER: &str = "greetings.example.lifeboat.io/text";
pub const LABEL: &str = "greetings.example.lifeboat.io/of";

#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.lifeboat.io",
    version = "v1",
    kind = "Greeting",
    namespaced,
    status = "GreetingStatus"
)]
#[kube(derive = "PartialEq", derive = "Default")]
#[serde(rename_all = "camelCase")]
pub struct GreetingSpec {
    /// Who is greeted.
    pub whom: String,
    /// Another Greeting that must be ready first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// A card is sent too.
    #[serde(default)]
    pub card: bool,
}

/// The controller.
pub struct Greeter {
    pub greetings: Objects<Greeting>,
    pub texts: Objects<ConfigMap>,
    pub post: Post,
}

/// Everything put together, for the greetings of a selection.
pub fn engine(client: kube::Client, clock: Clock, of: Selection, post: Post, settings: Settings) -> Engine {
    let mut engine = Engine::new("greeter", client, clock, settings);
    let greetings = engine.objects::<Greeting>(of.clone());
    let texts = engine.objects::<ConfigMap>(of.labels(LABEL));
    let followers = greetings.index(|greeting: &Greeting| {
        let namespace = greeting.namespace().unwrap_or_default();
        greeting.spec.after.as_ref().map(|after| ObjectKey::new(namespace, after.clone()))
    });
    engine
        .controller(Greeter { greetings: greetings.clone(), texts: texts.clone(), post })
        .woken_by(&greetings, move |change| {
            let key = change.key();
            let mut keys: Vec<_> =
                followers.get(&key).iter().map(|follower| ObjectKey::of(&**follower)).collect();
            keys.push(key);
            keys
        })
        .woken_by(&texts, |change| [change.key()]);
    engine
}
