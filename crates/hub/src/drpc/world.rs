//! What a decision about a DRPlacementControl is made from: a plain snapshot, with names for what is asked of it all the time.

use crate::drpc::commission::{Commission, epoch_on};
use crate::drpc::stores::Books;
use crate::views::{Beat, Reach, Seen, is_unheard, reach, rebuilt};
use crate::words::Words as _;
use crate::works;
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::annotations;
use lifeboat_api::apps::PlacementRule;
use lifeboat_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use lifeboat_api::conditions::drpc::DECISION_RETAINED_FOR_FAILOVER;
use lifeboat_api::conditions::vrg;
use lifeboat_api::ramen::{
    DRCluster, DRPlacementControl, DRPlacementControlStatus, DRPolicy, DRState, ProtectedPvc,
    ReplicationState, VolumeReplicationGroup, VrgState,
};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::conditions::{find, holds};
use lifeboat_engine::{ObjectKey, Trouble};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All that a decision needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The object itself.
    pub drpc: Arc<DRPlacementControl>,
    /// The Placement of the name that it gives.
    pub placement: Option<Arc<Placement>>,
    /// The decisions of that Placement, in order of name.
    pub decisions: Vec<Arc<PlacementDecision>>,
    /// The PlacementRule of the name that it gives.
    pub rule: Option<Arc<PlacementRule>>,
    /// Its policy.
    pub policy: Option<Arc<DRPolicy>>,
    /// The clusters of the policy, and others that still have a work of ours.
    pub sites: BTreeMap<String, Site>,
    /// What the object stores said.
    pub books: Books,
    /// The last failure.
    pub trouble: Option<Trouble>,
    /// The fingerprint of the hub's key, where it is known.
    pub fleet: Option<String>,
    /// Whether it shall be found out now.
    pub fleet_wanted: bool,
}

/// What is known of one cluster.
#[derive(Debug, Clone)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// Its DRCluster.
    pub drcluster: Option<Arc<DRCluster>>,
    /// Its ManagedCluster.
    pub managed: Option<Arc<ManagedCluster>>,
    /// Its last sign of life, where it has a lease.
    pub beat: Option<Beat>,
    /// The work with the namespace.
    pub space_work: Option<Arc<ManifestWork>>,
    /// The work with the movers' key.
    pub key_work: Option<Arc<ManifestWork>>,
    /// The work with the group.
    pub work: Option<Arc<ManifestWork>>,
    /// The group in that work: what we want there.
    pub intent: Option<VolumeReplicationGroup>,
    /// The view of the group.
    pub view: Option<Arc<ManagedClusterView>>,
    /// The group as it was last seen there.
    pub seen: Seen<VolumeReplicationGroup>,
}

/// A cluster in the placement decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chosen {
    /// Its name.
    pub cluster: String,
    /// Whether the application is only kept there until the cluster has given up its role.
    pub retained: bool,
}

impl Chosen {
    /// The cluster where the application runs.
    pub fn home(cluster: &str) -> Self {
        Self { cluster: cluster.to_owned(), retained: false }
    }

    /// A cluster where the application is left until its group is secondary.
    pub fn retained(cluster: &str) -> Self {
        Self { cluster: cluster.to_owned(), retained: true }
    }
}

/// What is asked of a group, wherever it was read.
pub trait GroupWords {
    /// Whether it asks to be primary.
    fn is_primary(&self) -> bool;
    /// Whether it asks to be secondary.
    fn is_secondary(&self) -> bool;
    /// The role it has reached, if that is for what it asks now.
    fn state(&self) -> Option<&VrgState>;
    /// Whether a condition is true for what it asks now.
    fn says(&self, condition: &str) -> bool;
    /// Whether what it asks now has been taken up.
    fn is_observed(&self) -> bool;
    /// The highest epoch that it knows of.
    fn epoch(&self) -> i64;
    /// The claims that movers copy.
    fn copied(&self) -> impl Iterator<Item = &ProtectedPvc>;
    /// Whether it came back after a deletion that nobody ordered, without its PVCs: it waits for a user's choice.
    fn is_orphaned(&self) -> bool;
    /// Whether its deletion ends the protection.
    fn ends_protection(&self) -> bool;
}

impl GroupWords for VolumeReplicationGroup {
    fn is_primary(&self) -> bool {
        self.spec.replication_state == ReplicationState::Primary
    }

    fn is_secondary(&self) -> bool {
        self.spec.replication_state == ReplicationState::Secondary
    }

    fn state(&self) -> Option<&VrgState> {
        self.status.as_ref().filter(|_| self.is_observed())?.state.as_ref()
    }

    fn says(&self, condition: &str) -> bool {
        let conditions = self.status.as_ref().map_or(&[][..], |status| &status.conditions);
        holds(conditions, condition, self.metadata.generation)
    }

    fn is_observed(&self) -> bool {
        let observed = self.status.as_ref().and_then(|status| status.observed_generation);
        observed.is_some() && observed == self.metadata.generation
    }

    fn epoch(&self) -> i64 {
        let known = self.status.as_ref().and_then(|status| status.epoch).unwrap_or(0);
        epoch_on(self).max(known)
    }

    fn copied(&self) -> impl Iterator<Item = &ProtectedPvc> {
        let claims = self.status.iter().flat_map(|status| &status.protected_pvcs);
        claims.filter(|claim| claim.protected_by_vol_sync)
    }

    fn is_orphaned(&self) -> bool {
        let conditions = self.status.as_ref().map_or(&[][..], |status| &status.conditions);
        find(conditions, vrg::TYPE_CLUSTER_DATA_READY)
            .is_some_and(|one| one.status == "False" && one.reason == vrg::REASON_ORPHANED)
    }

    fn ends_protection(&self) -> bool {
        self.note(annotations::END_PROTECTION) == Some("true")
    }
}

impl Site {
    /// The same, with what its work and its view hold read out of them.
    #[must_use]
    pub fn read(self) -> Self {
        let intent = self.work.as_deref().and_then(works::read);
        let seen = crate::views::seen(self.view.as_deref());
        Self { intent, seen, ..self }
    }

    /// Whether what is known of it is true now.
    pub fn reach(&self, _: Timestamp) -> Reach {
        reach(&self.name, self.managed.as_deref(), self.beat.as_ref())
    }

    /// Whether it is not known yet if it is heard of, because the hub has just started.
    pub fn is_unheard(&self) -> bool {
        is_unheard(self.managed.as_deref(), self.beat.as_ref())
    }

    /// Whether it was not heard of in the life of this process: what the hub remembers of it may be of an older day.
    pub fn is_unproven(&self) -> bool {
        self.beat.as_ref().is_some_and(|beat| !beat.renewed) && !self.is_unheard()
    }

    /// Its identity, as the hub knows it.
    pub fn id(&self) -> Option<&str> {
        self.managed.as_ref()?.id()
    }

    /// How far its clock is ahead of the hub's, as far as that was measured.
    pub fn ahead(&self) -> SignedDuration {
        self.beat.as_ref().and_then(|beat| beat.ahead).unwrap_or_default()
    }

    /// Whether a copy of this time, by the hub's clock, went to a cluster that this one was built in the place of.
    pub fn is_rebuilt_since(&self, copied: Timestamp) -> bool {
        let rebuilt = self.managed.as_deref().and_then(rebuilt);
        rebuilt.is_some_and(|at| copied <= at - self.ahead())
    }

    /// Whether its work is on its way out, so that it cannot be changed any more.
    pub fn is_work_deleting(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.is_going())
    }

    /// Whether what is known of it is true now.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.reach(now).is_fresh()
    }

    /// The group as it is there now; nothing where the cluster is silent.
    pub fn group(&self, now: Timestamp) -> Option<&Arc<VolumeReplicationGroup>> {
        self.seen.found().filter(|_| self.is_fresh(now))
    }

    /// The group as it is there now, if it has been told of this epoch.
    pub fn group_at(&self, epoch: i64, now: Timestamp) -> Option<&Arc<VolumeReplicationGroup>> {
        self.group(now).filter(|group| epoch_on(&***group) == epoch)
    }

    /// Whether the cluster has said if it has a group.
    pub fn has_answered(&self, now: Timestamp) -> bool {
        self.seen.is_answer() && self.is_fresh(now)
    }

    /// Whether we want a primary there.
    pub fn is_meant_primary(&self) -> bool {
        self.intent.as_ref().is_some_and(GroupWords::is_primary)
    }

    /// Whether a work of ours is still there, or going.
    pub fn has_group_work(&self) -> bool {
        self.work.is_some()
    }

    /// The epoch in its work.
    pub fn intended_epoch(&self) -> i64 {
        self.intent.as_ref().map_or(0, epoch_on)
    }
}

impl World {
    /// Namespace and name of the object.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::of(&*self.drpc)
    }

    /// The status that is shown.
    pub fn shown(&self) -> DRPlacementControlStatus {
        self.drpc.status.clone().unwrap_or_default()
    }

    /// The phase that is shown.
    pub fn phase(&self) -> Option<DRState> {
        self.drpc.status.as_ref()?.phase.clone().filter(|phase| !phase.as_str().is_empty())
    }

    /// The commission on record.
    pub fn commission(&self) -> Option<Commission> {
        Commission::on(&*self.drpc)
    }

    /// Namespace of the application, and of its group, on the managed clusters.
    pub fn space(&self) -> &str {
        let noted = self.drpc.note(annotations::APP_NAMESPACE).filter(|space| !space.is_empty());
        noted.unwrap_or_else(|| self.drpc.space())
    }

    /// Where the group is on every cluster.
    pub fn group_key(&self) -> ObjectKey {
        ObjectKey::new(self.space(), self.drpc.name())
    }

    /// Name of the work with the group.
    pub fn group_work(&self) -> String {
        works::name(self.drpc.name(), self.space(), works::types::GROUP)
    }

    /// The clusters of the policy, in the policy's order.
    pub fn members(&self) -> Vec<&str> {
        let clusters = self.policy.iter().flat_map(|policy| &policy.spec.dr_clusters);
        clusters.map(String::as_str).collect()
    }

    /// A cluster.
    pub fn site(&self, name: &str) -> Option<&Site> {
        self.sites.get(name)
    }

    /// The other cluster of the policy.
    pub fn peer_of(&self, name: &str) -> Option<&Site> {
        let peer = self.members().into_iter().find(|member| *member != name)?;
        self.site(peer)
    }

    /// Where the application is placed now.
    pub fn chosen(&self) -> Vec<Chosen> {
        if let Some(rule) = self.rule.as_ref().filter(|_| self.placement.is_none()) {
            let decisions = rule.status.iter().flat_map(|status| &status.decisions);
            let named = decisions.filter_map(|decision| decision.cluster_name.as_deref());
            return named.map(Chosen::home).collect();
        }
        let decisions = self.decisions.iter().filter_map(|one| one.status.as_ref());
        let decisions = decisions.flat_map(|status| &status.decisions);
        let chosen = decisions.map(|decision| Chosen {
            cluster: decision.cluster_name.clone(),
            retained: decision.reason == DECISION_RETAINED_FOR_FAILOVER,
        });
        chosen.collect()
    }

    /// Whether the application runs on a cluster by its placement, other than for being kept there.
    pub fn is_placed(&self) -> bool {
        self.chosen().iter().any(|chosen| !chosen.retained)
    }

    /// The fleet of the application: the one that the user named, or that its groups were given first, or ours.
    pub fn fleet_of_groups(&self) -> Option<String> {
        let groups =
            self.sites.values().flat_map(|site| [site.seen.found().map(AsRef::as_ref), site.intent.as_ref()]);
        let known = groups.flatten().find_map(|group| group.note(annotations::FLEET)).map(str::to_owned);
        self.drpc.note(annotations::FLEET).map(str::to_owned).or(known).or_else(|| self.fleet.clone())
    }

    /// The highest epoch that anything we know of carries.
    pub fn highest_epoch(&self) -> i64 {
        let on_record = epoch_on(&*self.drpc);
        let status = self.drpc.status.as_ref().and_then(|status| status.epoch).unwrap_or(0);
        let seen = self.sites.values().filter_map(|site| site.seen.found().map(|group| group.epoch()));
        let meant = self.sites.values().map(Site::intended_epoch);
        let stored = self.books.reading.as_ref().map_or(0, |reading| reading.epoch);
        seen.chain(meant).fold(on_record.max(status).max(stored), i64::max)
    }

    /// What to do about a primary that has found no PVC. Nothing where it has, or where the user says that the application has none.
    pub fn no_claims(&self, primary: &VolumeReplicationGroup) -> Option<String> {
        let found = primary.status.as_ref().is_some_and(|status| !status.protected_pvcs.is_empty());
        if found || self.drpc.note(annotations::WITHOUT_CLAIMS) == Some("true") {
            return None;
        }
        Some(format!(
            "The VRG {} has found no PVC that matches pvcSelector. Label the PVCs so that they match. Or delete the DRPlacementControl (the application \
             keeps running) and create it again: pvcSelector cannot be changed. If the application has no PVC: kubectl annotate drplacementcontrol {} -n {} {}=true",
            self.group_key(),
            self.drpc.name(),
            self.drpc.space(),
            annotations::WITHOUT_CLAIMS
        ))
    }

    /// Whether storage is shared, so that a failed cluster must be fenced.
    pub fn is_metro(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| crate::policy::is_metro(policy))
    }
}
