//! Objects in a bucket, by the S3 protocol.
//!
//! Requests are made and answers read here; signing is rusty-s3's, sending is in [`line`], what answers mean in [`answer`]. Addresses
//! carry the signature, so none is ever shown.

mod answer;
mod line;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use rusty_s3::actions::{DeleteObjectsResponse, ListObjectsV2, ObjectIdentifier};
use rusty_s3::{Bucket as Address, Credentials, S3Action, UrlStyle};

use crate::{Entry, Error, S3Store, Store, Throttle, key};
use line::{Line, Request};

/// How long to wait and how often to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Tries of one request in all.
    pub attempts: u32,
    /// Pause before the second try; it doubles up to the longest.
    pub first_pause: Duration,
    /// Longest pause between tries.
    pub longest_pause: Duration,
    /// Time to get a connection.
    pub connect: Duration,
    /// Time without any byte of an answer.
    pub silence: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts: 6,
            first_pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(60),
        }
    }
}

/// A bucket. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Bucket {
    address: Arc<Address>,
    credentials: Arc<Credentials>,
    prefix: String,
    name: String,
    line: Line,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bucket").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How long a signature is good for: longer than any upload and any difference of clocks that servers accept.
const SIGNED_FOR: Duration = Duration::from_secs(3600);
/// The longest object that is read in one piece.
const LONGEST: u64 = 1 << 30;
/// What one request may delete.
const DELETES: usize = 1000;

impl Bucket {
    /// Prepares to talk to a bucket; nothing is sent yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the address or the certificates make no sense.
    pub fn open(store: &S3Store, patience: Patience) -> Result<Self, Error> {
        let name = Store::S3(store.clone()).to_string();
        let invalid = |what: &str| Error::Invalid(format!("{name}: {what}"));
        let endpoint = store.endpoint.parse().map_err(|_| invalid("the endpoint is no address"))?;
        let region = if store.region.is_empty() { "us-east-1" } else { &store.region };
        if store.bucket.is_empty() {
            return Err(invalid("the bucket has no name"));
        }
        if store.access_key.reveal().is_empty() || store.secret_key.reveal().is_empty() {
            return Err(invalid("the access key or the secret key is empty"));
        }
        let address = Address::new(endpoint, UrlStyle::Path, store.bucket.clone(), region.to_owned())
            .map_err(|error| invalid(&format!("the endpoint is no address of a server: {error}")))?;
        let (access, secret) = (store.access_key.reveal(), store.secret_key.reveal());
        let credentials = match &store.session_token {
            Some(token) => Credentials::new_with_token(access, secret, token.reveal()),
            None => Credentials::new(access, secret),
        };
        let prefix = store.prefix.trim_matches('/');
        if !prefix.is_empty() {
            key::check(prefix)?;
        }
        let line = Line::open(store, &name, patience)?;
        Ok(Self {
            address: Arc::new(address),
            credentials: Arc::new(credentials),
            prefix: if prefix.is_empty() { String::new() } else { format!("{prefix}/") },
            name,
            line,
        })
    }

    /// The same bucket with a bound on the bytes a second that go through this handle and its clones.
    #[must_use]
    pub fn limited(mut self, throttle: Option<Arc<Throttle>>) -> Self {
        self.line.throttle = throttle;
        self
    }

    /// Reads an object.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none.
    pub async fn get(&self, key: &str) -> Result<Bytes, Error> {
        self.get_within(key, LONGEST).await
    }

    /// Reads an object of at most this length; of a longer one nothing is taken.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none, [`Error::TooLong`] where it is longer.
    pub async fn get_within(&self, key: &str, longest: u64) -> Result<Bytes, Error> {
        let full = self.full(key)?;
        let sign = || self.address.get_object(Some(&self.credentials), &full).sign(SIGNED_FOR);
        let answer = self.line.send(&Request::new("reading", key, Method::GET), &sign, longest).await?;
        Ok(answer.body)
    }

    /// Reads a part of an object; all of it must be there.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none, [`Error::TooShort`] where it is too short.
    pub async fn get_range(&self, key: &str, offset: u64, length: usize) -> Result<Bytes, Error> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let full = self.full(key)?;
        let sign = || self.address.get_object(Some(&self.credentials), &full).sign(SIGNED_FOR);
        let last = offset + length as u64 - 1;
        let request =
            Request::new("reading", key, Method::GET).with(header::RANGE, format!("bytes={offset}-{last}"));
        let answer = match self.line.send(&request, &sign, length as u64).await {
            // More than was asked for says nothing about how long the object is.
            Err(Error::TooLong { store, .. }) => {
                return Err(Error::Strange {
                    store,
                    detail: format!("reading {key}: the answer is too long"),
                });
            }
            answer => answer?,
        };
        if answer.status == StatusCode::PARTIAL_CONTENT && answer.body.len() == length {
            return Ok(answer.body);
        }
        if answer.status == StatusCode::PARTIAL_CONTENT {
            return Err(Error::TooShort { store: self.name.clone(), key: key.to_owned() });
        }
        let detail = format!("reading {length} bytes of {key} at {offset}: {} came", answer.body.len());
        Err(Error::Strange { store: self.name.clone(), detail })
    }

    /// How long an object is; none where there is none.
    ///
    /// # Errors
    /// What the server answers.
    pub async fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        let full = self.full(key)?;
        let sign = || self.address.head_object(Some(&self.credentials), &full).sign(SIGNED_FOR);
        match self.line.send(&Request::new("looking at", key, Method::HEAD), &sign, 0).await {
            Ok(answer) => Ok(Some(answer.length.unwrap_or_default())),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes an object, over one that may be there.
    ///
    /// # Errors
    /// What the server answers.
    pub async fn put(&self, key: &str, parts: &[Bytes]) -> Result<(), Error> {
        let full = self.full(key)?;
        let sign = || self.address.put_object(Some(&self.credentials), &full).sign(SIGNED_FOR);
        let request = Request::new("writing", key, Method::PUT).carrying(parts);
        self.line.send(&request, &sign, LONGEST).await.map(drop)
    }

    /// Writes an object if the key is free. Needs a server that knows conditional writes, as all current ones do.
    ///
    /// # Errors
    /// [`Error::Exists`] where somebody else was first.
    pub async fn put_if_absent(&self, key: &str, parts: &[Bytes]) -> Result<(), Error> {
        let full = self.full(key)?;
        let sign = || self.address.put_object(Some(&self.credentials), &full).sign(SIGNED_FOR);
        let request = Request::new("writing", key, Method::PUT)
            .carrying(parts)
            .with(header::IF_NONE_MATCH, "*".to_owned());
        match self.line.send(&request, &sign, LONGEST).await {
            // An answer may have been lost: then the one who was first is us.
            Err(error @ Error::Exists { .. }) => match self.get(key).await {
                Ok(found) if found == parts.concat() => Ok(()),
                _ => Err(error),
            },
            sent => sent.map(drop),
        }
    }

    /// The objects whose key is a prefix's continuation, in order of their keys. The list is whole or an error.
    ///
    /// # Errors
    /// What the server answers.
    pub async fn list(&self, prefix: &str) -> Result<Vec<Entry>, Error> {
        let mut found = Vec::new();
        let mut token: Option<String> = None;
        let under = format!("{}{prefix}", self.prefix);
        loop {
            let sign = || {
                let mut action = ListObjectsV2::new(&self.address, Some(&self.credentials));
                action.with_prefix(under.as_str());
                if let Some(token) = &token {
                    action.with_continuation_token(token.as_str());
                }
                action.sign(SIGNED_FOR)
            };
            let answer =
                self.line.send(&Request::new("listing", prefix, Method::GET), &sign, LONGEST).await?;
            let strange = |what: &str| Error::Strange {
                store: self.name.clone(),
                detail: format!("listing {prefix}: {what}"),
            };
            let text = std::str::from_utf8(&answer.body).map_err(|_| strange("the list is no text"))?;
            let page = ListObjectsV2::parse_response(text).map_err(|_| strange("the list makes no sense"))?;
            for object in page.contents {
                // What lies elsewhere was not asked for.
                let Some(key) = object.key.strip_prefix(&self.prefix) else { continue };
                if key.starts_with(prefix) && !key.ends_with('/') {
                    found.push(Entry { key: key.to_owned(), size: object.size.unwrap_or_default() });
                }
            }
            if page.next_continuation_token.is_some() && page.next_continuation_token == token {
                return Err(strange("the list goes in circles"));
            }
            token = page.next_continuation_token;
            if token.is_none() {
                found.sort_unstable();
                found.dedup();
                return Ok(found);
            }
        }
    }

    /// Removes an object; one that is gone already is no error.
    ///
    /// # Errors
    /// What the server answers.
    pub async fn delete(&self, key: &str) -> Result<(), Error> {
        let full = self.full(key)?;
        let sign = || self.address.delete_object(Some(&self.credentials), &full).sign(SIGNED_FOR);
        match self.line.send(&Request::new("removing", key, Method::DELETE), &sign, LONGEST).await {
            Err(error) if error.is_not_found() => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// Removes objects, many with one request; those that are gone already are no error.
    ///
    /// # Errors
    /// What the server answers, for the first that it does not remove.
    pub async fn delete_many(&self, keys: &[String]) -> Result<(), Error> {
        for keys in keys.chunks(DELETES) {
            let full = keys.iter().map(|key| self.full(key).map(ObjectIdentifier::new));
            let objects = full.collect::<Result<Vec<_>, _>>()?;
            let act = || self.address.delete_objects(Some(&self.credentials), objects.iter());
            let (body, digest) = act().body_with_md5();
            let what = format!("{} objects", keys.len());
            let request = Request::new("removing", &what, Method::POST)
                .carrying(&[Bytes::from(body)])
                .with(HeaderName::from_static("content-md5"), digest);
            let answer = self.line.send(&request, &|| act().sign(SIGNED_FOR), LONGEST).await?;
            let text = String::from_utf8_lossy(&answer.body);
            let answer = DeleteObjectsResponse::parse(&text).map_err(|_| Error::Strange {
                store: self.name.clone(),
                detail: format!("removing {what}: the answer makes no sense"),
            })?;
            if let Some(kept) = answer.errors.iter().find(|kept| kept.code != "NoSuchKey") {
                let key = kept.key.strip_prefix(&self.prefix).unwrap_or(&kept.key);
                return Err(answer::refusal(&self.name, "removing", key, &answer::plain(&kept.code)));
            }
        }
        Ok(())
    }

    fn full(&self, key: &str) -> Result<String, Error> {
        key::check(key)?;
        Ok(format!("{}{key}", self.prefix))
    }
}

/// A header of a request.
pub(crate) type Header = (HeaderName, HeaderValue);
