//! A secondary, step by step: how a claim is demoted and let go, how receivers are set up, and which images are pruned.

use super::furniture::*;
use super::{now, world};
use lifeboat_engine::conditions::Holds;
use lifeboat_protect::decide::plan::Plan;
use lifeboat_protect::decide::{demote, receive, received};
use lifeboat_protect::world::{MoverKey, World};
use serde_json::{Value, json};

fn turned(action: &'static str) -> impl Fn(&mut Value) {
    move |group: &mut Value| {
        group["spec"]["replicationState"] = json!("secondary");
        group["spec"]["action"] = json!(action);
    }
}

fn demoted(rule: &str, group: impl FnOnce(&mut Value), fill: impl FnOnce(&mut World), expected: &str) {
    let (mut world, mut plan) = (world(group), Plan::default());
    fill(&mut world);
    demote::secondary(&world, now(), &mut plan);
    let ready =
        plan.verdicts.get("one").and_then(|one| one.said.get("DataReady")).map_or("", |said| said.reason);
    let told = planned(&plan);
    assert_eq!(if told.is_empty() { ready.to_owned() } else { told }, expected, "{rule}");
}

#[test]
fn a_claim_is_demoted_step_by_step() {
    let at_rest = |world: &mut World, change: fn(&mut Value)| {
        world.claims = vec![protected(|claim| {
            claim["metadata"]["deletionTimestamp"] = json!(GOING);
            change(claim);
        })];
    };
    let row = |rule: &str, fill: &dyn Fn(&mut World), expected: &str| {
        demoted(rule, turned("Relocate"), fill, expected);
    };
    row(
        "secondary 4: what was never ours is not demoted",
        &|world| at_rest(world, |c| c["metadata"]["finalizers"] = json!([])),
        "",
    );
    row(
        "secondary 4: it is protected before its role changes",
        &|world| {
            at_rest(world, |c| c["metadata"]["labels"] = json!({}));
            replication(world, "primary", |_| {});
        },
        "Protect",
    );
    row(
        "secondary 4: at rest and deleted, it is demoted",
        &|world| {
            at_rest(world, |_| {});
            replication(world, "primary", |_| {});
        },
        "Replicate",
    );
    row(
        "secondary 4: in use, it waits",
        &|world| {
            at_rest(world, |_| {});
            world.claims[0].users = vec!["pod a".into()];
            replication(world, "primary", |_| {});
        },
        "InUse",
    );
    row(
        "secondary 4: not deleted, a relocation waits",
        &|world| {
            world.claims = vec![protected(|_| {})];
            replication(world, "primary", |_| {});
        },
        "NotDeleted",
    );
    demoted(
        "secondary 4: after a failover the application may still be listed",
        turned("Failover"),
        |world| {
            world.claims = vec![protected(|_| {})];
            replication(world, "primary", |_| {});
        },
        "Replicate",
    );
    let filling = |one: &mut Value| {
        for at in [1, 2] {
            one["status"]["conditions"][at]["status"] = json!("True");
        }
    };
    row(
        "secondary 4: it is filled before it counts as replicated",
        &|world| {
            at_rest(world, |_| {});
            replication(world, "secondary", filling);
        },
        "Replicating",
    );
    row(
        "secondary 4: with all data, it is let go",
        &|world| {
            at_rest(world, |_| {});
            replication(world, "secondary", |_| {});
        },
        "EndReplication",
    );
    demoted(
        "with all data and still wanted by its user, it stays",
        turned("Failover"),
        |world| {
            world.claims = vec![protected(|_| {})];
            replication(world, "secondary", |one| one["spec"]["autoResync"] = json!(true));
        },
        "Replicated",
    );
    demoted(
        "D34: a failover resolves a split from the first write on",
        turned("Failover"),
        |world| {
            world.claims = vec![protected(|_| {})];
            replication(world, "secondary", |_| {});
        },
        "Replicate",
    );
    row(
        "died between the end of the replication and the claim's release",
        &|world| at_rest(world, |_| {}),
        "Unprotect",
    );
    row(
        "and not while it is used, though nothing mirrors it yet",
        &|world| {
            at_rest(world, |_| {});
            world.claims[0].users = vec!["pod a".into()];
        },
        "InUse",
    );
    row(
        "nor while its replication is being ended",
        &|world| {
            at_rest(world, |_| {});
            world.claims[0].users = vec!["pod a".into()];
            replication(world, "secondary", |one| one["metadata"]["deletionTimestamp"] = json!(GOING));
        },
        "InUse",
    );
    row(
        "one that nobody has protected yet is waited for where it is used",
        &|world| {
            at_rest(world, |c| c["metadata"]["finalizers"] = json!([]));
            world.claims[0].users = vec!["pod a".into()];
        },
        "InUse",
    );
    row(
        "a stranger's replication is reported",
        &|world| {
            at_rest(world, |_| {});
            replication(world, "primary", |one| one["metadata"]["labels"] = theirs());
        },
        "Foreign",
    );
    row(
        "S32: a claim that two groups want is left alone",
        &|world| {
            at_rest(world, |_| {});
            world.claims[0].rivals = vec![lifeboat_engine::ObjectKey::new("app", "other")];
            replication(world, "primary", |_| {});
        },
        "Conflict",
    );
}

#[test]
fn shared_storage_is_only_let_go() {
    let metro = |group: &mut Value| {
        turned("Relocate")(group);
        group["spec"]["sync"] = json!({});
        group["spec"]["async"] = json!(null);
    };
    let used = |world: &mut World| {
        world.claims = vec![protected(|_| {})];
        world.claims[0].users = vec!["node n".into()];
    };
    demoted("sync: not while it is used", metro, used, "InUse");
    demoted(
        "sync: not before its user deletes it",
        metro,
        |world| world.claims = vec![protected(|_| {})],
        "NotDeleted",
    );
    let gone = |world: &mut World| {
        world.claims = vec![protected(|c| c["metadata"]["deletionTimestamp"] = json!(GOING))];
    };
    demoted("sync: then it is let go, and its volume stays", metro, gone, "Unprotect");
}

fn received_as(group: &mut Value) {
    turned("")(group);
    group["spec"]["action"] = json!(null);
    group["spec"]["volSync"] =
        json!({ "rdSpec": [{ "protectedPVC": { "name": "one", "storageClassName": "fast" } }] });
}

fn receives(rule: &str, group: impl FnOnce(&mut Value), fill: impl FnOnce(&mut World), expected: &str) {
    let (mut world, mut plan) = (world(group), Plan::default());
    world.mover_key = MoverKey::There;
    fill(&mut world);
    receive::secondary(&world, now(), &mut plan);
    assert_eq!(planned(&plan), expected, "{rule}");
}

#[test]
fn no_receiver_no_secondary() {
    let check = |rule: &str, fill: fn(&mut World), expected: Holds, named: &str| {
        let (mut world, mut plan) = (world(received_as), Plan::default());
        world.mover_key = MoverKey::There;
        // It was primary here: its claim is kept.
        world.claims = vec![protected(|claim| {
            claim["metadata"]["finalizers"] = json!([lifeboat_api::finalizers::PVC_VOLSYNC]);
        })];
        fill(&mut world);
        receive::secondary(&world, now(), &mut plan);
        let said = lifeboat_protect::status::data_ready(&plan.verdicts, false);
        assert_eq!(said.holds, expected, "{rule}: {said:?}");
        assert!(said.message.contains(named), "{rule}: {said:?}");
    };
    let keyless = |world: &mut World| world.mover_key = MoverKey::Missing;
    check("no key, so no receiver", keyless, Holds::False, "web-vs-secret");
    check(
        "the key went later",
        |world| {
            world.mover_key = MoverKey::Missing;
            receiver(world, "one", |_| {});
        },
        Holds::True,
        "",
    );
    check(
        "an earlier receiver is not gone",
        |world| {
            receiver(world, "one", |one| one["metadata"]["deletionTimestamp"] = json!(GOING));
        },
        Holds::False,
        "one",
    );
    check("a receiver that begins", |world| receiver(world, "one", |_| {}), Holds::True, "");
}

#[test]
fn receivers_are_set_up_and_kept() {
    let kept = |group: &mut Value| {
        received_as(group);
        group["spec"]["volSync"]["rdSpec"] = json!([]);
    };
    receives("Y2: one for each claim that is named", received_as, |_| {}, "Receive");
    receives("D2: an empty list removes none", kept, |world| receiver(world, "one", |_| {}), "");
    receives(
        "H4: no key, no receiver",
        received_as,
        |world| world.mover_key = MoverKey::Missing,
        "KeyMissing",
    );
    receives(
        "H4: the key is looked for once",
        received_as,
        |world| world.mover_key = MoverKey::Unknown,
        "FindKey",
    );
    receives(
        "H4: a sender of the same claim goes first",
        received_as,
        |world| source(world, |_| {}),
        "StopSending",
    );
    let going = |one: &mut Value| one["metadata"]["deletionTimestamp"] = json!(GOING);
    receives(
        "an earlier receiver is waited for",
        received_as,
        |world| receiver(world, "one", going),
        "Removing",
    );
    let foreign = |one: &mut Value| one["metadata"]["labels"] = theirs();
    receives(
        "a stranger's receiver is reported",
        received_as,
        |world| receiver(world, "one", foreign),
        "Foreign",
    );
    receives(
        "D25: no kind, no receiver, and it is said",
        received_as,
        |world| world.kinds.volsync = false,
        "Unsupported",
    );
    let elsewhere = |group: &mut Value| {
        received_as(group);
        group["spec"]["volSync"]["rdSpec"][0]["protectedPVC"]["namespace"] = json!("other");
    };
    receives("S33: not for another namespace", elsewhere, |_| {}, "Unsupported");
    let copied = |world: &mut World| {
        world.claims = vec![protected(|c| {
            c["metadata"]["finalizers"] = json!([VOLSYNC]);
            c["metadata"]["deletionTimestamp"] = json!(GOING);
        })];
    };
    receives("secondary 3: a claim that was sent is let go, its volume stays", kept, copied, "Unprotect");
    let used = |world: &mut World| {
        copied(world);
        world.claims[0].users = vec!["pod a".into()];
    };
    receives("secondary 3: not while it is used", kept, used, "InUse");
    let fleeting = |world: &mut World| {
        copied(world);
        let one = volume(|volume| volume["spec"]["persistentVolumeReclaimPolicy"] = json!("Delete"));
        world.claims[0].volume = Some(std::sync::Arc::new(one));
    };
    receives("secondary 3: its volume is made one that is kept first", kept, fleeting, "Retain");
}

#[test]
fn the_snapshot_class_of_images_is_chosen_as_for_what_is_sent() {
    let check = |rule: &str, classes: Vec<Value>, expected: Option<&str>| {
        let (mut world, mut plan) = (world(received_as), Plan::default());
        world.mover_key = MoverKey::There;
        let class = json!({ "metadata": { "name": "fast", "labels": { "ramendr.openshift.io/storageid": "s1" } }, "provisioner": "d" });
        world.classes.insert("fast".into(), std::sync::Arc::new(serde_json::from_value(class).unwrap()));
        let classes =
            classes.into_iter().map(|class| std::sync::Arc::new(serde_json::from_value(class).unwrap()));
        world.snapshot_classes = classes.collect();
        receive::secondary(&world, now(), &mut plan);
        let Some(lifeboat_protect::decide::Effect::Receive { spec, .. }) = plan.effects.first() else {
            panic!("{rule}: {plan:?}")
        };
        let chosen = spec.rsync_tls.as_ref().unwrap().volume.volume_snapshot_class_name.as_deref();
        assert_eq!(chosen, expected, "{rule}");
    };
    let class =
        |name: &str| json!({ "metadata": { "name": name }, "driver": "d", "deletionPolicy": "Delete" });
    let with = |name: &str, at: &str, key: &str, value: &str| {
        let mut class = class(name);
        class["metadata"][at] = json!({ key: value });
        class
    };
    let default =
        |name: &str| with(name, "annotations", "snapshot.storage.kubernetes.io/is-default-class", "true");
    let same = |name: &str| with(name, "labels", "ramendr.openshift.io/storageid", "s1");
    let online = |name: &str| {
        let mut class = default(name);
        class["parameters"] = json!({ "topolvm.io/snapshot-mode": "online" });
        class
    };
    check("the default one", vec![class("a"), default("b")], Some("b"));
    check("the one of its storage", vec![class("a"), same("b")], Some("b"));
    check("never one whose snapshots are backups", vec![online("a"), class("b")], Some("b"));
    check("not even where there is no other", vec![online("a")], None);
}

#[test]
fn volumes_of_earlier_times_are_told() {
    let (mut world, mut plan) = (world(received_as), Plan::default());
    world.mover_key = MoverKey::There;
    world.kinds.exports = false;
    receive::secondary(&world, now(), &mut plan);
    let Some(lifeboat_protect::decide::Effect::Receive { spec, .. }) = plan.effects.first().cloned() else {
        panic!()
    };
    receiver(&mut world, "one", |one| one["spec"] = serde_json::to_value(&spec).unwrap());
    let left = volume(|volume| volume["status"] = json!({ "phase": "Released" }));
    world.volumes.insert("v".into(), std::sync::Arc::new(left));
    let mut plan = Plan::default();
    receive::secondary(&world, now(), &mut plan);
    let said = &plan.verdicts["one"].said["ReplicationDestinationSetup"].message;
    assert!(said.contains("delete them when their data is not wanted): v"), "{said}");
}

#[test]
fn d5_pruning_takes_older_images_of_the_same_claim_only() {
    let check = |rule: &str, latest_ready: bool, fill: fn(&mut World), expected: &[&str]| {
        let (mut world, mut plan) = (world(received_as), Plan::default());
        world.mover_key = MoverKey::There;
        world.kinds.exports = false;
        // What the receiver shall be, first, so that nothing but pruning is left.
        receive::secondary(&world, now(), &mut plan);
        let Some(lifeboat_protect::decide::Effect::Receive { spec, .. }) = plan.effects.first().cloned()
        else {
            panic!()
        };
        receiver(&mut world, "one", |one| {
            one["spec"] = serde_json::to_value(&spec).unwrap();
            one["status"]["latestImage"] =
                json!({ "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "new" });
        });
        image(&mut world, "new", "one", "2029-12-31T12:00:00Z", |one| {
            one["status"]["readyToUse"] = json!(latest_ready);
        });
        fill(&mut world);
        let mut plan = Plan::default();
        receive::secondary(&world, now(), &mut plan);
        let dropped: Vec<String> = plan
            .effects
            .iter()
            .map(|effect| match effect {
                lifeboat_protect::decide::Effect::DropImage { image, .. } => image.clone(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(dropped, expected, "{rule}");
    };
    const OLD: &str = "2029-12-31T11:00:00Z";
    check(
        "D5: an older one of the same claim goes",
        true,
        |world| image(world, "old", "one", OLD, |_| {}),
        &["old"],
    );
    check("D5: not before the newest is ready", false, |world| image(world, "old", "one", OLD, |_| {}), &[]);
    check("D5: never another claim's", true, |world| image(world, "old", "two", OLD, |_| {}), &[]);
    check(
        "D5: never a newer one",
        true,
        |world| image(world, "newer", "one", "2029-12-31T13:00:00Z", |_| {}),
        &[],
    );
    let foreign: fn(&mut World) =
        |world| image(world, "old", "one", OLD, |one| one["metadata"]["labels"] = theirs());
    check("D5: never another group's", true, foreign, &[]);
}

#[test]
fn only_a_primary_that_is_ready_removes_receivers() {
    let check = |rule: &str, change: fn(&mut Value), fill: fn(&mut World), expected: &str| {
        let mut world = world(|group| {
            group["status"] =
                json!({ "epoch": 1, "primaryEpoch": 1, "state": "Primary", "observedGeneration": 3 });
            change(group);
        });
        receiver(&mut world, "two", |_| {});
        fill(&mut world);
        let mut plan = Plan::default();
        received::stop_as_primary(&world, now(), &mut plan);
        assert_eq!(planned(&plan), expected, "{rule}");
    };
    check("H9: ready, and nobody names it", |_| {}, |_| {}, "StopReceiving");
    check("H9: not ready", |g| g["status"]["state"] = json!("Unknown"), |_| {}, "");
    check("H9: ready for an earlier wish", |g| g["status"]["observedGeneration"] = json!(2), |_| {}, "");
    check("H9: passed over by a later epoch", |g| g["status"]["epoch"] = json!(2), |_| {}, "");
    check("H9: while the last copy is made", |g| g["spec"]["runFinalSync"] = json!(true), |_| {}, "");
    check(
        "H9: named",
        |g| g["spec"]["volSync"] = json!({ "rdSpec": [{ "protectedPVC": { "name": "two" } }] }),
        |_| {},
        "",
    );
    let kept: fn(&mut World) = |world| {
        receiver(world, "two", |one| {
            one["metadata"]["labels"]["volsync.backube/do-not-delete"] = json!("true");
        });
    };
    check("H9: one that shall not be deleted", |_| {}, kept, "");
    let foreign: fn(&mut World) = |world| receiver(world, "two", |one| one["metadata"]["labels"] = theirs());
    check("H9: another group's", |_| {}, foreign, "");
}
