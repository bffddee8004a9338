//! Every rule about works: what to make, change and take away, in which order, and what is waited for.

mod object;
mod record;
mod words;

pub use object::edition;
pub use words::{Effect, EntryName, Why};

use super::manifest::rank;
use super::status::{self, Outcome};
use super::world::{World, goes_with_work};
use crate::cluster::ground::Standing;
use jiff::Timestamp;
use lifeboat_api::work::ManifestWorkStatus;
use lifeboat_engine::Decision;
use object::{Step, step};
use record::{Fate, entries, fate, waits};

type Decided = Decision<Effect, Why, ManifestWorkStatus>;

/// Decides about one work.
pub fn decide(world: &World, now: Timestamp) -> Decided {
    match &world.standing {
        Standing::Meant => {}
        Standing::Unknown => return Decision::wait(Why::IdentityUnknown),
        Standing::Other(id) => return Decision::wait(Why::OtherCluster(id.clone())),
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
