//! Decide: every rule about a Greeting.

use super::world::World;
use super::{FINALIZER, status};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use lifeboat_engine::{Level, Why};
use serde::Serialize;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Effect {
    /// Put the finalizer on before anything is made, so that nothing made is forgotten.
    Guard,
    WriteText {
        text: String,
    },
    DeleteText,
    SendCard {
        text: String,
    },
    Release,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Waits {
    FirstMissing { first: String },
    FirstNotReady { first: String },
    NameTaken,
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstMissing { first } => write!(f, "it comes after {first}, which does not exist"),
            Self::FirstNotReady { first } => write!(f, "it comes after {first}, which is not ready"),
            Self::NameTaken => f.write_str("a ConfigMap of its name belongs to somebody else"),
        }
    }
}

impl Why for Waits {
    fn event(&self) -> Option<Level> {
        match self {
            Self::FirstMissing { .. } | Self::NameTaken => Some(Level::Warning),
            Self::FirstNotReady { .. } => None,
        }
    }
}

pub type Decision = lifeboat_engine::Decision<Effect, Waits, status::GreetingStatus>;

pub fn decide(world: &World, now: Timestamp) -> Decision {
    let greeting = &world.greeting;
    let guarded = greeting.finalizers().iter().any(|name| name == FINALIZER);
    if greeting.metadata.deletion_timestamp.is_some() {
        return match (guarded, ours(world)) {
            (false, _) => Decision::settled(),
            (true, true) => Decision::act([Effect::DeleteText]),
            (true, false) => Decision::act([Effect::Release]),
        };
    }
    let wait = |why: Waits| {
        let status = status::waiting(world, &why, now);
        Decision::wait(why).showing(status)
    };
    if let Some(first) = &greeting.spec.after {
        match &world.first {
            None => return wait(Waits::FirstMissing { first: first.clone() }),
            Some(other) if !status::is_ready(other) => {
                return wait(Waits::FirstNotReady { first: first.clone() });
            }
            Some(_) => {}
        }
    }
    if !guarded {
        return Decision::act([Effect::Guard]);
    }
    if world.text.is_some() && !ours(world) {
        return wait(Waits::NameTaken);
    }
    let text = format!("Hello, {}!", greeting.spec.whom);
    let mut effects = Vec::new();
    if world.text.as_deref().and_then(written) != Some(text.as_str()) {
        effects.push(Effect::WriteText { text: text.clone() });
    }
    if greeting.spec.card && !world.card_sent {
        effects.push(Effect::SendCard { text });
    }
    if effects.is_empty() {
        return Decision::settled().showing(status::ready(world, now));
    }
    // What failed is told; what goes well needs no status of its own.
    let status = world.trouble.as_ref().map(|trouble| status::troubled(world, trouble, now));
    Decision { status, ..Decision::act(effects) }
}

fn ours(world: &World) -> bool {
    let owners = world.text.iter().flat_map(|text| text.owner_references());
    owners.map(|owner| Some(&owner.uid)).any(|uid| uid == world.greeting.metadata.uid.as_ref())
}

fn written(text: &ConfigMap) -> Option<&str> {
    text.data.as_ref()?.get("text").map(String::as_str)
}
