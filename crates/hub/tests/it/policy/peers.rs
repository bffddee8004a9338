//! Which classes of two clusters belong together: a row for each thing that decides.

use lifeboat_hub::policy::peers::{ClassFacts, Classes, peers};
use serde_json::{Value, json};

/// What a cluster has, in short: storage classes, snapshot classes, group snapshot classes, replication classes, group replication classes.
#[derive(Clone, Default)]
struct Has {
    storage: Vec<Value>,
    snapshots: Vec<Value>,
    group_snapshots: Vec<Value>,
    replication: Vec<Value>,
    group_replication: Vec<Value>,
}

fn marks(pairs: &[(&str, &str)]) -> Value {
    pairs
        .iter()
        .map(|(key, value)| (format!("ramendr.openshift.io/{key}"), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn sc(name: &str, labels: &[(&str, &str)]) -> Value {
    json!({ "metadata": { "name": name, "labels": marks(labels) }, "provisioner": "csi" })
}

fn vsc(driver: &str, storage: &str) -> Value {
    json!({ "metadata": { "name": "snap", "labels": marks(&[("storageid", storage)]) }, "driver": driver })
}

fn vrc(schedule: &str, labels: &[(&str, &str)]) -> Value {
    json!({
        "metadata": { "name": "rep", "labels": marks(labels) },
        "spec": { "provisioner": "csi", "parameters": { "schedulingInterval": schedule } },
    })
}

fn classes(id: &str, has: &Has) -> Classes {
    let facts = |all: &[Value]| all.iter().map(ClassFacts::of).collect();
    Classes {
        cluster_id: id.to_owned(),
        storage: facts(&has.storage),
        snapshots: facts(&has.snapshots),
        group_snapshots: facts(&has.group_snapshots),
        replication: facts(&has.replication),
        group_replication: facts(&has.group_replication),
        fences: Vec::new(),
    }
}

/// Sync and async peers, each in one line.
fn found(east: &Has, west: &Has, schedule: &str) -> (Vec<String>, Vec<String>) {
    let all = peers(&classes("e", east), &classes("w", west), schedule);
    let line = |peer: &lifeboat_api::ramen::PeerClass| {
        assert_eq!(peer.cluster_ids, ["e", "w"]);
        let mut text =
            format!("{} [{}]", peer.storage_class_name.clone().unwrap(), peer.storage_id.join(","));
        for (word, id) in [("rep", &peer.replication_id), ("group", &peer.group_replication_id)] {
            text.extend(id.iter().map(|id| format!(" {word}={id}")));
        }
        for (word, on) in
            [("grouping", peer.grouping), ("offloaded", peer.offloaded), ("global", peer.global)]
        {
            text.extend(on.then(|| format!(" {word}")));
        }
        text
    };
    (all.sync.iter().map(line).collect(), all.copied.iter().map(line).collect())
}

fn check(east: &Has, west: &Has, schedule: &str, sync: &[&str], copied: &[&str]) {
    let (is_sync, is_copied) = found(east, west, schedule);
    assert_eq!(
        (is_sync, is_copied),
        (sync.iter().map(ToString::to_string).collect(), copied.iter().map(ToString::to_string).collect())
    );
}

fn with(storage: Vec<Value>) -> Has {
    Has { storage, ..Has::default() }
}

#[test]
fn the_same_storage_is_shared_whatever_the_schedule() {
    let has = with(vec![sc("a", &[("storageid", "s")]), sc("b", &[("storageid", "t")])]);
    check(&has, &has, "", &["a [s]", "b [t]"], &[]);
    check(&has, &has, "5m", &["a [s]", "b [t]"], &[]);
}

#[test]
fn classes_must_have_one_name_and_an_identity() {
    let east = with(vec![sc("a", &[("storageid", "s")]), sc("c", &[])]);
    check(&east, &with(vec![sc("b", &[("storageid", "s")])]), "", &[], &[]);
    check(&east, &with(vec![sc("c", &[])]), "", &[], &[]);
    check(&east, &with(vec![sc("a", &[("storageid", "")])]), "", &[], &[]);
}

fn two() -> (Has, Has) {
    (with(vec![sc("a", &[("storageid", "e")])]), with(vec![sc("a", &[("storageid", "w")])]))
}

#[test]
fn different_storage_needs_a_way_and_a_schedule() {
    let (east, west) = two();
    check(&east, &west, "5m", &[], &[]);
    let (mut east, mut west) = two();
    east.replication = vec![vrc("5m", &[("storageid", "e"), ("replicationid", "r")])];
    west.replication = vec![vrc("5m", &[("storageid", "w"), ("replicationid", "r")])];
    check(&east, &west, "5m", &[], &["a [e,w] rep=r"]);
    check(&east, &west, "", &[], &[]);
    check(&east, &west, "1h", &[], &[]);
}

#[test]
fn replication_classes_must_agree_on_everything() {
    let agreed = |change: fn(&mut Has, &mut Has)| {
        let (mut east, mut west) = two();
        east.replication = vec![vrc("5m", &[("storageid", "e"), ("replicationid", "r")])];
        west.replication = vec![vrc("5m", &[("storageid", "w"), ("replicationid", "r")])];
        change(&mut east, &mut west);
        found(&east, &west, "5m").1.len()
    };
    assert_eq!(agreed(|_, _| {}), 1);
    assert_eq!(agreed(|_, west| west.replication.clear()), 0);
    assert_eq!(
        agreed(|_, west| west.replication = vec![vrc("5m", &[("storageid", "w"), ("replicationid", "q")])]),
        0
    );
    assert_eq!(
        agreed(|_, west| west.replication = vec![vrc("5m", &[("storageid", "x"), ("replicationid", "r")])]),
        0
    );
    assert_eq!(agreed(|_, west| west.replication[0]["spec"]["provisioner"] = json!("other")), 0);
    assert_eq!(agreed(|_, west| west.replication[0]["spec"]["parameters"] = json!({})), 0);
    // Another class of the same cluster may be the one that agrees.
    assert_eq!(
        agreed(|east, _| east
            .replication
            .insert(0, vrc("5m", &[("storageid", "e"), ("replicationid", "q")]))),
        1
    );
}

#[test]
fn groups_of_volumes_are_replicated_where_group_classes_agree_too() {
    let (mut east, mut west) = two();
    east.replication = vec![vrc("5m", &[("storageid", "e"), ("replicationid", "r")])];
    west.replication = vec![vrc("5m", &[("storageid", "w"), ("replicationid", "r")])];
    east.group_replication = vec![vrc("5m", &[("storageid", "e"), ("groupreplicationid", "g")])];
    check(&east, &west, "5m", &[], &["a [e,w] rep=r"]);
    west.group_replication = vec![vrc("5m", &[("storageid", "w"), ("groupreplicationid", "g")])];
    check(&east, &west, "5m", &[], &["a [e,w] rep=r group=g grouping"]);
}

#[test]
fn images_serve_where_storage_does_not_replicate() {
    let (mut east, mut west) = two();
    east.snapshots = vec![vsc("csi", "e")];
    check(&east, &west, "5m", &[], &[]);
    west.snapshots = vec![vsc("other", "w")];
    check(&east, &west, "5m", &[], &[]);
    west.snapshots = vec![vsc("csi", "e")];
    check(&east, &west, "5m", &[], &[]);
    west.snapshots = vec![vsc("csi", "w")];
    check(&east, &west, "5m", &[], &["a [e,w]"]);
    east.group_snapshots = vec![vsc("csi", "e")];
    west.group_snapshots = vec![vsc("csi", "w")];
    check(&east, &west, "5m", &[], &["a [e,w] grouping"]);
}

#[test]
fn storage_that_replicates_by_itself_needs_a_group_class_on_both_sides() {
    let east = with(vec![sc("a", &[("storageid", "e"), ("offloaded", "")])]);
    let west = with(vec![sc("a", &[("storageid", "w"), ("offloaded", "")])]);
    check(&east, &west, "0m", &[], &[]);
    check(&east, &two().1, "0m", &[], &[]);
    let relation = |has: &Has, storage: &str, more: &[(&str, &str)]| {
        let labels: Vec<(&str, &str)> =
            [("storageid", storage), ("groupreplicationid", "g")].iter().chain(more).copied().collect();
        Has { group_replication: vec![vrc("0m", &labels)], ..has.clone() }
    };
    let (plain_east, plain_west) = (relation(&east, "e", &[]), relation(&west, "w", &[]));
    check(&plain_east, &plain_west, "0m", &[], &["a [e,w] group=g grouping offloaded"]);
    let (global_east, global_west) =
        (relation(&east, "e", &[("global", "true")]), relation(&west, "w", &[("global", "true")]));
    check(&global_east, &plain_west, "0m", &[], &["a [e,w] group=g grouping offloaded"]);
    check(&global_east, &global_west, "0m", &[], &["a [e,w] group=g grouping offloaded global"]);
    // What the storage class itself says must be the same relation.
    let named =
        with(vec![sc("a", &[("storageid", "e"), ("offloaded", ""), ("groupreplicationid", "other")])]);
    check(&relation(&named, "e", &[]), &plain_west, "0m", &[], &[]);
}
