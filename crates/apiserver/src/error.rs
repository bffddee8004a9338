//! Failures as Kubernetes words them: a `metav1.Status` with the code, reason, message and details that client-go,
//! kubectl and kube-rs act on. Everything that can go wrong while serving a request becomes one [`ApiError`].

use lifeboat_schema::FieldError;
use serde_json::{Map, Value, json};

/// The result of serving one request.
pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// A refused request, in the terms of `metav1.Status`.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `NotFound`.
    pub reason: &'static str,
    /// The sentence people read.
    pub message: String,
    /// `details` of the Status; `Null` when there are none.
    pub details: Value,
    /// `metadata.continue` of the Status, which an expired list hands out to go on inconsistently.
    pub resume: Option<String>,
}

/// The resource an error is about, as it appears in messages (`volumereplicationgroups.ramendr.openshift.io`).
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// Plural resource name.
    pub resource: &'a str,
    /// Kind.
    pub kind: &'a str,
}

impl About<'_> {
    fn qualified(&self) -> String {
        match self.group {
            "" => self.resource.to_owned(),
            group => format!("{}.{group}", self.resource),
        }
    }

    fn details(&self, name: &str) -> Map<String, Value> {
        let mut details = Map::new();
        if !name.is_empty() {
            details.insert("name".into(), name.into());
        }
        if !self.group.is_empty() {
            details.insert("group".into(), self.group.into());
        }
        details.insert("kind".into(), self.resource.into());
        details
    }
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Value::Null, resume: None }
    }

    fn with_details(mut self, details: impl Into<Value>) -> Self {
        self.details = details.into();
        self
    }

    /// The object does not exist.
    pub fn not_found(about: About<'_>, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", about.qualified()))
            .with_details(about.details(name))
    }

    /// The path is not served at all.
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
            .with_details(Value::Object(Map::new()))
    }

    /// An object of that name exists.
    pub fn already_exists(about: About<'_>, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", about.qualified()))
            .with_details(about.details(name))
    }

    /// The write was based on a version that is no longer the newest.
    pub fn conflict(about: About<'_>, name: &str) -> Self {
        Self::conflict_because(
            about,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// The write conflicts with the stored object for the reason given.
    pub fn conflict_because(about: About<'_>, name: &str, why: &str) -> Self {
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", about.qualified()),
        )
        .with_details(about.details(name))
    }

    /// A deletion was meant for another object, or another version of it.
    pub fn precondition(about: About<'_>, name: &str, why: &str) -> Self {
        Self::conflict_because(About { resource: about.kind, ..about }, name, why)
    }

    /// Server-side apply met fields that others own.
    pub fn apply_conflict(message: String, causes: Vec<Value>) -> Self {
        Self::new(409, "Conflict", message).with_details(json!({ "causes": causes }))
    }

    /// The object breaks rules of its kind.
    pub fn invalid(about: About<'_>, name: &str, errors: &[FieldError]) -> Self {
        let mut words: Vec<String> = Vec::new();
        for word in errors.iter().map(ToString::to_string) {
            // Two rules may find the same fault; people read it once.
            if !words.contains(&word) {
                words.push(word);
            }
        }
        let list = match words.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let kind = match about.group {
            "" => about.kind.to_owned(),
            group => format!("{}.{group}", about.kind),
        };
        let mut details = About { resource: about.kind, ..about }.details(name);
        details.insert("causes".into(), errors.iter().map(FieldError::cause).collect());
        Self::new(422, "Invalid", format!("{kind} {name:?} is invalid: {list}")).with_details(details)
    }

    /// The request itself is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// A patch that is well formed but does not apply.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message).with_details(Value::Object(Map::new()))
    }

    /// An option of the request makes no sense; `kind` is the options' own, such as `ListOptions`.
    pub fn invalid_option(kind: &str, error: FieldError) -> Self {
        Self::invalid(About { group: "meta.k8s.io", resource: "", kind }, "", &[error])
    }

    /// What a patch makes of an object cannot be read as one.
    pub fn unreadable_patch(outcome: &Value, what: &str) -> Self {
        let error = FieldError::invalid("patch", outcome.to_string(), what);
        Self::new(422, "Invalid", format!(" \"\" is invalid: {error}"))
            .with_details(json!({ "causes": [error.cause()] }))
    }

    /// Nobody knows who is asking.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// The user may not do this.
    pub fn forbidden(about: About<'_>, name: &str, why: &str) -> Self {
        let what = match name {
            "" => about.qualified(),
            name => format!("{} {name:?}", about.qualified()),
        };
        Self::new(403, "Forbidden", format!("{what} is forbidden: {why}")).with_details(about.details(name))
    }

    /// The user may not read this path.
    pub fn forbidden_path(path: &str, why: &str) -> Self {
        Self::new(403, "Forbidden", format!("forbidden: {why}")).with_details(json!({ "name": path }))
    }

    /// Nothing new may be made in a namespace that is going away.
    pub fn namespace_terminating(about: About<'_>, name: &str, namespace: &str) -> Self {
        let mut error = Self::forbidden(
            about,
            name,
            &format!("unable to create new content in namespace {namespace} because it is being terminated"),
        );
        error.details["causes"] = json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        }]);
        error
    }

    /// The verb does not exist for the resource.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with_details(Value::Object(Map::new()))
    }

    /// None of the accepted media types can be produced.
    pub fn not_acceptable(supported: &str) -> Self {
        Self::new(406, "NotAcceptable", format!("only the following media types are accepted: {supported}"))
    }

    /// The body is in a form that this endpoint does not take.
    pub fn unsupported_media_type(supported: &str) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {supported}"
            ),
        )
        .with_details(Value::Object(Map::new()))
    }

    /// The body is larger than any object may be.
    pub fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("limit is {limit}"))
    }

    /// The version asked for is no longer kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The version asked for lies in the future.
    pub fn too_large_version(asked: u64, current: u64) -> Self {
        Self::new(504, "Timeout", format!("Too large resource version: {asked}, current: {current}"))
            .with_details(json!({
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1,
            }))
    }

    /// The server asks to be called less often.
    pub fn too_many_requests(message: impl Into<String>, retry_after: u64) -> Self {
        Self::new(429, "TooManyRequests", message).with_details(json!({ "retryAfterSeconds": retry_after }))
    }

    /// Something broke that is not the client's doing.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {message}"))
            .with_details(json!({ "causes": [{"message": message.to_string()}] }))
    }

    /// What is applied does not fit the schema, which Kubernetes answers with 500 and no reason.
    pub fn untyped(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// The Status object to answer with.
    pub fn to_status(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.resume {
            metadata.insert("continue".into(), token.as_str().into());
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}
