//! A relocation that cannot go on, or that nobody wants any more, before its point of no return; and minds that change.

use super::{Changes as _, check, deployed, edit, now};
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::annotations;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_hub::drpc::commission::Act;
use lifeboat_hub::drpc::decide::decide;
use lifeboat_hub::drpc::world::{Chosen, World};
use serde_json::json;

fn relocating() -> World {
    deployed().asks(json!({ "action": "Relocate", "preferredCluster": "west" }))
}

fn asked(prepare: bool, run: bool) -> impl FnOnce(&mut VolumeReplicationGroup) {
    move |group| {
        group.spec.prepare_for_final_sync = prepare;
        group.spec.run_final_sync = run;
    }
}

/// Every step before the point of no return.
fn steps() -> Vec<World> {
    let preparing = || relocating().has("east", "primary", asked(true, false));
    let prepared = || {
        preparing()
            .shows("east", |group| group.status.as_mut().unwrap().prepare_for_final_sync_complete = true)
    };
    let running = || relocating().placed(&[]).has("east", "primary", asked(false, true));
    vec![preparing(), prepared(), prepared().placed(&[]), running()]
}

/// The same, shown as it is told, a while ago.
fn waited(world: World, minutes: i64) -> World {
    let then: Timestamp = now() - SignedDuration::from_mins(minutes);
    let status = decide(&world, then).status.unwrap();
    world.with(|world| edit(&mut world.drpc, |drpc| drpc.status = Some(status)))
}

fn annotated(world: World, key: &str, value: &str) -> World {
    world.with(|world| {
        edit(&mut world.drpc, |drpc| {
            drpc.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
        });
    })
}

#[test]
fn a_relocation_is_called_off_by_the_user_at_each_step() {
    for clear in [json!({ "action": null }), json!({ "action": null, "preferredCluster": "east" })] {
        for step in steps() {
            let off = step.asks(clear.clone());
            check(&off, "PutGroup east primary");
            let back = off.has("east", "primary", |_| {});
            let placed = back.chosen() == [Chosen::home("east")];
            check(&back, if placed { "settled | Deployed/Completed" } else { "Place [east]" });
        }
    }
    for step in steps() {
        let home = step.asks(json!({ "action": "Relocate", "preferredCluster": "east" }));
        check(&home, "Commission 1 east Relocate | Relocating/WaitForReadiness");
        let given = home.given(1, "east", Act::Relocate, "Relocating");
        check(&given, "PutGroup east primary");
    }
}

#[test]
fn a_relocation_that_cannot_go_on_is_called_off() {
    let running = || steps().pop().unwrap();
    check(&waited(running(), 29), "wait RunningFinalSync | Relocating/RunningFinalSync");
    check(&waited(running(), 30), "CallOff | Relocating/RunningFinalSync");
    let patient = |text: &str| annotated(running(), annotations::FINAL_SYNC_WITHIN, text);
    check(&waited(patient("2h"), 119), "wait RunningFinalSync | Relocating/RunningFinalSync");
    check(&waited(patient("2h"), 120), "CallOff | Relocating/RunningFinalSync");
    check(&waited(patient("10m"), 10), "CallOff | Relocating/RunningFinalSync");
    check(&waited(patient("soon"), 30), "CallOff | Relocating/RunningFinalSync");
    for lost in ["east", "west"] {
        let silent = || running().silent(lost);
        check(&waited(silent(), 4), "wait ClusterSilent | Relocating/RunningFinalSync");
        check(&waited(silent(), 5), "CallOff | Relocating/RunningFinalSync");
    }
    let until = match decide(&waited(running(), 10), now()).next {
        lifeboat_engine::Next::Wait { until, .. } => until.unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(until, now() + SignedDuration::from_mins(20));
}

#[test]
fn what_was_called_off_is_not_tried_again() {
    let off = |generation: i64| {
        let world = annotated(steps().pop().unwrap(), annotations::CALLED_OFF, "1: cluster west is silent");
        world.with(|world| edit(&mut world.drpc, |drpc| drpc.metadata.generation = Some(generation)))
    };
    check(&off(1), "PutGroup east primary");
    let back = off(1).has("east", "primary", |_| {});
    check(&back, "Place [east]");
    // The PVCs went with the application, and come back first: it would make empty ones.
    let noted = annotated(back.clone(), annotations::LAST_APP_DEPLOYMENT_CLUSTER, "east");
    check(&noted, "Place [east]");
    let moving = noted.given(1, "east", Act::Deploy, "Relocating");
    let earlier = moving.clone().shows("east", |group| group.spec.run_final_sync = true);
    check(&earlier, "wait GroupNotSeen | Deploying/CreatingMW");
    let returning = moving.shows("east", |group| {
        for one in &mut group.status.as_mut().unwrap().conditions {
            if one.type_ == "DataReady" {
                one.status = "False".to_owned();
            }
        }
    });
    check(&returning, "wait NotReady | Deploying/WaitForReadiness");
    let home = back.placed(&[Chosen::home("east")]);
    check(&home, "wait CalledOff | Deployed/Completed");
    let message = decide(&home, now()).status.unwrap().blockers[0].message.clone();
    assert!(message.contains("cluster west is silent") && message.contains("stays on east"), "{message}");
    // A failover is another matter, and so is the same asked for anew.
    check(
        &home.clone().asks(json!({ "action": "Failover", "failoverCluster": "west" })),
        "Commission 2 west Failover, on record | FailingOver/FailingOverToCluster",
    );
    check(&off(2), "wait RunningFinalSync | Relocating/RunningFinalSync");
}

#[test]
fn a_cluster_that_has_given_up_its_role_does_not_keep_the_application() {
    // West is primary and not ready; east has given up its role, and its pods still use the claims.
    let changed = |to: &str| {
        deployed()
            .asks(json!({ "action": "Failover", "failoverCluster": to }))
            .given(2, "west", Act::Failover, "FailingOver")
            .has("east", "secondary", |_| {})
            .shows("east", |group| group.status.as_mut().unwrap().state = Some("Unknown".into()))
            .has("west", "primary", |_| {})
            .shows("west", |group| group.status.as_mut().unwrap().conditions.clear())
            .placed(&[Chosen::retained("east")])
    };
    check(&changed("west"), "Place []");
    check(&changed("west").silent("east"), "wait Restoring | FailingOver/WaitingForResourceRestore");
    // Also where the user has changed his mind, for east cannot take over before.
    check(&changed("east"), "Place []");
    check(&changed("east").placed(&[]), "wait TargetNotReady | Initiating/CheckingFailoverPrerequisites");
}
