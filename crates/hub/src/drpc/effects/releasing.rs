//! Taking back what was sent, and letting go.

use super::stale;
use crate::drpc::decide::delete;
use crate::drpc::group;
use crate::drpc::look::Drpcs;
use crate::words::Words as _;
use crate::{views, works};
use kube::api::{Api, DeleteParams, DynamicObject, Preconditions};
use kube::core::{ApiResource, GroupVersionKind};
use lifeboat_api::labels;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_engine::{EffectError, ObjectKey};

impl Drpcs {
    pub(super) async fn end_protection(
        &self,
        key: &ObjectKey,
        cluster: &str,
        over: Option<String>,
        group: &VolumeReplicationGroup,
    ) -> Result<(), EffectError> {
        self.live(key).await?;
        let world = self.known(key)?;
        if !delete::is_going(&world) {
            return Err(stale(format!("DRPlacementControl {key} stays")));
        }
        let wanted = group::work(&world, cluster, group);
        let place = ObjectKey::of(&wanted);
        let known = self.watched.works.get(&place).and_then(|work| work.metadata.resource_version.clone());
        if known != over {
            return Err(stale(format!("ManifestWork {place} has changed since")));
        }
        works::put(&self.watched.works, &wanted).await
    }

    pub(super) async fn take_back_group(
        &self,
        key: &ObjectKey,
        cluster: &str,
        over: Option<String>,
    ) -> Result<(), EffectError> {
        self.live(key).await?;
        let world = self.known(key)?;
        if !delete::is_going(&world) {
            return Err(stale(format!("DRPlacementControl {key} stays")));
        }
        let place = ObjectKey::new(cluster, world.group_work());
        let live = self.watched.works.read(&place).await?;
        if live.is_some_and(|live| live.metadata.resource_version != over) {
            return Err(stale(format!("ManifestWork {place} has changed since")));
        }
        works::take_back(&self.watched.works, &place).await
    }

    pub(super) async fn take_back_rest(&self, key: &ObjectKey, cluster: &str) -> Result<(), EffectError> {
        let world = self.known(key)?;
        for type_ in [works::types::MOVER_SECRET, works::types::NAMESPACE] {
            let place = ObjectKey::new(cluster, works::name(world.drpc.name(), world.space(), type_));
            // The namespace stays on the cluster, whoever made the work.
            if type_ == works::types::NAMESPACE
                && self.watched.works.get(&place).is_some_and(|work| !work.is_going())
            {
                works::put(&self.watched.works, &group::space_work(&world, cluster)).await?;
            }
            works::take_back(&self.watched.works, &place).await?;
        }
        let view = ObjectKey::of(&group::view(&world, cluster));
        views::stop_asking(&self.watched.views, &view).await
    }

    pub(super) async fn release(&self, key: &ObjectKey) -> Result<(), EffectError> {
        for (group, kind, plural, name) in left_by_others(key) {
            self.sweep(&key.namespace, group, kind, plural, &name).await?;
        }
        self.unfinalize(key).await
    }

    /// Deletes one object that another hub made for the same DRPlacementControl, if it is there.
    async fn sweep(
        &self,
        space: &str,
        group: &str,
        kind: &str,
        plural: &str,
        name: &str,
    ) -> Result<(), EffectError> {
        let kind = GroupVersionKind::gvk(group, "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), space, &resource);
        let tried = |what: &str| format!("{what} {} {space}/{name}", kind.kind);
        let found = match api.get(name).await {
            Ok(found) => Some(found),
            // Most hubs do not even have the kind.
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Err(EffectError::api(tried("reading"), error)),
        };
        let ours = |object: &DynamicObject| {
            let labels = object.metadata.labels.as_ref();
            labels
                .and_then(|all| all.get(labels::CREATED_BY_RAMEN))
                .is_some_and(|value| value == labels::CREATED_BY_RAMEN_VALUE)
        };
        let Some(found) = found.filter(ours) else { return Ok(()) };
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: found.metadata.uid,
                resource_version: found.metadata.resource_version,
            }),
            ..DeleteParams::default()
        };
        match api.delete(name, &params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(EffectError::api(tried("deleting"), error)),
            Ok(_) => Ok(()),
        }
    }
}

/// What Ramen's hub makes for a DRPlacementControl and we do not: its clone of the placement rule, and what carried the movers' key.
fn left_by_others(key: &ObjectKey) -> Vec<(&'static str, &'static str, &'static str, String)> {
    let secret = format!("{}-vs-secret", key.name);
    let clone = format!("drpc-plrule-{}-{}", key.name, key.namespace);
    let (policy, apps) = ("policy.open-cluster-management.io", lifeboat_api::apps::GROUP);
    vec![
        (policy, "PlacementBinding", "placementbindings", secret.clone()),
        (policy, "Policy", "policies", secret.clone()),
        (apps, "PlacementRule", "placementrules", secret),
        (apps, "PlacementRule", "placementrules", clone),
    ]
}
