//! ManagedClusterViews: what is on a managed cluster, as its agent last told, and whether that is still true. Pure, but for [`ask`],
//! [`stop_asking`] and [`Pulse`], which listens to the clusters' leases.
//!
//! A view alone does not say when it was seen: a dead cluster's last word stays in it. Freshness is the cluster's: where the agent's lease is renewed
//! and the ManagedCluster is available, every view of that agent is current. An agent of ours adds the condition `Observed` with the time at which it
//! saw what the view holds; others do not, and are believed as long as their cluster is available.

use crate::recall::Recall;
use crate::words::{Words as _, pairs};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ObjectMeta;
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::conditions::fleet;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::view::{ManagedClusterView, ManagedClusterViewSpec, ViewScope};
use lifeboat_api::{annotations, labels};
use lifeboat_engine::conditions::find;
use lifeboat_engine::{Change, Clock, EffectError, ObjectKey, Objects};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Name of the lease that an agent renews in its cluster's namespace.
pub const LEASE: &str = "managed-cluster-lease";
/// How many lease durations a cluster may be silent where the lease does not say how long it is good for, as OCM has it.
const GRACE: i64 = 5;

/// Name of a view: `<name>-<namespace>-<type>-mcv`, without the namespace where there is none.
pub fn name(name: &str, namespace: &str, type_: &str) -> String {
    match namespace.is_empty() {
        true => format!("{name}-{type_}-mcv"),
        false => format!("{name}-{namespace}-{type_}-mcv"),
    }
}

/// A view that is to stand in the namespace of `cluster`, for one object of a kind.
pub fn view<K: kube::Resource<DynamicType = ()>>(
    cluster: &str,
    name: String,
    object: &ObjectKey,
    notes: BTreeMap<String, String>,
) -> ManagedClusterView {
    let named = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let scope = ViewScope {
        api_group: named(&K::group(&())),
        version: named(&K::version(&())),
        kind: named(&K::kind(&())),
        resource: None,
        name: named(&object.name),
        namespace: named(&object.namespace),
        update_interval_seconds: None,
    };
    ManagedClusterView {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(cluster.to_owned()),
            labels: Some(pairs([(labels::CREATED_BY_RAMEN, labels::CREATED_BY_RAMEN_VALUE)])),
            annotations: Some(asking(notes)),
            ..ObjectMeta::default()
        },
        spec: ManagedClusterViewSpec { scope: Some(scope) },
        status: None,
    }
}

/// Our agents tell when they saw what a view shows, where they are asked.
fn asking(mut notes: BTreeMap<String, String>) -> BTreeMap<String, String> {
    notes.insert(annotations::TELL_OBSERVED.to_owned(), "true".to_owned());
    notes
}

/// What a view holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen<K> {
    /// There is no view, or nobody has answered it.
    NotYet,
    /// The object is not there.
    Absent,
    /// The object, as it was seen.
    Found(Arc<K>),
    /// It could not be looked at, and why.
    Failed(String),
}

impl<K> Seen<K> {
    /// The object.
    pub fn found(&self) -> Option<&Arc<K>> {
        match self {
            Self::Found(object) => Some(object),
            _ => None,
        }
    }

    /// Whether it is known if the object is there.
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Absent | Self::Found(_))
    }
}

/// The groups that views show, each read once.
pub type Shown = Recall<ManagedClusterView, Seen<VolumeReplicationGroup>>;

/// Reads a view.
pub fn seen<K: DeserializeOwned>(view: Option<&ManagedClusterView>) -> Seen<K> {
    let Some(status) = view.and_then(|view| view.status.as_ref()) else { return Seen::NotYet };
    let Some(processing) = find(&status.conditions, fleet::TYPE_VIEW_PROCESSING) else { return Seen::NotYet };
    if processing.status != "True" {
        // OCM's agent gives the reader's own words, which end so where the object does not exist.
        let absent = processing.reason == fleet::REASON_VIEW_GET_RESOURCE_FAILED
            && processing.message.trim_end().ends_with("not found");
        return if absent { Seen::Absent } else { Seen::Failed(processing.message.clone()) };
    }
    match &status.result {
        Some(result) => match serde_json::from_value(result.0.clone()) {
            Ok(object) => Seen::Found(Arc::new(object)),
            Err(error) => Seen::Failed(format!("what was seen cannot be read: {error}")),
        },
        None => Seen::NotYet,
    }
}

/// When our agent saw what a view holds; other agents do not tell.
pub fn seen_at(view: &ManagedClusterView) -> Option<Timestamp> {
    let observed = find(&view.status.as_ref()?.conditions, fleet::TYPE_VIEW_OBSERVED)?;
    (observed.reason == fleet::REASON_VIEW_SEEN).then_some(observed.last_transition_time.0)
}

/// Whether what is known of a cluster is true now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Its agent has been heard of lately: what its views hold is current.
    Fresh,
    /// It has not been heard of; what its views hold was true once.
    Silent(String),
}

impl Reach {
    /// Whether what is known is current.
    pub fn is_fresh(&self) -> bool {
        *self == Self::Fresh
    }
}

/// Judges a cluster: its ManagedCluster must be available, and its lease, where the hub has seen one, renewed in time by the hub's own clock. A lease
/// that was only listed says nothing: the cluster may have died while the hub was down.
pub fn reach(name: &str, cluster: Option<&ManagedCluster>, pulse: Option<&Beat>) -> Reach {
    let Some(cluster) = cluster else {
        return Reach::Silent(format!("cluster {name} has not joined this hub"));
    };
    if cluster.is_going() {
        return Reach::Silent(format!("cluster {name} is being removed from this hub"));
    }
    let conditions = cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
    match find(conditions, fleet::TYPE_CLUSTER_AVAILABLE) {
        Some(available) if available.status == "True" => {}
        Some(available) => {
            let since = available.last_transition_time.0;
            let other = find(conditions, fleet::TYPE_SAME_CLUSTER).filter(|same| same.status == "False");
            let other = other.map(|same| format!("; {}", same.message)).unwrap_or_default();
            return Reach::Silent(format!("cluster {name} is not available since {since}{other}"));
        }
        None => return Reach::Silent(format!("cluster {name} has never been available")),
    }
    let Some(beat) = pulse else { return Reach::Fresh };
    match (beat.renewed, beat.is_in_time(Some(cluster))) {
        (true, true) => Reach::Fresh,
        (true, false) => Reach::Silent(format!("cluster {name} has not been heard of since {}", beat.heard)),
        (false, _) => Reach::Silent(format!("cluster {name} has not been heard of since this hub started")),
    }
}

/// Since when a cluster stands in the place of another of its name, by its own clock.
pub fn rebuilt(cluster: &ManagedCluster) -> Option<Timestamp> {
    let same = find(&cluster.status.as_ref()?.conditions, fleet::TYPE_SAME_CLUSTER)?;
    (same.status == "True" && same.reason == fleet::REASON_REBUILT).then_some(same.last_transition_time.0)
}

/// Whether it is not known yet if a cluster is heard of: its lease was listed when the hub started, and may still be renewed in time.
pub fn is_unheard(cluster: Option<&ManagedCluster>, pulse: Option<&Beat>) -> bool {
    let believed = pulse.cloned().map(Beat::believed);
    pulse.is_some_and(|beat| !beat.renewed) && reach("", cluster, believed.as_ref()).is_fresh()
}

/// The last sign of life of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// When the hub noticed it, by the hub's clock: the cluster's own may be wrong.
    pub heard: Timestamp,
    /// How long ago that was, by a clock that nobody sets.
    pub age: SignedDuration,
    /// Whether the lease was renewed since the hub started; one that was only listed may be of a dead cluster.
    pub renewed: bool,
    /// How far the cluster's clock is ahead of the hub's, at least; nothing where that was never measured.
    pub ahead: Option<SignedDuration>,
    /// For how many seconds it is good, where the lease says so.
    pub good_for: Option<i64>,
    /// How many seconds of silence it ended; one that has begun counts.
    pub silence: i64,
}

impl Beat {
    /// The same, believed though it was only listed: for whoever looks once and decides nothing.
    #[must_use]
    pub fn believed(self) -> Self {
        Self { renewed: true, ..self }
    }

    /// Whether the cluster may still be called fresh by it.
    fn is_in_time(&self, cluster: Option<&ManagedCluster>) -> bool {
        self.age <= SignedDuration::from_secs(self.good_for(cluster))
    }

    /// For how much longer it is good.
    pub fn left(&self, cluster: Option<&ManagedCluster>) -> SignedDuration {
        SignedDuration::from_secs(self.good_for(cluster)) - self.age
    }

    /// For how many seconds it is good: as its lease says, or as long as its cluster may be silent.
    fn good_for(&self, cluster: Option<&ManagedCluster>) -> i64 {
        let usual = cluster.and_then(|cluster| cluster.spec.lease_duration_seconds);
        let usual = i64::from(usual.filter(|seconds| *seconds > 0).unwrap_or(60));
        self.good_for.unwrap_or(usual * GRACE)
    }

    /// Whether it ended a silence so long that [`reach`] has taken the cluster for lost: whoever waits for it is told by nothing else.
    pub fn is_revival(&self, cluster: Option<&ManagedCluster>) -> bool {
        self.silence > self.good_for(cluster)
    }
}

/// How many renewals the measure of a cluster's clock is taken from: the quickest of them tells most.
const MEASURED: usize = 16;

/// What was heard of one cluster.
#[derive(Default)]
struct Heard {
    wall: Timestamp,
    steady: Timestamp,
    good_for: Option<i64>,
    silence: i64,
    renewals: u64,
    ahead: VecDeque<SignedDuration>,
}

/// Listens to the leases of all clusters; clones share what they heard.
#[derive(Clone)]
pub struct Pulse {
    beats: Arc<Mutex<BTreeMap<String, Heard>>>,
    clock: Clock,
}

impl Pulse {
    /// Listens from now on.
    pub fn of(leases: &Objects<Lease>, clock: Clock) -> Self {
        let pulse = Self { beats: Arc::default(), clock };
        let hearing = pulse.clone();
        leases.listen(move |change| hearing.hear(change));
        pulse
    }

    fn hear(&self, change: &Change<Lease>) {
        let lease = change.latest();
        if lease.name() != LEASE {
            return;
        }
        let renewed = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
        let mut beats = self.beats.lock();
        match (&change.old, &change.new) {
            (_, None) => drop(beats.remove(lease.space())),
            (Some(old), Some(new)) if renewed(old) == renewed(new) => {}
            (old, Some(new)) => {
                let (wall, steady) = (self.clock.now(), self.clock.steady());
                let known = beats
                    .entry(new.space().to_owned())
                    .or_insert_with(|| Heard { steady, ..Heard::default() });
                let silence = steady.duration_since(known.steady);
                known.silence = silence.as_secs() + i64::from(silence.subsec_nanos() > 0);
                (known.wall, known.steady) = (wall, steady);
                known.good_for =
                    new.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).map(i64::from);
                // One that is listed was written at a time that nobody here saw.
                if old.is_some() {
                    known.renewals += 1;
                    known.ahead.extend(renewed(new).map(|time| time.0.duration_since(wall)));
                    while known.ahead.len() > MEASURED {
                        known.ahead.pop_front();
                    }
                }
            }
        }
    }

    /// Whether the last sign of life of a cluster ended a long silence, or was the first one.
    pub fn has_revived(&self, name: &str, cluster: Option<&ManagedCluster>) -> bool {
        let first = self.beats.lock().get(name).is_some_and(|heard| heard.renewals == 1);
        first || self.of_cluster(name).is_some_and(|beat| beat.is_revival(cluster))
    }

    /// The last sign of life of a cluster, where it has a lease.
    pub fn of_cluster(&self, name: &str) -> Option<Beat> {
        let beats = self.beats.lock();
        let heard = beats.get(name)?;
        Some(Beat {
            heard: heard.wall,
            age: self.clock.steady().duration_since(heard.steady),
            renewed: heard.renewals > 0,
            ahead: heard.ahead.iter().max().copied(),
            good_for: heard.good_for,
            silence: heard.silence,
        })
    }
}

/// Makes a view, or points it at what is wanted.
///
/// # Errors
/// Stale when it has changed meanwhile; the cache then has the new version.
pub async fn ask(
    views: &Objects<ManagedClusterView>,
    wanted: &ManagedClusterView,
) -> Result<(), EffectError> {
    let key = ObjectKey::of(wanted);
    let Some(known) = views.get(&key) else { return views.create(wanted).await.map(drop) };
    if asks(&known, wanted) {
        return Ok(());
    }
    let mut metadata = known.guard();
    metadata["annotations"] = serde_json::json!(wanted.metadata.annotations);
    metadata["labels"] = serde_json::json!(wanted.metadata.labels);
    let patch = serde_json::json!({ "metadata": metadata, "spec": wanted.spec });
    views.patch(&key, &kube::api::Patch::Merge(patch)).await.map(drop)
}

/// Whether a view asks for what is wanted, for whom it is wanted.
pub fn asks(known: &ManagedClusterView, wanted: &ManagedClusterView) -> bool {
    let same = |scope: &Option<ViewScope>| {
        scope.clone().map(|scope| ViewScope { update_interval_seconds: None, resource: None, ..scope })
    };
    let notes = wanted.metadata.annotations.iter().flatten();
    same(&known.spec.scope) == same(&wanted.spec.scope)
        && notes.into_iter().all(|(key, value)| known.note(key) == Some(value))
}

/// Deletes a view.
///
/// # Errors
/// Stale when it has changed meanwhile; the cache then has the new version.
pub async fn stop_asking(views: &Objects<ManagedClusterView>, key: &ObjectKey) -> Result<(), EffectError> {
    match views.get(key) {
        Some(known) if !known.is_going() => views.delete(&known).await,
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn cluster(available: &str) -> ManagedCluster {
        serde_json::from_value(json!({
            "metadata": { "name": "east" }, "spec": { "leaseDurationSeconds": 10 },
            "status": { "conditions": [{
                "type": fleet::TYPE_CLUSTER_AVAILABLE, "status": available, "reason": "r", "message": "",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            }] },
        }))
        .unwrap()
    }

    fn beat(heard: i64, now: i64, good_for: Option<i64>) -> Beat {
        let age = SignedDuration::from_secs(now - heard);
        Beat { heard: at(heard), age, renewed: true, ahead: None, good_for, silence: 0 }
    }

    #[test]
    fn a_lease_that_was_only_listed_is_no_sign_of_life() {
        let listed = |age: i64| Beat { renewed: false, ..beat(0, age, Some(3)) };
        let check = |cluster: &ManagedCluster, beat: &Beat, fresh: bool, unheard: bool| {
            assert_eq!(reach("east", Some(cluster), Some(beat)).is_fresh(), fresh, "{beat:?}");
            assert_eq!(is_unheard(Some(cluster), Some(beat)), unheard, "{beat:?}");
        };
        check(&cluster("True"), &listed(0), false, true);
        check(&cluster("True"), &listed(3), false, true);
        check(&cluster("True"), &listed(4), false, false);
        check(&cluster("Unknown"), &listed(0), false, false);
        check(&cluster("True"), &listed(0).believed(), true, false);
        check(&cluster("True"), &beat(0, 3, Some(3)), true, false);
    }

    #[test]
    fn a_cluster_is_believed_only_while_it_is_heard_of() {
        let check =
            |cluster: Option<ManagedCluster>, heard: Option<(i64, Option<i64>)>, now: i64, fresh: bool| {
                let beat = heard.map(|(heard, good_for)| beat(heard, now, good_for));
                let judged = reach("east", cluster.as_ref(), beat.as_ref());
                assert_eq!(judged.is_fresh(), fresh, "{judged:?}");
            };
        check(None, None, 0, false);
        check(Some(cluster("Unknown")), None, 0, false);
        check(Some(cluster("False")), Some((0, None)), 0, false);
        check(Some(cluster("True")), None, 10_000, true);
        check(Some(cluster("True")), Some((100, None)), 150, true);
        check(Some(cluster("True")), Some((100, None)), 151, false);
        check(Some(cluster("True")), Some((100, Some(3))), 103, true);
        check(Some(cluster("True")), Some((100, Some(3))), 104, false);
    }

    #[test]
    fn a_sign_of_life_is_news_where_the_cluster_was_taken_for_lost() {
        let check = |good_for: Option<i64>, silence: i64, news: bool| {
            let beat = Beat { silence, ..beat(0, 0, good_for) };
            assert_eq!(beat.is_revival(Some(&cluster("True"))), news, "{beat:?}");
            // Taken for lost a moment before it was heard of: the two agree.
            let before = Beat { age: SignedDuration::from_secs(silence), ..beat };
            assert_eq!(reach("east", Some(&cluster("True")), Some(&before)).is_fresh(), !news);
        };
        check(None, 0, false);
        check(None, 50, false);
        check(None, 51, true);
        check(Some(3), 3, false);
        check(Some(3), 4, true);
    }

    #[test]
    fn a_view_tells_apart_absent_failed_and_unanswered() {
        let check = |status: serde_json::Value, expected: fn(&Seen<ConfigMap>) -> bool| {
            let view: ManagedClusterView =
                serde_json::from_value(json!({ "metadata": {}, "spec": {}, "status": status })).unwrap();
            let read = seen::<ConfigMap>(Some(&view));
            assert!(expected(&read), "{read:?}");
        };
        let said = |status: &str, reason: &str, message: &str| {
            json!([{
                "type": "Processing", "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            }])
        };
        assert_eq!(seen::<ConfigMap>(None), Seen::NotYet);
        check(json!({}), |seen| *seen == Seen::NotYet);
        let found = said("True", fleet::REASON_VIEW_GET_RESOURCE, "Watching resources successfully");
        check(json!({ "conditions": found.clone() }), |seen| *seen == Seen::NotYet);
        check(json!({ "conditions": found, "result": { "metadata": { "name": "a" } } }), |seen| {
            seen.found().is_some_and(|map| map.name() == "a")
        });
        let failed = fleet::REASON_VIEW_GET_RESOURCE_FAILED;
        let gone = "failed to get resource with err: configmaps \"a\" not found";
        check(json!({ "conditions": said("False", failed, gone) }), |seen| *seen == Seen::Absent);
        check(json!({ "conditions": said("False", failed, "forbidden") }), |seen| {
            matches!(seen, Seen::Failed(_))
        });
        let unknown = "the server could not find the requested kind, not found";
        let invalid = said("False", fleet::REASON_VIEW_GVK_INVALID, unknown);
        check(json!({ "conditions": invalid }), |seen| matches!(seen, Seen::Failed(_)));
    }
}
