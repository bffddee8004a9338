//! Namespaces: what each gets when it is made, and how its content goes when it is deleted.

use crate::cluster::Cluster;
use crate::delete::{DeleteOptions, Propagation};
use crate::object::{Object, set_condition};
use crate::query::WriteOptions;
use crate::registry::Resource;
use crate::write::{At, Changed, holds_namespace, rfc3339};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The ConfigMap with the certificate that pods check the API server by.
pub(super) const ROOT_CA: &str = "kube-root-ca.crt";
/// The finalizer in `spec` that holds a namespace until its content is gone.
const KUBERNETES: &str = "kubernetes";

/// Brings one namespace to what it should be.
pub(super) fn tend(cluster: &Cluster, name: &str, root_ca: &str) {
    let Some(namespace) = cluster.find("namespaces", "", name) else { return };
    if namespace.is_deleting() {
        empty(cluster, name, &namespace);
    } else {
        furnish(cluster, name, root_ca);
    }
}

/// The default service account and the root certificate.
fn furnish(cluster: &Cluster, name: &str, root_ca: &str) {
    let registry = cluster.registry();
    if cluster.store.get("serviceaccounts", name, "default").is_none()
        && let Some(accounts) = registry.find("", "v1", "serviceaccounts")
    {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}});
        make(cluster, accounts, name, account);
    }
    let Some(maps) = registry.find("", "v1", "configmaps") else { return };
    let wanted = json!({"ca.crt": root_ca});
    match cluster.find("configmaps", name, ROOT_CA) {
        None => {
            let note = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc.";
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": wanted,
                "metadata": {"name": ROOT_CA, "namespace": name, "annotations": {"kubernetes.io/description": note}},
            });
            make(cluster, maps, name, map);
        }
        Some(found) if found["data"] != wanted && !found.is_deleting() => {
            let at = At::object(maps, name, ROOT_CA);
            let restored =
                cluster.update(at, &WriteOptions::internal("root-ca-certificate-publisher"), |old| {
                    let mut new = old.cloned().ok_or_else(|| at.not_found())?;
                    new["data"] = wanted.clone();
                    Ok(Changed::plain(new))
                });
            report(name, restored.err());
        }
        Some(_) => {}
    }
}

fn make(cluster: &Cluster, resource: &Resource, namespace: &str, object: Value) {
    let made = cluster.create(
        At::object(resource, namespace, ""),
        Changed::plain(object),
        &WriteOptions::internal("kube-controller-manager"),
    );
    report(namespace, made.err());
}

fn report(namespace: &str, error: Option<crate::error::ApiError>) {
    // The namespace went away, or somebody else was faster: both bring the loop back here.
    if let Some(error) = error.filter(|error| !matches!(error.code, 403 | 404 | 409)) {
        tracing::warn!(namespace, %error, "a namespace could not be furnished");
    }
}

/// Deletes what is in a namespace, tells what is left, and lets the namespace go when nothing is.
fn empty(cluster: &Cluster, name: &str, namespace: &Value) {
    let registry = cluster.registry();
    for resource in registry
        .all()
        .filter(|resource| resource.namespaced && resource.is_stored() && resource.is_storage_version())
    {
        delete_all(cluster, resource, Some(name));
    }
    let mut left = BTreeMap::new();
    let mut finalizers = BTreeMap::<String, usize>::new();
    for resource in registry
        .all()
        .filter(|resource| resource.namespaced && resource.is_stored() && resource.is_storage_version())
    {
        let objects = cluster.list_in(&resource.collection, Some(name));
        if !objects.is_empty() {
            left.insert(resource.collection.to_string(), objects.len());
        }
        for finalizer in objects.iter().flat_map(Object::finalizers) {
            *finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    let Some(resource) = registry.find("", "v1", "namespaces") else { return };
    let now = rfc3339(cluster.now());
    let uid = namespace.meta_str("uid");
    if left.is_empty()
        && namespace["spec"]["finalizers"].as_array().is_some_and(|list| list.iter().any(|f| f == KUBERNETES))
    {
        let at = At { subresource: "finalize", ..At::object(resource, "", name) };
        let done = cluster.update(at, &WriteOptions::internal("namespace-controller"), |old| {
            let mut new =
                old.filter(|old| old.meta_str("uid") == uid).cloned().ok_or_else(|| at.not_found())?;
            if let Some(list) = new["spec"]["finalizers"].as_array_mut() {
                list.retain(|finalizer| finalizer != KUBERNETES);
            }
            if !holds_namespace(&new)
                && let Some(spec) = new["spec"].as_object_mut()
            {
                spec.remove("finalizers");
            }
            Ok(Changed::plain(new))
        });
        return report(name, done.err());
    }
    let at = At { subresource: "status", ..At::object(resource, "", name) };
    let told = cluster.update(at, &WriteOptions::internal("namespace-controller"), |old| {
        let mut new = old.filter(|old| old.meta_str("uid") == uid).cloned().ok_or_else(|| at.not_found())?;
        for condition in conditions(&left, &finalizers) {
            set_condition(&mut new, condition, &now);
        }
        Ok(Changed::plain(new))
    });
    report(name, told.err());
}

fn conditions(left: &BTreeMap<String, usize>, finalizers: &BTreeMap<String, usize>) -> Vec<Value> {
    let condition = |kind: &str, held: bool, yes: (&str, String), no: (&str, &str)| {
        let (reason, message) = if held { (yes.0, yes.1) } else { (no.0, no.1.to_owned()) };
        json!({"type": kind, "status": if held { "True" } else { "False" }, "reason": reason, "message": message})
    };
    let list = |counts: &BTreeMap<String, usize>, say: &dyn Fn(&str, usize) -> String| {
        counts.iter().map(|(name, count)| say(name, *count)).collect::<Vec<_>>().join(", ")
    };
    let resources = list(left, &|name, count| format!("{name} has {count} resource instances"));
    let holders = list(finalizers, &|name, count| format!("{name} in {count} resource instances"));
    vec![
        condition(
            "NamespaceDeletionDiscoveryFailure",
            false,
            ("", String::new()),
            ("ResourcesDiscovered", "All resources successfully discovered"),
        ),
        condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            ("", String::new()),
            ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
        ),
        condition(
            "NamespaceDeletionContentFailure",
            false,
            ("", String::new()),
            ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
        ),
        condition(
            "NamespaceContentRemaining",
            !left.is_empty(),
            ("SomeResourcesRemain", format!("Some resources are remaining: {resources}")),
            ("ContentRemoved", "All content successfully removed"),
        ),
        condition(
            "NamespaceFinalizersRemaining",
            !finalizers.is_empty(),
            (
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {holders}"),
            ),
            ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
        ),
    ]
}

/// Deletes every object of a resource that is not going already.
pub(super) fn delete_all(cluster: &Cluster, resource: &Resource, namespace: Option<&str>) {
    let options = DeleteOptions { propagation: Some(Propagation::Background), ..Default::default() };
    for object in cluster.list_in(&resource.collection, namespace) {
        if !object.is_deleting() {
            let at = At::object(resource, object.meta_str("namespace"), object.meta_str("name"));
            // Gone meanwhile is what was wanted.
            let _ = cluster.delete(at, &options);
        }
    }
}
