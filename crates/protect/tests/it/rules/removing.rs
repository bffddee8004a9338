//! Undoing: the order in which a claim is let go, and in which a group goes.

use super::furniture::*;
use super::{now, world};
use lifeboat_protect::books::StoreState;
use lifeboat_protect::decide::decide;
use lifeboat_protect::decide::plan::Plan;
use lifeboat_protect::decide::undo::{is_leaving, protect, unprotect};
use lifeboat_protect::ledger::{LedgerError, Tried};
use lifeboat_protect::world::{Claim, World};
use serde_json::{Value, json};
use std::sync::Arc;

fn undo(rule: &str, fill: impl FnOnce(&mut World, &mut Claim), keep: bool, expected: &str) {
    let (mut world, mut claim, mut plan) = (world(|_| {}), protected(|_| {}), Plan::default());
    fill(&mut world, &mut claim);
    unprotect(&world, now(), &mut plan, &claim, keep);
    assert_eq!(planned(&plan), expected, "{rule}");
}

#[test]
fn a_claim_is_let_go_in_one_order() {
    let bare = |claim: &mut Claim| {
        claim.volume = Some(Arc::new(volume(|v| v["metadata"]["annotations"] = json!({}))));
    };
    undo(
        "undo 1: the replication ends first",
        |world, _| replication(world, "primary", |_| {}),
        false,
        "EndReplication",
    );
    let going = |one: &mut Value| one["metadata"]["deletionTimestamp"] = json!(GOING);
    undo("undo 1: and is waited for", |world, _| replication(world, "primary", going), false, "Removing");
    undo("undo 1: the sender likewise", |world, _| source(world, |_| {}), false, "StopSending");
    undo("undo 1: and is waited for too", |world, _| source(world, going), false, "Removing");
    undo("undo 2: then the volume gets its policy back", |_, _| {}, false, "Unretain");
    undo("undo 2: only if we changed it (D11)", |_, claim| bare(claim), false, "Unprotect");
    undo("undo 2: not where it is the replica", |_, _| {}, true, "Unprotect");
    let copied = |claim: &mut Claim| {
        let kept = json!({ "volumereplicationgroups.ramendr.openshift.io/volsync-retained": "retained" });
        claim.volume = Some(Arc::new(volume(|v| v["metadata"]["annotations"] = kept)));
    };
    undo("undo 2: D32, a copied claim's volume likewise", |_, claim| copied(claim), false, "Unretain");
    undo("undo 3: the finalizer last", |_, claim| bare(claim), false, "Unprotect");
    undo(
        "undo 3: nothing where nothing is ours",
        |_, claim| *claim = super::seen(super::claim(|_| {})),
        false,
        "",
    );
    let foreign = |one: &mut Value| one["metadata"]["labels"] = theirs();
    undo(
        "a stranger's replication is left alone",
        |world, _| replication(world, "primary", foreign),
        false,
        "Unretain",
    );
    undo("a stranger's sender is left alone", |world, _| source(world, foreign), false, "Unretain");
}

#[test]
fn a_claim_is_brought_in_in_one_order() {
    let check = |rule: &str, change: fn(&mut Value), kept: Option<bool>, expected: &str| {
        let (world, mut plan) = (world(|_| {}), Plan::default());
        let mut claim = protected(change);
        claim.volume = kept.map(|kept| {
            Arc::new(volume(|v| {
                v["spec"]["persistentVolumeReclaimPolicy"] = json!(if kept { "Retain" } else { "Delete" });
            }))
        });
        let done =
            protect(&world, now(), &mut plan, &claim, lifeboat_protect::decide::plan::Path::Replicated);
        assert_eq!((planned(&plan).as_str(), done), (expected, expected.is_empty()), "{rule}");
    };
    let unmarked: fn(&mut Value) = |c| c["metadata"]["annotations"] = json!({});
    check("protect 1: marked as protected, nothing is left", |_| {}, Some(true), "");
    check(
        "protect 4: the finalizer first",
        |c| c["metadata"]["finalizers"] = json!([]),
        Some(false),
        "Protect",
    );
    check(
        "protect 4: with the owner's labels",
        |c| c["metadata"]["labels"] = json!({ "app": "web" }),
        Some(true),
        "Protect",
    );
    check("protect 5: then the volume is kept", unmarked, Some(false), "Retain");
    check("protect 5: also where somebody gave it up meanwhile", |_| {}, Some(false), "Retain");
    check("protect 5: one that its user keeps stays as it is", unmarked, Some(true), "Mark");
    check("protect 7: the mark last", unmarked, Some(true), "Mark");
    check("protect 2: without a volume it waits", unmarked, None, "NotBound");
    let deleted: fn(&mut Value) = |c| {
        c["metadata"]["annotations"] = json!({});
        c["metadata"]["deletionTimestamp"] = json!(GOING);
    };
    check("protect 7: no mark on what is being deleted", deleted, Some(true), "");
    let owned: fn(&mut Value) = |c| {
        c["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": "ReplicationSource", "name": "one", "uid": "u" }]);
    };
    check("an older controller's ownership is taken off first", owned, Some(true), "Protect");
}

#[test]
fn who_leaves_a_primary() {
    let check = |rule: &str, change: fn(&mut Value), fill: fn(&mut World, &mut Claim), leaves: bool| {
        let mut world = world(change);
        let mut claim = protected(|_| {});
        fill(&mut world, &mut claim);
        assert_eq!(is_leaving(&world, &claim), leaves, "{rule}");
    };
    check("R8: selected, it stays", |_| {}, |_, _| {}, false);
    check("R8: deselected, it leaves", |_| {}, |_, claim| claim.selected = false, true);
    check(
        "R8: deselected with unprotection off, it stays",
        |_| {},
        |world, claim| {
            claim.selected = false;
            world.config.keep_deselected = true;
        },
        false,
    );
    let row: fn(&mut World, &mut Claim) = |_, claim| {
        *claim = protected(|c| c["metadata"]["deletionTimestamp"] = json!(GOING));
    };
    check("deleted by its user, it leaves", |_| {}, row, true);
    check(
        "not while the last copy is prepared",
        |g| g["spec"]["prepareForFinalSync"] = json!(true),
        row,
        false,
    );
    check("not while the last copy is made", |g| g["spec"]["runFinalSync"] = json!(true), row, false);
    let others: fn(&mut World, &mut Claim) = |_, claim| {
        *claim = protected(|c| c["metadata"]["labels"] = theirs());
        claim.selected = false;
    };
    check("another group's never", |_| {}, others, false);
}

const STATUS: fn(&mut Value) = |group| {
    group["metadata"]["deletionTimestamp"] = json!(GOING);
    group["metadata"]["annotations"][lifeboat_api::annotations::END_PROTECTION] = json!("true");
    group["status"] = json!({ "epoch": 1, "primaryEpoch": 1, "state": "Primary" });
};

fn removed(rule: &str, change: impl FnOnce(&mut Value), fill: impl FnOnce(&mut World), expected: &str) {
    let mut world = world(|group| {
        STATUS(group);
        change(group);
    });
    fill(&mut world);
    assert_eq!(decided(&decide(&world, now())), expected, "{rule}");
}

fn erased(world: &mut World) {
    world.stores.insert("east".into(), StoreState { erased: true, ..StoreState::default() });
}

#[test]
fn r11_a_group_goes_when_all_it_did_is_undone() {
    let plain = |_: &mut Value| {};
    let secondary = |group: &mut Value| {
        group["spec"]["replicationState"] = json!("secondary");
        group["status"] = json!({ "epoch": 1 });
    };
    let with = |role: &'static str, change: fn(&mut Value)| {
        move |world: &mut World| {
            world.claims = vec![protected(|_| {})];
            replication(world, role, change);
        }
    };
    removed("delete 0: not ours to hold", |g| g["metadata"]["finalizers"] = json!([]), |_| {}, "settled");
    removed("R11: first the replication", plain, with("primary", |_| {}), "EndReplication");
    removed(
        "R11: until it is gone",
        plain,
        with("primary", |one| one["metadata"]["deletionTimestamp"] = json!(GOING)),
        "Removing",
    );
    removed("R11: then the volume", plain, |world| world.claims = vec![protected(|_| {})], "Unretain");
    let freed = |world: &mut World| {
        let mut claim = protected(|_| {});
        claim.volume = Some(Arc::new(volume(|v| v["metadata"]["annotations"] = json!({}))));
        world.claims = vec![claim];
    };
    removed("R11: then the claim", plain, freed, "Unprotect");
    let refused = |one: &mut Value| {
        one["status"] = json!({ "state": "Unknown", "observedGeneration": 2, "conditions": [{ "type": "Validated", "status": "False",
            "observedGeneration": 2, "reason": "R", "message": "m", "lastTransitionTime": GOING }] });
    };
    removed(
        "R12: what the storage never took holds nobody",
        plain,
        with("primary", refused),
        "EndReplication",
    );
    removed(
        "R13: not completed, it is waited for",
        plain,
        with("primary", |one| one["status"]["conditions"] = json!([])),
        "Storage",
    );
    removed("delete 5: a primary's is primary before it ends", plain, with("secondary", |_| {}), "Replicate");
    let at_rest = |world: &mut World| {
        world.claims = vec![protected(|c| c["metadata"]["deletionTimestamp"] = json!(GOING))];
        replication(world, "primary", |_| {});
    };
    removed("delete 5: a secondary's is demoted before it ends", secondary, at_rest, "Replicate");
    let used = |world: &mut World| {
        at_rest(world);
        world.claims[0].users = vec!["pod a".into()];
    };
    removed("delete 5: and never while it is used", secondary, used, "InUse");
    let replica = |world: &mut World| world.claims = vec![protected(|_| {})];
    removed("delete 5: a secondary's volume stays kept", secondary, replica, "Unprotect");
    let moving = |group: &mut Value| group["spec"]["runFinalSync"] = json!(true);
    let caught = |world: &mut World| {
        world.claims = vec![protected(|c| {
            c["metadata"]["deletionTimestamp"] = json!(GOING);
            c["metadata"]["finalizers"] = json!([VOLSYNC]);
        })];
    };
    removed("deleted in the middle of a move, the volume stays kept", moving, caught, "Unprotect");
    let strangers = |world: &mut World| {
        world.claims = vec![protected(|c| c["metadata"]["labels"] = theirs())];
        replication(world, "primary", |one| one["metadata"]["labels"] = theirs());
        receiver(world, "two", |one| one["metadata"]["labels"] = theirs());
        erased(world);
    };
    removed("what is another's is not touched", plain, strangers, "Release");
}

#[test]
fn what_a_group_made_goes_with_it() {
    let secondary = |group: &mut Value| {
        group["spec"]["replicationState"] = json!("secondary");
        group["status"] = json!({ "epoch": 1 });
    };
    let plain = |_: &mut Value| {};
    let going = |one: &mut Value| one["metadata"]["deletionTimestamp"] = json!(GOING);
    removed("delete 3: senders", plain, |world| source(world, |_| {}), "StopSending");
    removed("delete 3: receivers", plain, |world| receiver(world, "two", |_| {}), "StopReceiving");
    removed("delete 3: and are waited for", plain, |world| receiver(world, "two", going), "Removing");
    removed(
        "delete 3: a primary's kept images",
        plain,
        |world| image(world, "i", "one", GOING, |_| {}),
        "DropImage",
    );
    let kept = |world: &mut World| image(world, "i", "one", GOING, |_| {});
    removed("S9: a secondary's images are its copy", secondary, kept, "Release");
    removed("a secondary removes no record", secondary, |_| {}, "Release");
    removed("delete 9: records last", plain, |_| {}, "Erase");
    removed("delete 10: then it goes", plain, erased, "Release");
    let late = |group: &mut Value| group["status"]["epoch"] = json!(2);
    removed("D6: what a later epoch wrote stays", late, |_| {}, "Release");
    let failed = |world: &mut World| {
        let why = LedgerError::Failed("down".into());
        let retry_at = "2031-01-01T00:00:00Z".parse().unwrap();
        let tried = Tried { why, substance: String::new(), since: now(), retry_at, tries: 1 };
        world.stores.insert("east".into(), StoreState { failed: Some(tried), ..StoreState::default() });
    };
    removed("D17: a dead store holds it and says so", plain, failed, "StoreFailed");
    let give_up = |group: &mut Value| {
        group["metadata"]["annotations"]["ramendr.openshift.io/abandon-stores"] = json!("*");
    };
    removed("D17: until it is given up", give_up, failed, "Release");
    let foreign = |world: &mut World| {
        failed(world);
        let state = world.stores.get_mut("east").unwrap();
        let why = LedgerError::OtherFleet { fleet: "theirs".into(), why: "of another fleet".into() };
        state.failed.as_mut().unwrap().why = why;
    };
    removed("what another fleet has there is not ours to remove", plain, foreign, "Release");
    let nonsense = |group: &mut Value| {
        group["spec"]["replicationState"] = json!("maybe");
        group["spec"]["async"] = json!(null);
        group["spec"]["kubeObjectProtection"] = json!({ "recipeRef": { "name": "gone" } });
    };
    removed("D17: no wish is too odd to go", nonsense, |_| {}, "Release");
}
