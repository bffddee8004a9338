//! Garbage collection by owner references. An object whose owners are all gone is deleted; one that has lost some forgets
//! those. An owner that waits (foreground) lets its dependents go first; one that orphans makes them forget it.

use crate::cluster::Cluster;
use crate::delete::{DeleteOptions, Propagation};
use crate::object::{self, FOREGROUND, ORPHAN, Object, set_finalizers, set_meta};
use crate::query::WriteOptions;
use crate::registry::Resource;
use crate::store::Key;
use crate::write::{At, Changed};
use serde_json::Value;
use std::sync::Arc;

const MANAGER: &str = "garbage-collector";

/// What is known about one owner.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    /// It exists.
    Present,
    /// It exists and waits for this dependent.
    Waiting,
    /// It does not exist.
    Absent,
    /// Its kind is not served, or could never own this object: nothing may be concluded.
    Unknown,
}

/// Looks at one object, as a dependent and as an owner.
pub(super) fn tend(cluster: &Cluster, key: &Key) {
    let Some(resource) = cluster.registry().of_collection(&key.collection).cloned() else { return };
    let Some(object) = cluster.find(&key.collection, &key.namespace, &key.name) else { return };
    let at = At::object(&resource, &key.namespace, &key.name);
    if object.is_deleting() {
        let finalizers = object.finalizers();
        if finalizers.contains(&ORPHAN) {
            orphan_dependents(cluster, at, &object);
        } else if finalizers.contains(&FOREGROUND) {
            delete_dependents_first(cluster, at, &object);
        }
        return;
    }
    tend_dependent(cluster, at, &object);
}

fn references(object: &Value) -> Vec<Value> {
    object.meta().get("ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn tend_dependent(cluster: &Cluster, at: At<'_>, object: &Value) {
    let owners = references(object);
    if owners.is_empty() {
        return;
    }
    let states: Vec<Owner> = owners.iter().map(|owner| look_up(cluster, at, owner)).collect();
    if states.contains(&Owner::Unknown) {
        return;
    }
    let kept: Vec<Value> = owners
        .iter()
        .zip(&states)
        .filter(|(_, state)| **state == Owner::Present)
        .map(|(owner, _)| owner.clone())
        .collect();
    if kept.len() == owners.len() {
        return;
    }
    if !kept.is_empty() {
        return keep_owners(cluster, at, object, &kept);
    }
    let waited_for = states.contains(&Owner::Waiting);
    let has_dependents = !cluster.store.dependents(object.meta_str("uid")).is_empty();
    let propagation = match object.finalizers() {
        finalizers if finalizers.contains(&ORPHAN) => Propagation::Orphan,
        finalizers if finalizers.contains(&FOREGROUND) => Propagation::Foreground,
        _ if waited_for && has_dependents => Propagation::Foreground,
        _ => Propagation::Background,
    };
    if propagation == Propagation::Foreground {
        break_circle(cluster, at, object);
    }
    let options = DeleteOptions {
        uid: Some(object.meta_str("uid").to_owned()),
        propagation: Some(propagation),
        ..Default::default()
    };
    // Gone or replaced meanwhile: the next event brings it back here.
    let _ = cluster.delete(at, &options);
}

/// Where a dependent of an object waits for its own dependents already, the object may be one of them: nobody in such a
/// circle would ever go, so this one stops holding its owners up.
fn break_circle(cluster: &Cluster, at: At<'_>, object: &Value) {
    let uid = object.meta_str("uid");
    let waits = |dependent: &Value| dependent.is_deleting() && dependent.finalizers().contains(&FOREGROUND);
    if !dependents(cluster, uid).iter().any(|(_, _, dependent)| waits(dependent)) {
        return;
    }
    change(cluster, at, uid, |new| {
        let mut owners = references(new);
        for owner in &mut owners {
            owner["blockOwnerDeletion"] = false.into();
        }
        set_meta(new, "ownerReferences", Some(owners.into()));
    });
}

fn look_up(cluster: &Cluster, dependent: At<'_>, owner: &Value) -> Owner {
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    let registry = cluster.registry();
    let Some(resource) = registry.find_kind(text("apiVersion"), text("kind")) else { return Owner::Unknown };
    if resource.namespaced && !dependent.resource.namespaced {
        return Owner::Unknown;
    }
    let namespace = if resource.namespaced { dependent.namespace } else { "" };
    let Some(found) = cluster.find(&resource.collection, namespace, text("name")) else {
        return Owner::Absent;
    };
    if found.meta_str("uid") != text("uid") {
        return Owner::Absent;
    }
    if found.is_deleting() && found.finalizers().contains(&FOREGROUND) {
        return Owner::Waiting;
    }
    Owner::Present
}

fn keep_owners(cluster: &Cluster, at: At<'_>, object: &Value, kept: &[Value]) {
    let uid = object.meta_str("uid");
    change(cluster, at, uid, |new| {
        set_meta(new, "ownerReferences", (!kept.is_empty()).then(|| kept.to_vec().into()));
    });
}

/// Dependents forget the owner, then the owner may go.
fn orphan_dependents(cluster: &Cluster, at: At<'_>, owner: &Value) {
    let uid = owner.meta_str("uid");
    for (key, resource, dependent) in dependents(cluster, uid) {
        let kept: Vec<Value> =
            references(&dependent).into_iter().filter(|reference| reference["uid"] != uid).collect();
        keep_owners(cluster, At::object(&resource, &key.namespace, &key.name), &dependent, &kept);
    }
    drop_finalizer(cluster, at, uid, ORPHAN);
}

/// Dependents are deleted; the owner goes when none that blocks it is left.
fn delete_dependents_first(cluster: &Cluster, at: At<'_>, owner: &Value) {
    let uid = owner.meta_str("uid");
    for (key, resource, dependent) in dependents(cluster, uid) {
        if !dependent.is_deleting() {
            tend_dependent(cluster, At::object(&resource, &key.namespace, &key.name), &dependent);
        }
    }
    let blocks = |dependent: &Value| {
        references(dependent).iter().any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true)
    };
    if !dependents(cluster, uid).iter().any(|(_, _, dependent)| blocks(dependent)) {
        drop_finalizer(cluster, at, uid, FOREGROUND);
    }
}

fn dependents(cluster: &Cluster, uid: &str) -> Vec<(Key, Arc<Resource>, Value)> {
    let registry = cluster.registry();
    let keys = cluster.store.dependents(uid).into_iter();
    keys.filter_map(|key| {
        let resource = registry.of_collection(&key.collection)?.clone();
        let object = cluster.find(&key.collection, &key.namespace, &key.name)?;
        Some((key, resource, object))
    })
    .collect()
}

fn drop_finalizer(cluster: &Cluster, at: At<'_>, uid: &str, finalizer: &str) {
    change(cluster, at, uid, |new| {
        let left: Vec<String> =
            new.finalizers().iter().filter(|name| **name != finalizer).map(ToString::to_string).collect();
        set_finalizers(new, &left);
    });
}

/// Changes metadata of exactly this object; one of the same name that came after it is left alone.
fn change(cluster: &Cluster, at: At<'_>, uid: &str, edit: impl Fn(&mut Value)) {
    let written = cluster.update(at, &WriteOptions::internal(MANAGER), |old| {
        let mut new = old.filter(|old| old.meta_str("uid") == uid).cloned().ok_or_else(|| at.not_found())?;
        edit(&mut new);
        object::tidy_meta(&mut new);
        Ok(Changed::plain(new))
    });
    if let Err(error) = written
        && error.code != 404
    {
        tracing::warn!(name = at.name, namespace = at.namespace, %error, "garbage collection could not change an object");
    }
}
