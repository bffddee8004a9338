//! What is to be done about one manifest and its object.

use super::words::Effect;
use crate::cluster::kinds::{Found, Target};
use crate::cluster::sight::Seen;
use crate::work::manifest::Manifest;
use crate::work::world::{Home, Item, World};
use jiff::Timestamp;
use kube::api::DynamicObject;
use lifeboat_api::work::UpdateStrategyType;

/// What is to be done about one manifest.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Look,
    Blind(String),
    Homeless(String),
    Refused { message: String, ignore_fields: bool, again: Option<Timestamp> },
    Done,
    Do(Effect),
}

fn refused(message: impl Into<String>) -> Step {
    Step::Refused { message: message.into(), ignore_fields: false, again: None }
}

pub(super) fn step(world: &World, at: usize, item: &Item, now: Timestamp) -> Step {
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
