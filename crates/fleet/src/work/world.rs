//! All that a decision about one work needs, as it is: the work, its manifests with what is seen of their objects, and the record of
//! what was made.

use super::manifest::Manifest;
use crate::cluster::ground::Standing;
use crate::cluster::kinds::{Found, Target};
use crate::cluster::sight::Seen;
use jiff::Timestamp;
use lifeboat_api::finalizers;
use lifeboat_api::work::{
    AppliedManifestWork, AppliedResource, DeletePropagation, ManifestConfig, ManifestWork, ManifestWorkSpec,
    ResourceIdentifier, UpdateStrategy, UpdateStrategyType,
};
use lifeboat_engine::Trouble;
use std::sync::Arc;

/// The world of one work.
#[derive(Debug, Clone)]
pub struct World {
    /// The work.
    pub work: Arc<ManifestWork>,
    /// Whether this is the cluster that the hub means.
    pub standing: Standing,
    /// Whether the cluster's kinds are known.
    pub kinds_known: bool,
    /// Its manifests, in their order.
    pub items: Vec<Item>,
    /// The record of what was made.
    pub record: Option<Arc<AppliedManifestWork>>,
    /// The entries of the record, with what is seen of them.
    pub recorded: Vec<Recorded>,
    /// The last failure of this work.
    pub trouble: Option<Trouble>,
}

/// One manifest and its object.
#[derive(Debug, Clone)]
pub struct Item {
    /// The manifest, or what is wrong with it.
    pub manifest: Result<Manifest, String>,
    /// Its kind on the cluster.
    pub kind: Found,
    /// Whether the agent carries this kind.
    pub carried: bool,
    /// The object, where it can be told.
    pub target: Option<Target>,
    /// What is seen of it.
    pub seen: Seen,
    /// What is seen of its namespace; present for cluster-wide kinds.
    pub home: Home,
    /// How it is to be treated.
    pub config: ManifestConfig,
    /// How the last try failed, if this very manifest was tried and refused.
    pub failure: Option<Failure>,
}

/// What is seen of the namespace that an object lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// It is there, or none is needed.
    There,
    /// It is being deleted.
    Going,
    /// It does not exist.
    Missing,
    /// Nobody has looked yet.
    Unknown,
}

/// A try that the API server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What was tried: the manifest's hash.
    pub hash: String,
    /// On which version of the object, empty where there was none.
    pub on: String,
    /// The server's words.
    pub message: String,
    /// Whether the words are about fields to leave alone.
    pub ignore_fields: bool,
    /// How often it was tried.
    pub tries: u32,
    /// When to try again though nothing has changed.
    pub again: Timestamp,
}

/// One entry of the record.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The entry.
    pub entry: AppliedResource,
    /// The object it is about: none if the cluster has no such kind, unclear if that cannot be told.
    pub target: Whereabouts,
    /// What is seen of it.
    pub seen: Seen,
}

/// The object of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whereabouts {
    /// This one.
    Target(Target),
    /// The cluster has no such kind.
    NoKind,
    /// The cluster could not be asked.
    Unclear,
}

impl World {
    /// Whether the work is being deleted.
    pub fn is_going(&self) -> bool {
        self.work.metadata.deletion_timestamp.is_some()
    }

    /// Whether the work waits for this agent before it goes.
    pub fn is_held(&self) -> bool {
        self.work.metadata.finalizers.iter().flatten().any(|name| name == finalizers::MANIFEST_WORK)
    }

    /// The uid of the record.
    pub fn record_uid(&self) -> &str {
        self.record.as_ref().and_then(|record| record.metadata.uid.as_deref()).unwrap_or_default()
    }

    /// The record's entry of an object.
    pub fn entry(&self, target: &Target) -> Option<&AppliedResource> {
        let wanted = target.identifier();
        self.recorded.iter().map(|recorded| &recorded.entry).find(|entry| entry.identifier == wanted)
    }
}

impl Item {
    /// The way to apply changes.
    pub fn strategy(&self) -> UpdateStrategy {
        let update = UpdateStrategy { type_: UpdateStrategyType::Update, server_side_apply: None };
        match self.config.update_strategy.clone() {
            Some(strategy) if strategy.type_.is_known() => strategy,
            _ => update,
        }
    }
}

/// How a manifest is to be treated: the first of each sort of rule among those that name it. A `*` in a name or namespace is any text.
pub fn config_of(spec: &ManifestWorkSpec, target: &Target) -> ManifestConfig {
    let identifier = target.identifier();
    let mut config = ManifestConfig { resource_identifier: identifier.clone(), ..ManifestConfig::default() };
    for row in spec.manifest_configs.iter().filter(|row| names(&row.resource_identifier, &identifier)) {
        if config.condition_rules.is_empty() {
            config.condition_rules.clone_from(&row.condition_rules);
        }
        if config.feedback_rules.is_empty() {
            config.feedback_rules.clone_from(&row.feedback_rules);
        }
        if config.update_strategy.is_none() {
            config.update_strategy.clone_from(&row.update_strategy);
        }
        config.feedback_scrape_type.clone_from(&row.feedback_scrape_type);
    }
    config
}

fn names(rule: &ResourceIdentifier, object: &ResourceIdentifier) -> bool {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    text(&rule.group) == text(&object.group)
        && rule.resource == object.resource
        && matches(&text(&rule.namespace), &text(&object.namespace))
        && matches(&rule.name, &object.name)
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|tail| {
            (0..=tail.len()).filter(|at| tail.is_char_boundary(*at)).any(|at| matches(rest, &tail[at..]))
        }),
    }
}

/// Whether an object goes when its work goes.
pub fn goes_with_work(spec: &ManifestWorkSpec, object: &ResourceIdentifier) -> bool {
    let Some(option) = &spec.delete_option else { return true };
    match &option.propagation_policy {
        None | Some(DeletePropagation::Foreground) => true,
        Some(DeletePropagation::SelectivelyOrphan) => {
            let rules = option.selectively_orphan.iter().flat_map(|rules| &rules.orphaning_rules);
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            !rules.into_iter().any(|rule| {
                text(&rule.group) == text(&object.group)
                    && rule.resource == object.resource
                    && rule.name == object.name
                    && text(&rule.namespace) == text(&object.namespace)
            })
        }
        // A word of a later version: what is not understood deletes nothing. An unset one is the default.
        Some(DeletePropagation::Other(word)) => word.is_empty(),
        Some(DeletePropagation::Orphan) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        let check = |pattern: &str, text: &str, met: bool| {
            assert_eq!(matches(pattern, text), met, "{pattern} {text}");
        };
        check("shop", "shop", true);
        check("shop", "shop-1", false);
        check("shop*", "shop-1", true);
        check("*", "", true);
        check("*-mw", "a-b-mw", true);
        check("a*c*e", "abcde", true);
        check("a*c*e", "abde", false);
        check("", "shop", false);
    }
}
