//! Act: reaches stores through the mover. Every sentence that leaves here has been looked through for secrets.

use crate::central::Kinds;
use crate::handle::Handle;
use crate::provision::words::{annotation, drop_finalizer, is_going, name, reference, uid};
use crate::provision::world::Office;
use crate::stores::decide::prune::{self, PruneDecision, PruneEffect};
use crate::stores::decide::removal::{self, RemovalDecision, RemovalEffect};
use crate::stores::decide::storage::{self, StorageDecision, StorageEffect};
use crate::stores::desk::Desk;
use crate::stores::repository::{repository, secret_name};
use crate::stores::status::{PruneWhy, RemovalWhy, StorageWhy};
use crate::stores::world::{PruneWorld, RemovalWorld, StorageWorld};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use lifeboat_api::annotations::parameters;
use lifeboat_api::finalizers::REMOTE_SNAPSHOT;
use lifeboat_api::topolvm::{
    LogicalVolume, LogicalVolumeStatus, SnapshotBackupStorage, SnapshotBackupStorageStatus,
};
use lifeboat_engine::{Class, Clock, Controller, EffectError, Level, ObjectKey, Trouble, Wiring};
use lifeboat_mover::{Error, Mover, Repository, Snapshot, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long one run that removes unused data may take; what it has done by then stays done.
const PRUNE_WITHIN: Duration = Duration::from_hours(12);

/// The tag by which the backups of a LogicalVolume are found.
pub const VOLUME_TAG: &str = "volume";

/// The stores of a cluster, as controllers reach them. Clones share everything.
#[derive(Clone)]
pub struct Stores {
    kinds: Kinds,
    mover: Arc<dyn Mover>,
    clock: Clock,
    started: Timestamp,
    desk: Desk,
    /// Wakes the removal of unused data.
    pub(super) prunes: Arc<OnceLock<Wiring<ObjectKey>>>,
}

impl Stores {
    pub(super) fn new(kinds: Kinds, mover: Arc<dyn Mover>, clock: Clock) -> Self {
        let started = clock.now();
        Self { kinds, mover, clock, started, desk: Desk::default(), prunes: Arc::default() }
    }

    /// A storage and its Secret, as far as they are there.
    pub fn look(&self, storage: &ObjectKey) -> (Option<Arc<SnapshotBackupStorage>>, Option<Arc<Secret>>) {
        let found = self.kinds.storages.get(storage);
        let secret = found.as_deref().and_then(secret_name);
        let secret =
            secret.and_then(|name| self.kinds.secrets.get(&ObjectKey::new(storage.namespace.clone(), name)));
        (found, secret)
    }

    fn open(&self, storage: &ObjectKey) -> Result<Repository, EffectError> {
        let tried = || format!("opening the store {storage}");
        let (found, secret) = self.look(storage);
        let found = found.ok_or_else(|| {
            EffectError::caused(Class::BadInput, tried(), "the SnapshotBackupStorage does not exist")
        })?;
        let secret = secret
            .ok_or_else(|| EffectError::caused(Class::BadInput, tried(), "its Secret does not exist"))?;
        let opened = repository(&found, &secret)
            .map_err(|error| EffectError::caused(Class::BadInput, tried(), error))?;
        Ok(opened.0)
    }

    /// The backups of a LogicalVolume, oldest first; none where there is no repository.
    ///
    /// # Errors
    /// When the store cannot be reached or does not let us in.
    pub async fn find(&self, storage: &ObjectKey, volume: &str) -> Result<Vec<Snapshot>, EffectError> {
        let repository = self.open(storage)?;
        let tags: BTreeMap<String, String> = [(VOLUME_TAG.to_owned(), volume.to_owned())].into();
        match self.mover.find(&repository, &tags).await {
            Ok(found) => Ok(found),
            Err(Error::NoRepository(_)) => Ok(Vec::new()),
            Err(error) => Err(failed(&format!("looking for backups in {storage}"), &repository, &error)),
        }
    }

    /// Removes every backup of a LogicalVolume from a store; that there is none is no error.
    ///
    /// # Errors
    /// When the store cannot be reached or does not let us in.
    pub async fn forget(&self, storage: &ObjectKey, volume: &str) -> Result<(), EffectError> {
        let found = self.find(storage, volume).await?;
        if found.is_empty() {
            return Ok(());
        }
        let repository = self.open(storage)?;
        let ids: BTreeSet<String> = found.into_iter().map(|snapshot| snapshot.id).collect();
        let forgot = self.mover.forget(&repository, &ids).await;
        // Also where it failed: some may be removed.
        self.desk.owe(storage);
        if let Some(wiring) = self.prunes.get() {
            wiring.wake(storage.clone());
        }
        forgot.map_err(|error| failed(&format!("removing a backup from {storage}"), &repository, &error))
    }
}

fn failed(tried: &str, repository: &Repository, error: &Error) -> EffectError {
    let class = if error.is_transient() { Class::Transient } else { Class::Refused };
    EffectError::caused(class, tried, scrubbed(repository, &error.to_string()))
}

/// A sentence without the secrets of a repository, whoever wrote it.
fn scrubbed(repository: &Repository, sentence: &str) -> String {
    let mut secrets = vec![&repository.password];
    if let Store::S3(s3) = &repository.store {
        secrets.extend([&s3.access_key, &s3.secret_key]);
        secrets.extend(&s3.session_token);
    }
    let revealed = secrets.into_iter().map(|secret| secret.reveal().trim()).filter(|secret| secret.len() > 3);
    revealed.fold(sentence.to_owned(), |sentence, secret| sentence.replace(secret, "••••"))
}

/// The store that the backup of a LogicalVolume is in.
pub fn place(logical: &LogicalVolume) -> Option<ObjectKey> {
    let note = |key| annotation(&logical.metadata, key).filter(|text| !text.is_empty());
    Some(ObjectKey::new(
        note(parameters::SNAPSHOT_STORAGE_NAMESPACE)?,
        note(parameters::SNAPSHOT_STORAGE_NAME)?,
    ))
}

/// The controller of stores.
pub struct Storages(pub Stores);

impl Controller for Storages {
    const NAME: &'static str = "storages";
    type Key = ObjectKey;
    type World = StorageWorld;
    type Effect = StorageEffect;
    type Why = StorageWhy;
    type Status = SnapshotBackupStorageStatus;

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<StorageWorld> {
        let (storage, secret) = self.0.look(key);
        Some(StorageWorld { storage: storage?, secret, verdict: self.0.desk.verdict(key) })
    }

    fn decide(world: &StorageWorld, now: Timestamp) -> StorageDecision {
        storage::decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: StorageEffect) -> Result<(), EffectError> {
        let StorageEffect::Probe { of } = effect;
        let repository = self.0.open(key)?;
        let answer = self.0.mover.probe(&repository).await;
        let answer = answer.map_err(|error| scrubbed(&repository, &error.to_string()));
        self.0.desk.judge(key, of, self.0.clock.now(), answer);
        Ok(())
    }

    fn shown(world: &StorageWorld) -> Option<&SnapshotBackupStorageStatus> {
        world.storage.status.as_ref()
    }

    async fn show(
        &self,
        world: &StorageWorld,
        status: SnapshotBackupStorageStatus,
    ) -> Result<(), EffectError> {
        let storage = SnapshotBackupStorage { status: Some(status), ..(*world.storage).clone() };
        self.0.kinds.storages.replace_status(&storage).await.map(drop)
    }

    fn subject(world: &StorageWorld) -> Option<ObjectReference> {
        Some(reference(&*world.storage))
    }

    fn forget(&self, key: &ObjectKey) {
        self.0.desk.drop_verdict(key);
    }
}

/// The controller of data in stores that no backup uses any more.
pub struct Prunes(pub Stores);

impl Controller for Prunes {
    const NAME: &'static str = "prunes";
    type Key = ObjectKey;
    type World = PruneWorld;
    type Effect = PruneEffect;
    type Why = PruneWhy;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<PruneWorld> {
        let (storage, secret) = self.0.look(key);
        let store = StorageWorld { storage: storage?, secret, verdict: None };
        let (owed, last) = self.0.desk.prune_of(key);
        Some(PruneWorld { store, started: self.0.started, owed, last })
    }

    fn decide(world: &PruneWorld, now: Timestamp) -> PruneDecision {
        prune::decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, PruneEffect::Prune: PruneEffect) -> Result<(), EffectError> {
        let repository = self.0.open(key)?;
        self.0.desk.begin_prune(key);
        let answer = match self.0.mover.prune(&repository).await {
            Err(Error::NoRepository(_)) => Ok(()),
            answer => answer.map_err(|error| scrubbed(&repository, &error.to_string())),
        };
        self.0.desk.pruned(key, self.0.clock.now(), answer);
        Ok(())
    }

    fn effect_within(_: &PruneEffect, usual: Duration) -> Duration {
        usual.max(PRUNE_WITHIN)
    }

    fn shown(_: &PruneWorld) -> Option<&()> {
        Some(&())
    }

    async fn show(&self, _: &PruneWorld, (): ()) -> Result<(), EffectError> {
        Ok(())
    }
}

/// The controller of backups that nobody needs any more.
pub struct Removals {
    /// The stores.
    pub stores: Stores,
    /// Finds restores that are under way.
    pub office: Office,
}

impl Controller for Removals {
    const NAME: &'static str = "removals";
    type Key = ObjectKey;
    type World = RemovalWorld;
    type Effect = RemovalEffect;
    type Why = RemovalWhy;
    type Status = LogicalVolumeStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<RemovalWorld> {
        let logical = self.stores.kinds.logical.get(key)?;
        let place = place(&logical);
        let (storage, secret) = place.as_ref().map(|place| self.stores.look(place)).unwrap_or_default();
        let restores = self.office.by.filled_from.get(&uid(&*logical).to_owned());
        Some(RemovalWorld {
            restores: restores.iter().map(|volume| name(&**volume).to_owned()).collect(),
            forgotten: self.stores.desk.has_forgotten(uid(&*logical)),
            trouble: trouble.cloned(),
            place,
            storage,
            secret,
            logical,
        })
    }

    fn decide(world: &RemovalWorld, now: Timestamp) -> RemovalDecision {
        removal::decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: RemovalEffect) -> Result<(), EffectError> {
        let kinds = &self.stores.kinds;
        let Some(logical) = kinds.logical.get(key).filter(|logical| is_going(&logical.metadata)) else {
            return Err(EffectError::new(Class::Stale, format!("LogicalVolume {key} is gone")));
        };
        let place = place(&logical);
        match (effect, place) {
            (RemovalEffect::Forget, Some(place)) => {
                if let Err(error) = self.stores.forget(&place, uid(&*logical)).await {
                    let note = RemovalWhy::Blocked(error.sentence()).to_string();
                    kinds.recorder.record(reference(&*logical), Level::Warning, "BackupRemovalFailed", &note);
                    return Err(error);
                }
                self.stores.desk.forgot(uid(&*logical));
                Ok(())
            }
            (RemovalEffect::Forget, None) => Ok(()),
            (RemovalEffect::Release { abandoned }, place) => {
                let mut released = (*logical).clone();
                drop_finalizer(&mut released.metadata, REMOTE_SNAPSHOT);
                kinds.logical.replace(&released).await?;
                if let Some(place) = place.filter(|_| abandoned) {
                    let note = format!(
                        "the backup of LogicalVolume {} was left in {place} for good",
                        uid(&*logical)
                    );
                    kinds.recorder.record(reference(&*logical), Level::Warning, "BackupAbandoned", &note);
                }
                self.stores.desk.drop_forgotten(uid(&*logical));
                Ok(())
            }
        }
    }

    fn shown(world: &RemovalWorld) -> Option<&LogicalVolumeStatus> {
        world.logical.status.as_ref()
    }

    async fn show(&self, world: &RemovalWorld, status: LogicalVolumeStatus) -> Result<(), EffectError> {
        let logical = LogicalVolume { status: Some(status), ..(*world.logical).clone() };
        self.stores.kinds.logical.replace_status(&logical).await.map(drop)
    }

    fn subject(world: &RemovalWorld) -> Option<ObjectReference> {
        Some(reference(&*world.logical))
    }
}

/// Where the backup is that a handle names.
pub fn place_of(handle: &Handle) -> Option<ObjectKey> {
    match handle {
        Handle::Remote { namespace, storage, .. } => Some(ObjectKey::new(namespace, storage)),
        Handle::Local(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifeboat_mover::{S3Store, Secret};

    #[test]
    fn sentences_lose_their_secrets() {
        let s3 = S3Store {
            access_key: Secret::new("AKIA-canary"),
            secret_key: Secret::new("sk-canary"),
            session_token: Some(Secret::new("token-canary")),
            ..S3Store::default()
        };
        let repository = Repository { store: Store::S3(s3), password: Secret::new("word-canary\n") };
        let said = "403 for AKIA-canary with sk-canary and token-canary: word-canary";
        assert_eq!(scrubbed(&repository, said), "403 for •••• with •••• and ••••: ••••");
        // What is too short to be a secret would tear other words apart.
        let short = Repository { store: Store::Local("/b".into()), password: Secret::new("a") };
        assert_eq!(scrubbed(&short, "a bad day"), "a bad day");
    }
}
