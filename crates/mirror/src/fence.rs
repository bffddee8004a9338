//! NetworkFences: whoever is cut off gets no word and no byte through the door of this mirror; lifted, it may come again.

use crate::door::Connections;
use crate::ground::Ground;
use crate::halt::{Range, is_ours};
use crate::words::{Words as _, shown, with_finalizer};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::Patch;
use lifeboat_api::csiaddons::{FenceResult, FenceState, NetworkFence, NetworkFenceStatus};
use lifeboat_api::finalizers;
use lifeboat_engine::{Class, Controller, Decision, EffectError, Level, ObjectKey, Trouble, Why};
use lifeboat_node::provision::words::reference;
use serde::Serialize;
use serde_json::json;
use std::fmt;
use std::sync::Arc;

/// All that a decision about a fence needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The fence.
    pub fence: Arc<NetworkFence>,
    /// Whether bytes are still taken from somebody whom it cuts off.
    pub standing: bool,
    /// Whether such a one still has a connection.
    pub connected: bool,
}

/// What can be done about a fence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Effect {
    /// Puts our finalizer on it.
    Hold,
    /// Takes nothing more from those whom it cuts off.
    CutOff,
    /// Takes our finalizer off.
    Release,
}

/// What a fence waits for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum FenceWhy {
    /// It cannot be understood.
    Unreadable(String),
    /// Connections are being closed.
    Closing,
}

impl fmt::Display for FenceWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => f.write_str(why),
            Self::Closing => f.write_str("connections of those who are cut off are being closed"),
        }
    }
}

impl Why for FenceWhy {
    fn event(&self) -> Option<Level> {
        matches!(self, Self::Unreadable(_)).then_some(Level::Warning)
    }
}

/// What is decided about a fence.
pub type FenceDecision = Decision<Effect, FenceWhy, NetworkFenceStatus>;

/// Every rule about fences.
pub fn decide(world: &World) -> FenceDecision {
    let fence = &world.fence;
    let held = fence.has_finalizer(finalizers::NETWORK_FENCE);
    if fence.is_going() {
        return Decision::act(held.then_some(Effect::Release));
    }
    let told = |result: FenceResult, message: String| NetworkFenceStatus {
        result: Some(result),
        message: Some(message),
        ..fence.status.clone().unwrap_or_default()
    };
    let bad: Vec<&str> =
        fence.spec.cidrs.iter().map(String::as_str).filter(|text| Range::parse(text).is_none()).collect();
    if fence.spec.cidrs.is_empty() || !bad.is_empty() {
        let why = format!("spec.cidrs must name ranges such as 10.0.0.0/8; this is none: {bad:?}");
        let shown = told(FenceResult::Failed, why.clone());
        return Decision::wait(FenceWhy::Unreadable(why)).showing(shown);
    }
    if !held {
        return Decision::act([Effect::Hold]);
    }
    if fence.spec.fence_state == FenceState::Unfenced {
        return Decision::settled()
            .showing(told(FenceResult::Succeeded, "unfencing operation successful".to_owned()));
    }
    if world.standing {
        return Decision::act([Effect::CutOff]);
    }
    if world.connected {
        return Decision::wait(FenceWhy::Closing);
    }
    Decision::settled().showing(told(FenceResult::Succeeded, "fencing operation successful".to_owned()))
}

/// The controller of fences.
pub struct Fences {
    pub(crate) ground: Ground,
    pub(crate) connections: Connections,
    /// Wakes the secondary of a UID.
    pub(crate) wake: Arc<dyn Fn(&str) + Send + Sync>,
}

fn ranges(fence: &NetworkFence) -> Vec<Range> {
    let stands = fence.spec.fence_state == FenceState::Fenced && !fence.is_going();
    let all = fence.spec.cidrs.iter().filter(|_| stands);
    all.filter_map(|text| Range::parse(text)).collect()
}

impl Fences {
    async fn hold(&self, fence: &NetworkFence, on: bool) -> Result<(), EffectError> {
        let metadata = with_finalizer(fence, finalizers::NETWORK_FENCE, on);
        let (objects, key) = (&self.ground.kinds.fences, ObjectKey::of(fence));
        match objects.patch(&key, &Patch::Merge(json!({ "metadata": metadata }))).await {
            // The last finalizer takes the object with it.
            Err(error) if !on && error.class == Class::Stale && objects.get(&key).is_none() => Ok(()),
            done => done.map(drop),
        }
    }
}

impl Controller for Fences {
    const NAME: &'static str = "networkfences";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = FenceWhy;
    type Status = NetworkFenceStatus;

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<World> {
        let fence = self.ground.kinds.fences.get(key)?;
        if !is_ours(&self.ground.kinds, &fence) {
            return None;
        }
        let ranges = ranges(&fence);
        let cut = |ip: std::net::IpAddr| ranges.iter().any(|range| range.holds(ip));
        let expecting = self.ground.desk.expecting();
        let mut offers = expecting.iter().filter_map(|(_, offer)| offer.as_ref());
        let standing = offers.any(|offer| cut(offer.came_from) || cut(offer.from.ip()));
        // What was offered no more is being closed at this moment.
        let closing = !ranges.is_empty() && expecting.iter().any(|(_, offer)| offer.is_none());
        Some(World { standing, connected: closing || self.connections.any(cut), fence })
    }

    fn decide(world: &World, _: Timestamp) -> FenceDecision {
        decide(world)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        let Some(fence) = self.ground.kinds.fences.get(key) else { return Ok(()) };
        match effect {
            Effect::Hold => self.hold(&fence, true).await,
            Effect::Release => self.hold(&fence, false).await,
            Effect::CutOff => {
                let ranges = ranges(&fence);
                let cut = |ip: std::net::IpAddr| ranges.iter().any(|range| range.holds(ip));
                let gone = self.ground.desk.withdraw(|offer| cut(offer.came_from) || cut(offer.from.ip()));
                gone.iter().for_each(|uid| (self.wake)(uid));
                self.connections.look_again();
                Ok(())
            }
        }
    }

    fn shown(world: &World) -> Option<&NetworkFenceStatus> {
        world.fence.status.as_ref()
    }

    async fn show(&self, world: &World, status: NetworkFenceStatus) -> Result<(), EffectError> {
        let patch = Patch::Merge(shown(&*world.fence, world.fence.status.as_ref(), &status)?);
        self.ground.kinds.fences.patch_status(&ObjectKey::of(&*world.fence), &patch).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(reference(&*world.fence))
    }
}
