//! ProtectedVolumeReplicationGroupList: which groups a store has records of, read once when it is asked for.

use crate::effects::store;
use crate::ledger::Ledger;
use crate::settings::{CONFIG_MAP, Config};
use crate::view::Setup;
use crate::words::Words as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Patch;
use lifeboat_api::ramen::{ProtectedVolumeReplicationGroupList, ProtectedVolumeReplicationGroupListStatus};
use lifeboat_engine::conditions::whole_seconds;
use lifeboat_engine::{Class, Clock, Controller, Decision, EffectError, ObjectKey, Objects, Trouble, Why};
use serde::Serialize;
use serde_json::json;
use std::fmt;
use std::sync::Arc;

/// What can be done: the store is read and the answer written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Effect {
    /// Reads the store.
    List,
}

/// What is waited for: nothing that a watch would not tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Wait {}

impl fmt::Display for Wait {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl Why for Wait {}

/// Every rule: what was answered once is not asked again.
pub fn decide(list: &ProtectedVolumeReplicationGroupList) -> Decision<Effect, Wait, ()> {
    let open = list.status.as_ref().is_none_or(|status| status.sample_time.is_none());
    Decision::act((open && !list.is_going()).then_some(Effect::List))
}

/// The controller of ProtectedVolumeReplicationGroupLists.
pub struct Listings {
    pub(crate) lists: Objects<ProtectedVolumeReplicationGroupList>,
    pub(crate) config: Objects<ConfigMap>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) setup: Setup,
    pub(crate) client: kube::Client,
    pub(crate) clock: Clock,
}

impl Controller for Listings {
    const NAME: &'static str = "protectedvolumereplicationgrouplists";
    type Key = ObjectKey;
    type World = Arc<ProtectedVolumeReplicationGroupList>;
    type Effect = Effect;
    type Why = Wait;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<Self::World> {
        self.lists.get(key)
    }

    fn decide(world: &Self::World, _: Timestamp) -> Decision<Effect, Wait, ()> {
        decide(world)
    }

    async fn act(&self, key: &ObjectKey, _: Effect) -> Result<(), EffectError> {
        let Some(list) = self.lists.get(key) else { return Ok(()) };
        let map = self.config.get(&ObjectKey::new(self.setup.namespace.clone(), CONFIG_MAP));
        let config = Config::of(map.as_deref());
        let name = &list.spec.s3_profile_name;
        let failed =
            |why: String| EffectError::new(Class::Transient, format!("listing the store {name}: {why}"));
        let profile = config.profiles.get(name).cloned();
        let profile = profile.ok_or_else(|| failed(config.missing(name).unwrap_or_default()))?;
        let store = store(&self.client, &self.setup.namespace, profile).await.map_err(failed)?;
        let items = self.ledger.groups(&store).await.map_err(|error| failed(error.to_string()))?;
        let sample_time = Some(Time(whole_seconds(self.clock.now())));
        let status = ProtectedVolumeReplicationGroupListStatus { sample_time, items };
        let patch = json!({ "metadata": list.guard(), "status": status });
        self.lists.patch_status(key, &Patch::Merge(patch)).await.map(drop)
    }

    fn shown(_: &Self::World) -> Option<&()> {
        None
    }

    async fn show(&self, _: &Self::World, (): ()) -> Result<(), EffectError> {
        Ok(())
    }
}
