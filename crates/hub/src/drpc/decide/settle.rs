//! The peer, once the application runs: its group secondary, what it shall receive named, keys shared. Whatever is missing is said, and only delays
//! that the next action is ready.

use crate::drpc::commission::{Act, Commission};
use crate::drpc::decide::{Effect, Peer, Report, Step, arrived, obstacle, put, put_space};
use crate::drpc::group::Builder;
use crate::drpc::status::told_by;
use crate::drpc::why::Wait;
use crate::drpc::world::{GroupWords as _, Site, World};
use crate::secrets::{Carriage, carriage};
use crate::views::Reach;
use crate::words::Words as _;
use jiff::Timestamp;
use lifeboat_api::annotations;
use lifeboat_api::ramen::{Progression, VrgState};

/// Sees to the peer of an application that runs; `unwell` is what is the matter with the application itself.
pub fn settle(
    world: &World,
    now: Timestamp,
    known: &Commission,
    holder: &Site,
    peer: Option<&Site>,
    unwell: Option<Wait>,
) -> Step {
    let report = |progression: Progression, state: Peer, why: Option<Wait>| {
        let mut report = Report::new(arrived(known.act), progression, state);
        report.unwell.clone_from(&unwell);
        report.waits.extend(unwell.clone());
        report.waits.extend(why);
        Step::Rest(report)
    };
    let Some(peer) = peer else {
        let why = Wait::Invalid("the policy names no other cluster".to_owned());
        return report(Progression::CleaningUp, Peer::Progressing(why.to_string()), Some(why));
    };
    let effects = effects(world, now, known, holder, peer);
    if !effects.is_empty() {
        return Step::Do(effects, None);
    }
    match peer_ready(world, now, known, holder, peer) {
        Ok(()) => report(Progression::Completed, Peer::Ready, None),
        Err((progression, why)) => report(progression, Peer::Progressing(why.to_string()), Some(why)),
    }
}

fn effects(world: &World, now: Timestamp, known: &Commission, holder: &Site, peer: &Site) -> Vec<Effect> {
    let mut effects = Vec::new();
    if copies(holder, peer) {
        let lacks = |site: &&Site| {
            matches!(carriage(site.key_work.as_deref()), Carriage::Missing) && site.managed.is_some()
        };
        let clusters: Vec<String> =
            [holder, peer].into_iter().filter(lacks).map(|site| site.name.clone()).collect();
        if !clusters.is_empty() {
            effects.push(Effect::ShareKey { clusters });
        }
    }
    let going = peer.work.as_ref().is_some_and(|work| work.is_going());
    // A cluster that has left the fleet has no namespace to send to.
    if !going && peer.managed.is_some() {
        effects.extend(put_space(world, &peer.name));
        effects.extend(put(world, &peer.name, Builder::new(world, known, now).secondary(peer)));
    }
    effects
}

/// Whether movers copy anything of the application.
fn copies(holder: &Site, peer: &Site) -> bool {
    let told = holder.seen.found().is_some_and(|group| group.copied().next().is_some());
    let asked = [holder, peer].into_iter().filter_map(|site| site.intent.as_ref()?.spec.vol_sync.as_ref());
    told || asked.into_iter().any(|volsync| !volsync.rd_spec.is_empty())
}

/// Whether the peer could take over now.
fn peer_ready(
    world: &World,
    now: Timestamp,
    known: &Commission,
    holder: &Site,
    peer: &Site,
) -> Result<(), (Progression, Wait)> {
    let name = &peer.name;
    let cleaning = match known.act {
        Act::Deploy => Progression::EnsuringVolSyncSetup,
        Act::Failover | Act::Relocate => Progression::CleaningUp,
    };
    if let Reach::Silent(why) = peer.reach(now) {
        return Err((cleaning, Wait::ClusterSilent(why)));
    }
    if let Some(why) = obstacle(world, name) {
        return Err((cleaning, why));
    }
    let Some(group) = peer.group_at(known.epoch, now) else {
        let why = format!(
            "cluster {name} does not show the group {} at epoch {} yet",
            world.group_key(),
            known.epoch
        );
        return Err((cleaning, Wait::GroupNotSeen(why)));
    };
    if !group.is_secondary() || !group.is_observed() {
        let why = format!("the group on cluster {name} has not given up its role yet{}", told_by(group));
        return Err((cleaning, Wait::CleanupPending(why)));
    }
    if group.state() != Some(&VrgState::Secondary) {
        let why = format!("the group on cluster {name} is not Secondary yet{}", told_by(group));
        return Err((cleaning, Wait::NotSecondary(why)));
    }
    receiving(world, now, known, holder, peer)
}

/// Whether the peer was told what it shall receive, and the holder where to send it.
fn receiving(
    world: &World,
    now: Timestamp,
    known: &Commission,
    holder: &Site,
    peer: &Site,
) -> Result<(), (Progression, Wait)> {
    let setting_up = |why: String| Err((Progression::SettingUpVolSyncDest, Wait::SettingUpReplication(why)));
    for site in [holder, peer] {
        if let Carriage::Refused(why) = carriage(site.key_work.as_deref()) {
            return setting_up(format!("cluster {} does not take the movers' key: {why}", site.name));
        }
    }
    let Some(sending) = holder.group_at(known.epoch, now) else { return Ok(()) };
    if sending.copied().next().is_none() {
        return Ok(());
    }
    let named = |site: &Site| {
        site.intent.as_ref().and_then(|intent| intent.spec.vol_sync.clone()).unwrap_or_default()
    };
    let shown =
        peer.group_at(known.epoch, now).and_then(|group| group.spec.vol_sync.clone()).unwrap_or_default();
    if shown.rd_spec != named(peer).rd_spec {
        return setting_up(format!("cluster {} has not been told yet what it shall receive", peer.name));
    }
    let by_address = world.drpc.note(annotations::IS_SUBMARINER_ENABLED) == Some("false");
    if by_address && named(holder).rs_spec.is_empty() {
        return setting_up(format!("cluster {} has not told yet where it receives", peer.name));
    }
    Ok(())
}
