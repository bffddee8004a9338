//! Node storage, tried.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod central;
mod central_crash;
mod provision_rules;
mod provision_stories;
mod snapshots_stories;
mod volume;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The definitions that node storage needs. A server reads every one of them with care, and a story of deaths starts a hundred servers.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let ours = ["topolvm.io", "snapshot.storage.k8s.io"];
    lifeboat_api::crds().into_iter().filter(|definition| ours.contains(&&*definition.spec.group)).collect()
}
