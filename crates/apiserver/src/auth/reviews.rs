//! Reviews: questions about identity and permission that are answered and never stored.

use super::rbac::{Attributes, allowed, rules_for};
use super::tokens::{Bound, ISSUER, claims};
use super::{Authenticator, MASTERS, User};
use crate::cluster::Cluster;
use crate::error::{ApiError, Result};
use crate::object::Object;
use crate::registry::Resource;
use crate::write::rfc3339;
use lifeboat_schema::FieldError;
use serde_json::{Value, json};

/// The shortest life of a token, as in Kubernetes.
const MIN_TOKEN_SECONDS: i64 = 600;
/// The life of a token that names none.
const TOKEN_SECONDS: i64 = 3600;
/// The longest life of a token.
const MAX_TOKEN_SECONDS: i64 = 365 * 24 * 3600;

/// Answers a review.
pub fn review(
    cluster: &Cluster,
    authenticator: &Authenticator,
    user: &User,
    resource: &Resource,
    namespace: &str,
    mut body: Value,
) -> Result<Value> {
    body["apiVersion"] = resource.api_version.as_str().into();
    body["kind"] = resource.kind.as_str().into();
    body.meta_mut();
    let status = match resource.kind.as_str() {
        "SelfSubjectReview" => json!({"userInfo": user.to_json()}),
        "TokenReview" => token_review(cluster, authenticator, &body["spec"]),
        "SelfSubjectAccessReview" => access(cluster, user, &body["spec"], resource)?,
        "SubjectAccessReview" => {
            access(cluster, &subject(&body["spec"], resource)?, &body["spec"], resource)?
        }
        "LocalSubjectAccessReview" => {
            if body["spec"]["resourceAttributes"]["namespace"].as_str() != Some(namespace) {
                let error = FieldError::invalid(
                    "spec.resourceAttributes.namespace",
                    body["spec"]["resourceAttributes"]["namespace"].clone(),
                    "must match metadata.namespace",
                );
                return Err(ApiError::invalid(resource.about(), "", &[error]));
            }
            access(cluster, &subject(&body["spec"], resource)?, &body["spec"], resource)?
        }
        "SelfSubjectRulesReview" => rules_review(cluster, user, &body["spec"]),
        _ => return Err(ApiError::method_not_allowed()),
    };
    body["status"] = status;
    Ok(body)
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn subject(spec: &Value, resource: &Resource) -> Result<User> {
    let name = spec["user"].as_str().unwrap_or_default();
    let groups = strings(&spec["groups"]);
    if name.is_empty() && groups.is_empty() {
        let error = FieldError::invalid("spec.user", "", "at least one of user or group must be specified");
        return Err(ApiError::invalid(resource.about(), "", &[error]));
    }
    Ok(User { name: name.into(), groups, uid: String::new(), extra: Default::default() })
}

fn access(cluster: &Cluster, user: &User, spec: &Value, resource: &Resource) -> Result<Value> {
    let about = &spec["resourceAttributes"];
    let path = &spec["nonResourceAttributes"];
    if about.is_null() == path.is_null() {
        let error = FieldError::invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        );
        return Err(ApiError::invalid(resource.about(), "", &[error]));
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (verb, group, name) = (text(&about["verb"]), text(&about["group"]), text(&about["name"]));
    let (kind, sub, namespace) =
        (text(&about["resource"]), text(&about["subresource"]), text(&about["namespace"]));
    let (path_verb, url) = (text(&path["verb"]), text(&path["path"]));
    let attributes = if about.is_null() {
        Attributes { verb: &path_verb, path: &url, ..Default::default() }
    } else {
        Attributes {
            verb: &verb,
            group: &group,
            resource: &kind,
            subresource: &sub,
            namespace: &namespace,
            name: &name,
            path: "",
        }
    };
    let allowed = allowed(cluster, user, &attributes);
    let mut status = json!({"allowed": allowed});
    if allowed {
        status["reason"] = "RBAC: allowed by a role bound to the subject".into();
    }
    Ok(status)
}

fn token_review(cluster: &Cluster, authenticator: &Authenticator, spec: &Value) -> Value {
    let audiences = strings(&spec["audiences"]);
    match authenticator.of_token(cluster, spec["token"].as_str().unwrap_or_default(), &audiences) {
        Some(user) => {
            let good_for = if audiences.is_empty() { vec![ISSUER.to_owned()] } else { audiences };
            json!({"authenticated": true, "user": user.to_json(), "audiences": good_for})
        }
        None => {
            json!({"user": {}, "error": "the token is not valid, has expired, or is meant for somebody else"})
        }
    }
}

fn rules_review(cluster: &Cluster, user: &User, spec: &Value) -> Value {
    let mut rules = (*rules_for(cluster, user, spec["namespace"].as_str().unwrap_or_default())).clone();
    if user.groups.iter().any(|group| group == MASTERS) {
        rules.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        rules.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    }
    let (paths, resources): (Vec<Value>, Vec<Value>) =
        rules.into_iter().partition(|rule| rule.get("nonResourceURLs").is_some());
    json!({"incomplete": false, "nonResourceRules": paths, "resourceRules": resources})
}

/// Answers a TokenRequest for a service account.
pub fn token_request(
    cluster: &Cluster,
    authenticator: &Authenticator,
    resource: &Resource,
    namespace: &str,
    name: &str,
    mut body: Value,
) -> Result<Value> {
    let found = cluster.find("serviceaccounts", namespace, name);
    let account = found.ok_or_else(|| ApiError::not_found(resource.about(), name))?;
    let spec = body["spec"].clone();
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or(TOKEN_SECONDS);
    if seconds < MIN_TOKEN_SECONDS {
        let error = FieldError::invalid(
            "spec.expirationSeconds",
            seconds,
            "may not specify a duration less than 10 minutes",
        );
        return Err(ApiError::invalid(
            crate::error::About {
                group: "authentication.k8s.io",
                resource: "tokenrequests",
                kind: "TokenRequest",
            },
            "",
            &[error],
        ));
    }
    let seconds = seconds.min(MAX_TOKEN_SECONDS);
    let bound = bound(cluster, namespace, &spec["boundObjectRef"])?;
    let now = cluster.now();
    let until = now + jiff::SignedDuration::from_secs(seconds);
    let audiences = strings(&spec["audiences"]);
    let claims =
        claims(&account, bound.as_ref(), &audiences, now.as_second(), until.as_second(), &cluster.new_uid());
    let token = authenticator.key.sign(&claims).map_err(ApiError::internal)?;
    body["apiVersion"] = "authentication.k8s.io/v1".into();
    body["kind"] = "TokenRequest".into();
    body["spec"]["audiences"] = claims["aud"].clone();
    body["spec"]["expirationSeconds"] = seconds.into();
    body["spec"]["boundObjectRef"] = spec["boundObjectRef"].clone();
    body["status"] = json!({"token": token, "expirationTimestamp": rfc3339(until)});
    let meta = body.meta_mut();
    meta.insert("name".into(), name.into());
    meta.insert("namespace".into(), namespace.into());
    Ok(body)
}

fn bound(cluster: &Cluster, namespace: &str, reference: &Value) -> Result<Option<Bound>> {
    if reference.is_null() {
        return Ok(None);
    }
    let text = |field: &str| reference[field].as_str().unwrap_or_default().to_owned();
    let (collection, home) = match text("kind").as_str() {
        "Pod" => ("pods", namespace),
        "Secret" => ("secrets", namespace),
        "Node" => ("nodes", ""),
        other => return Err(ApiError::bad_request(format!("cannot bind token to object of type {other}"))),
    };
    let about = crate::error::About { group: "", resource: collection, kind: "" };
    let found = cluster.find(collection, home, &text("name"));
    let found = found.ok_or_else(|| ApiError::not_found(about, &text("name")))?;
    let uid = found.meta_str("uid").to_owned();
    if !text("uid").is_empty() && text("uid") != uid {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
            text("uid")
        );
        return Err(ApiError::conflict_because(about, &text("name"), &why));
    }
    Ok(Some(Bound { kind: text("kind"), name: text("name"), uid }))
}
