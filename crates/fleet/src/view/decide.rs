//! Every rule about views: which object is meant, and what is told about it.

use crate::allowed::Allowed;
use crate::cluster::ground::Standing;
use crate::cluster::kinds::{Found, Kinds, Target};
use crate::cluster::sight::Seen;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::DynamicObject;
use lifeboat_api::annotations;
use lifeboat_api::conditions::fleet as words;
use lifeboat_api::view::{ManagedClusterView, ManagedClusterViewStatus, ViewScope};
use lifeboat_engine::Decision;
use lifeboat_engine::conditions::{Conditions, Holds, find};
use std::fmt;
use std::sync::Arc;

/// The world of one view.
#[derive(Debug, Clone)]
pub struct World {
    /// The view.
    pub view: Arc<ManagedClusterView>,
    /// The object that it means.
    pub meant: Meant,
    /// What is seen of it.
    pub seen: Seen,
    /// Whether this is the cluster that the hub means.
    pub standing: Standing,
}

/// Which object a view means.
#[derive(Debug, Clone, PartialEq)]
pub enum Meant {
    /// This one.
    Object(Target),
    /// The cluster has not told its kinds yet.
    Unclear,
    /// None: the reason and the words of the condition.
    Nothing(&'static str, String),
}

/// Views do nothing to the cluster.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub enum Effect {}

/// What a view can wait for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum Why {
    /// The hub's ManagedCluster of this name is another cluster.
    OtherCluster(String),
    /// The cluster's identity has not been seen yet.
    IdentityUnknown,
    /// The cluster has not told its kinds yet.
    KindsUnknown,
    /// The object has not been looked at yet.
    Looking(String),
    /// The cluster does not answer.
    ClusterSilent(String),
    /// The view does not name an object that can be shown.
    NothingMeant(String),
    /// The object does not exist.
    Absent(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherCluster(id) => write!(f, "the hub knows another cluster ({id}) by this name"),
            Self::IdentityUnknown => f.write_str("the cluster's namespace kube-system cannot be seen"),
            Self::KindsUnknown => f.write_str("the cluster has not told its kinds yet"),
            Self::Looking(object) => write!(f, "looking at {object}"),
            Self::ClusterSilent(why) => write!(f, "the cluster does not answer: {why}"),
            Self::NothingMeant(why) => write!(f, "the view cannot be served: {why}"),
            Self::Absent(object) => write!(f, "{object} does not exist"),
        }
    }
}

impl lifeboat_engine::Why for Why {}

/// Which object a scope means, given the kinds of the cluster.
pub fn meant(scope: Option<&ViewScope>, kinds: &Kinds, allowed: &Allowed) -> Meant {
    let scope = scope.cloned().unwrap_or_default();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let nothing =
        |reason, why: String| Meant::Nothing(reason, format!("failed to get resource with err: {why}"));
    let (resource, kind, version) = (text(&scope.resource), text(&scope.kind), text(&scope.version));
    if text(&scope.name).is_empty() {
        return nothing(words::REASON_VIEW_NAME_INVALID, "invalid resource name".to_owned());
    }
    if resource.is_empty() && (kind.is_empty() || version.is_empty()) {
        return nothing(words::REASON_VIEW_TYPE_INVALID, "invalid resource type".to_owned());
    }
    let found = match resource.is_empty() {
        true => kinds.kind(&text(&scope.api_group), &version, &kind),
        false => kinds.named(&resource),
    };
    let kind = match found {
        Found::Kind(kind) => kind,
        Found::Unclear => return Meant::Unclear,
        Found::None if resource.is_empty() => {
            let group = text(&scope.api_group);
            let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
            let why = format!("no matches for kind {kind:?} in version {api_version:?}");
            return nothing(words::REASON_VIEW_GVK_INVALID, why);
        }
        Found::None => {
            let why = format!("the server doesn't have a resource type {resource:?}");
            return nothing(words::REASON_VIEW_TYPE_INVALID, why);
        }
    };
    if !allowed.shows(&kind.group, &kind.resource) {
        return Meant::Nothing(words::REASON_VIEW_TYPE_INVALID, "viewing secrets is not allowed".to_owned());
    }
    let namespace = if kind.namespaced { text(&scope.namespace) } else { String::new() };
    if kind.namespaced && namespace.is_empty() {
        let why = format!("an object of kind {} is in a namespace, and the view names none", kind.kind);
        return nothing(words::REASON_VIEW_GET_RESOURCE_FAILED, why);
    }
    Meant::Object(Target { kind, namespace, name: text(&scope.name) })
}

type Decided = Decision<Effect, Why, ManagedClusterViewStatus>;

/// Decides what a view shows.
pub fn decide(world: &World, now: Timestamp) -> Decided {
    match &world.standing {
        Standing::Meant => {}
        Standing::Unknown => return Decision::wait(Why::IdentityUnknown),
        Standing::Other(id) => return Decision::wait(Why::OtherCluster(id.clone())),
    }
    let target = match &world.meant {
        Meant::Unclear => return Decision::wait(Why::KindsUnknown),
        Meant::Nothing(reason, message) => {
            let status = refused(world, reason, message.clone(), None, now);
            return Decision::wait(Why::NothingMeant(message.clone())).showing(status);
        }
        Meant::Object(target) => target,
    };
    match &world.seen {
        Seen::NotYet => Decision::wait(Why::Looking(target.to_string())),
        Seen::Failing(why) => {
            let message = format!("failed to get resource with err: {why}");
            let status = refused(world, words::REASON_VIEW_GET_RESOURCE_FAILED, message, None, now);
            Decision::wait(Why::ClusterSilent(why.clone())).showing(status)
        }
        Seen::Absent => {
            let message = format!(
                "failed to get resource with err: {} {:?} not found",
                target.kind.qualified(),
                target.name
            );
            let seen = Some("not found".to_owned());
            let status = refused(world, words::REASON_VIEW_GET_RESOURCE_FAILED, message, seen, now);
            Decision::wait(Why::Absent(target.to_string())).showing(status)
        }
        Seen::Present(object) => Decision::settled().showing(read(world, object, now)),
    }
}

/// The object could not be read: the condition says so, and the last result stays, as it does with the peer. `seen` is what was
/// seen, where something was.
fn refused(
    world: &World,
    reason: &str,
    message: String,
    seen: Option<String>,
    now: Timestamp,
) -> ManagedClusterViewStatus {
    let mut status = world.view.status.clone().unwrap_or_default();
    // Peers' views do not say which generation a condition speaks of, but ours can.
    let set = Conditions { generation: world.view.metadata.generation, now };
    set.set(&mut status.conditions, words::TYPE_VIEW_PROCESSING, Holds::False, reason, message);
    if let Some(seen) = seen {
        observed(world, &mut status, seen, set);
    }
    status
}

fn read(world: &World, object: &DynamicObject, now: Timestamp) -> ManagedClusterViewStatus {
    let mut status = world.view.status.clone().unwrap_or_default();
    let set = Conditions { generation: world.view.metadata.generation, now };
    let message = "Watching resources successfully";
    let type_ = words::TYPE_VIEW_PROCESSING;
    set.set(&mut status.conditions, type_, Holds::True, words::REASON_VIEW_GET_RESOURCE, message);
    let version = object.metadata.resource_version.as_deref().unwrap_or_default();
    let uid = object.metadata.uid.as_deref().unwrap_or_default();
    // What the hub stores may be spelled otherwise than what was sent; the version tells whether it is the same.
    let shown = status.result.as_ref().map(|shown| &shown.0["metadata"]);
    if !shown.is_some_and(|shown| shown["resourceVersion"] == version && shown["uid"] == uid) {
        status.result = serde_json::to_value(object).ok().map(RawExtension);
    }
    observed(world, &mut status, format!("resourceVersion {version} of uid {uid}"), set);
    status
}

/// Says when what is shown was seen, to a hub that wants to know.
fn observed(world: &World, status: &mut ManagedClusterViewStatus, seen: String, set: Conditions) {
    let type_ = words::TYPE_VIEW_OBSERVED;
    let notes = world.view.metadata.annotations.as_ref();
    if notes.and_then(|notes| notes.get(annotations::TELL_OBSERVED)).is_none_or(|asks| asks != "true") {
        status.conditions.retain(|condition| condition.type_ != type_);
        return;
    }
    if find(&status.conditions, type_).is_some_and(|known| known.message == seen) {
        return;
    }
    // A new one, so that its time is that of what was seen.
    status.conditions.retain(|condition| condition.type_ != type_);
    set.set(&mut status.conditions, type_, Holds::True, words::REASON_VIEW_SEEN, seen);
}
