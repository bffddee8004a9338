//! Rules as tables: a world, changed in one point, and what is decided about it.

mod admission;
mod deletion;
mod flows;
mod guards;
mod orphans;
mod recovery;
mod relocation;
mod restart;
mod told;

use jiff::Timestamp;
use kube::api::ObjectMeta;
use lifeboat_api::ramen::{ReplicationState, VolumeReplicationGroup};
use lifeboat_engine::{Next, Why as _};
use lifeboat_hub::drpc::commission::{Act, Commission};
use lifeboat_hub::drpc::decide::{DrpcDecision, Effect, decide};
use lifeboat_hub::drpc::group;
use lifeboat_hub::drpc::stores::{Books, Reading};
use lifeboat_hub::drpc::world::{Chosen, GroupWords as _, Site, World};
use lifeboat_hub::views::Seen;
use serde_json::{Value, json};
use std::sync::Arc;

pub fn now() -> Timestamp {
    "2030-01-01T12:00:00Z".parse().unwrap()
}

fn said(type_: &str, status: &str, generation: i64) -> Value {
    json!({
        "type": type_, "status": status, "reason": "R", "message": "m", "observedGeneration": generation,
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    })
}

fn read<K: serde::de::DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn site(name: &str) -> Site {
    let available = said("ManagedClusterConditionAvailable", "True", 1);
    Site {
        name: name.to_owned(),
        drcluster: Some(read(
            json!({ "metadata": { "name": name, "generation": 1 }, "spec": { "s3ProfileName": format!("s3-{name}") } }),
        )),
        managed: Some(read(
            json!({ "metadata": { "name": name }, "spec": {}, "status": { "conditions": [available] } }),
        )),
        beat: None,
        space_work: None,
        key_work: None,
        work: None,
        intent: None,
        view: None,
        seen: Seen::Absent,
    }
}

/// A new application that everybody has agreed to protect.
pub fn new() -> World {
    let notes = json!({
        "drplacementcontrol.ramendr.openshift.io/drpc-name": "web",
        "drplacementcontrol.ramendr.openshift.io/drpc-namespace": "shop",
        "cluster.open-cluster-management.io/experimental-scheduling-disable": "true",
    });
    let finalizer = json!(["drpc.ramendr.openshift.io/finalizer"]);
    let world = World {
        drpc: read(json!({
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "drpc", "resourceVersion": "1", "generation": 1,
                "finalizers": finalizer,
                "labels": { "cluster.open-cluster-management.io/backup": "ramen" },
                "annotations": { "drplacementcontrol.ramendr.openshift.io/app-namespace": "shop" },
                "ownerReferences": [{ "apiVersion": "v1", "kind": "Placement", "name": "web", "uid": "placement" }],
            },
            "spec": {
                "placementRef": { "name": "web" }, "drPolicyRef": { "name": "both" },
                "pvcSelector": {}, "preferredCluster": "east",
            },
        })),
        placement: Some(read(json!({
            "metadata": { "name": "web", "namespace": "shop", "uid": "placement", "annotations": notes, "finalizers": finalizer },
            "spec": { "numberOfClusters": 1 },
        }))),
        decisions: Vec::new(),
        rule: None,
        policy: Some(read(json!({
            "metadata": { "name": "both" },
            "spec": { "drClusters": ["east", "west"], "schedulingInterval": "5m" },
            "status": { "conditions": [said("Validated", "True", 1)] },
        }))),
        sites: ["east", "west"].map(|name| (name.to_owned(), site(name))).into(),
        books: Books { reading: Some(Reading::default()), read_at: Some(now()) },
        trouble: None,
        fleet: None,
        fleet_wanted: false,
    };
    ["east", "west"].into_iter().fold(world, asked)
}

/// A cluster has been asked for its group.
pub fn asked(mut world: World, cluster: &str) -> World {
    let view = group::view(&world, cluster);
    world.sites.get_mut(cluster).unwrap().view = Some(Arc::new(view));
    world
}

/// Changes something that is shared.
pub fn edit<K: Clone>(object: &mut Arc<K>, change: impl FnOnce(&mut K)) {
    change(Arc::make_mut(object));
}

pub trait Changes: Sized {
    fn with(self, change: impl FnOnce(&mut Self)) -> Self;
    /// What the user asks for.
    fn asks(self, spec: Value) -> Self;
    /// The commission on record, and the phase that is shown with it.
    fn given(self, epoch: i64, holder: &str, act: Act, phase: &str) -> Self;
    /// Where the application is.
    fn placed(self, chosen: &[Chosen]) -> Self;
    /// What a cluster was sent, and shows.
    fn has(self, cluster: &str, role: &str, change: impl FnOnce(&mut VolumeReplicationGroup)) -> Self;
    /// What a cluster shows, though it was sent something else or nothing.
    fn shows(self, cluster: &str, change: impl FnOnce(&mut VolumeReplicationGroup)) -> Self;
    /// A cluster is not heard of.
    fn silent(self, cluster: &str) -> Self;
}

impl Changes for World {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn asks(self, spec: Value) -> Self {
        self.with(|world| {
            edit(&mut world.drpc, |drpc| {
                let mut all = serde_json::to_value(&drpc.spec).unwrap();
                for (key, value) in spec.as_object().unwrap() {
                    all[key] = value.clone();
                }
                drpc.spec = serde_json::from_value(all).unwrap();
            });
        })
    }

    fn given(self, epoch: i64, holder: &str, act: Act, phase: &str) -> Self {
        self.with(|world| {
            let commission = Commission { epoch, holder: holder.to_owned(), act };
            edit(&mut world.drpc, |drpc| {
                let notes = drpc.metadata.annotations.get_or_insert_default();
                notes.extend(commission.notes());
                notes.insert(
                    "drplacementcontrol.ramendr.openshift.io/last-app-deployment-cluster".into(),
                    holder.into(),
                );
                let action = act.action().map_or(String::new(), |action| action.as_str().to_owned());
                notes.insert("drplacementcontrol.ramendr.openshift.io/last-action".into(), action);
                drpc.status = serde_json::from_value(
                    json!({ "phase": phase, "epoch": epoch, "observedGeneration": 1 }),
                )
                .unwrap();
            });
        })
    }

    fn placed(self, chosen: &[Chosen]) -> Self {
        self.with(|world| {
            let reason = |one: &Chosen| if one.retained { "RetainedForFailover" } else { "" };
            let all: Vec<Value> =
                chosen.iter().map(|one| json!({ "clusterName": one.cluster, "reason": reason(one) })).collect();
            let decision = json!({ "metadata": { "name": "web-decision-1", "namespace": "shop" }, "status": { "decisions": all } });
            world.decisions = vec![read(decision)];
        })
    }

    fn has(self, cluster: &str, role: &str, change: impl FnOnce(&mut VolumeReplicationGroup)) -> Self {
        let known = self.commission().unwrap();
        let builder = group::Builder::new(&self, &known, now());
        let there = self.site(cluster).unwrap();
        let mut made = match role {
            "primary" => builder.primary(there, group::FinalSync::None),
            _ => builder.secondary(there),
        };
        change(&mut made);
        let mut work = group::work(&self, cluster, &made);
        work.metadata.resource_version = Some("7".into());
        let space = group::space_work(&self, cluster);
        let state = if made.is_primary() { "Primary" } else { "Secondary" };
        let mut seen = made.clone();
        seen.metadata.generation = Some(4);
        let conditions: Vec<Value> =
            ["DataReady", "DataProtected", "ClusterDataReady", "ClusterDataProtected"]
                .map(|type_| said(type_, "True", 4))
                .into();
        let epoch = known.epoch;
        seen.status = serde_json::from_value(json!({
            "state": state, "observedGeneration": 4, "conditions": conditions, "epoch": epoch,
            "primaryEpoch": made.is_primary().then_some(epoch), "lastGroupSyncTime": "2030-01-01T11:58:00Z",
            "protectedPVCs": if made.is_primary() { json!([{ "name": "data", "namespace": "shop" }]) } else { json!([]) },
        }))
        .unwrap();
        self.with(|world| {
            let site = world.sites.get_mut(cluster).unwrap();
            site.work = Some(Arc::new(work));
            site.space_work = Some(Arc::new(space));
            site.intent = Some(made);
            site.seen = Seen::Found(Arc::new(seen));
        })
    }

    fn shows(self, cluster: &str, change: impl FnOnce(&mut VolumeReplicationGroup)) -> Self {
        self.with(|world| {
            let site = world.sites.get_mut(cluster).unwrap();
            let mut seen = match &site.seen {
                Seen::Found(seen) => (**seen).clone(),
                _ => {
                    let metadata = ObjectMeta { generation: Some(4), ..ObjectMeta::default() };
                    let status = json!({ "state": "Secondary", "observedGeneration": 4 });
                    let status = serde_json::from_value(status).unwrap();
                    VolumeReplicationGroup {
                        metadata,
                        status: Some(status),
                        ..VolumeReplicationGroup::default()
                    }
                }
            };
            change(&mut seen);
            site.seen = Seen::Found(Arc::new(seen));
        })
    }

    fn silent(self, cluster: &str) -> Self {
        self.with(|world| {
            let managed = world.sites.get_mut(cluster).unwrap().managed.as_mut().unwrap();
            edit(managed, |managed| {
                managed.status.as_mut().unwrap().conditions[0].status = "Unknown".into();
            });
        })
    }
}

/// An application that was deployed on east, protected on west.
pub fn deployed() -> World {
    new()
        .given(1, "east", Act::Deploy, "Deployed")
        .placed(&[Chosen::home("east")])
        .has("east", "primary", |_| {})
        .has("west", "secondary", |_| {})
}

fn describe(effect: &Effect) -> String {
    match effect {
        Effect::Commission { commission, .. } => {
            format!("Commission {} {} {}", commission.epoch, commission.holder, commission.act)
        }
        Effect::PutGroup { cluster, role, group, .. } => {
            let role = if *role == ReplicationState::Primary { "primary" } else { "secondary" };
            let last = match (group.spec.prepare_for_final_sync, group.spec.run_final_sync) {
                (true, _) => " prepare",
                (_, true) => " run",
                _ => "",
            };
            format!("PutGroup {cluster} {role}{last}")
        }
        Effect::Place { chosen } => {
            let all: Vec<String> = chosen
                .iter()
                .map(|one| if one.retained { format!("({})", one.cluster) } else { one.cluster.clone() })
                .collect();
            format!("Place [{}]", all.join(" "))
        }
        Effect::Watch { cluster }
        | Effect::PutSpace { cluster }
        | Effect::Adopt { cluster, .. }
        | Effect::EndProtection { cluster, .. }
        | Effect::TakeBackGroup { cluster, .. }
        | Effect::TakeBackRest { cluster } => format!("{} {cluster}", lifeboat_engine::variant(effect)),
        other => lifeboat_engine::variant(other),
    }
}

/// A decision in one line: what is done or waited for, and the phase and step that are told.
pub fn line(decision: &DrpcDecision) -> String {
    let next = match &decision.next {
        Next::Do(effects) => effects.iter().map(describe).collect::<Vec<_>>().join(", "),
        Next::Wait { why, .. } => format!("wait {}", why.reason()),
        Next::Settled => "settled".to_owned(),
    };
    match &decision.status {
        None => next,
        Some(status) => {
            let phase = status.phase.as_ref().map_or("-", |phase| phase.as_str());
            let step = status.progression.as_ref().map_or("-", |step| step.as_str());
            let recorded = if decision.on_record { ", on record" } else { "" };
            format!("{next}{recorded} | {phase}/{step}")
        }
    }
}

#[track_caller]
pub fn check(world: &World, expected: &str) {
    let decision = decide(world, now());
    assert_eq!(line(&decision), expected, "{:#?}", decision.status.map(|status| status.blockers));
}
