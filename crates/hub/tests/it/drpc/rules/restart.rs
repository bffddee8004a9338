//! What a hub believes right after its start, what it does while stores or the policy cannot be used, and whose clock it goes by.

use super::{Changes as _, check, deployed, edit, line, new, now, said};
use jiff::SignedDuration;
use lifeboat_api::annotations;
use lifeboat_hub::drpc::commission::Act;
use lifeboat_hub::drpc::decide::{Wish, decide};
use lifeboat_hub::drpc::plan::{Loss, plan};
use lifeboat_hub::drpc::world::{Chosen, World};
use lifeboat_hub::views::{Beat, Seen};
use lifeboat_hub::words::Words as _;
use serde_json::json;

fn beat(age: i64) -> Beat {
    let age = SignedDuration::from_secs(age);
    Beat { heard: now() - age, age, renewed: true, ahead: None, good_for: Some(30), silence: 0 }
}

fn beats(world: World, cluster: &str, beat: Beat) -> World {
    world.with(|world| world.sites.get_mut(cluster).unwrap().beat = Some(beat))
}

/// The lease of a cluster was only listed, this many seconds ago.
fn listed(world: World, cluster: &str, age: i64) -> World {
    beats(world, cluster, Beat { renewed: false, ..beat(age) })
}

fn failing(world: World) -> World {
    world.asks(json!({ "action": "Failover", "failoverCluster": "west" }))
}

#[test]
fn nothing_moves_before_every_cluster_is_heard_of_or_silent() {
    let pending = "wait ViewPending | Deployed/-";
    let taken = "Commission 2 west Failover, on record | FailingOver/FailingOverToCluster";
    check(&listed(failing(deployed()), "east", 0), pending);
    check(
        &listed(failing(deployed()), "west", 0),
        "wait ClusterSilent | Initiating/CheckingFailoverPrerequisites",
    );
    check(&listed(failing(deployed()), "east", 31), taken);
    check(&beats(failing(deployed()), "east", beat(1)), taken);
    check(&listed(deployed().placed(&[]), "east", 0), pending);
    check(&listed(deployed().placed(&[]), "west", 0), pending);
    check(&listed(new(), "west", 0), "wait ViewPending | -/-");
    // One that nobody waits for is told as it is.
    check(&listed(deployed(), "west", 0), "wait ClusterSilent | Deployed/EnsuringVolSyncSetup");
    let until = match decide(&listed(failing(deployed()), "east", 10), now()).next {
        lifeboat_engine::Next::Wait { until, .. } => until.unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(until, now() + SignedDuration::from_secs(21));
}

#[test]
fn a_cluster_that_was_never_heard_of_may_know_more_than_an_old_copy_of_the_hub() {
    let old = |epoch: Option<i64>| {
        listed(deployed(), "west", 31).with(|world| {
            world.books.reading = epoch.map(|epoch| lifeboat_hub::drpc::stores::Reading {
                epoch,
                ..lifeboat_hub::drpc::stores::Reading::default()
            });
        })
    };
    check(&old(None), "ReadStores");
    check(&old(Some(1)), "wait ClusterSilent | Deployed/EnsuringVolSyncSetup");
    check(&old(Some(2)), "wait UserMustChoose | WaitForUser/Paused");
    // One that was heard of in the life of this process asks no store: that could take long.
    let dead = beats(deployed(), "west", beat(31)).with(|world| world.books.reading = None);
    check(&dead, "wait ClusterSilent | Deployed/EnsuringVolSyncSetup");
}

/// One store could not be read, this many seconds ago.
fn unread(world: World, ago: i64) -> World {
    world.with(|world| {
        let reading = world.books.reading.as_mut().unwrap();
        reading.unread.insert("s3-west".into(), "connection refused".into());
        world.books.read_at = Some(now() - SignedDuration::from_secs(ago));
    })
}

#[test]
fn a_store_that_cannot_be_read_is_not_empty() {
    let waits = "wait StoresUnread | -/-";
    check(&unread(new(), 1), waits);
    check(&unread(new(), 30), "ReadStores");
    check(&unread(new(), 1).silent("west"), waits);
    // What was found in another store is believed.
    let recorded = unread(new(), 1).with(|world| {
        let reading = world.books.reading.as_mut().unwrap();
        reading.primary =
            Some(lifeboat_hub::drpc::stores::Recorded { cluster: Some("east".into()), action: None });
    });
    check(&recorded.silent("west"), "wait UserMustChoose | WaitForUser/Paused");
    // The user may say that there is nothing.
    let new_indeed = unread(new(), 1).with(|world| {
        edit(&mut world.drpc, |drpc| {
            drpc.metadata
                .annotations
                .as_mut()
                .unwrap()
                .insert(annotations::FIRST_DEPLOYMENT.into(), "true".into());
        });
    });
    check(&new_indeed, "Commission 1 east Deploy | Deploying/CreatingMW");
    // A hub that was started anew amid a deployment does not tell the group that there is nothing.
    let begun = || new().given(1, "east", Act::Deploy, "Deploying");
    check(&unread(begun(), 1), "wait StoresUnread | Deploying/CreatingMW");
    check(&begun().with(|world| world.books.reading = None), "ReadStores");
    let first = |world: &World| match decide(world, now()).next {
        lifeboat_engine::Next::Do(effects) => effects.into_iter().any(|effect| match effect {
            lifeboat_hub::drpc::decide::Effect::PutGroup { group, .. } => {
                group.note(annotations::FIRST_DEPLOYMENT) == Some("true")
            }
            _ => false,
        }),
        _ => false,
    };
    assert!(first(&begun()));
    assert!(!first(&unread(begun(), 1)));
}

#[test]
fn another_fleets_records_are_not_recovered_from() {
    let foreign = |world: World, ago: i64| {
        world.with(|world| {
            let reading = world.books.reading.as_mut().unwrap();
            reading.foreign.insert("s3-west".into(), "of another fleet".into());
            world.books.read_at = Some(now() - SignedDuration::from_secs(ago));
        })
    };
    check(&foreign(new(), 1), "wait OtherFleet | -/-");
    check(&foreign(new(), 30), "ReadStores");
    // What was found in a store of our own is believed.
    let recorded = foreign(new(), 1).with(|world| {
        let reading = world.books.reading.as_mut().unwrap();
        reading.primary =
            Some(lifeboat_hub::drpc::stores::Recorded { cluster: Some("east".into()), action: None });
    });
    check(&recorded.silent("west"), "wait UserMustChoose | WaitForUser/Paused");
    let new_indeed = foreign(new(), 1).with(|world| {
        edit(&mut world.drpc, |drpc| {
            let notes = drpc.metadata.annotations.get_or_insert_default();
            notes.insert(annotations::FIRST_DEPLOYMENT.into(), "true".into());
        });
    });
    check(&new_indeed, "Commission 1 east Deploy | Deploying/CreatingMW");
}

fn unvalidated(world: World) -> World {
    world.with(|world| {
        edit(world.policy.as_mut().unwrap(), |policy| {
            policy.status.as_mut().unwrap().conditions =
                vec![serde_json::from_value(said("Validated", "False", 1)).unwrap()];
        });
    })
}

#[test]
fn a_bad_policy_freezes_nothing_that_is_deployed() {
    check(&unvalidated(new()), "wait PolicyNotReady | -/-");
    check(&unvalidated(deployed()), "wait PolicyNotReady | Deployed/Completed");
    check(&unvalidated(deployed().placed(&[])), "Place [east]");
    check(
        &unvalidated(failing(deployed().silent("east"))),
        "Commission 2 west Failover, on record | FailingOver/FailingOverToCluster",
    );
    let moved = deployed()
        .asks(json!({ "action": "Relocate", "preferredCluster": "west" }))
        .placed(&[])
        .given(2, "west", Act::Relocate, "Relocating")
        .has("east", "secondary", |_| {})
        .has("west", "primary", |_| {});
    check(&unvalidated(moved), "Place [west] | Relocating/UpdatingPlRule");
}

#[test]
fn a_bad_word_begins_nothing_and_stops_nothing() {
    let typo = || deployed().asks(json!({ "action": "Failover", "failoverCluster": "wets" }));
    check(&typo(), "wait Invalid | Deployed/Completed");
    check(&typo().placed(&[]), "Place [east]");
    check(&deployed().asks(json!({ "protectedNamespaces": ["a"] })), "wait Unsupported | Deployed/Completed");
    // What nobody looks at any more is not called good.
    let frozen = deployed().with(|world| {
        let status = decide(world, now()).status.unwrap();
        edit(&mut world.drpc, |drpc| drpc.status = Some(status));
        world.placement = None;
    });
    let status = decide(&frozen, now()).status.unwrap();
    for type_ in ["PeerReady", "Protected"] {
        let one = status.conditions.iter().find(|one| one.type_ == type_).unwrap();
        assert_eq!((one.status.as_str(), one.message.is_empty()), ("Unknown", false), "{type_}");
    }
}

#[test]
fn a_fast_clock_does_not_make_a_loss_smaller() {
    let check = |ahead: Option<i64>, seconds: i64| {
        let ahead = ahead.map(SignedDuration::from_secs);
        let world = beats(failing(deployed()), "east", Beat { ahead, ..beat(31) });
        let loss = decide(&world, now()).status.unwrap().last_failover.unwrap();
        assert_eq!(loss.at_most_seconds, Some(seconds), "{ahead:?}");
    };
    check(None, 120);
    check(Some(300), 420);
    // One that is slow makes it too large, which is no lie.
    check(Some(-300), 120);
}

#[test]
fn the_loss_is_what_the_target_restored() {
    let arrived = |cuts: serde_json::Value| {
        let world = failing(deployed())
            .given(2, "west", Act::Failover, "FailedOver")
            .has("east", "secondary", |_| {})
            .has("west", "primary", |_| {})
            .placed(&[Chosen::home("west")]);
        let world = world.with(|world| {
            edit(&mut world.drpc, |drpc| {
                drpc.status.as_mut().unwrap().last_failover = serde_json::from_value(json!({
                    "time": "2030-01-01T12:00:00Z", "dataUntil": "2030-01-01T11:58:00Z", "atMostSeconds": 120,
                }))
                .unwrap();
            });
        });
        let world = world.shows("west", |group| {
            group.status.as_mut().unwrap().protected_pvcs = serde_json::from_value(cuts).unwrap();
        });
        let status = decide(&world, now()).status.unwrap();
        status
            .last_failover
            .map(|loss| (loss.data_until.unwrap().0.to_string(), loss.at_most_seconds.unwrap()))
    };
    let claim = |name: &str, until: Option<&str>| json!({ "name": name, "restoredUntil": until });
    let check = |cuts: serde_json::Value, until: &str, seconds: i64| {
        assert_eq!(arrived(cuts), Some((until.to_owned(), seconds)));
    };
    check(json!([claim("a", None)]), "2030-01-01T11:58:00Z", 120);
    check(json!([claim("a", Some("2030-01-01T11:57:00Z"))]), "2030-01-01T11:57:00Z", 181);
    check(
        json!([claim("a", Some("2030-01-01T11:57:00Z")), claim("b", Some("2030-01-01T11:56:00Z"))]),
        "2030-01-01T11:56:00Z",
        241,
    );
    // Before all of them have told, the estimate stands.
    check(json!([claim("a", Some("2030-01-01T11:57:00Z")), claim("b", None)]), "2030-01-01T11:58:00Z", 120);
    // What was restored by a later move is none of this failover's.
    check(json!([claim("a", Some("2030-01-01T12:30:00Z"))]), "2030-01-01T11:58:00Z", 120);
}

#[test]
fn a_cluster_that_has_left_stands_in_nobodys_way() {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    let left = |world: World| {
        world.with(|world| {
            let site = world.sites.get_mut("east").unwrap();
            site.managed = None;
            edit(site.work.as_mut().unwrap(), |work| work.metadata.deletion_timestamp = Some(Time(now())));
        })
    };
    let taken = failing(deployed()).given(2, "west", Act::Failover, "FailingOver");
    check(&left(taken.clone()), "Place [(east)]");
    let marked = taken.placed(&[Chosen::retained("east")]);
    let decision = decide(&left(marked), now());
    assert!(line(&decision).contains("PutGroup west primary"), "{}", line(&decision));
}

#[test]
fn a_view_of_another_day_is_not_waited_for_twice() {
    let world =
        listed(new(), "east", 0).with(|world| world.sites.get_mut("east").unwrap().seen = Seen::NotYet);
    check(&world, "wait ViewPending | -/-");
}

#[test]
fn a_copy_to_a_cluster_that_was_rebuilt_since_counts_for_nothing() {
    let rebuilt = |world: World, cluster: &str, at: &str, ahead: i64| {
        let ahead = Some(SignedDuration::from_secs(ahead));
        beats(world, cluster, Beat { ahead, ..beat(1) }).with(|world| {
            edit(world.sites.get_mut(cluster).unwrap().managed.as_mut().unwrap(), |managed| {
                let same = json!({
                    "type": "SameCluster", "status": "True", "reason": "Rebuilt", "message": "",
                    "lastTransitionTime": at,
                });
                let conditions = &mut managed.status.get_or_insert_default().conditions;
                conditions.push(serde_json::from_value(same).unwrap());
            });
        })
    };
    let over = |world: &World| plan(world, &Wish { act: Act::Failover, target: "west".into() }, now());
    let told = |world: &World| decide(world, now()).status.unwrap().last_group_sync_time;
    // The last copy is of 11:58.
    let since = rebuilt(deployed().silent("east"), "west", "2030-01-01T11:59:00Z", 0);
    let empty = over(&since);
    assert_eq!((&empty.loses, empty.data_until), (&Loss::Unknown, None));
    assert_eq!(empty.blockers[0].reason, "TargetNotReady");
    assert!(empty.blockers[0].message.contains("west was rebuilt"), "{empty:?}");
    assert_eq!(told(&since), None);
    check(&failing(since), "wait TargetNotReady | Initiating/CheckingFailoverPrerequisites");
    for (cluster, at, ahead) in [
        ("west", "2030-01-01T11:57:00Z", 0),
        ("west", "2030-01-01T11:59:00Z", 120),
        ("east", "2030-01-01T11:59:00Z", 0),
    ] {
        let world = rebuilt(deployed(), cluster, at, ahead);
        assert_eq!(over(&world).loses, Loss::AtMostSeconds(120), "{cluster} {at} {ahead}");
        assert!(told(&world).is_some());
    }
}
