//! A view shows its object as it is, says when that was seen, and says why when it cannot.

use crate::things::{Own, config_map, group, group_scope, make, view};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams};
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::view::{ManagedClusterView, ViewScope};
use lifeboat_engine::conditions::find;
use lifeboat_testbed::on_both;
use serde_json::json;

fn scope(resource: &str, namespace: &str, name: &str) -> ViewScope {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ViewScope {
        resource: text(resource),
        namespace: text(namespace),
        name: text(name),
        ..ViewScope::default()
    }
}

/// Reason and message of what is said about reading.
fn said(view: Option<&ManagedClusterView>) -> Option<(String, String)> {
    let condition = find(&view?.status.as_ref()?.conditions, "Processing")?;
    Some((condition.reason.clone(), condition.message.clone()))
}

fn says(reason: &'static str) -> impl Fn(Option<&ManagedClusterView>) -> bool {
    move |view| said(view).is_some_and(|(said, _)| said == reason)
}

on_both!(
    /// Absent, there, changed, gone, and there again: each is on the hub as it happens.
    async fn a_view_follows_its_object(cluster: &Cluster) {
        let own = Own::new(cluster).await;
        let views = own.views();
        make(&views, &view(&own.name, "shop", group_scope(&own.app, "shop"))).await;
        let absent = cluster.until(&views, "shop", says("GetResourceFailed")).await;
        let message = said(absent.as_ref()).unwrap().1;
        let wanted = "failed to get resource with err: volumereplicationgroups.ramendr.openshift.io \"shop\" not found";
        assert_eq!(message, wanted);
        assert!(absent.unwrap().status.unwrap().result.is_none());

        let groups = own.of::<VolumeReplicationGroup>();
        make(&groups, &serde_json::from_value(group(&own.app, "shop", "primary")).unwrap()).await;
        let there =
            cluster.until(&views, "shop", says("GetResourceProcessing")).await.unwrap().status.unwrap();
        assert_eq!(find(&there.conditions, "Processing").unwrap().message, "Watching resources successfully");
        let result = there.result.unwrap().0;
        assert_eq!(
            (&result["kind"], &result["apiVersion"]),
            (&json!("VolumeReplicationGroup"), &json!("ramendr.openshift.io/v1alpha1"))
        );
        assert_eq!(result["spec"]["replicationState"], "primary");

        let status = Patch::Merge(json!({ "status": { "state": "Primary" } }));
        groups.patch_status("shop", &PatchParams::default(), &status).await.unwrap();
        let primary = |view: Option<&ManagedClusterView>| {
            let result = view.and_then(|view| view.status.as_ref()?.result.as_ref());
            result.is_some_and(|result| result.0["status"]["state"] == "Primary")
        };
        let seen = cluster.until(&views, "shop", primary).await.unwrap().status.unwrap();
        let version = groups.get("shop").await.unwrap().metadata.resource_version.unwrap();
        let observed = find(&seen.conditions, "Observed").unwrap();
        assert!(observed.message.contains(&version), "{} {version}", observed.message);

        groups.delete("shop", &DeleteParams::default()).await.unwrap();
        let gone = cluster.until(&views, "shop", says("GetResourceFailed")).await.unwrap().status.unwrap();
        assert!(gone.result.is_some(), "the last that was seen stays, as it does with the peer");
        make(&groups, &serde_json::from_value(group(&own.app, "shop", "secondary")).unwrap()).await;
        let again =
            cluster.until(&views, "shop", says("GetResourceProcessing")).await.unwrap().status.unwrap();
        assert_eq!(again.result.unwrap().0["spec"]["replicationState"], "secondary");
    }
);

on_both!(
    /// What cannot be shown has its reason, in the peer's words.
    async fn a_view_that_cannot_be_served_says_why(cluster: &Cluster) {
        let own = Own::new(cluster).await;
        let secret =
            serde_json::from_value(json!({ "metadata": { "name": "s" }, "stringData": { "k": "v" } }));
        make(&own.of::<Secret>(), &secret.unwrap()).await;
        make(&own.of::<ConfigMap>(), &serde_json::from_value(config_map(&own.app, "m", "1")).unwrap()).await;
        let unknown = ViewScope {
            kind: Some("Wheel".to_owned()),
            version: Some("v1".to_owned()),
            api_group: Some("example.com".to_owned()),
            name: Some("w".to_owned()),
            ..ViewScope::default()
        };
        let rows = [
            ("named", scope("configmaps", &own.app, ""), "ResourceNameInvalid", "invalid resource name"),
            ("typed", scope("", &own.app, "m"), "ResourceTypeInvalid", "invalid resource type"),
            (
                "wheel",
                unknown,
                "ResourceGVKInvalid",
                "no matches for kind \"Wheel\" in version \"example.com/v1\"",
            ),
            (
                "wheels",
                scope("wheels", "", "w"),
                "ResourceTypeInvalid",
                "the server doesn't have a resource type",
            ),
            (
                "secret",
                scope("secrets", &own.app, "s"),
                "ResourceTypeInvalid",
                "viewing secrets is not allowed",
            ),
            ("absent", scope("configmap", &own.app, "x"), "GetResourceFailed", "configmaps \"x\" not found"),
            ("plural", scope("configmaps", &own.app, "m"), "GetResourceProcessing", ""),
            ("kind", scope("ConfigMap", &own.app, "m"), "GetResourceProcessing", ""),
            ("group", scope("namespaces", "", &own.app), "GetResourceProcessing", ""),
            (
                "full",
                scope("volumereplicationgroups.v1alpha1.ramendr.openshift.io", &own.app, "x"),
                "GetResourceFailed",
                "not found",
            ),
        ];
        for (name, scope, reason, part) in rows {
            make(&own.views(), &view(&own.name, name, scope)).await;
            let told = cluster.until(&own.views(), name, says(reason)).await;
            let message = said(told.as_ref()).unwrap().1;
            assert!(message.contains(part), "{name}: {message}");
            assert!(!serde_json::to_string(&told).unwrap().contains("dg=="), "{name} shows a secret");
        }
    }
);

on_both!(
    /// A kind that comes later is shown when it has come.
    async fn a_kind_may_come_later(cluster: &Cluster) {
        let own = Own::new(cluster).await;
        let kind = format!("Wheel{}", own.app.replace('-', ""));
        let plural = format!("{}s", kind.to_lowercase());
        let scope = ViewScope {
            kind: Some(kind.clone()),
            version: Some("v1".to_owned()),
            api_group: Some("example.com".to_owned()),
            namespace: Some(own.app.clone()),
            name: Some("w".to_owned()),
            ..ViewScope::default()
        };
        make(&own.views(), &view(&own.name, "wheel", scope)).await;
        cluster.until(&own.views(), "wheel", says("ResourceGVKInvalid")).await;
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.example.com") },
            "spec": { "group": "example.com", "scope": "Namespaced", "names": { "kind": kind, "plural": plural },
                      "versions": [{ "name": "v1", "served": true, "storage": true,
                                     "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }] },
        });
        cluster.install(&[serde_json::from_value(definition).unwrap()]).await;
        cluster.until(&own.views(), "wheel", says("GetResourceFailed")).await;
    }
);
