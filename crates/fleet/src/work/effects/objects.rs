//! Writes to the cluster: whatever kind a manifest has, guarded by version and uid.

use super::{MANAGER, REFUSED, Works};
use crate::cluster::kinds::Target;
use crate::cluster::sight::Seen;
use crate::work::decide::edition;
use crate::work::manifest::{Manifest, fields};
use crate::work::world::{Failure, Item};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use lifeboat_api::annotations::{MADE_BY_RECORD, OBJECT_HASH};
use lifeboat_engine::{Class, EffectError, ObjectKey};
use serde_json::Value;

impl Works {
    /// The manifest of an object, if it is still the one that was decided on; for server-side apply also the one without the fields
    /// that are left alone.
    fn manifest(
        &self,
        key: &ObjectKey,
        target: &Target,
        hash: &str,
    ) -> Result<(Item, Manifest, Manifest), EffectError> {
        let work = self.work(key)?;
        let item = self.items(&work).into_iter().find(|item| item.target.as_ref() == Some(target));
        let changed = || EffectError::new(Class::Stale, format!("the manifest of {target} has changed"));
        let item = item.ok_or_else(changed)?;
        let whole = item.manifest.clone().map_err(|_| changed())?;
        let apply = item.strategy().server_side_apply.unwrap_or_default();
        let wanted = [Ok(whole.clone()), whole.clone().without(&apply.ignore_fields)];
        let wanted = wanted.into_iter().flatten().find(|wanted| wanted.hash() == hash).ok_or_else(changed)?;
        Ok((item, whole, wanted))
    }

    pub(super) async fn make(&self, key: &ObjectKey, target: &Target, hash: &str) -> Result<(), EffectError> {
        let (_, whole, _) = self.manifest(key, target, hash)?;
        let record = self.current_record(&key.name)?;
        let mark = record.metadata.uid.clone().unwrap_or_default();
        let body = whole.made(target, &[(OBJECT_HASH, hash), (MADE_BY_RECORD, &mark)]);
        let tried = format!("creating {target}");
        let object = decode(body).map_err(|why| EffectError::new(Class::BadInput, why));
        let answer = match object {
            Ok(object) => target.api(&self.ground.client).create(&params(), &object).await,
            Err(error) => return self.refuse(key, target, hash, None, &error.sentence()),
        };
        self.answer(key, target, hash, None, tried, answer).await
    }

    pub(super) async fn replace(
        &self,
        key: &ObjectKey,
        target: &Target,
        hash: &str,
    ) -> Result<(), EffectError> {
        let (_, whole, _) = self.manifest(key, target, hash)?;
        let Seen::Present(present) = self.ground.sight.get(target) else {
            return Err(EffectError::new(Class::Stale, format!("{target} is gone")));
        };
        let tried = format!("replacing {target}");
        let object = match decode(whole.over(target, &present)) {
            Ok(object) => object,
            Err(why) => return self.refuse(key, target, hash, Some(&present), &why),
        };
        let answer = target.api(&self.ground.client).replace(&target.name, &params(), &object).await;
        self.answer(key, target, hash, Some(&present), tried, answer).await
    }

    pub(super) async fn apply(
        &self,
        key: &ObjectKey,
        target: &Target,
        hash: &str,
    ) -> Result<(), EffectError> {
        let (item, whole, wanted) = self.manifest(key, target, hash)?;
        let api = target.api(&self.ground.client);
        let tried = format!("applying {target}");
        // An apply does not tell whether it made the object or changed one, so look right before.
        let present =
            api.get_opt(&target.name).await.map_err(|error| EffectError::api(tried.clone(), error))?;
        let record = self.current_record(&key.name)?;
        let mark = record.metadata.uid.clone().unwrap_or_default();
        let ours =
            present.as_ref().is_none_or(|object| object.annotations().get(MADE_BY_RECORD) == Some(&mark));
        let mut annotations = vec![(OBJECT_HASH, hash)];
        if ours {
            annotations.push((MADE_BY_RECORD, &mark));
        }
        let body = if present.is_some() { &wanted } else { &whole }.made(target, &annotations);
        let rule = item.strategy().server_side_apply.unwrap_or_default();
        let manager =
            rule.field_manager.filter(|name| !name.is_empty()).unwrap_or_else(|| MANAGER.to_owned());
        let params = PatchParams { force: rule.force, ..PatchParams::apply(&manager) };
        match api.patch(&target.name, &params, &Patch::Apply(&body)).await {
            // Others' fields: that does not change by looking again.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.refuse(key, target, hash, present.as_ref(), &status.message)
            }
            answer => self.answer(key, target, hash, present.as_ref(), tried, answer).await,
        }
    }

    pub(super) async fn delete(&self, target: &Target, uid: &str) -> Result<(), EffectError> {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        match target.api(&self.ground.client).delete(&target.name, &params).await {
            Ok(answer) => match answer.left() {
                Some(left) if left.metadata.finalizers.as_ref().is_some_and(|names| !names.is_empty()) => {
                    self.ground.sight.wrote(target, left);
                }
                _ => self.ground.sight.gone(target),
            },
            Err(kube::Error::Api(status)) if status.code == 404 => self.ground.sight.gone(target),
            Err(error) => {
                let error = EffectError::api(format!("deleting {target}"), error);
                if error.class == Class::Stale {
                    self.look_again(target).await;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// What came of a write: seen, refused, or to be tried again.
    async fn answer(
        &self,
        key: &ObjectKey,
        target: &Target,
        hash: &str,
        on: Option<&DynamicObject>,
        tried: String,
        answer: Result<DynamicObject, kube::Error>,
    ) -> Result<(), EffectError> {
        let error = match answer {
            Ok(object) => {
                self.failures.0.lock().remove(&(key.name.clone(), target.clone()));
                self.ground.sight.wrote(target, object);
                return Ok(());
            }
            Err(error) => error,
        };
        match &error {
            // Not the object but what it lives in is gone.
            kube::Error::Api(status) if status.code == 404 && on.is_none() => {
                self.refuse(key, target, hash, on, &status.message)
            }
            kube::Error::Api(status) if matches!(status.code, 400 | 403 | 405 | 413 | 415 | 422) => {
                self.refuse(key, target, hash, on, &status.message)
            }
            kube::Error::Api(status) if matches!(status.code, 404 | 409 | 410) => {
                self.look_again(target).await;
                Err(EffectError::api(tried, error))
            }
            _ => Err(EffectError::api(tried, error)),
        }
    }

    /// The world was not as it seemed: sees it anew before the next decision. Should that fail, the watch will tell.
    async fn look_again(&self, target: &Target) {
        match target.api(&self.ground.client).get_opt(&target.name).await {
            Ok(Some(object)) => self.ground.sight.wrote(target, object),
            Ok(None) => self.ground.sight.gone(target),
            Err(_) => {}
        }
    }

    fn refuse(
        &self,
        key: &ObjectKey,
        target: &Target,
        hash: &str,
        on: Option<&DynamicObject>,
        message: &str,
    ) -> Result<(), EffectError> {
        let on = edition(on);
        let mut failures = self.failures.0.lock();
        let before = failures.get(&(key.name.clone(), target.clone()));
        let before = before.filter(|failure| failure.hash == hash && failure.on == on);
        let tries = before.map_or(0, |failure| failure.tries) + 1;
        let again = self.ground.clock.now() + REFUSED.after(tries);
        let failure = Failure {
            hash: hash.to_owned(),
            on,
            message: message.to_owned(),
            ignore_fields: false,
            tries,
            again,
        };
        tracing::warn!(work = key.name, %target, message, "a manifest was refused");
        failures.insert((key.name.clone(), target.clone()), failure);
        Ok(())
    }
}

fn params() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), dry_run: false }
}

fn decode(body: Value) -> Result<DynamicObject, String> {
    serde_json::from_value(Value::Object(fields(body)))
        .map_err(|error| format!("the manifest is not an object: {error}"))
}
