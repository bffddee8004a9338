//! Every rule about putting a pod on the node: what must be there first, and what keeps it waiting.

use crate::words::{annotation, bound_to, is_going, is_over, name, node_of, set_condition, spec, status};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim, Pod,
    PodCondition,
};
use lifeboat_api::annotations::SELECTED_NODE;
use lifeboat_engine::conditions::Holds;
use lifeboat_engine::{Decision, Level, Why};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Pods that name no other scheduler are ours.
const SCHEDULER: &str = "default-scheduler";

/// A claim that a pod wants, as far as it is there.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The claim.
    pub claim: Option<Arc<PersistentVolumeClaim>>,
    /// The volume that it is bound to.
    pub volume: Option<Arc<PersistentVolume>>,
    /// Whether its class binds it only when a pod is about to use it.
    pub delayed: bool,
}

/// What a decision about a pod's place needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The pod.
    pub pod: Arc<Pod>,
    /// Name of the one node that there is to be.
    pub node_name: String,
    /// The node, once it is there.
    pub node: Option<Arc<Node>>,
    /// The claims it wants, by name.
    pub claims: BTreeMap<String, Wanted>,
}

/// What can be done for a pod without a place.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Effect {
    /// Says on a claim that its first pod will run on the node.
    SelectNode {
        /// The claim, in the version that was seen.
        claim: Box<PersistentVolumeClaim>,
        /// The node.
        node: String,
    },
    /// Puts the pod on the node.
    Bind {
        /// Uid of the pod.
        uid: String,
        /// The node.
        node: String,
    },
}

/// What a pod without a place waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Wait {
    /// The node is not there.
    NoNode {
        /// Its name.
        node: String,
    },
    /// The node takes no pods.
    Cordoned {
        /// Its name.
        node: String,
    },
    /// The node's labels are not those that the pod asks for.
    OtherNode {
        /// Its name.
        node: String,
    },
    /// A gate of the pod is closed.
    Gated {
        /// The gate.
        gate: String,
    },
    /// There is no such claim.
    NoClaim {
        /// Its name.
        claim: String,
    },
    /// The claim is being deleted.
    ClaimGoing {
        /// Its name.
        claim: String,
    },
    /// The claim has no volume yet.
    Unbound {
        /// Its name.
        claim: String,
    },
    /// The claim's volume cannot be reached from the node.
    VolumeElsewhere {
        /// The claim.
        claim: String,
        /// The node.
        node: String,
    },
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNode { node } => write!(f, "0/0 nodes are available: {node} has not registered yet"),
            Self::Cordoned { node } => {
                write!(
                    f,
                    "0/1 nodes are available: {node} is unschedulable; `kubectl uncordon {node}` opens it"
                )
            }
            Self::OtherNode { node } => write!(
                f,
                "0/1 nodes are available: {node} does not have the labels that the pod's node selector asks for"
            ),
            Self::Gated { gate } => {
                write!(f, "the scheduling gate {gate} is closed; whoever set it opens it")
            }
            Self::NoClaim { claim } => write!(f, "persistentvolumeclaim \"{claim}\" not found; create it"),
            Self::ClaimGoing { claim } => {
                write!(
                    f,
                    "persistentvolumeclaim \"{claim}\" is being deleted; create it again when it is gone"
                )
            }
            Self::Unbound { claim } => write!(
                f,
                "persistentvolumeclaim \"{claim}\" has no volume yet; `lifeboat explain pvc {claim}` says why"
            ),
            Self::VolumeElsewhere { claim, node } => {
                write!(f, "the volume of persistentvolumeclaim \"{claim}\" cannot be reached from {node}")
            }
        }
    }
}

impl Why for Wait {
    fn event(&self) -> Option<Level> {
        match self {
            // These pass by themselves within moments.
            Self::Unbound { .. } | Self::NoNode { .. } => None,
            _ => Some(Level::Warning),
        }
    }

    fn reason(&self) -> String {
        "FailedScheduling".to_owned()
    }
}

/// Every rule.
pub fn decide(world: &World, now: Timestamp) -> Decision<Effect, Wait, Vec<PodCondition>> {
    let pod = &*world.pod;
    let Some(wants) = spec(pod) else { return Decision::settled() };
    let ours = wants.scheduler_name.as_deref().is_none_or(|name| name == SCHEDULER);
    if node_of(pod).is_some() || is_going(&pod.metadata) || is_over(pod) || !ours {
        return Decision::settled();
    }
    match place(world) {
        Ok(effects) => Decision::act(effects),
        Err(why) => {
            let mut conditions = status(pod).and_then(|status| status.conditions.clone()).unwrap_or_default();
            let told = ("Unschedulable", why.to_string());
            set_condition(&mut conditions, "PodScheduled", Holds::False, Some(told), now);
            Decision::wait(why).showing(conditions)
        }
    }
}

fn place(world: &World) -> Result<Vec<Effect>, Wait> {
    let pod = &*world.pod;
    let wants = spec(pod).ok_or_else(|| Wait::NoNode { node: world.node_name.clone() })?;
    if let Some(gate) = wants.scheduling_gates.iter().flatten().next() {
        return Err(Wait::Gated { gate: gate.name.clone() });
    }
    let node = || world.node_name.clone();
    let there = world.node.as_deref().ok_or_else(|| Wait::NoNode { node: node() })?;
    if there.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true)) {
        return Err(Wait::Cordoned { node: node() });
    }
    let none = BTreeMap::new();
    let labels = there.metadata.labels.as_ref().unwrap_or(&none);
    let fits = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    if !wants.node_selector.as_ref().unwrap_or(&none).iter().all(fits) {
        return Err(Wait::OtherNode { node: node() });
    }
    let mut selected = Vec::new();
    let mut unbound = None;
    for (claim_name, wanted) in &world.claims {
        let claim = || claim_name.clone();
        let there = wanted.claim.as_ref().ok_or_else(|| Wait::NoClaim { claim: claim() })?;
        if is_going(&there.metadata) {
            return Err(Wait::ClaimGoing { claim: claim() });
        }
        let bound = bound_to(there).is_some();
        if !bound && wanted.delayed && annotation(&there.metadata, SELECTED_NODE).is_none_or(str::is_empty) {
            let claim = Box::new(PersistentVolumeClaim::clone(there));
            selected.push(Effect::SelectNode { claim, node: node() });
        }
        match &wanted.volume {
            Some(volume) if bound => {
                if !reaches(volume, labels) {
                    return Err(Wait::VolumeElsewhere { claim: claim(), node: node() });
                }
            }
            _ => unbound = unbound.or(Some(Wait::Unbound { claim: claim() })),
        }
    }
    match unbound {
        _ if !selected.is_empty() => Ok(selected),
        Some(why) => Err(why),
        None => Ok(vec![Effect::Bind {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            node: name(&there.metadata).to_owned(),
        }]),
    }
}

/// Whether a volume says that a node with these labels can use it.
fn reaches(volume: &PersistentVolume, labels: &BTreeMap<String, String>) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let Some(required) = affinity.and_then(|affinity| affinity.required.as_ref()) else { return true };
    let term = |term: &NodeSelectorTerm| {
        // What this scheduler cannot judge does not hold.
        term.match_fields.as_ref().is_none_or(Vec::is_empty)
            && term.match_expressions.iter().flatten().all(|one| holds(one, labels))
    };
    required.node_selector_terms.iter().any(term)
}

fn holds(wanted: &NodeSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&wanted.key);
    let named = value.is_some_and(|value| wanted.values.iter().flatten().any(|one| one == value));
    match wanted.operator.as_str() {
        "In" => named,
        "NotIn" => !named,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}
