//! Create, update and every kind of patch. All changes to an object pass through [`Cluster::create`] or
//! [`Cluster::update`]: defaults, pruning, the rules of the kind, the metadata that the server owns, managedFields, and a
//! write that is refused when somebody else was faster.

use crate::admission;
use crate::cluster::Cluster;
use crate::crd;
use crate::error::{About, ApiError, Result};
use crate::object::{self, Object, set_meta};
use crate::query::{FieldValidation, WriteOptions};
use crate::registry::{Nature, Resource};
use crate::store::{Entry, Expect, Key};
use bytes::Bytes;
use lifeboat_schema::FieldError;
use lifeboat_schema::managed::{self, Manager};
use serde_json::Value;
use std::sync::Arc;

/// Tries at a generated name before giving up.
const NAME_TRIES: usize = 8;
/// Letters of generated names: no vowels, so that no words come out.
const NAME_LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Tries of a write whose outcome does not depend on the version it meets.
const RACE_TRIES: usize = 100;

/// The outcome of a write.
#[derive(Debug)]
pub struct Written {
    /// The object as it now is, in the version of the request.
    pub object: Outcome,
    /// Whether it is new.
    pub created: bool,
    /// What the client should be told beside the answer.
    pub warnings: Vec<String>,
}

/// The object that a write ended in.
#[derive(Debug)]
pub enum Outcome {
    /// Stored.
    Stored(Arc<Entry>),
    /// What would have been stored, of a dry run.
    Dry(Value),
}

impl Outcome {
    /// The object in its stored form.
    pub fn value(&self) -> Value {
        match self {
            Self::Stored(entry) => object::parse(&entry.json),
            Self::Dry(value) => value.clone(),
        }
    }
}

/// What a change makes of the stored object.
#[derive(Debug, Clone)]
pub struct Changed {
    /// The new object, in the version of the request.
    pub object: Value,
    /// managedFields are already right (server-side apply sees to them).
    pub managed: bool,
    /// Problems in the body that strict field validation refuses.
    pub unsound: Vec<String>,
    /// A patch made it: what is wrong with it is the patch's fault.
    pub from_patch: bool,
    /// The document it was read from, for the order of complaints.
    pub document: Bytes,
}

impl Changed {
    /// An object taken as it came.
    pub fn plain(object: Value) -> Self {
        Self { object, managed: false, unsound: Vec::new(), from_patch: false, document: Bytes::new() }
    }
}

/// Which object of which resource, through which endpoint.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// The resource.
    pub resource: &'a Resource,
    /// Namespace, empty for cluster scope.
    pub namespace: &'a str,
    /// Name; empty while it is not known yet.
    pub name: &'a str,
    /// Subresource, empty for the object itself.
    pub subresource: &'a str,
}

impl<'a> At<'a> {
    /// The object itself.
    pub fn object(resource: &'a Resource, namespace: &'a str, name: &'a str) -> Self {
        Self { resource, namespace, name, subresource: "" }
    }

    /// The key in the store.
    pub fn key(&self) -> Key {
        Key::new(&self.resource.collection, self.namespace, self.name)
    }

    /// The object is not there.
    pub fn not_found(&self) -> ApiError {
        ApiError::not_found(self.resource.about(), self.name)
    }
}

impl Cluster {
    /// Stores a new object.
    pub fn create(&self, at: At<'_>, body: Changed, options: &WriteOptions) -> Result<Written> {
        let resource = at.resource;
        let Changed { object: mut new, managed, unsound, from_patch, document } = body;
        check_identity(at, &mut new)?;
        if !new.meta_str("resourceVersion").is_empty() {
            return Err(ApiError::untyped("resourceVersion should not be set on objects to be created"));
        }
        let mut warnings = self.shape(resource, &mut new, unsound, &document, from_patch, options)?;
        warnings.extend(admission::no_effect(resource, &new));
        self.check_namespace(at, &new)?;
        for field in
            ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid", "creationTimestamp"]
        {
            set_meta(&mut new, field, None);
        }
        let now = self.now();
        if !managed {
            // Before admission and strategy: what those add is nobody's.
            let (time, empty) = (rfc3339(now), resource.empty());
            managed::update(
                resource.schema(),
                empty.as_ref(),
                &mut new,
                &manager(resource, "", options, &time),
            );
        }
        admission::on_create(self, resource, &mut new)?;
        resource.prepare_create(&mut new);
        if !options.requester.is_null() {
            resource.record_requester(&mut new, &options.requester);
        }
        object::tidy_meta(&mut new);
        set_meta(&mut new, "uid", Some(self.new_uid().into()));
        set_meta(&mut new, "creationTimestamp", Some(rfc3339(now).into()));
        let generated = new.meta_str("name").is_empty();
        let prefix = new.meta_str("generateName").to_owned();
        for _ in 0..NAME_TRIES {
            if generated {
                if prefix.is_empty() {
                    let error = FieldError::required("metadata.name", "name or generateName is required");
                    return Err(ApiError::invalid(resource.about(), "", &[error]));
                }
                set_meta(&mut new, "name", Some(self.generate_name(&prefix).into()));
            }
            let name = new.meta_str("name").to_owned();
            resource.stamp(&mut new, None, now);
            let errors = resource.validate_create(&new);
            if !errors.is_empty() {
                return Err(ApiError::invalid(resource.about(), &name, &errors));
            }
            let key = Key::new(&resource.collection, at.namespace, &name);
            let stored = resource.to_stored(new.clone());
            if options.dry_run {
                if self.store.get(&key.collection, &key.namespace, &key.name).is_some() {
                    return Err(ApiError::already_exists(resource.about(), &name));
                }
                return Ok(Written { object: Outcome::Dry(stored), created: true, warnings });
            }
            let index = object::index_of(&stored, resource.fields(&stored));
            let put = self
                .store
                .put(&key, Expect::Absent, now, |revision| (object::render(stored, revision), index));
            match put {
                Ok(entry) => {
                    self.after_write(resource, &entry);
                    return Ok(Written { object: Outcome::Stored(entry), created: true, warnings });
                }
                Err(_) if generated => {}
                Err(_) => return Err(ApiError::already_exists(resource.about(), &name)),
            }
        }
        Err(ApiError::already_exists(resource.about(), new.meta_str("name")))
    }

    /// Changes a stored object; `change` makes the new one of the newest, both in the version of the request, and is called
    /// again if somebody else was faster. A missing object is `None`, for what may create by updating.
    pub fn update(
        &self,
        at: At<'_>,
        options: &WriteOptions,
        mut change: impl FnMut(Option<&Value>) -> Result<Changed>,
    ) -> Result<Written> {
        let resource = at.resource;
        for _ in 0..RACE_TRIES {
            let Some(entry) = self.store.get(&resource.collection, at.namespace, at.name) else {
                let body = change(None)?;
                return self.create(at, body, options);
            };
            let old = resource.shown(object::parse(&entry.json));
            let body = change(Some(&old))?;
            match self.replace(at, &entry, &old, body, options)? {
                Some(written) => return Ok(written),
                None => continue,
            }
        }
        Err(ApiError::conflict(resource.about(), at.name))
    }

    /// One try at replacing `entry`; `None` when somebody else was faster.
    fn replace(
        &self,
        at: At<'_>,
        entry: &Arc<Entry>,
        old: &Value,
        body: Changed,
        options: &WriteOptions,
    ) -> Result<Option<Written>> {
        let resource = at.resource;
        let Changed { object: mut new, managed, unsound, from_patch, document } = body;
        check_identity(at, &mut new)?;
        self.check_version(at, &mut new, old)?;
        let warnings = self.shape(resource, &mut new, unsound, &document, from_patch, options)?;
        let frozen = frozen_meta(&new, old);
        for field in [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "selfLink",
        ] {
            if new.meta().get(field) != old.meta().get(field) {
                set_meta(&mut new, field, old.meta().get(field).cloned());
            }
        }
        object::tidy_meta(&mut new);
        resource.prepare_update(&mut new, old, at.subresource);
        resource.stamp(&mut new, Some(old), self.now());
        admission::on_update(self, resource, at.subresource, &mut new, old)?;
        let mut errors = resource.validate_update(&new, old, at.subresource);
        errors.extend(frozen);
        errors.extend(late_finalizers(&new, old));
        if !errors.is_empty() {
            return Err(ApiError::invalid(resource.about(), at.name, &errors));
        }
        let now = self.now();
        if !managed {
            let time = rfc3339(now);
            managed::update(
                resource.schema(),
                Some(old),
                &mut new,
                &manager(resource, at.subresource, options, &time),
            );
        }
        object::tidy_meta(&mut new);
        set_meta(&mut new, "resourceVersion", old.meta().get("resourceVersion").cloned());
        let unchanged = new == *old;
        let finished = is_finished(resource, &new);
        let stored = resource.to_stored(new);
        if options.dry_run {
            return Ok(Some(Written { object: Outcome::Dry(stored), created: false, warnings }));
        }
        if finished {
            let last = stored.clone();
            let removed =
                self.store.remove(&entry.key, entry.revision, now, |revision| object::render(last, revision));
            let Ok(gone) = removed else { return Ok(None) };
            self.after_write(resource, &gone);
            // As in Kubernetes the answer shows the version that was removed, not that of the removal.
            return Ok(Some(Written { object: Outcome::Dry(stored), created: false, warnings }));
        }
        if unchanged {
            return Ok(Some(Written { object: Outcome::Stored(entry.clone()), created: false, warnings }));
        }
        let index = object::index_of(&stored, resource.fields(&stored));
        let put = self.store.put(&entry.key, Expect::Revision(entry.revision), now, |revision| {
            (object::render(stored, revision), index)
        });
        let Ok(entry) = put else { return Ok(None) };
        self.after_write(resource, &entry);
        Ok(Some(Written { object: Outcome::Stored(entry), created: false, warnings }))
    }

    /// Types, unknown fields and defaults: what Kubernetes does while it decodes. Gives the warnings.
    fn shape(
        &self,
        resource: &Resource,
        new: &mut Value,
        mut unsound: Vec<String>,
        document: &[u8],
        from_patch: bool,
        options: &WriteOptions,
    ) -> Result<Vec<String>> {
        let schema = resource.schema();
        let refuse = |object: &Value, what: &str| {
            if from_patch {
                return ApiError::unreadable_patch(object, what);
            }
            let kind = &resource.kind;
            let version = &resource.version;
            ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {what}"
            ))
        };
        if let Nature::BuiltIn(_) = resource.nature
            && let Some(what) = lifeboat_schema::type_errors(schema, new)
        {
            return Err(refuse(new, &what));
        }
        unsound
            .extend(lifeboat_schema::prune(schema, new).iter().map(|path| format!("unknown field {path:?}")));
        if unsound.len() > 1 {
            crate::order::sort(document, &mut unsound);
        }
        if options.validation == FieldValidation::Strict && !unsound.is_empty() {
            let what = format!("strict decoding error: {}", unsound.join(", "));
            return Err(refuse(new, &what));
        }
        resource.default(new);
        if let Nature::Custom(custom) = &resource.nature
            && let Some(warning) = &custom.deprecation
        {
            unsound.insert(0, warning.clone());
        } else if options.validation == FieldValidation::Ignore {
            unsound.clear();
        }
        Ok(unsound)
    }

    /// New content needs a namespace that exists and stays.
    fn check_namespace(&self, at: At<'_>, new: &Value) -> Result<()> {
        if !at.resource.namespaced {
            return Ok(());
        }
        let namespaces = About { group: "", resource: "namespaces", kind: "Namespace" };
        let Some(namespace) = self.store.get("namespaces", "", at.namespace) else {
            return Err(ApiError::not_found(namespaces, at.namespace));
        };
        if namespace.index.deleting {
            return Err(ApiError::namespace_terminating(
                at.resource.about(),
                new.meta_str("name"),
                at.namespace,
            ));
        }
        Ok(())
    }

    /// The version and uid that the client believes to be changing.
    fn check_version(&self, at: At<'_>, new: &mut Value, old: &Value) -> Result<()> {
        let about = at.resource.about();
        let uid = new.meta_str("uid");
        if !uid.is_empty() && uid != old.meta_str("uid") {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                old.meta_str("uid")
            );
            return Err(ApiError::conflict_because(about, at.name, &why));
        }
        let version = new.meta_str("resourceVersion");
        if version.is_empty() {
            if !at.resource.allows_unconditional_update() {
                let error =
                    FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
                let about = About { kind: about.resource, ..about };
                return Err(ApiError::invalid(about, at.name, &[error]));
            }
        } else if version != old.meta_str("resourceVersion") {
            return Err(ApiError::conflict(about, at.name));
        }
        Ok(())
    }

    fn generate_name(&self, prefix: &str) -> String {
        let bytes = (self.sources.random)();
        let kept: String = prefix.chars().take(58).collect();
        let letters =
            bytes[..5].iter().map(|byte| NAME_LETTERS[usize::from(*byte) % NAME_LETTERS.len()] as char);
        kept.chars().chain(letters).collect()
    }

    /// What must be true before the next request is served.
    pub(crate) fn after_write(&self, resource: &Resource, entry: &Entry) {
        if &*resource.collection == crd::COLLECTION {
            self.reload_definitions();
            self.establish(&entry.key.name);
        }
    }
}

/// The body must be what the path says.
fn check_identity(at: At<'_>, new: &mut Value) -> Result<()> {
    let resource = at.resource;
    let Some(root) = new.as_object_mut() else {
        return Err(ApiError::bad_request("the body is not an object"));
    };
    if root.get("metadata").is_some_and(|meta| !meta.is_object() && !meta.is_null()) {
        return Err(ApiError::bad_request("metadata of the body is not an object"));
    }
    for (field, want) in [("apiVersion", resource.api_version.as_str()), ("kind", resource.kind.as_str())] {
        if root.get(field).is_some_and(|value| !value.is_string() && !value.is_null()) {
            return Err(ApiError::bad_request(format!("{field} of the body is not a string")));
        }
        match root.get(field).and_then(Value::as_str).unwrap_or_default() {
            "" => {
                root.insert(field.into(), want.into());
            }
            got if got == want => {}
            got if field == "apiVersion" => {
                return Err(ApiError::bad_request(format!(
                    "the API version in the data ({got}) does not match the expected API version ({want})"
                )));
            }
            got => {
                return Err(ApiError::bad_request(format!(
                    "{got} in version {:?} cannot be handled as a {want}: converting ({got}) to ({want}): unknown conversion",
                    resource.version
                )));
            }
        }
    }
    let namespace = new.meta_str("namespace");
    if resource.namespaced {
        if !namespace.is_empty() && namespace != at.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        set_meta(new, "namespace", Some(at.namespace.into()));
    } else if !namespace.is_empty() {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let name = new.meta_str("name");
    if !at.name.is_empty() {
        if name.is_empty() {
            set_meta(new, "name", Some(at.name.into()));
        } else if name != at.name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                at.name
            )));
        }
    }
    Ok(())
}

/// Deletion is asked for by deleting, not by writing a time.
fn frozen_meta(new: &Value, old: &Value) -> Vec<FieldError> {
    let field = "deletionTimestamp";
    match new.meta().get(field) {
        Some(wanted) if !wanted.is_null() && Some(wanted) != old.meta().get(field) => {
            let error =
                FieldError::invalid(format!("metadata.{field}"), wanted.clone(), "field is immutable");
            vec![error.clone(), error]
        }
        _ => Vec::new(),
    }
}

/// While an object is going away, nobody may add a reason to wait.
fn late_finalizers(new: &Value, old: &Value) -> Option<FieldError> {
    if !old.is_deleting() {
        return None;
    }
    let known = old.finalizers();
    let added: Vec<String> = new
        .finalizers()
        .iter()
        .filter(|name| !known.contains(name))
        .map(|name| format!("{name:?}"))
        .collect();
    (!added.is_empty()).then(|| {
        let list = added.join(", ");
        FieldError::forbidden(
            "metadata.finalizers",
            format!("no new finalizers can be added if the object is being deleted, found new finalizers []string{{{list}}}"),
        )
    })
}

/// Whether nothing holds a deleted object any more.
fn is_finished(resource: &Resource, object: &Value) -> bool {
    object.is_deleting()
        && object.finalizers().is_empty()
        && object.meta().get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0
        && !(&*resource.collection == "namespaces" && holds_namespace(object))
}

/// A namespace also waits for the finalizers in its spec.
pub(crate) fn holds_namespace(object: &Value) -> bool {
    object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty())
}

/// The manager of a write that is not an apply.
fn manager<'a>(
    resource: &'a Resource,
    subresource: &'a str,
    options: &'a WriteOptions,
    time: &'a str,
) -> Manager<'a> {
    Manager {
        name: &options.manager,
        api_version: &resource.api_version,
        subresource,
        time,
        reset_fields: resource.reset_fields(subresource),
    }
}

/// The manager of an apply.
pub(crate) fn apply_manager<'a>(at: At<'a>, options: &'a WriteOptions, time: &'a str) -> Manager<'a> {
    manager(at.resource, at.subresource, options, time)
}

/// A time as Kubernetes writes it.
pub fn rfc3339(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
