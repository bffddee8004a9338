//! Puts the controller of DRPolicies on an engine and says what wakes it; observes and acts.

use super::decide::{Effect, PolicyDecision, decide};
use super::is_metro;
use super::why::Wait;
use super::world::{Member, OpsNamespace, Other, World};
use crate::cluster::Watched;
use crate::words::{Words as _, difference};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ObjectReference};
use kube::api::{ObjectMeta, Patch};
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::conditions::drcluster;
use lifeboat_api::ramen::{DRCluster, DRPlacementControl, DRPolicy, DRPolicyStatus};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_engine::conditions::holds;
use lifeboat_engine::{Change, Class, Controller, EffectError, Engine, ObjectKey, Trouble, Wiring};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The controller of DRPolicies.
pub struct Policies {
    watched: Watched,
}

/// Puts the controller on an engine.
pub fn controller(engine: &mut Engine, watched: &Watched) -> Wiring<ObjectKey> {
    let wiring = engine.controller(Policies { watched: watched.clone() });
    let naming = |watched: &Watched| {
        let policies = watched.policies_of.clone();
        move |name: &str| {
            let named = policies.get(&name.to_owned());
            named.iter().map(|policy| ObjectKey::of(&**policy)).collect::<Vec<_>>()
        }
    };
    let every = |watched: &Watched| {
        let policies = watched.policies.clone();
        move || policies.all().iter().map(|one| ObjectKey::of(&**one)).collect::<Vec<_>>()
    };
    let (of_cluster, of_managed, of_lease, of_view, of_policy) =
        (naming(watched), naming(watched), naming(watched), naming(watched), naming(watched));
    let seen = watched.clone();
    let (of_config, of_namespace) = (every(watched), every(watched));
    wiring
        .woken_by(&watched.policies, move |change: &Change<DRPolicy>| {
            // Those that share a cluster with it may stand in its way, or it in theirs.
            let named: BTreeSet<String> =
                change.versions().flat_map(|policy| policy.spec.dr_clusters.clone()).collect();
            let near = named.iter().flat_map(|name| of_policy(name));
            near.chain([change.key()]).collect::<BTreeSet<_>>()
        })
        .woken_by(&watched.clusters, move |change: &Change<DRCluster>| of_cluster(change.latest().name()))
        .woken_by(&watched.managed, move |change: &Change<ManagedCluster>| of_managed(change.latest().name()))
        .woken_by(&watched.leases, move |change: &Change<Lease>| {
            seen.revived(change).map(|name| of_lease(&name)).unwrap_or_default()
        })
        .woken_by(&watched.views, move |change: &Change<ManagedClusterView>| {
            change.latest().note(annotations::DRPOLICY).map(&of_view).unwrap_or_default()
        })
        .woken_by(&watched.drpcs, |change: &Change<DRPlacementControl>| {
            // Only one that comes or goes changes who uses a policy.
            let stays = change.old.is_some() && change.new.is_some();
            let named = change.latest().spec.dr_policy_ref.name.clone().filter(|_| !stays);
            named.map(ObjectKey::cluster_wide)
        })
        .woken_by(&watched.config, move |_: &Change<ConfigMap>| of_config())
        .woken_by(&watched.namespaces, move |change: &Change<Namespace>| {
            let stays = change.old.is_some() && change.new.is_some();
            if stays { Vec::new() } else { of_namespace() }
        })
}

impl Policies {
    fn policy(&self, key: &ObjectKey) -> Result<Arc<DRPolicy>, EffectError> {
        let gone = || EffectError::new(Class::Stale, format!("DRPolicy {key} is gone"));
        self.watched.policies.get(key).ok_or_else(gone)
    }

    fn member(&self, name: &str) -> Member {
        let known = self.watched.clusters.get(&ObjectKey::cluster_wide(name));
        let validated = known.map(|cluster| {
            let shown =
                cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
            holds(shown, drcluster::TYPE_VALIDATED, cluster.metadata.generation) && !cluster.is_going()
        });
        Member { validated, managed: self.watched.managed(name), survey: self.watched.survey(name) }
    }

    fn others(&self, policy: &DRPolicy) -> Vec<Other> {
        let near = policy.spec.dr_clusters.iter().flat_map(|name| self.watched.policies_of.get(name));
        let mut others: Vec<Other> = near
            .filter(|other| other.name() != policy.name() && !other.is_going())
            .map(|other| Other {
                name: other.name().to_owned(),
                created: other.metadata.creation_timestamp.as_ref().map(|time| time.0),
                clusters: other.spec.dr_clusters.clone(),
                metro: is_metro(&other),
            })
            .collect();
        others.sort_by(|one, other| one.name.cmp(&other.name));
        others.dedup();
        others
    }

    async fn finalizer(&self, key: &ObjectKey, on: bool) -> Result<(), EffectError> {
        let policy = self.policy(key)?;
        let mut metadata = policy.guard();
        let mut names = policy.metadata.finalizers.clone().unwrap_or_default();
        names.retain(|name| name != finalizers::DRPOLICY);
        if on {
            names.push(finalizers::DRPOLICY.to_owned());
            metadata["labels"] = json!({ labels::OCM_BACKUP: labels::OCM_BACKUP_VALUE });
        }
        metadata["finalizers"] = json!(names);
        self.watched.policies.patch(key, &Patch::Merge(json!({ "metadata": metadata }))).await?;
        if !on {
            self.watched.policies.read(key).await?;
        }
        Ok(())
    }
}

impl Controller for Policies {
    const NAME: &'static str = "drpolicies";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Wait;
    type Status = DRPolicyStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        let policy = self.watched.policies.get(key)?;
        let config = self.watched.settings();
        let ops = config.as_ref().ok().and_then(|config| config.ops_namespace.clone()).map(|name| {
            let exists = self.watched.namespaces.get(&ObjectKey::cluster_wide(name.clone())).is_some();
            OpsNamespace { name, exists }
        });
        let members = policy.spec.dr_clusters.iter().map(|name| (name.clone(), self.member(name)));
        let users = self.watched.users_of.get(&policy.name().to_owned());
        Some(World {
            config: config.map(drop),
            ops,
            members: members.collect(),
            others: self.others(&policy),
            users: users.iter().map(|drpc| ObjectKey::of(&**drpc).to_string()).collect(),
            trouble: trouble.cloned(),
            policy,
        })
    }

    fn decide(world: &World, now: Timestamp) -> PolicyDecision {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        match effect {
            Effect::Adopt => self.finalizer(key, true).await,
            Effect::Release => self.finalizer(key, false).await,
            Effect::MakeNamespace { name } => {
                let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
                self.watched
                    .namespaces
                    .create(&Namespace { metadata, ..Namespace::default() })
                    .await
                    .map(drop)
            }
        }
    }

    fn shown(world: &World) -> Option<&DRPolicyStatus> {
        world.policy.status.as_ref()
    }

    async fn show(&self, world: &World, status: DRPolicyStatus) -> Result<(), EffectError> {
        let shown = world.policy.status.clone().unwrap_or_default();
        let patch = json!({ "metadata": world.policy.guard(), "status": difference(&shown, &status)? });
        let key = ObjectKey::of(&*world.policy);
        self.watched.policies.patch_status(&key, &Patch::Merge(patch)).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(crate::cluster::reference("DRPolicy", &*world.policy))
    }
}
