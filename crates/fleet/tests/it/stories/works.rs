//! A work's objects are made, kept as the work says, and go with it.

use crate::things::{Own, config_map, group, said};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams};
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::work::{ManifestCondition, ManifestWork};
use lifeboat_engine::conditions::find;
use lifeboat_testbed::on_both;
use serde_json::json;

fn holds(value: &'static str) -> impl Fn(Option<&ConfigMap>) -> bool {
    move |map| {
        map.is_some_and(|map| {
            map.data.as_ref().is_some_and(|data| data.get("key").is_some_and(|is| is == value))
        })
    }
}

fn manifests(work: &ManifestWork) -> Vec<ManifestCondition> {
    work.status.clone().unwrap().resource_status.unwrap().manifests
}

on_both!(
    /// Made, changed with the work, mended when somebody else changes or deletes it, and deleted with its manifest or its work.
    async fn an_object_follows_its_manifest(cluster: &Cluster) {
        let own = Own::new(cluster).await;
        let done = own
            .done(&own.work("shop", &[config_map(&own.app, "a", "1"), config_map(&own.app, "b", "1")]))
            .await;
        assert_eq!(
            done.metadata.finalizers.clone().unwrap(),
            ["cluster.open-cluster-management.io/manifest-work-cleanup"]
        );
        assert_eq!(said(&done, "Applied").unwrap().1, "AppliedManifestWorkComplete");
        assert_eq!(said(&done, "Available").unwrap().1, "ResourcesAvailable");
        let one = &manifests(&done)[0];
        assert_eq!(
            (one.resource_meta.resource.as_deref(), one.resource_meta.name.as_deref()),
            (Some("configmaps"), Some("a"))
        );
        assert_eq!(find(&one.conditions, "Applied").unwrap().reason, "AppliedManifestComplete");
        assert_eq!(find(&one.conditions, "Available").unwrap().reason, "ResourceAvailable");

        own.wants("shop", &[config_map(&own.app, "a", "2"), config_map(&own.app, "b", "1")]).await;
        own.until::<ConfigMap>("a", holds("2")).await;
        let edit = Patch::Merge(json!({ "data": { "key": "edited" } }));
        own.of::<ConfigMap>().patch("a", &PatchParams::default(), &edit).await.unwrap();
        own.until::<ConfigMap>("a", holds("2")).await;
        let first = own.of::<ConfigMap>().get("a").await.unwrap().metadata.uid;
        own.of::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
        let again = own.until::<ConfigMap>("a", |map| map.is_some_and(|map| map.metadata.uid != first)).await;
        assert!(holds("2")(again.as_ref()));

        own.wants("shop", &[config_map(&own.app, "b", "1")]).await;
        own.until::<ConfigMap>("a", |map| map.is_none()).await;
        assert!(own.of::<ConfigMap>().get("b").await.is_ok());
        own.delete("shop").await;
        assert!(own.of::<ConfigMap>().get_opt("b").await.unwrap().is_none());
    }
);

on_both!(
    /// A field that the manifest does not have any more is taken off the object; what only the cluster says stays.
    async fn what_is_wanted_no_more_is_taken_off(cluster: &Cluster) {
        let own = Own::new(cluster).await;
        let mut wanted = group(&own.app, "shop", "primary");
        wanted["spec"]["action"] = json!("Failover");
        own.done(&own.work("shop", &[wanted])).await;
        let status = json!({ "status": { "state": "Primary" }, "metadata": { "labels": { "seen": "yes" } } });
        let groups = own.of::<VolumeReplicationGroup>();
        groups.patch_status("shop", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
        groups.patch("shop", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
        own.wants("shop", &[group(&own.app, "shop", "primary")]).await;
        own.until_done("shop").await;
        let now = groups.get("shop").await.unwrap();
        assert!(now.spec.action.is_none());
        assert_eq!(now.metadata.labels.unwrap()["seen"], "yes");
        assert_eq!(now.status.unwrap().state.unwrap().as_str(), "Primary");
    }
);

on_both!(
    /// Values that rules ask for are read back when they change.
    async fn values_are_read_back(cluster: &Cluster) {
        let own = Own::new(cluster).await;
        let mut work = own.work("shop", &[group(&own.app, "shop", "primary")]);
        let rules = json!([{
            "resourceIdentifier": { "group": "ramendr.openshift.io", "resource": "volumereplicationgroups",
                                    "namespace": own.app, "name": "*" },
            "feedbackRules": [{ "type": "JSONPaths", "jsonPaths": [
                { "name": "state", "path": ".status.state" },
                { "name": "generation", "path": ".metadata.generation" },
                { "name": "absent", "path": ".status.nothing" } ] }],
        }]);
        work.spec.manifest_configs = serde_json::from_value(rules).unwrap();
        own.done(&work).await;
        let status = Patch::Merge(json!({ "status": { "state": "Primary" } }));
        let groups = own.of::<VolumeReplicationGroup>();
        groups.patch_status("shop", &PatchParams::default(), &status).await.unwrap();
        let values = |work: &ManifestWork| {
            let feedback = manifests(work)[0].status_feedback.clone().unwrap_or_default();
            serde_json::to_value(feedback.values).unwrap()
        };
        let wanted = json!([
            { "name": "state", "fieldValue": { "type": "String", "string": "Primary" } },
            { "name": "generation", "fieldValue": { "type": "Integer", "integer": 1 } },
        ]);
        let told =
            cluster.until(&own.works(), "shop", |work| work.is_some_and(|work| values(work) == wanted)).await;
        let conditions = &manifests(&told.unwrap())[0].conditions;
        let synced = find(conditions, "StatusFeedbackSynced").unwrap();
        assert_eq!((synced.status.as_str(), synced.reason.as_str()), ("True", "StatusFeedbackSynced"));
    }
);

on_both!(
    /// A manifest that is refused delays no other; its condition says why, and it is applied when that has ended.
    async fn one_bad_manifest_stays_one(cluster: &Cluster) {
        let own = Own::new(cluster).await;
        let later = format!("{}-later", own.app);
        let pod =
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": own.app } });
        let mut invalid = group(&own.app, "g", "primary");
        invalid["spec"]["async"]["schedulingInterval"] = json!("often");
        let nobodys = json!({ "apiVersion": "ramendr.openshift.io/v1", "kind": "Recipe", "metadata": { "name": "n", "namespace": own.app } });
        let good = config_map(&own.app, "good", "1");
        let homeless = config_map(&later, "homeless", "1");
        let wanted = [
            pod,
            invalid,
            nobodys,
            good,
            homeless,
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": own.app } }),
        ];
        crate::things::make(&own.works(), &own.work("shop", &wanted)).await;
        own.until::<ConfigMap>("good", holds("1")).await;
        let failed = |work: Option<&ManifestWork>| {
            work.is_some_and(|work| said(work, "Applied").is_some_and(|(status, _)| status == "False"))
        };
        let told = cluster.until(&own.works(), "shop", failed).await.unwrap();
        let messages: Vec<String> = manifests(&told)
            .iter()
            .map(|one| find(&one.conditions, "Applied").unwrap().message.clone())
            .collect();
        let check = |at: usize, part: &str| assert!(messages[at].contains(part), "{at}: {}", messages[at]);
        check(0, "Pod is not among the kinds that this agent carries");
        check(1, "schedulingInterval");
        check(2, "the server doesn't have a resource type \"Recipe\"");
        check(3, "Apply manifest complete");
        check(4, &format!("namespaces {later:?} not found"));
        check(5, "the manifest names no object");
        assert_eq!(
            said(&told, "Available").unwrap(),
            ("False".to_owned(), "ResourcesNotAvailable".to_owned())
        );
        let pod = &manifests(&told)[0].conditions;
        assert_eq!(find(pod, "Available").unwrap().status, "Unknown", "nobody looked");

        crate::things::make(
            &kube::Api::all(cluster.client()),
            &k8s_openapi::api::core::v1::Namespace {
                metadata: kube::api::ObjectMeta { name: Some(later.clone()), ..Default::default() },
                ..Default::default()
            },
        )
        .await;
        let there: kube::Api<ConfigMap> = kube::Api::namespaced(cluster.client(), &later);
        cluster.until(&there, "homeless", holds("1")).await;
        own.delete("shop").await;
    }
);
