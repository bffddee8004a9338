//! Deletion: preconditions, grace, propagation and finalizers. An object that something still waits for is marked and
//! stays; the last finalizer to go removes it (see `write`), dependents are the garbage collector's.

use crate::cluster::Cluster;
use crate::crd;
use crate::error::{ApiError, Result};
use crate::object::{self, FOREGROUND, ORPHAN, Object, set_finalizers, set_meta};
use crate::query::{Query, dry_run};
use crate::registry::Resource;
use crate::store::{Entry, Expect};
use crate::write::{At, holds_namespace, rfc3339};
use lifeboat_schema::FieldError;
use serde_json::{Value, json};
use std::sync::Arc;

/// What becomes of the objects that a deleted object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They go afterwards.
    Background,
    /// They go first.
    Foreground,
    /// They stay and forget their owner.
    Orphan,
}

/// Options of a deletion.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    /// Seconds that a pod gets to stop.
    pub grace: Option<i64>,
    /// Delete only this object.
    pub uid: Option<String>,
    /// Delete only this version.
    pub resource_version: Option<String>,
    /// What becomes of dependents; the kind's habit when `None`.
    pub propagation: Option<Propagation>,
    /// Only say what would happen.
    pub dry_run: bool,
}

impl DeleteOptions {
    /// Reads the options from body and query; the body wins where it has a word, as in Kubernetes.
    pub fn parse(body: &Value, query: &Query) -> Result<Self> {
        let text = |field: &str| -> Option<String> {
            let in_body = body.get(field).and_then(Value::as_str).map(str::to_owned);
            in_body.or_else(|| query.get(field).map(str::to_owned))
        };
        let grace = match body.get("gracePeriodSeconds").and_then(Value::as_i64) {
            Some(seconds) => Some(seconds),
            None => query.number("gracePeriodSeconds")?.map(u64::cast_signed),
        };
        let propagation = match text("propagationPolicy").as_deref() {
            None => match body.get("orphanDependents").and_then(Value::as_bool) {
                Some(true) => Some(Propagation::Orphan),
                Some(false) => Some(Propagation::Background),
                None => None,
            },
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let supported = ["Background", "Foreground", "Orphan"];
                let error = FieldError::not_supported("propagationPolicy", other, &supported);
                return Err(ApiError::invalid_option("DeleteOptions", error));
            }
        };
        let mut dry: Vec<String> = query.all("dryRun").to_vec();
        let in_body = body.get("dryRun").and_then(Value::as_array);
        dry.extend(in_body.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
        let precondition = |field: &str| body["preconditions"][field].as_str().map(str::to_owned);
        Ok(Self {
            grace,
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            propagation,
            dry_run: dry_run(&dry)?,
        })
    }
}

/// The outcome of a deletion.
#[derive(Debug)]
pub enum Deleted {
    /// The object is gone; this was its last version.
    Gone(Value),
    /// The object waits for finalizers or a grace period.
    Marked(Value),
}

impl Cluster {
    /// Deletes an object, or marks it for deletion.
    pub fn delete(&self, at: At<'_>, options: &DeleteOptions) -> Result<Deleted> {
        loop {
            let found = self.store.get(&at.resource.collection, at.namespace, at.name);
            let entry = found.ok_or_else(|| at.not_found())?;
            if let Some(deleted) = self.delete_entry(at, &entry, options)? {
                return Ok(deleted);
            }
        }
    }

    /// One try; `None` when somebody else changed the object meanwhile.
    fn delete_entry(
        &self,
        at: At<'_>,
        entry: &Arc<Entry>,
        options: &DeleteOptions,
    ) -> Result<Option<Deleted>> {
        let old = object::parse(&entry.json);
        check_preconditions(at, &old, options)?;
        let mut new = old.clone();
        let now = self.now();
        set_finalizers(&mut new, &wanted_finalizers(&old, options.propagation));
        let definition = &*at.resource.collection == crd::COLLECTION;
        if definition && !old.is_deleting() {
            crd::begin_deletion(&mut new, &rfc3339(now));
        }
        let grace = grace_seconds(at.resource, &old, options.grace);
        let is_namespace = &*at.resource.collection == "namespaces";
        let held = !new.finalizers().is_empty() || grace > 0 || (is_namespace && holds_namespace(&new));
        if !held {
            if options.dry_run {
                return Ok(Some(Deleted::Gone(at.resource.shown(new))));
            }
            let last = new.clone();
            let removed =
                self.store.remove(&entry.key, entry.revision, now, |revision| object::render(last, revision));
            return Ok(removed.ok().map(|entry| {
                self.after_write(at.resource, &entry);
                Deleted::Gone(at.resource.shown(object::parse(&entry.json)))
            }));
        }
        let until = now + jiff::SignedDuration::from_secs(grace);
        let earlier =
            old.meta().get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(i64::MAX);
        if !old.is_deleting() || grace < earlier {
            set_meta(&mut new, "deletionTimestamp", Some(rfc3339(until).into()));
            if !definition {
                set_meta(&mut new, "deletionGracePeriodSeconds", Some(grace.into()));
            }
            if let Some(generation) = old.meta().get("generation").and_then(Value::as_i64)
                && !old.is_deleting()
                && !definition
            {
                set_meta(&mut new, "generation", Some((generation + 1).into()));
            }
        }
        if is_namespace {
            new["status"]["phase"] = "Terminating".into();
        }
        if options.dry_run || new == old {
            return Ok(Some(Deleted::Marked(at.resource.shown(new))));
        }
        let index = object::index_of(&new, at.resource.fields(&new));
        let put = self.store.put(&entry.key, Expect::Revision(entry.revision), now, |revision| {
            (object::render(new, revision), index)
        });
        Ok(put.ok().map(|entry| {
            self.after_write(at.resource, &entry);
            Deleted::Marked(at.resource.shown(object::parse(&entry.json)))
        }))
    }
}

fn check_preconditions(at: At<'_>, old: &Value, options: &DeleteOptions) -> Result<()> {
    let about = at.resource.about();
    let pairs = [
        ("UID", &options.uid, "uid", "deleted and then recreated"),
        ("ResourceVersion", &options.resource_version, "resourceVersion", "modified"),
    ];
    for (word, wanted, field, fate) in pairs {
        if let Some(wanted) = wanted
            && wanted != old.meta_str(field)
        {
            let stored = old.meta_str(field);
            let why = format!(
                "the {word} in the precondition ({wanted}) does not match the {word} in record ({stored}). The object might have been {fate}"
            );
            return Err(ApiError::precondition(about, at.name, &why));
        }
    }
    Ok(())
}

/// The finalizers that the propagation asks for; without a word those of an earlier deletion stay.
fn wanted_finalizers(old: &Value, propagation: Option<Propagation>) -> Vec<String> {
    let kept = old.finalizers();
    let mut wanted: Vec<String> = kept
        .iter()
        .filter(|name| propagation.is_none() || !matches!(**name, FOREGROUND | ORPHAN))
        .map(ToString::to_string)
        .collect();
    match propagation {
        Some(Propagation::Foreground) => wanted.push(FOREGROUND.into()),
        Some(Propagation::Orphan) => wanted.push(ORPHAN.into()),
        Some(Propagation::Background) | None => {}
    }
    wanted
}

/// Only pods that a node runs get time to stop.
fn grace_seconds(resource: &Resource, object: &Value, asked: Option<i64>) -> i64 {
    if &*resource.collection != "pods" {
        return 0;
    }
    let running = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty())
        && !matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !running {
        return 0;
    }
    let habit = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    let wanted = asked.unwrap_or(habit);
    // A negative period means "at once, but let the node see it".
    if wanted < 0 { 1 } else { wanted }
}

/// The answer to a deletion that left nothing behind.
pub fn success(resource: &Resource, object: &Value) -> Value {
    let mut details =
        json!({"name": object.meta_str("name"), "kind": resource.plural, "uid": object.meta_str("uid")});
    if !resource.group.is_empty() {
        details["group"] = resource.group.as_str().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// Whether Kubernetes answers a finished deletion of this kind with the object instead of a Status.
pub fn returns_object(resource: &Resource) -> bool {
    let of_core = [
        "pods",
        "persistentvolumes",
        "persistentvolumeclaims",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
    ];
    let of_storage =
        ["storageclasses", "volumeattachments", "csinodes", "csidrivers", "volumeattributesclasses"];
    match resource.group.as_str() {
        "" => of_core.contains(&resource.plural.as_str()),
        "storage.k8s.io" => of_storage.contains(&resource.plural.as_str()),
        _ => false,
    }
}
