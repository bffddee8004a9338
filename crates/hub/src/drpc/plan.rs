//! What an action would do and what it would cost, told before anybody asks for it. Pure: whoever has the objects can ask.

use crate::drpc::commission::Act;
use crate::drpc::decide::{Wish, failover, orphan, relocate};
use crate::drpc::why::Wait;
use crate::drpc::world::World;
use crate::views::Reach;
use jiff::Timestamp;
use lifeboat_engine::Why as _;
use serde::Serialize;

/// What an action would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The action.
    pub action: String,
    /// Where the application is.
    pub from: Option<String>,
    /// Where it would be.
    pub to: String,
    /// What would be lost.
    pub loses: Loss,
    /// Up to when everything that was written is at the peer.
    pub data_until: Option<Timestamp>,
    /// What stands in the way now.
    pub blockers: Vec<PlanBlocker>,
    /// What would be done, in order.
    pub steps: Vec<String>,
}

/// What an action would lose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Loss {
    /// Nothing.
    Nothing,
    /// At most what was written in this many seconds.
    AtMostSeconds(i64),
    /// Nobody knows: no copy was ever reported.
    Unknown,
}

/// Something that stands in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanBlocker {
    /// What, in one word.
    pub reason: String,
    /// What, as a sentence.
    pub message: String,
}

/// What a wish would do, and what it would lose, if it were asked for now.
pub fn plan(world: &World, wish: &Wish, now: Timestamp) -> Plan {
    let known = world.commission();
    let from = known.as_ref().map(|known| known.holder.clone());
    let mut waits: Vec<Wait> = crate::drpc::decide::admit::admit(world).err().into_iter().collect();
    let target = world.site(&wish.target);
    if target.is_none() {
        waits.push(Wait::Invalid(format!("cluster {} is none of the policy's clusters", wish.target)));
    }
    let stays = from.as_deref() == Some(wish.target.as_str());
    let source = from.as_deref().and_then(|name| world.site(name));
    let mut readies_storage = false;
    match (wish.act, known.as_ref(), target, source) {
        _ if stays => {
            waits.extend(known.as_ref().and_then(|known| orphan::loss(world, now, known)));
            let silent = target.and_then(|target| match target.reach(now) {
                Reach::Silent(why) => Some(why),
                Reach::Fresh => None,
            });
            waits.extend(silent.map(|why| {
                let to = &wish.target;
                Wait::ClusterSilent(format!(
                    "{why}; the application is placed on {to}: fail over to the other cluster"
                ))
            }));
        }
        (Act::Failover, Some(known), Some(target), _) => {
            waits.extend(failover::target_ready(world, now, target).err());
            waits.extend(failover::unprotected(world, known, &target.name));
            match failover::prerequisites(world, target) {
                // The wish itself brings it about.
                Err((_, Wait::MaintenanceNotActive(_))) => readies_storage = true,
                other => waits.extend(other.err().map(|(_, why)| why)),
            }
        }
        (Act::Relocate, Some(known), Some(target), Some(source)) => {
            waits.extend(relocate::may_begin(world, now, known, source, target).err());
        }
        (Act::Failover | Act::Relocate, None, ..) => {
            waits.push(Wait::Invalid("the application was never deployed".to_owned()));
        }
        _ => {}
    }
    let loss = failover::loss(world, now, &wish.target);
    let loses = match (wish.act, stays, loss.at_most_seconds) {
        (Act::Deploy | Act::Relocate, ..) | (_, true, _) => Loss::Nothing,
        (Act::Failover, false, Some(seconds)) => Loss::AtMostSeconds(seconds),
        (Act::Failover, false, None) => Loss::Unknown,
    };
    Plan {
        action: wish.act.to_string(),
        // Where there is nothing to move, or nowhere to move it, there are none.
        steps: match known.is_some() && target.is_some() {
            true => steps(wish, from.as_deref(), stays, readies_storage),
            false => Vec::new(),
        },
        from,
        to: wish.target.clone(),
        loses,
        data_until: loss.data_until.map(|time| time.0),
        blockers: waits
            .iter()
            .map(|why| PlanBlocker { reason: why.reason(), message: why.to_string() })
            .collect(),
    }
}

fn steps(wish: &Wish, from: Option<&str>, stays: bool, readies_storage: bool) -> Vec<String> {
    let (to, from) = (&wish.target, from.unwrap_or("nowhere"));
    if stays {
        return vec![format!("the application stays on {to}")];
    }
    match wish.act {
        Act::Deploy => vec![format!("the application is deployed on {to}")],
        Act::Failover => {
            let storage = format!("the storage on {to} goes into maintenance, as it wants for a failover");
            let rest = [
                format!("{from} loses its role; what it writes from now on counts for nothing"),
                format!("volumes and claims are restored on {to} from the newest complete copy"),
                format!("the application is started on {to}"),
                format!("{from} is cleaned up when it answers, and receives from {to}"),
            ];
            readies_storage.then_some(storage).into_iter().chain(rest).collect()
        }
        Act::Relocate => vec![
            format!("scheduled copies on {from} stop"),
            format!("the application is stopped on {from}"),
            format!("a last copy is made to {to}"),
            format!("volumes on {from} become secondary"),
            format!("volumes and claims are taken over on {to}, and the application is started there"),
        ],
    }
}
