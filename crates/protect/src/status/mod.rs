//! What people are told about a group: conditions as Ramen's hub reads them, one summary, and what is waited for since when. Computed from a
//! plan, never remembered.

mod merge;
mod told;

pub use merge::{data_protected, data_ready, late, merge};
pub use told::pods_ready;

use crate::decide::classify::Way;
use crate::decide::plan::{Plan, Said};
use crate::decide::restore::Outcome;
use crate::why::Wait;
use crate::words::GroupWords as _;
use crate::world::{Claim, World};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::{
    Blocker, DRAction, VolumeReplicationGroup, VolumeReplicationGroupStatus, VrgState,
};
use lifeboat_engine::Why as _;
use lifeboat_engine::conditions::{Conditions, Holds, find, holds, whole_seconds};

/// Conditions that every group has from its first moment.
const INITIAL: &[&str] = &[
    words::TYPE_DATA_READY,
    words::TYPE_DATA_PROTECTED,
    words::TYPE_CLUSTER_DATA_READY,
    words::TYPE_CLUSTER_DATA_PROTECTED,
    words::TYPE_KUBE_OBJECTS_READY,
    words::TYPE_AUTO_CLEANUP,
    words::TYPE_NO_CLUSTER_DATA_CONFLICT,
    words::TYPE_HOOKS_READY,
    words::TYPE_AVAILABLE,
];

/// A claim's way is known.
pub fn claim_known(plan: &mut Plan, claim: &str, way: &Way, copied: bool) {
    let verdict = plan.verdict(claim);
    verdict.copied = copied;
    verdict.storage_id = way.storage_id.clone();
    verdict.replication_id = way.replication_id.clone();
    if let Some(shortfall) = &way.shortfall {
        plan.wait_for(claim, Wait::Unsupported(shortfall.clone()));
    }
}

/// A claim is on its way.
pub fn claim_progressing(plan: &mut Plan, claim: &str, message: &str) {
    plan.verdict(claim)
        .say(words::TYPE_DATA_READY, Said::no(words::REASON_PROGRESSING, message))
        .say(words::TYPE_DATA_PROTECTED, Said::no(words::REASON_PROGRESSING, message));
}

/// A claim cannot be served as it is.
pub fn claim_refused(plan: &mut Plan, claim: &str, why: &Wait) {
    let message = why.to_string();
    let said = match why {
        Wait::BadClass(text) if text.starts_with("peerClass") => {
            Said::unknown(words::REASON_PEER_CLASS_NOT_FOUND, message.clone())
        }
        _ => Said::no(words::REASON_ERROR, message.clone()),
    };
    plan.verdict(claim)
        .say(words::TYPE_DATA_READY, said)
        .say(words::TYPE_DATA_PROTECTED, Said::no(words::REASON_ERROR, message));
}

/// Builds the status of a group.
pub struct Telling<'a> {
    world: &'a World,
    status: VolumeReplicationGroupStatus,
    set: Conditions,
}

impl<'a> Telling<'a> {
    /// Starts from what is shown.
    pub fn of(world: &'a World, now: Timestamp) -> Self {
        let status = world.group.status.clone().unwrap_or_default();
        let set = Conditions { generation: world.group.metadata.generation, now };
        let mut telling = Self { world, status, set };
        for type_ in INITIAL {
            if find(&telling.status.conditions, type_).is_none() {
                telling.say(
                    type_,
                    &Said::unknown(words::REASON_INITIALIZING, "Initializing VolumeReplicationGroup"),
                );
            }
        }
        let space = world.group.metadata.namespace.clone();
        for claim in &mut telling.status.protected_pvcs {
            if claim.namespace.as_deref().is_none_or(str::is_empty) {
                claim.namespace.clone_from(&space);
            }
        }
        telling
    }

    fn say(&mut self, type_: &str, said: &Said) {
        self.set.set(&mut self.status.conditions, type_, said.holds, said.reason, said.message.clone());
    }

    /// Nothing is done for the group.
    #[must_use]
    pub fn refused(mut self, why: &Wait) -> Self {
        self.say(words::TYPE_DATA_READY, &Said::no(words::REASON_ERROR, why.to_string()));
        self.summary();
        self.blockers(&[(why.clone(), None)]);
        self
    }

    /// The role is not taken.
    #[must_use]
    pub fn unsettled(mut self, why: &Wait) -> Self {
        let refused = why.weight() >= 3;
        let reason = if refused { words::REASON_ERROR } else { words::REASON_PROGRESSING };
        self.say(words::TYPE_DATA_READY, &Said::no(reason, why.to_string()));
        if refused {
            let reason = self.conflict_reason();
            self.say(words::TYPE_NO_CLUSTER_DATA_CONFLICT, &Said::no(reason, why.to_string()));
        }
        self.summary();
        self.blockers(&[(why.clone(), None)]);
        self
    }

    /// An earlier group of this name was orphaned, and this one waits for the user's choice: nothing is restored, protected or sent.
    #[must_use]
    pub fn orphaned(mut self, why: &Wait) -> Self {
        let said = Said::no(words::REASON_ORPHANED, why.to_string());
        for type_ in [words::TYPE_CLUSTER_DATA_READY, words::TYPE_DATA_READY, words::TYPE_DATA_PROTECTED] {
            self.say(type_, &said);
        }
        let kept =
            "what was recorded before the group was deleted stays in the stores; nothing new is recorded";
        self.say(words::TYPE_CLUSTER_DATA_PROTECTED, &Said::unknown(words::REASON_ORPHANED, kept));
        self.status.protected_pvcs.clear();
        self.summary();
        self.blockers(&[(why.clone(), None)]);
        self
    }

    /// The group is going.
    #[must_use]
    pub fn leaving(mut self, plan: &Plan) -> Self {
        self.blockers(&plan.waits);
        self
    }

    fn conflict_reason(&self) -> &'static str {
        match self.world.group.wants_primary() {
            true => words::REASON_CLUSTER_DATA_CONFLICT_PRIMARY,
            false => words::REASON_CLUSTER_DATA_CONFLICT_SECONDARY,
        }
    }

    fn shown(&self, type_: &str) -> Option<&Condition> {
        find(&self.status.conditions, type_)
    }

    fn holds(&self, type_: &str) -> bool {
        holds(&self.status.conditions, type_, self.world.group.metadata.generation)
    }

    /// The four conditions in one word. That a primary's newest writes are not at the peer is its normal state.
    fn summary(&mut self) {
        let four = [
            words::TYPE_DATA_READY,
            words::TYPE_DATA_PROTECTED,
            words::TYPE_CLUSTER_DATA_READY,
            words::TYPE_CLUSTER_DATA_PROTECTED,
        ];
        let all: Vec<Condition> = four.iter().filter_map(|type_| self.shown(type_)).cloned().collect();
        let said = told::summary(&all, self.world.group.metadata.generation);
        self.say(words::TYPE_AVAILABLE, &said);
    }

    /// What is waited for; what was waited for before keeps its time.
    fn blockers(&mut self, waits: &[(Wait, Option<String>)]) {
        let before = std::mem::take(&mut self.status.blockers);
        let now = Time(whole_seconds(self.set.now));
        for (why, pvc) in waits {
            let reason = why.reason();
            let known = before.iter().find(|known| known.reason == reason && known.pvc == *pvc);
            let since = known.and_then(|known| known.since.clone()).unwrap_or_else(|| now.clone());
            let blocker = Blocker { reason, message: why.to_string(), since: Some(since), pvc: pvc.clone() };
            let said = |other: &Blocker| other.reason == blocker.reason && other.pvc == blocker.pvc;
            if !self.status.blockers.iter().any(said) {
                self.status.blockers.push(blocker);
            }
        }
    }

    /// What the flows came to.
    #[must_use]
    pub fn told(mut self, plan: &mut Plan, restored: Option<&Outcome>) -> Self {
        self.claims(plan, restored);
        self.conditions(plan, restored);
        self.pods();
        self.summary();
        self.counters(plan);
        let waits = std::mem::take(&mut plan.waits);
        self.blockers(&waits);
        plan.waits = waits;
        self
    }

    /// Whether the application runs, which only a primary with claims can tell.
    fn pods(&mut self) {
        let claims: Vec<&Claim> = self.world.claims.iter().filter(|claim| claim.selected).collect();
        match self.world.group.wants_primary() && !claims.is_empty() {
            true => self.say(words::TYPE_PODS_READY, &pods_ready(&claims)),
            false => self.status.conditions.retain(|one| one.type_ != words::TYPE_PODS_READY),
        }
    }

    /// The status, with the time of its change if it is one.
    pub fn done(mut self) -> VolumeReplicationGroupStatus {
        self.status.observed_generation = self.world.group.metadata.generation;
        self.status.state = Some(self.state());
        let before = self.world.group.status.clone().unwrap_or_default();
        if self.status != before {
            self.status.last_update_time = Some(Time(whole_seconds(self.set.now)));
        }
        self.status
    }

    /// The role that is reached: unknown until data is ready for this very wish.
    fn state(&self) -> VrgState {
        let group = &self.world.group;
        if !self.holds(words::TYPE_DATA_READY) {
            return VrgState::Unknown;
        }
        if group.wants_primary() {
            return VrgState::Primary;
        }
        let relocates = group.action() == Some(&DRAction::Relocate);
        match !relocates || self.holds(words::TYPE_DATA_PROTECTED) {
            true => VrgState::Secondary,
            false => VrgState::Unknown,
        }
    }
}

/// Where a group is told of in events.
pub fn reference(group: &VolumeReplicationGroup) -> ObjectReference {
    ObjectReference {
        api_version: Some(<VolumeReplicationGroup as kube::Resource>::api_version(&()).into_owned()),
        kind: Some(<VolumeReplicationGroup as kube::Resource>::kind(&()).into_owned()),
        name: group.metadata.name.clone(),
        namespace: group.metadata.namespace.clone(),
        uid: group.metadata.uid.clone(),
        resource_version: group.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// Whether something holds, from the word on the wire.
pub(crate) fn held(condition: &Condition) -> Holds {
    match condition.status.as_str() {
        "True" => Holds::True,
        "False" => Holds::False,
        _ => Holds::Unknown,
    }
}
