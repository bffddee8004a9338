//! Guards that the flows share: works that are refused or on their way out, the movers' key, receivers, marks, kinds of storage, placements that go.

use super::{Changes as _, check, deployed, edit, new, now, read, said};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::annotations;
use lifeboat_api::ramen::{ReplicationState, VolumeReplicationGroup};
use lifeboat_api::work::ManifestWork;
use lifeboat_hub::drpc::commission::Act;
use lifeboat_hub::drpc::decide::{Wish, decide};
use lifeboat_hub::drpc::group;
use lifeboat_hub::drpc::plan::plan;
use lifeboat_hub::drpc::world::{Chosen, World};
use lifeboat_hub::views::Seen;
use serde_json::json;
use std::sync::Arc;

fn work(world: World, cluster: &str, change: impl FnOnce(&mut ManifestWork)) -> World {
    world.with(|world| edit(world.sites.get_mut(cluster).unwrap().work.as_mut().unwrap(), change))
}

fn refused(work: &mut ManifestWork) {
    work.status =
        Some(serde_json::from_value(json!({ "conditions": [said("Applied", "False", 1)] })).unwrap());
}

fn goes(work: &mut ManifestWork) {
    work.metadata.deletion_timestamp = Some(Time(now()));
}

#[test]
fn a_work_that_is_refused_or_going_is_waited_for() {
    let sent = || {
        let begun = new().given(1, "east", Act::Deploy, "Deploying").placed(&[Chosen::home("east")]);
        begun.has("east", "primary", |_| {}).has("east", "primary", |_| {})
    };
    check(&work(sent(), "east", refused), "wait WorkRefused | Deploying/CreatingMW");
    check(&work(sent(), "east", goes), "wait WorkGoing | Deploying/CreatingMW");
    check(&work(deployed(), "west", refused), "wait WorkRefused | Deployed/EnsuringVolSyncSetup");
    check(&work(deployed(), "west", goes), "wait WorkGoing | Deployed/EnsuringVolSyncSetup");
    let failed_over = || {
        let world = deployed().asks(json!({ "action": "Failover", "failoverCluster": "west" }));
        let world = world.given(2, "west", Act::Failover, "FailingOver").has("east", "secondary", |_| {});
        world.has("west", "primary", |_| {}).placed(&[Chosen::retained("east")]).silent("east")
    };
    check(&work(failed_over(), "west", refused), "wait WorkRefused | FailingOver/WaitingForResourceRestore");
    check(&work(failed_over(), "west", goes), "wait WorkGoing | FailingOver/CreatingMW");
}

fn copying(world: World) -> World {
    world.shows("east", |group| {
        let claims = json!([{ "name": "data", "namespace": "shop", "protectedByVolSync": true }]);
        group.status.as_mut().unwrap().protected_pvcs = serde_json::from_value(claims).unwrap();
    })
}

fn with_keys(world: World, applied: &'static str) -> World {
    world.with(|world| {
        for name in ["east", "west"] {
            let mut work = group::space_work(world, name);
            let shown = json!({ "conditions": [said("Applied", applied, 1)] });
            work.status = Some(serde_json::from_value(shown).unwrap());
            world.sites.get_mut(name).unwrap().key_work = Some(Arc::new(work));
        }
    })
}

#[test]
fn movers_get_a_key_and_receivers_are_named() {
    check(&copying(deployed()), "ShareKey, PutGroup west secondary");
    let keyed = || with_keys(copying(deployed()), "True");
    check(&keyed(), "PutGroup west secondary");
    let named = || keyed().has("west", "secondary", |_| {});
    check(&named(), "settled | Deployed/Completed");
    let stuck = "wait SettingUpReplication | Deployed/SettingUpVolSyncDest";
    let unheard = |group: &mut VolumeReplicationGroup| group.spec.vol_sync = None;
    check(&named().shows("west", unheard), stuck);
    check(&with_keys(named(), "False"), stuck);
}

#[test]
fn senders_are_told_addresses_where_names_do_not_reach() {
    let apart = || {
        let world = deployed().with(|world| {
            edit(&mut world.drpc, |drpc| {
                let notes = drpc.metadata.annotations.as_mut().unwrap();
                notes.insert(
                    "drplacementcontrol.ramendr.openshift.io/is-submariner-enabled".into(),
                    "false".into(),
                );
            });
        });
        let world = with_keys(copying(world.has("east", "primary", |_| {})), "True");
        world.has("west", "secondary", |_| {})
    };
    check(&apart(), "wait SettingUpReplication | Deployed/SettingUpVolSyncDest");
    let told = |space: &'static str| {
        apart().shows("west", |group| {
            let info = json!([{
                "protectedPVC": { "name": "data", "namespace": space }, "rsyncTLS": { "address": "10.0.0.1" },
            }]);
            group.status.as_mut().unwrap().rd_info = serde_json::from_value(info).unwrap();
        })
    };
    check(&told("shop"), "PutGroup east primary");
    // Nobody is told to send claims of another namespace.
    check(&told("bank"), "wait SettingUpReplication | Deployed/SettingUpVolSyncDest");
}

#[test]
fn every_mark_is_put_on() {
    let without = |note: &'static str| {
        new().with(|world| {
            edit(&mut world.drpc, |drpc| drop(drpc.metadata.annotations.as_mut().unwrap().remove(note)));
            edit(world.placement.as_mut().unwrap(), |one| {
                drop(one.metadata.annotations.as_mut().unwrap().remove(note));
            });
        })
    };
    check(&without("drplacementcontrol.ramendr.openshift.io/app-namespace"), "Own");
    check(&without("drplacementcontrol.ramendr.openshift.io/drpc-name"), "OwnPlacement");
    check(&without("drplacementcontrol.ramendr.openshift.io/drpc-namespace"), "OwnPlacement");
    // A placement that was made anew is another owner.
    let anew = new().with(|world| {
        edit(world.placement.as_mut().unwrap(), |one| one.metadata.uid = Some("another".into()));
    });
    check(&anew, "Own");
}

#[test]
fn a_group_is_where_the_application_is() {
    let elsewhere = deployed().with(|world| {
        edit(&mut world.drpc, |drpc| {
            let notes = drpc.metadata.annotations.as_mut().unwrap();
            notes.insert("drplacementcontrol.ramendr.openshift.io/app-namespace".into(), "apps".into());
        });
    });
    assert_eq!(elsewhere.group_key().to_string(), "apps/web");
    assert_eq!(elsewhere.group_work(), "web-apps-vrg-mw");
    assert_eq!(deployed().group_key().to_string(), "shop/web");
}

#[test]
fn groups_name_the_fleet_that_they_were_given_first() {
    let fleet = |world: &World, cluster: &str| {
        let (known, site) = (world.commission().unwrap(), world.site(cluster).unwrap());
        let made = group::Builder::new(world, &known, now()).secondary(site);
        made.metadata.annotations.unwrap().get("ramendr.openshift.io/fleet").cloned()
    };
    let ours = |world: World| world.with(|world| world.fleet = Some("ours".into()));
    assert_eq!(fleet(&deployed(), "west"), None);
    assert_eq!(fleet(&ours(deployed()), "west").as_deref(), Some("ours"));
    let first = |group: &mut VolumeReplicationGroup| {
        group
            .metadata
            .annotations
            .as_mut()
            .unwrap()
            .insert("ramendr.openshift.io/fleet".into(), "first".into());
    };
    assert_eq!(fleet(&ours(deployed()).shows("west", first), "west").as_deref(), Some("first"));
    assert_eq!(fleet(&ours(deployed()).shows("east", first), "west").as_deref(), Some("first"));
    // A user who knows better than a hub that lost its key goes before all.
    let named = |world: World| {
        world.with(|world| {
            edit(&mut world.drpc, |drpc| {
                let notes = drpc.metadata.annotations.get_or_insert_default();
                notes.insert("ramendr.openshift.io/fleet".into(), "named".into());
            });
        })
    };
    let known = ours(deployed()).shows("west", first);
    assert_eq!(known.fleet_of_groups().as_deref(), Some("first"));
    assert_eq!(fleet(&named(known.clone()), "west").as_deref(), Some("named"));
    assert_eq!(named(known).fleet_of_groups().as_deref(), Some("named"));
    assert_eq!(ours(deployed()).fleet_of_groups().as_deref(), Some("ours"));
    check(&ours(deployed()), "PutGroup east primary");
    check(&deployed().with(|world| world.fleet_wanted = true), "LearnFleet");
}

#[test]
fn storage_is_shared_or_replicated() {
    let check = |interval: &str, status: serde_json::Value, metro: bool| {
        let world = deployed().with(|world| {
            edit(world.policy.as_mut().unwrap(), |policy| {
                policy.spec.scheduling_interval = interval.to_owned();
                policy.status = Some(serde_json::from_value(status.clone()).unwrap());
            });
        });
        assert_eq!(world.is_metro(), metro, "{interval:?} {status}");
    };
    let classes = || json!({ "peerClasses": [{ "storageClassName": "fast" }] });
    check("5m", json!({}), false);
    check("", json!({}), true);
    check("0m", json!({}), true);
    check("5m", json!({ "sync": classes() }), true);
    check("", json!({ "async": classes() }), false);
    check("0m", json!({ "async": classes() }), false);
    check("5m", json!({ "sync": { "peerClasses": [] } }), false);
}

#[test]
fn roles_that_are_not_as_they_should_be_stop_an_action() {
    let failing =
        || deployed().silent("east").asks(json!({ "action": "Failover", "failoverCluster": "west" }));
    let going = |group: &mut VolumeReplicationGroup| group.metadata.deletion_timestamp = Some(Time(now()));
    check(&failing().shows("west", going), "wait TargetNotReady | Initiating/CheckingFailoverPrerequisites");
    let primary =
        |group: &mut VolumeReplicationGroup| group.spec.replication_state = ReplicationState::Primary;
    check(
        &failing().shows("west", primary),
        "Commission 2 west Failover, on record | FailingOver/FailingOverToCluster",
    );
    let relocating = || deployed().asks(json!({ "action": "Relocate", "preferredCluster": "west" }));
    let secondary =
        |group: &mut VolumeReplicationGroup| group.spec.replication_state = ReplicationState::Secondary;
    check(&relocating().shows("east", secondary), "wait SourceNotReady | Initiating/PreparingFinalSync");
    // An application whose cluster has left the policy.
    let elsewhere = deployed().given(1, "north", Act::Deploy, "Deployed");
    check(&elsewhere, "wait Invalid | Deploying/CreatingMW");
}

#[test]
fn a_group_that_goes_is_not_taken_up() {
    let orphan = deployed()
        .shows("west", |group| group.metadata.deletion_timestamp = Some(Time(now())))
        .with(|world| {
            edit(&mut world.drpc, |drpc| drpc.status = None);
            let site = world.sites.get_mut("west").unwrap();
            (site.work, site.intent) = (None, None);
        });
    let line = super::line(&decide(&orphan, now()));
    assert!(!line.contains("Adopt"), "{line}");
}

#[test]
fn a_placement_that_goes_takes_the_protection_with_it() {
    let gone = || {
        deployed().with(|world| {
            edit(world.placement.as_mut().unwrap(), |one| {
                one.metadata.deletion_timestamp = Some(Time(now()));
            });
        })
    };
    check(&gone(), "EndProtection east, EndProtection west | Deleting/Deleting");
    let empty = || {
        gone().with(|world| {
            edit(&mut world.drpc, |drpc| drpc.status.as_mut().unwrap().phase = Some("Deleting".into()));
            for site in world.sites.values_mut() {
                (site.work, site.intent, site.view, site.space_work) = (None, None, None, None);
            }
        })
    };
    check(&empty(), "ReleasePlacement");
    let let_go = empty().with(|world| {
        edit(world.placement.as_mut().unwrap(), |one| one.metadata.finalizers = None);
    });
    // The DRPlacementControl is the placement's, and goes with it.
    check(&let_go, "wait Removing | Deleting/Deleting");
    let rule = deployed().with(|world| {
        world.placement = None;
        world.rule = Some(read(json!({
            "metadata": { "name": "web", "deletionTimestamp": "2030-01-01T00:00:00Z" },
            "spec": { "schedulerName": "ramen", "clusterReplicas": 1 },
            "status": { "decisions": [{ "clusterName": "east" }] },
        })));
    });
    check(&rule, "EndProtection east, EndProtection west | Deleting/Deleting");
}

fn deleting(world: World) -> World {
    world.with(|world| {
        edit(&mut world.drpc, |drpc| {
            drpc.metadata.deletion_timestamp = Some(Time(now()));
            drpc.status.as_mut().unwrap().phase = Some("Deleting".into());
            let notes = drpc.metadata.annotations.as_mut().unwrap();
            notes.retain(|key, _| !key.starts_with("ramendr.openshift.io/epoch"));
        });
    })
}

#[test]
fn a_deletion_without_memory_goes_by_what_it_sees() {
    let lost = || deleting(deployed().placed(&[]));
    check(&lost(), "Place [east]");
    let unseen = lost().with(|world| world.sites.get_mut("west").unwrap().seen = Seen::NotYet);
    check(&unseen, "wait FinishingMove | Deleting/Deleting");
    let unasked = lost().with(|world| world.sites.get_mut("west").unwrap().view = None);
    check(&unasked, "Watch west");
    // Two primaries, or none: nobody is placed by guessing, and nothing of it is lost.
    let primary =
        |group: &mut VolumeReplicationGroup| group.spec.replication_state = ReplicationState::Primary;
    check(&lost().shows("west", primary), "EndProtection east, EndProtection west");
}

#[test]
fn a_deletion_that_was_done_lets_the_placement_go() {
    let freed = || {
        deleting(deployed()).with(|world| {
            edit(&mut world.drpc, |drpc| drpc.metadata.finalizers = None);
        })
    };
    check(&freed(), "ReleasePlacement");
    check(&freed().with(|world| world.placement = None), "settled | Deleting/Deleting");
}

#[test]
fn a_new_object_says_that_nothing_is_known() {
    let world = new().with(|world| world.policy = None);
    let status = decide(&world, now()).status.unwrap();
    let said: Vec<(&str, &str)> =
        status.conditions.iter().map(|one| (one.type_.as_str(), one.status.as_str())).collect();
    assert_eq!(said, [("Available", "False"), ("PeerReady", "Unknown"), ("Protected", "Unknown")]);
}

#[test]
fn an_application_whose_pvcs_were_not_found_is_not_moved() {
    let selected_wrongly = || {
        deployed().shows("east", |group| {
            let status = group.status.as_mut().unwrap();
            (status.last_group_sync_time, status.protected_pvcs) = (None, Vec::new());
        })
    };
    let over = json!({ "action": "Failover", "failoverCluster": "west" });
    let away = json!({ "action": "Relocate", "preferredCluster": "west" });
    for world in [selected_wrongly(), selected_wrongly().silent("east")] {
        // Nothing was copied, and taking it off would delete the only data there is.
        check(
            &world.clone().asks(over.clone()),
            "wait NotProtected | Initiating/CheckingFailoverPrerequisites",
        );
        let to = |act: Act| plan(&world, &Wish { act, target: "west".into() }, now()).blockers;
        assert!(to(Act::Failover)[0].message.contains("found no PVC"), "{:?}", to(Act::Failover));
        assert!(!to(Act::Relocate).is_empty());
    }
    check(&selected_wrongly().asks(away), "wait NotProtected | Initiating/PreparingFinalSync");
    let without = selected_wrongly().with(|world| {
        edit(&mut world.drpc, |drpc| {
            let notes = drpc.metadata.annotations.get_or_insert_default();
            notes.insert(annotations::WITHOUT_CLAIMS.to_owned(), "true".to_owned());
        });
    });
    let begun = "Commission 2 west Failover, on record | FailingOver/FailingOverToCluster";
    check(&without.asks(over.clone()), begun);
    // A copy was told of once: there is something to fail over to.
    let once = deployed().shows("east", |group| group.status.as_mut().unwrap().protected_pvcs.clear());
    check(&once.asks(over.clone()), begun);
    // The same where they are found, and none is copied yet. One copied PVC is something.
    let found = |claims: serde_json::Value| {
        let world = selected_wrongly().shows("east", |group| {
            group.status.as_mut().unwrap().protected_pvcs = serde_json::from_value(claims).unwrap();
        });
        world.asks(over.clone())
    };
    let new = json!({ "name": "new", "protectedByVolSync": true });
    let old = json!({ "name": "old", "protectedByVolSync": true, "lastSyncTime": "2030-01-01T11:00:00Z" });
    let mirrored = json!({ "name": "data", "protectedByVolSync": false });
    check(&found(json!([new])), "wait NotProtected | Initiating/CheckingFailoverPrerequisites");
    check(&found(json!([new, old])), begun);
    check(&found(json!([mirrored])), begun);
}
