//! What an agent may do on the hub: read its works and views and write their status, renew its lease, and see and describe its own
//! ManagedCluster. Nothing in any other namespace, and nothing else in its own.
//!
//! The agent is known to the hub by a group that has the cluster's name in it, as OCM's agents are.

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::api::ObjectMeta;
use lifeboat_api::conditions::fleet as words;
use lifeboat_api::{cluster, labels, view, work};

/// The group that the agent of a cluster belongs to on the hub.
pub fn group(cluster: &str) -> String {
    format!("system:open-cluster-management:{cluster}")
}

/// The user that the agent of a cluster is on the hub, where certificates are made for it.
pub fn user(cluster: &str) -> String {
    format!("system:open-cluster-management:{cluster}:lifeboat")
}

/// The rights of one agent on the hub.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// What it may do in the cluster's namespace.
    pub role: Role,
    /// Gives it that.
    pub role_binding: RoleBinding,
    /// What it may do with its ManagedCluster.
    pub cluster_role: ClusterRole,
    /// Gives it that.
    pub cluster_role_binding: ClusterRoleBinding,
}

/// The rights of the agent of a cluster.
pub fn of(cluster: &str) -> Access {
    let local = format!("open-cluster-management:managedcluster:{cluster}:lifeboat");
    let wide = format!("open-cluster-management:managedcluster:{cluster}");
    let refers = |kind: &str, name: &str| RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
    };
    let subjects = || {
        Some(vec![Subject {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "Group".to_owned(),
            name: group(cluster),
            namespace: None,
        }])
    };
    Access {
        role: Role { metadata: named(cluster, &local, Some(cluster)), rules: Some(in_namespace()) },
        role_binding: RoleBinding {
            metadata: named(cluster, &local, Some(cluster)),
            role_ref: refers("Role", &local),
            subjects: subjects(),
        },
        cluster_role: ClusterRole {
            metadata: named(cluster, &wide, None),
            rules: Some(of_cluster(cluster)),
            aggregation_rule: None,
        },
        cluster_role_binding: ClusterRoleBinding {
            metadata: named(cluster, &wide, None),
            role_ref: refers("ClusterRole", &wide),
            subjects: subjects(),
        },
    }
}

fn named(cluster: &str, name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: Some([(labels::CLUSTER_NAME.to_owned(), cluster.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

fn rule(group: &str, resources: &[&str], names: &[&str], verbs: &[&str]) -> PolicyRule {
    let list = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(list(resources)),
        resource_names: (!names.is_empty()).then(|| list(names)),
        verbs: list(verbs),
        non_resource_urls: None,
    }
}

fn in_namespace() -> Vec<PolicyRule> {
    vec![
        // Works: the finalizer is a patch of the work itself.
        rule(work::GROUP, &["manifestworks"], &[], &["get", "list", "watch", "patch"]),
        rule(work::GROUP, &["manifestworks/status"], &[], &["update", "patch"]),
        rule(view::GROUP, &["managedclusterviews"], &[], &["get", "list", "watch"]),
        rule(view::GROUP, &["managedclusterviews/status"], &[], &["update", "patch"]),
        rule(
            "coordination.k8s.io",
            &["leases"],
            &[words::CLUSTER_LEASE],
            &["get", "list", "watch", "update"],
        ),
        rule("events.k8s.io", &["events"], &[], &["create", "patch"]),
        rule("", &["events"], &[], &["create", "patch"]),
    ]
}

fn of_cluster(cluster: &str) -> Vec<PolicyRule> {
    vec![
        rule(cluster::GROUP, &["managedclusters"], &[cluster], &["get", "list", "watch"]),
        rule(cluster::GROUP, &["managedclusters/status"], &[cluster], &["update", "patch"]),
    ]
}
