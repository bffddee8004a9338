//! What people are told about an application: phase, step, three conditions as Ramen's tools read them, what the group on the cluster says, and
//! everything that is waited for. Computed from a report, never remembered.

mod protected;

use crate::drpc::commission::Act;
use crate::drpc::decide::{Peer, Report, failover, orphan};
use crate::drpc::drill;
use crate::drpc::why::Wait;
use crate::drpc::world::{GroupWords as _, World};
use crate::words::Words as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::Duration;
use lifeboat_api::conditions::{drpc as words, vrg};
use lifeboat_api::ramen::{
    Blocker, DRPlacementControl, DRPlacementControlStatus, DRState, PlacementDecisionRef, Progression,
    VolumeReplicationGroup, VrgConditions, VrgResourceMeta, VrgState,
};
use lifeboat_engine::Why as _;
use lifeboat_engine::conditions::{Conditions, Holds, find, whole_seconds};

/// What a condition says.
pub(crate) struct Said {
    pub(crate) holds: Holds,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Said {
    pub(crate) fn new(holds: impl Into<Holds>, reason: &str, message: impl Into<String>) -> Self {
        Self { holds: holds.into(), reason: reason.to_owned(), message: message.into() }
    }
}

/// Builds the status of a DRPlacementControl.
pub struct Telling<'a> {
    world: &'a World,
    status: DRPlacementControlStatus,
    set: Conditions,
    now: Timestamp,
}

impl<'a> Telling<'a> {
    /// Starts from what is shown.
    pub fn of(world: &'a World, now: Timestamp) -> Self {
        let set = Conditions { generation: world.drpc.metadata.generation, now };
        let status = DRPlacementControlStatus { refused_drill: drill::refused(&world.drpc), ..world.shown() };
        let mut telling = Self { world, status, set, now };
        // Tools read them by their place.
        for (type_, reason) in [
            (words::TYPE_AVAILABLE, words::REASON_INITIATING),
            (words::TYPE_PEER_READY, words::REASON_INITIATING),
            (words::TYPE_PROTECTED, words::REASON_UNKNOWN),
        ] {
            if find(&telling.status.conditions, type_).is_none() {
                telling.say(type_, &Said::new(Holds::Unknown, reason, "nothing is known yet"));
            }
        }
        telling
    }

    fn say(&mut self, type_: &str, said: &Said) {
        self.set.set(&mut self.status.conditions, type_, said.holds, &said.reason, said.message.clone());
    }

    /// Nothing is done until what is asked for is put right. What runs, runs on.
    #[must_use]
    pub fn refused(mut self, why: &Wait) -> Self {
        let reason = match why {
            Wait::Invalid(_) | Wait::Unsupported(_) => words::REASON_VALIDATION_FAILED,
            Wait::PlacementMissing(_) | Wait::PolicyNotReady(_) => words::REASON_WAITING,
            _ => words::REASON_ERROR,
        };
        self.say(words::TYPE_AVAILABLE, &Said::new(false, reason, why.to_string()));
        // What was computed last is not looked at any more, so it is not known whether it still holds.
        self.say(words::TYPE_PEER_READY, &Said::new(Holds::Unknown, words::REASON_UNKNOWN, why.to_string()));
        let protected = match why {
            Wait::Conflict(_) => Said::new(false, words::REASON_ERROR, why.to_string()),
            _ => Said::new(Holds::Unknown, words::REASON_UNKNOWN, why.to_string()),
        };
        self.say(words::TYPE_PROTECTED, &protected);
        self.blockers(std::slice::from_ref(why));
        self
    }

    /// What a flow came to.
    #[must_use]
    pub fn told(mut self, report: &Report) -> Self {
        self.times(report);
        self.group();
        let available = available(report);
        self.say(words::TYPE_AVAILABLE, &available);
        let peer = peer(report);
        self.say(words::TYPE_PEER_READY, &peer);
        let protected = protected::protected(self.world, report, self.now);
        self.say(words::TYPE_PROTECTED, &protected);
        let waits: Vec<Wait> = report.waits.iter().cloned().chain(self.trouble()).collect();
        self.blockers(&waits);
        self
    }

    /// Something failed and is tried again.
    #[must_use]
    pub fn troubled(mut self) -> Self {
        let waits: Vec<Wait> = self.trouble().into_iter().collect();
        self.blockers(&waits);
        self
    }

    fn trouble(&self) -> Option<Wait> {
        let trouble = self.world.trouble.as_ref()?;
        Some(Wait::Failed(format!("{} failed and is tried again: {}", trouble.effect, trouble.message)))
    }

    fn times(&mut self, report: &Report) {
        let shown = self.world.shown();
        let now = Time(whole_seconds(self.now));
        let phase = Some(report.phase.clone()).filter(|phase| !phase.as_str().is_empty());
        if begins(shown.phase.as_ref(), phase.as_ref()) {
            self.status.action_start_time = Some(now.clone());
            self.status.action_duration = None;
        }
        let completes =
            report.progression == Progression::Completed && shown.progression != Some(Progression::Completed);
        // A peer that goes and comes back completes no action.
        let running = self.status.action_duration.is_none();
        if completes
            && running
            && let Some(start) = &self.status.action_start_time
        {
            let took = now.0.duration_since(start.0).as_secs();
            let took = std::time::Duration::from_secs(u64::try_from(took).unwrap_or(0));
            self.status.action_duration = Some(Duration::from(took));
        }
        // Which generation a user was asked about, so that an answer can be told from it.
        let still_paused =
            report.progression == Progression::Paused && shown.progression == Some(Progression::Paused);
        if !still_paused {
            self.status.observed_generation = self.world.drpc.metadata.generation;
        }
        self.status.phase = phase;
        self.status.progression = Some(report.progression.clone()).filter(|step| !step.as_str().is_empty());
        let epoch = self.world.commission().map(|commission| commission.epoch);
        self.status.epoch = epoch.max(shown.epoch);
        if report.loss.is_some() {
            self.status.last_failover.clone_from(&report.loss);
        } else if let Some(known) = self.world.commission()
            && let Some(loss) = failover::restored(self.world, self.now, &known)
        {
            self.status.last_failover = Some(loss);
        }
        if is_final(&report.phase) && self.status.preferred_decision.is_none() {
            let home = self.world.drpc.spec.preferred_cluster.clone();
            self.status.preferred_decision =
                Some(PlacementDecisionRef { cluster_name: home.clone(), cluster_namespace: home });
        }
    }

    /// What the group on the primary's cluster says, as it was last seen.
    fn group(&mut self) {
        let holder = self.world.commission().and_then(|known| self.world.site(&known.holder));
        let Some(group) = holder.and_then(|site| site.seen.found()) else { return };
        let Some(told) = &group.status else { return };
        let meta = VrgResourceMeta {
            kind: "VolumeReplicationGroup".to_owned(),
            name: group.name().to_owned(),
            namespace: group.space().to_owned(),
            generation: group.generation(),
            resource_version: group.metadata.resource_version.clone(),
            protected_pvcs: told.protected_pvcs.iter().filter_map(|claim| claim.name.clone()).collect(),
            pvc_groups: told.pvc_groups.clone(),
            protected_static_ip_vms: Vec::new(),
        };
        self.status.resource_conditions =
            Some(VrgConditions { resource_meta: Some(meta), conditions: told.conditions.clone() });
        // One that has not taken up its role yet, or came back without its PVCs, knows of no copy; what was copied before still counts. So does the
        // last copy of a relocation until the next one: both clusters have it.
        let known = self.world.commission();
        let rebuilt = known.as_ref().is_some_and(|known| orphan::is_rebuilt(self.world, known));
        let copied = told.protected_pvcs.iter().any(|claim| claim.last_sync_time.is_some());
        let relocated = known.is_some_and(|known| known.act == Act::Relocate) && !copied;
        let settled = group.state() == Some(&VrgState::Primary) && !group.is_orphaned() && !group.is_going();
        let moving = self.status.phase == Some(DRState::Relocating);
        if !rebuilt && (told.last_group_sync_time.is_some() || settled && !relocated && !moving) {
            self.status.last_group_sync_time.clone_from(&told.last_group_sync_time);
            self.status.last_group_sync_duration.clone_from(&told.last_group_sync_duration);
            self.status.last_group_sync_bytes = told.last_group_sync_bytes;
        }
        let peer = holder.and_then(|site| self.world.peer_of(&site.name));
        let copied = self.status.last_group_sync_time.as_ref();
        if copied.zip(peer).is_some_and(|(copied, peer)| failover::is_of_former(self.world, peer, copied)) {
            self.status.last_group_sync_time = None;
            self.status.last_group_sync_duration = None;
            self.status.last_group_sync_bytes = None;
        }
        let capture =
            told.kube_object_protection.as_ref().and_then(|one| one.capture_to_recover_from.as_ref());
        if let Some(end) = capture.and_then(|capture| capture.end_time.clone()) {
            self.status.last_kube_object_protection_time = Some(end);
        }
    }

    /// What is waited for; what was waited for before keeps its time.
    fn blockers(&mut self, waits: &[Wait]) {
        let before = std::mem::take(&mut self.status.blockers);
        let now = Time(whole_seconds(self.now));
        for why in waits {
            let reason = why.reason();
            let known = before.iter().find(|known| known.reason == reason);
            let since = known.and_then(|known| known.since.clone()).unwrap_or_else(|| now.clone());
            let blocker = Blocker { reason, message: why.to_string(), since: Some(since), pvc: None };
            let said = |other: &Blocker| other.reason == blocker.reason && other.message == blocker.message;
            if !self.status.blockers.iter().any(said) {
                self.status.blockers.push(blocker);
            }
        }
    }

    /// The status, with the time of its change if it is one.
    pub fn done(mut self) -> DRPlacementControlStatus {
        if self.status != self.world.shown() {
            self.status.last_update_time = Some(Time(whole_seconds(self.now)));
        }
        self.status
    }
}

/// Whether a phase is one that an application rests in.
pub fn is_final(phase: &DRState) -> bool {
    matches!(phase, DRState::Deployed | DRState::FailedOver | DRState::Relocated)
}

/// Whether an action begins with this change of phase.
fn begins(before: Option<&DRState>, after: Option<&DRState>) -> bool {
    let family = |phase: &DRState| match phase {
        DRState::Deploying | DRState::Deployed => 1,
        DRState::FailingOver | DRState::FailedOver => 2,
        DRState::Relocating | DRState::Relocated => 3,
        DRState::Deleting => 4,
        _ => 0,
    };
    let Some(after) = after.filter(|phase| !is_final(phase) && **phase != DRState::WaitForUser) else {
        return false;
    };
    match before {
        None | Some(DRState::WaitForUser) => true,
        Some(before) if is_final(before) => true,
        // What was being checked goes on under its own name.
        Some(DRState::Initiating) => *after == DRState::Deleting,
        Some(before) => family(before) != family(after),
    }
}

fn available(report: &Report) -> Said {
    let waited = report.waits.first().map(ToString::to_string);
    let reason = report.phase.as_str();
    match (&report.phase, &report.unwell) {
        (_, Some(why @ Wait::Orphaned(_))) => Said::new(false, vrg::REASON_ORPHANED, why.to_string()),
        (DRState::WaitForUser, _) => Said::new(true, words::REASON_SUCCESS, waited.unwrap_or_default()),
        (phase, Some(why @ Wait::ClusterSilent(_))) if is_final(phase) => {
            Said::new(Holds::Unknown, reason, why.to_string())
        }
        (phase, Some(why)) if is_final(phase) => Said::new(true, reason, why.to_string()),
        (phase, None) if is_final(phase) => Said::new(true, reason, "Completed"),
        _ if report.progression == Progression::Paused => {
            Said::new(false, words::REASON_PAUSED, waited.unwrap_or_default())
        }
        _ if reason.is_empty() => Said::new(false, words::REASON_WAITING, waited.unwrap_or_default()),
        _ => {
            Said::new(false, reason, waited.unwrap_or_else(|| format!("{} is under way", report.progression)))
        }
    }
}

fn peer(report: &Report) -> Said {
    match &report.peer {
        Peer::Initiating => {
            Said::new(Holds::Unknown, words::REASON_INITIATING, "the peer has not been set up yet")
        }
        Peer::NotStarted => {
            Said::new(false, words::REASON_NOT_STARTED, "the action has not reached the peer yet")
        }
        Peer::Progressing(why) => Said::new(false, words::REASON_PROGRESSING, why.clone()),
        Peer::Ready => Said::new(true, words::REASON_SUCCESS, "Ready"),
        Peer::Paused => Said::new(false, words::REASON_PAUSED, "User Intervention Required"),
        Peer::FailoverAllowed => Said::new(true, words::REASON_SUCCESS, "Failover allowed"),
    }
}

/// What a group says of its own waits, to be added to a sentence about it.
pub fn told_by(group: &VolumeReplicationGroup) -> String {
    let told = group.status.iter().flat_map(|status| &status.blockers).next();
    told.map(|blocker| format!(": {}", blocker.message)).unwrap_or_default()
}

/// Where a DRPlacementControl is told of in events.
pub fn reference(drpc: &DRPlacementControl) -> ObjectReference {
    ObjectReference {
        api_version: Some(<DRPlacementControl as kube::Resource>::api_version(&()).into_owned()),
        kind: Some(<DRPlacementControl as kube::Resource>::kind(&()).into_owned()),
        name: drpc.metadata.name.clone(),
        namespace: drpc.metadata.namespace.clone(),
        uid: drpc.metadata.uid.clone(),
        resource_version: drpc.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}
