//! What people are told, and what an action would cost.

use super::{Changes as _, deployed, edit, now};
use jiff::Timestamp;
use lifeboat_api::ramen::{DRPlacementControlStatus, VolumeReplicationGroup};
use lifeboat_hub::drpc::commission::Act;
use lifeboat_hub::drpc::decide::{Wish, decide};
use lifeboat_hub::drpc::plan::{Loss, plan};
use lifeboat_hub::drpc::world::{Chosen, World};
use serde_json::json;

fn told(world: &World) -> DRPlacementControlStatus {
    decide(world, now()).status.unwrap()
}

fn condition(world: &World, type_: &str) -> (String, String) {
    let status = told(world);
    let one = status.conditions.iter().find(|one| one.type_ == type_).unwrap();
    (one.status.clone(), one.reason.clone())
}

fn pair(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[test]
fn protected_means_that_all_of_it_is() {
    let check =
        |world: World, expected: (String, String)| assert_eq!(condition(&world, "Protected"), expected);
    check(deployed(), pair("True", "Protected"));
    check(deployed().silent("east"), pair("Unknown", "Unknown"));
    for type_ in ["ClusterDataReady", "DataReady", "DataProtected", "ClusterDataProtected"] {
        let lacking = deployed().shows("east", |group| {
            let conditions = &mut group.status.as_mut().unwrap().conditions;
            conditions
                .iter_mut()
                .filter(|one| one.type_ == type_)
                .for_each(|one| one.status = "False".into());
        });
        check(lacking, pair("False", "Progressing"));
    }
    // A mirror is always a little behind.
    let mirroring = deployed().shows("east", |group| {
        let conditions = &mut group.status.as_mut().unwrap().conditions;
        let protected = conditions.iter_mut().find(|one| one.type_ == "DataProtected").unwrap();
        (protected.status, protected.reason) = ("False".into(), "Replicating".into());
    });
    check(mirroring, pair("True", "Protected"));
    let unsynced = |claims: serde_json::Value| {
        deployed().shows("east", |group| {
            let status = group.status.as_mut().unwrap();
            status.last_group_sync_time = None;
            status.protected_pvcs = serde_json::from_value(claims).unwrap();
        })
    };
    check(unsynced(json!([{ "name": "data" }])), pair("False", "Progressing"));
    // Nothing is found, and nobody says that there is nothing.
    check(unsynced(json!([])), pair("False", "NoClaims"));
    let without = unsynced(json!([])).with(|world| {
        edit(&mut world.drpc, |drpc| {
            let notes = drpc.metadata.annotations.get_or_insert_default();
            notes.insert("ramendr.openshift.io/without-claims".into(), "true".into());
        });
    });
    check(without, pair("True", "Protected"));
    let failing = deployed().silent("east").asks(json!({ "action": "Failover", "failoverCluster": "west" }));
    check(failing, pair("False", "Progressing"));
}

#[test]
fn an_action_has_one_beginning() {
    let failing = deployed().silent("east").asks(json!({ "action": "Failover", "failoverCluster": "west" }));
    let begun = told(&failing).action_start_time.unwrap();
    let later = failing.with(|world| {
        let before = told(world);
        edit(&mut world.drpc, |drpc| drpc.status = Some(before));
    });
    let after: Timestamp = "2030-01-01T13:00:00Z".parse().unwrap();
    let status = decide(&later, after).status.unwrap();
    assert_eq!(status.action_start_time.unwrap(), begun);
}

#[test]
fn an_action_ends_once() {
    let again = |world: World, at: &str| {
        let status = decide(&world, at.parse().unwrap()).status.unwrap();
        (
            world.with(|world| edit(&mut world.drpc, |drpc| drpc.status = Some(status.clone()))),
            status.action_duration,
        )
    };
    let begun = deployed().with(|world| {
        edit(&mut world.drpc, |drpc| {
            let status = json!({ "phase": "Deploying", "actionStartTime": "2030-01-01T11:59:00Z" });
            drpc.status = Some(serde_json::from_value(status).unwrap());
        });
    });
    let (done, took) = again(begun, "2030-01-01T12:00:00Z");
    assert!(took.is_some());
    let (flapped, _) = again(done.silent("west"), "2030-01-01T13:00:00Z");
    let back = flapped.with(|world| world.sites = deployed().sites);
    assert_eq!(again(back, "2030-01-01T14:00:00Z").1, took, "a peer that comes back completes no action");
}

#[test]
fn a_second_look_says_the_same() {
    for world in [
        deployed(),
        deployed().silent("west"),
        deployed().asks(json!({ "dryRun": true })),
        deployed().silent("west").asks(json!({ "action": "Relocate", "preferredCluster": "west" })),
    ] {
        let first = told(&world);
        let again = world.with(|world| edit(&mut world.drpc, |drpc| drpc.status = Some(first.clone())));
        let later: Timestamp = "2030-01-01T13:00:00Z".parse().unwrap();
        assert_eq!(decide(&again, later).status, Some(first));
    }
}

#[test]
fn a_wait_counts_from_its_beginning() {
    let world = deployed().silent("west");
    let first = told(&world);
    assert_eq!(first.blockers[0].reason, "ClusterSilent");
    assert!(first.blockers[0].since.is_some());
}

#[test]
fn a_plan_says_what_would_be_lost_and_what_is_in_the_way() {
    let to = |act: Act, target: &str| Wish { act, target: target.to_owned() };
    let failover = plan(&deployed().silent("east"), &to(Act::Failover, "west"), now());
    assert_eq!(failover.loses, Loss::AtMostSeconds(120));
    let a_moment_later = now() + jiff::SignedDuration::from_millis(1);
    let begun = plan(&deployed().silent("east"), &to(Act::Failover, "west"), a_moment_later);
    assert_eq!(begun.loses, Loss::AtMostSeconds(121), "the begun second counts");
    assert_eq!(failover.from.as_deref(), Some("east"));
    assert!(failover.blockers.is_empty() && failover.steps.len() == 4, "{failover:?}");
    let unknown =
        deployed().shows("east", |group| group.status.as_mut().unwrap().last_group_sync_time = None);
    assert_eq!(plan(&unknown, &to(Act::Failover, "west"), now()).loses, Loss::Unknown);
    let tomorrow = deployed().shows("east", |group| {
        let time = "2031-01-01T00:00:00Z".parse().unwrap();
        group.status.as_mut().unwrap().last_group_sync_time =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time));
    });
    assert_eq!(plan(&tomorrow, &to(Act::Failover, "west"), now()).loses, Loss::Unknown);
    let relocation = plan(&deployed().silent("west"), &to(Act::Relocate, "west"), now());
    assert_eq!(relocation.loses, Loss::Nothing);
    assert_eq!(relocation.blockers[0].reason, "ClusterSilent");
    assert_eq!(plan(&deployed(), &to(Act::Failover, "north"), now()).blockers[0].reason, "Invalid");
    assert_eq!(plan(&deployed(), &to(Act::Failover, "east"), now()).loses, Loss::Nothing);
}

#[test]
fn a_copy_that_was_reported_counts_until_its_successor_is() {
    let silent_about_copies =
        |group: &mut VolumeReplicationGroup| group.status.as_mut().unwrap().last_group_sync_time = None;
    let copied = |world: World| told(&world).last_group_sync_time.map(|time| time.0.to_string());
    let synced = |world: World| {
        world.with(|world| {
            edit(&mut world.drpc, |drpc| {
                let status = drpc.status.get_or_insert_default();
                status.last_group_sync_time = serde_json::from_value(json!("2030-01-01T11:50:00Z")).unwrap();
            });
        })
    };
    let before = synced(deployed());
    let kept = Some("2030-01-01T11:50:00Z".to_owned());
    assert_eq!(copied(before.clone()).as_deref(), Some("2030-01-01T11:58:00Z"), "the newest counts");
    let primary = before.shows("east", silent_about_copies);
    assert_eq!(copied(primary.clone()), None, "a primary knows what it has copied");
    let new =
        primary.clone().shows("east", |group| group.status.as_mut().unwrap().state = Some("Unknown".into()));
    assert_eq!(copied(new), kept, "one that is no primary yet does not");
    let going = primary.shows("east", |group| {
        group.metadata.deletion_timestamp = serde_json::from_value(json!("2030-01-01T11:59:00Z")).unwrap();
    });
    assert_eq!(copied(going), kept, "nor one that is being deleted");
    let relocated = deployed()
        .given(2, "west", Act::Relocate, "Relocated")
        .has("east", "secondary", |_| {})
        .has("west", "primary", |_| {})
        .shows("west", silent_about_copies)
        .placed(&[Chosen::home("west")]);
    let relocated = synced(relocated);
    assert_eq!(copied(relocated.clone()), kept, "both clusters have what a relocation copied last");
    assert_eq!(
        plan(&relocated, &Wish { act: Act::Failover, target: "east".into() }, now()).loses,
        Loss::AtMostSeconds(600)
    );
}

#[test]
fn before_the_first_copy_both_clusters_have_what_the_last_failover_restored() {
    let failed_over = |until: Option<&str>| {
        deployed()
            .given(2, "west", Act::Failover, "FailedOver")
            .has("east", "secondary", |_| {})
            .has("west", "primary", |_| {})
            .shows("west", |group| group.status.as_mut().unwrap().last_group_sync_time = None)
            .placed(&[Chosen::home("west")])
            .with(|world| {
                edit(&mut world.drpc, |drpc| {
                    let loss = json!({ "time": "2030-01-01T11:59:00Z", "dataUntil": until });
                    drpc.status.get_or_insert_default().last_failover = serde_json::from_value(loss).unwrap();
                });
            })
    };
    let back = |world: World| plan(&world, &Wish { act: Act::Failover, target: "east".into() }, now()).loses;
    assert_eq!(back(failed_over(Some("2030-01-01T11:58:30Z"))), Loss::AtMostSeconds(90));
    assert_eq!(back(failed_over(None)), Loss::Unknown);
}
