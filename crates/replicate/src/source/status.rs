//! What people are told about a sender.

use crate::source::decide::next_time;
use crate::source::world::{Cut, World};
use crate::why::Wait;
use crate::words::Words as _;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::conditions::volsync as words;
use lifeboat_api::volsync::{
    MoverResult, MoverStatus, ReplicationSource, ReplicationSourceStatus, RsyncTlsSourceStatus,
};
use lifeboat_engine::Why as _;
use lifeboat_engine::conditions::{Conditions, Holds, whole_seconds};
use lifeboat_stream::Sent;
use std::time::Duration;

/// The newest complete copy, by its generation.
#[must_use]
pub fn generation(world: &World) -> Option<&str> {
    world.source.status.as_ref()?.external.get(words::EXTERNAL_GENERATION).map(String::as_str)
}

/// When the newest complete copy was cut; of a peer's copy only its end is known.
#[must_use]
pub fn last_cut(status: Option<&ReplicationSourceStatus>) -> Option<Timestamp> {
    let status = status?;
    let cut = status.external.get(words::EXTERNAL_CUT).and_then(|cut| cut.parse().ok());
    cut.or_else(|| status.last_sync_time.as_ref().map(|time| time.0))
}

fn begin(source: &ReplicationSource) -> ReplicationSourceStatus {
    let mut status = source.status.clone().unwrap_or_default();
    let key = source.spec.rsync_tls.as_ref().and_then(|tls| tls.key_secret.clone());
    status.external.insert(words::EXTERNAL_EXECUTOR.to_owned(), words::EXECUTOR_LIFEBOAT.to_owned());
    status.rsync_tls = Some(RsyncTlsSourceStatus { key_secret: key });
    status
}

fn say(
    world: &World,
    status: &mut ReplicationSourceStatus,
    now: Timestamp,
    holds: Holds,
    reason: &str,
    text: String,
) {
    let conditions = Conditions { generation: world.source.metadata.generation, now };
    conditions.set(&mut status.conditions, words::TYPE_SYNCHRONIZING, holds, reason, text);
}

/// Nothing moves, for this reason.
#[must_use]
pub fn waiting(world: &World, why: &Wait, now: Timestamp) -> ReplicationSourceStatus {
    let mut status = begin(&world.source);
    status.last_sync_start_time = None;
    status.next_sync_time = next_time(world).map(Time);
    let reason = match why {
        Wait::Due(_) => words::REASON_WAITING_FOR_SCHEDULE.to_owned(),
        Wait::Manual => words::REASON_WAITING_FOR_MANUAL.to_owned(),
        why if why.is_error() => words::REASON_ERROR.to_owned(),
        why => why.reason(),
    };
    if why.is_error() {
        let logs = Some(why.to_string());
        status.latest_mover_status = Some(MoverStatus { result: Some(MoverResult::Failed), logs });
    }
    say(world, &mut status, now, Holds::False, &reason, why.to_string());
    status
}

/// Bytes move.
#[must_use]
pub fn sending(world: &World, cut: &Cut, now: Timestamp) -> ReplicationSourceStatus {
    let mut status = begin(&world.source);
    status.last_sync_start_time = Some(Time(whole_seconds(cut.cut)));
    let text = Wait::Sending.to_string();
    say(world, &mut status, now, Holds::True, words::REASON_SYNC_IN_PROGRESS, text);
    status
}

/// The receiver has all of it. The end and the duration together tell when it was cut, as readers of VolSync's status reckon.
#[must_use]
pub fn sent(
    world: &World,
    cut: &Cut,
    sent: &Sent,
    ended: Timestamp,
    now: Timestamp,
) -> ReplicationSourceStatus {
    let mut status = begin(&world.source);
    let ended = whole_seconds(ended);
    let took = ended.duration_since(cut.cut);
    status.last_sync_start_time = None;
    status.last_sync_time = Some(Time(ended));
    status.last_sync_duration = Some(Duration::try_from(took).unwrap_or_default().into());
    status.last_manual_sync = cut.token.clone();
    let mut tell = |key: &str, value: Option<String>| match value {
        Some(value) => drop(status.external.insert(key.to_owned(), value)),
        None => drop(status.external.remove(key)),
    };
    tell(words::EXTERNAL_ECHO, sent.token.clone());
    tell(words::EXTERNAL_GENERATION, Some(cut.generation.clone()));
    tell(words::EXTERNAL_CUT, Some(cut.cut.to_string()));
    tell(words::EXTERNAL_EPOCH, Some(cut.epoch.to_string()));
    tell(words::EXTERNAL_LINEAGE, cut.lineage.clone());
    tell(words::EXTERNAL_FUZZY, cut.why_fuzzy());
    tell(words::EXTERNAL_BYTES_ON_WIRE, Some(sent.bytes_on_wire.to_string()));
    tell(words::EXTERNAL_BYTES_CHANGED, Some(sent.bytes_changed.to_string()));
    let logs = format!(
        "{} bytes changed in {} files, {} removed; {} bytes on the wire{}",
        sent.bytes_changed,
        sent.files,
        sent.removed,
        sent.bytes_on_wire,
        if sent.resumed { ", going on after a cut link" } else { "" }
    );
    status.latest_mover_status =
        Some(MoverStatus { result: Some(MoverResult::Successful), logs: Some(logs) });
    let (reason, text) = (words::REASON_CLEANING_UP, "the receiver has the copy".to_owned());
    say(world, &mut status, now, Holds::False, reason, text);
    status
}

/// The object that events are attached to.
#[must_use]
pub fn subject(world: &World) -> k8s_openapi::api::core::v1::ObjectReference {
    let source = &world.source;
    debug_assert!(!source.name().is_empty(), "a sender has a name");
    lifeboat_node::provision::words::reference(&**source)
}
