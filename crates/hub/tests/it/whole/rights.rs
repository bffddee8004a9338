//! What the manifests grant is what is used, and nothing beside it: an application is deployed, moved and let go by a hub and agents that act as the
//! accounts of their manifests, every request is noted, and what was granted and never asked for must stand in a list here, with a reason.

use crate::whole::fleet::{Person, Site, furnish, run_hub};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_apiserver::User;
use lifeboat_apiserver::fault::{Asked, Faults, RequestFault};
use lifeboat_fleet::access;
use lifeboat_testbed::{Cluster, Task};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Group, resource and verb.
type Right = (String, String, String);

/// Notes what is asked for.
#[derive(Default)]
struct Notes(Mutex<BTreeSet<Right>>);

impl Faults for Notes {
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        let path = asked.path;
        let resource = match path.subresource.as_str() {
            "" => path.resource.clone(),
            part => format!("{}/{part}", path.resource),
        };
        self.0.lock().insert((path.group.clone(), resource, asked.verb.as_str().to_owned()));
        RequestFault::None
    }
}

fn granted(name: &str) -> BTreeSet<Right> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(format!("{name}.yaml"));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(path).unwrap()).unwrap();
    let list = |rule: &Value, key: &str| -> Vec<String> {
        let all = rule[key].as_array().cloned().unwrap_or_default();
        all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
    };
    let roles = objects.iter().filter(|one| one["kind"] == "ClusterRole" || one["kind"] == "Role");
    let rules = roles.flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default());
    let mut all = BTreeSet::new();
    for rule in rules {
        for group in list(&rule, "apiGroups") {
            for resource in list(&rule, "resources") {
                for verb in list(&rule, "verbs") {
                    all.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    all
}

/// A client that acts as the account of a manifest and is noted.
async fn noted(cluster: &Cluster, name: &str, notes: &Arc<Notes>) -> kube::Client {
    // What the manifest gives is applied; the client of the account itself is not looked at.
    drop(cluster.account(name).await);
    let user = User::service_account("lifeboat-system", &format!("lifeboat-{name}"), "");
    kube::Client::new(cluster.server().service_as(user).with_faults(notes.clone()), "default")
}

/// Rights that this story does not need, each with the reason why somebody else does.
struct Beside {
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    #[expect(dead_code, reason = "it is written for people")]
    why: &'static str,
}

const fn beside(
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    why: &'static str,
) -> Beside {
    Beside { group, resources, verbs, why }
}

#[track_caller]
fn check(name: &str, notes: &Notes, beside: &[Beside]) {
    let (granted, mut used) = (granted(name), notes.0.lock().clone());
    // What is watched is listed first, by servers that do not send the list as a watch.
    let watched: Vec<Right> = used.iter().filter(|right| right.2 == "watch").cloned().collect();
    used.extend(watched.into_iter().map(|(group, resource, _)| (group, resource, "list".to_owned())));
    let mut spared = BTreeSet::new();
    for one in beside {
        for resource in one.resources {
            for verb in one.verbs {
                spared.insert((one.group.to_owned(), (*resource).to_owned(), (*verb).to_owned()));
            }
        }
    }
    let unused: Vec<&Right> = granted.difference(&used).filter(|right| !spared.contains(*right)).collect();
    assert!(unused.is_empty(), "deploy/{name}.yaml grants what nobody uses: {unused:#?}");
    let idle: Vec<&Right> = spared.difference(&granted).collect();
    assert!(idle.is_empty(), "these need no reason, for deploy/{name}.yaml does not grant them: {idle:#?}");
}

const GIVEN: &str = "given to agents, and nobody can give away what he has not";
const AGAIN: &str = "read again after a write that came too late";
const RAMEN: &str = "what another hub left behind is removed";
const RULES: &str = "applications that are placed by a PlacementRule";
const OTHERS: &str = "carried for clusters with other storage, or for other hubs";

const HUB: &[Beside] = &[
    beside("work.open-cluster-management.io", &["manifestworks/status"], &["update", "patch"], GIVEN),
    beside("view.open-cluster-management.io", &["managedclusterviews/status"], &["update", "patch"], GIVEN),
    beside("cluster.open-cluster-management.io", &["managedclusters/status"], &["patch"], GIVEN),
    beside("cluster.open-cluster-management.io", &["managedclusters"], &["get"], GIVEN),
    beside("coordination.k8s.io", &["leases"], &["get", "update"], GIVEN),
    beside("", &["events"], &["create", "patch"], GIVEN),
    beside("events.k8s.io", &["events"], &["patch"], "what is told again is counted"),
    beside("", &["namespaces"], &["patch"], "a namespace that was there before its cluster is marked"),
    beside("", &["secrets"], &["create"], "movers get a key where anything is copied"),
    beside("ramendr.openshift.io", &["drclusters", "drpolicies"], &["get"], AGAIN),
    beside("cluster.open-cluster-management.io", &["placements"], &["get"], AGAIN),
    beside("view.open-cluster-management.io", &["managedclusterviews"], &["get", "patch"], AGAIN),
    beside(
        "argoproj.io",
        &["applicationsets"],
        &["list"],
        "hubs that deploy by Argo CD; this one does not have the kind",
    ),
    beside("apps.open-cluster-management.io", &["placementrules"], &["patch", "delete"], RULES),
    beside("apps.open-cluster-management.io", &["placementrules/status"], &["patch"], RULES),
    beside(
        "policy.open-cluster-management.io",
        &["policies", "placementbindings"],
        &["get", "delete"],
        RAMEN,
    ),
    beside(
        "rbac.authorization.k8s.io",
        &["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
        &["update"],
        "rights that somebody changed by hand are put right",
    ),
];

const AGENT: &[Beside] = &[
    beside(
        "ramendr.openshift.io",
        &["maintenancemodes", "protectedvolumereplicationgrouplists", "recipes"],
        &["get", "list", "watch", "create", "update", "patch", "delete"],
        OTHERS,
    ),
    beside(
        "csiaddons.openshift.io",
        &["networkfences"],
        &["get", "list", "watch", "create", "update", "patch", "delete"],
        OTHERS,
    ),
    beside("csiaddons.openshift.io", &["networkfenceclasses"], &["get", "list", "watch"], OTHERS),
    beside("storage.k8s.io", &["storageclasses"], &["get", "list", "watch"], OTHERS),
    beside("snapshot.storage.k8s.io", &["volumesnapshotclasses"], &["get", "list", "watch"], OTHERS),
    beside(
        "groupsnapshot.storage.k8s.io",
        &["volumegroupsnapshotclasses"],
        &["get", "list", "watch"],
        OTHERS,
    ),
    beside(
        "replication.storage.openshift.io",
        &["volumereplicationclasses", "volumegroupreplicationclasses"],
        &["get", "list", "watch"],
        OTHERS,
    ),
    beside(
        "ramendr.openshift.io",
        &["volumereplicationgroups", "drclusterconfigs"],
        &["get", "patch"],
        AGAIN,
    ),
    beside(
        "ramendr.openshift.io",
        &["drclusterconfigs"],
        &["update", "delete"],
        "when policies change, and when a DRCluster goes",
    ),
    beside(
        "",
        &["namespaces"],
        &["update", "patch", "get", "delete"],
        "hubs change and remove what they made",
    ),
    beside(
        "",
        &["configmaps", "secrets"],
        &["get", "update", "patch", "delete"],
        "hubs change and remove what they made",
    ),
    beside("work.open-cluster-management.io", &["appliedmanifestworks"], &["get"], AGAIN),
    beside(
        "work.open-cluster-management.io",
        &["appliedmanifestworks"],
        &["update"],
        "a record that another agent held is freed",
    ),
    beside("coordination.k8s.io", &["leases"], &["get", "create", "update"], "of several agents, one works"),
];

#[tokio::test(start_paused = true)]
async fn nothing_is_granted_that_nobody_uses() {
    let hub = Cluster::embedded();
    let folder = tempfile::tempdir().unwrap();
    let (mut east, mut west) =
        (Site::new("east", Cluster::embedded()), Site::new("west", Cluster::embedded()));
    furnish(&hub, [&east, &west], folder.path()).await;
    let (above, below, beyond): (Arc<Notes>, Arc<Notes>, Arc<Notes>) = Default::default();
    let _hub = Task::spawn(run_hub(noted(&hub, "hub", &above).await, hub.clock()));
    for site in [&mut east, &mut west] {
        let user = User::new(&access::user(site.name), &[&access::group(site.name)]);
        let up = kube::Client::new(hub.server().service_as(user).with_faults(beyond.clone()), "default");
        let down = noted(&site.cluster, "agent", &below).await;
        site.start(up, down).await;
    }
    let person = Person::of(&hub);
    person.pair().await;
    person.protect().await;
    person.is("Deployed", "Completed").await;
    person.ask(json!({ "action": "Failover", "failoverCluster": "west" })).await;
    person.is("FailedOver", "Completed").await;
    person.ask(json!({ "action": "Relocate", "preferredCluster": "east" })).await;
    person.is("Relocated", "Completed").await;
    person.drpcs.delete("web", &DeleteParams::default()).await.unwrap();
    person.gone().await;
    // A cluster that is turned away loses its rights.
    let managed: Api<ManagedCluster> = Api::all(hub.client());
    let patch = Patch::Merge(json!({ "spec": { "hubAcceptsClient": false } }));
    managed.patch("west", &PatchParams::default(), &patch).await.unwrap();
    let bindings: Api<k8s_openapi::api::rbac::v1::RoleBinding> = Api::namespaced(hub.client(), "west");
    let name = access::of("west").role_binding.metadata.name.unwrap();
    hub.until(&bindings, &name, |binding| binding.is_none()).await;
    check("hub", &above, HUB);
    check("agent", &below, AGENT);
}
