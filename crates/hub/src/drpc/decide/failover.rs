//! Failover: what must hold before the failed cluster loses its role. Nothing here waits for that cluster or for its store; what it said last is only
//! used to tell which storage must be made ready.

use crate::drpc::commission::{Act, Commission};
use crate::drpc::decide::{Peer, Report, Step, carry, commission, next_epoch, orphan, relocate};
use crate::drpc::why::Wait;
use crate::drpc::world::{GroupWords as _, Site, World};
use crate::views::{Reach, Seen};
use crate::words::Words as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::annotations;
use lifeboat_api::conditions::drcluster;
use lifeboat_api::ramen::{DRState, FailoverLoss, MMode, Progression, VrgState};
use lifeboat_engine::conditions::{find, holds, whole_seconds};

/// Begins a failover.
pub fn begin(world: &World, now: Timestamp, known: &Commission, target: &str) -> Step {
    let Some(site) = world.site(target) else {
        return rest(
            DRState::Initiating,
            Progression::CheckingFailoverPrerequisites,
            Wait::Invalid(format!("cluster {target} is not known")),
        );
    };
    let at_home = known.holder == target;
    if at_home && relocate::is_promoted(site, known) {
        // It runs there already: the roles stay, only what they follow from is said anew.
        let given = Commission { act: Act::Failover, ..known.clone() };
        return Step::Do(vec![commission(world, given)], Some(starting()));
    }
    if let Err(why) = target_ready(world, now, site) {
        // What the last action left undone may be what the target waits for.
        if !at_home && let Step::Do(effects, _) = carry::carry(world, now, known) {
            return Step::Do(effects, None);
        }
        return rest(DRState::Initiating, Progression::CheckingFailoverPrerequisites, why);
    }
    if let Some(why) = unprotected(world, known, target) {
        return rest(DRState::Initiating, Progression::CheckingFailoverPrerequisites, why);
    }
    if let Err((progression, why)) = prerequisites(world, site) {
        return rest(DRState::FailingOver, progression, why);
    }
    // Nobody was primary at an epoch whose relocation did not get that far.
    let epoch = if at_home { known.epoch } else { next_epoch(world) };
    let given = Commission { epoch, holder: target.to_owned(), act: Act::Failover };
    let mut report = starting();
    report.loss = Some(loss(world, now, target));
    Step::Do(vec![commission(world, given)], Some(report))
}

fn starting() -> Report {
    Report::new(DRState::FailingOver, Progression::FailingOverToCluster, Peer::NotStarted)
}

fn rest(phase: DRState, progression: Progression, why: Wait) -> Step {
    Step::Rest(Report::new(phase, progression, Peer::NotStarted).waiting(why))
}

/// The target must be alive and hold a secondary that has settled, or be primary already.
pub fn target_ready(world: &World, now: Timestamp, target: &Site) -> Result<(), Wait> {
    if let Reach::Silent(why) = target.reach(now) {
        return Err(Wait::ClusterSilent(format!("{why}, so nothing can fail over to it")));
    }
    let name = &target.name;
    match &target.seen {
        Seen::NotYet => {
            Err(Wait::ViewPending(format!("cluster {name} has not told yet whether it has the group")))
        }
        Seen::Failed(why) => Err(Wait::ViewFailed(format!("cluster {name} cannot be looked at: {why}"))),
        Seen::Absent => Err(Wait::TargetNotReady(format!(
            "cluster {name} has no group {}: nothing was replicated to it",
            world.group_key()
        ))),
        Seen::Found(group) if group.is_primary() && !group.is_going() => Ok(()),
        Seen::Found(group) if group.is_going() => {
            Err(Wait::TargetNotReady(format!("the group on cluster {name} is being deleted")))
        }
        Seen::Found(group) if group.state() == Some(&VrgState::Secondary) => {
            match last_copy(world, name).filter(|copied| is_of_former(world, target, copied)) {
                Some(_) => Err(Wait::TargetNotReady(format!(
                    "cluster {name} was rebuilt, and the last copy went to the former one: nothing can fail over to it before the next copy"
                ))),
                None => Ok(()),
            }
        }
        Seen::Found(group) => {
            let state = group.state().map_or("not settled", VrgState::as_str).to_owned();
            Err(Wait::TargetNotReady(format!(
                "the group on cluster {name} is {state} and not yet Secondary{}",
                crate::drpc::status::told_by(group)
            )))
        }
    }
}

/// Why a failover would lose everything: the cluster where the application runs has found no PVC, or none was copied since the application was deployed,
/// and whoever takes the application off that cluster deletes them. One that has not arrived, or has lost its PVCs, is another matter.
pub fn unprotected(world: &World, known: &Commission, target: &str) -> Option<Wait> {
    let placed = world.drpc.note(annotations::LAST_APP_DEPLOYMENT_CLUSTER) == Some(known.holder.as_str());
    if !placed || known.holder == target || orphan::is_rebuilt(world, known) {
        return None;
    }
    let group = world.site(&known.holder)?.seen.found()?;
    if !group.is_primary() || group.is_orphaned() || group.is_going() || last_copy(world, target).is_some() {
        return None;
    }
    if let Some(why) = world.no_claims(group) {
        return Some(Wait::NotProtected(why));
    }
    // Storage that is shared, or mirrored by a driver that tells no times, is not copied by a mover. What was moved once is on both clusters.
    let mut copied = group.copied().peekable();
    let uncopied = copied.peek().is_some() && copied.all(|claim| claim.last_sync_time.is_none());
    (uncopied && known.act == Act::Deploy).then(|| {
        let (app, space) = (world.drpc.name(), world.drpc.space());
        Wait::NotProtected(format!(
            "No PVC of the application was copied to cluster {target} yet: there is nothing to fail over to. `lifeboat status` shows the \
             first copy. If its data is not needed: kubectl delete drplacementcontrol {app} -n {space}, then place the application on {target} yourself."
        ))
    })
}

/// Shared storage wants the failed cluster fenced off; replicated storage may want to be told.
pub fn prerequisites(world: &World, target: &Site) -> Result<(), (Progression, Wait)> {
    let Some(old) = world.peer_of(&target.name) else { return Ok(()) };
    if world.is_metro() {
        return match is_fenced(old) {
            true => Ok(()),
            false => {
                let why = format!(
                    "cluster {} shares its storage and is not fenced: set clusterFence of its DRCluster to Fenced or ManuallyFenced",
                    old.name
                );
                Err((Progression::WaitForFencing, Wait::NotFenced(why)))
            }
        };
    }
    for (provisioner, id) in modes(old) {
        if !is_activated(target, &provisioner, &id) {
            let why = format!(
                "storage {provisioner} ({id}) on cluster {} is not in maintenance for the failover yet",
                target.name
            );
            return Err((Progression::WaitForStorageMaintenanceActivation, Wait::MaintenanceNotActive(why)));
        }
    }
    Ok(())
}

/// Whether a cluster is fenced off, for what its DRCluster asks now.
pub fn is_fenced(site: &Site) -> bool {
    site.drcluster.as_ref().is_some_and(|cluster| {
        let conditions = cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
        holds(conditions, drcluster::TYPE_FENCED, cluster.metadata.generation)
    })
}

/// Storage that must be told of a failover, by what the last primary said.
fn modes(old: &Site) -> Vec<(String, String)> {
    let claims = old.seen.found().into_iter().filter_map(|group| group.status.as_ref());
    let claims = claims.flat_map(|status| &status.protected_pvcs);
    let mut all: Vec<(String, String)> = claims
        .filter_map(|claim| {
            // Storage without an identity cannot be told apart, so nothing can be asked of it.
            let id = claim.replication_id.as_ref().filter(|id| !id.id.is_empty())?;
            let id = Some(id).filter(|id| id.modes.contains(&MMode::Failover))?;
            Some((claim.csi_provisioner.clone().unwrap_or_default(), id.id.clone()))
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

fn is_activated(target: &Site, provisioner: &str, id: &str) -> bool {
    let status = target.drcluster.as_ref().and_then(|cluster| cluster.status.as_ref());
    let modes = status.into_iter().flat_map(|status| &status.maintenance_modes);
    let mut modes = modes.filter(|mode| mode.storage_provisioner == provisioner && mode.target_id == id);
    modes.any(|mode| {
        find(&mode.conditions, drcluster::TYPE_FAILOVER_ACTIVATED)
            .is_some_and(|active| active.status == "True")
    })
}

/// What is given up: everything since the last copy that was reported. What the failed cluster did after it was last heard of is not known, so this
/// is the most that can be lost, not the least. It was reported by that cluster's clock, so what that clock is known to be ahead is added.
pub fn loss(world: &World, now: Timestamp, target: &str) -> FailoverLoss {
    let (old, site) = (world.peer_of(target), world.site(target));
    let data_until =
        last_copy(world, target).filter(|copied| site.is_none_or(|site| !is_of_former(world, site, copied)));
    let at_most_seconds = data_until.as_ref().and_then(|until| span(old, until.0, now));
    FailoverLoss { time: Some(Time(whole_seconds(now))), data_until, at_most_seconds }
}

/// The last copy to a cluster that was told of, by the clock of the other one.
fn last_copy(world: &World, target: &str) -> Option<Time> {
    let reported =
        |site: &Site| site.seen.found().and_then(|group| group.status.as_ref()?.last_group_sync_time.clone());
    let shown = world.shown();
    // Before its first copy, what both clusters have is what the last failover restored.
    let restored = world
        .commission()
        .filter(|known| known.act == Act::Failover && known.holder != target)
        .and_then(|_| shown.last_failover?.data_until);
    world.peer_of(target).and_then(reported).or(shown.last_group_sync_time).or(restored)
}

/// Whether a copy went to a cluster that `target` was built in the place of.
pub fn is_of_former(world: &World, target: &Site, copied: &Time) -> bool {
    target.is_rebuilt_since(copied.0 - ahead(world.peer_of(&target.name)))
}

/// How far the clock of a cluster is ahead, as far as that was measured.
fn ahead(site: Option<&Site>) -> SignedDuration {
    site.map(Site::ahead).filter(SignedDuration::is_positive).unwrap_or_default()
}

/// Whole seconds, rounded up, from a time by the clock of `from` to one by ours. A copy of tomorrow was stamped by a wrong clock, and says nothing.
fn span(from: Option<&Site>, until: Timestamp, now: Timestamp) -> Option<i64> {
    let span = now.duration_since(until) + ahead(from);
    (!span.is_negative()).then(|| span.as_secs() + i64::from(span.subsec_nanos() > 0))
}

/// What a failover has really given up, once the target says from which cuts it restored every claim: the oldest of them counts. Nothing where it does
/// not say so of all, or where those cuts are of another restore.
pub fn restored(world: &World, now: Timestamp, known: &Commission) -> Option<FailoverLoss> {
    let told = world.shown().last_failover?;
    let began = told.time.as_ref()?.0;
    let (site, old) = (world.site(&known.holder)?, world.peer_of(&known.holder));
    let status = site.group_at(known.epoch, now)?.status.as_ref()?;
    let cuts: Vec<Option<Timestamp>> =
        status.protected_pvcs.iter().map(|claim| claim.restored_until.as_ref().map(|time| time.0)).collect();
    let oldest = cuts.iter().copied().collect::<Option<Vec<_>>>()?.into_iter().min()?;
    // The time is told without the fraction of a second that may be lost too.
    let at_most =
        span(old, oldest, began + SignedDuration::from_secs(1)).filter(|_| known.act == Act::Failover)?;
    let loss = FailoverLoss {
        time: told.time.clone(),
        data_until: Some(Time(oldest)),
        at_most_seconds: Some(at_most),
    };
    (loss.data_until != told.data_until).then_some(loss)
}
