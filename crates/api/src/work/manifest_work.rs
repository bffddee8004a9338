//! ManifestWork itself: the objects, how they go away, and what became of them.

use super::{ManifestConfig, ResourceIdentifier};
use crate::schema;
use crate::wire::{or_default, spec_or_default, wire_enum};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What should exist on the managed cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "ManifestWork",
    plural = "manifestworks",
    namespaced,
    doc = "Objects that should exist on the managed cluster in whose namespace it stands.",
    status = "ManifestWorkStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct ManifestWorkSpec {
    /// The objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,

    /// What becomes of the objects when this is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,

    /// How to treat single objects.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub manifest_configs: Vec<ManifestConfig>,

    /// Who the objects are applied as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<ManifestWorkExecutor>,
}

/// The objects of a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct Workload {
    /// Whole objects of any kind.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::EmbeddedResource>")]
    pub manifests: Vec<RawExtension>,
}

/// What becomes of the objects when their work is deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct DeleteOption {
    /// Whether they are deleted too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Foreground"))]
    pub propagation_policy: Option<DeletePropagation>,

    /// Which of them stay, for SelectivelyOrphan.
    #[serde(rename = "selectivelyOrphans", skip_serializing_if = "Option::is_none")]
    pub selectively_orphan: Option<SelectivelyOrphan>,

    /// Delete the work this long after it finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
}

wire_enum! {
    /// Whether objects go away with their work.
    closed DeletePropagation {
        /// They are deleted first.
        Foreground = "Foreground",
        /// They stay.
        Orphan = "Orphan",
        /// Those that the rules name stay.
        SelectivelyOrphan = "SelectivelyOrphan",
    }
}

/// Which objects stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct SelectivelyOrphan {
    /// The objects.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub orphaning_rules: Vec<ResourceIdentifier>,
}

/// Who objects are applied as.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ManifestWorkExecutor {
    /// The identity; absent means the agent's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<ExecutorSubject>,
}

/// An identity on the managed cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ExecutorSubject {
    /// Kind of the identity.
    #[serde(rename = "type")]
    pub type_: ExecutorSubjectType,

    /// The service account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ExecutorServiceAccount>,
}

wire_enum! {
    /// Kind of an identity.
    closed ExecutorSubjectType {
        /// A service account.
        ServiceAccount = "ServiceAccount",
    }
}

const DNS_SUBDOMAIN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$";

/// Names a service account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ExecutorServiceAccount {
    /// Its namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub namespace: String,

    /// Its name.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub name: String,
}

/// What became of the objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ManifestWorkStatus {
    /// Observations about the work as a whole.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// Observations about single objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_status: Option<ManifestResourceStatus>,
}

/// Observations about the objects of a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ManifestResourceStatus {
    /// One entry for each object.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<ManifestCondition>,
}

/// Observations about one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ManifestCondition {
    /// The object.
    pub resource_meta: ManifestResourceMeta,

    /// Values read back from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_feedback: Option<StatusFeedback>,

    /// Observations about it.
    #[serde(deserialize_with = "or_default")]
    #[schemars(with = "Vec<schema::Condition>")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// Names an object of a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ManifestResourceMeta {
    /// Its place in the list of manifests.
    pub ordinal: i32,

    /// Its API group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,

    /// Its API version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// Its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,

    /// Its resource name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,

    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Values read back from an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct StatusFeedback {
    /// The values.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub values: Vec<FeedbackValue>,
}

/// One value read back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct FeedbackValue {
    /// The name that the rule gave it.
    pub name: String,

    /// The value.
    pub field_value: FieldValue,
}

/// A typed value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct FieldValue {
    /// Which of the others is set.
    #[serde(rename = "type")]
    pub type_: FieldValueType,

    /// A whole number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integer: Option<i64>,

    /// A text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,

    /// A truth value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boolean: Option<bool>,

    /// Any value, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub json_raw: Option<String>,
}

wire_enum! {
    /// Type of a value.
    closed FieldValueType {
        /// A whole number.
        Integer = "Integer",
        /// A text.
        String = "String",
        /// A truth value.
        Boolean = "Boolean",
        /// Any value, as JSON text.
        JsonRaw = "JsonRaw",
    }
}

spec_or_default!(ManifestWorkSpec);
