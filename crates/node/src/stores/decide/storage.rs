//! Whether a store can be used: what can be said without it is said at once, the rest is tried, again after every change of the
//! object or its Secret, soon after a failure, and now and then.

use crate::stores::desk::Verdict;
use crate::stores::repository::{plain, repository, secret_name};
use crate::stores::status::StorageWhy;
use crate::stores::world::StorageWorld;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::topolvm::{SnapshotBackupStorageStatus, StoragePhase};
use lifeboat_engine::Decision;
use lifeboat_engine::conditions::whole_seconds;

/// How long a working store is left alone.
pub const RECHECK: SignedDuration = SignedDuration::from_hours(1);
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(15);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(30);

/// What is shown of a store that works.
pub const WORKS: &str = "the store answered: an object was written, read back and removed";
/// What is shown of a store that nobody wants tried.
pub const UNTRIED: &str = "not tried, because validateOnCreate is false";
/// What is shown of a store that changed.
pub const TRYING: &str = "being tried";

/// What can be done about a store.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum StorageEffect {
    /// Tries it.
    Probe {
        /// The generation and the Secret's version that it is tried with.
        of: String,
    },
}

/// What is decided about a store.
pub type StorageDecision = Decision<StorageEffect, StorageWhy, SnapshotBackupStorageStatus>;

/// What a verdict must be about to count: this spec and this Secret.
pub fn fingerprint(world: &StorageWorld) -> String {
    let generation = world.storage.metadata.generation.unwrap_or_default();
    let secret = world.secret.as_ref().map(|secret| &secret.metadata);
    let text = |text: Option<&Option<String>>| text.cloned().flatten().unwrap_or_default();
    format!(
        "{generation}/{}/{}",
        text(secret.map(|meta| &meta.uid)),
        text(secret.map(|meta| &meta.resource_version))
    )
}

/// Why a store cannot even be tried.
pub fn unusable(world: &StorageWorld) -> Option<String> {
    if let Err(error) = plain(&world.storage) {
        return Some(error.to_string());
    }
    match world.secret.as_deref() {
        None => {
            let namespace = world.storage.metadata.namespace.as_deref().unwrap_or_default();
            let name = secret_name(&world.storage).unwrap_or_default();
            Some(format!("the Secret {namespace}/{name} does not exist"))
        }
        Some(secret) => repository(&world.storage, secret).err().map(|error| error.to_string()),
    }
}

/// Every rule about stores.
pub fn decide(world: &StorageWorld, now: Timestamp) -> StorageDecision {
    if world.storage.metadata.deletion_timestamp.is_some() {
        return Decision::settled();
    }
    if let Some(why) = unusable(world) {
        let shown = status(world, StoragePhase::Error, &why, now);
        return Decision::wait(StorageWhy::Unusable(why)).showing(shown);
    }
    if world.storage.spec.validate_on_create == Some(false) {
        let untried = SnapshotBackupStorageStatus {
            phase: Some(StoragePhase::Pending),
            message: Some(UNTRIED.to_owned()),
            last_checked: None,
        };
        return Decision::settled().showing(untried);
    }
    let of = fingerprint(world);
    let probe = Decision::act([StorageEffect::Probe { of: of.clone() }]);
    match &world.verdict {
        Some(verdict) if verdict.of == of => {
            let (phase, message, why) = match &verdict.answer {
                Ok(()) => (StoragePhase::Ready, WORKS, StorageWhy::NextCheck),
                Err(why) => (StoragePhase::Error, why.as_str(), StorageWhy::Failed(why.clone())),
            };
            let shown = status(world, phase, message, verdict.at);
            let due = due(verdict);
            if now >= due { probe.showing(shown) } else { Decision::wait_until(why, due).showing(shown) }
        }
        // A process that has just started believes what is shown until it knows better.
        None if world.storage.status.as_ref().is_some_and(|status| status.phase.is_some()) => probe,
        _ => {
            let last = world.storage.status.as_ref().and_then(|status| status.last_checked.clone());
            probe.showing(SnapshotBackupStorageStatus {
                phase: Some(StoragePhase::Pending),
                message: Some(TRYING.to_owned()),
                last_checked: last,
            })
        }
    }
}

fn due(verdict: &Verdict) -> Timestamp {
    let pause = match verdict.failures {
        0 => RECHECK,
        failures => (1..failures.min(16)).fold(FIRST_PAUSE, |pause, _| (pause * 2).min(LONGEST_PAUSE)),
    };
    verdict.at + pause
}

/// The status to show; when it says the same as the one shown, the time moves only with the slow clock.
fn status(
    world: &StorageWorld,
    phase: StoragePhase,
    message: &str,
    at: Timestamp,
) -> SnapshotBackupStorageStatus {
    let shown = world.storage.status.clone().unwrap_or_default();
    let same = shown.phase.as_ref() == Some(&phase) && shown.message.as_deref() == Some(message);
    let recent = shown.last_checked.as_ref().filter(|last| same && at.duration_since(last.0) < RECHECK);
    SnapshotBackupStorageStatus {
        phase: Some(phase),
        message: Some(message.to_owned()),
        last_checked: Some(recent.cloned().unwrap_or_else(|| Time(whole_seconds(at)))),
    }
}
