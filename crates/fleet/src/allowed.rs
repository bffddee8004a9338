//! Which kinds an agent carries, and whether views may show secrets. A hub that was broken into should not own its clusters: what is not on
//! the list is refused, and the manifest's condition says so.

use std::collections::BTreeSet;

/// What Lifeboat's hub sends, as `Kind.group`; the core group has no name.
pub const CARRIED: &[&str] = &[
    "ConfigMap",
    "Namespace",
    "Secret",
    "DRClusterConfig.ramendr.openshift.io",
    "MaintenanceMode.ramendr.openshift.io",
    "ProtectedVolumeReplicationGroupList.ramendr.openshift.io",
    "Recipe.ramendr.openshift.io",
    "VolumeReplicationGroup.ramendr.openshift.io",
    "NetworkFence.csiaddons.openshift.io",
];

/// What Ramen's hub operator sends beside that: roles for the agent, and its own operator by way of OLM.
pub const CARRIED_FOR_RAMEN: &[&str] = &[
    "ClusterRole.rbac.authorization.k8s.io",
    "ClusterRoleBinding.rbac.authorization.k8s.io",
    "Role.rbac.authorization.k8s.io",
    "RoleBinding.rbac.authorization.k8s.io",
    "OperatorGroup.operators.coreos.com",
    "Subscription.operators.coreos.com",
];

/// The list of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    manifests: BTreeSet<String>,
    secrets_in_views: bool,
}

impl Default for Allowed {
    fn default() -> Self {
        Self::nothing().and(CARRIED.iter().copied())
    }
}

impl Allowed {
    /// Carries nothing.
    pub fn nothing() -> Self {
        Self { manifests: BTreeSet::new(), secrets_in_views: false }
    }

    /// Carries what Ramen's hub operator sends, too.
    #[must_use]
    pub fn for_ramen(self) -> Self {
        self.and(CARRIED_FOR_RAMEN.iter().copied())
    }

    /// Carries these kinds too, each written as `Kind.group`; `*` is every kind.
    #[must_use]
    pub fn and<'a>(mut self, kinds: impl IntoIterator<Item = &'a str>) -> Self {
        self.manifests.extend(kinds.into_iter().map(str::to_owned));
        self
    }

    /// Lets views show Secrets, which they otherwise never read.
    #[must_use]
    pub fn secrets_in_views(mut self) -> Self {
        self.secrets_in_views = true;
        self
    }

    /// Whether manifests of this kind are carried.
    pub fn carries(&self, group: &str, kind: &str) -> bool {
        self.manifests.contains("*") || self.manifests.contains(&named(group, kind))
    }

    /// Whether views may show objects of this resource.
    pub fn shows(&self, group: &str, resource: &str) -> bool {
        self.secrets_in_views || !(group.is_empty() && resource == "secrets")
    }
}

/// A kind as the list has it.
pub fn named(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

/// API groups whose kinds have few objects, so that one watch of a whole kind costs less than one for each object looked at.
const SMALL_GROUPS: &[&str] = &[
    "csiaddons.openshift.io",
    "ramendr.openshift.io",
    "replication.storage.openshift.io",
    "snapshot.storage.k8s.io",
    "storage.k8s.io",
    "volsync.backube",
];

/// Whether one watch serves all objects of a kind. The others are watched one by one: nobody wants every Secret of a
/// cluster in this process for the sake of one.
pub(crate) fn watched_whole(group: &str, kind: &str) -> bool {
    (group.is_empty() && kind == "Namespace") || SMALL_GROUPS.contains(&group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_carried() {
        let check = |allowed: &Allowed, group: &str, kind: &str, carried: bool| {
            assert_eq!(allowed.carries(group, kind), carried, "{kind}.{group}");
        };
        let ours = Allowed::default();
        check(&ours, "", "Namespace", true);
        check(&ours, "ramendr.openshift.io", "VolumeReplicationGroup", true);
        check(&ours, "", "VolumeReplicationGroup", false);
        check(&ours, "rbac.authorization.k8s.io", "ClusterRole", false);
        check(&ours, "", "Pod", false);
        check(&ours.clone().for_ramen(), "rbac.authorization.k8s.io", "ClusterRole", true);
        check(&ours.and(["Pod"]), "", "Pod", true);
        check(&Allowed::nothing(), "", "Namespace", false);
        check(&Allowed::nothing().and(["*"]), "apps", "Deployment", true);
    }

    #[test]
    fn views_show_all_but_secrets() {
        assert!(Allowed::default().shows("", "pods"));
        assert!(!Allowed::default().shows("", "secrets"));
        assert!(Allowed::default().shows("example.com", "secrets"));
        assert!(Allowed::default().secrets_in_views().shows("", "secrets"));
    }
}
