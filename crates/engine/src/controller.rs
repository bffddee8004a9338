//! The one shape of a controller, as a trait: observe, decide, act, show.

use crate::decision::{Decision, Why};
use crate::error::{EffectError, Trouble};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde::Serialize;
use std::fmt::{Debug, Display};
use std::time::Duration;

/// What a controller decides, in its own terms.
pub type DecisionOf<C> =
    Decision<<C as Controller>::Effect, <C as Controller>::Why, <C as Controller>::Status>;

/// A controller. The engine calls these parts in order, again and again, until nothing is left to do; see the crate's own
/// page for an example.
///
/// Futures can be dropped at any `await`, which is a crash like any other: the next pass observes and goes on.
pub trait Controller: Send + Sync + 'static {
    /// Its name in metrics, logs and the list of waits.
    const NAME: &'static str;
    /// What one decision is about, mostly an [`ObjectKey`](crate::ObjectKey).
    type Key: Ord + Clone + Debug + Display + Send + Sync + 'static;
    /// All that a decision needs, as a plain snapshot.
    type World: Send + Sync;
    /// What it can do.
    type Effect: Debug + Serialize + Send;
    /// What it can wait for.
    type Why: Why;
    /// What people are shown.
    type Status: PartialEq + Send + Sync;

    /// Reads the world of a key from caches, without judging; `None` when the key concerns nothing any more. `trouble` is the
    /// last failure of this key, until an effect succeeds or none is needed.
    fn observe(&self, key: &Self::Key, trouble: Option<&Trouble>) -> Option<Self::World>;

    /// Every rule. No async, no clock, no client, no chance.
    fn decide(world: &Self::World, now: Timestamp) -> DecisionOf<Self>
    where
        Self: Sized;

    /// Performs one effect: idempotent, guarded by its own precondition. What came of it must be in the caches when this
    /// returns, for the next decision builds on it; [`Objects`](crate::Objects) sees to that.
    fn act(
        &self,
        key: &Self::Key,
        effect: Self::Effect,
    ) -> impl Future<Output = Result<(), EffectError>> + Send;

    /// How long to wait for an effect, where the engine's setting does not fit it. The wait ends then and is told as a failure; what
    /// must not be stopped half-way has to go on by itself, and the next try of the effect has to wait for it and not begin it twice.
    fn effect_within(effect: &Self::Effect, usual: Duration) -> Duration
    where
        Self: Sized,
    {
        let _ = effect;
        usual
    }

    /// The status that is shown now; what equals it is not written again.
    fn shown(world: &Self::World) -> Option<&Self::Status>;

    /// Writes the status.
    fn show(
        &self,
        world: &Self::World,
        status: Self::Status,
    ) -> impl Future<Output = Result<(), EffectError>> + Send;

    /// The object that events about this key are attached to.
    fn subject(world: &Self::World) -> Option<ObjectReference> {
        let _ = world;
        None
    }

    /// The key concerns nothing any more: drop what is remembered about it.
    fn forget(&self, key: &Self::Key) {
        let _ = key;
    }
}
