//! What the CRDs say: names, columns, validation. The rows are the peers' own published rules.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use lifeboat_api::{crd_yaml, crds, crds_yaml};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Deriving all CRDs takes a moment without optimisation; once is enough.
static CRDS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(crds);

fn crd(name: &str) -> &'static CustomResourceDefinition {
    CRDS.iter().find(|crd| crd.metadata.name.as_deref() == Some(name)).unwrap()
}

fn schema(crd: &CustomResourceDefinition) -> &JSONSchemaProps {
    crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap()
}

fn at<'a>(mut schema: &'a JSONSchemaProps, path: &str) -> &'a JSONSchemaProps {
    for step in path.split('.') {
        schema = &schema.properties.as_ref().unwrap()[step.trim_end_matches("[]")];
        if step.ends_with("[]") {
            let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items else {
                panic!("{path}: no list");
            };
            schema = items;
        }
    }
    schema
}

fn visit(schema: &JSONSchemaProps, path: &str, seen: &mut dyn FnMut(&str, &JSONSchemaProps)) {
    seen(path, schema);
    for (name, property) in schema.properties.iter().flatten() {
        visit(property, &format!("{path}.{name}"), seen);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        visit(items, &format!("{path}[]"), seen);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        visit(values, &format!("{path}{{}}"), seen);
    }
}

#[test]
fn crds_come_in_fixed_order_and_once() {
    let names: Vec<_> =
        CRDS.iter().map(|crd| format!("{}/{}", crd.spec.group, crd.spec.names.plural)).collect();
    let sorted: BTreeSet<_> = names.iter().cloned().collect();
    assert_eq!(names, sorted.into_iter().collect::<Vec<_>>());
    assert_eq!(names.len(), 32);
}

#[test]
fn the_yaml_stream_reads_back_as_the_crds() {
    let documents: Vec<CustomResourceDefinition> = crds_yaml()
        .split("---\n")
        .filter(|text| !text.is_empty())
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect();
    let wanted: Vec<CustomResourceDefinition> =
        CRDS.iter().map(|crd| serde_saphyr::from_str(&crd_yaml(crd)).unwrap()).collect();
    assert_eq!(documents, wanted);
    assert_eq!(documents.len(), CRDS.len());
}

#[test]
fn schemas_are_structural() {
    for crd in &*CRDS {
        let name = crd.metadata.name.clone().unwrap();
        visit(schema(crd), &name, &mut |path, part| {
            let either = part.x_kubernetes_int_or_string == Some(true);
            assert!(part.type_.is_some() || either, "{path}: no type");
            assert!(part.title.is_none() && part.ref_path.is_none(), "{path}: not allowed in a CRD");
            if let Some(words) = &part.enum_ {
                assert!(words.iter().all(|word| word.0.is_string()), "{path}: {words:?}");
            }
        });
    }
}

#[test]
fn fields_are_explained() {
    for crd in &*CRDS {
        let root = schema(crd);
        assert!(root.description.is_some());
        for (name, part) in root.properties.iter().flatten() {
            assert!(part.description.is_some(), "{name} of {}", crd.spec.names.kind);
            for (inner, field) in part.properties.iter().flatten() {
                let text = field.description.as_deref().unwrap_or_default();
                assert!(!text.is_empty(), "{name}.{inner} of {}", crd.spec.names.kind);
            }
        }
    }
}

#[test]
fn only_unset_go_times_may_be_null() {
    let mut nullable = Vec::new();
    for crd in &*CRDS {
        visit(schema(crd), &crd.spec.names.kind, &mut |path, part| {
            if part.nullable == Some(true) {
                nullable.push(path.to_owned());
            }
        });
    }
    assert_eq!(
        nullable,
        [
            "ManagedCluster.spec.taints[].timeAdded",
            "ProtectedVolumeReplicationGroupList.status.items[].status.kubeObjectProtection.captureToRecoverFrom.endTime",
            "ProtectedVolumeReplicationGroupList.status.items[].status.kubeObjectProtection.captureToRecoverFrom.startTime",
            "ProtectedVolumeReplicationGroupList.status.items[].status.lastUpdateTime",
            "VolumeReplicationGroup.status.kubeObjectProtection.captureToRecoverFrom.endTime",
            "VolumeReplicationGroup.status.kubeObjectProtection.captureToRecoverFrom.startTime",
            "VolumeReplicationGroup.status.lastUpdateTime",
            "ManagedClusterView.status.result",
        ]
    );
}

#[test]
fn cel_rules_are_there() {
    let check = |name: &str, path: &str, wanted: &[(&str, &str)]| {
        let crd = crd(name);
        let rules: Vec<_> = at(schema(crd), path)
            .x_kubernetes_validations
            .iter()
            .flatten()
            .map(|rule| (rule.rule.clone(), rule.message.clone().unwrap_or_default()))
            .collect();
        let wanted: Vec<_> =
            wanted.iter().map(|(rule, text)| ((*rule).to_owned(), (*text).to_owned())).collect();
        assert_eq!(rules, wanted, "{name} {path}");
    };
    const SAME: &str = "self == oldSelf";

    let drpc = "drplacementcontrols.ramendr.openshift.io";
    check(drpc, "spec.placementRef", &[(SAME, "placementRef is immutable")]);
    check(drpc, "spec.drPolicyRef", &[(SAME, "drPolicyRef is immutable")]);
    check(drpc, "spec.pvcSelector", &[(SAME, "pvcSelector is immutable")]);
    let policy = "drpolicies.ramendr.openshift.io";
    check(
        policy,
        "spec",
        &[
            (
                "has(oldSelf.replicationClassSelector) == has(self.replicationClassSelector)",
                "replicationClassSelector is immutable",
            ),
            (
                "has(oldSelf.volumeSnapshotClassSelector) == has(self.volumeSnapshotClassSelector)",
                "volumeSnapshotClassSelector is immutable",
            ),
        ],
    );
    check(
        policy,
        "spec.drClusters",
        &[("size(self) == 2", "drClusters requires a list of 2 clusters"), (SAME, "drClusters is immutable")],
    );
    check(policy, "spec.schedulingInterval", &[(SAME, "schedulingInterval is immutable")]);
    check(policy, "spec.replicationClassSelector", &[(SAME, "replicationClassSelector is immutable")]);
    let cluster = "drclusters.ramendr.openshift.io";
    check(cluster, "spec.region", &[(SAME, "region is immutable")]);
    check(cluster, "spec.s3ProfileName", &[(SAME, "s3ProfileName is immutable")]);
    check("drclusterconfigs.ramendr.openshift.io", "spec.clusterID", &[(SAME, "ClusterID is immutable")]);
    check("volumereplicationgroups.ramendr.openshift.io", "spec", &[]);
    check(
        "volumereplications.replication.storage.openshift.io",
        "spec.dataSource",
        &[(SAME, "dataSource is immutable")],
    );
    check(
        "volumegroupreplicationcontents.replication.storage.openshift.io",
        "spec.volumeGroupAttributes",
        &[(SAME, "field is immutable")],
    );
    check(
        "networkfences.csiaddons.openshift.io",
        "spec",
        &[
            (
                "has(self.driver) || has(self.networkFenceClassName)",
                "one of driver or networkFenceClassName must be present",
            ),
            (
                "has(self.networkFenceClassName) || has(self.secret)",
                "secret must be present when networkFenceClassName is not specified",
            ),
        ],
    );
    check(
        "volumesnapshotcontents.snapshot.storage.k8s.io",
        "spec.volumeSnapshotRef",
        &[(
            "has(self.name) && has(self.__namespace__)",
            "both spec.volumeSnapshotRef.name and spec.volumeSnapshotRef.namespace must be set",
        )],
    );
    check(
        "manifestworks.work.open-cluster-management.io",
        "spec.manifestConfigs[].conditionRules[]",
        &[(r#"self.type != 'CEL' || self.condition != """#, "Condition is required for CEL rules")],
    );
}

#[test]
fn columns_are_those_people_know() {
    let check = |name: &str, wanted: &[(&str, &str, &str, i32)]| {
        let columns: Vec<_> = crd(name).spec.versions[0]
            .additional_printer_columns
            .clone()
            .unwrap_or_default()
            .into_iter()
            .map(|column| (column.name, column.type_, column.json_path, column.priority.unwrap_or(0)))
            .collect();
        let wanted: Vec<_> = wanted
            .iter()
            .map(|(name, type_, path, priority)| {
                ((*name).to_owned(), (*type_).to_owned(), (*path).to_owned(), *priority)
            })
            .collect();
        assert_eq!(columns, wanted, "{name}");
    };
    check(
        "drplacementcontrols.ramendr.openshift.io",
        &[
            ("Age", "date", ".metadata.creationTimestamp", 0),
            ("preferredCluster", "string", ".spec.preferredCluster", 0),
            ("failoverCluster", "string", ".spec.failoverCluster", 0),
            ("desiredState", "string", ".spec.action", 0),
            ("currentState", "string", ".status.phase", 0),
            ("progression", "string", ".status.progression", 2),
            ("start time", "string", ".status.actionStartTime", 2),
            ("duration", "string", ".status.actionDuration", 2),
            ("peer ready", "string", ".status.conditions[1].status", 2),
        ],
    );
    check(
        "volumereplicationgroups.ramendr.openshift.io",
        &[
            ("desiredState", "string", ".spec.replicationState", 0),
            ("currentState", "string", ".status.state", 0),
        ],
    );
    // TopoLVM itself has no columns here: all of them are ours.
    check(
        "logicalvolumes.topolvm.io",
        &[
            ("Phase", "string", ".status.snapshot.phase", 0),
            ("Progress", "string", ".status.snapshot.progress.percentDone", 0),
            ("Node", "string", ".spec.nodeName", 1),
            ("Device class", "string", ".spec.deviceClass", 1),
            ("Size", "string", ".status.currentSize", 1),
            ("Age", "date", ".metadata.creationTimestamp", 1),
        ],
    );
}

#[test]
fn a_spec_is_required_where_the_peers_require_it() {
    let mut known = BTreeSet::new();
    let mut check = |name: &'static str, wanted: &[&str]| {
        for version in &crd(name).spec.versions {
            let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
            assert_eq!(schema.required.clone().unwrap_or_default(), wanted, "{name} {}", version.name);
        }
        known.insert(name.to_owned());
    };
    check("placementrules.apps.open-cluster-management.io", &[]);
    check("managedclusters.cluster.open-cluster-management.io", &[]);
    check("placementdecisions.cluster.open-cluster-management.io", &[]);
    check("placements.cluster.open-cluster-management.io", &["spec"]);
    check("networkfenceclasses.csiaddons.openshift.io", &[]);
    check("networkfences.csiaddons.openshift.io", &["spec"]);
    check("serviceexports.multicluster.x-k8s.io", &[]);
    check("drclusterconfigs.ramendr.openshift.io", &[]);
    check("drclusters.ramendr.openshift.io", &[]);
    check("drplacementcontrols.ramendr.openshift.io", &[]);
    check("drpolicies.ramendr.openshift.io", &[]);
    check("maintenancemodes.ramendr.openshift.io", &[]);
    check("protectedvolumereplicationgrouplists.ramendr.openshift.io", &[]);
    check("replicationgroupdestinations.ramendr.openshift.io", &[]);
    check("replicationgroupsources.ramendr.openshift.io", &[]);
    check("volumereplicationgroups.ramendr.openshift.io", &[]);
    check("volumegroupreplicationclasses.replication.storage.openshift.io", &[]);
    check("volumegroupreplicationcontents.replication.storage.openshift.io", &[]);
    check("volumegroupreplications.replication.storage.openshift.io", &[]);
    check("volumereplicationclasses.replication.storage.openshift.io", &["spec"]);
    check("volumereplications.replication.storage.openshift.io", &["spec"]);
    check("volumesnapshotclasses.snapshot.storage.k8s.io", &["deletionPolicy", "driver"]);
    check("volumesnapshotcontents.snapshot.storage.k8s.io", &["spec"]);
    check("volumesnapshots.snapshot.storage.k8s.io", &["spec"]);
    check("logicalvolumes.topolvm.cybozu.com", &[]);
    check("logicalvolumes.topolvm.io", &[]);
    check("snapshotbackupstorages.topolvm.io", &[]);
    check("managedclusterviews.view.open-cluster-management.io", &[]);
    check("replicationdestinations.volsync.backube", &[]);
    check("replicationsources.volsync.backube", &[]);
    check("appliedmanifestworks.work.open-cluster-management.io", &[]);
    check("manifestworks.work.open-cluster-management.io", &[]);
    let all: BTreeSet<String> = CRDS.iter().filter_map(|crd| crd.metadata.name.clone()).collect();
    assert_eq!(known, all, "every kind has a row");
}

#[test]
fn short_names_scopes_and_subresources() {
    let check = |name: &str, scope: &str, short: &[&str], status: bool| {
        let crd = crd(name);
        let names = crd.spec.names.short_names.clone().unwrap_or_default();
        assert_eq!(names, short, "{name}");
        assert_eq!(crd.spec.scope, scope, "{name}");
        let subresources = crd.spec.versions[0].subresources.as_ref();
        assert_eq!(subresources.is_some_and(|sub| sub.status.is_some()), status, "{name}");
    };
    check("drplacementcontrols.ramendr.openshift.io", "Namespaced", &["drpc"], true);
    check("drpolicies.ramendr.openshift.io", "Cluster", &[], true);
    check("volumereplicationgroups.ramendr.openshift.io", "Namespaced", &["vrg"], true);
    check("replicationgroupsources.ramendr.openshift.io", "Namespaced", &["rgs"], true);
    check("replicationgroupdestinations.ramendr.openshift.io", "Namespaced", &["rgd"], true);
    check("logicalvolumes.topolvm.io", "Cluster", &["lv"], true);
    check("logicalvolumes.topolvm.cybozu.com", "Cluster", &[], true);
    check("volumereplications.replication.storage.openshift.io", "Namespaced", &["vr"], true);
    check("volumesnapshots.snapshot.storage.k8s.io", "Namespaced", &["vs"], true);
    check("volumesnapshotclasses.snapshot.storage.k8s.io", "Cluster", &["vsclass", "vsclasses"], false);
    check("managedclusters.cluster.open-cluster-management.io", "Cluster", &["mcl", "mcls"], true);
    check("serviceexports.multicluster.x-k8s.io", "Namespaced", &["svcex", "svcexport"], true);
}

#[test]
fn versions_that_clusters_may_have_stored_are_listed() {
    let check = |name: &str, wanted: &[(&str, bool, bool)]| {
        let crd = crd(name);
        let versions: Vec<_> =
            crd.spec.versions.iter().map(|v| (v.name.as_str(), v.served, v.storage)).collect();
        assert_eq!(versions, wanted, "{name}");
    };
    check("serviceexports.multicluster.x-k8s.io", &[("v1alpha1", true, false), ("v1beta1", true, true)]);
    check("volumesnapshots.snapshot.storage.k8s.io", &[("v1", true, true), ("v1beta1", false, false)]);
    check("drpolicies.ramendr.openshift.io", &[("v1alpha1", true, true)]);
}

#[test]
fn lists_with_keys_and_kept_content() {
    let work = crd("manifestworks.work.open-cluster-management.io");
    let conditions = at(schema(work), "status.conditions");
    assert_eq!(conditions.x_kubernetes_list_type.as_deref(), Some("map"));
    assert_eq!(conditions.x_kubernetes_list_map_keys, Some(vec!["type".to_owned()]));
    let manifest = at(schema(work), "spec.workload.manifests[]");
    assert_eq!(manifest.x_kubernetes_preserve_unknown_fields, Some(true));
    assert_eq!(manifest.x_kubernetes_embedded_resource, Some(true));
    let selector = crd("drpolicies.ramendr.openshift.io");
    let selector = at(schema(selector), "spec.replicationClassSelector");
    assert_eq!(selector.x_kubernetes_map_type.as_deref(), Some("atomic"));
    assert_eq!(selector.default.as_ref().unwrap().0, serde_json::json!({}));
}
