//! One request to a resource, from permission to answer: which verb of the cluster it means, and in what form the outcome
//! goes back.

use crate::auth::{self, Attributes, Authenticator, User};
use crate::cluster::Cluster;
use crate::delete::{DeleteOptions, Deleted, returns_object, success};
use crate::error::{ApiError, Result};
use crate::fault::Faults;
use crate::list::{Include, Selection, render_list, render_one, render_value};
use crate::negotiate::{self, Encoding, Form};
use crate::object::{self, Object};
use crate::patch::PatchKind;
use crate::path::{ResourcePath, Verb};
use crate::query::{Query, WriteOptions};
use crate::registry::{Nature, Resource};
use crate::scale;
use crate::watch::Watch;
use crate::write::{At, Changed, Outcome, Written};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::header;
use serde_json::{Value, json};
use std::sync::Arc;

/// One request.
pub struct Call<'a> {
    /// What is to be done.
    pub verb: Verb,
    /// To what.
    pub path: ResourcePath,
    /// With which options.
    pub query: Query,
    /// By whom.
    pub user: User,
    /// Method and headers.
    pub head: &'a http::request::Parts,
    /// The body.
    pub body: Bytes,
    /// Faults to play on events.
    pub faults: Option<Arc<dyn Faults>>,
}

/// What goes back.
pub struct Answer {
    /// HTTP status.
    pub code: u16,
    /// The body, when it is not a stream.
    pub body: Bytes,
    /// The stream of a watch.
    pub events: Option<BoxStream<'static, Bytes>>,
    /// Warning headers.
    pub warnings: Vec<String>,
    /// A content type other than JSON.
    pub content_type: Option<&'static str>,
}

impl Answer {
    fn json(code: u16, body: impl Into<Bytes>) -> Self {
        Self { code, body: body.into(), events: None, warnings: Vec::new(), content_type: None }
    }

    fn value(code: u16, value: &Value) -> Self {
        Self::json(code, value.to_string())
    }
}

impl Call<'_> {
    fn header(&self, name: header::HeaderName) -> &str {
        self.head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn options(&self) -> Result<WriteOptions> {
        WriteOptions::parse(&self.query, self.header(header::USER_AGENT))
    }

    fn form(&self) -> Result<Form> {
        negotiate::form(self.header(header::ACCEPT))
    }

    fn decode(&self) -> Result<Changed> {
        negotiate::decode(self.header(header::CONTENT_TYPE), &self.body)
    }
}

/// Serves one request; `lag` makes a read show the past, for tests of stale reads.
pub fn serve(
    cluster: &Arc<Cluster>,
    authenticator: &Authenticator,
    call: &Call<'_>,
    lag: u64,
) -> Result<Answer> {
    let path = &call.path;
    authorize(cluster, call)?;
    let registry = cluster.registry();
    let resource =
        registry.find(&path.group, &path.version, &path.resource).ok_or_else(ApiError::no_such_path)?;
    let only_protobuf = negotiate::encoding(call.header(header::ACCEPT)) == Encoding::Protobuf;
    if only_protobuf && matches!(resource.nature, Nature::Custom(_)) {
        return Err(negotiate::not_acceptable());
    }
    let is_namespace = &*resource.collection == "namespaces";
    let namespace = if is_namespace { "" } else { path.namespace.as_str() };
    if !resource.namespaced && !namespace.is_empty() {
        return Err(ApiError::no_such_path());
    }
    if resource.namespaced && namespace.is_empty() && !matches!(call.verb, Verb::List | Verb::Watch) {
        // A review is asked of the cluster; everything else that lives in a namespace is addressed there.
        return Err(if path.name.is_empty() {
            ApiError::method_not_allowed()
        } else {
            ApiError::no_such_path()
        });
    }
    if !path.subresource.is_empty() && !resource.has_subresource(&path.subresource) {
        return Err(ApiError::no_such_path());
    }
    // Before anything is written: a request that cannot be answered must not be carried out.
    let (form, _) = (call.form()?, Include::parse(&call.query)?);
    if !resource.is_stored() {
        if call.verb != Verb::Create {
            return Err(ApiError::method_not_allowed());
        }
        if form != Form::Object {
            return Err(negotiate::not_acceptable());
        }
        let body = typed_body(call, &resource.api_version, &resource.kind)?;
        let reviewed = auth::review(cluster, authenticator, &call.user, resource, namespace, body)?;
        return Ok(Answer::value(201, &reviewed));
    }
    let at = At { resource, namespace, name: &path.name, subresource: &path.subresource };
    match path.subresource.as_str() {
        "scale" => return serve_scale(cluster, call, at),
        "token" | "eviction" | "binding" | "log" => return serve_action(cluster, authenticator, call, at),
        _ => {}
    }
    match call.verb {
        Verb::Get => get(cluster, call, at, lag),
        Verb::List => {
            let selection = Selection::parse(resource, namespace, "", &call.query)?;
            let query = stale_query(cluster, &call.query, lag);
            let listed = cluster.list(resource, &selection, &query)?;
            Ok(Answer::json(
                200,
                render_list(resource, listed, form, Include::parse(&call.query)?, cluster.now()),
            ))
        }
        Verb::Watch => {
            let watch = Watch {
                cluster: cluster.clone(),
                resource: resource.clone(),
                path: path.clone(),
                selection: Selection::parse(resource, namespace, &path.name, &call.query)?,
                form,
                include: Include::parse(&call.query)?,
                faults: call.faults.clone(),
            };
            let events = watch.start(&call.query)?.boxed();
            let mut answer = Answer::json(200, Bytes::new());
            answer.events = Some(events);
            Ok(answer)
        }
        Verb::Create if path.name.is_empty() && path.subresource.is_empty() => {
            let body = call.decode()?;
            auth::check_escalation(cluster, &call.user, &resource.collection, namespace, &body.object)?;
            let mut options = call.options()?;
            if resource.kind == "CertificateSigningRequest" {
                options.requester = call.user.to_json();
            }
            written(cluster, call, resource, cluster.create(at, body, &options)?)
        }
        Verb::Create => Err(ApiError::method_not_allowed()),
        Verb::Update => update(cluster, call, at),
        Verb::Patch => {
            let kind = PatchKind::of(resource, call.header(header::CONTENT_TYPE))?;
            let explicit = call.query.get("fieldManager").is_some();
            if path.name.is_empty() {
                return Err(ApiError::method_not_allowed());
            }
            if is_rbac(resource) {
                // What a patch would grant is only known from its outcome: try it dry first.
                let dry = WriteOptions { dry_run: true, ..call.options()? };
                let outcome = cluster.patch(at, kind, &call.body, explicit, &dry)?.object.value();
                auth::check_escalation(cluster, &call.user, &resource.collection, namespace, &outcome)?;
            }
            let patched = cluster.patch(at, kind, &call.body, explicit, &call.options()?)?;
            written(cluster, call, resource, patched)
        }
        Verb::Delete => {
            let options = delete_options(call)?;
            let deleted = cluster.delete(at, &options)?;
            Ok(match deleted {
                Deleted::Gone(object) if !returns_object(resource) => {
                    Answer::value(200, &success(resource, &object))
                }
                Deleted::Gone(object) | Deleted::Marked(object) => Answer::json(
                    200,
                    render_value(resource, object, call.form()?, Include::parse(&call.query)?, cluster.now()),
                ),
            })
        }
        Verb::DeleteCollection => delete_collection(cluster, call, at),
    }
}

/// A body that is asked of the server and never stored: it must be an object, and its fields what the kind says.
fn typed_body(call: &Call<'_>, api_version: &str, kind: &str) -> Result<Value> {
    let body = call.decode()?.object;
    let wrong = match lifeboat_kinds::schema(api_version, kind) {
        _ if !body.is_object() => Some("the body is not an object".to_owned()),
        Some(schema) => lifeboat_schema::type_errors(schema, &body),
        None => None,
    };
    match wrong {
        Some(what) => Err(ApiError::bad_request(format!("{kind} cannot be handled as a {kind}: {what}"))),
        None => Ok(body),
    }
}

fn authorize(cluster: &Cluster, call: &Call<'_>) -> Result<()> {
    let path = &call.path;
    // A watch or list of one name is a request about that name.
    let by_name = call.query.get("fieldSelector").and_then(|text| text.strip_prefix("metadata.name="));
    let attributes = Attributes {
        verb: call.verb.as_str(),
        group: &path.group,
        resource: &path.resource,
        subresource: &path.subresource,
        namespace: &path.namespace,
        name: if path.name.is_empty() { by_name.unwrap_or_default() } else { &path.name },
        path: "",
    };
    auth::authorize(cluster, &call.user, &attributes)
}

fn is_rbac(resource: &Resource) -> bool {
    resource.group == "rbac.authorization.k8s.io"
}

fn get(cluster: &Cluster, call: &Call<'_>, at: At<'_>, lag: u64) -> Result<Answer> {
    let form = call.form()?;
    let found = if lag == 0 {
        cluster.store.get(&at.resource.collection, at.namespace, at.name)
    } else {
        let then = cluster.store.revision().saturating_sub(lag).max(1);
        let keep = |entry: &crate::store::Entry| *entry.key.name == *at.name;
        let page = cluster.store.page(&at.resource.collection, Some(at.namespace), None, Some(then), keep, 1);
        page.ok().and_then(|page| page.entries.into_iter().next())
    };
    let entry = found.ok_or_else(|| at.not_found())?;
    let include = Include::parse(&call.query)?;
    Ok(Answer::json(200, render_one(at.resource, &entry, form, include, cluster.now())))
}

/// A list of the past, where a fault asks for one and the client for no version in particular.
fn stale_query(cluster: &Cluster, query: &Query, lag: u64) -> Query {
    let any = query.get("resourceVersion").is_none_or(|version| version == "0");
    if lag == 0 || !any || query.get("continue").is_some() {
        return query.clone();
    }
    let then = cluster.store.revision().saturating_sub(lag).max(1);
    query.clone().with("resourceVersion", &then.to_string()).with("resourceVersionMatch", "Exact")
}

fn update(cluster: &Cluster, call: &Call<'_>, at: At<'_>) -> Result<Answer> {
    if at.name.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    let body = call.decode()?;
    auth::check_escalation(cluster, &call.user, &at.resource.collection, at.namespace, &body.object)?;
    let mut decoded = Some(body);
    let updated = cluster.update(at, &call.options()?, |old| {
        if old.is_none() && !(at.resource.allows_create_on_update() && at.subresource.is_empty()) {
            return Err(at.not_found());
        }
        // Only who was too slow needs the body again, and that is rarer than a copy is dear.
        decoded.take().map_or_else(|| call.decode(), Ok)
    })?;
    written(cluster, call, at.resource, updated)
}

fn written(cluster: &Cluster, call: &Call<'_>, resource: &Resource, written: Written) -> Result<Answer> {
    let (form, include) = (call.form()?, Include::parse(&call.query)?);
    let body = match &written.object {
        Outcome::Stored(entry) => render_one(resource, entry, form, include, cluster.now()),
        Outcome::Dry(value) => {
            render_value(resource, resource.shown(value.clone()), form, include, cluster.now())
        }
    };
    let mut answer = Answer::json(if written.created { 201 } else { 200 }, body);
    answer.warnings = written.warnings;
    Ok(answer)
}

fn delete_options(call: &Call<'_>) -> Result<DeleteOptions> {
    let body = if call.body.is_empty() { Value::Null } else { call.decode()?.object };
    DeleteOptions::parse(&body, &call.query)
}

fn delete_collection(cluster: &Cluster, call: &Call<'_>, at: At<'_>) -> Result<Answer> {
    let resource = at.resource;
    if !resource.verbs().contains(&"deletecollection") {
        return Err(ApiError::method_not_allowed());
    }
    let options = delete_options(call)?;
    let selection = Selection::parse(resource, at.namespace, "", &call.query)?;
    let listed = cluster.list(resource, &selection, &call.query)?;
    for entry in &listed.entries {
        let one = At::object(resource, &entry.key.namespace, &entry.key.name);
        match cluster.delete(one, &options) {
            Err(error) if error.code != 404 => return Err(error),
            _ => {}
        }
    }
    Ok(Answer::json(200, render_list(resource, listed, Form::Object, Include::Metadata, cluster.now())))
}

fn serve_scale(cluster: &Cluster, call: &Call<'_>, at: At<'_>) -> Result<Answer> {
    let resource = at.resource;
    let now = |object: &Value| scale::of(resource, object);
    match call.verb {
        Verb::Get => {
            let found =
                cluster.find(&resource.collection, at.namespace, at.name).ok_or_else(|| at.not_found())?;
            Ok(Answer::value(200, &now(&resource.shown(found))))
        }
        Verb::Update | Verb::Patch => {
            let body = match call.verb {
                Verb::Update => Some(typed_body(call, "autoscaling/v1", "Scale")?),
                _ => None,
            };
            let updated = cluster.update(at, &call.options()?, |old| {
                let old = old.ok_or_else(|| at.not_found())?;
                let wanted = match &body {
                    Some(scale) => scale.clone(),
                    None => patched_scale(resource, call, &now(old))?,
                };
                Ok(Changed::plain(scale::set(resource, old, &wanted)?))
            })?;
            Ok(Answer::value(200, &now(&resource.shown(updated.object.value()))))
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

fn patched_scale(resource: &Resource, call: &Call<'_>, scale: &Value) -> Result<Value> {
    use lifeboat_schema::patch::{json_patch, merge_patch};
    let patch = negotiate::decode_yaml(&call.body)?.object;
    match PatchKind::of(resource, call.header(header::CONTENT_TYPE))? {
        PatchKind::Json => {
            json_patch(scale, &patch).map_err(|error| ApiError::unprocessable(error.to_string()))
        }
        // A Scale has no lists: the other three kinds mean the same here.
        _ => Ok(merge_patch(scale, &patch)),
    }
}

fn serve_action(
    cluster: &Cluster,
    authenticator: &Authenticator,
    call: &Call<'_>,
    at: At<'_>,
) -> Result<Answer> {
    if call.verb == Verb::Get && at.subresource == "log" {
        return Err(ApiError::bad_request("this cluster has no kubelet to read logs from"));
    }
    if call.verb != Verb::Create {
        return Err(ApiError::method_not_allowed());
    }
    let (api_version, kind) = match at.subresource {
        "token" => ("authentication.k8s.io/v1", "TokenRequest"),
        "eviction" => ("policy/v1", "Eviction"),
        _ => ("v1", "Binding"),
    };
    let body = typed_body(call, api_version, kind)?;
    let whole = At { subresource: "", ..at };
    let done =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    match at.subresource {
        "token" => {
            let token =
                auth::token_request(cluster, authenticator, at.resource, at.namespace, at.name, body)?;
            Ok(Answer::value(201, &token))
        }
        "eviction" => {
            let options = DeleteOptions::parse(&body["deleteOptions"], &call.query)?;
            cluster.delete(whole, &options)?;
            Ok(Answer::value(201, &done))
        }
        _ => {
            let node = body["target"]["name"].as_str().unwrap_or_default().to_owned();
            cluster.update(At { subresource: "binding", ..at }, &call.options()?, |old| {
                let mut new = old.cloned().ok_or_else(|| at.not_found())?;
                if new["spec"]["nodeName"].as_str().is_some_and(|bound| !bound.is_empty()) {
                    let why =
                        format!("pod {} is already assigned to node {}", at.name, new["spec"]["nodeName"]);
                    return Err(ApiError::conflict_because(at.resource.about(), at.name, &why));
                }
                new["spec"]["nodeName"] = node.as_str().into();
                let now = crate::write::rfc3339(cluster.now());
                object::set_condition(&mut new, json!({"type": "PodScheduled", "status": "True"}), &now);
                debug_assert!(!new.meta_str("name").is_empty());
                Ok(Changed::plain(new))
            })?;
            Ok(Answer::value(201, &done))
        }
    }
}
