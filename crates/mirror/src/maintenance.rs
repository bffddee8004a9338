//! MaintenanceModes: before a failover, what the peer still sends is let in no more, so that the copies here stand still. Each is answered
//! when that is so, and not before.

use crate::ground::Ground;
use crate::halt::freezes;
use crate::words::shown;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::Patch;
use lifeboat_api::conditions::drcluster::TYPE_FAILOVER_ACTIVATED;
use lifeboat_api::ramen::{MMode, MModeState, MaintenanceMode, MaintenanceModeStatus};
use lifeboat_engine::conditions::{Conditions, Holds};
use lifeboat_engine::{Controller, Decision, EffectError, ObjectKey, Trouble, Why};
use lifeboat_node::provision::words::reference;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// All that a decision about a mode needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The mode.
    pub mode: Arc<MaintenanceMode>,
    /// Volumes that bytes may still come for, though the mode asks for none.
    pub open: Vec<String>,
}

/// What a mode waits for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum ModeWhy {
    /// Volumes still receive.
    Receiving(Vec<String>),
}

impl fmt::Display for ModeWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Receiving(volumes) = self;
        write!(f, "bytes still come in for {} volumes; they are being stopped", volumes.len())
    }
}

impl Why for ModeWhy {}

/// What is decided about a mode: the stopping itself is the business of each secondary.
pub type ModeDecision = Decision<(), ModeWhy, MaintenanceModeStatus>;

/// Every rule about modes.
pub fn decide(world: &World, now: Timestamp) -> ModeDecision {
    let generation = world.mode.metadata.generation;
    let mut status = world.mode.status.clone().unwrap_or_default();
    status.observed_generation = generation;
    if !world.mode.spec.modes.contains(&MMode::Failover) {
        status.state = Some(MModeState::Unknown);
        return Decision::settled().showing(status);
    }
    let conditions = Conditions { generation, now };
    let mut say = |holds: Holds, reason: &str, text: String| {
        conditions.set(&mut status.conditions, TYPE_FAILOVER_ACTIVATED, holds, reason, text);
    };
    if world.open.is_empty() {
        say(
            Holds::True,
            "Activated",
            "nothing is received from the peer, and what was received stands still".to_owned(),
        );
        status.state = Some(MModeState::Completed);
        return Decision::settled().showing(status);
    }
    let why = ModeWhy::Receiving(world.open.clone());
    say(Holds::False, "Stopping", why.to_string());
    status.state = Some(MModeState::Progressing);
    Decision::wait(why).showing(status)
}

/// The controller of modes.
pub struct Modes {
    pub(crate) ground: Ground,
}

impl Controller for Modes {
    const NAME: &'static str = "maintenancemodes";
    type Key = ObjectKey;
    type World = World;
    type Effect = ();
    type Why = ModeWhy;
    type Status = MaintenanceModeStatus;

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<World> {
        let driver = &self.ground.config.driver;
        let mode = self.ground.kinds.modes.get(key)?;
        if mode.spec.storage_provisioner != *driver || mode.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let open = self.ground.desk.expecting();
        // One that nobody offers any more is on its way to be closed too.
        let meant = |(_, offer): &(String, Option<crate::desk::Standing>)| {
            offer.as_ref().is_none_or(|offer| freezes(&mode, driver, &offer.identities))
        };
        let open = open.into_iter().filter(meant).map(|(uid, _)| uid).collect();
        Some(World { mode, open })
    }

    fn decide(world: &World, now: Timestamp) -> ModeDecision {
        decide(world, now)
    }

    async fn act(&self, _: &ObjectKey, (): ()) -> Result<(), EffectError> {
        Ok(())
    }

    fn shown(world: &World) -> Option<&MaintenanceModeStatus> {
        world.mode.status.as_ref()
    }

    async fn show(&self, world: &World, status: MaintenanceModeStatus) -> Result<(), EffectError> {
        let patch = Patch::Merge(shown(&*world.mode, world.mode.status.as_ref(), &status)?);
        self.ground.kinds.modes.patch_status(&ObjectKey::of(&*world.mode), &patch).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(reference(&*world.mode))
    }
}
