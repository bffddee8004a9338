//! Many applications at once: what each costs in writes, and that a quiet fleet writes nothing but leases.

use crate::things::{
    accepted, definitions, group, group_scope, hub, is_done, make, namespace, serve, view, work,
};
use kube::api::{Api, ListParams, Patch, PatchParams};
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_apiserver::fault::{Asked, Faults};
use lifeboat_testbed::{Cluster, NotYet};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const APPLICATIONS: usize = 100;

/// Counts writes by resource.
#[derive(Default)]
struct Count(Mutex<BTreeMap<String, usize>>);

impl Faults for Count {
    fn on_answer(&self, asked: Asked<'_>, _code: u16) {
        if asked.verb.is_write() {
            let subresource = if asked.path.subresource.is_empty() { "" } else { "/status" };
            *self.0.lock().entry(format!("{}{subresource}", asked.path.resource)).or_default() += 1;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_fleet_writes_nothing_but_leases() {
    let (main, east) = (Cluster::embedded(), Cluster::embedded());
    main.install(&definitions()).await;
    east.install(&definitions()).await;
    make(&Api::all(main.client()), &accepted("east")).await;
    let (above, below) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let _hub = hub(&main);
    let _agent = serve(main.client_with(above.clone()), &east, east.client_with(below.clone()), "east");
    let works: Api<ManifestWork> = Api::namespaced(main.client(), "east");
    let views: Api<ManagedClusterView> = Api::namespaced(main.client(), "east");
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(main.client());
    main.until(&namespaces, "east", |namespace| namespace.is_some()).await;
    for number in 0..APPLICATIONS {
        let app = format!("app{number}");
        make(&works, &work("east", &app, &[namespace(&app), group(&app, "g", "primary")])).await;
        make(&views, &view("east", &app, group_scope(&app, "g"))).await;
    }
    main.eventually("every work is done and every view answered", || async {
        let done =
            works.list(&ListParams::default()).await?.items.iter().filter(|work| is_done(Some(work))).count();
        let shown = views.list(&ListParams::default()).await?.items;
        let shown = shown
            .iter()
            .filter(|view| view.status.as_ref().is_some_and(|status| status.result.is_some()))
            .count();
        match (done, shown) {
            (APPLICATIONS, APPLICATIONS) => Ok(()),
            other => Err(NotYet(format!("{other:?}"))),
        }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let (hub_writes, cluster_writes) = (above.0.lock().clone(), below.0.lock().clone());
    // A work costs two writes on the hub: it is held, and it is told. What was intended and then noted are the two of the record.
    assert_eq!(hub_writes["manifestworks"], APPLICATIONS, "{hub_writes:?}");
    assert_eq!(hub_writes["manifestworks/status"], APPLICATIONS, "{hub_writes:?}");
    assert!(hub_writes["managedclusterviews/status"] <= 2 * APPLICATIONS, "{hub_writes:?}");
    assert_eq!(cluster_writes["volumereplicationgroups"], APPLICATIONS, "{cluster_writes:?}");

    tokio::time::sleep(Duration::from_secs(30 * 60)).await;
    let mut since = above.0.lock().clone();
    assert!(since.remove("leases").unwrap() > hub_writes["leases"], "the lease is renewed");
    let mut then = hub_writes;
    then.remove("leases");
    assert_eq!((since, below.0.lock().clone()), (then, cluster_writes));

    let groups: Api<VolumeReplicationGroup> = Api::namespaced(east.client(), "app7");
    let status = Patch::Merge(json!({ "status": { "state": "Primary" } }));
    groups.patch_status("g", &PatchParams::default(), &status).await.unwrap();
    let began = tokio::time::Instant::now();
    let primary = |view: Option<&ManagedClusterView>| {
        let result = view.and_then(|view| view.status.as_ref()?.result.as_ref());
        result.is_some_and(|result| result.0["status"]["state"] == "Primary")
    };
    main.until(&views, "app7", primary).await;
    // Virtual time stands still while there is something to do: whoever waits for a timer shows.
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing on the way waits for a timer");
}
