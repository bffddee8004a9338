//! Opening and making repositories.
//!
//! Two writers may make the same repository at once. Each writes its key, then the configuration on condition that there is none; the
//! one that comes second takes its key away again. If it dies before that, its key opens with the password but not the
//! configuration; so openers try every key, and take away those that cannot belong.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use rustic_core::repofile::MasterKey;
use rustic_core::{
    ConfigOptions, Credentials, KeyOptions, OpenStatus, Progress, ProgressBars, ProgressType,
    RepositoryBackends, RepositoryOptions, RusticProgress,
};

use crate::backend::Backend;
use crate::crypto::{KeyFile, Seal, hex, sha256};
use crate::objects::Objects;
use crate::operation::{Operation, one_line};
use crate::{Error, Repository};

/// An open repository.
pub(crate) struct Opened {
    pub(crate) engine: rustic_core::Repository<OpenStatus>,
    pub(crate) seal: Seal,
    pub(crate) objects: Objects,
}

/// Keys of repositories that were opened before: making them of the password is slow on purpose.
#[derive(Default)]
pub(crate) struct Keys(Mutex<Vec<(Repository, MasterKey)>>);

impl Keys {
    fn known(&self, repository: &Repository) -> Option<MasterKey> {
        let keys = self.0.lock();
        keys.iter().find(|(known, _)| known == repository).map(|(_, key)| key.clone())
    }

    fn learn(&self, repository: &Repository, key: &MasterKey) {
        let mut keys = self.0.lock();
        keys.retain(|(known, _)| known != repository);
        keys.push((repository.clone(), key.clone()));
    }

    /// Opens a repository.
    pub(crate) fn open(&self, repository: &Repository, objects: &Objects) -> Result<Opened, Error> {
        let config = objects.find("config")?.ok_or_else(|| Error::NoRepository(objects.name().to_owned()))?;
        // A repository that was removed and made again has another key.
        let opens = |key: &MasterKey| Seal::of(key).is_some_and(|seal| seal.open(&config).is_some());
        let key = match self.known(repository).filter(&opens) {
            Some(key) => key,
            None => search(repository, objects, opens)?,
        };
        self.learn(repository, &key);
        let engine = engine(objects)?
            .open(&Credentials::Masterkey(key.clone()))
            .map_err(|error| objects.operation.explain("opening the repository", &error))?;
        let seal =
            Seal::of(&key).ok_or_else(|| Error::Damaged("the repository's key is malformed".into()))?;
        Ok(Opened { engine, seal, objects: objects.clone() })
    }

    /// Opens a repository, or makes it where there is none.
    pub(crate) fn open_or_make(&self, repository: &Repository, objects: &Objects) -> Result<Opened, Error> {
        match self.open(repository, objects) {
            Err(Error::NoRepository(_)) => {}
            opened => return opened,
        }
        make(repository, objects)?;
        self.open(repository, objects)
    }
}

/// Tries every key of the repository.
fn search(
    repository: &Repository,
    objects: &Objects,
    opens: impl Fn(&MasterKey) -> bool,
) -> Result<MasterKey, Error> {
    let password = repository.password.reveal();
    let mut strangers = Vec::new();
    let mut found = None;
    // Each costs memory and time on purpose: a repository does not have many.
    for entry in objects.list("keys/")?.into_iter().take(20) {
        let Some(content) = objects.find(&entry.key)? else { continue };
        let Ok(file) = serde_json::from_slice::<KeyFile>(&content) else { continue };
        match file.open(password) {
            Some(key) if opens(&key) => {
                found = Some(key);
                break;
            }
            Some(_) => strangers.push(entry.key),
            None => {}
        }
    }
    let found = found.ok_or_else(|| Error::WrongPassword(objects.name().to_owned()))?;
    for key in strangers {
        tracing::warn!(store = objects.name(), key, "removing a key that does not belong to the repository");
        objects.delete(&key)?;
    }
    Ok(found)
}

/// Makes a repository; that somebody else did so meanwhile is no error.
fn make(repository: &Repository, objects: &Objects) -> Result<(), Error> {
    if repository.password.reveal().is_empty() {
        return Err(Error::Invalid("a repository needs a password that is not empty".into()));
    }
    let master = MasterKey::new();
    let file = KeyFile::seal(&master, repository.password.reveal(), &crate::locks::host())?;
    let content = serde_json::to_vec(&file).map_err(|error| Error::Invalid(error.to_string()))?;
    let key = format!("keys/{}", hex(&sha256(&content)));
    objects.put(&key, &[Bytes::from(content)])?;
    // Small packs keep memory low; they grow with the repository.
    let options =
        ConfigOptions::default().set_datapack_size(bytesize(16)).set_datapack_size_limit(bytesize(64));
    match engine(objects)?.init(&Credentials::Masterkey(master), &KeyOptions::default(), &options) {
        Ok(_) => Ok(()),
        Err(error) => {
            objects.operation.check()?;
            if objects.find("config")?.is_some() {
                return objects.delete(&key);
            }
            Err(Error::Transient(format!(
                "making the repository at {}: {}",
                objects.name(),
                one_line(&error)
            )))
        }
    }
}

fn bytesize(mebibytes: u64) -> bytesize::ByteSize {
    bytesize::ByteSize::mib(mebibytes)
}

fn engine(objects: &Objects) -> Result<rustic_core::Repository<()>, Error> {
    let options = RepositoryOptions::default().no_cache(true);
    let backends = RepositoryBackends::new(Arc::new(Backend::new(objects.clone())), None);
    let bars = Bars(objects.operation.clone());
    rustic_core::Repository::new_with_progress(&options, &backends, bars)
        .map_err(|error| objects.operation.explain("opening the repository", &error))
}

/// Hands the engine's count of bytes to the operation.
#[derive(Debug)]
struct Bars(Arc<Operation>);

#[derive(Debug)]
struct Bar(Arc<Operation>);

impl ProgressBars for Bars {
    fn progress(&self, kind: ProgressType, _: &str) -> Progress {
        match kind {
            ProgressType::Bytes => Progress::new(Bar(self.0.clone())),
            _ => Progress::hidden(),
        }
    }
}

impl RusticProgress for Bar {
    fn is_hidden(&self) -> bool {
        false
    }
    fn set_length(&self, _: u64) {}
    fn set_title(&self, _: &str) {}
    fn inc(&self, bytes: u64) {
        self.0.advance(bytes);
    }
    fn finish(&self) {
        self.0.tell();
    }
}
