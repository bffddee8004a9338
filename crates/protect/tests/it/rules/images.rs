//! Which image a claim is restored from, and what counts as restored.

use super::furniture::*;
use super::{claim, now, seen, world};
use lifeboat_api::annotations;
use lifeboat_protect::books::ReadState;
use lifeboat_protect::decide::plan::Plan;
use lifeboat_protect::decide::received::claims_from_images;
use lifeboat_protect::decide::{Effect, epoch};
use lifeboat_protect::ledger::{Reading, Seen};
use lifeboat_protect::world::World;
use serde_json::{Value, json};

const EARLY: &str = "2029-12-31T10:00:00.5Z";
const LATE: &str = "2029-12-31T11:00:00.5Z";

fn turned(action: &'static str) -> impl Fn(&mut Value) {
    move |group: &mut Value| {
        group["spec"]["action"] = json!(action);
        group["spec"]["volSync"] =
            json!({ "rdSpec": [{ "protectedPVC": { "name": "one", "storageClassName": "fast" } }] });
        group["status"] = json!({ "epoch": 7, "primaryEpoch": 7 });
    }
}

/// A receiver that names an image, and has one that is complete and not published where `unpublished`.
fn received(world: &mut World, named: &str, unpublished: bool) {
    receiver(world, "one", |one| {
        one["metadata"]["uid"] = json!("r");
        one["status"]["latestImage"] =
            json!({ "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": named });
        if unpublished {
            one["status"]["external"] =
                json!({ "unpublished": "g9", "unpublishedCut": "2029-12-31T12:00:00Z" });
        }
    });
}

fn made(world: &mut World, name: &str, cut: &str, ready: bool) {
    image(world, name, "one", GOING, |one| {
        one["metadata"]["labels"][lifeboat_api::labels::RECEIVER_UID] = json!("r");
        one["metadata"]["annotations"][annotations::IMAGE_CUT] = json!(cut);
        one["metadata"]["annotations"][annotations::RECEIVER] = json!("one");
        one["metadata"]["annotations"][annotations::LINEAGE] = json!("l1");
        one["status"]["readyToUse"] = json!(ready);
    });
}

fn planned_for(group: impl FnOnce(&mut Value), fill: impl FnOnce(&mut World)) -> Plan {
    let (mut world, mut plan) = (world(group), Plan::default());
    fill(&mut world);
    claims_from_images(&world, now(), &mut plan);
    plan
}

/// What is done, with the image that a claim is made from.
fn told(plan: &Plan) -> String {
    match plan.effects.first() {
        Some(Effect::MakeClaim { claim }) => {
            let source = claim.spec.as_ref().unwrap().data_source.clone().unwrap();
            format!("from {}", source.name)
        }
        Some(Effect::SetAside { image, .. }) => format!("aside {image}"),
        _ => planned(plan),
    }
}

fn check(rule: &str, group: impl FnOnce(&mut Value), fill: impl FnOnce(&mut World), expected: &str) {
    assert_eq!(told(&planned_for(group, fill)), expected, "{rule}");
}

fn waited_since(since: &'static str, action: &'static str) -> impl Fn(&mut Value) {
    move |group: &mut Value| {
        turned(action)(group);
        group["status"]["blockers"] =
            json!([{ "reason": "Unpublished", "message": "", "since": since, "pvc": "one" }]);
    }
}

#[test]
fn what_is_complete_and_not_published_is_waited_for() {
    let unpublished = |world: &mut World| {
        received(world, "early", true);
        made(world, "early", EARLY, true);
        made(world, "late", LATE, false);
    };
    check("a failover waits", turned("Failover"), unpublished, "Unpublished");
    check("a relocation waits", turned("Relocate"), unpublished, "Unpublished");
    let plan = planned_for(waited_since("2029-12-31T23:59:30Z", "Failover"), unpublished);
    assert_eq!(
        plan.until,
        Some("2030-01-01T00:00:30Z".parse().unwrap()),
        "a failover looks again after a minute"
    );
    check("for a minute", waited_since("2029-12-31T23:59:30Z", "Failover"), unpublished, "Unpublished");
    check(
        "then the newest that is ready",
        waited_since("2029-12-31T23:58:30Z", "Failover"),
        unpublished,
        "from early",
    );
    check(
        "a relocation for ever",
        waited_since("2029-12-31T20:00:00Z", "Relocate"),
        unpublished,
        "Unpublished",
    );
    let published = |world: &mut World| {
        received(world, "late", false);
        made(world, "early", EARLY, true);
        made(world, "late", LATE, true);
    };
    check("published, it is taken", turned("Relocate"), published, "from late");
    let not_ready = |world: &mut World| {
        received(world, "late", false);
        made(world, "early", EARLY, true);
        made(world, "late", LATE, false);
    };
    check("an image that is named and not ready is waited for", turned("Failover"), not_ready, "Unpublished");
    check("and not for ever", waited_since("2029-12-31T23:58:30Z", "Failover"), not_ready, "from early");
    let lost = |world: &mut World| {
        received(world, "late", false);
        made(world, "early", EARLY, true);
    };
    check("one that is gone, likewise", waited_since("2029-12-31T23:58:30Z", "Failover"), lost, "from early");
    let none = |world: &mut World| {
        received(world, "late", false);
        made(world, "late", LATE, false);
    };
    check("nothing else is there", waited_since("2029-12-31T23:00:00Z", "Failover"), none, "Unpublished");
}

#[test]
fn a_failover_goes_back_to_a_point() {
    let at = |point: &'static str| {
        move |group: &mut Value| {
            turned("Failover")(group);
            group["metadata"]["annotations"][annotations::TO_POINT] = json!(point);
        }
    };
    let both = |world: &mut World| {
        received(world, "late", false);
        made(world, "early", EARLY, true);
        made(world, "late", LATE, true);
    };
    check("the newest before it", at("2029-12-31T10:30:00Z"), both, "from early");
    check("at the very moment", at(LATE), both, "from late");
    let within = |world: &mut World| {
        received(world, "late", false);
        made(world, "early", EARLY, true);
        made(world, "late", "2029-12-31T11:00:00.379Z", true);
    };
    check("in the second that status shows", at("2029-12-31T11:00:00Z"), within, "from late");
    check("none is old enough", at("2029-12-31T09:00:00Z"), both, "PointMissing");
    let said = planned_for(at("2029-12-31T09:00:00Z"), both).waits[0].0.to_string();
    assert!(said.contains(EARLY) && said.contains(LATE), "the points there are, are told: {said}");
    check("no time at all", at("yesterday"), both, "PointMissing");
    let loose = |world: &mut World| {
        both(world);
        image(world, "late", "one", GOING, |one| {
            one["metadata"]["labels"] = json!({ lifeboat_api::labels::RECEIVER_UID: "r" });
            one["metadata"]["annotations"] =
                json!({ annotations::IMAGE_CUT: LATE, annotations::RECEIVER: "one" });
        });
    };
    check("what is newer is set aside first", at("2029-12-31T10:30:00Z"), loose, "aside late");
    let unpublished = |world: &mut World| {
        both(world);
        received(world, "late", true);
    };
    check(
        "what is later than the point is not waited for",
        at("2029-12-31T10:30:00Z"),
        unpublished,
        "from early",
    );
    let relocates = |group: &mut Value| {
        at("2029-12-31T10:30:00Z")(group);
        group["spec"]["action"] = json!("Relocate");
    };
    check("a relocation knows no points", relocates, both, "from late");
}

#[test]
fn a_claim_tells_what_it_was_restored_from() {
    let plan = planned_for(turned("Failover"), |world| {
        received(world, "late", false);
        made(world, "late", LATE, true);
    });
    let Some(Effect::MakeClaim { claim }) = plan.effects.first() else { panic!("{:?}", plan.effects) };
    let notes = claim.metadata.annotations.as_ref().unwrap();
    assert_eq!(notes[annotations::RESTORE], "True", "as Ramen knows it");
    assert_eq!(notes[annotations::HELD_AT_EPOCH], "7");
    assert_eq!(notes[annotations::LINEAGE], "l1");
    assert_eq!(notes[annotations::IMAGE_CUT], LATE);
}

fn from(image: &'static str, epoch: Option<&'static str>) -> impl Fn(&mut World) {
    move |world: &mut World| {
        let one = claim(|claim| {
            claim["metadata"]["labels"] = ours();
            claim["metadata"]["annotations"][annotations::RESTORE] = json!("True");
            if let Some(epoch) = epoch {
                claim["metadata"]["annotations"][annotations::HELD_AT_EPOCH] = json!(epoch);
            }
            claim["spec"]["dataSource"] =
                json!({ "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": image });
        });
        world.claims = vec![seen(one)];
    }
}

#[test]
fn a_restore_that_has_begun_stays_with_its_image() {
    let newer = |epoch: Option<&'static str>| {
        move |world: &mut World| {
            received(world, "late", true);
            made(world, "early", EARLY, true);
            made(world, "late", LATE, true);
            from("early", epoch)(world);
        }
    };
    check("a newer image came meanwhile", turned("Failover"), newer(Some("7")), "");
    let settled = |epoch: Option<&'static str>| {
        move |world: &mut World| {
            newer(epoch)(world);
            received(world, "late", false);
        }
    };
    check("made for a role that is over, it makes room", turned("Failover"), settled(Some("5")), "Discard");
    let fleeting = |world: &mut World| {
        settled(Some("5"))(world);
        let one = volume(|volume| volume["spec"]["persistentVolumeReclaimPolicy"] = json!("Delete"));
        world.claims[0].volume = Some(std::sync::Arc::new(one));
    };
    check("its volume is made one that is kept first", turned("Failover"), fleeting, "Retain");
    let used = |world: &mut World| {
        settled(Some("5"))(world);
        world.claims[0].users = vec!["pod a".into()];
    };
    check("not while it is used", turned("Failover"), used, "InUse");
    let going = |world: &mut World| {
        settled(Some("5"))(world);
        world.claims = vec![protected(|claim| {
            claim["metadata"]["finalizers"] = json!([VOLSYNC]);
            claim["metadata"]["deletionTimestamp"] = json!(GOING);
        })];
    };
    check("one that is being deleted is let go", turned("Failover"), going, "Unprotect");
    let mounted = |world: &mut World| {
        going(world);
        world.claims[0].users = vec!["pod a".into()];
    };
    check("not while it is used", turned("Failover"), mounted, "InUse");
}

/// What all stores have told: the highest epoch that anybody was primary at.
fn stores_say(world: &mut World, highest: i64, all: bool) {
    let store = if all { Ok(Seen::Something) } else { Err("down".to_owned()) };
    let reading = Reading {
        epoch: highest,
        newest: None,
        stores: [("east".to_owned(), store)].into(),
        ..Reading::default()
    };
    world.read = ReadState { busy: None, answer: Some((epoch::question(world), reading, now())) };
}

#[test]
fn without_a_receiver_a_claim_counts_only_where_nobody_has_newer_data() {
    let has = |held: Option<&'static str>, highest: i64, all: bool| {
        move |world: &mut World| {
            world.claims = vec![protected(|claim| {
                claim["metadata"]["finalizers"] = json!([VOLSYNC]);
                if let Some(held) = held {
                    claim["metadata"]["annotations"][annotations::HELD_AT_EPOCH] = json!(held);
                }
            })];
            stores_say(world, highest, all);
        }
    };
    check("nobody was primary since", turned("Failover"), has(Some("5"), 5, true), "");
    check("somebody was", turned("Failover"), has(Some("5"), 6, true), "CannotRestore");
    check("nobody can tell", turned("Failover"), has(Some("5"), 5, false), "CannotRestore");
    check("of an unknown time", turned("Failover"), has(None, 5, true), "CannotRestore");
    check("held at this very epoch", turned("Failover"), has(Some("7"), 7, false), "");
    let ramens = |world: &mut World| {
        from("i", None)(world);
        stores_say(world, 6, true);
    };
    check("Ramen's mark knows no epochs", turned("Failover"), ramens, "");
    let empty = |world: &mut World| {
        has(Some("5"), 5, true)(world);
        receiver(world, "one", |_| {});
    };
    check("a receiver that has received nothing yet changes nothing", turned("Failover"), empty, "");
}

#[test]
fn a_volume_that_has_the_newest_data_is_used_again() {
    let left = |held: &'static str, claim_uid: Option<&'static str>, highest: i64| {
        move |world: &mut World| {
            let one = volume(|volume| {
                volume["metadata"]["annotations"] = json!({ annotations::HELD_AT_EPOCH: held,
                    annotations::LINEAGE: "l1", annotations::VOLSYNC_RETAINED: "retained" });
                volume["spec"]["claimRef"]["uid"] = json!(claim_uid);
            });
            world.volumes.insert("v".into(), std::sync::Arc::new(one));
            receiver(world, "one", |_| {});
            stores_say(world, highest, true);
        }
    };
    check("it is freed", turned("Failover"), left("5", Some("old"), 5), "Unclaim");
    check(
        "a failover may lose what the peer wrote since",
        turned("Failover"),
        left("5", Some("old"), 6),
        "Unclaim",
    );
    check("a relocation may not", turned("Relocate"), left("5", Some("old"), 6), "CannotRestore");
    let unknown = |world: &mut World| {
        left("5", Some("old"), 6)(world);
        let one = volume(|volume| {
            volume["metadata"]["annotations"] = json!({ annotations::VOLSYNC_RETAINED: "retained" });
            volume["spec"]["claimRef"]["uid"] = json!("old");
        });
        world.volumes.insert("v".into(), std::sync::Arc::new(one));
    };
    check("one of an unknown time is not taken", turned("Failover"), unknown, "CannotRestore");
    let plan = planned_for(turned("Failover"), left("5", None, 5));
    let Some(Effect::MakeClaim { claim }) = plan.effects.first() else { panic!("{:?}", plan.effects) };
    assert_eq!(claim.spec.as_ref().unwrap().volume_name.as_deref(), Some("v"));
    assert_eq!(claim.metadata.annotations.as_ref().unwrap()[annotations::LINEAGE], "l1");
    let received_since = |world: &mut World| {
        left("5", Some("old"), 5)(world);
        received(world, "late", false);
        made(world, "late", LATE, true);
    };
    check("what was received since is newer", turned("Failover"), received_since, "from late");
}
