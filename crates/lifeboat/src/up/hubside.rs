//! What the hub of an embedded fleet begins with: its clusters, where their stores are, and a policy. What a user changed is left alone; where
//! stores are is said anew, for addresses change.

use super::fleet::Store;
use super::storage::ensure;
use anyhow::Context as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams};
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::ramen::{DRCluster, DRPolicy};
use serde_json::json;
use std::collections::BTreeMap;

/// Namespace of the hub's configuration, and of the protector's on every cluster.
pub const NAMESPACE: &str = "ramen-system";
/// Name of the policy of a fleet that copies every minute.
pub const POLICY: &str = "every-minute";

fn policy(interval: &str) -> String {
    match interval {
        "1m" => POLICY.to_owned(),
        other => format!("every-{}", other.to_ascii_lowercase()),
    }
}

/// Whether it is there.
pub async fn is_furnished(hub: &kube::Client) -> anyhow::Result<bool> {
    let spaces: Api<Namespace> = Api::all(hub.clone());
    Ok(spaces.get_opt(NAMESPACE).await.context("reading the hub")?.is_some())
}

/// Puts it there.
pub async fn furnish(
    hub: &kube::Client,
    stores: &BTreeMap<String, Store>,
    lease_seconds: i32,
    interval: &str,
) -> anyhow::Result<()> {
    ensure::<Namespace>(hub, json!({"metadata": {"name": NAMESPACE}})).await?;
    let apply = PatchParams::apply("lifeboat-up").force();
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    let mut profiles = Vec::new();
    for (cluster, store) in stores {
        let name = format!("{cluster}-store");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
            "stringData": {
                "AWS_ACCESS_KEY_ID": store.credentials.access_key,
                "AWS_SECRET_ACCESS_KEY": store.credentials.secret_key,
            },
        });
        secrets.patch(&name, &apply, &Patch::Apply(secret)).await.context("writing a store's keys")?;
        profiles.push(json!({
            "s3ProfileName": name, "s3Bucket": cluster, "s3Region": "here",
            "s3CompatibleEndpoint": format!("http://{}", store.address),
            "s3SecretRef": {"name": name, "namespace": NAMESPACE},
        }));
    }
    let config = json!({
        "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "RamenConfig", "ramenControllerType": "dr-hub",
        "s3StoreProfiles": profiles,
    });
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "ramen-hub-operator-config", "namespace": NAMESPACE},
        "data": {"ramen_manager_config.yaml": config.to_string()},
    });
    let maps: Api<ConfigMap> = Api::namespaced(hub.clone(), NAMESPACE);
    maps.patch("ramen-hub-operator-config", &apply, &Patch::Apply(map))
        .await
        .context("writing the configuration")?;
    for cluster in stores.keys() {
        let managed = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": cluster},
            "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": lease_seconds},
        });
        ensure::<ManagedCluster>(hub, managed).await?;
        let recovers = json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRCluster", "metadata": {"name": cluster},
            "spec": {"region": cluster, "s3ProfileName": format!("{cluster}-store")},
        });
        ensure::<DRCluster>(hub, recovers).await?;
    }
    let pair: Vec<&String> = stores.keys().take(2).collect();
    if pair.len() == 2 {
        let policy = json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRPolicy", "metadata": {"name": policy(interval)},
            "spec": {"schedulingInterval": interval, "drClusters": pair},
        });
        ensure::<DRPolicy>(hub, policy).await?;
    }
    Ok(())
}
