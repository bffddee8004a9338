//! What people are told about a receiver.

use super::world::World;
use crate::kinds::claim_of_receiver;
use crate::resolve::PORT;
use crate::why::Wait;
use crate::words::Words as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Service, TypedLocalObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::conditions::volsync as words;
use lifeboat_api::volsync::{
    MoverResult, MoverStatus, ReplicationDestination, ReplicationDestinationStatus,
    RsyncTlsDestinationStatus, service_name,
};
use lifeboat_engine::Why as _;
use lifeboat_engine::conditions::{Conditions, Holds, whole_seconds};
use lifeboat_stream::{Completed, Refusal};
use std::time::Duration;

/// The newest complete copy, by its generation.
#[must_use]
pub fn generation(receiver: &ReplicationDestination) -> Option<&str> {
    receiver.status.as_ref()?.external.get(words::EXTERNAL_GENERATION).map(String::as_str)
}

/// Where senders reach the receiver: its service, or the node itself where a balancer was asked for and is not there.
fn address(world: &World, receiver: &ReplicationDestination, found: &Service) -> (String, i32) {
    let spec = found.spec.clone().unwrap_or_default();
    if spec.type_.as_deref() == Some("LoadBalancer") {
        let balancer = found.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        let ingress = balancer.and_then(|balancer| balancer.ingress.as_ref()?.first());
        let given = ingress.and_then(|ingress| ingress.hostname.clone().or_else(|| ingress.ip.clone()));
        let node = || (world.advertise.to_string(), i32::from(world.advertise.port()));
        return given.map_or_else(node, |given| (given, i32::from(PORT)));
    }
    let own = spec.cluster_ip.filter(|ip| !ip.is_empty() && ip != "None");
    let name = || format!("{}.{}.svc", service_name(receiver.name()), receiver.space());
    (own.unwrap_or_else(name), i32::from(PORT))
}

/// A whole copy that is not published yet.
#[must_use]
pub fn unpublished(world: &World) -> Option<&Completed> {
    let incarnation = world.staging.as_ref()?.incarnation();
    world.received.completed.as_ref().filter(|completed| completed.incarnation == incarnation)
}

fn begin(world: &World, receiver: &ReplicationDestination) -> ReplicationDestinationStatus {
    let mut status = receiver.status.clone().unwrap_or_default();
    status.external.insert(words::EXTERNAL_EXECUTOR.to_owned(), words::EXECUTOR_LIFEBOAT.to_owned());
    let key = receiver.spec.rsync_tls.as_ref().and_then(|tls| tls.key_secret.clone());
    let mut tls = status.rsync_tls.take().unwrap_or_default();
    tls.key_secret = key;
    // Who does not listen is not to be called; once told, an address stays while the same service does.
    match (&world.service, &world.slice, &world.expected) {
        (Some(found), Some(_), Some(_)) => {
            let (address, port) = address(world, receiver, found);
            (tls.address, tls.port) = (Some(address), Some(port));
        }
        _ if world.expected.is_none() && receiver.spec.paused => (tls.address, tls.port) = (None, None),
        _ => {}
    }
    status.rsync_tls = Some(tls).filter(|tls| *tls != RsyncTlsDestinationStatus::default());
    let unpublished = unpublished(world).filter(|done| generation(receiver) != Some(&done.generation));
    let tell = [
        (words::EXTERNAL_UNPUBLISHED, unpublished.map(|done| done.generation.clone())),
        (words::EXTERNAL_UNPUBLISHED_CUT, unpublished.map(|done| done.cut.to_string())),
    ];
    for (key, value) in tell {
        match value {
            Some(value) => drop(status.external.insert(key.to_owned(), value)),
            None => drop(status.external.remove(key)),
        }
    }
    match &world.received.refused {
        Some((_, peer, refusal)) if !matches!(refusal, Refusal::Busy | Refusal::Spoiled(_)) => {
            let told = format!("{} was turned away: {refusal}", peer.ip());
            status.external.insert(words::EXTERNAL_REFUSED.to_owned(), told);
        }
        _ => {}
    }
    status
}

fn say(
    receiver: &ReplicationDestination,
    status: &mut ReplicationDestinationStatus,
    now: Timestamp,
    holds: Holds,
    reason: &str,
    text: String,
) {
    let conditions = Conditions { generation: receiver.metadata.generation, now };
    conditions.set(&mut status.conditions, words::TYPE_SYNCHRONIZING, holds, reason, text);
}

/// Nothing is published now, for this reason.
#[must_use]
pub fn waiting(world: &World, why: &Wait, now: Timestamp) -> ReplicationDestinationStatus {
    let Some(receiver) = world.receiver.as_deref() else { return ReplicationDestinationStatus::default() };
    let mut status = begin(world, receiver);
    let (holds, reason) = match why {
        Wait::Listening | Wait::Publishing(_) => (Holds::True, words::REASON_SYNC_IN_PROGRESS.to_owned()),
        Wait::Manual => (Holds::False, words::REASON_WAITING_FOR_MANUAL.to_owned()),
        why if why.is_error() => (Holds::False, words::REASON_ERROR.to_owned()),
        why => (Holds::False, why.reason()),
    };
    if why.is_error() {
        let logs = Some(why.to_string());
        status.latest_mover_status = Some(MoverStatus { result: Some(MoverResult::Failed), logs });
    }
    say(receiver, &mut status, now, holds, &reason, why.to_string());
    status
}

/// A whole copy is kept: as an image, or, without a name of one, as the claim itself.
#[must_use]
pub fn published(
    world: &World,
    receiver: &ReplicationDestination,
    completed: &Completed,
    image: Option<&str>,
    now: Timestamp,
) -> ReplicationDestinationStatus {
    let mut status = begin(world, receiver);
    let ended = whole_seconds(now);
    status.last_sync_time = Some(Time(ended));
    // The sender's clock may be ahead of ours.
    let took = Duration::try_from(ended.duration_since(completed.cut)).unwrap_or_default();
    status.last_sync_duration = Some(took.into());
    status.last_manual_sync = receiver.spec.trigger.as_ref().and_then(|trigger| trigger.manual.clone());
    status.latest_image = Some(match image {
        Some(name) => TypedLocalObjectReference {
            api_group: Some(lifeboat_api::snapshot::GROUP.to_owned()),
            kind: "VolumeSnapshot".to_owned(),
            name: name.to_owned(),
        },
        None => TypedLocalObjectReference {
            api_group: Some(String::new()),
            kind: "PersistentVolumeClaim".to_owned(),
            name: claim_of_receiver(receiver).name,
        },
    });
    let tell = [
        (words::EXTERNAL_GENERATION, completed.generation.clone()),
        (words::EXTERNAL_CUT, completed.cut.to_string()),
        (words::EXTERNAL_EPOCH, completed.epoch.to_string()),
    ];
    status.external.extend(tell.map(|(key, value)| (key.to_owned(), value)));
    let tell = [
        (words::EXTERNAL_LINEAGE, completed.lineage.as_ref()),
        (words::EXTERNAL_FUZZY, completed.fuzzy.as_ref()),
    ];
    for (key, value) in tell {
        match value {
            Some(value) => drop(status.external.insert(key.to_owned(), value.clone())),
            None => drop(status.external.remove(key)),
        }
    }
    let over = [words::EXTERNAL_REFUSED, words::EXTERNAL_UNPUBLISHED, words::EXTERNAL_UNPUBLISHED_CUT];
    over.iter().for_each(|key| drop(status.external.remove(*key)));
    let logs = format!("{} bytes of changes received, {} entries", completed.bytes, completed.entries);
    status.latest_mover_status =
        Some(MoverStatus { result: Some(MoverResult::Successful), logs: Some(logs) });
    let text = Wait::Listening.to_string();
    say(receiver, &mut status, now, Holds::True, words::REASON_SYNC_IN_PROGRESS, text);
    status
}
