//! The CRDs of all kinds, in fixed order, finished so that they mean the same as the peers' own.

use crate::{
    apps, cluster, csiaddons, multicluster, ramen, replication, snapshot, topolvm, view, volsync, work,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::Value;
use std::collections::BTreeMap;

/// All CRDs, ordered by group and plural name.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        finish::<apps::PlacementRule>(),
        finish::<cluster::ManagedCluster>().nullable("spec.taints[].timeAdded"),
        finish::<cluster::PlacementDecision>(),
        finish::<cluster::Placement>().with_spec(),
        finish::<csiaddons::NetworkFenceClass>(),
        finish::<csiaddons::NetworkFence>().with_spec(),
        // The peer stores v1beta1 and serves both.
        finish::<multicluster::ServiceExport>().stored_as("v1beta1"),
        finish::<ramen::DRClusterConfig>(),
        finish::<ramen::DRCluster>(),
        finish::<ramen::DRPlacementControl>(),
        finish::<ramen::DRPolicy>(),
        finish::<ramen::MaintenanceMode>(),
        finish::<ramen::ProtectedVolumeReplicationGroupList>()
            .nullable("status.items[].status.lastUpdateTime")
            .nullable("status.items[].status.kubeObjectProtection.captureToRecoverFrom.startTime")
            .nullable("status.items[].status.kubeObjectProtection.captureToRecoverFrom.endTime"),
        finish::<ramen::ReplicationGroupDestination>(),
        finish::<ramen::ReplicationGroupSource>(),
        finish::<ramen::VolumeReplicationGroup>()
            .nullable("status.lastUpdateTime")
            .nullable("status.kubeObjectProtection.captureToRecoverFrom.startTime")
            .nullable("status.kubeObjectProtection.captureToRecoverFrom.endTime"),
        finish::<replication::VolumeGroupReplicationClass>(),
        finish::<replication::VolumeGroupReplicationContent>(),
        finish::<replication::VolumeGroupReplication>(),
        finish::<replication::VolumeReplicationClass>().with_spec(),
        finish::<replication::VolumeReplication>().with_spec(),
        finish::<snapshot::VolumeSnapshotClass>().approved(814).retired("v1beta1"),
        finish::<snapshot::VolumeSnapshotContent>().with_spec().approved(955).retired("v1beta1"),
        finish::<snapshot::VolumeSnapshot>().with_spec().approved(814).retired("v1beta1"),
        finish::<topolvm::legacy::LogicalVolume>(),
        finish::<topolvm::LogicalVolume>(),
        finish::<topolvm::SnapshotBackupStorage>(),
        finish::<view::ManagedClusterView>().nullable("status.result"),
        finish::<volsync::ReplicationDestination>(),
        finish::<volsync::ReplicationSource>(),
        finish::<work::AppliedManifestWork>(),
        finish::<work::ManifestWork>(),
    ];
    crds.sort_by(|a, b| (&a.spec.group, &a.spec.names.plural).cmp(&(&b.spec.group, &b.spec.names.plural)));
    crds
}

/// All CRDs as one YAML stream, ready for `kubectl apply -f -`.
pub fn crds_yaml() -> String {
    crds().iter().map(|crd| format!("---\n{}", crd_yaml(crd))).collect()
}

/// All CRDs as JSON, one a line, in the order of [`crds`]: what [`crd_json`] gives, kept because reading it takes a fraction of
/// the time that deriving the schemas does. A test keeps it current.
pub fn crds_json() -> impl Iterator<Item = &'static str> {
    include_str!("crds.jsonl").lines()
}

/// One CRD as JSON.
pub fn crd_json(crd: &CustomResourceDefinition) -> String {
    as_value(crd).to_string()
}

fn as_value(crd: &CustomResourceDefinition) -> Value {
    let mut value = serde_json::to_value(crd).expect("invariant: a CRD is plain data and always serialises");
    whole_numbers(&mut value);
    value
}

/// One CRD as YAML.
pub fn crd_yaml(crd: &CustomResourceDefinition) -> String {
    let value = as_value(crd);
    let plain_data = "invariant: a CRD is plain data and always serialises";
    serde_saphyr::to_string(&value).expect(plain_data)
}

/// Bounds are floats in the CRD type; as `0.0` they would read oddly next to integer fields.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0)
                && number.is_f64()
            {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The file name of a CRD in `deploy/crds`.
pub fn crd_file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// The derived CRD, with the derive's own habits undone: it marks every optional field nullable, which
/// would let `null` through where the peers' CRDs refuse it, and it titles the root. It demands a
/// `spec` of every kind, which few peers do: an object without one means the same as one with an empty spec.
fn finish<K: CustomResourceExt>() -> CustomResourceDefinition {
    let mut crd = K::crd();
    crd.spec.names.list_kind = Some(format!("{}List", crd.spec.names.kind));
    for version in &mut crd.spec.versions {
        let schema = schema_of(version);
        schema.title = None;
        undo_habits(schema);
        let required = schema.required.take().into_iter().flatten().filter(|field| field != "spec");
        schema.required = Some(required.collect::<Vec<_>>()).filter(|required| !required.is_empty());
    }
    crd
}

fn schema_of(version: &mut CustomResourceDefinitionVersion) -> &mut JSONSchemaProps {
    version
        .schema
        .as_mut()
        .and_then(|validation| validation.open_api_v3_schema.as_mut())
        .expect("invariant: every derived version has a schema")
}

fn undo_habits(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    // The derive takes the types out of a number-or-text; without them the alternatives are void.
    if schema.x_kubernetes_int_or_string == Some(true) && schema.any_of.is_some() {
        schema.any_of = Some(["integer", "string"].map(plain).to_vec());
    }
    if let Some(words) = &mut schema.enum_ {
        words.retain(|word| !word.0.is_null());
    }
    for property in schema.properties.iter_mut().flat_map(BTreeMap::values_mut) {
        undo_habits(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        undo_habits(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        undo_habits(values);
    }
}

fn plain(type_: &str) -> JSONSchemaProps {
    JSONSchemaProps { type_: Some(type_.to_owned()), ..Default::default() }
}

/// Small corrections that a derive cannot express, chained in [`crds`].
trait Finishing {
    /// Refuses objects without a spec, where the peer's CRD does.
    fn with_spec(self) -> Self;
    /// Allows `null` at a path such as `spec.list[].field`: Go writes an unset time that way.
    fn nullable(self, path: &str) -> Self;
    /// Serves the same schema under another version too, and stores objects as that one.
    fn stored_as(self, version: &str) -> Self;
    /// Lists a version that is not served any more, for clusters that once stored it.
    fn retired(self, version: &str) -> Self;
    /// Names the review that lets a CRD live in a `k8s.io` group.
    fn approved(self, pull_request: u32) -> Self;
}

impl Finishing for CustomResourceDefinition {
    fn with_spec(mut self) -> Self {
        for version in &mut self.spec.versions {
            schema_of(version).required.get_or_insert_default().push("spec".to_owned());
        }
        self
    }

    fn nullable(mut self, path: &str) -> Self {
        for version in &mut self.spec.versions {
            let mut schema = schema_of(version);
            for step in path.split('.') {
                let (name, list) = match step.strip_suffix("[]") {
                    Some(name) => (name, true),
                    None => (step, false),
                };
                schema = schema
                    .properties
                    .as_mut()
                    .and_then(|properties| properties.get_mut(name))
                    .expect("invariant: nullable paths name existing fields");
                if list {
                    let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items else {
                        unreachable!("invariant: [] follows the name of a list");
                    };
                    schema = items;
                }
            }
            schema.nullable = Some(true);
        }
        self
    }

    fn stored_as(mut self, version: &str) -> Self {
        let mut stored = self.spec.versions[0].clone();
        stored.name = version.to_owned();
        self.spec.versions[0].storage = false;
        self.spec.versions.push(stored);
        self
    }

    fn retired(mut self, version: &str) -> Self {
        let mut old = self.spec.versions[0].clone();
        old.name = version.to_owned();
        old.served = false;
        old.storage = false;
        old.deprecated = Some(true);
        self.spec.versions.push(old);
        self
    }

    fn approved(mut self, pull_request: u32) -> Self {
        let review = format!("https://github.com/kubernetes-csi/external-snapshotter/pull/{pull_request}");
        self.metadata
            .annotations
            .get_or_insert_default()
            .insert("api-approved.kubernetes.io".to_owned(), review);
        self
    }
}
