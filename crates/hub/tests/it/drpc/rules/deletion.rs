//! Letting go.

use super::{Changes as _, check, deployed, edit, now};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_hub::drpc::commission::Act;
use lifeboat_hub::drpc::world::{Chosen, World};

fn ordered(world: World) -> World {
    let east = world.site("east").is_some_and(lifeboat_hub::drpc::world::Site::is_meant_primary);
    let role = |primary: bool| if primary { "primary" } else { "secondary" };
    world.has("east", role(east), super::orphans::ordered).has("west", role(!east), super::orphans::ordered)
}

fn going(world: World) -> World {
    world.with(|world| {
        edit(&mut world.drpc, |drpc| {
            drpc.metadata.deletion_timestamp = Some(Time(now()));
            drpc.status.as_mut().unwrap().phase = Some("Deleting".into());
        });
    })
}

fn without_group(world: World, cluster: &str) -> World {
    world.with(|world| {
        let site = world.sites.get_mut(cluster).unwrap();
        (site.work, site.intent) = (None, None);
    })
}

fn leaving(world: World, cluster: &str) -> World {
    world.with(|world| {
        edit(world.sites.get_mut(cluster).unwrap().work.as_mut().unwrap(), |work| {
            work.metadata.deletion_timestamp = Some(Time(now()));
        });
    })
}

#[test]
fn the_secondary_goes_first() {
    let first = deployed().with(|world| {
        edit(&mut world.drpc, |drpc| drpc.metadata.deletion_timestamp = Some(Time(now())));
    });
    check(&first, "EndProtection east, EndProtection west | Deleting/Deleting");
    let told = || going(ordered(deployed()));
    check(&told(), "TakeBackGroup west");
    check(&leaving(told(), "west"), "wait Removing | Deleting/Deleting");
    // A dead cluster holds nothing up.
    check(&leaving(told(), "west").silent("west"), "TakeBackGroup east");
    let alone = || without_group(told(), "west");
    check(&alone(), "TakeBackGroup east");
    check(&leaving(alone(), "east"), "wait Removing | Deleting/Deleting");
    let bare = || without_group(alone(), "east");
    check(&bare(), "TakeBackRest east, TakeBackRest west");
    let empty = || {
        bare().with(|world| {
            for site in world.sites.values_mut() {
                (site.view, site.space_work) = (None, None);
            }
        })
    };
    check(&empty(), "ReleasePlacement");
    check(&empty().with(|world| world.placement = None), "Release");
    // It needs no policy, and no clusters that are still known.
    check(&told().with(|world| world.policy = None), "TakeBackGroup west");
}

#[test]
fn an_application_between_two_clusters_is_placed_first() {
    let stopped =
        || going(deployed().placed(&[]).has("east", "primary", |group| group.spec.run_final_sync = true));
    check(&stopped(), "PutGroup east primary");
    check(&going(deployed().placed(&[])), "Place [east]");
    let moving = || {
        let world = deployed().placed(&[]).given(2, "west", Act::Relocate, "Relocating");
        going(world.has("east", "secondary", |_| {}).has("west", "secondary", |_| {}))
    };
    check(&moving(), "PutGroup west primary");
    check(&moving().has("west", "primary", |_| {}), "Place [west]");
    check(
        &moving().has("west", "primary", |group| group.spec.replication_state = "primary".into()).shows(
            "west",
            |group| {
                group.status.as_mut().unwrap().conditions.clear();
            },
        ),
        "wait FinishingMove | Deleting/Deleting",
    );
    // The target died on the way: what it left has everything.
    check(&moving().silent("west"), "Commission 3 east Failover");
}

#[test]
fn nobody_keeps_the_application_on_a_failed_cluster_afterwards() {
    let world = deployed()
        .given(2, "west", Act::Failover, "FailedOver")
        .has("east", "secondary", |_| {})
        .has("west", "primary", |_| {})
        .placed(&[Chosen::home("west"), Chosen::retained("east")])
        .silent("east");
    check(&going(world), "Place [west]");
}
