//! Placement: which clusters an application should run on.

use super::TaintEffect;
use crate::schema;
use crate::wire::{or_default, spec_or_default, wire_enum};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    Condition, LabelSelector, LabelSelectorRequirement, Time,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};

/// Which clusters to choose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "Placement",
    plural = "placements",
    namespaced,
    doc = "Chooses clusters; the choice is written to PlacementDecisions.",
    status = "PlacementStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "Succeeded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"PlacementSatisfied\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"PlacementSatisfied\")].reason"
    ),
    printcolumn(
        name = "SelectedClusters",
        type_ = "integer",
        json_path = ".status.numberOfSelectedClusters"
    )
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct PlacementSpec {
    /// Choose from these cluster sets; absent means all that the namespace is bound to.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub cluster_sets: Vec<String>,

    /// How many clusters to choose; absent means all that qualify.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_clusters: Option<i32>,

    /// What a cluster must be like; one of these is enough.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub predicates: Vec<ClusterPredicate>,

    /// How to rank the clusters that qualify.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prioritizer_policy: Option<PrioritizerPolicy>,

    /// How to spread the choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_policy: Option<SpreadPolicy>,

    /// Taints to put up with.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,

    /// How to group the chosen clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_strategy: Option<DecisionStrategy>,

    /// How to order the chosen clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ClusterName"))]
    pub sort_by: Option<SortBy>,

    /// How often scores may change the choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+[hms]$"), extend("default" = "1m"))]
    pub score_rate_limit: Option<String>,
}

wire_enum! {
    /// How to order chosen clusters.
    closed SortBy {
        /// By name.
        ClusterName = "ClusterName",
        /// By score, best first.
        Score = "Score",
    }
}

/// What a cluster must be like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ClusterPredicate {
    /// All of these must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_cluster_selector: Option<ClusterSelector>,
}

/// Selects clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ClusterSelector {
    /// By labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>")]
    pub label_selector: Option<LabelSelector>,

    /// By claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ClaimSelector>")]
    pub claim_selector: Option<ClaimSelector>,

    /// By expressions over the whole ManagedCluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel_selector: Option<CelSelector>,
}

/// Selects clusters by their claims.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimSelector {
    /// Requirements on single claims.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// Selects clusters by expressions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct CelSelector {
    /// CEL expressions that must all be true.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<String>,
}

/// How to rank clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct PrioritizerPolicy {
    /// Additive or Exact: whether the given weights come on top of the defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Additive"))]
    pub mode: Option<String>,

    /// Weights of single scores.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<PrioritizerConfig>,
}

/// The weight of one score.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct PrioritizerConfig {
    /// The score.
    pub score_coordinate: ScoreCoordinate,

    /// Its weight, -10 to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -10, max = 10), extend("default" = 1))]
    pub weight: Option<i32>,
}

/// Names a score.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ScoreCoordinate {
    /// Whether the score is built in or comes from an add-on.
    #[serde(rename = "type")]
    #[schemars(extend("default" = "BuiltIn"))]
    pub type_: ScoreCoordinateType,

    /// Name of a built-in score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_in: Option<String>,

    /// A score from an add-on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_on: Option<AddOnScore>,
}

wire_enum! {
    /// Where a score comes from.
    closed ScoreCoordinateType {
        /// From the scheduler itself.
        BuiltIn = "BuiltIn",
        /// From an AddOnPlacementScore.
        AddOn = "AddOn",
    }
}

/// A score from an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct AddOnScore {
    /// Name of the AddOnPlacementScore.
    pub resource_name: String,

    /// Name of the score in it.
    pub score_name: String,
}

/// How to spread a choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct SpreadPolicy {
    /// Constraints, most important first.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub spread_constraints: Vec<SpreadConstraint>,
}

/// One constraint on how a choice is spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct SpreadConstraint {
    /// Label or claim whose values divide the clusters.
    #[schemars(
        length(max = 316),
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
        )
    )]
    pub topology_key: String,

    /// Whether the key is a label or a claim.
    pub topology_key_type: TopologyKeyType,

    /// How much the parts may differ in size.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = 1))]
    pub max_skew: Option<i32>,

    /// What to do where the constraint cannot be met.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ScheduleAnyway"))]
    pub when_unsatisfiable: Option<UnsatisfiableAction>,
}

wire_enum! {
    /// What a topology key names.
    closed TopologyKeyType {
        /// A label of the cluster.
        Label = "Label",
        /// A claim of the cluster.
        Claim = "Claim",
    }
}

wire_enum! {
    /// What to do where a constraint cannot be met.
    closed UnsatisfiableAction {
        /// Choose fewer clusters.
        DoNotSchedule = "DoNotSchedule",
        /// Choose all the same.
        ScheduleAnyway = "ScheduleAnyway",
    }
}

/// A taint to put up with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct Toleration {
    /// Key of the taint; absent with Exists means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 316), regex(pattern = schema::QUALIFIED_NAME))]
    pub key: Option<String>,

    /// Equal or Exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Equal"))]
    pub operator: Option<String>,

    /// Value of the taint, for Equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub value: Option<String>,

    /// Effect of the taint; absent means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,

    /// How long to put up with it; absent means for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// How to group chosen clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct DecisionStrategy {
    /// The grouping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_strategy: Option<GroupStrategy>,
}

/// How to group chosen clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct GroupStrategy {
    /// Groups by selector, in order.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroup>,

    /// Size of the groups for the rest: a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<GroupSize>", extend("default" = "100%"))]
    pub clusters_per_decision_group: Option<IntOrString>,
}

schema::stand_in! {
    /// A count or a percentage.
    GroupSize => |_generator| json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": "^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$",
        "x-kubernetes-int-or-string": true,
    })
}

/// A group of chosen clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct DecisionGroup {
    /// Name of the group.
    #[schemars(regex(pattern = r"^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"))]
    pub group_name: String,

    /// Selects its clusters.
    pub group_cluster_selector: GroupClusterSelector,
}

/// Selects the clusters of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct GroupClusterSelector {
    /// By labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>")]
    pub label_selector: Option<LabelSelector>,

    /// By claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ClaimSelector>")]
    pub claim_selector: Option<ClaimSelector>,
}

/// How the choice went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct PlacementStatus {
    /// How many clusters were chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_selected_clusters: Option<i32>,

    /// The groups and the PlacementDecisions that hold them.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroupStatus>,

    /// Observations about the choice.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// When scores last changed the choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_score_update_time: Option<Time>,
}

/// A group of chosen clusters and where it is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct DecisionGroupStatus {
    /// Its place in the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_group_index: Option<i32>,

    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_group_name: Option<String>,

    /// Names of its PlacementDecisions.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,

    /// How many clusters it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub cluster_count: Option<i32>,
}

spec_or_default!(PlacementSpec);
