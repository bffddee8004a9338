//! PATCH in its four kinds. Each makes a new object of the stored one; everything after that is an update like any other.

use crate::cluster::Cluster;
use crate::error::{ApiError, Result};
use crate::negotiate::{decode_json, decode_yaml, media_type};
use crate::object::Object;
use crate::query::{FieldValidation, WriteOptions};
use crate::registry::{Nature, Resource};
use crate::write::{At, Changed, Written, apply_manager, rfc3339};
use bytes::Bytes;
use lifeboat_schema::FieldError;
use lifeboat_schema::managed::{self, ApplyError};
use lifeboat_schema::patch::{self, PatchError};
use serde_json::Value;

const FOR_BUILT_IN: &str = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml";
const FOR_CUSTOM: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

/// The kinds of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' own, which knows lists by their keys.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchKind {
    /// The kind that a Content-Type names, if the resource takes it.
    pub fn of(resource: &Resource, content_type: &str) -> Result<Self> {
        let built_in = matches!(resource.nature, Nature::BuiltIn(_));
        match media_type(content_type) {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if built_in => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ => Err(ApiError::unsupported_media_type(if built_in { FOR_BUILT_IN } else { FOR_CUSTOM })),
        }
    }
}

impl Cluster {
    /// Patches an object; only an apply may create it.
    pub fn patch(
        &self,
        at: At<'_>,
        kind: PatchKind,
        body: &Bytes,
        explicit_manager: bool,
        options: &WriteOptions,
    ) -> Result<Written> {
        if kind == PatchKind::Apply {
            return self.apply(at, body, explicit_manager, options);
        }
        if options.force {
            let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
            return Err(ApiError::invalid_option("PatchOptions", error));
        }
        let decoded = decode_json(body)?;
        let schema = at.resource.schema();
        self.update(at, options, |old| {
            let old = old.ok_or_else(|| at.not_found())?;
            let object = match kind {
                PatchKind::Json => patch::json_patch(old, &decoded.object),
                PatchKind::Merge => merge(old, &decoded.object),
                PatchKind::Strategic => patch::strategic(schema, old, &decoded.object),
                PatchKind::Apply => unreachable!("invariant: applied above"),
            };
            let object = object.map_err(patch_error)?;
            Ok(Changed { from_patch: true, unsound: decoded.unsound.clone(), ..Changed::plain(object) })
        })
    }

    /// Server-side apply.
    fn apply(
        &self,
        at: At<'_>,
        body: &Bytes,
        explicit_manager: bool,
        options: &WriteOptions,
    ) -> Result<Written> {
        if !explicit_manager {
            let error = FieldError::required("fieldManager", "is required for apply patch");
            return Err(ApiError::invalid_option("PatchOptions", error));
        }
        let decoded = decode_yaml(body)?;
        if options.validation == FieldValidation::Strict && !decoded.unsound.is_empty() {
            let what = format!("strict decoding error: {}", decoded.unsound.join(", "));
            return Err(ApiError::bad_request(what));
        }
        let mut config = decoded.object;
        check_applied(at, &config)?;
        crate::object::set_meta(&mut config, "creationTimestamp", None);
        let time = rfc3339(self.now());
        let manager = apply_manager(at, options, &time);
        self.update(at, options, |old| {
            if old.is_none() && !at.subresource.is_empty() {
                return Err(at.not_found());
            }
            let expected = config.meta_str("resourceVersion");
            if let Some(old) = old
                && !expected.is_empty()
                && expected != old.meta_str("resourceVersion")
            {
                return Err(ApiError::conflict(at.resource.about(), at.name));
            }
            let applied = managed::apply(at.resource.schema(), old, &config, &manager, options.force);
            match applied {
                Ok(object) => Ok(Changed { managed: true, ..Changed::plain(object) }),
                Err(error @ ApplyError::Conflict(_)) => {
                    Err(ApiError::apply_conflict(error.to_string(), error.causes()))
                }
                Err(ApplyError::BadRequest(what)) => Err(ApiError::bad_request(what)),
                Err(ApplyError::Invalid(what)) => Err(ApiError::untyped(what)),
            }
        })
    }
}

/// What is applied must say what it is.
fn check_applied(at: At<'_>, config: &Value) -> Result<()> {
    let api_version = config["apiVersion"].as_str().unwrap_or_default();
    let kind = config["kind"].as_str().unwrap_or_default();
    if api_version.is_empty() || kind.is_empty() {
        return Err(ApiError::bad_request(
            "Object 'Kind' is missing in the applied configuration: apiVersion and kind must be set",
        ));
    }
    if config
        .meta()
        .get("managedFields")
        .is_some_and(|fields| !fields.is_null() && *fields != Value::Array(Vec::new()))
    {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let name = config.meta_str("name");
    if !name.is_empty() && name != at.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            at.name
        )));
    }
    Ok(())
}

fn merge(old: &Value, patch: &Value) -> Result<Value, PatchError> {
    if patch.is_object() {
        Ok(patch::merge_patch(old, patch))
    } else {
        Err(PatchError::BadRequest("a merge patch must be an object".into()))
    }
}

fn patch_error(error: PatchError) -> ApiError {
    match error {
        PatchError::BadRequest(what) => ApiError::bad_request(what),
        PatchError::Unprocessable(what) => ApiError::unprocessable(format!(
            "the server rejected our request due to an error in our request: {what}"
        )),
        PatchError::TooLarge(what) => ApiError::bad_request(what),
    }
}
