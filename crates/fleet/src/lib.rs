//! Carries intent to clusters and observations back.
//!
//! ```text
//!            HUB, namespace "east"                          CLUSTER east
//!   ManifestWork ─────────▶ work ───────────────▶ objects, and AppliedManifestWork: what was made
//!   ManagedClusterView ◀─── view ◀── sight ◀───── whatever is looked at, by watches
//!   ManagedCluster, Lease ◀ member ◀──────────── kube-system: it is there, and it is this one
//!            ▲
//!           hub: lets clusters in, gives them their namespace, and says which are silent
//! ```
//!
//! [`agent`] is the agent of one managed cluster. It has two clients: one of the hub, which may touch only the namespace that has the
//! cluster's name, and one of the cluster. [`availability`] is the hub's own part. Names, conditions and deletion are those of
//! Open Cluster Management's registration and work agents and of the view controller, so that either side can be theirs.
//!
//! It knows nothing of disaster recovery: what it carries is a matter of [`Allowed`].

pub mod access;
mod agent;
pub mod allowed;
mod cluster;
pub mod hub;
pub mod member;
pub mod view;
pub mod work;

pub use agent::{Agent, AgentSettings, Running, agent};
pub use allowed::Allowed;
pub use cluster::ground::Standing;
pub use cluster::kinds::{Found, Kind, Target};
pub use cluster::sight::Seen;
pub use hub::availability;
