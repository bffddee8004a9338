//! VolumeReplications, senders, receivers and images: made with our labels, changed and deleted only where they carry them.

use super::stale;
use crate::decide::replicated::{GROUP_KIND, is_left_to};
use crate::view::Groups;
use crate::words::{OwnedWords as _, Words as _, made_labels, mover_labels};
use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ObjectMeta, Patch};
use lifeboat_api::multicluster::ServiceExport;
use lifeboat_api::replication::{ReplicationState, VolumeReplication, VolumeReplicationSpec};
use lifeboat_api::volsync::{
    ReplicationDestination, ReplicationDestinationSpec, ReplicationSource, ReplicationSourceSpec,
};
use lifeboat_api::{annotations, labels};
use lifeboat_engine::{EffectError, ObjectKey, Objects, difference};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

fn of(group: &ObjectKey, name: &str, labels: BTreeMap<String, String>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(group.namespace.clone()),
        labels: Some(labels),
        annotations: Some(
            [
                (annotations::OWNER_NAME.to_owned(), group.name.clone()),
                (annotations::OWNER_NAMESPACE.to_owned(), group.namespace.clone()),
            ]
            .into(),
        ),
        ..ObjectMeta::default()
    }
}

/// An object of ours as the server has it now; nothing where there is none, an error where it is not ours.
async fn mine<K>(objects: &Objects<K>, group: &ObjectKey, name: &str) -> Result<Option<Arc<K>>, EffectError>
where
    K: kube::Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    let key = ObjectKey::new(group.namespace.clone(), name);
    let found = objects.read(&key).await?;
    match found {
        Some(found) if !found.is_owned_by(group) => Err(stale(format!("{} {key} is not ours", K::kind(&())))),
        found => Ok(found),
    }
}

async fn end<K>(objects: &Objects<K>, group: &ObjectKey, name: &str) -> Result<(), EffectError>
where
    K: kube::Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    match mine(objects, group, name).await? {
        Some(found) if !found.is_going() => objects.delete(&found).await,
        _ => Ok(()),
    }
}

/// Changes the spec of an object of ours, and nothing that is not named in it.
async fn change<K, S: Serialize>(
    objects: &Objects<K>,
    found: &K,
    before: &S,
    after: &S,
    notes: Option<Value>,
) -> Result<(), EffectError>
where
    K: kube::Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    let mut metadata = found.guard();
    if let Some(notes) = notes {
        metadata["annotations"] = notes;
    }
    let patch = json!({ "metadata": metadata, "spec": difference(before, after)? });
    objects.patch(&ObjectKey::of(found), &Patch::Merge(patch)).await.map(drop)
}

impl Groups {
    pub(super) async fn replicate(
        &self,
        group: &ObjectKey,
        name: &str,
        class: String,
        role: ReplicationState,
        auto_resync: bool,
    ) -> Result<(), EffectError> {
        let objects = &self.watched.replications;
        let Some(found) = mine(objects, group, name).await? else {
            if role != ReplicationState::Primary {
                return Err(stale(format!("the VolumeReplication {name} is gone")));
            }
            let spec = VolumeReplicationSpec {
                volume_replication_class: class,
                replication_state: role,
                data_source: TypedLocalObjectReference {
                    api_group: Some(String::new()),
                    kind: "PersistentVolumeClaim".to_owned(),
                    name: name.to_owned(),
                },
                auto_resync,
                replication_handle: None,
            };
            let made =
                VolumeReplication { metadata: of(group, name, made_labels(group)), spec, status: None };
            return objects.create(&made).await.map(drop);
        };
        let demotes = role == ReplicationState::Secondary && found.spec.replication_state != role;
        if demotes {
            self.still_unused(group, name).await?;
        }
        let mut spec = found.spec.clone();
        spec.replication_state = role;
        spec.auto_resync = auto_resync;
        change(objects, &*found, &found.spec, &spec, None).await
    }

    /// The owner reference goes with it: garbage collection would end the replication of a group that is deleted without an order to.
    pub(super) async fn take_over(&self, group: &ObjectKey, name: &str) -> Result<(), EffectError> {
        let (objects, key) = (&self.watched.replications, ObjectKey::new(group.namespace.clone(), name));
        let owner = self.group(group)?;
        let Some(found) = objects.read(&key).await?.filter(|found| !found.is_owned_by(group)) else {
            return Ok(());
        };
        if !is_left_to(&owner, &*found) {
            return Err(stale(format!("the VolumeReplication {key} is not this group's")));
        }
        let owners = found.metadata.owner_references.iter().flatten();
        let kept: Vec<_> = owners.filter(|owner| owner.kind != GROUP_KIND).collect();
        let mut metadata = found.guard();
        metadata["labels"] = json!(made_labels(group));
        metadata["ownerReferences"] = json!(kept);
        objects.patch(&key, &Patch::Merge(json!({ "metadata": metadata }))).await.map(drop)
    }

    pub(super) async fn end_replication(&self, group: &ObjectKey, name: &str) -> Result<(), EffectError> {
        end(&self.watched.replications, group, name).await
    }

    pub(super) async fn send(
        &self,
        group: &ObjectKey,
        name: &str,
        spec: ReplicationSourceSpec,
        last: bool,
    ) -> Result<(), EffectError> {
        if last {
            self.still_unused(group, name).await?;
        }
        let objects = &self.watched.sources;
        let Some(found) = mine(objects, group, name).await? else {
            let made =
                ReplicationSource { metadata: of(group, name, mover_labels(group)), spec, status: None };
            return objects.create(&made).await.map(drop);
        };
        change(objects, &*found, &found.spec, &spec, None).await
    }

    pub(super) async fn stop_sending(&self, group: &ObjectKey, name: &str) -> Result<(), EffectError> {
        end(&self.watched.sources, group, name).await
    }

    pub(super) async fn receive(
        &self,
        group: &ObjectKey,
        name: &str,
        spec: ReplicationDestinationSpec,
        roll_back_to: Option<String>,
    ) -> Result<(), EffectError> {
        let objects = &self.watched.destinations;
        let Some(found) = mine(objects, group, name).await? else {
            let made =
                ReplicationDestination { metadata: of(group, name, mover_labels(group)), spec, status: None };
            return objects.create(&made).await.map(drop);
        };
        let notes = json!({ annotations::ROLL_BACK_TO: roll_back_to });
        change(objects, &*found, &found.spec, &spec, Some(notes)).await
    }

    pub(super) async fn stop_receiving(&self, group: &ObjectKey, name: &str) -> Result<(), EffectError> {
        end(&self.watched.destinations, group, name).await
    }

    pub(super) async fn export(
        &self,
        group: &ObjectKey,
        claim: &str,
        service: &str,
    ) -> Result<(), EffectError> {
        let receiver = mine(&self.watched.destinations, group, claim).await?;
        let receiver = receiver.ok_or_else(|| stale(format!("the receiver {claim} is gone")))?;
        let mut metadata = of(group, service, mover_labels(group));
        metadata.owner_references = Some(vec![OwnerReference {
            api_version: <ReplicationDestination as kube::Resource>::api_version(&()).into_owned(),
            kind: <ReplicationDestination as kube::Resource>::kind(&()).into_owned(),
            name: claim.to_owned(),
            uid: receiver.uid().to_owned(),
            ..OwnerReference::default()
        }]);
        let export = ServiceExport { metadata, ..ServiceExport::default() };
        self.watched.exports.create(&export).await.map(drop)
    }

    pub(super) async fn keep_image(
        &self,
        group: &ObjectKey,
        claim: &str,
        image: &str,
    ) -> Result<(), EffectError> {
        let key = ObjectKey::new(group.namespace.clone(), image);
        let found =
            self.watched.images.read(&key).await?.ok_or_else(|| stale(format!("the image {key} is gone")))?;
        let mut all = mover_labels(group);
        all.insert(labels::VOLSYNC_DO_NOT_DELETE.to_owned(), "true".to_owned());
        let mut metadata = found.guard();
        metadata["labels"] = json!(all);
        metadata["annotations"] = json!({ annotations::IMAGE_OF: claim });
        self.watched.images.patch(&key, &Patch::Merge(json!({ "metadata": metadata }))).await.map(drop)
    }

    pub(super) async fn set_aside(&self, group: &ObjectKey, image: &str) -> Result<(), EffectError> {
        let key = ObjectKey::new(group.namespace.clone(), image);
        let Some(found) = self.watched.images.read(&key).await? else { return Ok(()) };
        let mut metadata = found.guard();
        metadata["labels"] = json!({ labels::VOLSYNC_DO_NOT_DELETE: "true" });
        self.watched.images.patch(&key, &Patch::Merge(json!({ "metadata": metadata }))).await.map(drop)
    }

    pub(super) async fn drop_image(&self, group: &ObjectKey, image: &str) -> Result<(), EffectError> {
        end(&self.watched.images, group, image).await
    }
}
