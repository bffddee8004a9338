//! ManifestWorks: what shall be on a managed cluster, written into the cluster's namespace on the hub. Names, labels and annotations are Ramen's,
//! so that a hub can be replaced in place. Who carries it to the cluster is not known here.
//!
//! Building and reading are pure; [`put`] and [`take_back`] write, guarded by identity and version.

use crate::words::{Words as _, difference, pairs};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::Resource;
use kube::api::{ObjectMeta, Patch};
use lifeboat_api::conditions::fleet;
use lifeboat_api::labels;
use lifeboat_api::work::{DeleteOption, DeletePropagation, ManifestWork, ManifestWorkSpec, Workload};
use lifeboat_engine::conditions::{find, holds};
use lifeboat_engine::{Class, EffectError, ObjectKey, Objects};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Type words in the names of works and views.
pub mod types {
    /// A VolumeReplicationGroup.
    pub const GROUP: &str = "vrg";
    /// A namespace.
    pub const NAMESPACE: &str = "ns";
    /// A NetworkFence.
    pub const NETWORK_FENCE: &str = "nf";
    /// A MaintenanceMode.
    pub const MAINTENANCE_MODE: &str = "mmode";
    /// A DRClusterConfig.
    pub const CLUSTER_CONFIG: &str = "drcconfig";
    /// A Secret that movers share.
    pub const MOVER_SECRET: &str = "vs-secret";
}

/// Name of a work: `<name>-<namespace>-<type>-mw`, without the namespace where there is none.
pub fn name(name: &str, namespace: &str, type_: &str) -> String {
    match namespace.is_empty() {
        true => format!("{name}-{type_}-mw"),
        false => format!("{name}-{namespace}-{type_}-mw"),
    }
}

/// An object as it stands in a work: with its apiVersion and kind, without a status.
pub fn manifest<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), json!(K::api_version(&())));
        fields.insert("kind".to_owned(), json!(K::kind(&())));
        fields.remove("status");
    }
    value
}

/// A work that is to stand in the namespace of `cluster`.
pub fn work(
    cluster: &str,
    name: String,
    notes: BTreeMap<String, String>,
    manifests: impl IntoIterator<Item = Value>,
) -> ManifestWork {
    let manifests = manifests.into_iter().map(RawExtension).collect();
    ManifestWork {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(cluster.to_owned()),
            labels: Some(pairs([(labels::CREATED_BY_RAMEN, labels::CREATED_BY_RAMEN_VALUE)])),
            annotations: Some(notes),
            ..ObjectMeta::default()
        },
        spec: ManifestWorkSpec { workload: Some(Workload { manifests }), ..ManifestWorkSpec::default() },
        status: None,
    }
}

/// The same work, whose objects stay on the cluster when it is deleted.
#[must_use]
pub fn leaving_objects(mut work: ManifestWork) -> ManifestWork {
    work.spec.delete_option =
        Some(DeleteOption { propagation_policy: Some(DeletePropagation::Orphan), ..DeleteOption::default() });
    work
}

/// The manifests of a work.
pub fn manifests(work: &ManifestWork) -> impl Iterator<Item = &Value> {
    work.spec.workload.iter().flat_map(|workload| &workload.manifests).map(|manifest| &manifest.0)
}

/// The first object of a kind in a work; nothing where there is none or it cannot be read as one.
pub fn read<K: Resource<DynamicType = ()> + DeserializeOwned>(work: &ManifestWork) -> Option<K> {
    let wanted = K::kind(&());
    let found = manifests(work).find(|manifest| manifest["kind"] == *wanted)?;
    serde_json::from_value(found.clone()).ok()
}

/// Whether the agent has applied the work as it is now.
pub fn is_applied(work: &ManifestWork) -> bool {
    let conditions = work.status.as_ref().map_or(&[][..], |status| &status.conditions);
    holds(conditions, fleet::TYPE_WORK_APPLIED, work.metadata.generation)
}

/// Why the agent could not apply the work, where it says so for the work as it is now.
pub fn refusal(work: &ManifestWork) -> Option<String> {
    let conditions = work.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let applied = find(conditions, fleet::TYPE_WORK_APPLIED)?;
    let current = applied.observed_generation >= work.metadata.generation;
    (current && applied.status == "False").then(|| applied.message.clone())
}

/// Whether a work says what is wanted. Labels and annotations of others do not matter, nor do fields that the server filled in.
pub fn says(known: &ManifestWork, wanted: &ManifestWork) -> bool {
    let carries = |known: &Option<BTreeMap<String, String>>, wanted: &Option<BTreeMap<String, String>>| {
        let known = known.clone().unwrap_or_default();
        wanted.iter().flatten().all(|(key, value)| known.get(key) == Some(value))
    };
    let orphans = |work: &ManifestWork| {
        let policy = work.spec.delete_option.as_ref().and_then(|option| option.propagation_policy.clone());
        policy == Some(DeletePropagation::Orphan)
    };
    carries(&known.metadata.annotations, &wanted.metadata.annotations)
        && carries(&known.metadata.labels, &wanted.metadata.labels)
        && orphans(known) == orphans(wanted)
        && manifests(known).eq(manifests(wanted))
}

/// Makes a work, or changes it to what is wanted: only in the version that is known here, and only where it says something else. One that is being
/// deleted is left to go.
///
/// # Errors
/// Stale when it has changed meanwhile; the cache then has the new version.
pub async fn put(works: &Objects<ManifestWork>, wanted: &ManifestWork) -> Result<(), EffectError> {
    let key = ObjectKey::of(wanted);
    let Some(known) = works.get(&key) else { return works.create(wanted).await.map(drop) };
    if known.is_going() {
        return Err(EffectError::new(Class::Transient, format!("ManifestWork {key} is still being deleted")));
    }
    if says(&known, wanted) {
        return Ok(());
    }
    let mut metadata = known.guard();
    metadata["annotations"] = json!(wanted.metadata.annotations);
    metadata["labels"] = json!(wanted.metadata.labels);
    let patch = json!({ "metadata": metadata, "spec": difference(&known.spec, &wanted.spec)? });
    works.patch(&key, &Patch::Merge(patch)).await.map(drop)
}

/// Deletes a work: this one in the version that is known here. What it carries goes from the cluster first, unless it says otherwise.
///
/// # Errors
/// Stale when it has changed meanwhile; the cache then has the new version.
pub async fn take_back(works: &Objects<ManifestWork>, key: &ObjectKey) -> Result<(), EffectError> {
    match works.get(key) {
        Some(known) if !known.is_going() => works.delete(&known).await,
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Namespace;

    #[test]
    fn works_are_named_as_peers_name_them() {
        assert_eq!(name("web", "shop", types::GROUP), "web-shop-vrg-mw");
        assert_eq!(name("web", "shop", types::NAMESPACE), "web-shop-ns-mw");
        assert_eq!(name("rep-1", "", types::MAINTENANCE_MODE), "rep-1-mmode-mw");
    }

    fn space(name: &str) -> Namespace {
        Namespace {
            metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
            ..Namespace::default()
        }
    }

    #[test]
    fn a_work_gives_back_what_was_put_in() {
        let made = work("east", "w".into(), BTreeMap::new(), [manifest(&space("shop"))]);
        assert_eq!(read::<Namespace>(&made).unwrap().metadata.name.as_deref(), Some("shop"));
        assert!(read::<ManifestWork>(&made).is_none());
    }

    #[test]
    fn what_others_add_is_no_difference() {
        let wanted = work("east", "w".into(), pairs([("ours", "1")]), [manifest(&space("shop"))]);
        let check = |change: fn(&mut ManifestWork), same: bool| {
            let mut known = wanted.clone();
            change(&mut known);
            assert_eq!(says(&known, &wanted), same);
        };
        check(|_| {}, true);
        check(
            |known| drop(known.metadata.annotations.as_mut().unwrap().insert("x".into(), "y".into())),
            true,
        );
        check(|known| known.spec.delete_option = Some(DeleteOption::default()), true);
        check(|known| known.metadata.annotations = None, false);
        check(|known| known.spec.workload = None, false);
        check(|known| *known = leaving_objects(known.clone()), false);
    }
}
