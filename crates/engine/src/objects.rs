//! The objects of one kind as a controller uses them: read from the cache, written through the API server, and every answer
//! put back into the cache before the next decision. A write that finds the world changed reads the object anew first, so
//! that looking again at once is worth it.

use crate::cache::{Cache, ObjectKey, lean};
use crate::decode::Head;
use crate::error::{Class, EffectError};
use kube::Resource;
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Request;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Deref;
use std::sync::Arc;

/// One kind: its cache (by `Deref`) and its writes. Clones share both.
pub struct Objects<K> {
    cache: Arc<Cache<K>>,
    client: kube::Client,
    manager: Arc<str>,
}

impl<K> Clone for Objects<K> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), client: self.client.clone(), manager: self.manager.clone() }
    }
}

impl<K> Deref for Objects<K> {
    type Target = Cache<K>;
    fn deref(&self) -> &Cache<K> {
        &self.cache
    }
}

/// Which part of an object a write is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Status,
}

impl<K> Objects<K> {
    pub(crate) fn cache(&self) -> &Arc<Cache<K>> {
        &self.cache
    }
}

impl<K> Objects<K>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    /// Objects written as `manager`; somebody has to feed the cache, as [`Engine`](crate::Engine) does.
    pub fn new(client: kube::Client, manager: &str) -> Self {
        Self { cache: Arc::default(), client, manager: manager.into() }
    }

    /// Creates an object. Where it is already there, it is read, so that the next decision sees it. One that is outside what
    /// is watched is seen then too, but no event tells when it changes: whoever waits for that says until when.
    pub async fn create(&self, object: &K) -> Result<Arc<K>, EffectError> {
        let key = ObjectKey::of(object);
        let tried = || format!("creating {} {key}", K::kind(&()));
        let request = self
            .request(&key)
            .create(&PostParams { field_manager: self.manager(), dry_run: false }, body(object, tried)?);
        match self.send(request).await {
            // Not the object but what it should live in is missing: that takes a while.
            Err(kube::Error::Api(status)) if status.code == 404 => {
                Err(EffectError::caused(Class::Transient, tried(), kube::Error::Api(status)))
            }
            answer => self.answer(&key, tried, answer).await,
        }
    }

    /// Replaces an object; refused if it has changed since the version that `object` carries.
    pub async fn replace(&self, object: &K) -> Result<Arc<K>, EffectError> {
        self.put(object, Part::Whole).await
    }

    /// Replaces the status of an object; refused if it has changed since the version that `object` carries.
    pub async fn replace_status(&self, object: &K) -> Result<Arc<K>, EffectError> {
        self.put(object, Part::Status).await
    }

    /// Patches an object. The precondition is the patch's own business: a merge patch with `metadata.uid` and
    /// `metadata.resourceVersion`, a JSON patch with a test.
    pub async fn patch<P: Serialize + std::fmt::Debug>(
        &self,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> Result<Arc<K>, EffectError> {
        let tried = || format!("patching {} {key}", K::kind(&()));
        let request = self.request(key).patch(&key.name, &self.patch_params(patch), patch);
        let answer = self.send(request).await;
        self.answer(key, tried, answer).await
    }

    /// Patches the status of an object; see [`Objects::patch`].
    pub async fn patch_status<P: Serialize + std::fmt::Debug>(
        &self,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> Result<Arc<K>, EffectError> {
        let tried = || format!("patching the status of {} {key}", K::kind(&()));
        let request =
            self.request(key).patch_subresource("status", &key.name, &self.patch_params(patch), patch);
        let answer = self.send(request).await;
        self.answer(key, tried, answer).await
    }

    /// Deletes an object: this one (by uid) in this version, not a namesake or a version we have not seen.
    pub async fn delete(&self, object: &K) -> Result<(), EffectError> {
        let key = ObjectKey::of(object);
        let meta = object.meta();
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: meta.uid.clone(),
                resource_version: meta.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        let tried = || format!("deleting {} {key}", K::kind(&()));
        let uid = meta.uid.as_deref().unwrap_or_default();
        let request = self.request(&key).delete(&key.name, &params).map_err(kube::Error::BuildRequest);
        let answer = match request {
            Ok(request) => self.client.request_status::<K>(request).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(either) => {
                match either.left() {
                    // Some kinds answer with the last version, which says whether it is still there.
                    Some(left) if is_still_there(&left) => self.cache.wrote(lean(left)),
                    _ => self.cache.wrote_deletion(&key, uid),
                }
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.cache.wrote_deletion(&key, uid);
                Ok(())
            }
            Err(error) => self.answer(&key, tried, Err(error)).await.map(drop),
        }
    }

    /// Reads an object from the server and not from the cache: before something that cannot be undone.
    pub async fn read(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, EffectError> {
        let request = self.request(key).get(&key.name, &GetParams::default());
        match self.send(request).await {
            Ok(object) => {
                self.cache.wrote(object.clone());
                Ok(Some(object))
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                if let Some(known) = self.cache.get(key) {
                    self.cache.wrote_deletion(key, known.meta().uid.as_deref().unwrap_or_default());
                }
                Ok(None)
            }
            Err(error) => Err(EffectError::api(format!("reading {} {key}", K::kind(&())), error)),
        }
    }

    async fn put(&self, object: &K, part: Part) -> Result<Arc<K>, EffectError> {
        let key = ObjectKey::of(object);
        let what = if part == Part::Status { "the status of " } else { "" };
        let tried = || format!("writing {what}{} {key}", K::kind(&()));
        let params = PostParams { field_manager: self.manager(), dry_run: false };
        let body = body(object, tried)?;
        let request = match part {
            Part::Whole => self.request(&key).replace(&key.name, &params, body),
            Part::Status => self.request(&key).replace_subresource("status", &key.name, &params, body),
        };
        let answer = self.send(request).await;
        self.answer(&key, tried, answer).await
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Arc<K>, kube::Error> {
        let json = self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await?;
        let head = Head::of(&json).map_err(kube::Error::SerdeError)?;
        // The watch is often faster than the answer.
        if let Some(known) = self.cache.at_version(&head.key(), head.uid(), head.version()) {
            return Ok(known);
        }
        head.decode().map(Arc::new).map_err(kube::Error::SerdeError)
    }

    async fn answer(
        &self,
        key: &ObjectKey,
        tried: impl Fn() -> String,
        answer: Result<Arc<K>, kube::Error>,
    ) -> Result<Arc<K>, EffectError> {
        match answer {
            Ok(object) => {
                self.cache.wrote(object.clone());
                Ok(object)
            }
            Err(error) => {
                let error = EffectError::api(tried(), error);
                if error.class == Class::Stale {
                    // Should this fail too, the watch will tell.
                    let _ = self.read(key).await;
                }
                Err(error)
            }
        }
    }

    fn request(&self, key: &ObjectKey) -> Request {
        let namespace = (!key.namespace.is_empty()).then_some(key.namespace.as_str());
        Request::new(K::url_path(&(), namespace))
    }

    fn manager(&self) -> Option<String> {
        Some(self.manager.to_string())
    }

    fn patch_params<P: Serialize>(&self, patch: &Patch<P>) -> PatchParams {
        let force = matches!(patch, Patch::Apply(_));
        PatchParams { field_manager: self.manager(), force, ..PatchParams::default() }
    }
}

/// Whether what a deletion answered with is only marked: it has finalizers, or time to end, as a pod on a node has.
fn is_still_there<K: Resource>(object: &K) -> bool {
    let meta = object.meta();
    let held = meta.finalizers.as_ref().is_some_and(|names| !names.is_empty());
    let ends = meta.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0);
    meta.deletion_timestamp.is_some() && (held || ends)
}

fn body<K: Serialize>(object: &K, tried: impl Fn() -> String) -> Result<Vec<u8>, EffectError> {
    serde_json::to_vec(object).map_err(|error| EffectError::caused(Class::BadInput, tried(), error))
}

#[cfg(test)]
mod tests {
    use super::is_still_there;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    #[test]
    fn what_has_finalizers_or_time_to_end_is_still_there() {
        let check = |meta: Value, expected: bool| {
            let pod: Pod = serde_json::from_value(json!({"metadata": meta})).unwrap();
            assert_eq!(is_still_there(&pod), expected, "{meta}");
        };
        let now = "2030-01-01T00:00:00Z";
        check(json!({}), false);
        check(json!({"finalizers": ["a/b"]}), false);
        check(json!({"deletionTimestamp": now}), false);
        check(json!({"deletionTimestamp": now, "finalizers": []}), false);
        check(json!({"deletionTimestamp": now, "finalizers": ["a/b"]}), true);
        check(json!({"deletionTimestamp": now, "deletionGracePeriodSeconds": 0}), false);
        check(json!({"deletionTimestamp": now, "deletionGracePeriodSeconds": 30}), true);
    }
}
