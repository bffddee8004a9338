//! Cutting a cluster off from storage through its peer, and letting it back in.
//!
//! A fence is up when the peer, heard of just now, shows it as it is wanted and done. It comes down only on request: clearing the field
//! does not lift it. Neither needs anything of the fenced cluster.

use super::super::manifests::{self, Means};
use super::super::survey::Known;
use super::super::why::Wait;
use super::super::world::{Peer, World};
use super::{Effect, Plan};
use crate::secrets::{Carriage, carriage};
use crate::views::{Seen, seen};
use crate::words::Words as _;
use crate::works;
use lifeboat_api::annotations;
use lifeboat_api::conditions::drcluster as words;
use lifeboat_api::csiaddons::{FenceResult, FenceState, NetworkFence};
use lifeboat_api::labels;
use lifeboat_api::ramen::{ClusterFence, DRClusterPhase};
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::ObjectKey;
use lifeboat_engine::conditions::{Holds, holds};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One condition: whether it holds, why, and a sentence.
pub type Says = (Holds, &'static str, String);

/// What is said about the fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Where the cluster stands.
    pub phase: DRClusterPhase,
    /// Whether it is cut off.
    pub fenced: Says,
    /// Whether nothing of a fence is left.
    pub clean: Says,
}

fn said(
    phase: DRClusterPhase,
    fenced: (Holds, &'static str),
    clean: (Holds, &'static str),
    sentence: impl Into<String>,
) -> Said {
    let sentence = sentence.into();
    Said { phase, fenced: (fenced.0, fenced.1, sentence.clone()), clean: (clean.0, clean.1, sentence) }
}

/// A fence that is on the hub.
struct Standing<'a> {
    key: &'a ObjectKey,
    work: &'a Arc<ManifestWork>,
    fence: Option<NetworkFence>,
}

impl Standing<'_> {
    fn is_lifted(&self) -> bool {
        self.work.is_going()
            || self.fence.as_ref().is_some_and(|fence| fence.spec.fence_state == FenceState::Unfenced)
    }
}

/// What to do about the fence, and what to say of it.
pub fn judge(world: &World, plan: &mut Plan) -> Said {
    let standing: Vec<Standing<'_>> = world
        .works
        .iter()
        .filter(|(_, work)| manifests::is_fence(work))
        .map(|(key, work)| Standing { key, work, fence: works::read(work) })
        .collect();
    match &world.cluster.spec.cluster_fence {
        Some(ClusterFence::Fenced) => put_up(world, &standing, plan),
        Some(ClusterFence::ManuallyFenced) => said(
            DRClusterPhase::Fenced,
            (Holds::True, words::REASON_FENCED),
            (Holds::False, words::REASON_FENCED),
            "Cluster Manually fenced",
        ),
        Some(ClusterFence::ManuallyUnfenced) if standing.is_empty() => {
            clean(world, plan, DRClusterPhase::Unfenced, "Cluster Manually Unfenced and clean")
        }
        Some(ClusterFence::Unfenced | ClusterFence::ManuallyUnfenced) => take_down(world, &standing, plan),
        Some(ClusterFence::Other(_)) | None if standing.is_empty() => {
            clean(world, plan, DRClusterPhase::Available, "Cluster Clean")
        }
        // It was being taken down before; that was asked for.
        Some(ClusterFence::Other(_)) | None if standing.iter().all(Standing::is_lifted) => {
            take_down(world, &standing, plan)
        }
        Some(ClusterFence::Other(_)) | None => kept(world, &standing, plan),
    }
}

fn clean(world: &World, plan: &mut Plan, phase: DRClusterPhase, sentence: &str) -> Said {
    for (key, _) in world.views.iter().filter(|(_, view)| manifests::shows_fence(view)) {
        plan.stop_asking(key);
    }
    said(phase, (Holds::False, words::REASON_CLEAN), (Holds::True, words::REASON_CLEAN), sentence)
}

/// The field was cleared: nothing happens by omission.
fn kept(world: &World, standing: &[Standing<'_>], plan: &mut Plan) -> Said {
    let peers: BTreeSet<&str> = standing.iter().map(|one| one.key.namespace.as_str()).collect();
    let wait = Wait::FenceKept(peers.into_iter().collect::<Vec<_>>().join(", "));
    let up = standing.iter().all(|one| match &one.fence {
        Some(fence) => confirm(world, plan, &one.key.namespace, fence, one.work).is_ok(),
        None => false,
    });
    let fenced = if up { Holds::True } else { Holds::Unknown };
    let sentence = wait.to_string();
    plan.waits.push(wait);
    said(
        DRClusterPhase::Fenced,
        (fenced, words::REASON_FENCED),
        (Holds::False, words::REASON_FENCED),
        sentence,
    )
}

/// The cluster that can fence this one off: one that shares its storage, else one of the same region.
pub fn peer(world: &World) -> Option<(&String, &Peer)> {
    let others = |policy: &super::super::world::Policy| {
        let other = policy.clusters.iter().find(|name| *name != world.name())?.clone();
        world.peers.get_key_value(&other)
    };
    let policies = || world.policies.iter().filter(|policy| !policy.going);
    let region = world.cluster.spec.region.as_ref().filter(|region| !region.is_empty());
    policies().filter(|policy| policy.metro).find_map(others).or_else(|| {
        let near = |found: &(&String, &Peer)| region.is_some() && found.1.region.as_ref() == region;
        policies().filter_map(others).find(near)
    })
}

/// In which ways the storage can be fenced through a peer.
fn ways(world: &World, peer: &str, known: &Known) -> Result<Vec<Means>, Wait> {
    let fits = |class: &&crate::policy::peers::ClassFacts| {
        let fences: Vec<&str> = class
            .notes
            .get(annotations::STORAGE_ID)
            .map(|list| list.split(',').map(str::trim).collect())
            .unwrap_or_default();
        known.classes.storage.iter().any(|storage| {
            storage.driver == class.driver
                && storage.label(labels::STORAGE_ID).is_some_and(|id| fences.contains(&id))
        })
    };
    let classes: BTreeSet<&String> =
        known.classes.fences.iter().filter(fits).map(|class| &class.name).collect();
    if !classes.is_empty() {
        return Ok(classes.into_iter().cloned().map(Means::Class).collect());
    }
    let note = |key: &str| world.cluster.note(key).filter(|text| !text.is_empty()).map(str::to_owned);
    let named = || {
        Some(Means::Named {
            driver: note(annotations::STORAGE_DRIVER)?,
            secret: note(annotations::STORAGE_SECRET_NAME)?,
            namespace: note(annotations::STORAGE_SECRET_NAMESPACE)?,
            storage: note(annotations::STORAGE_CLUSTER_ID)?,
        })
    };
    named().map(|means| vec![means]).ok_or_else(|| Wait::NoWayToFence(peer.to_owned()))
}

fn put_up(world: &World, standing: &[Standing<'_>], plan: &mut Plan) -> Said {
    // What is about to be sent may stand before this process lives to say so.
    let stuck = |plan: &mut Plan, wait: Wait| {
        let reason = match wait {
            Wait::PeerUnsurveyed(_) | Wait::OldFenceGoing(_) | Wait::FenceUnconfirmed(_) => {
                words::REASON_FENCING
            }
            _ => words::REASON_FENCE_ERROR,
        };
        let sends = plan.effects.iter().any(|effect| matches!(effect, Effect::Send(_)));
        let left = if standing.is_empty() && !sends { Holds::True } else { Holds::False };
        let sentence = wait.to_string();
        plan.waits.push(wait);
        said(DRClusterPhase::Fencing, (Holds::False, reason), (left, reason), sentence)
    };
    let Some((name, peer)) = peer(world) else { return stuck(plan, Wait::NoPeer) };
    if world.cluster.spec.cidrs.is_empty() {
        return stuck(plan, Wait::NoAddresses);
    }
    if let Some(bad) = super::validate::unreadable(&world.cluster.spec.cidrs) {
        return stuck(plan, Wait::BadAddresses(bad));
    }
    let known = match peer.survey.complete() {
        Ok(known) => known,
        Err(why) => return stuck(plan, Wait::PeerUnsurveyed(format!("cluster {name} {why}"))),
    };
    if !peer.joined {
        return stuck(plan, Wait::PeerUnsurveyed(format!("cluster {name} has not joined this hub")));
    }
    let means = match ways(world, name, known) {
        Ok(means) => means,
        Err(wait) => return stuck(plan, wait),
    };
    let mut problems = Vec::new();
    for way in &means {
        let fence = manifests::fence(world, way, FenceState::Fenced);
        let work = manifests::fence_work(world.name(), name, &fence);
        let key = ObjectKey::of(&work);
        match plan.send(world, work) {
            Carriage::Going => problems.push(Wait::OldFenceGoing(key.to_string())),
            Carriage::Missing => {
                let _ = plan.ask(world, manifests::fence_view(world.name(), name, fence.name()));
                problems.push(Wait::FenceUnconfirmed(format!("{} is being sent to {name}", fence.name())));
            }
            _ => {
                let Some(work) = world.works.get(&key) else { continue };
                problems.extend(confirm(world, plan, name, &fence, work).err());
            }
        }
    }
    match worst(problems) {
        Some(wait) => stuck(plan, wait),
        None => said(
            DRClusterPhase::Fenced,
            (Holds::True, words::REASON_FENCED),
            (Holds::False, words::REASON_FENCED),
            "Cluster successfully fenced",
        ),
    }
}

/// A failure is told before anything that is only not there yet.
fn worst(problems: Vec<Wait>) -> Option<Wait> {
    let failed =
        problems.iter().find(|wait| matches!(wait, Wait::FenceFailed(_) | Wait::LiftFailed(_))).cloned();
    failed.or_else(|| problems.into_iter().next())
}

/// Whether a peer shows that a fence is up.
fn confirm(
    world: &World,
    plan: &mut Plan,
    peer: &str,
    wanted: &NetworkFence,
    work: &ManifestWork,
) -> Result<(), Wait> {
    let name = wanted.name();
    let view = plan.ask(world, manifests::fence_view(world.name(), peer, name));
    if let Some(why) = world.silence(peer) {
        // A fence does not fall because nobody answers; but it is not up because nobody objects either.
        let shown =
            world.cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let was_up = holds(shown, words::TYPE_FENCED, world.cluster.metadata.generation);
        return if was_up { Ok(()) } else { Err(Wait::FenceUnconfirmed(why)) };
    }
    match seen::<NetworkFence>(view) {
        Seen::Found(fence) => {
            let same = fence.spec.fence_state == FenceState::Fenced
                && fence.spec.cidrs.iter().collect::<BTreeSet<_>>() == wanted.spec.cidrs.iter().collect();
            let result = fence.status.as_ref().and_then(|status| status.result.clone());
            match result {
                _ if !same || is_behind(&fence) => {
                    Err(Wait::FenceUnconfirmed(format!("{name} on {peer} is not changed yet")))
                }
                Some(FenceResult::Succeeded) => Ok(()),
                Some(FenceResult::Failed) => Err(Wait::FenceFailed(told(&fence, peer))),
                _ => {
                    Err(Wait::FenceUnconfirmed(format!("the storage has not answered {name} on {peer} yet")))
                }
            }
        }
        Seen::Absent | Seen::NotYet => match carriage(Some(work)) {
            Carriage::Refused(why) => {
                Err(Wait::FenceFailed(format!("cluster {peer} cannot apply {name}: {why}")))
            }
            _ => Err(Wait::FenceUnconfirmed(format!("{name} is not on {peer} yet"))),
        },
        Seen::Failed(why) => Err(Wait::FenceUnconfirmed(format!("{peer} cannot show {name}: {why}"))),
    }
}

/// Whether what is said about a fence is about an older version of it, where that can be told.
fn is_behind(fence: &NetworkFence) -> bool {
    let conditions = fence.status.iter().flat_map(|status| &status.conditions);
    let seen = conditions.filter_map(|condition| condition.observed_generation).max();
    seen.is_some_and(|seen| Some(seen) < fence.metadata.generation)
}

fn told(fence: &NetworkFence, peer: &str) -> String {
    let message = fence.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default();
    format!("{} on {peer}: {message}", fence.name())
}

fn take_down(world: &World, standing: &[Standing<'_>], plan: &mut Plan) -> Said {
    let (mut lifting, mut going) = (Vec::new(), Vec::new());
    for one in standing {
        let peer = &one.key.namespace;
        if one.work.is_going() {
            let why = world.silence(peer).unwrap_or_else(|| format!("{peer} is removing {}", one.key.name));
            going.push(Wait::FenceGoing(why));
            continue;
        }
        match &one.fence {
            Some(fence) if fence.spec.fence_state != FenceState::Unfenced => {
                let mut lifted = fence.clone();
                lifted.spec.fence_state = FenceState::Unfenced;
                let work = manifests::fence_work(world.name(), peer, &lifted);
                // Whatever it is called, it is this work that is changed.
                let mut wanted = (**one.work).clone();
                wanted.spec.workload = work.spec.workload;
                plan.effects.push(Effect::Send(Box::new(bare(wanted))));
                let _ = plan.ask(world, manifests::fence_view(world.name(), peer, fence.name()));
                lifting.push(Wait::LiftUnconfirmed(format!("{} is being changed on {peer}", fence.name())));
            }
            Some(fence) => match lifted(world, plan, peer, fence, one.work) {
                Ok(()) => {
                    plan.take_back(one.key);
                    going.push(Wait::FenceGoing(one.key.to_string()));
                }
                Err(wait) => lifting.push(wait),
            },
            // It carries no fence that we can read: there is nothing to lift through it.
            None => plan.take_back(one.key),
        }
    }
    if let Some(wait) = worst(lifting) {
        let reason = match wait {
            Wait::LiftFailed(_) => words::REASON_UNFENCE_ERROR,
            _ => words::REASON_UNFENCING,
        };
        let sentence = wait.to_string();
        plan.waits.push(wait);
        return said(DRClusterPhase::Unfencing, (Holds::True, reason), (Holds::False, reason), sentence);
    }
    if let Some(wait) = going.into_iter().next() {
        let sentence = wait.to_string();
        plan.waits.push(wait);
        return said(
            DRClusterPhase::Unfenced,
            (Holds::False, words::REASON_CLEANING),
            (Holds::False, words::REASON_CLEANING),
            sentence,
        );
    }
    clean(world, plan, DRClusterPhase::Unfenced, "fencing resource cleaned from cluster")
}

/// A work to write, without what the server keeps.
fn bare(mut work: ManifestWork) -> ManifestWork {
    work.metadata.managed_fields = None;
    work.metadata.resource_version = None;
    work.metadata.uid = None;
    work.status = None;
    work
}

/// Whether a peer shows that a fence is down.
fn lifted(
    world: &World,
    plan: &mut Plan,
    peer: &str,
    wanted: &NetworkFence,
    work: &ManifestWork,
) -> Result<(), Wait> {
    let name = wanted.name();
    let view = plan.ask(world, manifests::fence_view(world.name(), peer, name));
    if let Some(why) = world.silence(peer) {
        return Err(Wait::LiftUnconfirmed(why));
    }
    let not_yet = || Err(Wait::LiftUnconfirmed(format!("{name} on {peer} is not changed yet")));
    match seen::<NetworkFence>(view) {
        Seen::Found(fence) if fence.spec.fence_state == FenceState::Unfenced && !is_behind(&fence) => {
            match fence.status.as_ref().and_then(|status| status.result.clone()) {
                Some(FenceResult::Succeeded) => Ok(()),
                Some(FenceResult::Failed) => Err(Wait::LiftFailed(told(&fence, peer))),
                _ => not_yet(),
            }
        }
        // Applied and yet not there: somebody removed it, and with it the fence.
        Seen::Absent if works::is_applied(work) => Ok(()),
        Seen::Failed(why) => Err(Wait::LiftUnconfirmed(format!("{peer} cannot show {name}: {why}"))),
        _ => match carriage(Some(work)) {
            Carriage::Refused(why) => {
                Err(Wait::LiftFailed(format!("cluster {peer} cannot apply {name}: {why}")))
            }
            _ => not_yet(),
        },
    }
}
