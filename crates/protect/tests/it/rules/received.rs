//! What was received, turned into claims.

use super::furniture::*;
use super::{claim, now, seen, world};
use lifeboat_protect::decide::plan::Plan;
use lifeboat_protect::decide::received::claims_from_images;
use lifeboat_protect::world::World;
use serde_json::{Value, json};

fn named(group: &mut Value) {
    group["spec"]["action"] = json!("Failover");
    group["spec"]["volSync"] =
        json!({ "rdSpec": [{ "protectedPVC": { "name": "one", "storageClassName": "fast" } }] });
}

fn with_image(world: &mut World) {
    let latest = json!({ "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "i" });
    receiver(world, "one", |one| one["status"]["latestImage"] = latest);
}

fn check(rule: &str, group: impl FnOnce(&mut Value), fill: impl FnOnce(&mut World), expected: &str) {
    let (mut world, mut plan) = (world(group), Plan::default());
    fill(&mut world);
    claims_from_images(&world, now(), &mut plan);
    assert_eq!(planned(&plan), expected, "{rule}");
}

#[test]
fn h8_a_claim_is_made_of_the_newest_complete_image() {
    let kept = |world: &mut World| {
        with_image(world);
        image(world, "i", "one", GOING, |_| {});
    };
    check("H8: there is no receiver", named, |_| {}, "CannotRestore");
    check("H8: it has received nothing", named, |world| receiver(world, "one", |_| {}), "CannotRestore");
    check("H8: the image is gone", named, with_image, "CannotRestore");
    let cut_late = |world: &mut World| {
        with_image(world);
        image(world, "i", "one", GOING, |one| one["status"]["readyToUse"] = json!(false));
    };
    check("D8: an image that is not ready is none", named, cut_late, "Unpublished");
    let loose = |world: &mut World| {
        with_image(world);
        image(world, "i", "one", GOING, |one| one["metadata"]["labels"] = json!({}));
    };
    check("H8: it is kept from being deleted first", named, loose, "KeepImage");
    check("H8: then a claim is made of it", named, kept, "MakeClaim");
    let made = |source: &'static str| {
        move |world: &mut World| {
            kept(world);
            let one = claim(|claim| {
                claim["spec"]["dataSource"] = json!({ "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": source });
            });
            world.claims = vec![seen(one)];
        }
    };
    check("H8: made of it already", named, made("i"), "");
    check("H8: made of another, it is reported and left alone", named, made("other"), "CannotRestore");
    let strangers = |world: &mut World| receiver(world, "one", |one| one["metadata"]["labels"] = theirs());
    check("H8: a stranger's receiver is left alone", named, strangers, "Foreign");
    let lacks = |world: &mut World| {
        with_image(world);
        world.kinds.snapshots = false;
    };
    check("D25: the cluster has no VolumeSnapshot", named, lacks, "Unsupported");
    let nobody = |group: &mut Value| {
        named(group);
        group["spec"]["volSync"]["rdSpec"] = json!([]);
    };
    check(
        "D2: data was received, and nobody names the claims",
        nobody,
        |world| receiver(world, "one", |_| {}),
        "CannotRestore",
    );
}

#[test]
fn a_claim_that_was_received_into_is_stopped_and_brought_back() {
    let direct = |change: fn(&mut Value)| {
        move |world: &mut World| {
            let latest =
                json!({ "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "i" });
            receiver(world, "one", |one| {
                one["spec"]["rsyncTLS"] = json!({ "destinationPVC": "one" });
                one["status"]["latestImage"] = latest;
                change(one);
            });
            image(world, "i", "one", GOING, |_| {});
            world.claims = vec![protected(|claim| claim["metadata"]["finalizers"] = json!([VOLSYNC]))];
        }
    };
    let back = lifeboat_api::annotations::ROLL_BACK_TO;
    let done = lifeboat_api::annotations::ROLLED_BACK_TO;
    check("direct: the receiver stops first", named, direct(|_| {}), "Receive");
    let relocate = |group: &mut Value| {
        named(group);
        group["spec"]["action"] = json!("Relocate");
    };
    check(
        "direct: a relocation needs no way back",
        relocate,
        direct(|one| one["spec"]["paused"] = json!(true)),
        "",
    );
    let asked: fn(&mut Value) = |one| {
        one["spec"]["paused"] = json!(true);
        one["metadata"]["annotations"] = json!({ lifeboat_api::annotations::ROLL_BACK_TO: "i" });
    };
    check("direct: the way back is waited for", named, direct(asked), "Restoring");
    let answered: fn(&mut Value) = |one| {
        one["spec"]["paused"] = json!(true);
        one["metadata"]["annotations"] = json!({ lifeboat_api::annotations::ROLL_BACK_TO: "i", lifeboat_api::annotations::ROLLED_BACK_TO: "i" });
    };
    check("direct: brought back", named, direct(answered), "");
    let used = |world: &mut World| {
        direct(|_| {})(world);
        world.claims[0].users = vec!["pod a".into()];
    };
    check("direct: never while it is used", named, used, "InUse");
    assert!(!back.is_empty() && back != done);
}
