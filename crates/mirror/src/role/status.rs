//! What people are told about a VolumeReplication, in the conditions and words of csi-addons.

use crate::copies::{FUZZY, Image};
use crate::role::why::RoleWhy;
use crate::role::world::World;
use crate::words::{Words as _, is_secondary};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::annotations;
use lifeboat_api::conditions::replication as words;
use lifeboat_api::replication::{ReplicationState, State, VolumeReplicationStatus};
use lifeboat_engine::conditions::{Conditions, Holds, whole_seconds};
use lifeboat_stream::Sent;
use std::time::Duration;

/// Whether changes flow to the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flow {
    /// They do, or are about to.
    Moving,
    /// They do not, for this reason.
    Stopped(String),
}

struct Telling {
    status: VolumeReplicationStatus,
    conditions: Conditions,
}

impl Telling {
    fn of(world: &World, now: Timestamp) -> Self {
        let generation = world.replication.metadata.generation;
        let mut status = world.replication.status.clone().unwrap_or_default();
        status.observed_generation = generation;
        Self { status, conditions: Conditions { generation, now } }
    }

    fn say(mut self, type_: &str, holds: bool, reason: &str, message: &str) -> Self {
        self.conditions.set(&mut self.status.conditions, type_, Holds::from(holds), reason, message);
        self
    }

    fn without(mut self, types: &[&str]) -> Self {
        self.status.conditions.retain(|condition| !types.contains(&condition.type_.as_str()));
        self
    }

    fn state(mut self, state: State, message: &str) -> Self {
        self.status.state = Some(state);
        self.status.message = Some(message.to_owned());
        self
    }

    /// Tells of the newest complete copy whether it may show different moments.
    fn newest(self, image: Option<&Image>) -> Self {
        match image.is_some_and(|image| image.fuzzy) {
            true => self.say(words::TYPE_CONSISTENT, false, words::REASON_WRITTEN_MEANWHILE, FUZZY),
            false => self.without(&[words::TYPE_CONSISTENT]),
        }
    }

    fn validated(self) -> Self {
        self.say(
            words::TYPE_VALIDATED,
            true,
            words::REASON_PREREQUISITE_MET,
            "volume is validated and met all prerequisites",
        )
    }
}

/// The role that the volume has at this moment, whatever is asked for.
fn role(world: &World) -> State {
    match world.here() {
        Some((here, copies)) => match (is_secondary(&here.volume), copies.live.is_some()) {
            (false, true) => State::Primary,
            (true, false) => State::Secondary,
            _ => State::Unknown,
        },
        None => State::Unknown,
    }
}

/// The role that is asked for is not reached, for this reason.
#[must_use]
pub fn waiting(world: &World, why: &RoleWhy, now: Timestamp) -> VolumeReplicationStatus {
    let text = why.to_string();
    let told = Telling::of(world, now).state(role(world), &text);
    let told = match why {
        RoleWhy::Unsupported(_) => {
            told.say(words::TYPE_VALIDATED, false, words::REASON_PREREQUISITE_NOT_MET, &text)
        }
        _ => told.validated(),
    };
    let reason = match (&world.replication.spec.replication_state, why) {
        (ReplicationState::Primary, _) => words::REASON_FAILED_TO_PROMOTE,
        (_, RoleWhy::SplitBrain(_)) | (ReplicationState::Resync, _) => words::REASON_FAILED_TO_RESYNC,
        _ => words::REASON_FAILED_TO_DEMOTE,
    };
    let degraded = if why.is_error() { words::REASON_ERROR } else { words::REASON_VOLUME_DEGRADED };
    told.without(&[words::TYPE_REPLICATING, words::TYPE_DESTINATION_INFO_AVAILABLE])
        .say(words::TYPE_COMPLETED, false, reason, &text)
        .say(words::TYPE_DEGRADED, true, degraded, &text)
        .say(words::TYPE_RESYNCING, false, words::REASON_NOT_RESYNCING, "volume is not resyncing")
        .status
}

/// The volume is primary.
#[must_use]
pub fn primary(world: &World, flow: &Flow, now: Timestamp) -> VolumeReplicationStatus {
    promoted(world, flow, now).status
}

fn promoted(world: &World, flow: &Flow, now: Timestamp) -> Telling {
    let told = Telling::of(world, now).state(State::Primary, "volume is marked primary").validated();
    let peer =
        world.here().and_then(|(here, _)| here.volume.note(annotations::MIRROR_PEER)).map(str::to_owned);
    let mut told = match (&peer, flow) {
        (Some(peer), _) => told.say(
            words::TYPE_DESTINATION_INFO_AVAILABLE,
            true,
            words::REASON_DESTINATION_INFO_UPDATED,
            &format!("the peer has the volume as {peer}"),
        ),
        (None, Flow::Stopped(why)) => told.say(
            words::TYPE_DESTINATION_INFO_AVAILABLE,
            false,
            words::REASON_DESTINATION_INFO_PENDING,
            why,
        ),
        (None, Flow::Moving) => told.say(
            words::TYPE_DESTINATION_INFO_AVAILABLE,
            false,
            words::REASON_DESTINATION_INFO_PENDING,
            "the peer has not said yet what the volume is called there",
        ),
    };
    told.status.destination_volume_id = peer;
    let (flows, reason, text) = match flow {
        Flow::Moving => (true, words::REASON_REPLICATING, "changes are sent at every interval"),
        Flow::Stopped(why) => (false, words::REASON_NOT_REPLICATING, why.as_str()),
    };
    told.say(
        words::TYPE_COMPLETED,
        true,
        words::REASON_PROMOTED,
        "volume is promoted to primary and replicating to secondary",
    )
    .say(words::TYPE_DEGRADED, false, words::REASON_HEALTHY, "volume is healthy")
    .say(words::TYPE_RESYNCING, false, words::REASON_NOT_RESYNCING, "volume is not resyncing")
    .say(words::TYPE_REPLICATING, flows, reason, text)
}

/// The peer has a whole generation: what was written until its cut is safe there.
#[must_use]
pub fn sent(
    world: &World,
    image: &Image,
    sent: &Sent,
    ended: Timestamp,
    now: Timestamp,
) -> VolumeReplicationStatus {
    let mut status = promoted(world, &Flow::Moving, now).newest(Some(image)).status;
    let took = Duration::try_from(ended.duration_since(image.cut)).unwrap_or_default();
    status.last_start_time = Some(Time(whole_seconds(image.cut)));
    status.last_completion_time = Some(Time(whole_seconds(ended)));
    status.last_sync_time = Some(Time(whole_seconds(image.cut)));
    status.last_sync_duration = Some(took.into());
    status.last_sync_bytes = i64::try_from(sent.bytes_changed).ok();
    status
}

/// The volume is secondary, and has this copy of the peer's data, or none that is complete yet.
#[must_use]
pub fn secondary(world: &World, whole: Option<&Image>, now: Timestamp) -> VolumeReplicationStatus {
    let told = Telling::of(world, now)
        .state(State::Secondary, "volume is marked secondary")
        .validated()
        .without(&[words::TYPE_REPLICATING, words::TYPE_DESTINATION_INFO_AVAILABLE])
        .newest(whole)
        .say(words::TYPE_COMPLETED, true, words::REASON_DEMOTED, "volume is demoted to secondary");
    let mut told = match whole {
        Some(_) => told.say(words::TYPE_DEGRADED, false, words::REASON_HEALTHY, "volume is healthy").say(
            words::TYPE_RESYNCING,
            false,
            words::REASON_NOT_RESYNCING,
            "volume is not resyncing",
        ),
        None => told
            .say(
                words::TYPE_DEGRADED,
                true,
                words::REASON_VOLUME_DEGRADED,
                "the peer's data is not complete here yet",
            )
            .say(
                words::TYPE_RESYNCING,
                true,
                words::REASON_RESYNC_TRIGGERED,
                "volume is resyncing from the peer",
            ),
    };
    told.status.destination_volume_id = None;
    if let Some(image) = whole {
        told.status.last_sync_time = Some(Time(whole_seconds(image.cut)));
    }
    told.status
}
