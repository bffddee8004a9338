//! What an agent leaves alone: what it is told to, what it did not make, and what is not its own.

use crate::things::{Own, accepted, config_map, definitions, hub, is_done, make, namespace, serve, work};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::conditions::find;
use lifeboat_testbed::{Cluster, on_both};
use serde_json::{Value, json};

fn map(value: Value) -> ConfigMap {
    serde_json::from_value(value).unwrap()
}

fn key(map: &ConfigMap) -> &str {
    &map.data.as_ref().unwrap()["key"]
}

on_both!(
    /// Orphan leaves all, SelectivelyOrphan those that are named.
    async fn what_is_orphaned_stays(cluster: &Cluster) {
        let own = Own::new(cluster).await;
        let mut all = own.work("all", &[config_map(&own.app, "a", "1")]);
        all.spec.delete_option = serde_json::from_value(json!({ "propagationPolicy": "Orphan" })).unwrap();
        own.done(&all).await;
        let mut some = own.work("some", &[config_map(&own.app, "b", "1"), config_map(&own.app, "c", "1")]);
        some.spec.delete_option = serde_json::from_value(json!({
            "propagationPolicy": "SelectivelyOrphan",
            "selectivelyOrphans": { "orphaningRules": [
                { "resource": "configmaps", "namespace": own.app, "name": "b" } ] },
        }))
        .unwrap();
        own.done(&some).await;
        own.done(&own.work("late", &[config_map(&own.app, "d", "1")])).await;
        own.change("late", json!({ "spec": { "deleteOption": { "propagationPolicy": "Orphan" } } })).await;
        for work in ["all", "some", "late"] {
            own.delete(work).await;
        }
        for (name, stays) in [("a", true), ("b", true), ("c", false), ("d", true)] {
            assert_eq!(own.of::<ConfigMap>().get_opt(name).await.unwrap().is_some(), stays, "{name}");
        }
    }
);

on_both!(
    /// What was there before is made as the work says, and stays when the work goes; so does a namesake that somebody else made
    /// in the place of what the agent had made.
    async fn what_the_agent_did_not_make_it_does_not_delete(cluster: &Cluster) {
        let own = Own::new(cluster).await;
        let maps = own.of::<ConfigMap>();
        make(&maps, &map(config_map(&own.app, "before", "0"))).await;
        let wanted = [config_map(&own.app, "before", "1"), config_map(&own.app, "ours", "1")];
        let mut work = own.work("shop", &wanted);
        // So that nobody but us makes it again once it is gone.
        work.spec.manifest_configs = serde_json::from_value(json!([{
            "resourceIdentifier": { "resource": "configmaps", "namespace": own.app, "name": "ours" },
            "updateStrategy": { "type": "CreateOnly" },
        }]))
        .unwrap();
        own.done(&work).await;
        assert_eq!(key(&maps.get("before").await.unwrap()), "1");

        // The same text by another hand, its mark included, while the agent's work wants something else.
        let mut copy = maps.get("ours").await.unwrap();
        copy.metadata = kube::api::ObjectMeta {
            name: copy.metadata.name,
            namespace: copy.metadata.namespace,
            annotations: copy.metadata.annotations,
            ..Default::default()
        };
        own.change(
            "shop",
            json!({ "spec": { "manifestConfigs": [{
            "resourceIdentifier": { "resource": "configmaps", "namespace": own.app, "name": "ours" },
            "updateStrategy": { "type": "ReadOnly" },
        }] } }),
        )
        .await;
        own.until_done("shop").await;
        maps.delete("ours", &DeleteParams::default()).await.unwrap();
        make(&maps, &copy).await;
        own.delete("shop").await;
        assert!(maps.get_opt("before").await.unwrap().is_some(), "it was there before");
        assert!(maps.get_opt("ours").await.unwrap().is_some(), "it was made by another hand");
    }
);

on_both!(
    /// A work whose list is emptied asks for nothing: only its deletion deletes.
    async fn an_emptied_work_deletes_nothing(cluster: &Cluster) {
        let own = Own::new(cluster).await;
        own.done(&own.work("shop", &[config_map(&own.app, "a", "1")])).await;
        own.wants("shop", &[]).await;
        let empty = |work: Option<&ManifestWork>| {
            work.and_then(|work| work.status.as_ref()?.resource_status.as_ref())
                .is_some_and(|status| status.manifests.is_empty())
        };
        cluster.until(&own.works(), "shop", empty).await;
        assert!(own.of::<ConfigMap>().get_opt("a").await.unwrap().is_some());
        own.delete("shop").await;
        assert!(own.of::<ConfigMap>().get_opt("a").await.unwrap().is_none());
    }
);

on_both!(
    /// `CreateOnly` never changes, `ReadOnly` never makes, and a server-side apply without force does not take what is another's.
    async fn strategies_are_kept(cluster: &Cluster) {
        let own = Own::new(cluster).await;
        let maps = own.of::<ConfigMap>();
        let rule = |name: &str, strategy: Value| {
            json!({ "resourceIdentifier": { "resource": "configmaps", "namespace": own.app, "name": name },
                    "updateStrategy": strategy })
        };
        let names = ["once", "read", "applied", "contested"];
        let wanted = |value: &str| names.map(|name| config_map(&own.app, name, value));
        let mut work = own.work("shop", &wanted("1"));
        work.spec.manifest_configs = serde_json::from_value(json!([
            rule("once", json!({ "type": "CreateOnly" })),
            rule("read", json!({ "type": "ReadOnly" })),
            rule("applied", json!({ "type": "ServerSideApply" })),
            rule(
                "contested",
                json!({ "type": "ServerSideApply", "serverSideApply": { "fieldManager": "work-agent-x" } })
            ),
        ]))
        .unwrap();
        let theirs = Patch::Apply(config_map(&own.app, "contested", "theirs"));
        maps.patch("contested", &PatchParams::apply("them"), &theirs).await.unwrap();
        maps.create(&PostParams::default(), &map(config_map(&own.app, "read", "0"))).await.unwrap();
        make(&own.works(), &work).await;
        let told = |at: usize, status: &'static str, part: &'static str| {
            move |work: Option<&ManifestWork>| {
                let one =
                    work.and_then(|work| work.status.as_ref()?.resource_status.as_ref()?.manifests.get(at));
                let applied = one.and_then(|one| find(&one.conditions, "Applied"));
                applied.is_some_and(|applied| applied.status == status && applied.message.contains(part))
            }
        };
        cluster.until(&own.works(), "shop", told(3, "False", "conflict")).await;
        cluster.until(&own.works(), "shop", told(2, "True", "")).await;
        own.wants("shop", &wanted("2")).await;
        own.until::<ConfigMap>("applied", |map| map.is_some_and(|map| key(map) == "2")).await;
        own.change("shop", json!({ "metadata": { "labels": { "seen": "yes" } } })).await;
        for (name, value) in [("once", "1"), ("read", "0"), ("contested", "theirs")] {
            assert_eq!(key(&maps.get(name).await.unwrap()), value, "{name}");
        }
        own.delete("shop").await;
        for (name, stays) in [("once", false), ("read", true), ("applied", false), ("contested", true)] {
            assert_eq!(maps.get_opt(name).await.unwrap().is_some(), stays, "{name}");
        }
    }
);

on_both!(
    /// The namespace whose name begins with ours belongs to another cluster.
    async fn a_longer_name_is_another_cluster(cluster: &Cluster) {
        let own = Own::new(cluster).await;
        let other = format!("{}-1", own.name);
        let namespaces = Api::all(cluster.client());
        let named = kube::api::ObjectMeta { name: Some(other.clone()), ..Default::default() };
        make(&namespaces, &Namespace { metadata: named, ..Default::default() }).await;
        let works: Api<ManifestWork> = Api::namespaced(cluster.client(), &other);
        make(&works, &work(&other, "shop", &[config_map(&own.app, "theirs", "1")])).await;
        own.done(&own.work("shop", &[config_map(&own.app, "ours", "1")])).await;
        assert!(own.of::<ConfigMap>().get_opt("theirs").await.unwrap().is_none());
        assert!(works.get("shop").await.unwrap().status.is_none());
        own.delete("shop").await;
    }
);

/// A hub that was restored from an old copy has forgotten a work: its objects stay, and belong to the work again when it is made again.
#[tokio::test(start_paused = true)]
async fn a_forgotten_work_loses_nothing_and_is_taken_up_again() {
    let (main, east) = (Cluster::embedded(), Cluster::embedded());
    main.install(&definitions()).await;
    east.install(&definitions()).await;
    make(&Api::all(main.client()), &accepted("east")).await;
    let _hub = hub(&main);
    let agent = serve(main.client(), &east, east.client(), "east");
    let namespaces: Api<Namespace> = Api::all(main.client());
    main.until(&namespaces, "east", |namespace| namespace.is_some()).await;
    let works: Api<ManifestWork> = Api::namespaced(main.client(), "east");
    let wanted = work("east", "shop", &[namespace("shop"), config_map("shop", "a", "1")]);
    make(&works, &wanted).await;
    main.until(&works, "shop", is_done).await;
    let maps: Api<ConfigMap> = Api::namespaced(east.client(), "shop");
    let uid = maps.get("a").await.unwrap().metadata.uid;

    agent.kill().await.unwrap();
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    works.patch("shop", &PatchParams::default(), &free).await.unwrap();
    works.delete("shop", &DeleteParams::default()).await.unwrap();
    let _again = serve(main.client(), &east, east.client(), "east");
    tokio::time::sleep(std::time::Duration::from_secs(3 * 60 * 60)).await;
    assert_eq!(maps.get("a").await.unwrap().metadata.uid, uid, "what the hub forgot stays");

    make(&works, &wanted).await;
    main.until(&works, "shop", is_done).await;
    assert_eq!(maps.get("a").await.unwrap().metadata.uid, uid);
    works.delete("shop", &DeleteParams::default()).await.unwrap();
    main.until(&works, "shop", |work| work.is_none()).await;
    assert!(maps.get_opt("a").await.unwrap().is_none());
}
