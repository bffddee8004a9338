//! What kube-apiserver's built-in admission does for storage, and nothing more: the protection finalizers of claims and
//! volumes, the default storage class of a claim, the service account of a pod. No webhooks, no quota.

use crate::cluster::Cluster;
use crate::crd;
use crate::error::Result;
use crate::object::{Object, set_finalizers};
use crate::registry::Resource;
use serde_json::Value;

/// Kept on a claim while a pod uses it.
pub const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// Kept on a volume while a claim is bound to it.
pub const PV_PROTECTION: &str = "kubernetes.io/pv-protection";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
const BETA_DEFAULT_CLASS: &str = "storageclass.beta.kubernetes.io/is-default-class";
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Runs before a new object is validated.
pub fn on_create(cluster: &Cluster, resource: &Resource, object: &mut Value) -> Result<()> {
    match &*resource.collection {
        "persistentvolumeclaims" => {
            add_finalizer(object, PVC_PROTECTION);
            default_class(cluster, object);
        }
        "persistentvolumes" => add_finalizer(object, PV_PROTECTION),
        "pods" => {
            let spec = &mut object["spec"];
            if spec.is_object() && spec["serviceAccountName"].as_str().is_none_or(str::is_empty) {
                spec["serviceAccountName"] = "default".into();
                spec["serviceAccount"] = "default".into();
            }
        }
        crd::COLLECTION => add_finalizer(object, crd::CLEANUP_FINALIZER),
        _ => {}
    }
    Ok(())
}

/// Runs before a changed object is validated.
pub fn on_update(
    _cluster: &Cluster,
    resource: &Resource,
    subresource: &str,
    new: &mut Value,
    old: &Value,
) -> Result<()> {
    if &*resource.collection == crd::COLLECTION && subresource.is_empty() {
        crd::keep_served_state(new, old);
    }
    Ok(())
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let mut all: Vec<String> = object.finalizers().iter().map(ToString::to_string).collect();
    if !all.iter().any(|name| name == finalizer) {
        all.push(finalizer.into());
        set_finalizers(object, &all);
    }
}

/// A claim that names no class gets the default one; of several defaults the newest, then the first by name.
fn default_class(cluster: &Cluster, claim: &mut Value) {
    let annotated = claim["metadata"]["annotations"].get(BETA_CLASS).is_some();
    if annotated || !claim["spec"]["storageClassName"].is_null() || !claim["spec"].is_object() {
        return;
    }
    let is_default = |class: &Value| {
        let annotations = &class["metadata"]["annotations"];
        annotations[DEFAULT_CLASS] == "true" || annotations[BETA_DEFAULT_CLASS] == "true"
    };
    let classes = cluster.list_all("storageclasses.storage.k8s.io");
    let chosen = classes.iter().filter(|class| is_default(class)).min_by_key(|class| {
        (std::cmp::Reverse(class.meta_str("creationTimestamp").to_owned()), class.meta_str("name").to_owned())
    });
    if let Some(class) = chosen {
        claim["spec"]["storageClassName"] = class.meta_str("name").into();
    }
}
