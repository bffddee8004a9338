//! Serves a cluster as it is: kinds that it lacks are not needed to start, and when one comes or goes everything is set up anew.

use crate::ledger::Ledger;
use crate::run::protector;
use crate::view::Setup;
use crate::world::Kinds;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, WatchParams};
use lifeboat_api::{csiaddons, multicluster, ramen, replication, snapshot, topolvm, volsync};
use lifeboat_engine::{Clock, Settings};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether kinds have come or gone, where nobody tells.
const KINDS_EVERY: Duration = Duration::from_secs(30);
/// How long a definition takes to be served.
const SERVED_AFTER: Duration = Duration::from_secs(1);
/// How soon a cluster that does not tell its kinds is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// Which optional kinds a cluster has at this moment.
pub async fn kinds(client: &kube::Client) -> Result<Kinds, kube::Error> {
    let group = async |version: &str, kind: &str| match client.list_api_group_resources(version).await {
        Ok(listed) => Ok(listed.resources.iter().any(|resource| resource.kind == kind)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    };
    let version = |group: &str, version: &str| format!("{group}/{version}");
    Ok(Kinds {
        replication: group(&version(replication::GROUP, "v1alpha1"), "VolumeReplication").await?,
        group_replication: group(&version(replication::GROUP, "v1alpha1"), "VolumeGroupReplicationClass")
            .await?,
        volsync: group(&version(volsync::GROUP, "v1alpha1"), "ReplicationSource").await?,
        snapshots: group(&version(snapshot::GROUP, "v1"), "VolumeSnapshot").await?,
        exports: group(&version(multicluster::GROUP, "v1alpha1"), "ServiceExport").await?,
        fences: group(&version(csiaddons::GROUP, "v1alpha1"), "NetworkFenceClass").await?,
        surveys: group(&version(ramen::GROUP, "v1alpha1"), "DRClusterConfig").await?,
        local: group(&version(topolvm::GROUP, "v1"), "LogicalVolume").await?,
    })
}

/// Returns when the cluster has other kinds than these.
pub async fn kinds_changed(client: &kube::Client, known: Kinds) {
    loop {
        tokio::select! {
            () = definitions_changed(client) => {}
            () = tokio::time::sleep(KINDS_EVERY) => {}
        }
        // A server that cannot be asked has not changed.
        if kinds(client).await.is_ok_and(|now| now != known) {
            return;
        }
    }
}

/// Returns when a definition came, went or changed; never where that cannot be watched.
async fn definitions_changed(client: &kube::Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let moved = async {
        let all = definitions.list_metadata(&ListParams::default().limit(1)).await?;
        let version = all.metadata.resource_version.unwrap_or_default();
        let mut events = definitions.watch_metadata(&WatchParams::default(), &version).await?.boxed();
        events.try_next().await
    };
    if !matches!(moved.await, Ok(Some(_))) {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(SERVED_AFTER).await;
}

/// Serves until told to stop; set up anew whenever kinds come or go.
pub async fn serve(
    client: kube::Client,
    clock: Clock,
    settings: Settings,
    ledger: Arc<dyn Ledger>,
    setup: Setup,
    stop: impl Future<Output = ()> + Send,
) {
    let stop = stop.shared();
    while stop.peek().is_none() {
        let known = tokio::select! {
            () = stop.clone() => return,
            known = kinds(&client) => known,
        };
        let known = match known {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(%error, "the cluster does not tell which kinds it has: nothing is protected until it does");
                tokio::select! {
                    () = stop.clone() => return,
                    () = tokio::time::sleep(ASK_AGAIN) => continue,
                }
            }
        };
        let protector =
            protector(client.clone(), clock.clone(), settings, known, ledger.clone(), setup.clone());
        let (until, asked) = (stop.clone(), client.clone());
        protector
            .run(async move {
                tokio::select! {
                    () = until => {}
                    () = kinds_changed(&asked, known) => {}
                }
            })
            .await;
    }
}
