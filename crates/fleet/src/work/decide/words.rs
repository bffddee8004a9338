//! What can be done about a work, and what it can wait for.

use crate::cluster::kinds::Target;
use lifeboat_api::work::AppliedResource;
use lifeboat_engine::Level;
use std::fmt;

/// What can be done about a work. Objects are named, not carried: a manifest may be a secret, and effects are told to people.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Effect {
    /// Have the hub keep the work until its objects are gone.
    Hold,
    /// Begin the record of what is made.
    OpenRecord,
    /// Write down what was or is about to be made.
    Record {
        /// All entries.
        entries: Vec<EntryName>,
    },
    /// Make an object that does not exist.
    Make {
        /// The object.
        target: Target,
        /// The manifest that was decided on.
        hash: String,
    },
    /// Make an object as the manifest says, by replacing it.
    Replace {
        /// The object.
        target: Target,
        /// The manifest that was decided on.
        hash: String,
    },
    /// Make an object as the manifest says, by server-side apply.
    Apply {
        /// The object.
        target: Target,
        /// The manifest that was decided on.
        hash: String,
    },
    /// Delete an object that was made for this work.
    Delete {
        /// The object.
        target: Target,
        /// Which one of that name.
        uid: String,
    },
    /// End the record.
    DropRecord,
    /// Let the hub forget the work.
    Release,
}

/// An entry of the record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct EntryName {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Resource.
    pub resource: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Which one of that name; `None` while it is being made.
    pub uid: Option<String>,
}

impl From<&AppliedResource> for EntryName {
    fn from(entry: &AppliedResource) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            group: text(&entry.identifier.group),
            version: entry.version.clone(),
            resource: entry.identifier.resource.clone(),
            namespace: text(&entry.identifier.namespace),
            name: entry.identifier.name.clone(),
            uid: entry.uid.clone().filter(|uid| !uid.is_empty()),
        }
    }
}

impl EntryName {
    pub(super) fn of(target: &Target, uid: Option<String>) -> Self {
        Self {
            group: target.kind.group.clone(),
            version: target.kind.version.clone(),
            resource: target.kind.resource.clone(),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            uid,
        }
    }
}

/// What a work can wait for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Why {
    /// The hub's ManagedCluster of this name is another cluster.
    OtherCluster(String),
    /// The cluster's identity has not been seen yet.
    IdentityUnknown,
    /// The cluster has not told its kinds yet.
    KindsUnknown,
    /// These objects have not been looked at yet.
    Looking(Vec<String>),
    /// The cluster does not answer.
    ClusterSilent(String),
    /// The work wants nothing.
    NoManifests,
    /// These objects are being deleted.
    ObjectsGoing(Vec<String>),
    /// Namespaces that objects live in are missing or being deleted.
    NoNamespace(String),
    /// Some manifests were refused.
    Refused(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherCluster(id) => write!(
                f,
                "the hub knows another cluster ({id}) by this name; give this one a name of its own, or remove the claim id.k8s.io of the former"
            ),
            Self::IdentityUnknown => f.write_str("the cluster's namespace kube-system cannot be seen"),
            Self::KindsUnknown => f.write_str("the cluster has not told its kinds yet"),
            Self::Looking(objects) => write!(f, "looking at {}", objects.join(", ")),
            Self::ClusterSilent(why) => write!(f, "the cluster does not answer: {why}"),
            Self::NoManifests => f.write_str(
                "the work has no manifests; what was made for it stays until the work itself is deleted",
            ),
            Self::ObjectsGoing(objects) => {
                write!(f, "{} being deleted and still there; see their finalizers", objects.join(", "))
            }
            Self::NoNamespace(what) => f.write_str(what),
            Self::Refused(what) => write!(f, "manifests were refused: {what}"),
        }
    }
}

impl lifeboat_engine::Why for Why {
    fn event(&self) -> Option<Level> {
        matches!(self, Self::OtherCluster(_) | Self::Refused(_)).then_some(Level::Warning)
    }
}
