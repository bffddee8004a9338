//! One look at a DRPlacementControl with everything that a decision about it reads: for whoever wants to plan, and changes nothing.

use crate::drpc::look::Drpcs;
use crate::drpc::run::{Kinds, NAME, Setup, watched};
use crate::drpc::world::World;
use crate::secrets::Courier;
use jiff::Timestamp;
use lifeboat_engine::{Clock, Controller, Decision, EffectError, Engine, ObjectKey, Settings, Trouble, Why};
use parking_lot::Mutex;
use std::fmt;
use tokio::sync::oneshot;

/// Looks once, when all caches are full: that is when an engine lets its controllers begin.
struct Glance {
    drpcs: Drpcs,
    told: Mutex<Option<oneshot::Sender<Option<World>>>>,
}

/// Never waits.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
enum Nothing {}

impl fmt::Display for Nothing {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl Why for Nothing {}

impl Controller for Glance {
    const NAME: &'static str = "glance";
    type Key = ObjectKey;
    type World = ();
    type Effect = Nothing;
    type Why = Nothing;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<()> {
        if let Some(told) = self.told.lock().take() {
            // Whoever asked may have given up.
            let _ = told.send(self.drpcs.world(key, None));
        }
        None
    }

    fn decide((): &(), _: Timestamp) -> Decision<Nothing, Nothing, ()> {
        Decision::settled()
    }

    async fn act(&self, _: &ObjectKey, effect: Nothing) -> Result<(), EffectError> {
        match effect {}
    }

    fn shown((): &()) -> Option<&()> {
        None
    }

    async fn show(&self, (): &(), (): ()) -> Result<(), EffectError> {
        Ok(())
    }
}

/// The world of a DRPlacementControl as the hub shows it now; `None` where there is none of the name. What only stores know is not in it.
pub async fn look(client: kube::Client, clock: Clock, kinds: Kinds, key: &ObjectKey) -> Option<World> {
    let mut engine = Engine::new(NAME, client.clone(), clock, Settings::default());
    let watched = watched(&mut engine, &client, kinds, None);
    let setup = Setup::usual(client.clone(), "");
    let courier = Courier { client: client.clone(), works: watched.works.clone(), chance: setup.chance };
    let (told, hear) = oneshot::channel();
    let drpcs = Drpcs {
        watched,
        client,
        recorder: engine.recorder(),
        courier,
        ledger: setup.ledger,
        readings: Mutex::default(),
    };
    let wiring = engine.controller(Glance { drpcs, told: Mutex::new(Some(told)) });
    wiring.wake(key.clone());
    tokio::select! {
        () = engine.run(std::future::pending()) => None,
        world = hear => world.ok().flatten(),
    }
}
