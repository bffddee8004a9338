//! When data that no backup uses is removed from a store: soon after backups were removed, and once a day, for what one run marks a later
//! one removes. A run that was cut off or found the store in use is begun again; nothing depends on who began it.

use crate::stores::decide::storage::unusable;
use crate::stores::status::PruneWhy;
use crate::stores::world::PruneWorld;
use jiff::{SignedDuration, Timestamp};
use lifeboat_engine::Decision;

/// How long after the start the first run waits: a process that has just begun does not know what an earlier one left.
pub const AFTER_START: SignedDuration = SignedDuration::from_mins(10);
/// How long a store that was cleaned is left alone.
pub const DAILY: SignedDuration = SignedDuration::from_hours(24);
const FIRST_PAUSE: SignedDuration = SignedDuration::from_mins(1);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(1);

/// What can be done about unused data.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum PruneEffect {
    /// Removes it.
    Prune,
}

/// What is decided about unused data.
pub type PruneDecision = Decision<PruneEffect, PruneWhy, ()>;

/// Every rule.
pub fn decide(world: &PruneWorld, now: Timestamp) -> PruneDecision {
    if world.store.storage.metadata.deletion_timestamp.is_some() || unusable(&world.store).is_some() {
        // Whoever mends it wakes us.
        return Decision::settled();
    }
    let (due, why) = match &world.last {
        None => (world.started + AFTER_START, PruneWhy::NextRun),
        Some(last) => match &last.answer {
            Ok(()) => (last.at + DAILY, PruneWhy::NextRun),
            Err(error) => {
                let pause =
                    (1..last.failures.min(16)).fold(FIRST_PAUSE, |pause, _| (pause * 2).min(LONGEST_PAUSE));
                (last.at + pause, PruneWhy::Failed(error.clone()))
            }
        },
    };
    let failed = matches!(why, PruneWhy::Failed(_));
    if now >= due || world.owed && !failed {
        return Decision::act([PruneEffect::Prune]);
    }
    Decision::wait_until(why, due)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::desk::Verdict;
    use crate::stores::world::StorageWorld;
    use k8s_openapi::api::core::v1::Secret;
    use lifeboat_api::topolvm::SnapshotBackupStorage;
    use lifeboat_engine::Next;
    use std::sync::Arc;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).expect("a time")
    }

    fn world() -> PruneWorld {
        let storage: SnapshotBackupStorage = serde_json::from_value(serde_json::json!({
            "metadata": { "name": "store", "namespace": "ns" },
            "spec": { "storage": { "provider": "local", "local": { "path": "/b", "secretName": "secret" } } },
        }))
        .expect("a storage");
        let mut secret = Secret::default();
        let word = k8s_openapi::ByteString(b"word".to_vec());
        secret.data = Some([("RESTIC_PASSWORD".to_owned(), word)].into());
        let store =
            StorageWorld { storage: Arc::new(storage), secret: Some(Arc::new(secret)), verdict: None };
        PruneWorld { store, started: at(0), owed: false, last: None }
    }

    fn told(change: impl FnOnce(&mut PruneWorld), now: i64) -> String {
        let mut world = world();
        change(&mut world);
        match decide(&world, at(now)).next {
            Next::Do(effects) => format!("{effects:?}"),
            Next::Wait { until, .. } => {
                format!("until {}", until.expect("a time").as_second() - 1_000_000)
            }
            Next::Settled => "settled".to_owned(),
        }
    }

    fn ended(answer: Result<(), String>, failures: u32) -> impl FnOnce(&mut PruneWorld) {
        move |world| world.last = Some(Verdict { of: String::new(), at: at(0), answer, failures })
    }

    #[test]
    fn unused_data_is_removed_whoever_was_interrupted() {
        let in_use = || Err("in use".to_owned());
        let row = |rule: &str, told: String, expected: &str| assert_eq!(told, expected, "{rule}");
        row("a process that has just begun waits a little", told(|_| {}, 5), "until 600");
        row("and then does what an earlier one may have left", told(|_| {}, 600), "[Prune]");
        row("backups were removed: at once", told(|w| w.owed = true, 5), "[Prune]");
        row("done: once a day", told(ended(Ok(()), 0), 5), "until 86400");
        row(
            "done, and backups were removed since",
            told(
                |w| {
                    ended(Ok(()), 0)(w);
                    w.owed = true;
                },
                5,
            ),
            "[Prune]",
        );
        row("the store is in use: soon again", told(ended(in_use(), 1), 5), "until 60");
        row("and later and later", told(ended(in_use(), 4), 5), "until 480");
        row(
            "not sooner because it is owed",
            told(
                |w| {
                    ended(in_use(), 1)(w);
                    w.owed = true;
                },
                5,
            ),
            "until 60",
        );
        row("it is not given up", told(ended(in_use(), 1), 61), "[Prune]");
        row("a store that cannot be used", told(|w| w.store.secret = None, 5), "settled");
    }
}
