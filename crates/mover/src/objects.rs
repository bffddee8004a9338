//! The store as the engine's threads see it: blocking, within the limits of one operation, stopping when asked to.

use std::sync::Arc;

use bytes::Bytes;
use lifeboat_store::{Directory, Entry, Store, Throttle};

use crate::operation::Operation;
use crate::{Error, Limits};

/// The objects of a repository, for one operation.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    place: Place,
    name: String,
    throttle: Option<Arc<Throttle>>,
    pub(crate) operation: Arc<Operation>,
}

#[derive(Clone, Debug)]
enum Place {
    Directory(Directory),
}

impl Objects {
    /// Opens the store for one operation.
    pub(crate) fn open(store: &Store, limits: Limits, operation: Arc<Operation>) -> Result<Self, Error> {
        let place = match store {
            Store::Local(path) => Place::Directory(Directory::new(path)),
            Store::S3(_) => return Err(Error::Invalid("S3 is not supported yet".into())),
        };
        let throttle = Throttle::new(limits.bytes_per_second).map(Arc::new);
        Ok(Self { place, name: store.to_string(), throttle, operation })
    }

    /// The same store outside of the operation, for what must be done even after it has failed.
    pub(crate) fn apart(&self) -> Self {
        Self { operation: Operation::silent(), ..self.clone() }
    }

    /// The store's name, without secrets.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How many requests are worth having in flight at once.
    pub(crate) fn parallelism(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        match &self.place {
            Place::Directory(_) => cores.min(8),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Result<Bytes, Error> {
        let content = self.ask(|place| match place {
            Place::Directory(directory) => directory.get(key),
        })?;
        self.passed(content.len());
        Ok(content)
    }

    pub(crate) fn get_range(&self, key: &str, offset: u64, length: usize) -> Result<Bytes, Error> {
        self.passed(length);
        self.ask(|place| match place {
            Place::Directory(directory) => directory.get_range(key, offset, length),
        })
    }

    pub(crate) fn put(&self, key: &str, parts: &[Bytes]) -> Result<(), Error> {
        self.passed(parts.iter().map(Bytes::len).sum());
        self.ask(|place| match place {
            Place::Directory(directory) => directory.put(key, parts),
        })
    }

    /// Writes an object if there is none of this key; says whether it did.
    pub(crate) fn put_if_absent(&self, key: &str, content: Bytes) -> Result<bool, Error> {
        self.operation.check()?;
        let written = match &self.place {
            Place::Directory(directory) => directory.put_if_absent(key, &[content]),
        };
        match written {
            Ok(()) => Ok(true),
            Err(lifeboat_store::Error::Exists { .. }) => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<Entry>, Error> {
        self.ask(|place| match place {
            Place::Directory(directory) => directory.list(prefix),
        })
    }

    pub(crate) fn delete(&self, key: &str) -> Result<(), Error> {
        self.ask(|place| match place {
            Place::Directory(directory) => directory.delete(key),
        })
    }

    /// Reads an object that may not be there, which is no fault of the operation.
    pub(crate) fn find(&self, key: &str) -> Result<Option<Bytes>, Error> {
        self.operation.check()?;
        let found = match &self.place {
            Place::Directory(directory) => directory.get(key),
        };
        match found {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn ask<T>(&self, act: impl FnOnce(&Place) -> Result<T, lifeboat_store::Error>) -> Result<T, Error> {
        self.operation.check()?;
        act(&self.place).map_err(|error| self.failed(error))
    }

    fn passed(&self, bytes: usize) {
        if let Some(throttle) = &self.throttle {
            throttle.wait(bytes);
        }
    }

    /// What a store's error means; the ones that end the operation are kept, since the engine does not always pass them on.
    fn failed(&self, error: lifeboat_store::Error) -> Error {
        use lifeboat_store::Error as Fault;
        let text = error.to_string();
        let error = match error {
            // A hole in the repository is told by whoever looked for the object.
            Fault::NotFound { .. } => return Error::Damaged(text),
            Fault::Denied { .. } => Error::Denied(text),
            Fault::Invalid(_) | Fault::NoStore { .. } | Fault::Exists { .. } => Error::Invalid(text),
            Fault::Full { .. } => Error::NoRoom(text),
            Fault::Unreachable { .. } | Fault::Slow { .. } | Fault::Strange { .. } => Error::Transient(text),
        };
        self.operation.fail(error)
    }
}
