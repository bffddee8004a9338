//! The store as the engine's threads see it: blocking, within the limits of one operation, stopping when asked to.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use lifeboat_store::{Bucket, Directory, Entry, Patience, S3Store, Store, Throttle};
use parking_lot::Mutex;
use tokio::runtime::Runtime;

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
    Bucket(Arc<(Bucket, Arc<Line>)>),
}

/// Where requests to servers run. The caller's own runtime would do, if it never ended before its work.
#[derive(Debug, Default)]
pub(crate) struct Line {
    runtime: OnceLock<Runtime>,
    /// Buckets that were opened before, with their connections.
    buckets: Mutex<Vec<(S3Store, Bucket)>>,
    patience: Patience,
}

impl Line {
    pub(crate) fn patient(patience: Patience) -> Self {
        Self { runtime: OnceLock::new(), buckets: Mutex::default(), patience }
    }

    fn bucket(&self, store: &S3Store) -> Result<Bucket, lifeboat_store::Error> {
        let mut buckets = self.buckets.lock();
        if let Some((_, bucket)) = buckets.iter().find(|(known, _)| known == store) {
            return Ok(bucket.clone());
        }
        let bucket = Bucket::open(store, self.patience)?;
        buckets.push((store.clone(), bucket.clone()));
        Ok(bucket)
    }

    /// Waits for a request, or for the operation to be stopped.
    fn wait<T>(
        &self,
        operation: &Operation,
        request: impl Future<Output = Result<T, lifeboat_store::Error>>,
    ) -> Result<Result<T, lifeboat_store::Error>, Error> {
        let runtime = match self.runtime.get() {
            Some(runtime) => runtime,
            None => {
                let made = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(1)
                    .thread_name("mover-line")
                    .enable_all()
                    .build()
                    .map_err(|error| Error::Transient(format!("starting a thread: {error}")))?;
                // Another thread may have been faster; its own is as good.
                if let Err(spare) = self.runtime.set(made) {
                    spare.shutdown_background();
                }
                self.runtime.get().expect("invariant: the runtime was just set")
            }
        };
        runtime.block_on(async {
            tokio::pin!(request);
            loop {
                match tokio::time::timeout(Duration::from_millis(200), &mut request).await {
                    Ok(answer) => return Ok(answer),
                    Err(_) => operation.check()?,
                }
            }
        })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // It may be dropped inside another runtime, where waiting is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Objects {
    /// Opens the store for one operation.
    pub(crate) fn open(
        store: &Store,
        limits: Limits,
        operation: Arc<Operation>,
        line: &Arc<Line>,
    ) -> Result<Self, Error> {
        let throttle = Throttle::new(limits.bytes_per_second).map(Arc::new);
        let place = match store {
            Store::Local(path) => Place::Directory(Directory::new(path)),
            Store::S3(s3) => {
                let bucket = line.bucket(s3).map_err(|error| Error::Invalid(error.to_string()))?;
                Place::Bucket(Arc::new((bucket.limited(throttle.clone()), line.clone())))
            }
        };
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
            // Most of the time is spent waiting for answers.
            Place::Bucket(_) => 8,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Result<Bytes, Error> {
        self.find(key)?.ok_or_else(|| Error::Damaged(format!("{} lacks {key}", self.name)))
    }

    pub(crate) fn get_range(&self, key: &str, offset: u64, length: usize) -> Result<Bytes, Error> {
        self.ask(
            |directory| {
                self.passed(length);
                directory.get_range(key, offset, length)
            },
            |bucket| bucket.get_range(key, offset, length),
        )?
        .map_err(|error| self.failed(error))
    }

    pub(crate) fn put(&self, key: &str, parts: &[Bytes]) -> Result<(), Error> {
        self.ask(
            |directory| {
                self.passed(parts.iter().map(Bytes::len).sum());
                directory.put(key, parts)
            },
            |bucket| bucket.put(key, parts),
        )?
        .map_err(|error| self.failed(error))
    }

    /// Writes an object if there is none of this key; says whether it did.
    pub(crate) fn put_if_absent(&self, key: &str, content: Bytes) -> Result<bool, Error> {
        let parts = [content];
        let written = self.ask(
            |directory| directory.put_if_absent(key, &parts),
            |bucket| bucket.put_if_absent(key, &parts),
        )?;
        match written {
            Ok(()) => Ok(true),
            Err(lifeboat_store::Error::Exists { .. }) => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// How long an object is; none where there is none.
    pub(crate) fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        self.ask(|directory| directory.size(key), |bucket| bucket.size(key))?
            .map_err(|error| self.failed(error))
    }

    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<Entry>, Error> {
        self.ask(|directory| directory.list(prefix), |bucket| bucket.list(prefix))?
            .map_err(|error| self.failed(error))
    }

    pub(crate) fn delete(&self, key: &str) -> Result<(), Error> {
        self.ask(|directory| directory.delete(key), |bucket| bucket.delete(key))?
            .map_err(|error| self.failed(error))
    }

    /// Reads an object that may not be there, which is no fault of the operation.
    pub(crate) fn find(&self, key: &str) -> Result<Option<Bytes>, Error> {
        let found = self.ask(
            |directory| directory.get(key).inspect(|content| self.passed(content.len())),
            |bucket| bucket.get(key),
        )?;
        match found {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Asks whichever kind of store this is, unless the operation is over.
    fn ask<'a, T, F>(
        &'a self,
        directory: impl FnOnce(&'a Directory) -> Result<T, lifeboat_store::Error>,
        bucket: impl FnOnce(&'a Bucket) -> F,
    ) -> Result<Result<T, lifeboat_store::Error>, Error>
    where
        F: Future<Output = Result<T, lifeboat_store::Error>>,
    {
        self.operation.check()?;
        match &self.place {
            Place::Directory(place) => Ok(directory(place)),
            Place::Bucket(place) => place.1.wait(&self.operation, bucket(&place.0)),
        }
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
            Fault::NotFound { .. } | Fault::TooShort { .. } | Fault::TooLong { .. } => {
                return Error::Damaged(text);
            }
            Fault::Denied { .. } => Error::Denied(text),
            Fault::Invalid(_) | Fault::Lacking { .. } | Fault::NoStore { .. } | Fault::Exists { .. } => {
                Error::Invalid(text)
            }
            Fault::Full { .. } => Error::NoRoom(text),
            Fault::Unreachable { .. } | Fault::Slow { .. } | Fault::Strange { .. } => Error::Transient(text),
        };
        self.operation.fail(error)
    }
}
