//! One face for both kinds of store.

use bytes::Bytes;

use crate::{Bucket, Directory, Entry, Error, Patience, Store};

/// An open store of either kind.
#[derive(Clone, Debug)]
pub enum Objects {
    /// A directory.
    Directory(Directory),
    /// A bucket.
    Bucket(Box<Bucket>),
}

impl Objects {
    /// Opens a store; nothing is read or written yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] where its description makes no sense.
    pub fn open(store: &Store) -> Result<Self, Error> {
        Ok(match store {
            Store::Local(path) => Self::Directory(Directory::new(path)),
            Store::S3(s3) => Self::Bucket(Box::new(Bucket::open(s3, Patience::default())?)),
        })
    }

    /// Reads an object.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none.
    pub async fn get(&self, key: &str) -> Result<Bytes, Error> {
        match self {
            Self::Directory(directory) => blocking(directory, key, Directory::get).await,
            Self::Bucket(bucket) => bucket.get(key).await,
        }
    }

    /// Reads an object of at most this length, without asking for its length first.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none, [`Error::TooLong`] where it is longer.
    pub async fn get_within(&self, key: &str, longest: u64) -> Result<Bytes, Error> {
        match self {
            Self::Directory(directory) => {
                blocking(directory, key, move |directory, key| directory.get_within(key, longest)).await
            }
            Self::Bucket(bucket) => bucket.get_within(key, longest).await,
        }
    }

    /// Reads a part of an object; all of it must be there.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none, [`Error::TooShort`] where it is too short.
    pub async fn get_range(&self, key: &str, offset: u64, length: usize) -> Result<Bytes, Error> {
        match self {
            Self::Directory(directory) => {
                blocking(directory, key, move |directory, key| directory.get_range(key, offset, length)).await
            }
            Self::Bucket(bucket) => bucket.get_range(key, offset, length).await,
        }
    }

    /// How long an object is; none where there is none.
    ///
    /// # Errors
    /// What the store answers.
    pub async fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        match self {
            Self::Directory(directory) => blocking(directory, key, Directory::size).await,
            Self::Bucket(bucket) => bucket.size(key).await,
        }
    }

    /// Writes an object, over one that may be there.
    ///
    /// # Errors
    /// What the store answers.
    pub async fn put(&self, key: &str, content: Bytes) -> Result<(), Error> {
        match self {
            Self::Directory(directory) => {
                blocking(directory, key, move |directory, key| directory.put(key, &[content])).await
            }
            Self::Bucket(bucket) => bucket.put(key, &[content]).await,
        }
    }

    /// Writes an object if the key is free.
    ///
    /// # Errors
    /// [`Error::Exists`] where somebody else was first.
    pub async fn put_if_absent(&self, key: &str, content: Bytes) -> Result<(), Error> {
        match self {
            Self::Directory(directory) => {
                blocking(directory, key, move |directory, key| directory.put_if_absent(key, &[content])).await
            }
            Self::Bucket(bucket) => bucket.put_if_absent(key, &[content]).await,
        }
    }

    /// The objects whose key is a prefix's continuation, in order of their keys. The list is whole or an error.
    ///
    /// # Errors
    /// What the store answers.
    pub async fn list(&self, prefix: &str) -> Result<Vec<Entry>, Error> {
        match self {
            Self::Directory(directory) => blocking(directory, prefix, Directory::list).await,
            Self::Bucket(bucket) => bucket.list(prefix).await,
        }
    }

    /// Removes an object; one that is gone already is no error.
    ///
    /// # Errors
    /// What the store answers.
    pub async fn delete(&self, key: &str) -> Result<(), Error> {
        match self {
            Self::Directory(directory) => blocking(directory, key, Directory::delete).await,
            Self::Bucket(bucket) => bucket.delete(key).await,
        }
    }

    /// Removes objects; those that are gone already are no error.
    ///
    /// # Errors
    /// What the store answers, for the first that it does not remove.
    pub async fn delete_many(&self, keys: &[String]) -> Result<(), Error> {
        match self {
            Self::Directory(_) => {
                for key in keys {
                    self.delete(key).await?;
                }
                Ok(())
            }
            Self::Bucket(bucket) => bucket.delete_many(keys).await,
        }
    }
}

/// Runs work on a directory where it may block.
async fn blocking<T: Send + 'static>(
    directory: &Directory,
    key: &str,
    work: impl FnOnce(&Directory, &str) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (directory, key) = (directory.clone(), key.to_owned());
    let store = directory.root().display().to_string();
    tokio::task::spawn_blocking(move || work(&directory, &key))
        .await
        .unwrap_or_else(|_| Err(Error::Unreachable { store, detail: "the runtime is shutting down".into() }))
}
