//! Every rule about an application on one cluster: deployed where it is decided to be, taken off only where a decision says that it runs
//! elsewhere.

use super::manifests::{Kind, Manifest};
use lifeboat_api::cluster::PlacementDecision;
use lifeboat_api::conditions::drpc::DECISION_RETAINED_FOR_FAILOVER;
use lifeboat_engine::{Decision, Level, ObjectKey, Why};
use std::collections::BTreeMap;
use std::fmt;

/// What the hub says about this cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// The hub has not been read yet.
    Unread,
    /// The hub knows another cluster by this one's name: its decisions are about that one.
    ForAnother,
    /// There is no decision.
    None,
    /// The application belongs here.
    Here,
    /// It failed over from here: what is here is left as it is until its volumes are secondary.
    Retained,
    /// There is a decision, and this cluster is not in it.
    Elsewhere,
}

impl Decided {
    /// What the decisions about a placement say of a cluster. One without a status was made a moment ago, and has not decided anything: an application that runs
    /// is not taken off by it.
    pub fn of<'a>(told: impl Iterator<Item = &'a PlacementDecision>, cluster: &str) -> Self {
        let mut told = told.filter_map(|one| one.status.as_ref()).peekable();
        if told.peek().is_none() {
            return Self::None;
        }
        let here: Vec<_> =
            told.flat_map(|status| &status.decisions).filter(|one| one.cluster_name == cluster).collect();
        match here.iter().all(|one| one.reason == DECISION_RETAINED_FOR_FAILOVER) {
            _ if here.is_empty() => Self::Elsewhere,
            true => Self::Retained,
            false => Self::Here,
        }
    }
}

/// An object on the cluster that a manifest names or that was deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Uid of the object.
    pub uid: String,
    /// Its version.
    pub version: String,
    /// Whether it is being deleted.
    pub going: bool,
    /// Uid of the record under which it was deployed.
    pub deployed_by: Option<String>,
    /// Hash of the manifest that it was deployed from.
    pub hash: Option<String>,
}

/// What a decision about an application on a cluster needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The manifests, or what is wrong with them; `None` where the hub has none (any more).
    pub manifests: Option<Result<Vec<Manifest>, String>>,
    /// What the hub says about this cluster.
    pub decided: Decided,
    /// Namespaces that manifests name and that are not there.
    pub missing_namespaces: Vec<String>,
    /// Uid of the record of the deployment on this cluster, once there is one.
    pub record: Option<String>,
    /// Objects that manifests name, and all that carry the record's uid.
    pub seen: BTreeMap<(Kind, ObjectKey), Seen>,
}

/// What can be done.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Effect {
    /// Makes a namespace.
    MakeNamespace(String),
    /// Writes the record of a deployment.
    Begin,
    /// Makes an object as its manifest says.
    Apply {
        /// The manifest.
        manifest: Box<Manifest>,
        /// Uid of the record.
        record: String,
    },
    /// Takes over a claim that is there already, as a restored one is: its volume and size are what was restored.
    Adopt {
        /// The manifest.
        manifest: Box<Manifest>,
        /// Uid of the record.
        record: String,
    },
    /// Deletes a deployed object: this one, in this version.
    Delete {
        /// Its kind.
        kind: Kind,
        /// Namespace and name.
        #[serde(skip)]
        key: ObjectKey,
        /// Uid of the object.
        uid: String,
        /// Its version.
        version: String,
    },
    /// Removes the record.
    End {
        /// Its uid.
        uid: String,
    },
}

/// What an application on a cluster waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Wait {
    /// The hub has not been read yet.
    HubUnread,
    /// The hub knows another cluster by this name.
    NotLetIn,
    /// Nobody decided where it runs.
    NoDecision,
    /// The hub has no manifests for what runs here.
    SourceMissing,
    /// The manifests cannot be read.
    BadManifests(String),
    /// Deleted objects are still there.
    StillGoing {
        /// One of them.
        object: String,
        /// How many.
        count: usize,
    },
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HubUnread => f.write_str("the hub has not been read yet; nothing is changed before that"),
            Self::NotLetIn => f.write_str("the hub knows another cluster by this name; nothing is deployed before this one is let in"),
            Self::NoDecision => f.write_str("no PlacementDecision says where the application runs; nothing is changed"),
            Self::SourceMissing => f.write_str(
                "the hub has no manifests for what was deployed here; it is left running: empty the decision first to take it off",
            ),
            Self::BadManifests(why) => write!(f, "the manifests cannot be deployed: {why}"),
            Self::StillGoing { object, count } => {
                write!(f, "{count} deleted objects are still there, {object} among them; their finalizers say who holds them")
            }
        }
    }
}

impl Why for Wait {
    fn event(&self) -> Option<Level> {
        matches!(self, Self::BadManifests(_)).then_some(Level::Warning)
    }
}

/// Every rule.
pub fn decide(world: &World) -> Decision<Effect, Wait, ()> {
    match world.decided {
        Decided::Unread => Decision::wait(Wait::HubUnread),
        Decided::ForAnother => Decision::wait(Wait::NotLetIn),
        // An application that loses its source or its decision is not one that somebody wants gone.
        Decided::None => Decision::wait(Wait::NoDecision),
        Decided::Elsewhere => take_off(world),
        // It runs elsewhere now. A cluster that was rebuilt meanwhile would start it a second time, on empty volumes.
        Decided::Retained => Decision::settled(),
        Decided::Here => match &world.manifests {
            None => Decision::wait(Wait::SourceMissing),
            Some(Err(why)) => Decision::wait(Wait::BadManifests(why.clone())),
            Some(Ok(manifests)) => deploy(world, manifests),
        },
    }
}

fn take_off(world: &World) -> Decision<Effect, Wait, ()> {
    let Some(record) = &world.record else { return Decision::settled() };
    let ours = || world.seen.iter().filter(|(_, seen)| seen.deployed_by.as_ref() == Some(record));
    let delete: Vec<Effect> =
        ours().filter(|(_, seen)| !seen.going).map(|(at, seen)| deletion(at, seen)).collect();
    if !delete.is_empty() {
        return Decision::act(delete);
    }
    match ours().next() {
        Some(((kind, key), _)) => {
            let object = format!("{kind} {key}");
            Decision::wait(Wait::StillGoing { object, count: ours().count() })
        }
        None => Decision::act([Effect::End { uid: record.clone() }]),
    }
}

fn deletion((kind, key): &(Kind, ObjectKey), seen: &Seen) -> Effect {
    Effect::Delete { kind: *kind, key: key.clone(), uid: seen.uid.clone(), version: seen.version.clone() }
}

fn deploy(world: &World, manifests: &[Manifest]) -> Decision<Effect, Wait, ()> {
    if !world.missing_namespaces.is_empty() {
        return Decision::act(world.missing_namespaces.iter().cloned().map(Effect::MakeNamespace));
    }
    // Before anything is deployed it is on record that it was deployed here, and not restored from another cluster's records.
    let Some(record) = &world.record else { return Decision::act([Effect::Begin]) };
    let mut effects = Vec::new();
    let mut going = Vec::new();
    for manifest in manifests {
        let at = (manifest.kind, manifest.key.clone());
        let (manifest, record) = (|| Box::new(manifest.clone()), || record.clone());
        let apply = || Effect::Apply { manifest: manifest(), record: record() };
        match world.seen.get(&at) {
            None => effects.push(apply()),
            Some(seen) if seen.going => going.push(format!("{} {}", at.0, at.1)),
            Some(seen) if seen.deployed_by.as_deref() != Some(&record()) => {
                effects.push(match at.0 {
                    Kind::PersistentVolumeClaim => Effect::Adopt { manifest: manifest(), record: record() },
                    Kind::ConfigMap | Kind::Deployment => apply(),
                });
            }
            Some(seen) if seen.hash.as_ref() != Some(&manifest().hash) => effects.push(apply()),
            Some(_) => {}
        }
    }
    // What the manifests no longer name was taken out on purpose; but a claim has data, and is left to people.
    for (at, seen) in &world.seen {
        let named = manifests.iter().any(|manifest| (manifest.kind, &manifest.key) == (at.0, &at.1));
        let ours = seen.deployed_by.as_ref() == Some(record);
        if ours && !named && !seen.going && at.0 != Kind::PersistentVolumeClaim {
            effects.push(deletion(at, seen));
        }
    }
    match going.first() {
        _ if !effects.is_empty() => Decision::act(effects),
        Some(object) => Decision::wait(Wait::StillGoing { object: object.clone(), count: going.len() }),
        None => Decision::settled(),
    }
}
