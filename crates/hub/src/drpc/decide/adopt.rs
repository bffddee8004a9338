//! Taking up groups that are on a cluster and in no work of ours: after a hub lost its works, an agent removes from its cluster what nobody asks for
//! any more. What is there is asked for exactly as it is, with our identity on it; no role changes.

use crate::drpc::decide::{Effect, Step};
use crate::drpc::world::{GroupWords as _, World};
use crate::words::Words as _;
use jiff::Timestamp;
use kube::api::ObjectMeta;
use lifeboat_api::annotations;
use lifeboat_api::ramen::VolumeReplicationGroup;

/// Takes up what is there, where anything is.
pub fn adopt(world: &World, now: Timestamp) -> Option<Step> {
    let sites = world.members().into_iter().filter_map(|name| world.site(name));
    let orphans = sites.filter(|site| site.work.is_none()).filter_map(|site| {
        let group = site
            .group(now)
            .filter(|group| !group.is_going() && !is_outdone(world, now, &site.name, group))?;
        Some(Effect::Adopt {
            cluster: site.name.clone(),
            group: Box::new(as_it_is(world, &site.name, group)),
        })
    });
    let effects: Vec<Effect> = orphans.collect();
    (!effects.is_empty()).then_some(Step::Do(effects, None))
}

/// Whether another cluster's primary came later, or nobody knows yet which came later: to ask for both would ask for two primaries.
fn is_outdone(world: &World, now: Timestamp, cluster: &str, group: &VolumeReplicationGroup) -> bool {
    let mut others = world.sites.values().filter(|site| site.name != cluster);
    group.is_primary()
        && others.any(|site| {
            let later =
                site.group(now).is_some_and(|rival| rival.is_primary() && rival.epoch() >= group.epoch());
            let unanswered = site.is_fresh(now) && !site.seen.is_answer();
            site.is_meant_primary() || later || unanswered
        })
}

/// The group as it is, as one would send it.
fn as_it_is(world: &World, cluster: &str, group: &VolumeReplicationGroup) -> VolumeReplicationGroup {
    let mut notes = group.metadata.annotations.clone().unwrap_or_default();
    notes.retain(|key, _| key.contains("ramendr.openshift.io/"));
    notes.insert(annotations::DRPC_UID.to_owned(), world.drpc.uid().to_owned());
    notes.insert(annotations::DESTINATION_CLUSTER.to_owned(), cluster.to_owned());
    // An order to end protection that a lost hub gave is not ours.
    if let Some(order) = notes.get_mut(annotations::END_PROTECTION) {
        "false".clone_into(order);
    }
    VolumeReplicationGroup {
        metadata: ObjectMeta {
            name: group.metadata.name.clone(),
            namespace: group.metadata.namespace.clone(),
            labels: group.metadata.labels.clone(),
            annotations: Some(notes),
            ..ObjectMeta::default()
        },
        spec: group.spec.clone(),
        status: None,
    }
}
