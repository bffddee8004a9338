//! Observes views and writes what they show.

use super::decide::{self, Effect, Meant, Why, World};
use crate::cluster::ground::Ground;
use crate::cluster::sight::{Follower, Seen};
use jiff::Timestamp;
use lifeboat_api::view::{ManagedClusterView, ManagedClusterViewStatus};
use lifeboat_engine::{Controller, Decision, EffectError, ObjectKey, Objects, Trouble};
use std::collections::BTreeSet;

/// The controller of views.
pub(crate) struct Views {
    pub ground: Ground,
    pub views: Objects<ManagedClusterView>,
}

impl Controller for Views {
    const NAME: &'static str = "views";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Why;
    type Status = ManagedClusterViewStatus;

    fn observe(&self, key: &ObjectKey, _trouble: Option<&Trouble>) -> Option<World> {
        let view = self.views.get(key).filter(|view| view.metadata.deletion_timestamp.is_none())?;
        let meant = decide::meant(view.spec.scope.as_ref(), &self.ground.kinds, &self.ground.allowed);
        let follower = Follower::View(key.name.clone());
        let seen = match &meant {
            Meant::Object(target) => {
                self.ground.sight.follow(&follower, BTreeSet::from([target.clone()]));
                self.ground.sight.get(target)
            }
            Meant::Unclear | Meant::Nothing(..) => {
                self.ground.sight.follow(&follower, BTreeSet::new());
                Seen::NotYet
            }
        };
        Some(World { view, meant, seen, standing: self.ground.standing() })
    }

    fn decide(world: &World, now: Timestamp) -> Decision<Effect, Why, ManagedClusterViewStatus> {
        decide::decide(world, now)
    }

    async fn act(&self, _key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        match effect {}
    }

    fn shown(world: &World) -> Option<&ManagedClusterViewStatus> {
        world.view.status.as_ref()
    }

    async fn show(&self, world: &World, status: ManagedClusterViewStatus) -> Result<(), EffectError> {
        let shown = ManagedClusterView { status: Some(status), ..(*world.view).clone() };
        self.views.replace_status(&shown).await.map(drop)
    }

    fn forget(&self, key: &ObjectKey) {
        self.ground.sight.follow(&Follower::View(key.name.clone()), BTreeSet::new());
    }
}
