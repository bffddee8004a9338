//! What a cluster has to offer, as the hub sees it: one view of its DRClusterConfig, and one of each class that the survey there names. Pure.

use crate::policy::peers::{ClassFacts, Classes};
use crate::views::{self, Seen};
use crate::words::{Words as _, pairs};
use crate::works::types;
use lifeboat_api::conditions::drcluster;
use lifeboat_api::ramen::{DRClusterConfig, DRClusterConfigStatus};
use lifeboat_api::view::{ManagedClusterView, ViewScope};
use lifeboat_api::{annotations, csiaddons, labels, replication, snapshot};
use lifeboat_engine::{ObjectKey, conditions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A kind of class that a survey names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// StorageClass.
    Storage,
    /// VolumeSnapshotClass.
    Snapshot,
    /// VolumeGroupSnapshotClass.
    GroupSnapshot,
    /// VolumeReplicationClass.
    Replication,
    /// VolumeGroupReplicationClass.
    GroupReplication,
    /// NetworkFenceClass.
    Fence,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Storage,
        Self::Snapshot,
        Self::GroupSnapshot,
        Self::Replication,
        Self::GroupReplication,
        Self::Fence,
    ];

    /// The word in the names of views.
    fn word(self) -> &'static str {
        match self {
            Self::Storage => "sc",
            Self::Snapshot => "vsc",
            Self::GroupSnapshot => "vgsc",
            Self::Replication => "vrc",
            Self::GroupReplication => "vgrc",
            Self::Fence => "nfc",
        }
    }

    /// The label of views.
    fn label(self) -> &'static str {
        match self {
            Self::Storage => labels::VIEW_STORAGE_CLASS,
            Self::Snapshot => labels::VIEW_VOLUME_SNAPSHOT_CLASS,
            Self::GroupSnapshot => labels::VIEW_VOLUME_GROUP_SNAPSHOT_CLASS,
            Self::Replication => labels::VIEW_VOLUME_REPLICATION_CLASS,
            Self::GroupReplication => labels::VIEW_VOLUME_GROUP_REPLICATION_CLASS,
            Self::Fence => labels::VIEW_NETWORK_FENCE_CLASS,
        }
    }

    /// Group, version and kind on the cluster.
    fn api(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Storage => ("storage.k8s.io", "v1", "StorageClass"),
            Self::Snapshot => (snapshot::GROUP, "v1", "VolumeSnapshotClass"),
            Self::GroupSnapshot => ("groupsnapshot.storage.k8s.io", "v1beta1", "VolumeGroupSnapshotClass"),
            Self::Replication => (replication::GROUP, "v1alpha1", "VolumeReplicationClass"),
            Self::GroupReplication => (replication::GROUP, "v1alpha1", "VolumeGroupReplicationClass"),
            Self::Fence => (csiaddons::GROUP, "v1alpha1", "NetworkFenceClass"),
        }
    }

    fn named(self, survey: &DRClusterConfigStatus) -> &[String] {
        match self {
            Self::Storage => &survey.storage_classes,
            Self::Snapshot => &survey.volume_snapshot_classes,
            Self::GroupSnapshot => &survey.volume_group_snapshot_classes,
            Self::Replication => &survey.volume_replication_classes,
            Self::GroupReplication => &survey.volume_group_replication_classes,
            Self::Fence => &survey.network_fence_classes,
        }
    }
}

/// What is known about a cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Survey {
    /// Nothing yet, and why.
    NotYet(String),
    /// What it told.
    Known(Box<Known>),
}

/// What a cluster told.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// Its survey.
    pub told: DRClusterConfigStatus,
    /// Its classes, as far as they were seen.
    pub classes: Classes,
    /// Classes that the survey names and that have not been seen yet.
    pub unseen: Vec<String>,
}

impl Known {
    /// The stores that cannot be used from the cluster, by its own word, and why; a cluster of others says it of all its stores at once, which is
    /// told under an empty name.
    pub fn out_of_reach(&self) -> BTreeMap<String, String> {
        let reachable = conditions::find(&self.told.conditions, drcluster::TYPE_REACHABLE);
        match reachable.filter(|told| told.status == "False") {
            None => BTreeMap::new(),
            Some(told) if self.told.store_failures.is_empty() => {
                [(String::new(), told.message.clone())].into()
            }
            Some(_) => self.told.store_failures.clone(),
        }
    }
}

/// Which stores a cluster does not reach, as a sentence; nothing where it reaches all.
pub fn unreached(cluster: &str, stores: &BTreeMap<String, String>) -> Option<String> {
    let each = stores.iter().map(|(store, why)| match store.as_str() {
        "" => format!("cluster {cluster} does not reach its stores: {why}"),
        store => format!("cluster {cluster} does not reach the store {store}: {why}"),
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join("; "))
}

impl Survey {
    /// What the cluster told, if it has.
    pub fn known(&self) -> Option<&Known> {
        match self {
            Self::Known(known) => Some(known),
            Self::NotYet(_) => None,
        }
    }

    /// What it told, if nothing is missing from it; else what is.
    ///
    /// # Errors
    /// What is missing, as a sentence.
    pub fn complete(&self) -> Result<&Known, String> {
        match self {
            Self::NotYet(why) => Err(why.clone()),
            Self::Known(known) if known.unseen.is_empty() => Ok(known),
            // One sentence for as long as it lasts, however many are still to come.
            Self::Known(known) => {
                let failed: Vec<&str> =
                    known.unseen.iter().filter(|one| one.contains('(')).map(String::as_str).collect();
                Err(match failed.is_empty() {
                    true => "has not shown all classes of its survey yet".to_owned(),
                    false => format!("cannot show {}", failed.join(", ")),
                })
            }
        }
    }
}

/// The view of a cluster's DRClusterConfig, which is named like the cluster.
pub fn config_view(cluster: &str) -> ManagedClusterView {
    let notes = pairs([(annotations::DRCLUSTER_NAME, cluster), (annotations::DRPOLICY, cluster)]);
    let name = views::name(cluster, "", types::CLUSTER_CONFIG);
    views::view::<DRClusterConfig>(cluster, name, &ObjectKey::cluster_wide(cluster), notes)
}

/// The view of one class.
fn class_view(cluster: &str, kind: Kind, class: &str) -> ManagedClusterView {
    let notes = pairs([(annotations::DRCLUSTER_NAME, cluster), (annotations::DRPOLICY, cluster)]);
    let name = views::name(class, "", kind.word());
    let mut view = views::view::<DRClusterConfig>(cluster, name, &ObjectKey::cluster_wide(class), notes);
    let (group, version, kind_word) = kind.api();
    view.spec.scope = Some(ViewScope {
        api_group: Some(group.to_owned()),
        version: Some(version.to_owned()),
        kind: Some(kind_word.to_owned()),
        name: Some(class.to_owned()),
        ..ViewScope::default()
    });
    view.metadata.labels.get_or_insert_default().insert(kind.label().to_owned(), String::new());
    view
}

/// The views of all classes that a survey names.
pub fn class_views(cluster: &str, survey: &DRClusterConfigStatus) -> Vec<ManagedClusterView> {
    let of = |kind: Kind| kind.named(survey).iter().map(move |class| class_view(cluster, kind, class));
    Kind::ALL.into_iter().flat_map(of).collect()
}

/// Whether a view shows a class.
pub fn shows_class(view: &ManagedClusterView) -> bool {
    Kind::ALL.into_iter().any(|kind| view.label(kind.label()).is_some())
}

/// Reads what a cluster told; `view` finds a view of this cluster by name.
pub fn read(cluster: &str, view: impl Fn(&str) -> Option<Arc<ManagedClusterView>>) -> Survey {
    let config = match views::seen::<DRClusterConfig>(
        view(&views::name(cluster, "", types::CLUSTER_CONFIG)).as_deref(),
    ) {
        Seen::Found(config) => config,
        Seen::NotYet => return Survey::NotYet("has not shown its DRClusterConfig yet".to_owned()),
        Seen::Absent => return Survey::NotYet("has no DRClusterConfig yet".to_owned()),
        Seen::Failed(why) => return Survey::NotYet(format!("cannot show its DRClusterConfig: {why}")),
    };
    let told = config.status.clone().unwrap_or_default();
    match conditions::find(&told.conditions, drcluster::TYPE_PROCESSED) {
        Some(processed) if processed.status == "True" => {}
        Some(processed) => {
            return Survey::NotYet(format!("has not finished its survey: {}", processed.message));
        }
        None => return Survey::NotYet("has not made its survey yet".to_owned()),
    }
    let mut known = Known { told, ..Known::default() };
    known.classes.cluster_id.clone_from(&config.spec.cluster_id);
    for kind in Kind::ALL {
        for class in kind.named(&known.told) {
            let shown = view(&views::name(class, "", kind.word()));
            match views::seen::<Value>(shown.as_deref()) {
                Seen::Found(value) => {
                    let facts = ClassFacts::of(&value);
                    match kind {
                        Kind::Storage => known.classes.storage.push(facts),
                        Kind::Snapshot => known.classes.snapshots.push(facts),
                        Kind::GroupSnapshot => known.classes.group_snapshots.push(facts),
                        Kind::Replication => known.classes.replication.push(facts),
                        Kind::GroupReplication => known.classes.group_replication.push(facts),
                        Kind::Fence => known.classes.fences.push(facts),
                    }
                }
                // The survey is about to say so too.
                Seen::Absent => {}
                Seen::NotYet => known.unseen.push(format!("{} {class}", kind.api().2)),
                // Which version of group snapshots a cluster has differs; without them there are simply none.
                Seen::Failed(_) if kind == Kind::GroupSnapshot => {}
                Seen::Failed(why) => known.unseen.push(format!("{} {class} ({why})", kind.api().2)),
            }
        }
    }
    Survey::Known(Box::new(known))
}
