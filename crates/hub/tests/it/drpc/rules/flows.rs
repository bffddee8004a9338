//! Deploy, failover and relocation: a row for each guard and each step.

use super::{Changes as _, check, deployed, edit, new, now, said};
use lifeboat_api::ramen::{ReplicationState, VolumeReplicationGroup, VrgState};
use lifeboat_engine::Why as _;
use lifeboat_hub::drpc::commission::Act;
use lifeboat_hub::drpc::decide::{Wish, relocate};
use lifeboat_hub::drpc::plan::plan;
use lifeboat_hub::drpc::world::{Chosen, World};
use serde_json::json;

fn unsettled(group: &mut VolumeReplicationGroup) {
    group.status.as_mut().unwrap().observed_generation = Some(3);
}

fn lacks(condition: &'static str) -> impl FnOnce(&mut VolumeReplicationGroup) {
    move |group| {
        let conditions = &mut group.status.as_mut().unwrap().conditions;
        conditions
            .iter_mut()
            .filter(|one| one.type_ == condition)
            .for_each(|one| one.status = "False".into());
    }
}

#[test]
fn a_deployment_begins_with_an_epoch() {
    check(&new(), "Commission 1 east Deploy | Deploying/CreatingMW");
    // An earlier life of the name left records at epoch 6.
    check(
        &new().with(|world| world.books.reading.as_mut().unwrap().epoch = 6),
        "Commission 7 east Deploy | Deploying/CreatingMW",
    );
    check(&new().placed(&[Chosen::home("east")]), "Commission 1 east Deploy | Deploying/CreatingMW");
    check(&new().placed(&[Chosen::home("west")]), "wait Invalid | Initiating/CreatingMW");
    check(&new().asks(json!({ "action": "Relocate" })), "wait Invalid | Initiating/CreatingMW");
    check(
        &new().asks(json!({ "action": "Failover", "failoverCluster": "west" })),
        "wait Invalid | Initiating/CreatingMW",
    );
}

#[test]
fn a_deployment_goes_step_by_step() {
    let begun = || new().given(1, "east", Act::Deploy, "Deploying");
    check(&begun(), "PutSpace east, PutGroup east primary");
    // Once the group is taken up, it is no first deployment any more.
    check(&begun().has("east", "primary", |_| {}), "PutGroup east primary");
    let sent = || begun().has("east", "primary", |_| {}).has("east", "primary", |_| {});
    check(&sent(), "Place [east] | Deploying/UpdatingPlRule");
    let placed = || sent().placed(&[Chosen::home("east")]);
    check(&placed(), "PutSpace west, PutGroup west secondary");
    check(&placed().shows("east", unsettled), "wait GroupNotSeen | Deploying/CreatingMW");
    check(&placed().silent("east"), "wait ClusterSilent | Deploying/CreatingMW");
    check(&placed().has("west", "secondary", |_| {}), "settled | Deployed/Completed");
}

#[test]
fn a_steady_application_is_left_alone() {
    check(&deployed(), "settled | Deployed/Completed");
    check(&deployed().shows("west", unsettled), "wait CleanupPending | Deployed/EnsuringVolSyncSetup");
    check(&deployed().silent("west"), "wait ClusterSilent | Deployed/EnsuringVolSyncSetup");
    // It stays deployed, whatever its cluster says for a moment.
    check(&deployed().silent("east"), "wait ClusterSilent | Deployed/Completed");
    check(&deployed().placed(&[]), "Place [east]");
    check(&deployed().placed(&[Chosen::home("west")]), "Place [east]");
}

#[test]
fn a_cluster_names_no_claims_of_other_namespaces() {
    let names = |space: &'static str| {
        let world = deployed().shows("east", |group| {
            let claims = json!([{ "name": "data", "namespace": space, "protectedByVolSync": true }]);
            group.status.as_mut().unwrap().protected_pvcs = serde_json::from_value(claims).unwrap();
        });
        let next = lifeboat_hub::drpc::decide::decide(&world, now()).next;
        let lifeboat_engine::Next::Do(effects) = next else { return 0 };
        let sent = effects.into_iter().filter_map(|effect| match effect {
            lifeboat_hub::drpc::decide::Effect::PutGroup { group, .. } => group.spec.vol_sync,
            _ => None,
        });
        sent.map(|volsync| volsync.rd_spec.len()).sum()
    };
    assert_eq!((names("shop"), names("bank")), (1, 0));
}

fn failing() -> World {
    deployed().silent("east").asks(json!({ "action": "Failover", "failoverCluster": "west" }))
}

#[test]
fn a_failover_has_guards() {
    check(&failing(), "Commission 2 west Failover, on record | FailingOver/FailingOverToCluster");
    let stuck = "| Initiating/CheckingFailoverPrerequisites";
    check(&failing().silent("west"), &format!("wait ClusterSilent {stuck}"));
    check(&failing().shows("west", unsettled), &format!("wait TargetNotReady {stuck}"));
    check(
        &failing().shows("west", |group| group.status.as_mut().unwrap().state = Some(VrgState::Unknown)),
        &format!("wait TargetNotReady {stuck}"),
    );
    let seen = |seen| {
        failing().with(|world| {
            let site = world.sites.get_mut("west").unwrap();
            site.seen = seen;
        })
    };
    check(&seen(lifeboat_hub::views::Seen::Absent), &format!("wait TargetNotReady {stuck}"));
    check(&seen(lifeboat_hub::views::Seen::NotYet), &format!("wait ViewPending {stuck}"));
    check(&seen(lifeboat_hub::views::Seen::Failed("no".into())), &format!("wait ViewFailed {stuck}"));
}

#[test]
fn shared_storage_wants_a_fence() {
    let metro = |fenced: Option<(&'static str, i64)>| {
        failing().with(|world| {
            edit(world.policy.as_mut().unwrap(), |policy| policy.spec.scheduling_interval = String::new());
            if let Some((status, generation)) = fenced {
                edit(world.sites.get_mut("east").unwrap().drcluster.as_mut().unwrap(), |cluster| {
                    let conditions = json!({ "conditions": [said("Fenced", status, generation)] });
                    cluster.status = Some(serde_json::from_value(conditions).unwrap());
                });
            }
        })
    };
    check(&metro(None), "wait NotFenced | FailingOver/WaitForFencing");
    check(&metro(Some(("False", 1))), "wait NotFenced | FailingOver/WaitForFencing");
    check(&metro(Some(("True", 0))), "wait NotFenced | FailingOver/WaitForFencing");
    check(
        &metro(Some(("True", 1))),
        "Commission 2 west Failover, on record | FailingOver/FailingOverToCluster",
    );
}

#[test]
fn storage_that_wants_maintenance_gets_it_first() {
    let claims = json!([{
        "name": "data", "csiProvisioner": "csi", "replicationID": { "id": "rep-1", "modes": ["Failover"] },
    }]);
    let wanting = |modes: serde_json::Value| {
        let claims = claims.clone();
        failing()
            .shows("east", |group| {
                group.status.as_mut().unwrap().protected_pvcs = serde_json::from_value(claims).unwrap();
            })
            .with(|world| {
                edit(world.sites.get_mut("west").unwrap().drcluster.as_mut().unwrap(), |cluster| {
                    cluster.status =
                        Some(serde_json::from_value(json!({ "maintenanceModes": modes })).unwrap());
                });
            })
    };
    let mode = |id: &str, status: &str| json!([{ "storageProvisioner": "csi", "targetID": id, "state": "Completed", "conditions": [said("FailoverActivated", status, 1)] }]);
    let stuck = "wait MaintenanceNotActive | FailingOver/WaitForStorageMaintenanceActivation";
    check(&wanting(json!([])), stuck);
    // Who asks what a failover would do is not told that it is in the way: the failover brings it about.
    let asked = plan(&wanting(json!([])), &Wish { act: Act::Failover, target: "west".to_owned() }, now());
    assert!(asked.blockers.is_empty() && asked.steps.len() == 5, "{asked:?}");
    check(&wanting(mode("rep-1", "False")), stuck);
    check(&wanting(mode("rep-2", "True")), stuck);
    check(
        &wanting(mode("rep-1", "True")),
        "Commission 2 west Failover, on record | FailingOver/FailingOverToCluster",
    );
}

/// Right after the epoch of a failover was given out.
fn failed_over() -> World {
    failing().given(2, "west", Act::Failover, "FailingOver")
}

#[test]
fn a_failover_goes_step_by_step() {
    // The old primary steps down on record before the new one is told.
    check(&failed_over(), "PutGroup east secondary, Place [(east)]");
    let stepped_down = || failed_over().has("east", "secondary", |_| {}).placed(&[Chosen::retained("east")]);
    check(&stepped_down(), "PutGroup west primary");
    let promoted = || stepped_down().has("west", "primary", |_| {});
    check(
        &promoted().shows("west", lacks("ClusterDataReady")),
        "wait Restoring | FailingOver/WaitingForResourceRestore",
    );
    check(&promoted().shows("west", lacks("DataReady")), "wait NotReady | FailingOver/WaitForReadiness");
    check(&promoted().shows("west", unsettled), "wait GroupNotSeen | FailingOver/WaitingForResourceRestore");
    check(&promoted().silent("west"), "wait ClusterSilent | FailingOver/WaitingForResourceRestore");
    // The old cluster is dead, so it keeps its mark.
    check(&promoted(), "Place [west (east)] | FailingOver/UpdatingPlRule");
    let placed = || promoted().placed(&[Chosen::home("west"), Chosen::retained("east")]);
    check(&placed(), "wait ClusterSilent | FailedOver/Cleaning Up");
}

#[test]
fn the_old_cluster_keeps_the_application_until_it_has_yielded() {
    let back = || {
        let world = deployed().asks(json!({ "action": "Failover", "failoverCluster": "west" }));
        world
            .given(2, "west", Act::Failover, "FailingOver")
            .has("east", "secondary", |_| {})
            .has("west", "primary", |_| {})
            .placed(&[Chosen::home("west"), Chosen::retained("east")])
    };
    let still = |group: &mut VolumeReplicationGroup| group.spec.replication_state = ReplicationState::Primary;
    check(&back().shows("east", still), "wait CleanupPending | FailedOver/Cleaning Up");
    check(&back().shows("east", unsettled), "wait CleanupPending | FailedOver/Cleaning Up");
    // Its claims can only go when the application does: it need not have finished.
    let unfinished =
        |group: &mut VolumeReplicationGroup| group.status.as_mut().unwrap().state = Some(VrgState::Unknown);
    check(&back().shows("east", unfinished), "Place [west] | FailingOver/UpdatingPlRule");
    check(
        &back().placed(&[Chosen::home("west")]).shows("east", unfinished),
        "wait NotSecondary | FailedOver/Cleaning Up",
    );
    check(&back().placed(&[Chosen::home("west")]), "settled | FailedOver/Completed");
}

#[test]
fn an_action_where_the_application_is_changes_no_role() {
    check(
        &deployed().asks(json!({ "action": "Failover", "failoverCluster": "east" })),
        "Commission 1 east Failover | FailingOver/FailingOverToCluster",
    );
    check(
        &deployed().asks(json!({ "action": "Relocate" })),
        "Commission 1 east Relocate | Relocating/WaitForReadiness",
    );
}

#[test]
fn taking_an_action_away_moves_nothing() {
    let world = deployed()
        .given(2, "west", Act::Failover, "FailedOver")
        .has("east", "secondary", |_| {})
        .has("west", "primary", |_| {})
        .placed(&[Chosen::home("west")]);
    check(&world, "settled | FailedOver/Completed");
}

fn relocating() -> World {
    deployed().asks(json!({ "action": "Relocate", "preferredCluster": "west" }))
}

/// As Ramen's cluster operator shows a group whose restored claims it does not copy.
fn never_copied(group: &mut VolumeReplicationGroup) {
    let status = group.status.as_mut().unwrap();
    status.last_group_sync_time = None;
    let claim = json!({ "namespace": "shop", "name": "data", "protectedByVolSync": true });
    status.protected_pvcs = vec![serde_json::from_value(claim).unwrap()];
}

#[test]
fn a_relocation_has_guards() {
    let stuck = "| Initiating/PreparingFinalSync";
    check(&relocating(), "PutGroup east primary prepare | Relocating/PreparingFinalSync");
    check(&relocating().silent("east"), &format!("wait ClusterSilent {stuck}"));
    check(&relocating().silent("west"), &format!("wait ClusterSilent {stuck}"));
    check(&relocating().shows("east", lacks("DataReady")), &format!("wait SourceNotReady {stuck}"));
    check(
        &relocating().shows("east", lacks("ClusterDataProtected")),
        &format!("wait SourceNotReady {stuck}"),
    );
    let begins = |world: &World| {
        let (known, east, west) = (world.commission(), world.site("east"), world.site("west"));
        relocate::may_begin(world, now(), &known.unwrap(), east.unwrap(), west.unwrap())
    };
    let vacuous = relocating().shows("east", never_copied);
    assert_eq!(begins(&vacuous).unwrap_err().reason(), "SourceNotReady");
    // Ramen's cluster operator has set a sender up and has not looked at it since.
    let unread = vacuous.shows("east", |group| {
        let claim = &mut group.status.as_mut().unwrap().protected_pvcs[0];
        claim.conditions = vec![serde_json::from_value(said("ReplicationSourceSetup", "True", 4)).unwrap()];
    });
    assert_eq!(begins(&unread), Ok(()));
    let primary =
        |group: &mut VolumeReplicationGroup| group.spec.replication_state = ReplicationState::Primary;
    check(&relocating().shows("west", primary), &format!("wait CleanupPending {stuck}"));
    check(&relocating().shows("west", unsettled), &format!("wait CleanupPending {stuck}"));
    let elsewhere = |group: &mut VolumeReplicationGroup| {
        group.metadata.annotations.as_mut().unwrap().insert("ramendr.openshift.io/epoch".into(), "0".into());
    };
    check(&relocating().shows("west", elsewhere), &format!("wait GroupNotSeen {stuck}"));
    // What a failover left comes first.
    check(
        &relocating().placed(&[Chosen::home("east"), Chosen::retained("west")]).shows("west", elsewhere),
        &format!("wait GroupNotSeen {stuck}"),
    );
}

#[test]
fn a_fenced_cluster_is_no_place_to_relocate_to() {
    let metro = relocating().with(|world| {
        edit(world.policy.as_mut().unwrap(), |policy| policy.spec.scheduling_interval = String::new());
        edit(world.sites.get_mut("west").unwrap().drcluster.as_mut().unwrap(), |cluster| {
            let conditions = json!({ "conditions": [said("Fenced", "True", 1)] });
            cluster.status = Some(serde_json::from_value(conditions).unwrap());
        });
    });
    // Metro groups say sync where others say async.
    let metro = metro.has("east", "primary", |_| {}).has("west", "secondary", |_| {});
    check(&metro, "wait TargetFenced | Initiating/PreparingFinalSync");
}

#[test]
fn a_relocation_goes_step_by_step() {
    let asked = |prepare: bool, run: bool| {
        move |group: &mut VolumeReplicationGroup| {
            group.spec.prepare_for_final_sync = prepare;
            group.spec.run_final_sync = run;
        }
    };
    let done = |prepare: bool, copied: bool| {
        move |group: &mut VolumeReplicationGroup| {
            let status = group.status.as_mut().unwrap();
            status.prepare_for_final_sync_complete = prepare;
            status.final_sync_complete = copied;
        }
    };
    let preparing = || relocating().has("east", "primary", asked(true, false));
    check(&preparing(), "wait PreparingFinalSync | Relocating/PreparingFinalSync");
    let prepared = || preparing().shows("east", done(true, false));
    check(&prepared(), "Place [] | Relocating/ClearingPlacement");
    let quiet = || prepared().placed(&[]);
    check(&quiet(), "PutGroup east primary run | Relocating/RunningFinalSync");
    let running = || relocating().placed(&[]).has("east", "primary", asked(false, true));
    check(&running(), "wait RunningFinalSync | Relocating/RunningFinalSync");
    check(&running().placed(&[Chosen::home("east")]), "Place []");
    let copied = || running().shows("east", done(false, true));
    let vacuous = copied().shows("east", never_copied);
    check(&vacuous, "wait RunningFinalSync | Relocating/RunningFinalSync");
    check(&copied().silent("east"), "wait ClusterSilent | Relocating/RunningFinalSync");
    check(&copied().silent("west"), "wait ClusterSilent | Relocating/RunningFinalSync");
    check(&copied(), "Commission 2 west Relocate | Relocating/FinalSyncComplete");
    // A request that was taken back before the point of no return takes everything back.
    let called_off = || running().asks(json!({ "action": null, "preferredCluster": "east" }));
    check(&called_off(), "PutGroup east primary");
    check(&called_off().has("east", "primary", |_| {}), "Place [east]");
}

#[test]
fn after_the_point_of_no_return_a_relocation_goes_forward() {
    let given = || relocating().placed(&[]).given(2, "west", Act::Relocate, "Relocating");
    let step = "Relocating/EnsuringVolumesAreSecondary";
    check(&given(), &format!("PutGroup east secondary, PutGroup west secondary | {step}"));
    let yielded = || given().has("east", "secondary", |_| {}).has("west", "secondary", |_| {});
    let unfinished =
        |group: &mut VolumeReplicationGroup| group.status.as_mut().unwrap().state = Some(VrgState::Unknown);
    check(&yielded().shows("east", unfinished), &format!("wait NotSecondary | {step}"));
    check(&yielded().shows("west", unfinished), &format!("wait NotSecondary | {step}"));
    check(&yielded().shows("east", lacks("DataProtected")), &format!("wait NotProtected | {step}"));
    check(&yielded().silent("east"), &format!("wait ClusterSilent | {step}"));
    check(&yielded(), "PutGroup west primary");
    // Also when nobody asks for it any more: the old primary has given up its role.
    check(&yielded().asks(json!({ "action": null, "preferredCluster": "east" })), "PutGroup west primary");
    let promoted = || yielded().has("west", "primary", |_| {});
    check(&promoted().shows("west", lacks("DataReady")), "wait NotReady | Relocating/WaitForReadiness");
    check(&promoted(), "Place [west] | Relocating/UpdatingPlRule");
    check(&promoted().placed(&[Chosen::home("west")]), "settled | Relocated/Completed");
}

#[test]
fn a_failover_takes_over_from_a_relocation() {
    let given = || {
        let world = relocating().placed(&[]).given(2, "west", Act::Relocate, "Relocating");
        world.has("east", "secondary", |_| {}).has("west", "secondary", |_| {})
    };
    // To where it was going: nobody was primary at that epoch, so it is used.
    check(
        &given().silent("east").asks(json!({ "action": "Failover", "failoverCluster": "west" })),
        "Commission 2 west Failover, on record | FailingOver/FailingOverToCluster",
    );
    // Back to where it came from.
    check(
        &given().silent("west").asks(json!({ "action": "Failover", "failoverCluster": "east" })),
        "Commission 3 east Failover, on record | FailingOver/FailingOverToCluster",
    );
}
