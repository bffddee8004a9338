//! What a hub believes that lost its memory: Ramen's table, with epochs deciding.

use super::{Changes as _, check, deployed, edit, new};
use lifeboat_hub::drpc::commission::Act;
use lifeboat_hub::drpc::stores::Recorded;
use lifeboat_hub::drpc::world::World;
use lifeboat_hub::views::Seen;
use serde_json::json;

/// The object came back from a backup without its status; works and views are there again.
fn amnesia(world: World, keeps_notes: bool) -> World {
    world.with(|world| {
        edit(&mut world.drpc, |drpc| {
            drpc.status = None;
            if !keeps_notes {
                let notes = drpc.metadata.annotations.as_mut().unwrap();
                notes.retain(|key, _| !key.starts_with("ramendr.openshift.io/epoch"));
            }
        });
    })
}

fn failed_over() -> World {
    deployed()
        .asks(json!({ "action": "Failover", "failoverCluster": "west" }))
        .given(2, "west", Act::Failover, "FailedOver")
        .has("east", "secondary", |_| {})
        .has("west", "primary", |_| {})
        .placed(&[lifeboat_hub::drpc::world::Chosen::home("west")])
}

fn no_group(world: World, cluster: &str) -> World {
    world.with(|world| {
        let site = world.sites.get_mut(cluster).unwrap();
        (site.seen, site.work, site.intent) = (Seen::Absent, None, None);
    })
}

const ASKS: &str = "wait UserMustChoose | WaitForUser/Paused";
const STOPS: &str = "wait RolesUnclear | -/Paused";

#[test]
fn nothing_is_believed_before_everybody_who_can_has_answered() {
    let pending = |cluster: &str| {
        amnesia(deployed(), true).with(|world| world.sites.get_mut(cluster).unwrap().seen = Seen::NotYet)
    };
    check(&pending("east"), "wait ViewPending | -/-");
    check(&pending("west"), "wait ViewPending | -/-");
    check(
        &new().with(|world| world.sites.get_mut("east").unwrap().seen = Seen::Failed("no".into())),
        "wait ViewFailed | -/-",
    );
    check(&amnesia(deployed(), true).silent("east").silent("west"), STOPS);
    check(&new().silent("east").silent("west"), STOPS);
}

#[test]
fn stores_are_asked_where_no_group_is_seen() {
    check(&new().with(|world| world.books.reading = None), "ReadStores");
    check(&new(), "Commission 1 east Deploy | Deploying/CreatingMW");
}

#[test]
fn without_groups_and_with_one_cluster() {
    check(&new().silent("west"), "Commission 1 east Deploy | Deploying/CreatingMW");
    check(&new().silent("east"), STOPS);
    let recorded = |world: World| {
        world.with(|world| {
            let reading = world.books.reading.as_mut().unwrap();
            reading.epoch = 4;
            reading.primary = Some(Recorded { cluster: Some("east".into()), action: None });
        })
    };
    check(&recorded(new().silent("east")), ASKS);
    check(&recorded(new().silent("west")), ASKS);
    let gone = no_group(no_group(amnesia(deployed(), true), "east"), "west");
    check(&gone, ASKS);
}

#[test]
fn with_groups_and_both_clusters() {
    for keeps_notes in [true, false] {
        check(
            &amnesia(failed_over(), keeps_notes),
            match keeps_notes {
                true => "settled | FailedOver/Completed",
                false => "Commission 2 west Failover | FailingOver/CreatingMW",
            },
        );
        // What is asked for is of an older day: doing it again would move the application.
        check(
            &amnesia(failed_over(), keeps_notes)
                .asks(json!({ "action": "Relocate", "preferredCluster": "east" })),
            ASKS,
        );
        check(
            &amnesia(failed_over(), keeps_notes)
                .asks(json!({ "action": "Failover", "failoverCluster": "east" })),
            ASKS,
        );
    }
    // Who asks for nothing gets nothing changed.
    check(&amnesia(failed_over(), true).asks(json!({ "action": null })), "settled | FailedOver/Completed");
}

#[test]
fn with_groups_and_one_cluster() {
    check(&amnesia(deployed(), true).silent("west"), "wait ClusterSilent | Deployed/EnsuringVolSyncSetup");
    check(&amnesia(deployed(), true).silent("east"), ASKS);
    check(&amnesia(failed_over(), true).silent("east"), "wait ClusterSilent | FailedOver/Cleaning Up");
    check(&amnesia(failed_over(), true).silent("west"), ASKS);
    check(
        &amnesia(failed_over(), true)
            .silent("east")
            .asks(json!({ "action": "Relocate", "preferredCluster": "east" })),
        ASKS,
    );
}

#[test]
fn two_secondaries_say_where_they_were_going() {
    let moving = || {
        deployed()
            .asks(json!({ "action": "Relocate", "preferredCluster": "west" }))
            .placed(&[])
            .given(2, "west", Act::Relocate, "Relocating")
            .has("east", "secondary", |_| {})
            .has("west", "secondary", |_| {})
    };
    check(&amnesia(moving(), true), "PutGroup west primary");
    check(&amnesia(moving(), false), "Commission 2 west Relocate | Relocating/CreatingMW");
    // Groups of another hub do not say.
    let strip = |world: World, cluster: &str| {
        world.shows(cluster, |group| {
            group
                .metadata
                .annotations
                .as_mut()
                .unwrap()
                .retain(|key, _| !key.starts_with("ramendr.openshift.io/epoch"));
            group.status.as_mut().unwrap().epoch = None;
        })
    };
    let foreign = strip(strip(amnesia(moving(), false), "east"), "west").with(|world| {
        for site in world.sites.values_mut() {
            (site.work, site.intent) = (None, None);
        }
    });
    check(&foreign, "Adopt east, Adopt west");
}

#[test]
fn groups_without_a_work_are_taken_up_first() {
    let orphan = amnesia(deployed(), true).with(|world| {
        let site = world.sites.get_mut("west").unwrap();
        (site.work, site.intent) = (None, None);
    });
    check(&orphan, "Adopt west");
    check(&orphan.clone().silent("east"), "Adopt west");
}

#[test]
fn two_primaries_are_never_taken_up() {
    let orphans = |west: i64| {
        amnesia(failed_over(), false)
            .shows("east", |group| group.spec.replication_state = "primary".into())
            .shows("west", |group| {
                group
                    .metadata
                    .annotations
                    .as_mut()
                    .unwrap()
                    .insert("ramendr.openshift.io/epoch".into(), west.to_string());
                group.status.as_mut().unwrap().epoch = Some(west);
            })
            .with(|world| {
                for site in world.sites.values_mut() {
                    (site.work, site.intent) = (None, None);
                }
            })
    };
    check(&orphans(3), "Adopt west");
    check(&orphans(2), "Commission 2 west Failover | FailingOver/CreatingMW");
    check(
        &orphans(3).with(|world| world.sites.get_mut("east").unwrap().seen = Seen::NotYet),
        "wait ViewPending | -/-",
    );
}

#[test]
fn a_hub_from_an_old_copy_finds_out() {
    // It remembers east at epoch 1; west became primary at epoch 2 since, and was sent the old word again.
    let old = |action: serde_json::Value| {
        deployed().asks(action).shows("west", |group| {
            let status = group.status.as_mut().unwrap();
            (status.epoch, status.primary_epoch) = (Some(2), Some(2));
        })
    };
    check(&old(json!({})), "Commission 2 west Deploy | Deploying/CreatingMW");
    check(&old(json!({ "action": "Relocate" })), ASKS);
    check(
        &old(json!({ "action": "Failover", "failoverCluster": "west" })),
        "Commission 2 west Failover | FailingOver/CreatingMW",
    );
}

#[test]
fn a_user_who_was_asked_can_only_choose_by_changing_his_mind() {
    let waiting = |generation: i64| {
        amnesia(deployed(), true)
            .silent("east")
            .asks(json!({ "action": "Failover", "failoverCluster": "west" }))
            .with(|world| {
                edit(&mut world.drpc, |drpc| {
                    drpc.metadata.generation = Some(generation);
                    let status =
                        json!({ "phase": "WaitForUser", "progression": "Paused", "observedGeneration": 3 });
                    drpc.status = Some(serde_json::from_value(status).unwrap());
                });
            })
    };
    check(&waiting(3), ASKS);
    check(&waiting(4), "Commission 1 east Deploy | Initiating/CheckingFailoverPrerequisites");
    check(&waiting(4).silent("west"), "wait RolesUnclear | -/Paused");
}

/// Groups of another hub, in works of ours, that say nothing of epochs.
fn foreign(world: World) -> World {
    amnesia(world, false).with(|world| {
        for site in world.sites.values_mut() {
            let strip = |group: &mut lifeboat_api::ramen::VolumeReplicationGroup| {
                let notes = group.metadata.annotations.as_mut().unwrap();
                notes.retain(|key, _| !key.starts_with("ramendr.openshift.io/epoch"));
                if let Some(status) = &mut group.status {
                    (status.epoch, status.primary_epoch) = (None, None);
                }
            };
            if let Some(intent) = &mut site.intent {
                strip(intent);
            }
            if let Seen::Found(group) = &mut site.seen {
                edit(group, strip);
            }
        }
    })
}

#[test]
fn roles_without_epochs_are_believed_only_where_they_are_clear() {
    let primary = |group: &mut lifeboat_api::ramen::VolumeReplicationGroup| {
        group.spec.replication_state = "primary".into();
    };
    let secondary = |group: &mut lifeboat_api::ramen::VolumeReplicationGroup| {
        group.spec.replication_state = "secondary".into();
    };
    check(&foreign(deployed()), "Commission 1 east Deploy | Deploying/CreatingMW");
    check(&foreign(deployed().shows("east", secondary)), STOPS);
    check(&foreign(deployed().shows("east", secondary)).silent("west"), ASKS);
    check(&foreign(deployed().shows("west", primary)), STOPS);
    // Two primaries are what another hub leaves in the middle of a failover; the target says that it is one.
    let amid = |group: &mut lifeboat_api::ramen::VolumeReplicationGroup| {
        group.spec.replication_state = "primary".into();
        group.spec.action = Some("Failover".into());
    };
    check(
        &foreign(deployed().shows("west", amid))
            .asks(json!({ "action": "Failover", "failoverCluster": "west" })),
        "Commission 1 west Failover | FailingOver/CreatingMW",
    );
}

#[test]
fn a_number_that_somebody_else_used_up_is_passed_over() {
    let used_up = |world: World| world.shows("west", |group| group.status.as_mut().unwrap().epoch = Some(5));
    check(&used_up(deployed()), "Commission 6 east Deploy | Deploying/CreatingMW");
    check(&used_up(amnesia(deployed(), false)), ASKS);
}
