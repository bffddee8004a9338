//! Our marks on the DRPlacementControl and on the placement that it moves.

use crate::drpc::look::Drpcs;
use crate::drpc::world::World;
use crate::words::Words as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::api::{Api, DynamicObject, ListParams, Patch};
use kube::core::{ApiResource, GroupVersionKind};
use lifeboat_api::apps::PlacementRule;
use lifeboat_api::cluster::Placement;
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_engine::{EffectError, ObjectKey};
use serde_json::{Value, json};

fn with_finalizer<K: Resource>(object: &K, on: bool) -> Vec<String> {
    let mut names: Vec<String> = object.meta().finalizers.clone().unwrap_or_default();
    names.retain(|name| name != finalizers::DRPC);
    if on {
        names.push(finalizers::DRPC.to_owned());
    }
    names
}

fn owner<K: Resource<DynamicType = ()>>(object: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: object.name().to_owned(),
        uid: object.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(false),
    }
}

/// The namespace into which an ApplicationSet deploys, if it follows this placement.
pub fn destination(set: &Value, placement: &str) -> Option<String> {
    let generators = set.pointer("/spec/generators")?.as_array()?;
    let pointer = "/clusterDecisionResource/labelSelector/matchLabels";
    let follows = |generator: &Value| {
        let marks = generator.pointer(pointer).and_then(Value::as_object);
        marks.and_then(|marks| marks.get(labels::PLACEMENT)?.as_str()) == Some(placement)
    };
    let space = set.pointer("/spec/template/spec/destination/namespace")?.as_str()?;
    // What is filled in for each cluster cannot be told here.
    let plain = !space.is_empty() && !space.contains("{{");
    (plain && generators.iter().any(follows)).then(|| space.to_owned())
}

impl Drpcs {
    pub(super) async fn own(&self, key: &ObjectKey) -> Result<(), EffectError> {
        let world = self.known(key)?;
        let drpc = &world.drpc;
        let placement: Option<OwnerReference> = match (&world.placement, &world.rule) {
            (Some(placement), _) => Some(owner::<Placement>(placement)),
            (None, Some(rule)) => Some(owner::<PlacementRule>(rule)),
            (None, None) => None,
        };
        let mut owners = drpc.metadata.owner_references.clone().unwrap_or_default();
        // A placement of the same name that was made anew takes the place of the one before.
        owners.retain(|known| {
            placement.as_ref().is_none_or(|new| known.kind != new.kind || known.name != new.name)
        });
        let taken = owners.iter().any(|known| known.controller == Some(true));
        owners.extend(placement.map(|new| OwnerReference { controller: Some(!taken), ..new }));
        let mut metadata = drpc.guard();
        metadata["finalizers"] = json!(with_finalizer(&**drpc, true));
        metadata["labels"] = json!({ labels::OCM_BACKUP: labels::OCM_BACKUP_VALUE });
        let space = match drpc.note(annotations::APP_NAMESPACE) {
            Some(_) => world.space().to_owned(),
            None => self.destination(key, &world).await?.unwrap_or_else(|| world.space().to_owned()),
        };
        metadata["annotations"] = json!({ annotations::APP_NAMESPACE: space });
        metadata["ownerReferences"] = json!(owners);
        self.watched.drpcs.patch(key, &Patch::Merge(json!({ "metadata": metadata }))).await.map(drop)
    }

    /// The namespace into which an ApplicationSet deploys by this placement, where there is one.
    async fn destination(&self, key: &ObjectKey, world: &World) -> Result<Option<String>, EffectError> {
        let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "ApplicationSet");
        let resource = ApiResource::from_gvk_with_plural(&kind, "applicationsets");
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &key.namespace, &resource);
        let all = match api.list(&ListParams::default()).await {
            Ok(all) => all.items,
            // Most hubs do not even have the kind.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(error) => {
                return Err(EffectError::api(format!("listing ApplicationSets in {}", key.namespace), error));
            }
        };
        let placement = world.drpc.spec.placement_ref.name.as_deref().unwrap_or_default();
        Ok(all.iter().find_map(|set| destination(&set.data, placement)))
    }

    pub(super) async fn own_placement(&self, key: &ObjectKey) -> Result<(), EffectError> {
        self.mark_placement(key, json!(key.name), json!(key.namespace), true).await
    }

    pub(super) async fn release_placement(&self, key: &ObjectKey) -> Result<(), EffectError> {
        self.mark_placement(key, Value::Null, Value::Null, false).await
    }

    async fn mark_placement(
        &self,
        key: &ObjectKey,
        name: Value,
        space: Value,
        on: bool,
    ) -> Result<(), EffectError> {
        let world = self.known(key)?;
        let notes = json!({ annotations::DRPC_NAME: name, annotations::DRPC_NAMESPACE: space });
        let metadata = |mut guard: Value, finalizers: Vec<String>| {
            guard["finalizers"] = json!(finalizers);
            guard["annotations"] = notes.clone();
            Patch::Merge(json!({ "metadata": guard }))
        };
        if let Some(placement) = &world.placement {
            let place = ObjectKey::of(&**placement);
            let patch = metadata(placement.guard(), with_finalizer(&**placement, on));
            self.watched.placements.patch(&place, &patch).await?;
            if placement.is_going() {
                self.watched.placements.read(&place).await?;
            }
        }
        if let Some(rule) = &world.rule {
            let place = ObjectKey::of(&**rule);
            let patch = metadata(rule.guard(), with_finalizer(&**rule, on));
            self.watched.rules.patch(&place, &patch).await?;
            if rule.is_going() {
                self.watched.rules.read(&place).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn unfinalize(&self, key: &ObjectKey) -> Result<(), EffectError> {
        let live = self.live(key).await?;
        let mut metadata = live.guard();
        metadata["finalizers"] = json!(with_finalizer(&*live, false));
        self.watched.drpcs.patch(key, &Patch::Merge(json!({ "metadata": metadata }))).await?;
        self.watched.drpcs.read(key).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_set_says_where_it_deploys() {
        let set = |placement: &str, space: &str| {
            json!({ "spec": {
                "generators": [
                    { "list": {} },
                    { "clusterDecisionResource": { "labelSelector": { "matchLabels": { labels::PLACEMENT: placement } } } },
                ],
                "template": { "spec": { "destination": { "namespace": space, "server": "{{server}}" } } },
            } })
        };
        let check = |set: Value, expected: Option<&str>| {
            assert_eq!(destination(&set, "web").as_deref(), expected, "{set}");
        };
        check(set("web", "shop"), Some("shop"));
        check(set("other", "shop"), None);
        check(set("web", ""), None);
        check(set("web", "{{namespace}}"), None);
        check(json!({ "spec": {} }), None);
    }
}
