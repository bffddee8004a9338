//! Every rule about a policy. Pure.

use super::peers::{Peers, peers};
use super::why::Wait;
use super::world::{Member, Other, World};
use crate::cluster::survey;
use crate::words::Words as _;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lifeboat_api::conditions::drpolicy;
use lifeboat_api::ramen::{DRPolicyStatus, NetworkAttachment, NetworkPeer, PeerClasses};
use lifeboat_api::{Interval, finalizers, labels};
use lifeboat_engine::Decision;
use lifeboat_engine::conditions::{Conditions, Holds};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What can be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Effect {
    /// Puts our finalizer and the label for the hub's own backup on.
    Adopt,
    /// Takes the finalizer off.
    Release,
    /// Makes the operations namespace on the hub.
    MakeNamespace {
        /// Its name.
        name: String,
    },
}

/// What is decided about a policy.
pub type PolicyDecision = Decision<Effect, Wait, DRPolicyStatus>;

/// What became of looking at both clusters.
enum Common {
    Known(Peers),
    AsBefore(String),
}

/// Every rule.
pub fn decide(world: &World, now: Timestamp) -> PolicyDecision {
    let policy = &world.policy;
    let held = policy.has_finalizer(finalizers::DRPOLICY);
    if policy.is_going() {
        return leave(world, held, now);
    }
    let labelled = policy.label(labels::OCM_BACKUP) == Some(labels::OCM_BACKUP_VALUE);
    if !held || !labelled {
        return with_trouble(world, Effect::Adopt, drpolicy::REASON_FINALIZER_ADD_FAILED, now);
    }
    if let Some(ops) = world.ops.as_ref().filter(|ops| !ops.exists) {
        let make = Effect::MakeNamespace { name: ops.name.clone() };
        return with_trouble(world, make, drpolicy::REASON_NAMESPACE_CREATE_FAILED, now);
    }
    let common = common(world);
    let mut status = policy.status.clone().unwrap_or_default();
    drop_condition(&mut status.conditions, drpolicy::TYPE_DELETED);
    if let Common::Known(peers) = &common {
        status.sync = listed(&peers.sync);
        status.async_ = listed(&peers.copied);
    }
    let set = Conditions { generation: policy.metadata.generation, now };
    let networks = networks(world, &mut status, set);
    let problem = world
        .config
        .clone()
        .map_err(Wait::NoConfig)
        .and_then(|()| sound(world))
        .and_then(|()| agrees(world, &status))
        .and(networks);
    match (problem, common) {
        (Err(wait), _) => {
            let said = wait.to_string();
            set.set(&mut status.conditions, drpolicy::TYPE_VALIDATED, Holds::False, wait.condition(), said);
            Decision::wait(wait).showing(status)
        }
        (Ok(()), Common::AsBefore(which)) => {
            let wait = Wait::Unsurveyed(which);
            let said = format!("drpolicy validated; {wait}");
            set.set(
                &mut status.conditions,
                drpolicy::TYPE_VALIDATED,
                Holds::True,
                drpolicy::REASON_SUCCEEDED,
                said,
            );
            Decision::wait(wait).showing(status)
        }
        (Ok(()), Common::Known(_)) => {
            let missed = missed(world);
            let said = match &missed {
                None => "drpolicy validated".to_owned(),
                Some(why) => format!("drpolicy validated; {why}"),
            };
            let reason = drpolicy::REASON_SUCCEEDED;
            set.set(&mut status.conditions, drpolicy::TYPE_VALIDATED, Holds::True, reason, said);
            missed
                .map_or_else(Decision::settled, |why| Decision::wait(Wait::StoresMissed(why)))
                .showing(status)
        }
    }
}

fn leave(world: &World, held: bool, now: Timestamp) -> PolicyDecision {
    if !held {
        return Decision::settled();
    }
    if world.users.is_empty() {
        return Decision::act([Effect::Release]);
    }
    let wait = Wait::InUse(world.users.clone());
    let mut status = world.policy.status.clone().unwrap_or_default();
    let set = Conditions { generation: world.policy.metadata.generation, now };
    let said = wait.to_string();
    set.set(&mut status.conditions, drpolicy::TYPE_DELETED, Holds::False, drpolicy::REASON_IN_USE, said);
    Decision::wait(wait).showing(status)
}

/// An effect before which nothing else is decided; that it failed is shown under a reason of its own.
fn with_trouble(world: &World, effect: Effect, reason: &str, now: Timestamp) -> PolicyDecision {
    let decision = Decision::act([effect]);
    let Some(trouble) = &world.trouble else { return decision };
    let mut status = world.policy.status.clone().unwrap_or_default();
    let set = Conditions { generation: world.policy.metadata.generation, now };
    let said = trouble.message.clone();
    set.set(&mut status.conditions, drpolicy::TYPE_VALIDATED, Holds::False, reason, said);
    decision.showing(status)
}

/// The shortest interval in seconds: a mover without a schedule rests that long between two copies.
const SHORTEST: i64 = 5;

/// Whether the policy can be meant, and its clusters can be used.
fn sound(world: &World) -> Result<(), Wait> {
    let spec = &world.policy.spec;
    let names: BTreeSet<&String> = spec.dr_clusters.iter().collect();
    if spec.dr_clusters.len() != 2 || names.len() != 2 {
        let named = spec.dr_clusters.join(", ");
        return Err(Wait::Invalid(format!(
            "a policy names two different clusters, this one names {named:?}"
        )));
    }
    let interval =
        Interval::parse(&spec.scheduling_interval).map_err(|bad| Wait::Invalid(bad.to_string()))?;
    if interval.is_some_and(|interval| interval.seconds() < SHORTEST) {
        return Err(Wait::Invalid(format!(
            "the interval {} is too short: copies follow one another every {SHORTEST}s at the most",
            spec.scheduling_interval
        )));
    }
    let missing: Vec<String> = spec
        .dr_clusters
        .iter()
        .filter(|name| world.members.get(*name).is_none_or(|member| member.validated.is_none()))
        .cloned()
        .collect();
    if !missing.is_empty() {
        return Err(Wait::ClustersMissing(missing));
    }
    let unidentified = |(name, member): (&String, &Member)| {
        (member.managed.joined && member.managed.id.is_none()).then(|| name.clone())
    };
    if let Some(name) = world.members.iter().find_map(unidentified) {
        return Err(Wait::ClusterUnidentified(name));
    }
    // One is enough: a policy has to outlive the loss of the other.
    if !world.members.values().any(|member| member.validated == Some(true)) {
        return Err(Wait::ClustersUnusable(spec.dr_clusters.clone(), missed(world)));
    }
    Ok(())
}

/// Which clusters do not reach which stores, by their own word. The policy stays valid: a store may be lost with its cluster.
fn missed(world: &World) -> Option<String> {
    let each = world.members.iter().filter_map(|(name, member)| {
        let known = member.survey.known().filter(|_| member.managed.reach.is_fresh())?;
        survey::unreached(name, &known.out_of_reach())
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join("; "))
}

/// Whether it agrees with itself and with older policies.
fn agrees(world: &World, status: &DRPolicyStatus) -> Result<(), Wait> {
    let has =
        |classes: &Option<PeerClasses>| classes.as_ref().is_some_and(|one| !one.peer_classes.is_empty());
    let (metro, copied) = (has(&status.sync), has(&status.async_));
    if metro && copied {
        return Err(Wait::Conflict(
            "the clusters share some storage classes and replicate others: a policy is one or the other; label the classes so that one kind is left"
                .to_owned(),
        ));
    }
    let policy = &world.policy;
    let ours = (policy.metadata.creation_timestamp.as_ref().map(|time| time.0), policy.name().to_owned());
    let older = world.others.iter().filter(|other| (other.created, other.name.clone()) < ours);
    let shared = |other: &Other| {
        let shared = policy.spec.dr_clusters.iter().find(|name| other.clusters.contains(name));
        shared.filter(|_| metro || other.metro).map(|cluster| (other.name.clone(), cluster.clone()))
    };
    match older.filter_map(shared).next() {
        Some((other, cluster)) => Err(Wait::Conflict(format!(
            "the older policy {other} has cluster {cluster} too, and one of the two is for synchronous storage: a cluster with synchronous storage has one policy"
        ))),
        None => Ok(()),
    }
}

/// What both clusters have, if both are known to have it now. A silent cluster takes nothing away from what is shown.
fn common(world: &World) -> Common {
    let mut known = Vec::new();
    for name in &world.policy.spec.dr_clusters {
        let Some(member) = world.members.get(name) else {
            return Common::AsBefore(format!("{name} is not known"));
        };
        if let crate::views::Reach::Silent(why) = &member.managed.reach {
            return Common::AsBefore(why.clone());
        }
        match member.survey.complete() {
            Ok(found) => known.push(&found.classes),
            Err(why) => return Common::AsBefore(format!("cluster {name} {why}")),
        }
    }
    match known[..] {
        [one, other] => Common::Known(peers(one, other, &world.policy.spec.scheduling_interval)),
        _ => Common::AsBefore("a policy names two clusters".to_owned()),
    }
}

fn listed(classes: &[lifeboat_api::ramen::PeerClass]) -> Option<PeerClasses> {
    (!classes.is_empty()).then(|| PeerClasses { peer_classes: classes.to_vec() })
}

/// Networks that mappings are made for must be on both clusters; only where mappings are used.
fn networks(world: &World, status: &mut DRPolicyStatus, set: Conditions) -> Result<(), Wait> {
    let used = world.policy.spec.network_mapping_ref.as_ref().is_some_and(|named| !named.name.is_empty());
    if !used {
        status.network_peers.clear();
        drop_condition(&mut status.conditions, drpolicy::TYPE_NETWORK_ATTACHMENTS_VALIDATED);
        return Ok(());
    }
    let mut seen: BTreeMap<(String, String), BTreeMap<String, String>> = BTreeMap::new();
    for (name, member) in &world.members {
        // What a cluster has not told yet is not missing.
        let Some(known) = member.survey.known() else { return Ok(()) };
        for NetworkAttachment { name: network, namespace, cni_type } in &known.told.network_attachments {
            let place = seen.entry((namespace.clone(), network.clone())).or_default();
            place.insert(name.clone(), cni_type.clone().unwrap_or_default());
        }
    }
    let everywhere = |on: &BTreeMap<String, String>| on.len() == world.members.len();
    status.network_peers = seen
        .iter()
        .filter(|(_, on)| everywhere(on))
        .map(|((namespace, network), on)| NetworkPeer {
            nad_name: network.clone(),
            nad_namespace: namespace.clone(),
            cluster_cni_types: on.clone(),
        })
        .collect();
    let missing: Vec<String> = seen
        .iter()
        .filter(|(_, on)| !everywhere(on))
        .map(|((namespace, network), on)| {
            let there: Vec<&str> = on.keys().map(String::as_str).collect();
            format!("{namespace}/{network} is on {} only", there.join(", "))
        })
        .collect();
    let type_ = drpolicy::TYPE_NETWORK_ATTACHMENTS_VALIDATED;
    if missing.is_empty() {
        let said = "networks are on both clusters";
        set.set(&mut status.conditions, type_, Holds::True, drpolicy::REASON_VALIDATED, said);
        return Ok(());
    }
    let said = missing.join("; ");
    set.set(&mut status.conditions, type_, Holds::False, drpolicy::REASON_NADS_MISSING, said.clone());
    Err(Wait::NetworksDiffer(said))
}

fn drop_condition(conditions: &mut Vec<Condition>, type_: &str) {
    conditions.retain(|condition| condition.type_ != type_);
}
