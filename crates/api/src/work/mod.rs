//! `work.open-cluster-management.io/v1`: objects that a hub wants to exist on a managed cluster.

mod applied;
mod manifest_config;
mod manifest_work;

pub use applied::{AppliedManifestWork, AppliedManifestWorkSpec, AppliedManifestWorkStatus, AppliedResource};
pub use manifest_config::{
    ConditionRule, ConditionRuleType, FeedbackRule, FeedbackRuleType, IgnoreField, IgnoreWhen, JsonPath,
    ManifestConfig, ResourceIdentifier, ScrapeType, ServerSideApply, UpdateStrategy, UpdateStrategyType,
};
pub use manifest_work::{
    DeleteOption, DeletePropagation, ExecutorServiceAccount, ExecutorSubject, ExecutorSubjectType,
    FeedbackValue, FieldValue, FieldValueType, ManifestCondition, ManifestResourceMeta,
    ManifestResourceStatus, ManifestWork, ManifestWorkExecutor, ManifestWorkSpec, ManifestWorkStatus,
    SelectivelyOrphan, StatusFeedback, Workload,
};

/// The API group of these kinds.
pub const GROUP: &str = "work.open-cluster-management.io";
