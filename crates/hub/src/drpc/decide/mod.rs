//! Every rule about a DRPlacementControl. One file for each flow:
//!
//! | file | flow |
//! | --- | --- |
//! | `admit` | whether what is asked for holds together and is served; what we put on the objects that are ours to move |
//! | `adopt` | taking up groups that are in no work of ours |
//! | `recover` | what a hub may believe that lost its memory |
//! | `deploy`, `failover`, `relocate` | what must hold before an epoch is given out, and what comes before it |
//! | `carry` | carrying out the epoch that was given out, up to the placement |
//! | `orphan` | a holder whose group and PVCs were deleted without the order to end protection |
//! | `settle` | the peer: cleaned up, replicating, ready for the next action |
//! | `delete` | letting go, without losing what is under way |

pub mod admit;
pub mod adopt;
pub mod carry;
pub mod delete;
pub mod deploy;
pub mod failover;
pub mod orphan;
pub mod recover;
pub mod relocate;
pub mod settle;

use crate::drpc::commission::{Act, Commission};
use crate::drpc::drill;
use crate::drpc::status::Telling;
use crate::drpc::why::Wait;
use crate::drpc::world::{Chosen, World};
use crate::words::Words as _;
use jiff::Timestamp;
use lifeboat_api::ramen::{
    DRPlacementControlStatus, DRState, FailoverLoss, Progression, ReplicationState, VolumeReplicationGroup,
};
use lifeboat_engine::{Decision, Next};
use serde::Serialize;

/// What can be done about a DRPlacementControl.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Effect {
    /// Puts our finalizer, labels and annotations on the DRPlacementControl.
    Own,
    /// Puts our finalizer and annotations on the placement.
    OwnPlacement,
    /// Asks a cluster for its group.
    Watch {
        /// The cluster.
        cluster: String,
    },
    /// Asks the object stores.
    ReadStores,
    /// Reads the hub's own key, or makes it.
    LearnFleet,
    /// Gives out an epoch: from here on, who is primary is on record.
    Commission {
        /// What is given out.
        commission: Commission,
        /// The epoch that it follows.
        after: i64,
        /// The generation of the DRPlacementControl that asks for it: who takes an action back at this moment changes it.
        asked: i64,
    },
    /// Sees to the application's namespace on a cluster.
    PutSpace {
        /// The cluster.
        cluster: String,
    },
    /// Sends a group to a cluster.
    PutGroup {
        /// The cluster.
        cluster: String,
        /// Its role.
        role: ReplicationState,
        /// The version of the work that this was decided on; nothing where there was none.
        over: Option<String>,
        /// The group.
        group: Box<VolumeReplicationGroup>,
    },
    /// Takes up a group that is on a cluster and in no work: it is asked for as it is.
    Adopt {
        /// The cluster.
        cluster: String,
        /// The group.
        group: Box<VolumeReplicationGroup>,
    },
    /// Makes the key that movers share, and carries it to clusters.
    ShareKey {
        /// The clusters.
        clusters: Vec<String>,
    },
    /// Says where the application runs.
    Place {
        /// Where.
        chosen: Vec<Chosen>,
    },
    /// Notes where the application was placed last, and by which action.
    NotePlaced {
        /// Where.
        cluster: String,
        /// Identity of that cluster, as far as it is known.
        id: Option<String>,
        /// By which action.
        act: Act,
    },
    /// Takes the point of a failover that has arrived off the DRPlacementControl: the next failover is not to it.
    ForgetPoint,
    /// Takes the order back to use volumes again that an accident left: it was for that accident.
    ForgetRestore,
    /// Writes down that a relocation is called off, so that it is not tried again by itself.
    CallOff {
        /// The generation that asked for it, and why.
        why: String,
    },
    /// Tells the group on a cluster that its deletion ends the protection.
    EndProtection {
        /// The cluster.
        cluster: String,
        /// The version of the work that this was decided on.
        over: Option<String>,
        /// The group, as it is asked for, with the order.
        group: Box<VolumeReplicationGroup>,
    },
    /// Takes the group back from a cluster.
    TakeBackGroup {
        /// The cluster.
        cluster: String,
        /// The version of the work that this was decided on.
        over: Option<String>,
    },
    /// Takes back everything else that we sent to a cluster, and stops looking at it.
    TakeBackRest {
        /// The cluster.
        cluster: String,
    },
    /// Takes our finalizer and annotations off the placement.
    ReleasePlacement,
    /// Removes what other hubs left, and takes our finalizer off the DRPlacementControl.
    Release,
}

/// What is decided about a DRPlacementControl.
pub type DrpcDecision = Decision<Effect, Wait, DRPlacementControlStatus>;

/// How far a flow is: what people are told.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The phase.
    pub phase: DRState,
    /// The step.
    pub progression: Progression,
    /// What is waited for, the most telling first.
    pub waits: Vec<Wait>,
    /// The peer.
    pub peer: Peer,
    /// What is the matter with an application that has arrived.
    pub unwell: Option<Wait>,
    /// What a failover that begins now gives up.
    pub loss: Option<FailoverLoss>,
    /// When to look again though nothing has changed.
    pub until: Option<Timestamp>,
}

/// How ready the peer is for the next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// Nothing is known yet: the object is new.
    Initiating,
    /// The action has not reached it.
    NotStarted,
    /// It is on its way.
    Progressing(String),
    /// It is.
    Ready,
    /// A user must choose first.
    Paused,
    /// A failover may be chosen by the user.
    FailoverAllowed,
}

impl Report {
    /// A report.
    pub fn new(phase: DRState, progression: Progression, peer: Peer) -> Self {
        Self { phase, progression, waits: Vec::new(), peer, unwell: None, loss: None, until: None }
    }

    /// The same, looked at again at a time.
    #[must_use]
    pub fn until(mut self, until: Option<Timestamp>) -> Self {
        self.until = until;
        self
    }

    /// The same, waiting for something.
    #[must_use]
    pub fn waiting(mut self, why: Wait) -> Self {
        self.waits.push(why);
        self
    }
}

/// What a flow comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Do these, and look again; people are told where that says something new.
    Do(Vec<Effect>, Option<Report>),
    /// Nothing can be done now.
    Rest(Report),
}

impl Step {
    /// Do one thing and look again.
    pub fn one(effect: Effect) -> Self {
        Self::Do(vec![effect], None)
    }
}

/// What the user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// What.
    pub act: Act,
    /// Where to.
    pub target: String,
}

/// What the user asks for; nothing where it cannot be told, which `admit` has said already.
pub fn wish(world: &World) -> Option<Wish> {
    let spec = &world.drpc.spec;
    let act = Act::asked(spec.action.as_ref())?;
    let target = match act {
        Act::Failover => spec.failover_cluster.clone(),
        Act::Deploy | Act::Relocate => spec.preferred_cluster.clone(),
    };
    Some(Wish { act, target: target.filter(|name| !name.is_empty())? })
}

/// Every rule.
pub fn decide(world: &World, now: Timestamp) -> DrpcDecision {
    if delete::is_going(world) {
        return conclude(world, now, delete::delete(world, now));
    }
    let limits = match admit::admit(world) {
        Ok(()) => None,
        Err(why) => match admit::limits(world, &why) {
            admit::Limits::Nothing => {
                let status = Telling::of(world, now).refused(&why).done();
                return Decision::wait(why).showing(status);
            }
            limits => Some((limits, why)),
        },
    };
    if let Some(step) = admit::own(world) {
        return conclude(world, now, step);
    }
    let step = match recover::recover(world, now) {
        recover::Memory::Step(step) => step,
        recover::Memory::New => match &limits {
            None => deploy::begin(world, now),
            Some((_, why)) => {
                let status = Telling::of(world, now).refused(why).done();
                return Decision::wait(why.clone()).showing(status);
            }
        },
        recover::Memory::Known(commission) => match &limits {
            Some((admit::Limits::CarryOnly, _)) => carry::carry(world, now, &commission),
            _ => go_on(world, now, &commission),
        },
    };
    conclude(world, now, beside(step, limits.map(|(_, why)| why)))
}

/// The same step, beside which it is said what is wrong with the request or the policy: what is under way goes on meanwhile.
fn beside(step: Step, why: Option<Wait>) -> Step {
    let Some(why) = why else { return step };
    match step {
        Step::Do(effects, report) => Step::Do(effects, report.map(|one| one.waiting(why))),
        Step::Rest(report) => Step::Rest(report.waiting(why)),
    }
}

/// What to do about an application whose place is known.
fn go_on(world: &World, now: Timestamp, commission: &Commission) -> Step {
    let Some(wish) = wish(world) else { return carry::carry(world, now, commission) };
    let fulfilled = wish.act == commission.act && wish.target == commission.holder;
    // Nothing but a failover can be made of an application whose data waits for a choice.
    let leaves = wish.act == Act::Failover && wish.target != commission.holder;
    match wish.act {
        _ if orphan::is_orphaned(world, now, commission) && !leaves => carry::carry(world, now, commission),
        _ if fulfilled => carry::carry(world, now, commission),
        // Taking an action away asks for nothing: what was decided last stays.
        Act::Deploy => carry::carry(world, now, commission),
        _ if drill::is_left(&world.drpc) => leave(carry::carry(world, now, commission)),
        Act::Relocate if relocate::is_called_off(world, commission).is_some() => {
            beside(carry::carry(world, now, commission), relocate::is_called_off(world, commission))
        }
        Act::Failover => failover::begin(world, now, commission, &wish.target),
        Act::Relocate => relocate::begin(world, now, commission, &wish.target),
    }
}

/// The same step, beside which it is said that a drill is not carried out by leaving out that it is one.
fn leave(step: Step) -> Step {
    let why = "the action was asked for as a drill, which is not served, and leaving out dryRun does not make it the real thing: \
               remove the action, then set it again if it is meant"
        .to_owned();
    match step {
        Step::Do(effects, report) => Step::Do(effects, report.map(|one| one.waiting(Wait::DrillLeft(why)))),
        Step::Rest(report) => Step::Rest(report.waiting(Wait::DrillLeft(why))),
    }
}

/// Whether an effect changes a role or a place, or asks for one: it rests on what the clusters are like now.
fn is_weighty(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Commission { .. }
            | Effect::PutGroup { .. }
            | Effect::Adopt { .. }
            | Effect::Place { .. }
            | Effect::EndProtection { .. }
            | Effect::TakeBackGroup { .. }
    )
}

/// The same step, unless it changes a role or a place and the hub has just started: then each cluster is heard of first, or shown to be silent.
fn once_heard(world: &World, now: Timestamp, step: Step) -> Step {
    let unheard: Vec<&crate::drpc::world::Site> =
        world.sites.values().filter(|site| site.is_unheard()).collect();
    let weighty = matches!(&step, Step::Do(effects, _) if effects.iter().any(is_weighty));
    if unheard.is_empty() || !weighty {
        return step;
    }
    let mut report = Report::new(recover::unchanged(world), recover::quiet(world), Peer::NotStarted);
    report.waits = unheard.iter().map(|site| recover::not_heard(site)).collect();
    report.until = recover::heard_by(&unheard, now);
    Step::Rest(report)
}

/// Turns a step into a decision.
fn conclude(world: &World, now: Timestamp, step: Step) -> DrpcDecision {
    match once_heard(world, now, step) {
        // What failed before is told, for it may fail again for long.
        Step::Do(effects, None) if world.trouble.is_some() => {
            Decision::act(effects).showing(Telling::of(world, now).troubled().done())
        }
        Step::Do(effects, None) => Decision::act(effects),
        Step::Do(effects, Some(report)) => {
            let status = Telling::of(world, now).told(&report).done();
            let decision = Decision::act(effects).showing(status);
            // Roles do not change before it is written down what that gives up.
            if report.loss.is_some() { decision.on_record() } else { decision }
        }
        Step::Rest(report) => {
            let status = Telling::of(world, now).told(&report).done();
            match report.waits.into_iter().next() {
                Some(why) => {
                    let mut decision = Decision::wait(why);
                    if let Next::Wait { until, .. } = &mut decision.next {
                        *until = report.until;
                    }
                    decision.showing(status)
                }
                None => Decision::settled().showing(status),
            }
        }
    }
}

/// The epoch after every one that anything we know of carries.
pub(crate) fn next_epoch(world: &World) -> i64 {
    world.highest_epoch() + 1
}

/// The effect that gives out an epoch.
pub(crate) fn commission(world: &World, commission: Commission) -> Effect {
    let (after, asked) = (crate::drpc::commission::epoch_on(&*world.drpc), world.drpc.generation());
    Effect::Commission { commission, after, asked }
}

/// The phase while an action is under way.
pub fn underway(act: Act) -> DRState {
    match act {
        Act::Deploy => DRState::Deploying,
        Act::Failover => DRState::FailingOver,
        Act::Relocate => DRState::Relocating,
    }
}

/// The phase when the application has arrived.
pub fn arrived(act: Act) -> DRState {
    match act {
        Act::Deploy => DRState::Deployed,
        Act::Failover => DRState::FailedOver,
        Act::Relocate => DRState::Relocated,
    }
}

/// The effect that sends a group to a cluster, if it is not there already as wanted.
pub(crate) fn put(world: &World, cluster: &str, wanted: VolumeReplicationGroup) -> Option<Effect> {
    // A work that is on its way out cannot be changed, and a cluster that has left the fleet has no namespace to send to.
    let site = world.site(cluster).filter(|site| !site.is_work_deleting() && site.managed.is_some())?;
    let work = crate::drpc::group::work(world, cluster, &wanted);
    if site.work.as_ref().is_some_and(|known| crate::works::says(known, &work)) {
        return None;
    }
    Some(Effect::PutGroup {
        cluster: cluster.to_owned(),
        role: wanted.spec.replication_state.clone(),
        over: site.work.as_ref().and_then(|work| work.metadata.resource_version.clone()),
        group: Box::new(wanted),
    })
}

/// The effect that makes the application's namespace on a cluster, if it is not asked for already.
pub(crate) fn put_space(world: &World, cluster: &str) -> Option<Effect> {
    let wanted = crate::drpc::group::space_work(world, cluster);
    let known = world.site(cluster)?.space_work.as_ref();
    let there = known.is_some_and(|known| known.is_going() || crate::works::says(known, &wanted));
    (!there).then(|| Effect::PutSpace { cluster: cluster.to_owned() })
}

/// Why nothing can be sent to a cluster, or what was sent is not taken.
pub(crate) fn obstacle(world: &World, cluster: &str) -> Option<Wait> {
    let work = world.site(cluster)?.work.as_ref()?;
    if work.is_going() {
        let why = format!(
            "the work {} of cluster {cluster} is being deleted; it is made again when it is gone",
            work.name()
        );
        return Some(Wait::WorkGoing(why));
    }
    let why = crate::works::refusal(work)?;
    Some(Wait::WorkRefused(format!("cluster {cluster} does not take the group: {why}")))
}
