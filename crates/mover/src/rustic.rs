//! The mover for real volumes: restic's repository format, by the engine rustic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use lifeboat_store::Patience;
use rustic_core::repofile::SnapshotId;
use rustic_core::{CheckOptions, PruneOptions};
use tokio::sync::watch;

use crate::archive::{self, describe};
use crate::crypto::{hex, random};
use crate::locks::{Lock, Mode};
use crate::objects::{Line, Objects};
use crate::operation::{Operation, StopOnDrop};
use crate::repository::{Keys, Opened};
use crate::restore;
use crate::{
    BackedUp, Backup, Error, Limits, Mover, Progress, Repository, Restore, Restored, Snapshot, Verified,
};

/// The mover for real volumes.
#[derive(Clone, Default)]
pub struct Rustic {
    keys: Arc<Keys>,
    line: Arc<Line>,
}

impl Rustic {
    /// A mover. Cheap to clone; clones share the keys of repositories that were opened.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A mover that waits and tries again as told, where the store is a server.
    #[must_use]
    pub fn patient(patience: Patience) -> Self {
        Self { line: Arc::new(Line::patient(patience)), ..Self::default() }
    }

    /// Runs work of the engine on a thread where it may block. A future that is dropped stops it.
    async fn run<T: Send + 'static>(
        &self,
        repository: &Repository,
        limits: Limits,
        operation: Arc<Operation>,
        work: impl FnOnce(&Keys, &Repository, Objects) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let _stop = StopOnDrop(operation.clone());
        let (keys, line, repository) = (self.keys.clone(), self.line.clone(), repository.clone());
        let worker = tokio::task::spawn_blocking(move || {
            let objects = Objects::open(&repository.store, limits, operation, &line)?;
            work(&keys, &repository, objects)
        });
        // The engine gives up by panic where it cannot go on.
        worker.await.unwrap_or_else(|ended| {
            Err(Error::Transient(if ended.is_cancelled() {
                "the runtime is shutting down".to_owned()
            } else {
                "the backup engine gave up".to_owned()
            }))
        })
    }
}

#[async_trait]
impl Mover for Rustic {
    async fn probe(&self, repository: &Repository) -> Result<(), Error> {
        let operation = Operation::silent();
        self.run(repository, Limits::default(), operation, |keys, repository, objects| {
            probe(&objects)?;
            match keys.open(repository, &objects) {
                Err(Error::NoRepository(_)) => Ok(()),
                opened => opened.map(drop),
            }
        })
        .await
    }

    async fn backup(
        &self,
        repository: &Repository,
        backup: Backup,
        progress: watch::Sender<Progress>,
    ) -> Result<BackedUp, Error> {
        let operation = Operation::watched(progress);
        self.run(repository, backup.limits, operation, move |keys, repository, objects| {
            archive::backup(keys.open_or_make(repository, &objects)?, &backup)
        })
        .await
    }

    async fn restore(
        &self,
        repository: &Repository,
        restore: Restore,
        progress: watch::Sender<Progress>,
    ) -> Result<Restored, Error> {
        let operation = Operation::watched(progress);
        self.run(repository, restore.limits, operation, move |keys, repository, objects| {
            restore::restore(keys.open(repository, &objects)?, &restore)
        })
        .await
    }

    async fn find(
        &self,
        repository: &Repository,
        tags: &BTreeMap<String, String>,
    ) -> Result<Vec<Snapshot>, Error> {
        let tags = tags.clone();
        let operation = Operation::silent();
        self.run(repository, Limits::default(), operation, move |keys, repository, objects| {
            find(&keys.open(repository, &objects)?, &tags)
        })
        .await
    }

    async fn forget(&self, repository: &Repository, snapshots: &BTreeSet<String>) -> Result<(), Error> {
        let snapshots = snapshots.clone();
        let operation = Operation::silent();
        self.run(repository, Limits::default(), operation, move |keys, repository, objects| {
            forget(&keys.open(repository, &objects)?, &snapshots)
        })
        .await
    }

    async fn prune(&self, repository: &Repository) -> Result<(), Error> {
        let operation = Operation::silent();
        self.run(repository, Limits::default(), operation, move |keys, repository, objects| {
            prune(&keys.open(repository, &objects)?)
        })
        .await
    }

    async fn verify(&self, repository: &Repository, read_data: bool) -> Result<Verified, Error> {
        let operation = Operation::silent();
        self.run(repository, Limits::default(), operation, move |keys, repository, objects| {
            verify(&keys.open(repository, &objects)?, read_data)
        })
        .await
    }
}

/// Writes an object, reads it back and removes it.
fn probe(objects: &Objects) -> Result<(), Error> {
    let key = format!("lifeboat-probe/{}", hex(&random::<16>()?));
    let content = Bytes::from(random::<64>()?.to_vec());
    objects.put(&key, std::slice::from_ref(&content))?;
    let read = objects.get(&key);
    let removed = objects.delete(&key);
    if read.is_ok_and(|read| read == content) {
        return removed;
    }
    objects.operation.check()?;
    Err(Error::Transient(format!("{} does not give back what was written", objects.name())))
}

fn find(opened: &Opened, tags: &BTreeMap<String, String>) -> Result<Vec<Snapshot>, Error> {
    let carries = |snapshot: &Snapshot| tags.iter().all(|(key, value)| snapshot.tags.get(key) == Some(value));
    let mut found = opened
        .engine
        .get_all_snapshots()
        .map_err(|error| opened.objects.operation.explain("reading the snapshots", &error))?;
    found.sort_by_key(|snapshot| (snapshot.time.timestamp(), snapshot.id));
    Ok(found.iter().map(describe).filter(carries).collect())
}

/// Removes snapshots.
fn forget(opened: &Opened, snapshots: &BTreeSet<String>) -> Result<(), Error> {
    let operation = &opened.objects.operation;
    let parse =
        |id: &String| id.parse().map_err(|_| Error::Invalid(format!("{id:?} is no id of a snapshot")));
    let ids: Vec<SnapshotId> = snapshots.iter().map(parse).collect::<Result<_, _>>()?;
    opened.engine.delete_snapshots(&ids).map_err(|error| operation.explain("removing snapshots", &error))
}

/// Removes data that nothing uses, while nobody else is at work in the repository.
fn prune(opened: &Opened) -> Result<(), Error> {
    let operation = &opened.objects.operation;
    let _lock = Lock::take(opened, Mode::Exclusive)?;
    let options = PruneOptions::default();
    opened
        .engine
        .prune_plan(&options)
        .and_then(|plan| opened.engine.prune(&options, plan))
        .map_err(|error| operation.explain("removing unused data", &error))
}

fn verify(opened: &Opened, read_data: bool) -> Result<Verified, Error> {
    let operation = &opened.objects.operation;
    let _lock = match Lock::take(opened, Mode::Shared) {
        Err(Error::Denied(_)) => None,
        lock => Some(lock?),
    };
    let explain = |error: Box<rustic_core::RusticError>| operation.explain("checking the repository", &error);
    let snapshots = opened.engine.get_all_snapshots().map_err(explain)?;
    let trees = snapshots.iter().map(|snapshot| snapshot.tree).collect();
    let options = CheckOptions::default().read_data(read_data);
    let found = opened.engine.check_with_trees(options, trees).map_err(explain)?;
    operation.check()?;
    let faults = found
        .0
        .iter()
        .filter(|(level, _)| format!("{level:?}") == "Error")
        .map(|(_, error)| told(&error.to_string()))
        // restic removes at once what we only mark; that it is gone is what was wanted.
        .filter(|fault| !(fault.contains("marked to-delete: true") && fault.contains("not present")))
        .collect();
    Ok(Verified { snapshots: snapshots.len() as u64, bytes_read: operation.progress().bytes_done, faults })
}

/// What the engine found, in one line and without its advice to its own users.
fn told(text: &str) -> String {
    let (found, cause) = text.split_once("`rustic_core` experienced").unwrap_or((text, ""));
    let found = found.split("To repair").next().unwrap_or_default();
    let cause = cause.split_once("Message:").map_or("", |(_, cause)| cause);
    let cause = cause.split("Some additional details").next().unwrap_or_default();
    [found, cause].iter().flat_map(|part| part.split_whitespace()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_told_in_one_line() {
        let check = |text: &str, expected: &str| assert_eq!(told(text), expected);
        check("pack ab is missing", "pack ab is missing");
        check("pack ab! To repair: 'rustic repair'.", "pack ab!");
        check(
            "error reading pack ab: `rustic_core` experienced an error related to x.\n\nMessage:\nno object\n\nSome \
             additional details ...\nBacktrace: 1 2 3",
            "error reading pack ab: no object",
        );
    }
}
