//! Which way a claim is protected, and with which class.

use super::{claim, world};
use lifeboat_engine::Why as _;
use lifeboat_protect::decide::classify::classify;
use lifeboat_protect::decide::plan::Path;
use lifeboat_protect::world::World;
use serde_json::{Value, json};
use std::sync::Arc;

const STORAGE_ID: &str = "ramendr.openshift.io/storageid";
const REPLICATION_ID: &str = "ramendr.openshift.io/replicationid";
const USE_VOLSYNC: &str = "drplacementcontrol.ramendr.openshift.io/use-volsync-for-pvc-protection";

fn storage(world: &mut World, change: impl FnOnce(&mut Value)) {
    let mut class =
        json!({ "metadata": { "name": "fast", "labels": { STORAGE_ID: "s1" } }, "provisioner": "d" });
    change(&mut class);
    world.classes.insert("fast".into(), Arc::new(serde_json::from_value(class).unwrap()));
}

fn replication(world: &mut World, name: &str, change: impl FnOnce(&mut Value)) {
    let mut class = json!({
        "metadata": { "name": name, "labels": { STORAGE_ID: "s1", REPLICATION_ID: "r1", "tier": "a" }, "annotations": {} },
        "spec": { "provisioner": "d", "parameters": { "schedulingInterval": "5m" } },
    });
    change(&mut class);
    world.replication_classes.push(Arc::new(serde_json::from_value(class).unwrap()));
}

fn snapshots(world: &mut World, name: &str, change: impl FnOnce(&mut Value)) {
    let mut class = json!({
        "metadata": { "name": name, "labels": { STORAGE_ID: "s1" }, "annotations": {} }, "driver": "d", "deletionPolicy": "Delete",
    });
    change(&mut class);
    world.snapshot_classes.push(Arc::new(serde_json::from_value(class).unwrap()));
}

fn default_of(kind: &str) -> impl FnOnce(&mut Value) + use<> {
    let key = format!("{kind}/is-default-class");
    move |class: &mut Value| class["metadata"]["annotations"][key] = json!("true")
}

/// Says how a claim of the class `fast` is protected.
fn told(world: &World, change: impl FnOnce(&mut Value)) -> String {
    match classify(world, &claim(change)) {
        Ok(way) => {
            let path = match way.path {
                Path::Replicated => "replicated",
                Path::Shared => "shared",
                Path::Copied => "copied",
            };
            let ids =
                [&way.storage_id, &way.replication_id].map(|id| id.as_ref().map_or("-", |id| id.id.as_str()));
            format!("{path} {} {}/{}", way.class.as_deref().unwrap_or("-"), ids[0], ids[1])
        }
        Err(why) => why.reason(),
    }
}

fn check(rule: &str, group: impl FnOnce(&mut Value), fill: impl FnOnce(&mut World), expected: &str) {
    let mut world = world(group);
    fill(&mut world);
    assert_eq!(told(&world, |_| {}), expected, "{rule}");
}

fn plain(_: &mut Value) {}

#[test]
fn r16_a_claim_needs_a_storage_class_that_is_there() {
    let row = |rule: &str, class: Value, there: bool| {
        let mut world = world(plain);
        if there {
            storage(&mut world, |_| {});
        }
        replication(&mut world, "five", |_| {});
        assert_eq!(told(&world, |claim| claim["spec"]["storageClassName"] = class), "BadClass", "{rule}");
    };
    row("R16: no class", json!(null), true);
    row("R16: an empty class", json!(""), true);
    row("R16: a class that is not there", json!("fast"), false);
    row("R16: a class of another name", json!("slow"), true);
}

#[test]
fn r18_one_replication_class_fits_or_none_is_taken() {
    let with = |fill: fn(&mut World)| {
        move |world: &mut World| {
            storage(world, |_| {});
            fill(world);
        }
    };
    let off = |group: &mut Value| group["spec"]["volSync"] = json!({ "disabled": true });
    let row = |rule: &str, fill: fn(&mut World), expected: &str| check(rule, off, with(fill), expected);
    row("R18: the one that fits", |world| replication(world, "five", |_| {}), "replicated five s1/r1");
    row(
        "R18: another driver",
        |world| replication(world, "five", |c| c["spec"]["provisioner"] = json!("x")),
        "BadClass",
    );
    row(
        "R18: another schedule",
        |world| replication(world, "five", |c| c["spec"]["parameters"]["schedulingInterval"] = json!("1h")),
        "BadClass",
    );
    row(
        "R18: no schedule",
        |world| replication(world, "five", |c| c["spec"]["parameters"] = json!({})),
        "BadClass",
    );
    row(
        "R18: two that are plain",
        |world| {
            replication(world, "five", |_| {});
            replication(world, "six", |_| {});
        },
        "BadClass",
    );
    row(
        "R18: a default and a plain one",
        |world| {
            replication(world, "five", |_| {});
            replication(world, "six", default_of("replication.storage.openshift.io"));
        },
        "replicated six s1/r1",
    );
    row(
        "R18: two defaults",
        |world| {
            replication(world, "five", default_of("replication.storage.openshift.io"));
            replication(world, "six", default_of("replication.storage.openshift.io"));
        },
        "BadClass",
    );
    let selects = |group: &mut Value| {
        off(group);
        group["spec"]["async"]["replicationClassSelector"] = json!({ "matchLabels": { "tier": "a" } });
    };
    let tier = |tier: &'static str| {
        move |world: &mut World| {
            storage(world, |_| {});
            replication(world, "five", |c| {
                c["metadata"]["labels"] = json!({ STORAGE_ID: "s1", REPLICATION_ID: "r1", tier: "a" });
            });
        }
    };
    check("R18: labels that are selected", selects, tier("tier"), "replicated five s1/r1");
    check("R18: labels that are missing", selects, tier("other"), "BadClass");
}

#[test]
fn r19_without_classes_of_the_peer_the_driver_decides() {
    let same = |world: &mut World| {
        storage(world, |_| {});
        replication(world, "five", |_| {});
    };
    check("R19: with a replication id", plain, same, "replicated five s1/r1");
    let no_id = |world: &mut World| {
        storage(world, |_| {});
        replication(world, "five", |c| c["metadata"]["labels"] = json!({}));
    };
    check("R19: without one", plain, no_id, "replicated five s1/-");
    let other = |world: &mut World| {
        storage(world, |_| {});
        replication(world, "five", |c| c["spec"]["provisioner"] = json!("x"));
    };
    check("R19: of another driver, a mover copies", plain, other, "copied - s1/-");
    check("R19: no replication class at all", plain, |world| storage(world, |_| {}), "copied - s1/-");
    let forced = |group: &mut Value| group["metadata"]["annotations"] = json!({ USE_VOLSYNC: "true" });
    check("R19: a mover is asked for", forced, same, "copied - s1/-");
    let off = |group: &mut Value| {
        forced(group);
        group["spec"]["volSync"] = json!({ "disabled": true });
    };
    check("R19: movers are switched off for the group", off, same, "replicated five s1/r1");
    let off_here = |world: &mut World| {
        same(world);
        world.config.volsync_disabled = true;
    };
    check("R19: movers are switched off on the cluster", forced, off_here, "replicated five s1/r1");
    let lacks = |world: &mut World| {
        storage(world, |_| {});
        world.kinds.replication = false;
        world.config.volsync_disabled = true;
    };
    check("D25: the cluster has no VolumeReplication", plain, lacks, "Unsupported");
}

#[test]
fn with_classes_of_the_peer_they_decide() {
    let peers = |peer: Value| {
        move |group: &mut Value| {
            let mut all = json!({ "storageClassName": "fast", "storageID": ["s1"] });
            for (key, value) in peer.as_object().unwrap() {
                all[key] = value.clone();
            }
            group["spec"]["async"]["peerClasses"] = json!([all]);
        }
    };
    let both = |world: &mut World| {
        storage(world, |_| {});
        replication(world, "five", |_| {});
        snapshots(world, "snap", |_| {});
    };
    check("peer: it is replicated", peers(json!({ "replicationID": "r1" })), both, "replicated five s1/r1");
    check("peer: no class replicates so", peers(json!({ "replicationID": "r2" })), both, "BadClass");
    check("peer: it is copied", peers(json!({})), both, "copied snap s1/-");
    check("peer: other storage", peers(json!({ "storageID": ["s2"] })), both, "BadClass");
    check("peer: another storage class", peers(json!({ "storageClassName": "slow" })), both, "BadClass");
    check("peer: offloaded", peers(json!({ "offloaded": true })), both, "Unsupported");
    check("peer: global", peers(json!({ "global": true })), both, "Unsupported");
    let unnamed = |world: &mut World| {
        both(world);
        storage(world, |class| class["metadata"]["labels"] = json!({}));
    };
    check("D18: a class without an id is one bad claim", peers(json!({})), unnamed, "BadClass");
    let no_snapshots = |world: &mut World| {
        storage(world, |_| {});
        snapshots(world, "snap", |class| class["metadata"]["labels"][STORAGE_ID] = json!("s2"));
    };
    check("peer: no snapshot class of its storage", peers(json!({})), no_snapshots, "BadClass");
    let off = |group: &mut Value| {
        peers(json!({}))(group);
        group["spec"]["volSync"] = json!({ "disabled": true });
    };
    check("peer: copied, and movers are off", off, both, "BadClass");
}

#[test]
fn h2_the_snapshot_class_of_a_copy() {
    let by_mover = |group: &mut Value| group["metadata"]["annotations"] = json!({ USE_VOLSYNC: "true" });
    let with = |fill: fn(&mut World)| {
        move |world: &mut World| {
            storage(world, |_| {});
            fill(world);
        }
    };
    let row = |rule: &str, fill: fn(&mut World), expected: &str| check(rule, by_mover, with(fill), expected);
    row("H2: none", |_| {}, "copied - s1/-");
    row("H2: the one of its driver", |world| snapshots(world, "snap", |_| {}), "copied snap s1/-");
    row(
        "H2: of another driver",
        |world| snapshots(world, "snap", |c| c["driver"] = json!("x")),
        "copied - s1/-",
    );
    row(
        "H2: the default",
        |world| {
            snapshots(world, "a", |_| {});
            snapshots(world, "b", default_of("snapshot.storage.kubernetes.io"));
        },
        "copied b s1/-",
    );
    let selects = |group: &mut Value| {
        by_mover(group);
        group["spec"]["async"]["volumeSnapshotClassSelector"] = json!({ "matchLabels": { "tier": "a" } });
    };
    let two = |world: &mut World| {
        storage(world, |_| {});
        snapshots(world, "plain", |_| {});
        snapshots(world, "tiered", |c| c["metadata"]["labels"]["tier"] = json!("a"));
    };
    check("H2: the one that is selected", selects, two, "copied tiered s1/-");
}

#[test]
fn storage_that_both_clusters_share() {
    let metro = |peers: Value| {
        move |group: &mut Value| {
            group["spec"]["async"] = json!(null);
            group["spec"]["sync"] = json!({ "peerClasses": peers });
        }
    };
    let there = |world: &mut World| storage(world, |_| {});
    check("sync: any class", metro(json!([])), there, "shared - s1/-");
    let peer = json!([{ "storageClassName": "fast", "storageID": ["s1"] }]);
    check("sync: a class that the peer has", metro(peer), there, "shared - s1/-");
    let other = json!([{ "storageClassName": "fast", "storageID": ["s2"] }]);
    check("sync: storage that the peer has not", metro(other), there, "BadClass");
    let both = |group: &mut Value| group["spec"]["sync"] = json!({});
    check("sync: both modes at once, what is shared needs no copy", both, there, "shared - s1/-");
}
