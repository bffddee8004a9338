//! What a bucket holds, and where.

use async_trait::async_trait;
use bytes::Bytes;
use lifeboat_store::{Directory, Error, Objects};
use s3s::{S3Error, S3Result, s3_error};

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Keys and sizes, in order.
    pub objects: Vec<(String, u64)>,
    /// Whether there are more after the last one.
    pub more: bool,
}

/// The objects of a bucket.
#[async_trait]
pub trait Content: Send + Sync + 'static {
    /// Reads an object.
    async fn get(&self, key: &str) -> S3Result<Bytes>;
    /// How long an object is.
    async fn size(&self, key: &str) -> S3Result<u64>;
    /// Writes an object; if `free`, only where there is none.
    async fn put(&self, key: &str, content: Bytes, free: bool) -> S3Result<()>;
    /// Removes an object; one that is gone already is no error.
    async fn delete(&self, key: &str) -> S3Result<()>;
    /// Objects that begin with a prefix and come after a key, at most so many.
    async fn list(&self, prefix: &str, after: &str, most: usize) -> S3Result<Listed>;
}

#[async_trait]
impl Content for Directory {
    async fn get(&self, key: &str) -> S3Result<Bytes> {
        Objects::Directory(self.clone()).get(key).await.map_err(told)
    }

    async fn size(&self, key: &str) -> S3Result<u64> {
        let size = Objects::Directory(self.clone()).size(key).await.map_err(told)?;
        size.ok_or_else(|| s3_error!(NoSuchKey))
    }

    async fn put(&self, key: &str, content: Bytes, free: bool) -> S3Result<()> {
        let objects = Objects::Directory(self.clone());
        let put =
            if free { objects.put_if_absent(key, content).await } else { objects.put(key, content).await };
        put.map_err(told)
    }

    async fn delete(&self, key: &str) -> S3Result<()> {
        Objects::Directory(self.clone()).delete(key).await.map_err(told)
    }

    async fn list(&self, prefix: &str, after: &str, most: usize) -> S3Result<Listed> {
        let all = Objects::Directory(self.clone()).list(prefix).await.map_err(told)?;
        let mut left = all.into_iter().skip_while(|entry| entry.key.as_str() <= after);
        let objects = left.by_ref().take(most).map(|entry| (entry.key, entry.size)).collect();
        Ok(Listed { objects, more: left.next().is_some() })
    }
}

/// What a client is told of an error of the disk: paths stay here.
fn told(error: Error) -> S3Error {
    match error {
        Error::NotFound { .. } => s3_error!(NoSuchKey),
        Error::Exists { .. } => s3_error!(PreconditionFailed),
        Error::Invalid { .. } => s3_error!(InvalidArgument, "the key cannot be a path of a file"),
        _ => s3_error!(InternalError, "the server's disk failed"),
    }
}
