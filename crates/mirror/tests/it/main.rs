//! The mirror, tried: rules as tables, stories on two clusters with real bytes, a death at every effect.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod crash;
mod mortal;
mod on_lvm;
mod rules;
mod side;
mod stories;
mod talking;
mod watch;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The definitions that a mirror looks at.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let ours = [
        "logicalvolumes.topolvm.io",
        "volumesnapshotclasses.snapshot.storage.k8s.io",
        "volumesnapshotcontents.snapshot.storage.k8s.io",
        "snapshotbackupstorages.topolvm.io",
        "volumereplications.replication.storage.openshift.io",
        "volumereplicationclasses.replication.storage.openshift.io",
        "maintenancemodes.ramendr.openshift.io",
        "networkfences.csiaddons.openshift.io",
        "networkfenceclasses.csiaddons.openshift.io",
    ];
    let is_ours = |definition: &CustomResourceDefinition| {
        definition.metadata.name.as_deref().is_some_and(|name| ours.contains(&name))
    };
    lifeboat_api::crds().into_iter().filter(is_ours).collect()
}
