//! Observes managed clusters and carries out what was decided about them.

use super::decide::{self, Effect, Rights, Why, World};
use crate::access::{self, Access};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Namespace, ObjectReference};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::api::{ObjectMeta, Patch};
use lifeboat_api::cluster::{ManagedCluster, ManagedClusterStatus};
use lifeboat_api::conditions::fleet as words;
use lifeboat_api::labels;
use lifeboat_engine::{Change, Class, Controller, Decision, EffectError, ObjectKey, Objects, Trouble};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// When leases were seen to be renewed, by cluster.
#[derive(Default)]
pub(super) struct Sightings(Mutex<BTreeMap<String, Timestamp>>);

impl Sightings {
    pub fn saw(&self, change: &Change<Lease>, now: Timestamp) {
        let renewed = |lease: &Arc<Lease>| lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
        let cluster = change.key().namespace;
        match &change.new {
            None => drop(self.0.lock().remove(&cluster)),
            // The first sight of a lease tells nothing of when it was renewed.
            Some(new) if change.old.as_ref().is_some_and(|old| renewed(old) != renewed(new)) => {
                self.0.lock().insert(cluster, now);
            }
            Some(_) => {}
        }
    }

    fn of(&self, cluster: &str) -> Option<Timestamp> {
        self.0.lock().get(cluster).copied()
    }
}

/// The controller of managed clusters.
pub(super) struct Clusters {
    pub clusters: Objects<ManagedCluster>,
    pub namespaces: Objects<Namespace>,
    pub leases: Objects<Lease>,
    pub roles: Objects<Role>,
    pub role_bindings: Objects<RoleBinding>,
    pub cluster_roles: Objects<ClusterRole>,
    pub cluster_role_bindings: Objects<ClusterRoleBinding>,
    pub sightings: Arc<Sightings>,
}

impl Controller for Clusters {
    const NAME: &'static str = "clusters";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Why;
    type Status = ManagedClusterStatus;

    fn observe(&self, key: &ObjectKey, _trouble: Option<&Trouble>) -> Option<World> {
        let cluster = self.clusters.get(key)?;
        Some(World {
            cluster,
            namespace: self.namespaces.get(key),
            lease: self.leases.get(&ObjectKey::new(key.name.clone(), words::CLUSTER_LEASE)),
            renewal_seen: self.sightings.of(&key.name),
            rights: self.rights(&access::of(&key.name)),
        })
    }

    fn decide(world: &World, now: Timestamp) -> Decision<Effect, Why, ManagedClusterStatus> {
        decide::decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        let labels = [(labels::CLUSTER_NAME.to_owned(), key.name.clone())].into();
        match effect {
            Effect::MakeNamespace => {
                let metadata = ObjectMeta {
                    name: Some(key.name.clone()),
                    labels: Some(labels),
                    ..ObjectMeta::default()
                };
                self.namespaces.create(&Namespace { metadata, ..Namespace::default() }).await.map(drop)
            }
            Effect::LabelNamespace => {
                let patch = json!({ "metadata": { "labels": labels_json(&key.name) } });
                self.namespaces.patch(key, &Patch::Merge(patch)).await.map(drop)
            }
            Effect::MakeLease => {
                let metadata = ObjectMeta {
                    name: Some(words::CLUSTER_LEASE.to_owned()),
                    namespace: Some(key.name.clone()),
                    labels: Some(labels),
                    ..ObjectMeta::default()
                };
                // Without a time: nobody has been heard of yet.
                let holder_identity = Some(words::CLUSTER_LEASE.to_owned());
                let spec = LeaseSpec { holder_identity, ..LeaseSpec::default() };
                self.leases.create(&Lease { metadata, spec: Some(spec) }).await.map(drop)
            }
            Effect::Grant => self.grant(self.owned(key, access::of(&key.name))?).await,
            Effect::Revoke => self.revoke(&access::of(&key.name)).await,
        }
    }

    fn shown(world: &World) -> Option<&ManagedClusterStatus> {
        world.cluster.status.as_ref()
    }

    async fn show(&self, world: &World, status: ManagedClusterStatus) -> Result<(), EffectError> {
        if world.cluster.status.is_none() && status == ManagedClusterStatus::default() {
            return Ok(());
        }
        let shown = ManagedCluster { status: Some(status), ..(*world.cluster).clone() };
        self.clusters.replace_status(&shown).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(world.cluster.object_ref(&()))
    }

    fn forget(&self, key: &ObjectKey) {
        self.sightings.0.lock().remove(&key.name);
    }
}

impl Clusters {
    fn rights(&self, meant: &Access) -> Rights {
        let role = self.roles.get(&ObjectKey::of(&meant.role));
        let role_binding = self.role_bindings.get(&ObjectKey::of(&meant.role_binding));
        let cluster_role = self.cluster_roles.get(&ObjectKey::of(&meant.cluster_role));
        let wide = self.cluster_role_bindings.get(&ObjectKey::of(&meant.cluster_role_binding));
        let as_meant = role.as_ref().is_some_and(|role| role.rules == meant.role.rules)
            && cluster_role.as_ref().is_some_and(|role| role.rules == meant.cluster_role.rules)
            && role_binding.as_ref().is_some_and(|binding| binding.subjects == meant.role_binding.subjects)
            && wide.as_ref().is_some_and(|binding| binding.subjects == meant.cluster_role_binding.subjects);
        match as_meant {
            true => Rights::AsMeant,
            false if role_binding.is_none() && wide.is_none() => Rights::None,
            false => Rights::Otherwise,
        }
    }

    /// The same rights, which go when the cluster goes.
    fn owned(&self, key: &ObjectKey, mut meant: Access) -> Result<Access, EffectError> {
        let gone = || EffectError::new(Class::Stale, format!("managed cluster {key} is gone"));
        let cluster = self.clusters.get(key).ok_or_else(gone)?;
        let owner = OwnerReference {
            api_version: ManagedCluster::api_version(&()).into_owned(),
            kind: ManagedCluster::kind(&()).into_owned(),
            name: key.name.clone(),
            uid: cluster.metadata.uid.clone().unwrap_or_default(),
            ..OwnerReference::default()
        };
        for metadata in [
            &mut meant.role.metadata,
            &mut meant.role_binding.metadata,
            &mut meant.cluster_role.metadata,
            &mut meant.cluster_role_binding.metadata,
        ] {
            metadata.owner_references = Some(vec![owner.clone()]);
        }
        Ok(meant)
    }

    async fn grant(&self, meant: Access) -> Result<(), EffectError> {
        ensure(&self.roles, meant.role, |known, meant| known.rules = meant.rules).await?;
        ensure(&self.cluster_roles, meant.cluster_role, |known, meant| known.rules = meant.rules).await?;
        ensure(&self.role_bindings, meant.role_binding, |known, meant| known.subjects = meant.subjects)
            .await?;
        let wide = meant.cluster_role_binding;
        ensure(&self.cluster_role_bindings, wide, |known, meant| known.subjects = meant.subjects).await
    }

    async fn revoke(&self, meant: &Access) -> Result<(), EffectError> {
        if let Some(binding) = self.role_bindings.get(&ObjectKey::of(&meant.role_binding)) {
            self.role_bindings.delete(&binding).await?;
        }
        if let Some(binding) = self.cluster_role_bindings.get(&ObjectKey::of(&meant.cluster_role_binding)) {
            self.cluster_role_bindings.delete(&binding).await?;
        }
        Ok(())
    }
}

fn labels_json(cluster: &str) -> serde_json::Value {
    json!({ labels::CLUSTER_NAME: cluster })
}

/// Makes an object, or makes the one that is there as it should be.
async fn ensure<K>(objects: &Objects<K>, meant: K, change: impl FnOnce(&mut K, K)) -> Result<(), EffectError>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync + 'static,
{
    let Some(known) = objects.get(&ObjectKey::of(&meant)) else {
        return objects.create(&meant).await.map(drop);
    };
    let mut changed = (*known).clone();
    change(&mut changed, meant);
    if changed == *known { Ok(()) } else { objects.replace(&changed).await.map(drop) }
}
