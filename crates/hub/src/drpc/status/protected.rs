//! Whether the application's data is safe at the peer, from what its primary says. The first thing that is not as it should be is told.

use super::Said;
use crate::drpc::decide::Report;
use crate::drpc::status::is_final;
use crate::drpc::world::{GroupWords as _, World};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lifeboat_api::conditions::{drpc as words, vrg};
use lifeboat_api::ramen::{VolumeReplicationGroup, VrgState};
use lifeboat_engine::conditions::{Holds, find};

pub(super) fn protected(world: &World, report: &Report, now: Timestamp) -> Said {
    let progressing = |why: &str| Said::new(false, words::REASON_PROGRESSING, why);
    if !is_final(&report.phase) {
        return match report.phase.as_str() {
            "" | "WaitForUser" => {
                Said::new(Holds::Unknown, words::REASON_UNKNOWN, "it is not known where the application is")
            }
            _ => progressing("an action is under way"),
        };
    }
    let Some(known) = world.commission() else {
        return Said::new(Holds::Unknown, words::REASON_UNKNOWN, "it is not known where the application is");
    };
    let Some(group) = world.site(&known.holder).and_then(|site| site.group_at(known.epoch, now)) else {
        let why = format!("cluster {} does not tell how its group is", known.holder);
        return Said::new(Holds::Unknown, words::REASON_UNKNOWN, why);
    };
    judge(world, group).unwrap_or_else(|| Said::new(true, words::REASON_PROTECTED, "all data is protected"))
}

/// What is not as it should be with a primary.
fn judge(world: &World, group: &VolumeReplicationGroup) -> Option<Said> {
    let conditions = group.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let said = |type_: &str| find(conditions, type_);
    let failed = |condition: &Condition| Said::new(false, words::REASON_ERROR, condition.message.clone());
    if let Some(hooks) = said(vrg::TYPE_HOOKS_READY).filter(|one| one.status == "False") {
        return Some(failed(hooks));
    }
    for type_ in [vrg::TYPE_CLUSTER_DATA_READY, vrg::TYPE_DATA_READY] {
        if let Some(why) = lacks(group, type_) {
            return Some(why);
        }
    }
    // A primary that mirrors has never everything at the peer: its newest writes are on their way.
    let mirrors = said(vrg::TYPE_DATA_PROTECTED).is_some_and(|one| one.reason == vrg::REASON_REPLICATING);
    if !mirrors && let Some(why) = lacks(group, vrg::TYPE_DATA_PROTECTED) {
        return Some(why);
    }
    if said(vrg::TYPE_DESTINATION_INFO_AVAILABLE).is_some()
        && let Some(why) = lacks(group, vrg::TYPE_DESTINATION_INFO_AVAILABLE)
    {
        return Some(why);
    }
    if let Some(conflict) = said(vrg::TYPE_NO_CLUSTER_DATA_CONFLICT).filter(|one| one.status == "False") {
        return Some(failed(conflict));
    }
    if group.state() != Some(&VrgState::Primary) {
        return Some(Said::new(false, words::REASON_PROGRESSING, "the group is not Primary yet"));
    }
    let status = group.status.clone().unwrap_or_default();
    if let Some(why) = world.no_claims(group) {
        return Some(Said::new(false, words::REASON_NO_CLAIMS, why));
    }
    if !world.is_metro() && status.last_group_sync_time.is_none() && !status.protected_pvcs.is_empty() {
        return Some(Said::new(false, words::REASON_PROGRESSING, "no copy of all claims is complete yet"));
    }
    lacks(group, vrg::TYPE_CLUSTER_DATA_PROTECTED)
}

fn lacks(group: &VolumeReplicationGroup, type_: &str) -> Option<Said> {
    if group.says(type_) {
        return None;
    }
    let conditions = group.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let Some(condition) = find(conditions, type_) else {
        return Some(Said::new(false, words::REASON_PROGRESSING, format!("{type_} is not known yet")));
    };
    let reason = match condition.reason.as_str() {
        vrg::REASON_ERROR | vrg::REASON_UPLOAD_ERROR | vrg::REASON_UNKNOWN_ERROR => words::REASON_ERROR,
        _ => words::REASON_PROGRESSING,
    };
    Some(Said::new(false, reason, format!("{type_}: {}", condition.message)))
}
