//! One row for each rule: a world, and what is decided about it. `Do(..)` names the effects, `Wait(..)` what is waited for, and
//! `=> Phase` the phase that is newly shown.

mod around;
mod claim;
mod guard;
mod matching;
mod reclaim;
mod volume;

use crate::model::Model;
use lifeboat_binder::decide::claim as claims;
use lifeboat_binder::decide::volume as volumes;
use lifeboat_engine::{Next, ObjectKey, variant};
use std::fmt::Debug;

pub fn told<E: Debug, W: Debug>(next: &Next<E, W>, shows: Option<String>) -> String {
    let next = match next {
        Next::Do(effects) => {
            format!("Do({})", effects.iter().map(variant).collect::<Vec<_>>().join(", "))
        }
        Next::Wait { why, .. } => format!("Wait({})", variant(why)),
        Next::Settled => "Settled".to_owned(),
    };
    shows.map_or(next.clone(), |phase| format!("{next} => {phase}"))
}

pub fn of_claim(model: &Model) -> String {
    let world = model.claim_world(&ObjectKey::new("ns", "c"));
    let decision = claims::decide(&world, model.now);
    let shows = decision.status.filter(|status| world.claim.status.as_ref() != Some(status));
    told(&decision.next, shows.and_then(|status| status.phase))
}

/// The same after the claim was told which volumes nearly fit, which comes before it rests.
pub fn hinted(model: Model) -> Model {
    let key = ObjectKey::new("ns", "c");
    if let Some(near) = model.claim_world(&key).near {
        model.mind.desk.tell(&key, near);
    }
    model
}

pub fn of_volume(model: &Model) -> String {
    let world = model.volume_world("v");
    let decision = volumes::decide(&world, model.now);
    let shows = decision.status.filter(|status| world.shown.as_ref() != Some(status));
    told(&decision.next, shows.map(|status| status.phase.as_str().to_owned()))
}

pub fn start() -> Model {
    Model::default()
}

#[track_caller]
pub fn check(rule: &str, decided: &str, expected: &str) {
    assert_eq!(decided, expected, "{rule}");
}
