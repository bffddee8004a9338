//! Deletions by accident: the hub orders the end of protection before it deletes anything, and never takes an accident for the order.

use super::{Changes as _, check, deployed, edit, line, now};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::annotations;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_engine::Next;
use lifeboat_hub::drpc::commission::Act;
use lifeboat_hub::drpc::decide::{Effect, Wish, decide};
use lifeboat_hub::drpc::plan::{Loss, plan};
use lifeboat_hub::drpc::world::{Chosen, World};
use lifeboat_hub::views::Seen;
use lifeboat_hub::words::Words as _;
use serde_json::json;

pub fn orphaned(group: &mut VolumeReplicationGroup) {
    let status = group.status.as_mut().unwrap();
    status.conditions = vec![
        serde_json::from_value(json!({
            "type": "ClusterDataReady", "status": "False", "reason": "Orphaned", "message": "PV pv-1 is kept", "observedGeneration": 4,
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }))
        .unwrap(),
    ];
    (status.state, status.last_group_sync_time) = (Some("Unknown".into()), None);
    status.protected_pvcs.clear();
}

fn noted(world: World, key: &str, value: &str) -> World {
    world.with(|world| {
        edit(&mut world.drpc, |drpc| {
            drpc.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
        });
    })
}

fn shown(world: World) -> World {
    let status = decide(&world, now()).status.unwrap();
    world.with(|world| edit(&mut world.drpc, |drpc| drpc.status = Some(status)))
}

fn sent(world: &World) -> VolumeReplicationGroup {
    let decision = decide(world, now());
    let Next::Do(effects) = &decision.next else { panic!("{}", line(&decision)) };
    effects
        .iter()
        .find_map(|effect| match effect {
            Effect::PutGroup { group, .. }
            | Effect::Adopt { group, .. }
            | Effect::EndProtection { group, .. } => Some((**group).clone()),
            _ => None,
        })
        .unwrap()
}

#[test]
fn an_application_is_taken_off_an_orphaned_cluster() {
    let lost = || deployed().shows("east", orphaned);
    check(&lost(), "Place [] | WaitForUser/Paused");
    let off = || shown(lost()).placed(&[]);
    check(&off(), "wait Orphaned | WaitForUser/Paused");
    let status = decide(&off(), now()).status.unwrap();
    let said = |type_: &str| {
        let one = status.conditions.iter().find(|one| one.type_ == type_).unwrap();
        (one.status.clone(), one.reason.clone())
    };
    assert_eq!(said("Available"), ("False".into(), "Orphaned".into()));
    assert_eq!(said("PeerReady"), ("True".into(), "Success".into()));
    let message = &status.blockers[0].message;
    for choice in [
        "failover web --to west",
        "repair web --restore-here",
        "delete drplacementcontrol web",
        "forget --of shop/web --context east",
    ] {
        assert!(message.contains(choice), "{message}");
    }
    // A copy that was made before still counts.
    assert!(status.last_group_sync_time.is_some() || lost().shown().last_group_sync_time.is_none());
    // The peer takes over; nothing else can be done.
    check(
        &off().asks(json!({ "action": "Failover", "failoverCluster": "west" })),
        "Commission 2 west Failover, on record | FailingOver/FailingOverToCluster",
    );
    for other in [
        json!({ "action": "Relocate", "preferredCluster": "west" }),
        json!({ "action": "Failover", "failoverCluster": "east" }),
    ] {
        check(&off().asks(other), "wait Orphaned | WaitForUser/Paused");
    }
    // Once its data is back, it is placed again.
    check(&off().has("east", "primary", |_| {}), "Place [east] | Deploying/UpdatingPlRule");
    // A cluster where the application is only kept is another matter.
    let kept = lost().placed(&[Chosen::home("east"), Chosen::retained("west")]);
    check(&kept, "Place [(west)] | WaitForUser/Paused");
}

#[test]
fn a_choice_reaches_the_group_of_the_holder() {
    let lost = shown(deployed().shows("east", orphaned)).placed(&[]);
    let chosen = noted(lost, annotations::RESTORE_ORPHANS, "1");
    check(&chosen, "PutGroup east primary");
    assert_eq!(sent(&chosen).note(annotations::RESTORE_ORPHANS), Some("1"));
    // A group that has just taken the order up has restored nothing yet: PVCs that the application makes now would be empty, and in its way.
    let taking = noted(shown(deployed().shows("east", orphaned)), annotations::RESTORE_ORPHANS, "1");
    let taking = taking.has("east", "primary", |_| {}).shows("east", |group| {
        let status = group.status.as_mut().unwrap();
        status.state = Some("Unknown".into());
        status.conditions.retain(|one| one.type_ != "ClusterDataReady");
    });
    check(&taking.placed(&[]), "wait Restoring | Deploying/CreatingMW");
    // Once its data is back and the application is there, the order is done, whoever gave it.
    let back = || noted(deployed(), annotations::RESTORE_ORPHANS, "1").has("east", "primary", |_| {});
    check(&back(), "ForgetRestore");
    let unread = |group: &mut VolumeReplicationGroup| {
        drop(group.metadata.annotations.as_mut().unwrap().remove(annotations::RESTORE_ORPHANS));
    };
    check(&back().shows("east", unread), "settled | Deployed/Completed");
    check(&back().shows("east", orphaned).placed(&[]), "wait Orphaned | WaitForUser/Paused");
    // An agent takes no annotation away, so it is unsaid: the next accident at this epoch is asked about.
    let mut taken_back = back();
    edit(&mut taken_back.drpc, |drpc| {
        drop(drpc.metadata.annotations.as_mut().unwrap().remove(annotations::RESTORE_ORPHANS));
    });
    check(&taken_back, "PutGroup east primary");
    assert_eq!(sent(&taken_back).note(annotations::RESTORE_ORPHANS), Some(""));
}

#[test]
fn a_point_goes_with_the_failover_that_names_it() {
    let point = "2030-01-01T11:00:00Z";
    let failing = || {
        noted(deployed(), annotations::TO_POINT, point)
            .asks(json!({ "action": "Failover", "failoverCluster": "west" }))
            .given(2, "west", Act::Failover, "FailingOver")
            .has("east", "secondary", |_| {})
            .placed(&[Chosen::retained("east")])
    };
    assert_eq!(sent(&failing()).note(annotations::TO_POINT), Some(point));
    // Once the application has arrived, the next failover is not to that point.
    let arrived = failing().has("west", "primary", |_| {}).placed(&[Chosen::home("west")]).given(
        2,
        "west",
        Act::Failover,
        "FailedOver",
    );
    check(&arrived, "ForgetPoint");
    let forgotten = arrived.with(|world| {
        edit(&mut world.drpc, |drpc| {
            drop(drpc.metadata.annotations.as_mut().unwrap().remove(annotations::TO_POINT));
        });
    });
    check(&forgotten, "settled | FailedOver/Completed");
    // An agent takes no annotation away, so the next role unsays it.
    let later = forgotten.given(3, "east", Act::Failover, "FailingOver").has("west", "secondary", |_| {});
    let west = later.site("west").unwrap().intent.clone().unwrap();
    assert_eq!(west.note(annotations::TO_POINT), Some(""));
    // One that is named for the next failover is left alone until then.
    let next = noted(arrived_at(point), annotations::TO_POINT, "2030-01-01T11:30:00Z");
    check(&next, "settled | FailedOver/Completed");
}

/// Failed over to west, to a point.
fn arrived_at(point: &str) -> World {
    noted(deployed(), annotations::TO_POINT, point)
        .asks(json!({ "action": "Failover", "failoverCluster": "west" }))
        .given(2, "west", Act::Failover, "FailingOver")
        .has("east", "secondary", |_| {})
        .has("west", "primary", |_| {})
        .placed(&[Chosen::home("west")])
        .given(2, "west", Act::Failover, "FailedOver")
}

fn deleting(world: World) -> World {
    world.with(|world| {
        edit(&mut world.drpc, |drpc| {
            drpc.metadata.deletion_timestamp = Some(Time(now()));
            drpc.status.as_mut().unwrap().phase = Some("Deleting".into());
        });
    })
}

pub fn ordered(group: &mut VolumeReplicationGroup) {
    group
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(annotations::END_PROTECTION.into(), "true".into());
}

#[test]
fn the_order_comes_before_the_deletion() {
    check(&deleting(deployed()), "EndProtection east, EndProtection west");
    let told = || deleting(deployed().has("east", "primary", ordered).has("west", "secondary", ordered));
    let unseen = |cluster: &'static str| {
        told().shows(cluster, |group| {
            group.metadata.annotations.as_mut().unwrap().remove(annotations::END_PROTECTION);
        })
    };
    check(&unseen("east"), "wait EndingProtection | Deleting/Deleting");
    check(&unseen("west"), "wait EndingProtection | Deleting/Deleting");
    check(&told(), "TakeBackGroup west");
    // A cluster that does not answer holds nothing up.
    check(&unseen("east").silent("east"), "TakeBackGroup west");
    check(&deleting(deployed()).silent("west"), "EndProtection east");
    // An orphaned application is not placed where it would start empty before its protection ends.
    check(
        &deleting(deployed().shows("east", orphaned).placed(&[])),
        "EndProtection east, EndProtection west",
    );
}

#[test]
fn an_order_of_a_lost_hub_is_unsaid() {
    let world = deployed().shows("east", ordered);
    check(&world, "PutGroup east primary");
    assert_eq!(sent(&world).note(annotations::END_PROTECTION), Some("false"));
    let adopted = deployed().shows("west", ordered).with(|world| {
        edit(&mut world.drpc, |drpc| drpc.status = None);
        let site = world.sites.get_mut("west").unwrap();
        (site.work, site.intent) = (None, None);
    });
    check(&adopted, "Adopt west");
    assert_eq!(sent(&adopted).note(annotations::END_PROTECTION), Some("false"));
}

#[test]
fn a_work_that_was_deleted_by_hand_is_put_again() {
    for (cluster, role) in [("east", "primary"), ("west", "secondary")] {
        let gone = deployed().with(|world| {
            let site = world.sites.get_mut(cluster).unwrap();
            (site.work, site.intent, site.seen) = (None, None, Seen::Absent);
        });
        check(&gone, &format!("PutGroup {cluster} {role}"));
        assert_ne!(sent(&gone).note(annotations::END_PROTECTION), Some("true"));
        assert_ne!(sent(&gone).note(annotations::FIRST_DEPLOYMENT), Some("true"));
    }
}

fn known_as(world: World, cluster: &str, id: &str) -> World {
    world.with(|world| {
        edit(world.sites.get_mut(cluster).unwrap().managed.as_mut().unwrap(), |managed| {
            let claims = json!([{ "name": "id.k8s.io", "value": id }]);
            managed.status.get_or_insert_default().cluster_claims = serde_json::from_value(claims).unwrap();
        });
    })
}

#[test]
fn an_application_is_taken_off_a_cluster_that_was_rebuilt_without_it() {
    let placed_on = |world: World, id: &str| noted(world, annotations::LAST_APP_DEPLOYMENT_CLUSTER_ID, id);
    let at_home = || placed_on(known_as(deployed(), "east", "1"), "1");
    check(&at_home(), "settled | Deployed/Completed");
    let Next::Do(effects) = decide(&known_as(deployed(), "east", "1"), now()).next else { panic!() };
    let wanted = Effect::NotePlaced { cluster: "east".into(), id: Some("1".into()), act: Act::Deploy };
    assert_eq!(effects, [wanted], "which cluster it is placed on is written down");
    // The group there is new, and was never copied.
    let rebuilt = || {
        known_as(shown(at_home()), "east", "2").shows("east", |group| {
            let status = group.status.as_mut().unwrap();
            (status.last_group_sync_time, status.primary_epoch) = (None, None);
            status.protected_pvcs.clear();
        })
    };
    check(&rebuilt(), "Place [] | WaitForUser/Paused");
    let off = || shown(rebuilt()).placed(&[]);
    check(&off(), "wait Rebuilt | WaitForUser/Paused");
    let status = decide(&off(), now()).status.unwrap();
    assert!(status.last_group_sync_time.is_some(), "the copy at the peer is still told of");
    let message = &status.blockers[0].message;
    for choice in ["failover web --to west", "delete drplacementcontrol web"] {
        assert!(message.contains(choice), "{message}");
    }
    let to = |cluster: &str| plan(&off(), &Wish { act: Act::Failover, target: cluster.into() }, now());
    assert_eq!(to("east").blockers[0].reason, "Rebuilt", "it cannot stay there");
    assert_eq!((to("west").loses, to("west").blockers.len()), (Loss::AtMostSeconds(120), 0));
    check(
        &off().asks(json!({ "action": "Failover", "failoverCluster": "west" })),
        "Commission 2 west Failover, on record | FailingOver/FailingOverToCluster",
    );
    // What is moved to it later is there, though it was placed on the former one once.
    let moved = deployed()
        .given(3, "east", Act::Relocate, "Relocating")
        .has("east", "primary", |_| {})
        .has("west", "secondary", |_| {})
        .placed(&[]);
    let moved = noted(moved, annotations::LAST_APP_DEPLOYMENT_CLUSTER, "west");
    check(&placed_on(known_as(moved, "east", "2"), "1"), "Place [east] | Relocating/UpdatingPlRule");
}
