//! How a controller runs: observe, decide, act.
//!
//! A controller is a type with four parts, and the trait [`Controller`] is their shape:
//!
//! ```text
//!   watch ─▶ cache ─▶ observe ─▶ World ─▶ decide ─▶ Decision ─▶ Do(effects) ─▶ act ─▶ answers into the cache ─┐
//!             │          ▲                             │  Wait { why, until } ─▶ listed, counted, told            │
//!             └─ wakes ──┘◀────────────────────────────┼─────────────────────────────────────────────────────────┘
//!                     queue                            └──▶ status, written when it changed
//! ```
//!
//! * **observe** reads all that a decision needs from caches into a plain struct. No judgement.
//! * **decide** is a pure function of that struct and the time. Every rule is a branch here and a row in its tests.
//! * **act** performs one effect: idempotent, and guarded by what it was decided on. [`Objects`] writes to the API server
//!   and puts the answer into the cache, so that the next decision, which follows at once, builds on it.
//! * **show** writes the status, which is computed and never remembered, if it differs from the one shown.
//!
//! After the effects of a decision the engine observes and decides again, until the decision is to wait or nothing is left. A
//! crash between any two effects is therefore a world that `decide` knows already. A wait names its [`Why`]; it is listed in
//! [`Waits`], counted in [`Metrics`] and, where it says so, told as an event. A failed effect is a [`Trouble`] that the
//! next observation is given; `decide` shows it or not, and the engine sees to the pause.
//!
//! [`Engine`] puts it together as one future: kinds by [`Engine::objects`], controllers by [`Engine::controller`], and what wakes
//! them by [`Wiring::woken_by`]. Indexes ([`Cache::index`]) find objects without looking at all of them.
//! [`Election`] runs it on one process of several. Time comes from a [`Clock`] that tests own; nothing is spawned, nothing depends on
//! chance or on the order of a hash map, so the same run can be had twice.
//!
//! ```
//! use jiff::Timestamp;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use lifeboat_engine::{Clock, Controller, Decision, EffectError, Engine, ObjectKey, Objects, Selection, Settings, Trouble, Why};
//! use std::sync::Arc;
//!
//! /// Sees to it that every ConfigMap labelled `twin` has a twin.
//! struct Twins { maps: Objects<ConfigMap> }
//!
//! struct World { first: Arc<ConfigMap>, twin: Option<Arc<ConfigMap>> }
//!
//! #[derive(Debug, PartialEq, serde::Serialize)]
//! enum Effect { CreateTwin { of: ObjectKeyText } }
//! type ObjectKeyText = String;
//!
//! #[derive(Debug, Clone, PartialEq, serde::Serialize)]
//! enum Wait { FirstIsGoing }
//! impl std::fmt::Display for Wait {
//!     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("the first is being deleted") }
//! }
//! impl Why for Wait {}
//!
//! fn decide(world: &World) -> Decision<Effect, Wait, ()> {
//!     let name = world.first.metadata.name.clone().unwrap_or_default();
//!     match &world.twin {
//!         _ if world.first.metadata.deletion_timestamp.is_some() => Decision::wait(Wait::FirstIsGoing),
//!         None => Decision::act([Effect::CreateTwin { of: name }]),
//!         Some(_) => Decision::settled(),
//!     }
//! }
//!
//! impl Controller for Twins {
//!     const NAME: &'static str = "twins";
//!     type Key = ObjectKey;
//!     type World = World;
//!     type Effect = Effect;
//!     type Why = Wait;
//!     type Status = ();
//!     fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<World> {
//!         let twin = ObjectKey::new(key.namespace.clone(), format!("{}-twin", key.name));
//!         Some(World { first: self.maps.get(key)?, twin: self.maps.get(&twin) })
//!     }
//!     fn decide(world: &World, _now: Timestamp) -> Decision<Effect, Wait, ()> { decide(world) }
//!     async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
//!         let Effect::CreateTwin { of } = effect;
//!         let mut twin = ConfigMap::default();
//!         twin.metadata.namespace = Some(key.namespace.clone());
//!         twin.metadata.name = Some(format!("{of}-twin"));
//!         self.maps.create(&twin).await.map(drop)
//!     }
//!     fn shown(_: &World) -> Option<&()> { None }
//!     async fn show(&self, _: &World, (): ()) -> Result<(), EffectError> { Ok(()) }
//! }
//!
//! fn twins(client: kube::Client) -> Engine {
//!     let mut engine = Engine::new("twins", client, Clock::system(), Settings::default());
//!     let maps = engine.objects::<ConfigMap>(Selection::all().labels("twin"));
//!     engine
//!         .controller(Twins { maps: maps.clone() })
//!         .woken_by(&maps, |change| [change.key()]);
//!     engine
//! }
//! ```

mod cache;
mod clock;
pub mod conditions;
mod controller;
mod decision;
mod decode;
mod error;
pub mod events;
mod feed;
mod index;
mod lead;
pub mod lease;
mod metrics;
mod objects;
mod pass;
mod queue;
mod run;
mod waits;
mod words;

pub use cache::{Cache, Change, ObjectKey, version};
pub use clock::Clock;
pub use controller::{Controller, DecisionOf};
pub use decision::{Decision, Level, Next, Why, variant};
pub use error::{Class, EffectError, Trouble};
pub use events::Recorder;
pub use feed::{FeedSettings, Selection};
pub use index::Index;
pub use lead::{Election, Outcome};
pub use metrics::{Metrics, expose};
pub use objects::Objects;
pub use queue::{Backoff, Ended, WorkQueue};
pub use run::{Engine, Listed, Settings, Wiring};
pub use waits::{Waiting, Waits};
pub use words::{Words, difference};
