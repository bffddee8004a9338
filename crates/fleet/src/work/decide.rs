//! Every rule about works: what to make, change and take away, in which order, and what is waited for.

use super::manifest::{Manifest, rank};
use super::status::{self, Outcome};
use super::world::{Home, Item, Recorded, Whereabouts, World, goes_with_work};
use crate::cluster::kinds::{Found, Target};
use crate::cluster::sight::Seen;
use jiff::Timestamp;
use kube::api::DynamicObject;
use lifeboat_api::annotations::MADE_BY_RECORD;
use lifeboat_api::work::{AppliedResource, ManifestWorkStatus, UpdateStrategyType};
use lifeboat_engine::{Decision, Level};
use std::collections::BTreeSet;
use std::fmt;

/// What can be done about a work. Objects are named, not carried: a manifest may be a secret, and effects are told to people.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Effect {
    /// Have the hub keep the work until its objects are gone.
    Hold,
    /// Begin the record of what is made.
    OpenRecord,
    /// Write down what was or is about to be made.
    Record {
        /// All entries.
        entries: Vec<EntryName>,
    },
    /// Make an object that does not exist.
    Make {
        /// The object.
        target: Target,
        /// The manifest that was decided on.
        hash: String,
    },
    /// Make an object as the manifest says, by replacing it.
    Replace {
        /// The object.
        target: Target,
        /// The manifest that was decided on.
        hash: String,
    },
    /// Make an object as the manifest says, by server-side apply.
    Apply {
        /// The object.
        target: Target,
        /// The manifest that was decided on.
        hash: String,
    },
    /// Delete an object that was made for this work.
    Delete {
        /// The object.
        target: Target,
        /// Which one of that name.
        uid: String,
    },
    /// End the record.
    DropRecord,
    /// Let the hub forget the work.
    Release,
}

/// An entry of the record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct EntryName {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Resource.
    pub resource: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Which one of that name; `None` while it is being made.
    pub uid: Option<String>,
}

impl From<&AppliedResource> for EntryName {
    fn from(entry: &AppliedResource) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            group: text(&entry.identifier.group),
            version: entry.version.clone(),
            resource: entry.identifier.resource.clone(),
            namespace: text(&entry.identifier.namespace),
            name: entry.identifier.name.clone(),
            uid: entry.uid.clone().filter(|uid| !uid.is_empty()),
        }
    }
}

impl EntryName {
    fn of(target: &Target, uid: Option<String>) -> Self {
        Self {
            group: target.kind.group.clone(),
            version: target.kind.version.clone(),
            resource: target.kind.resource.clone(),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            uid,
        }
    }
}

/// What a work can wait for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Why {
    /// The hub's ManagedCluster of this name is another cluster.
    OtherCluster(String),
    /// The cluster has not told its kinds yet.
    KindsUnknown,
    /// These objects have not been looked at yet.
    Looking(Vec<String>),
    /// The cluster does not answer.
    ClusterSilent(String),
    /// The work wants nothing.
    NoManifests,
    /// These objects are being deleted.
    ObjectsGoing(Vec<String>),
    /// Namespaces that objects live in are missing or being deleted.
    NoNamespace(String),
    /// Some manifests were refused.
    Refused(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherCluster(id) => write!(
                f,
                "the hub knows another cluster ({id}) by this name; give this one a name of its own, or remove the claim id.k8s.io of the former"
            ),
            Self::KindsUnknown => f.write_str("the cluster has not told its kinds yet"),
            Self::Looking(objects) => write!(f, "looking at {}", objects.join(", ")),
            Self::ClusterSilent(why) => write!(f, "the cluster does not answer: {why}"),
            Self::NoManifests => f.write_str(
                "the work has no manifests; what was made for it stays until the work itself is deleted",
            ),
            Self::ObjectsGoing(objects) => {
                write!(f, "{} being deleted and still there; see their finalizers", objects.join(", "))
            }
            Self::NoNamespace(what) => f.write_str(what),
            Self::Refused(what) => write!(f, "manifests were refused: {what}"),
        }
    }
}

impl lifeboat_engine::Why for Why {
    fn event(&self) -> Option<Level> {
        matches!(self, Self::OtherCluster(_) | Self::Refused(_)).then_some(Level::Warning)
    }
}

type Decided = Decision<Effect, Why, ManifestWorkStatus>;

/// What is to be done about one manifest.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Look,
    Blind(String),
    Homeless(String),
    Refused { message: String, ignore_fields: bool, again: Option<Timestamp> },
    Done,
    Do(Effect),
}

/// Decides about one work.
pub fn decide(world: &World, now: Timestamp) -> Decided {
    if let Some(other) = &world.impostor {
        return Decision::wait(Why::OtherCluster(other.clone()));
    }
    if world.is_going() { going(world, now) } else { living(world, now) }
}

fn going(world: &World, now: Timestamp) -> Decided {
    if !world.is_held() {
        return Decision::settled();
    }
    if !world.kinds_known {
        return Decision::wait(Why::KindsUnknown);
    }
    let doomed =
        world.recorded.iter().filter(|recorded| goes_with_work(&world.work.spec, &recorded.entry.identifier));
    let fates: Vec<Fate> = doomed.map(|recorded| fate(world, recorded)).collect();
    let deleting = status::deleting(world, now);
    let deletes: Vec<Effect> = fates.iter().filter_map(Fate::effect).collect();
    if !deletes.is_empty() {
        return Decision::act(deletes).showing(deleting);
    }
    if let Some(why) = waits(&fates) {
        return Decision::wait(why).showing(deleting);
    }
    match &world.record {
        Some(_) => Decision::act([Effect::DropRecord]),
        None => Decision::act([Effect::Release]),
    }
}

fn living(world: &World, now: Timestamp) -> Decided {
    if !world.is_held() {
        return Decision::act([Effect::Hold]);
    }
    if !world.kinds_known {
        return Decision::wait(Why::KindsUnknown);
    }
    if world.record.is_none() {
        return Decision::act([Effect::OpenRecord]);
    }
    let steps: Vec<Step> =
        world.items.iter().enumerate().map(|(at, item)| step(world, at, item, now)).collect();
    let (removed, entries) = entries(world, &steps);
    let known: Vec<EntryName> =
        world.recorded.iter().map(|recorded| EntryName::from(&recorded.entry)).collect();
    let decided = if entries != known {
        Decision::act([Effect::Record { entries }])
    } else if let Some(effects) = first_to_do(world, &steps) {
        Decision::act(effects)
    } else if removed.iter().any(|fate| fate.effect().is_some()) {
        Decision::act(removed.iter().filter_map(Fate::effect))
    } else {
        return rest(world, &steps, &removed, now);
    };
    // Between two steps nothing is told, unless the last one failed.
    match &world.trouble {
        Some(trouble) => decided.showing(status::of(world, &outcomes(&steps, Some(&trouble.message)), now)),
        None => decided,
    }
}

/// Nothing can be done now: what is waited for, and what is told.
fn rest(world: &World, steps: &[Step], removed: &[Fate], now: Timestamp) -> Decided {
    let looking: Vec<String> = world
        .items
        .iter()
        .zip(steps)
        .filter(|(_, step)| **step == Step::Look)
        .map(|(item, _)| item.target.as_ref().map_or_else(|| "kinds".to_owned(), ToString::to_string))
        .collect();
    if !looking.is_empty() {
        // In a moment more is known; until then what was told stands.
        return Decision::wait(Why::Looking(looking));
    }
    let status = status::of(world, &outcomes(steps, None), now);
    let why = steps.iter().find_map(|step| match step {
        Step::Blind(why) => Some(Why::ClusterSilent(why.clone())),
        _ => None,
    });
    let why = why.or_else(|| waits(removed)).or_else(|| {
        steps.iter().find_map(|step| match step {
            Step::Homeless(what) => Some(Why::NoNamespace(what.clone())),
            _ => None,
        })
    });
    let why = why.or_else(|| {
        steps.iter().find_map(|step| match step {
            Step::Refused { message, .. } => Some(Why::Refused(message.clone())),
            _ => None,
        })
    });
    let why = why.or_else(|| world.items.is_empty().then_some(Why::NoManifests));
    let again = steps.iter().filter_map(|step| match step {
        Step::Refused { again, .. } => *again,
        _ => None,
    });
    match (why, again.min()) {
        (None, _) => Decision::settled().showing(status),
        (Some(why), None) => Decision::wait(why).showing(status),
        (Some(why), Some(again)) => Decision::wait_until(why, again).showing(status),
    }
}

fn outcomes(steps: &[Step], trouble: Option<&str>) -> Vec<Outcome> {
    let outcome = |step: &Step| match step {
        Step::Look => Outcome::Unknown,
        Step::Blind(why) => Outcome::Blind(why.clone()),
        Step::Homeless(what) => Outcome::Failed { message: what.clone(), ignore_fields: false },
        Step::Refused { message, ignore_fields, .. } => {
            Outcome::Failed { message: message.clone(), ignore_fields: *ignore_fields }
        }
        Step::Done => Outcome::Applied,
        Step::Do(_) => trouble.map_or(Outcome::Unknown, |trouble| Outcome::Failed {
            message: trouble.to_owned(),
            ignore_fields: false,
        }),
    };
    steps.iter().map(outcome).collect()
}

/// The effects to begin with: what others need comes first.
fn first_to_do(world: &World, steps: &[Step]) -> Option<Vec<Effect>> {
    let ranked: Vec<(u8, &Effect)> = world
        .items
        .iter()
        .zip(steps)
        .filter_map(|(item, step)| match (&item.manifest, step) {
            (Ok(manifest), Step::Do(effect)) => Some((rank(&manifest.kind), effect)),
            _ => None,
        })
        .collect();
    let first = ranked.iter().map(|(rank, _)| *rank).min()?;
    Some(ranked.into_iter().filter(|(rank, _)| *rank == first).map(|(_, effect)| effect.clone()).collect())
}

fn refused(message: impl Into<String>) -> Step {
    Step::Refused { message: message.into(), ignore_fields: false, again: None }
}

fn step(world: &World, at: usize, item: &Item, now: Timestamp) -> Step {
    let manifest = match &item.manifest {
        Ok(manifest) => manifest,
        Err(why) => return refused(why.clone()),
    };
    let executor = world.work.spec.executor.as_ref().and_then(|executor| executor.subject.as_ref());
    if executor.is_some() {
        return refused("this agent applies works as itself only; remove spec.executor");
    }
    let named = crate::allowed::named(&manifest.group, &manifest.kind);
    if !item.carried {
        return refused(format!("{named} is not among the kinds that this agent carries"));
    }
    let kind = match &item.kind {
        Found::Kind(kind) => kind,
        Found::None => {
            return refused(format!("the server doesn't have a resource type {:?}", manifest.kind));
        }
        Found::Unclear => return Step::Look,
    };
    let target = match manifest.target(kind.clone()) {
        Ok(target) => target,
        Err(why) => return refused(why),
    };
    if let Some(earlier) = world.items[..at].iter().position(|other| other.target.as_ref() == Some(&target)) {
        return refused(format!("manifest {earlier} of this work is the same object"));
    }
    step_on_object(item, manifest, target, now)
}

fn step_on_object(item: &Item, manifest: &Manifest, target: Target, now: Timestamp) -> Step {
    let strategy = item.strategy();
    let object = match &item.seen {
        Seen::NotYet => return Step::Look,
        Seen::Failing(why) => return Step::Blind(why.clone()),
        Seen::Absent => None,
        Seen::Present(object) => Some(object),
    };
    if strategy.type_ == UpdateStrategyType::ReadOnly {
        return Step::Done;
    }
    let failed = |hash: &str| {
        let failure = item.failure.as_ref()?;
        let same = failure.hash == hash && failure.on == edition(object.map(AsRef::as_ref));
        (same && now < failure.again).then(|| Step::Refused {
            message: failure.message.clone(),
            ignore_fields: failure.ignore_fields,
            again: Some(failure.again),
        })
    };
    let by_apply = strategy.type_ == UpdateStrategyType::ServerSideApply;
    let ignored = strategy.server_side_apply.iter().flat_map(|apply| apply.ignore_fields.clone());
    let wanted = match by_apply {
        true => manifest.clone().without(&ignored.collect::<Vec<_>>()),
        false => Ok(manifest.clone()),
    };
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(message) => return Step::Refused { message, ignore_fields: true, again: None },
    };
    let hash = wanted.hash();
    match object {
        None => match item.home {
            Home::Unknown => Step::Look,
            Home::Missing => Step::Homeless(format!("namespaces {:?} not found", target.namespace)),
            Home::Going => Step::Homeless(format!("namespace {:?} is being deleted", target.namespace)),
            Home::There => failed(&hash).unwrap_or(Step::Do(match by_apply {
                true => Effect::Apply { target, hash },
                false => Effect::Make { target, hash },
            })),
        },
        Some(_) if strategy.type_ == UpdateStrategyType::CreateOnly => Step::Done,
        // A namespace is nothing but labels and annotations, and often somebody else's: it is not touched without need.
        Some(object) if manifest.kind == "Namespace" && manifest.group.is_empty() => {
            match wanted.says_nothing_new_to(object) {
                true => Step::Done,
                false => failed(&hash).unwrap_or(Step::Do(Effect::Replace { target, hash })),
            }
        }
        Some(object) if wanted.is_met_by(object) => Step::Done,
        Some(_) => failed(&hash).unwrap_or(Step::Do(match by_apply {
            true => Effect::Apply { target, hash },
            false => Effect::Replace { target, hash },
        })),
    }
}

/// Which edition of an object's wishes something was tried on; empty where there was none.
pub fn edition(object: Option<&DynamicObject>) -> String {
    object.map_or_else(String::new, |object| {
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        format!("{uid}/{}", object.metadata.generation.unwrap_or_default())
    })
}

/// What becomes of an object whose manifest, or whose work, is gone.
#[derive(Debug, Clone, PartialEq)]
enum Fate {
    /// It is gone, or was never ours.
    Forgotten,
    Delete {
        target: Target,
        uid: String,
    },
    Going(String),
    Looking(String),
    Blind(String),
}

impl Fate {
    fn effect(&self) -> Option<Effect> {
        match self {
            Self::Delete { target, uid } => Some(Effect::Delete { target: target.clone(), uid: uid.clone() }),
            _ => None,
        }
    }
}

fn waits(fates: &[Fate]) -> Option<Why> {
    let blind = fates.iter().find_map(|fate| match fate {
        Fate::Blind(why) => Some(Why::ClusterSilent(why.clone())),
        _ => None,
    });
    let named = |pick: fn(&Fate) -> Option<&String>| {
        let names: Vec<String> = fates.iter().filter_map(pick).cloned().collect();
        (!names.is_empty()).then_some(names)
    };
    let looking = named(|fate| if let Fate::Looking(name) = fate { Some(name) } else { None });
    let going = named(|fate| if let Fate::Going(name) = fate { Some(name) } else { None });
    blind.or_else(|| looking.map(Why::Looking)).or_else(|| going.map(Why::ObjectsGoing))
}

fn fate(world: &World, recorded: &Recorded) -> Fate {
    let target = match &recorded.target {
        Whereabouts::Target(target) => target,
        Whereabouts::NoKind => return Fate::Forgotten,
        Whereabouts::Unclear => {
            return Fate::Blind(format!("kind of {}", recorded.entry.identifier.resource));
        }
    };
    match &recorded.seen {
        Seen::NotYet => Fate::Looking(target.to_string()),
        Seen::Failing(why) => Fate::Blind(why.clone()),
        Seen::Absent => Fate::Forgotten,
        Seen::Present(object) if !is_ours(world, &recorded.entry, object) => Fate::Forgotten,
        Seen::Present(object) if has_other_keepers(world, object) => Fate::Forgotten,
        Seen::Present(object) if object.metadata.deletion_timestamp.is_some() => {
            Fate::Going(target.to_string())
        }
        Seen::Present(object) => {
            Fate::Delete { target: target.clone(), uid: object.metadata.uid.clone().unwrap_or_default() }
        }
    }
}

/// Whether an object was made for this work: it is the one that the record names or, where the record does not know its uid
/// yet, it has carried the record's mark from its first moment on.
fn is_ours(world: &World, entry: &AppliedResource, object: &DynamicObject) -> bool {
    match entry.uid.as_deref().filter(|uid| !uid.is_empty()) {
        Some(uid) => object.metadata.uid.as_deref() == Some(uid),
        None => {
            let mark = object.metadata.annotations.iter().flatten().find(|(key, _)| *key == MADE_BY_RECORD);
            !world.record_uid().is_empty() && mark.is_some_and(|(_, uid)| uid == world.record_uid())
        }
    }
}

/// Whether another work's record, one of OCM's agent, owns the object too.
fn has_other_keepers(world: &World, object: &DynamicObject) -> bool {
    let owners = object.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|owner| {
        owner.kind == "AppliedManifestWork"
            && owner.api_version.starts_with("work.open-cluster-management.io/")
            && owner.uid != world.record_uid()
    })
}

/// What becomes of the objects that no manifest names any more, and what the record should say.
fn entries(world: &World, steps: &[Step]) -> (Vec<Fate>, Vec<EntryName>) {
    let mut wanted = BTreeSet::new();
    let mut named = BTreeSet::new();
    for (item, step) in world.items.iter().zip(steps) {
        let Some(target) = &item.target else { continue };
        let identifier = target.identifier();
        named.insert(EntryName::of(target, None).place());
        let known = world.entry(target);
        if !goes_with_work(&world.work.spec, &identifier) {
            continue;
        }
        match (step, &item.seen, known) {
            (Step::Do(_), Seen::Absent, _) => drop(wanted.insert(EntryName::of(target, None))),
            (_, Seen::Present(object), Some(entry)) => {
                if is_ours(world, entry, object) {
                    wanted.insert(EntryName::of(target, object.metadata.uid.clone()));
                }
            }
            (_, Seen::Present(_), None) | (_, _, None) => {}
            (_, _, Some(entry)) => drop(wanted.insert(EntryName::from(entry))),
        }
    }
    // A manifest that cannot be told could be that of any entry; and a list that is empty asks for nothing.
    let telling = !world.items.is_empty() && world.items.iter().all(|item| item.target.is_some());
    let mut fates = Vec::new();
    for recorded in &world.recorded {
        let name = EntryName::from(&recorded.entry);
        if named.contains(&name.place()) {
            continue;
        }
        if !telling {
            wanted.insert(name);
            continue;
        }
        if !goes_with_work(&world.work.spec, &recorded.entry.identifier) {
            continue;
        }
        let fate = fate(world, recorded);
        if fate != Fate::Forgotten {
            wanted.insert(name);
        }
        fates.push(fate);
    }
    (fates, wanted.into_iter().collect())
}

impl EntryName {
    /// The object without its version and uid.
    fn place(&self) -> (String, String, String, String) {
        (self.group.clone(), self.resource.clone(), self.namespace.clone(), self.name.clone())
    }
}
