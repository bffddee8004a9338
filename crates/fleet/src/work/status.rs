//! What a work shows: conditions of the work and of each manifest, and the values read back. Pure.

use super::feedback;
use super::world::{Item, World};
use crate::cluster::kinds::Found;
use crate::cluster::sight::Seen;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lifeboat_api::conditions::fleet as words;
use lifeboat_api::work::{
    ManifestCondition, ManifestResourceMeta, ManifestResourceStatus, ManifestWorkStatus, StatusFeedback,
};
use lifeboat_engine::conditions::{Conditions, Holds, find};

/// What became of one manifest.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The object is as it says.
    Applied,
    /// It was not applied.
    Failed {
        /// Why.
        message: String,
        /// Whether that is about fields to leave alone.
        ignore_fields: bool,
    },
    /// The cluster does not answer: what was said of it before stands.
    Blind(String),
    /// It is not known yet.
    Unknown,
}

/// The status of a work that lives.
pub fn of(world: &World, outcomes: &[Outcome], now: Timestamp) -> ManifestWorkStatus {
    let mut status = world.work.status.clone().unwrap_or_default();
    let set = Conditions { generation: world.work.metadata.generation, now };
    let before = status.resource_status.take().unwrap_or_default().manifests;
    let manifests: Vec<ManifestCondition> = world
        .items
        .iter()
        .zip(outcomes)
        .enumerate()
        .map(|(at, (item, outcome))| one(item, at, outcome, &before, set))
        .collect();
    work_applied(&mut status.conditions, &manifests, set);
    work_available(&mut status.conditions, &manifests, set);
    status.resource_status = Some(ManifestResourceStatus { manifests });
    status
}

/// The status of a work whose objects are being removed.
pub fn deleting(world: &World, now: Timestamp) -> ManifestWorkStatus {
    let mut status = world.work.status.clone().unwrap_or_default();
    let set = Conditions { generation: world.work.metadata.generation, now };
    set.set(
        &mut status.conditions,
        words::TYPE_WORK_DELETING,
        Holds::True,
        words::REASON_WORK_DELETING,
        "ManifestWork is being deleted",
    );
    status
}

fn one(
    item: &Item,
    at: usize,
    outcome: &Outcome,
    before: &[ManifestCondition],
    set: Conditions,
) -> ManifestCondition {
    let resource_meta = meta(item, at);
    let same = |known: &&ManifestCondition| {
        ManifestResourceMeta { ordinal: resource_meta.ordinal, ..known.resource_meta.clone() }
            == resource_meta
    };
    let known = before.iter().find(same).cloned().unwrap_or_default();
    let mut conditions = known.conditions;
    applied(&mut conditions, outcome, set);
    available(&mut conditions, item, set);
    let mut status_feedback = known.status_feedback;
    if let Seen::Present(object) = &item.seen {
        let read = feedback::read(object, &item.config);
        let values = (!read.values.is_empty()).then_some(StatusFeedback { values: read.values });
        if values != status_feedback {
            // Its time is that of the last change of a value.
            conditions.retain(|condition| condition.type_ != words::TYPE_STATUS_FEEDBACK);
        }
        status_feedback = values;
        set.set(&mut conditions, words::TYPE_STATUS_FEEDBACK, read.holds, read.reason, read.message);
        for rule in &item.config.condition_rules {
            let unknown = "rules for conditions are not evaluated by this agent; read the values back by feedback rules";
            let type_ = match rule.condition.as_str() {
                "" => words::TYPE_WORK_COMPLETE,
                type_ => type_,
            };
            set.set(&mut conditions, type_, Holds::Unknown, "ConditionRuleNotSupported", unknown);
        }
    }
    ManifestCondition { resource_meta, status_feedback, conditions }
}

fn applied(conditions: &mut Vec<Condition>, outcome: &Outcome, set: Conditions) {
    let (holds, reason, message) = match outcome {
        Outcome::Applied => {
            (Holds::True, words::REASON_APPLIED_MANIFEST_COMPLETE, "Apply manifest complete".to_owned())
        }
        Outcome::Failed { message, ignore_fields: true } => (
            Holds::False,
            words::REASON_IGNORE_FIELD_ERROR,
            format!("Failed to process ignoreFields: {message}"),
        ),
        Outcome::Failed { message, .. } => (
            Holds::False,
            words::REASON_APPLIED_MANIFEST_FAILED,
            format!("Failed to apply manifest: {message}"),
        ),
        // What holds for an older generation is not said of this one.
        Outcome::Blind(_) if said(conditions, set.generation) => return,
        Outcome::Blind(why) => {
            (Holds::False, words::REASON_APPLIED_MANIFEST_FAILED, format!("Failed to apply manifest: {why}"))
        }
        Outcome::Unknown => return,
    };
    set.set(conditions, words::TYPE_WORK_APPLIED, holds, reason, message);
}

fn said(conditions: &[Condition], generation: Option<i64>) -> bool {
    find(conditions, words::TYPE_WORK_APPLIED)
        .is_some_and(|condition| condition.observed_generation == generation)
}

fn available(conditions: &mut Vec<Condition>, item: &Item, set: Conditions) {
    let (holds, reason, message) = match (&item.target, &item.seen) {
        (None, _) => {
            (Holds::Unknown, words::REASON_INCOMPLETE_META, "Resource meta is incomplete".to_owned())
        }
        (Some(_), _) if !item.carried => {
            let why = "Failed to fetch resource: this agent does not look at kinds that it does not carry";
            (Holds::Unknown, words::REASON_FETCHING_FAILED, why.to_owned())
        }
        (Some(_), Seen::NotYet) => return,
        (Some(_), Seen::Failing(why)) => {
            (Holds::Unknown, words::REASON_FETCHING_FAILED, format!("Failed to fetch resource: {why}"))
        }
        (Some(_), Seen::Absent) => {
            (Holds::False, words::REASON_RESOURCE_NOT_AVAILABLE, "Resource is not available".to_owned())
        }
        (Some(_), Seen::Present(_)) => {
            (Holds::True, words::REASON_RESOURCE_AVAILABLE, "Resource is available".to_owned())
        }
    };
    set.set(conditions, words::TYPE_WORK_AVAILABLE, holds, reason, message);
}

fn work_applied(conditions: &mut Vec<Condition>, manifests: &[ManifestCondition], set: Conditions) {
    let mut said =
        manifests.iter().filter_map(|one| find(&one.conditions, words::TYPE_WORK_APPLIED)).peekable();
    if said.peek().is_none() {
        return;
    }
    let holds =
        |condition: &Condition| condition.status == "True" && condition.observed_generation == set.generation;
    let (holds, reason, message) = match said.find(|condition| !holds(condition)) {
        None => (Holds::True, words::REASON_APPLIED_WORK_COMPLETE, "Apply manifest work complete".to_owned()),
        Some(first) => {
            let why = first.message.strip_prefix("Failed to apply manifest: ").unwrap_or(&first.message);
            let message = format!("Failed to apply manifest work: {why}");
            (Holds::False, words::REASON_APPLIED_WORK_FAILED, message)
        }
    };
    set.set(conditions, words::TYPE_WORK_APPLIED, holds, reason, message);
}

fn work_available(conditions: &mut Vec<Condition>, manifests: &[ManifestCondition], set: Conditions) {
    let count = |wanted: Holds| {
        let said = manifests.iter().filter_map(|one| find(&one.conditions, words::TYPE_WORK_AVAILABLE));
        said.filter(|condition| condition.status == wanted.as_str()).count()
    };
    let all = manifests.len();
    let absent = count(Holds::False);
    // What nothing is said about is not known either.
    let unknown = all - absent - count(Holds::True);
    let (holds, reason, message) = match (absent, unknown) {
        (1.., _) => (
            Holds::False,
            words::REASON_RESOURCES_NOT_AVAILABLE,
            format!("{absent} of {all} resources are not available"),
        ),
        (0, 1..) => (
            Holds::Unknown,
            words::REASON_RESOURCES_UNKNOWN,
            format!("{unknown} of {all} resources have unknown status"),
        ),
        (0, 0) if all == 0 => {
            (Holds::Unknown, words::REASON_RESOURCES_UNKNOWN, "cannot get any available resource ".to_owned())
        }
        (0, 0) => (Holds::True, words::REASON_RESOURCES_AVAILABLE, "All resources are available".to_owned()),
    };
    set.set(conditions, words::TYPE_WORK_AVAILABLE, holds, reason, message);
}

/// Names the object of a manifest, as far as it can be told.
fn meta(item: &Item, at: usize) -> ManifestResourceMeta {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let ordinal = i32::try_from(at).unwrap_or(i32::MAX);
    let Ok(manifest) = &item.manifest else { return ManifestResourceMeta { ordinal, ..Default::default() } };
    let (resource, namespace) = match (&item.kind, &item.target) {
        (_, Some(target)) => (text(&target.kind.resource), text(&target.namespace)),
        (Found::Kind(kind), None) => (text(&kind.resource), text(&manifest.namespace)),
        _ => (None, text(&manifest.namespace)),
    };
    ManifestResourceMeta {
        ordinal,
        group: text(&manifest.group),
        version: text(&manifest.version),
        kind: text(&manifest.kind),
        resource,
        name: text(&manifest.name),
        namespace,
    }
}
