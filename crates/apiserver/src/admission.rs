//! What kube-apiserver's built-in admission does for storage, and nothing more: the protection finalizers of claims and
//! volumes, the default storage class of a claim, the service account of a pod. No webhooks, no quota.

use crate::cluster::Cluster;
use crate::crd;
use crate::error::{ApiError, Result};
use crate::object::{Object, set_finalizers};
use crate::registry::{Nature, Resource};
use lifeboat_schema::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Kept on a claim while a pod uses it.
pub const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// Kept on a volume while a claim is bound to it.
pub const PV_PROTECTION: &str = "kubernetes.io/pv-protection";
/// Addresses of services: 10.96.0.10 to 10.96.255.254.
const FIRST_ADDRESS: u32 = 0x0a60_000a;
const LAST_ADDRESS: u32 = 0x0a60_fffe;
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
            check_runtime(cluster, resource, object)?;
            let spec = &mut object["spec"];
            if spec.is_object() && spec["serviceAccountName"].as_str().is_none_or(str::is_empty) {
                spec["serviceAccountName"] = "default".into();
                spec["serviceAccount"] = "default".into();
            }
        }
        "services" => assign_addresses(cluster, object),
        _ => {}
    }
    Ok(())
}

/// Runs before a changed object is validated.
pub fn on_update(
    cluster: &Cluster,
    resource: &Resource,
    subresource: &str,
    new: &mut Value,
    old: &Value,
) -> Result<()> {
    if &*resource.collection == crd::COLLECTION && subresource.is_empty() {
        crd::keep_served_state(new, old);
    }
    if &*resource.collection == "persistentvolumeclaims" && subresource.is_empty() {
        may_grow(cluster, resource, new, old)?;
    }
    Ok(())
}

/// What its maker should know about a new object: that nothing here will act on it.
pub fn no_effect(resource: &Resource, object: &Value) -> Option<String> {
    if &*resource.collection == crd::COLLECTION && object["spec"]["conversion"]["strategy"] == "Webhook" {
        return Some(
            "this server calls no conversion webhooks: every version shows the fields as they are stored"
                .into(),
        );
    }
    match &resource.nature {
        Nature::BuiltIn(kind) => kind.inert().map(str::to_owned),
        Nature::Custom(_) => None,
    }
}

/// A pod may only ask for a runtime that there is.
fn check_runtime(cluster: &Cluster, resource: &Resource, pod: &Value) -> Result<()> {
    let Some(class) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(()) };
    if cluster.store.get("runtimeclasses.node.k8s.io", "", class).is_some() {
        return Ok(());
    }
    let why = format!("pod rejected: RuntimeClass {class:?} not found");
    Err(ApiError::forbidden(resource.about(), pod.meta_str("name"), &why))
}

/// A bound claim grows only if its class lets it.
fn may_grow(cluster: &Cluster, resource: &Resource, new: &Value, old: &Value) -> Result<()> {
    let size = |claim: &Value| {
        let text = claim["spec"]["resources"]["requests"]["storage"].as_str().unwrap_or_default().to_owned();
        Quantity::parse(&text).ok()
    };
    let grows = matches!((size(new), size(old)), (Some(new), Some(old)) if new > old);
    if !grows || old["status"]["phase"] != "Bound" {
        return Ok(());
    }
    let named =
        old["metadata"]["annotations"][BETA_CLASS].as_str().or(old["spec"]["storageClassName"].as_str());
    let class = cluster.find("storageclasses.storage.k8s.io", "", named.unwrap_or_default());
    if class.is_some_and(|class| class["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    Err(ApiError::forbidden(resource.about(), new.meta_str("name"), why))
}

/// A service gets the lowest free address of the range, unless it wants none.
fn assign_addresses(cluster: &Cluster, service: &mut Value) {
    if !service["spec"].is_object() || service["spec"]["type"] == "ExternalName" {
        return;
    }
    let wanted = service["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    let address = if wanted.is_empty() {
        let taken: BTreeSet<String> = cluster
            .list_all("services")
            .iter()
            .filter_map(|known| known["spec"]["clusterIP"].as_str().map(str::to_owned))
            .collect();
        let free = (FIRST_ADDRESS..=LAST_ADDRESS)
            .map(|n| Ipv4Addr::from(n).to_string())
            .find(|a| !taken.contains(a));
        let Some(free) = free else { return };
        free
    } else {
        wanted
    };
    let spec = &mut service["spec"];
    spec["clusterIPs"] = serde_json::json!([address]);
    spec["clusterIP"] = address.into();
    if spec["ipFamilies"].is_null() {
        spec["ipFamilies"] = serde_json::json!(["IPv4"]);
    }
    if spec["ipFamilyPolicy"].is_null() {
        spec["ipFamilyPolicy"] = "SingleStack".into();
    }
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
