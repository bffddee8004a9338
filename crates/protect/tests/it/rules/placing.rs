//! Where a volume is made again: on the node that has its bytes.

use super::furniture::volume;
use super::{claim, now, world};
use k8s_openapi::api::core::v1::PersistentVolume;
use lifeboat_engine::Why as _;
use lifeboat_protect::decide::Effect;
use lifeboat_protect::decide::plan::Plan;
use lifeboat_protect::decide::restore::restore;
use lifeboat_protect::ledger::{Reading, Record};
use lifeboat_protect::world::World;
use serde_json::{Value, json};
use std::sync::Arc;

/// A volume on the disks of node `there` of the other cluster, which is called `far` here.
fn local(change: impl FnOnce(&mut Value)) -> PersistentVolume {
    volume(|volume| {
        let node = json!({ "key": "topology.topolvm.io/node", "operator": "In", "values": ["there"] });
        volume["spec"]["nodeAffinity"] =
            json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [node] }] } });
        volume["metadata"]["annotations"][lifeboat_api::annotations::DESTINATION_VOLUME_HANDLE] =
            json!("far");
        change(volume);
    })
}

fn told(world: &World) -> String {
    let mut plan = Plan::default();
    restore(world, now(), &mut plan);
    match plan.effects.first() {
        Some(Effect::MakeVolume { volume, .. }) => {
            let spec = volume.spec.as_ref().unwrap();
            let affinity = spec.node_affinity.as_ref().and_then(|one| one.required.as_ref());
            let nodes: Vec<String> = affinity
                .into_iter()
                .flat_map(|required| &required.node_selector_terms)
                .flat_map(|term| term.match_expressions.iter().flatten())
                .map(|one| {
                    format!(
                        "{} on {}",
                        spec.csi.as_ref().unwrap().volume_handle,
                        one.values.as_ref().unwrap().join("+")
                    )
                })
                .collect();
            if nodes.is_empty() {
                format!("{} anywhere", spec.csi.as_ref().unwrap().volume_handle)
            } else {
                nodes.join(", ")
            }
        }
        Some(other) => lifeboat_engine::variant(other),
        None => plan.waits.first().map_or_else(|| "done".to_owned(), |(why, _)| why.reason()),
    }
}

fn check(
    rule: &str,
    recorded: PersistentVolume,
    change: fn(&mut Value),
    fill: impl FnOnce(&mut World),
    expected: &str,
) {
    let mut world = world(|group| {
        group["status"] = json!({ "epoch": 1, "primaryEpoch": 1 });
        change(group);
    });
    let record =
        Record { epoch: 1, volumes: vec![recorded], claims: vec![claim(|_| {})], ..Record::default() };
    let reading = Reading { epoch: 1, newest: Some(record), ..Reading::default() };
    world.read.answer = Some(("u/3/east".into(), reading, now()));
    fill(&mut world);
    assert_eq!(told(&world), expected, "{rule}");
}

#[test]
fn s23_a_volume_of_one_node_is_made_where_its_bytes_are() {
    let plain: fn(&mut Value) = |_| {};
    let at = |handle: &'static str, node: &'static str| {
        move |world: &mut World| drop(world.places.insert(handle.into(), node.into()))
    };
    check("S23: tied to the node that has it here", local(|_| {}), plain, at("far", "here"), "far on here");
    check("S23: no node has it yet", local(|_| {}), plain, |_| {}, "Restoring");
    check(
        "S23: somebody else's handle is no place for it",
        local(|_| {}),
        plain,
        at("other", "here"),
        "Restoring",
    );
    check(
        "S23: recorded by this very cluster, it is still here",
        local(|_| {}),
        plain,
        at("h", "home"),
        "h on home",
    );
    let unnamed = local(|v| v["metadata"]["annotations"] = json!({}));
    check("S23: its name at this side was never told", unnamed, plain, |_| {}, "Restoring");
    let lacks = |world: &mut World| world.kinds.local = false;
    check("S23: storage here knows no nodes", local(|_| {}), plain, lacks, "far anywhere");
    let free = volume(|v| {
        v["metadata"]["annotations"][lifeboat_api::annotations::DESTINATION_VOLUME_HANDLE] = json!("far");
    });
    check("S23: storage of the network is anywhere", free, plain, |_| {}, "far anywhere");
    let metro: fn(&mut Value) = |group| group["spec"]["sync"] = json!({});
    let shared = local(|v| v["metadata"]["annotations"] = json!({}));
    check("S23: shared storage stays what it is", shared, metro, |_| {}, "h on there");
}

#[test]
fn r4_r6_what_is_there_already() {
    let plain: fn(&mut Value) = |_| {};
    let here = |handle: &'static str, uid: Option<&'static str>| {
        move |world: &mut World| {
            let has = volume(|v| {
                v["spec"]["csi"]["volumeHandle"] = json!(handle);
                v["spec"]["claimRef"]["uid"] = json!(uid);
            });
            world.volumes.insert("v".into(), Arc::new(has));
        }
    };
    let with = |fill: Box<dyn FnOnce(&mut World)>, change: fn(&mut Value)| {
        move |world: &mut World| {
            fill(world);
            world.claims = vec![super::seen(claim(change))];
        }
    };
    check(
        "R6: bound to its claim, it is accepted",
        local(|_| {}),
        plain,
        with(Box::new(here("far", Some("c"))), |_| {}),
        "done",
    );
    check(
        "R6: under its own handle, for it was recorded here",
        local(|_| {}),
        plain,
        with(Box::new(here("h", Some("c"))), |_| {}),
        "done",
    );
    check(
        "R6: other storage under the same name is left alone",
        local(|_| {}),
        plain,
        here("x", None),
        "CannotRestore",
    );
    let deleted: fn(&mut Value) = |c| c["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    check(
        "R4: bound to a claim that is being deleted",
        local(|_| {}),
        plain,
        with(Box::new(here("far", Some("c"))), deleted),
        "Removing",
    );
    check(
        "R4: the claim is gone, the volume is freed",
        local(|_| {}),
        plain,
        here("far", Some("c")),
        "Unclaim",
    );
    check("R4: and then bound anew", local(|_| {}), plain, here("far", None), "MakeClaim");
    let theirs = |world: &mut World| {
        here("far", Some("c"))(world);
        let mut has = (*world.volumes["v"]).clone();
        has.metadata.annotations = None;
        world.volumes.insert("v".into(), Arc::new(has));
    };
    check("R4: one that no group kept is left alone", local(|_| {}), plain, theirs, "CannotRestore");
    let other: fn(&mut Value) = |c| c["spec"]["volumeName"] = json!("w");
    check(
        "R4: a claim with another volume is left alone",
        local(|_| {}),
        plain,
        with(Box::new(here("far", None)), other),
        "CannotRestore",
    );
}
