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
    /// One DRPlacementControl; all of them where none is named.
    of: Option<ObjectKey>,
    told: Mutex<Option<oneshot::Sender<Vec<World>>>>,
}

impl Glance {
    fn worlds(&self) -> Vec<World> {
        let all = || self.drpcs.watched.drpcs.all().iter().map(|drpc| ObjectKey::of(&**drpc)).collect();
        let keys: Vec<ObjectKey> = self.of.clone().map_or_else(all, |key| vec![key]);
        keys.iter().filter_map(|key| self.drpcs.world(key, None)).collect()
    }
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

    fn observe(&self, _: &ObjectKey, _: Option<&Trouble>) -> Option<()> {
        if let Some(told) = self.told.lock().take() {
            // Whoever asked may have given up.
            let _ = told.send(self.worlds());
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

/// The worlds of one DRPlacementControl, or of all of them, as the hub shows them now. What only stores know is not in them.
pub async fn look(client: kube::Client, clock: Clock, kinds: Kinds, of: Option<ObjectKey>) -> Vec<World> {
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
    let wiring = engine.controller(Glance { drpcs, of, told: Mutex::new(Some(told)) });
    wiring.wake(ObjectKey::cluster_wide("all"));
    tokio::select! {
        () = engine.run(std::future::pending()) => Vec::new(),
        worlds = hear => worlds.unwrap_or_default(),
    }
}
