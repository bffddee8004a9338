//! Which objects were made for a work, what becomes of those that are wanted no more, and what the record should say.

use super::object::Step;
use super::words::{Effect, EntryName, Why};
use crate::cluster::kinds::Target;
use crate::cluster::sight::Seen;
use crate::work::world::{Recorded, Whereabouts, World, goes_with_work};
use kube::api::DynamicObject;
use lifeboat_api::annotations::MADE_BY_RECORD;
use lifeboat_api::work::AppliedResource;
use std::collections::BTreeSet;

/// What becomes of an object whose manifest, or whose work, is gone.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
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
    pub(super) fn effect(&self) -> Option<Effect> {
        match self {
            Self::Delete { target, uid } => Some(Effect::Delete { target: target.clone(), uid: uid.clone() }),
            _ => None,
        }
    }
}

pub(super) fn waits(fates: &[Fate]) -> Option<Why> {
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

pub(super) fn fate(world: &World, recorded: &Recorded) -> Fate {
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
pub(super) fn entries(world: &World, steps: &[Step]) -> (Vec<Fate>, Vec<EntryName>) {
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
