//! How single objects of a work are applied, judged and read back.

use crate::wire::{is_false, or_default, wire_enum};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How to treat one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ManifestConfig {
    /// The object.
    pub resource_identifier: ResourceIdentifier,

    /// Which values to read back.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub feedback_rules: Vec<FeedbackRule>,

    /// How to keep read-back values fresh.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Poll"))]
    pub feedback_scrape_type: Option<ScrapeType>,

    /// How to apply changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,

    /// How to judge the object.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["condition".into()]))]
    pub condition_rules: Vec<ConditionRule>,
}

/// Names an object by its resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ResourceIdentifier {
    /// API group; absent means the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,

    /// Resource name, such as pods.
    pub resource: String,

    /// Name of the object.
    pub name: String,

    /// Namespace of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

wire_enum! {
    /// How read-back values are kept fresh.
    closed ScrapeType {
        /// Read at intervals.
        Poll = "Poll",
        /// Read when the object changes.
        Watch = "Watch",
    }
}

/// Which values to read back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct FeedbackRule {
    /// Whether the values are those known for the kind, or named here.
    #[serde(rename = "type")]
    pub type_: FeedbackRuleType,

    /// The values.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub json_paths: Vec<JsonPath>,
}

wire_enum! {
    /// Where the list of values to read back comes from.
    closed FeedbackRuleType {
        /// Known for the kind.
        WellKnownStatus = "WellKnownStatus",
        /// Named by paths.
        JsonPaths = "JSONPaths",
    }
}

/// One value to read back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct JsonPath {
    /// Name to report it by.
    pub name: String,

    /// API version to read the object in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// Where the value stands under status.
    pub path: String,
}

/// How to apply changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct UpdateStrategy {
    /// The way.
    #[serde(rename = "type")]
    #[schemars(extend("default" = "Update"))]
    pub type_: UpdateStrategyType,

    /// Details for server-side apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApply>,
}

wire_enum! {
    /// A way to apply changes.
    closed UpdateStrategyType {
        /// By update.
        Update = "Update",
        /// Never, once the object exists.
        CreateOnly = "CreateOnly",
        /// By server-side apply.
        ServerSideApply = "ServerSideApply",
        /// Never; only read back.
        ReadOnly = "ReadOnly",
    }
}

/// Details for server-side apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ServerSideApply {
    /// Take fields from other managers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,

    /// Name to apply as; begins with work-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^work-agent"), extend("default" = "work-agent"))]
    pub field_manager: Option<String>,

    /// Fields to leave alone.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["condition".into()]))]
    pub ignore_fields: Vec<IgnoreField>,
}

/// Fields to leave alone, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct IgnoreField {
    /// When.
    #[schemars(extend("default" = "OnSpokePresent"))]
    pub condition: IgnoreWhen,

    /// The fields, as JSON paths.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub json_paths: Vec<String>,

    /// The fields, as JSON pointers.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub json_pointers: Vec<String>,

    /// The fields, as jq expressions.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub jq_path_expressions: Vec<String>,
}

wire_enum! {
    /// When fields are left alone.
    closed IgnoreWhen {
        /// Once the object exists.
        OnSpokePresent = "OnSpokePresent",
        /// While only the managed cluster changes them.
        OnSpokeChange = "OnSpokeChange",
    }
}

/// How to judge an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = (
    r#"self.type != 'CEL' || self.condition != """#,
    "Condition is required for CEL rules"
))]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ConditionRule {
    /// Type of the condition to set.
    pub condition: String,

    /// Whether the judgement is that known for the kind, or written here.
    #[serde(rename = "type")]
    pub type_: ConditionRuleType,

    /// CEL expressions that must all be true.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<String>,

    /// Message for the condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// CEL expression that makes the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_expression: Option<String>,
}

wire_enum! {
    /// Where a judgement comes from.
    closed ConditionRuleType {
        /// Known for the kind.
        WellKnownConditions = "WellKnownConditions",
        /// Written as CEL.
        Cel = "CEL",
    }
}
