//! Claims that a relocation took away, where the relocation does not happen.

use super::furniture::*;
use super::{now, world};
use jiff::SignedDuration;
use lifeboat_api::annotations::TAKEN_OFF;
use lifeboat_protect::decide::plan::Plan;
use lifeboat_protect::decide::{Effect, Sorted, classify::Way, plan::Path, returning, undo};
use lifeboat_protect::world::{Claim, World};
use serde_json::{Value, json};
use std::sync::Arc;

const WAY: Way =
    Way { path: Path::Copied, class: None, storage_id: None, replication_id: None, shortfall: None };

fn copied(change: impl FnOnce(&mut Value)) -> Claim {
    protected(|claim| {
        claim["metadata"]["finalizers"] = json!([VOLSYNC]);
        change(claim);
    })
}

fn moving(epoch: i64, run: bool) -> World {
    world(|group| {
        group["status"] = json!({ "epoch": epoch, "primaryEpoch": epoch });
        group["spec"]["runFinalSync"] = json!(run);
    })
}

/// What is noted on a claim before the application is stopped.
fn note() -> String {
    let (world, claim, mut plan) = (moving(2, true), copied(|_| {}), Plan::default());
    let sorted = Sorted { replicated: Vec::new(), copied: vec![(&claim, WAY)] };
    assert!(!returning::note(&world, now(), &mut plan, &sorted), "nothing is prepared before it is written");
    match plan.effects.as_slice() {
        [Effect::Note { claim, notes }] if claim == "one" => notes[TAKEN_OFF].clone(),
        other => panic!("{other:?}"),
    }
}

fn noted(world: &mut World, on_claim: bool, change: impl FnOnce(&mut Value)) {
    let note = note();
    let mut claim = copied(|claim| {
        if on_claim {
            claim["metadata"]["annotations"][TAKEN_OFF] = json!(note);
        }
        change(claim);
    });
    claim.volume =
        Some(Arc::new(volume(|volume| volume["metadata"]["annotations"][TAKEN_OFF] = json!(note))));
    world.claims = vec![claim];
}

fn back(world: &World) -> Plan {
    let mut plan = Plan::default();
    returning::come_back(world, now(), &mut plan);
    plan
}

#[test]
fn a_claim_that_a_relocation_deleted_is_kept_until_it_comes_back() {
    let check = |rule: &str, epoch: i64, run: bool, on_claim: bool, leaves: bool, expected: &str| {
        let mut world = moving(epoch, run);
        noted(&mut world, on_claim, |claim| claim["metadata"]["deletionTimestamp"] = json!(GOING));
        assert_eq!(undo::is_leaving(&world, &world.claims[0]), leaves, "{rule}");
        assert_eq!(planned(&back(&world)), expected, "{rule}");
    };
    check("the last copy runs", 2, true, true, false, "");
    check("the relocation does not happen", 2, false, true, false, "Unprotect");
    check("its volume tells the same", 2, false, false, false, "Unprotect");
    check("the note is of an earlier time here", 3, false, true, true, "");
}

#[test]
fn a_claim_that_is_used_again_is_its_users_to_delete() {
    let check = |rule: &str, after: i64, users: &[&str], ready: bool, expected: &str| {
        let mut world = moving(2, false);
        noted(&mut world, true, |_| {});
        world.claims[0].users = users.iter().map(|user| (*user).to_owned()).collect();
        let mut plan = Plan::default();
        returning::come_back(&world, now() + SignedDuration::from_secs(after), &mut plan);
        assert_eq!(planned(&plan), expected, "{rule}");
        assert_eq!(!plan.verdicts.contains_key("one"), ready, "{rule}");
        assert_eq!(plan.until.is_some(), expected.is_empty() && !(users.is_empty() && ready), "{rule}");
    };
    check("who stops the application may not have begun", 9, &["pod a"], false, "");
    check("nor is it known where nobody uses it", 9, &[], false, "");
    check("it was stopped, and its claim stayed", 11, &[], true, "");
    check("it runs, and may still be deleted by a slow tool", 11, &["pod a"], true, "");
    check("it runs", 601, &["pod a"], true, "Stays");
    check("the clock was set back", -1, &["pod a"], true, "Stays");
}

#[test]
fn a_volume_whose_claim_is_gone_gets_it_back() {
    let with = |change: fn(&mut Value), claims: Vec<Claim>| {
        let mut world = moving(2, false);
        let note = note();
        let kept = volume(|volume| {
            volume["metadata"]["annotations"][TAKEN_OFF] = json!(note);
            change(volume);
        });
        world.volumes.insert("v".into(), Arc::new(kept));
        world.claims = claims;
        back(&world)
    };
    let free: fn(&mut Value) = |volume| volume["spec"]["claimRef"]["uid"] = json!("");
    let plan = with(|_| {}, Vec::new());
    assert!(planned(&plan).starts_with("Unclaim"), "{}", planned(&plan));
    let plan = with(free, Vec::new());
    let [Effect::MakeClaim { claim }] = plan.effects.as_slice() else { panic!("{:?}", plan.effects) };
    assert_eq!(claim.spec.as_ref().unwrap().volume_name.as_deref(), Some("v"));
    assert_eq!(claim.metadata.labels.as_ref().unwrap()["app"], "web", "the group's selector takes it");
    assert_eq!(
        plan.verdicts["one"].said["DataReady"].reason, "Progressing",
        "nobody is placed before it is there"
    );
    // Whoever was quicker gets the volume.
    let unbound = || copied(|claim| claim["spec"]["volumeName"] = json!(null));
    assert_eq!(planned(&with(|_| {}, vec![unbound()])), "Unclaim");
    assert_eq!(planned(&with(free, vec![unbound()])), "Restoring");
    // One that the application made meanwhile is in the way, and is nobody's to delete but its user's.
    let other = copied(|claim| claim["spec"]["volumeName"] = json!("another"));
    let plan = with(free, vec![other]);
    assert!(plan.effects.is_empty());
    assert!(plan.verdicts["one"].said["DataReady"].message.contains("kept in PV v"));
}
