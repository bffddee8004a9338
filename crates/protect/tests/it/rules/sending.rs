//! Senders: what they are told, and when a claim gets one.

use super::furniture::*;
use super::{now, world};
use lifeboat_protect::decide::classify::Way;
use lifeboat_protect::decide::plan::{Path, Plan};
use lifeboat_protect::decide::{Effect, copied};
use lifeboat_protect::world::{MoverKey, World};
use serde_json::{Value, json};
use std::sync::Arc;

const WAY: Way =
    Way { path: Path::Copied, class: None, storage_id: None, replication_id: None, shortfall: None };

fn sent(group: impl FnOnce(&mut Value), fill: impl FnOnce(&mut World)) -> Plan {
    let (mut world, mut plan) = (world(group), Plan::default());
    world.mover_key = MoverKey::There;
    let class = json!({ "metadata": { "name": "fast" }, "provisioner": "d" });
    world.classes.insert("fast".into(), Arc::new(serde_json::from_value(class).unwrap()));
    world.claims = vec![protected(|claim| claim["metadata"]["finalizers"] = json!([VOLSYNC]))];
    fill(&mut world);
    let claims: Vec<_> = world.claims.iter().map(|claim| (claim, WAY)).collect();
    copied::primary(&world, now(), &mut plan, &claims);
    plan
}

fn check(rule: &str, group: impl FnOnce(&mut Value), fill: impl FnOnce(&mut World), expected: &str) {
    assert_eq!(planned(&sent(group, fill)), expected, "{rule}");
}

fn spec(plan: &Plan) -> Value {
    match plan.effects.first() {
        Some(Effect::Send { spec, .. }) => serde_json::to_value(spec).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// A claim that was restored at this epoch, of a group whose peer has no address.
fn unreached(group: &mut Value) {
    group["metadata"]["annotations"] =
        json!({ "drplacementcontrol.ramendr.openshift.io/is-submariner-enabled": "false" });
    group["status"] = json!({ "epoch": 2, "primaryEpoch": 2 });
}

#[test]
fn what_was_restored_is_ready_though_its_peer_is_dead() {
    for phase in ["Bound", "Pending"] {
        let plan = sent(unreached, |world| {
            world.claims = vec![protected(|claim| {
                claim["metadata"]["finalizers"] = json!([VOLSYNC]);
                claim["metadata"]["annotations"] = json!({ lifeboat_api::annotations::RESTORE: "True", lifeboat_api::annotations::HELD_AT_EPOCH: "2" });
                claim["status"]["phase"] = json!(phase);
            })];
        });
        let ready = lifeboat_protect::status::data_ready(&plan.verdicts, true);
        assert_eq!(
            (ready.holds, ready.reason),
            (lifeboat_engine::conditions::Holds::True, "Ready"),
            "{phase}: {ready:?}"
        );
    }
}

#[test]
fn a_claim_is_held_at_the_epoch_of_its_primary() {
    let at = |group: &mut Value| group["status"] = json!({ "epoch": 2, "primaryEpoch": 2 });
    let held = |epoch: &'static str| {
        move |world: &mut World| {
            world.claims = vec![protected(|claim| {
                claim["metadata"]["finalizers"] = json!([VOLSYNC]);
                claim["metadata"]["annotations"] = json!({ lifeboat_api::annotations::HELD_AT_EPOCH: epoch });
            })];
            let of = volume(|volume| {
                volume["metadata"]["annotations"] =
                    json!({ lifeboat_api::annotations::HELD_AT_EPOCH: epoch });
            });
            world.claims[0].volume = Some(Arc::new(of));
        }
    };
    check("noted before anything is sent", at, |_| {}, "Note");
    // The application made the claim anew, of a volume that was kept: it is the same data.
    let plan = sent(at, |world| {
        let kept = volume(|volume| {
            volume["metadata"]["annotations"][lifeboat_api::annotations::LINEAGE] = json!("first");
        });
        world.claims[0].volume = Some(Arc::new(kept));
    });
    let Some(Effect::Note { notes, .. }) = plan.effects.first() else { panic!("{:?}", plan.effects) };
    assert_eq!(notes[lifeboat_api::annotations::LINEAGE], "first");
    check("anew for each epoch", at, held("1"), "Note");
    check("once", at, held("2"), "Send");
    let passed = |group: &mut Value| group["status"] = json!({ "epoch": 3, "primaryEpoch": 2 });
    check("not by one that was passed over", passed, held("1"), "Send");
}

#[test]
fn a_copy_that_fails_is_told_with_its_reason() {
    let told = |status: &str, reason: &str| {
        let copies = |group: &mut Value| group["spec"]["volSync"] = json!({});
        let says = |spec: &Value| {
            let condition = json!({ "type": "Synchronizing", "status": status, "reason": reason,
                "message": "another volume", "lastTransitionTime": GOING });
            let status = json!({ "external": { "executor": "lifeboat" }, "conditions": [condition] });
            let spec = spec.clone();
            move |world: &mut World| {
                source(world, |source| {
                    source["status"] = status;
                    source["spec"] = spec;
                });
            }
        };
        // As it is made, nothing is to do but to tell.
        let made = spec(&sent(copies, says(&json!({ "sourcePVC": "one" }))));
        let plan = sent(copies, says(&made));
        let (_, copied) = lifeboat_protect::status::data_protected(&plan.verdicts, true);
        (planned(&plan), copied.message.contains("another volume"))
    };
    assert_eq!(told("False", "Error"), ("Mover".to_owned(), true));
    assert_eq!(told("False", "WaitingForSchedule"), (String::new(), false));
    assert_eq!(told("True", "SyncInProgress"), (String::new(), false));
}

#[test]
fn the_last_copy_of_a_mover_that_cannot_make_it_is_refused() {
    let prepare = |group: &mut Value| group["spec"]["prepareForFinalSync"] = json!(true);
    let run = |group: &mut Value| group["spec"]["runFinalSync"] = json!(true);
    let stock =
        |world: &mut World| source(world, |source| source["status"] = json!({ "lastSyncTime": GOING }));
    let ours = |world: &mut World| {
        source(world, |source| {
            source["status"] = json!({ "lastSyncTime": GOING, "external": { "executor": "lifeboat" } });
        });
    };
    check("before the application is stopped", prepare, stock, "Unsupported");
    check("our own can", prepare, ours, "HoldCopies");
    check("a claim that stays can be copied by any", run, stock, "Send");
    let going = |world: &mut World| {
        stock(world);
        world.claims = vec![protected(|claim| {
            claim["metadata"]["finalizers"] = json!([VOLSYNC]);
            claim["metadata"]["deletionTimestamp"] = json!(GOING);
        })];
    };
    check("one that is being deleted cannot", run, going, "Unsupported");
}

#[test]
fn y1_a_bound_claim_gets_a_sender() {
    let plain = |_: &mut Value| {};
    check("Y1: bound and protected", plain, |_| {}, "Send");
    let pending = |world: &mut World| {
        world.claims = vec![protected(|claim| claim["status"]["phase"] = json!("Pending"))];
    };
    check("Y1: not bound, it is not listed", plain, pending, "NotBound");
    assert!(sent(plain, pending).verdicts.is_empty());
    check("H4: no key, no sender", plain, |world| world.mover_key = MoverKey::Missing, "KeyMissing");
    check(
        "H4: the key is looked for once, by nobody twice",
        plain,
        |world| world.mover_key = MoverKey::Unknown,
        "FindKey",
    );
    check(
        "H4: a receiver of the same claim goes first",
        plain,
        |world| receiver(world, "one", |_| {}),
        "StopReceiving",
    );
    let foreign = |world: &mut World| source(world, |one| one["metadata"]["labels"] = theirs());
    check("a stranger's sender is left alone", plain, foreign, "Foreign");
    check(
        "D25: the cluster has no ReplicationSource",
        plain,
        |world| world.kinds.volsync = false,
        "Unsupported",
    );
    let apart = |group: &mut Value| {
        group["metadata"]["annotations"] =
            json!({ "drplacementcontrol.ramendr.openshift.io/is-submariner-enabled": "false" });
    };
    check("Y1: where names do not reach, the hub says where to", apart, |_| {}, "Mover");
    let told = |group: &mut Value| {
        apart(group);
        group["spec"]["volSync"] = json!({ "rsSpec": [{ "protectedPVC": { "name": "one" }, "rsyncTLS": { "address": "203.0.113.9" } }] });
    };
    assert_eq!(spec(&sent(told, |_| {}))["rsyncTLS"]["address"], "203.0.113.9", "Y1: and there it is sent");
}

#[test]
fn h3_storage_of_many_readers_is_read_only() {
    let modes = |fill: fn(&mut World)| spec(&sent(|_| {}, fill))["rsyncTLS"]["accessModes"].clone();
    assert_eq!(
        modes(|world| world.config.read_only_many_driver = "d".into()),
        json!(["ReadOnlyMany"]),
        "H3: its driver"
    );
    assert_eq!(modes(|_| {}), Value::Null, "H3: another driver");
}

#[test]
fn h7_the_last_copy_waits_until_nobody_writes() {
    let last = |group: &mut Value| group["spec"]["runFinalSync"] = json!(true);
    let used = |by: &'static str| move |world: &mut World| world.claims[0].users = vec![by.into()];
    check("H7: a pod uses the claim", last, used("pod a"), "InUse");
    check("H7: its volume is attached", last, used("node n"), "InUse");
    let plan = sent(last, |_| {});
    assert_eq!(spec(&plan)["trigger"]["manual"], "vrg-final-sync-0-3", "H7: at rest, it is asked for");
    assert_eq!(plan.final_sync, Some(false), "D3: asked for is not done");
    let prepare = |group: &mut Value| group["spec"]["prepareForFinalSync"] = json!(true);
    check("the copies on schedule are held back first", prepare, |_| {}, "HoldCopies");
}
