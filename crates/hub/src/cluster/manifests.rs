//! What is sent to a cluster: roles for the fleet's agent, the operator's configuration, keys to stores, its DRClusterConfig, fences and
//! maintenance modes. Names are Ramen's. Pure.

use super::settings::{CLUSTER_CONFIG_MAP, CONFIG_KEY, Config};
use super::world::{Mode, World};
use crate::views;
use crate::words::{Words as _, pairs};
use crate::works::{self, types};
use lifeboat_api::csiaddons::{FenceSecret, FenceState, NetworkFence, NetworkFenceSpec};
use lifeboat_api::ramen::{
    DRClusterConfig, DRClusterConfigSpec, MMode, MaintenanceMode, MaintenanceModeSpec,
};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::{
    DeleteOption, DeletePropagation, ManifestWork, ResourceIdentifier, SelectivelyOrphan,
};
use lifeboat_api::{annotations, labels, ramen};
use lifeboat_engine::ObjectKey;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The work with roles for the fleet's agent.
pub const ROLES_WORK: &str = "ramen-dr-cluster";
/// The work with the operator's configuration.
pub const OPERATOR_WORK: &str = "ramen-dr-cluster-config";
/// The work with the keys to stores.
pub const STORES_WORK: &str = "ramen-dr-cluster-s3-secrets";
/// The work with the DRClusterConfig.
pub const CONFIG_WORK: &str = "drcconfig-mw";
const FENCE: &str = "network-fence";

fn notes(cluster: &str) -> BTreeMap<String, String> {
    pairs([(annotations::DRCLUSTER_NAME, cluster)])
}

fn ours() -> Value {
    json!({ labels::CREATED_BY_RAMEN: labels::CREATED_BY_RAMEN_VALUE })
}

/// A role that lets the fleet's agent handle one kind.
fn role(word: &str, group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {
            "name": format!("open-cluster-management:klusterlet-work-sa:agent:{word}-edit"),
            "labels": { labels::AGGREGATE_TO_WORK: "true", labels::CREATED_BY_RAMEN: labels::CREATED_BY_RAMEN_VALUE },
        },
        "rules": [{ "apiGroups": [group], "resources": [resource], "verbs": verbs }],
    })
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// Roles that let OCM's agent handle our kinds. Ours carries its own list of kinds and takes no roles from a hub.
pub fn roles(cluster: &str) -> ManifestWork {
    const EDIT: &[&str] = &["create", "get", "list", "update", "delete"];
    let roles = [
        role("volrepgroup", ramen::GROUP, "volumereplicationgroups", EDIT),
        role("mmode", ramen::GROUP, "maintenancemodes", EDIT),
        role("drclusterconfig", ramen::GROUP, "drclusterconfigs", EDIT),
        role(
            "networkfence",
            lifeboat_api::csiaddons::GROUP,
            "networkfences",
            &["create", "get", "list", "update", "delete", "watch"],
        ),
        role("recipe", ramen::GROUP, "recipes", &["create", "get", "list", "update"]),
    ];
    works::work(cluster, ROLES_WORK.to_owned(), notes(cluster), roles)
}

/// Namespaces and the operator's configuration; nothing where people see to that themselves.
pub fn operator(world: &World, config: &Config) -> Option<ManifestWork> {
    let mut spaces = Vec::new();
    if config.carries_config || config.carries_secrets {
        spaces.push(config.cluster_namespace.clone());
    }
    if config.carries_config {
        spaces.extend(config.ops_namespace.clone());
    }
    if spaces.is_empty() {
        return None;
    }
    let mut manifests: Vec<Value> = spaces.iter().map(|name| namespace(name)).collect();
    if config.carries_config {
        manifests.push(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": CLUSTER_CONFIG_MAP, "namespace": config.cluster_namespace, "labels": ours() },
            "data": { CONFIG_KEY: config.for_cluster(&world.stores()) },
        }));
    }
    let mut work = works::work(world.name(), OPERATOR_WORK.to_owned(), notes(world.name()), manifests);
    // A namespace that others live in outlives what we put there.
    let rules = spaces.into_iter().map(|name| ResourceIdentifier {
        resource: "namespaces".to_owned(),
        name,
        ..ResourceIdentifier::default()
    });
    work.spec.delete_option = Some(DeleteOption {
        propagation_policy: Some(DeletePropagation::SelectivelyOrphan),
        selectively_orphan: Some(SelectivelyOrphan { orphaning_rules: rules.collect() }),
        ..DeleteOption::default()
    });
    Some(work)
}

/// Which secrets of stores in which versions a cluster should have; empty where none.
pub fn versions(world: &World, config: &Config) -> String {
    let wanted = world.stores();
    let known = wanted.iter().filter(|store| config.profiles.contains_key(*store));
    let carried = known.filter_map(|store| Some(format!("{store}={}", world.secrets.get(store)?.as_ref()?)));
    carried.collect::<Vec<_>>().join(",")
}

/// The work with the keys to stores; `secrets` are whole Secrets as the hub has them, by the name they get.
pub fn stores(
    cluster: &str,
    config: &Config,
    versions: &str,
    secrets: &BTreeMap<String, Value>,
) -> ManifestWork {
    let manifests = secrets.iter().map(|(name, data)| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": { "name": name, "namespace": config.cluster_namespace, "labels": ours() },
            "data": data,
        })
    });
    let notes = pairs([(annotations::DRCLUSTER_NAME, cluster), (annotations::CARRIED_VERSIONS, versions)]);
    works::work(cluster, STORES_WORK.to_owned(), notes, manifests)
}

/// The DRClusterConfig of a cluster.
pub fn config(world: &World, id: &str) -> ManifestWork {
    let schedules: std::collections::BTreeSet<&String> = world
        .policies
        .iter()
        .filter(|policy| !policy.going && !policy.interval.is_empty())
        .map(|policy| &policy.interval)
        .collect();
    let mut config = DRClusterConfig::new(
        world.name(),
        DRClusterConfigSpec {
            cluster_id: id.to_owned(),
            replication_schedules: schedules.into_iter().cloned().collect(),
        },
    );
    config.metadata.labels = Some(pairs([(labels::CREATED_BY_RAMEN, labels::CREATED_BY_RAMEN_VALUE)]));
    works::work(world.name(), CONFIG_WORK.to_owned(), notes(world.name()), [works::manifest(&config)])
}

/// How one fence is made: through a class of the peer, or through what the DRCluster itself says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Means {
    /// A NetworkFenceClass.
    Class(String),
    /// Driver, secret and identity of the storage, from annotations.
    Named {
        /// The CSI driver.
        driver: String,
        /// Name of its secret.
        secret: String,
        /// Namespace of its secret.
        namespace: String,
        /// The storage's cluster id.
        storage: String,
    },
}

/// A fence that cuts a cluster off.
pub fn fence(world: &World, means: &Means, state: FenceState) -> NetworkFence {
    let name = world.name();
    let mut spec = NetworkFenceSpec {
        fence_state: state,
        cidrs: world.cluster.spec.cidrs.clone(),
        ..NetworkFenceSpec::default()
    };
    let name = match means {
        Means::Class(class) => {
            spec.network_fence_class_name = Some(class.clone());
            format!("{FENCE}-{class}-{name}")
        }
        Means::Named { driver, secret, namespace, storage } => {
            spec.driver = Some(driver.clone());
            spec.secret =
                Some(FenceSecret { name: Some(secret.clone()), namespace: Some(namespace.clone()) });
            spec.parameters = pairs([("clusterID", storage)]);
            format!("{FENCE}-{name}")
        }
    };
    let mut fence = NetworkFence::new(&name, spec);
    fence.metadata.labels = Some(pairs([(labels::CREATED_BY_RAMEN, labels::CREATED_BY_RAMEN_VALUE)]));
    fence
}

/// The work that carries a fence to the peer.
pub fn fence_work(cluster: &str, peer: &str, fence: &NetworkFence) -> ManifestWork {
    let of = match &fence.spec.network_fence_class_name {
        Some(class) => format!("{cluster}-{class}"),
        None => cluster.to_owned(),
    };
    let name = works::name(&of, peer, types::NETWORK_FENCE);
    let mut work = works::work(peer, name, notes(cluster), [works::manifest(fence)]);
    let marks = work.metadata.labels.get_or_insert_default();
    marks.insert(labels::APP.to_owned(), labels::APP_NETWORK_FENCE.to_owned());
    work
}

/// The view of a fence on the peer.
pub fn fence_view(cluster: &str, peer: &str, fence: &str) -> ManagedClusterView {
    let name = views::name(fence, "", types::NETWORK_FENCE);
    views::view::<NetworkFence>(peer, name, &ObjectKey::cluster_wide(fence), notes(cluster))
}

/// Whether a work carries a fence for this cluster.
pub fn is_fence(work: &ManifestWork) -> bool {
    work.label(labels::APP) == Some(labels::APP_NETWORK_FENCE)
}

/// Whether a view shows a fence.
pub fn shows_fence(view: &ManagedClusterView) -> bool {
    view.spec.scope.as_ref().is_some_and(|scope| scope.kind.as_deref() == Some("NetworkFence"))
}

/// The work that prepares a storage for a failover.
pub fn mode_work(cluster: &str, mode: &Mode) -> ManifestWork {
    let spec = MaintenanceModeSpec {
        storage_provisioner: mode.provisioner.clone(),
        target_id: Some(mode.target.clone()),
        modes: vec![MMode::Failover],
    };
    let mut asked = MaintenanceMode::new(&mode.target, spec);
    asked.metadata.labels = Some(pairs([(labels::CREATED_BY_RAMEN, labels::CREATED_BY_RAMEN_VALUE)]));
    let name = works::name(&mode.target, "", types::MAINTENANCE_MODE);
    let mut work = works::work(cluster, name, notes(cluster), [works::manifest(&asked)]);
    work.metadata.labels.get_or_insert_default().insert(labels::MAINTENANCE_MODES.to_owned(), String::new());
    work
}

/// The view of a maintenance mode.
pub fn mode_view(cluster: &str, target: &str) -> ManagedClusterView {
    let name = views::name(target, "", types::MAINTENANCE_MODE);
    let mut view =
        views::view::<MaintenanceMode>(cluster, name, &ObjectKey::cluster_wide(target), notes(cluster));
    view.metadata.labels.get_or_insert_default().insert(labels::MAINTENANCE_MODES.to_owned(), String::new());
    view
}
