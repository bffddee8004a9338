//! The kinds that a hub needs, with and without their schemas.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

/// The kinds that a hub needs.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let kinds = [
        "DRPlacementControl",
        "DRPolicy",
        "DRCluster",
        "Placement",
        "PlacementDecision",
        "PlacementRule",
        "ManagedCluster",
        "ManifestWork",
        "ManagedClusterView",
    ];
    let mut all = lifeboat_api::crds();
    all.retain(|one| kinds.contains(&one.spec.names.kind.as_str()));
    all
}

/// The same kinds without their schemas: what is tried by the hundred need not be validated each time.
pub fn bare_definitions() -> Vec<CustomResourceDefinition> {
    let mut all = definitions();
    for version in all.iter_mut().flat_map(|one| &mut one.spec.versions) {
        let open =
            json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
        version.schema = Some(serde_json::from_value(open).unwrap());
        version.additional_printer_columns = None;
    }
    all
}
