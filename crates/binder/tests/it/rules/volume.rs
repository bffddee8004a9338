//! Volumes: free, offered, claimed, taken back.

use crate::model::Model;
use crate::rules::{check, of_volume, start};
use crate::things::{ClaimThings, VolumeThings, claim, named_claim, volume};
use lifeboat_binder::desk::Offer;
use lifeboat_binder::words::VolumeWords;
use lifeboat_binder::words::{BOUND_BY_CONTROLLER, PROVISIONED_BY};
use lifeboat_engine::ObjectKey;
use lifeboat_testbed::fixtures::With;

#[test]
fn a_volume() {
    let row = |rule: &str, model: Model, expected: &str| check(rule, &of_volume(&model), expected);
    let bound = || volume("v").for_claim("c", "uid-c").in_phase("Bound");
    row(
        "unclaimed is Available",
        start().with_volume(volume("v").in_phase("Pending")),
        "Settled => Available",
    );
    row(
        "unclaimed and failed before is Available",
        start().with_volume(volume("v").in_phase("Failed")),
        "Settled => Available",
    );
    row(
        "reserved without a uid is Available",
        start().with_volume(volume("v").in_phase("Pending").for_claim("c", "")),
        "Settled => Available",
    );
    row(
        "fresh and wanted is offered, not written",
        start().with_claim(claim()).with_volume(volume("v").in_phase("Pending")),
        "Do(Offer)",
    );
    row(
        "fresh and reserved for a claim that waits is offered, not written",
        start().with_claim(claim()).with_volume(volume("v").in_phase("Pending").for_claim("c", "")),
        "Do(Offer)",
    );
    row(
        "its claim is bound to it",
        start().with_claim(claim().naming("v")).with_volume(bound().in_phase("Available")),
        "Settled => Bound",
    );
    row(
        "its claim has still to be completed",
        start().with_claim(claim()).with_volume(bound()),
        "Wait(Claim)",
    );
    row(
        "its claim is of another mode",
        start().with_claim(claim().of_mode("Block")).with_volume(bound()),
        "Wait(ClaimUnfit)",
    );
    row(
        "its claim went elsewhere",
        start().with_claim(claim().naming("w")).with_volume(bound()),
        "Do(Unbind)",
    );
    row(
        "its claim went elsewhere and it was provisioned for it: first the server is asked",
        start()
            .with_claim(claim().naming("w"))
            .with_volume(bound().policy("Delete").noted(PROVISIONED_BY, "x.io/y")),
        "Do(ReadClaim)",
    );
    row("its claim is gone: first the server is asked", start().with_volume(bound()), "Do(ReadClaim)");
    row(
        "its claim is another of the same name: first the server is asked",
        start()
            .with_claim(claim().with(|claim| claim.metadata.uid = Some("new".into())))
            .with_volume(bound()),
        "Do(ReadClaim)",
    );
    row(
        "its claim is being deleted and still there",
        start()
            .with_claim(claim().naming("v").with(|claim| {
                claim.metadata.deletion_timestamp =
                    Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
            }))
            .with_volume(bound()),
        "Settled",
    );
    row(
        "released already: the server is not asked again",
        start().with_volume(bound().in_phase("Released")),
        "Settled",
    );
}

#[test]
fn what_the_server_said_of_an_earlier_claim_says_nothing_of_the_next() {
    let bound = |uid: &str| volume("v").for_claim("c", uid).in_phase("Bound");
    let asked = |uid: &str, said: Option<(&str, &str)>| {
        let model = start().with_volume(bound("uid-new"));
        let said = said.map(|(uid, version)| (uid.to_owned(), version.to_owned()));
        model.mind.desk.note("v", uid, said);
        of_volume(&model)
    };
    check("there was none with the earlier uid: asked again", &asked("uid-old", None), "Do(ReadClaim)");
    check("there is none with this uid", &asked("uid-new", None), "Settled => Released");
    check(
        "the server has one that is not seen yet",
        &asked("uid-new", Some(("uid-new", "7"))),
        "Do(ReadClaim)",
    );
}

#[test]
fn taking_a_claim_off() {
    let end = |v: lifeboat_binder::lean::PersistentVolume| {
        let mut model = start().with_claim(claim().naming("w")).with_volume(v);
        model.volume_pass("v").unwrap();
        let volume = model.volumes.values().next().unwrap().clone();
        let reference = volume.spec.unwrap().claim_ref;
        (
            reference.map(|reference| reference.uid),
            volume.status.unwrap().phase.unwrap(),
            volume.metadata.annotations,
        )
    };
    let v = || volume("v").for_claim("c", "uid-c").in_phase("Bound");
    assert_eq!(
        end(v().noted(BOUND_BY_CONTROLLER, "yes")),
        (None, "Available".into(), None),
        "what a controller chose is free"
    );
    assert_eq!(end(v()), (Some(None), "Available".into(), None), "what a person reserved stays reserved");
}

#[test]
fn a_pair_costs_four_writes_and_a_fresh_volume_no_fifth() {
    let mut model = start().with_volume(volume("v").in_phase("Pending")).with_claim(claim());
    model.volume_pass("v").unwrap();
    assert_eq!(model.writes.len(), 0, "it is offered");
    model.settle();
    assert_eq!(model.writes.len(), 4, "{:?}", model.writes);
}

#[test]
fn a_volume_that_nobody_takes_in_time_is_shown_as_available() {
    let mut model = start().with_volume(volume("v").in_phase("Pending")).with_claim(claim());
    model.volume_pass("v").unwrap();
    model.now += jiff::SignedDuration::from_secs(6);
    model.volume_pass("v").unwrap();
    assert_eq!(model.writes, ["update persistentvolumes/status"]);
}

#[test]
fn a_volume_whose_claim_is_in_line_behind_others_is_not_shown_as_available() {
    let mut model = start().with_volume(volume("v").in_phase("Pending")).with_claim(claim());
    model.volume_pass("v").unwrap();
    let shown = |model: &mut Model, later: i64, others: bool| {
        model.now += jiff::SignedDuration::from_secs(later);
        if others {
            model.mind.desk.took(model.now);
        }
        model.volume_pass("v").unwrap();
        !model.writes.is_empty()
    };
    for _ in 0..9 {
        assert!(!shown(&mut model, 6, true), "others take theirs");
    }
    assert!(!shown(&mut model, 4, false), "others have just taken theirs");
    assert!(shown(&mut model, 2, true), "after a minute it is shown whatever others do");
}

#[test]
fn each_volume_is_offered_to_a_claim_of_its_own() {
    let mut model = start();
    for n in 0..5 {
        model.store_volume(volume(&format!("v{n}")).in_phase("Pending"));
        model.store_claim(named_claim(&format!("c{n}")));
    }
    model.see_all();
    let mut offered = std::collections::BTreeSet::new();
    for n in 0..5 {
        model.volume_pass(&format!("v{n}")).unwrap();
        offered.insert(model.mind.desk.offer_of(&format!("v{n}")).unwrap().claim);
    }
    assert_eq!(offered.len(), 5);
}

#[test]
fn offering_to_one_of_many_looks_at_one() {
    const MANY: usize = 10_000;
    let mut model = start();
    for n in 0..MANY {
        model.store_claim(named_claim(&format!("c{n:05}")));
    }
    model.see_all();
    let desk = &model.mind.desk;
    let sort = VolumeWords::sort(&volume("v"));
    for n in 0..MANY {
        let looks = std::cell::Cell::new(0);
        let found = desk.unoffered(&sort, volume("v").capacity(), |_| {
            looks.set(looks.get() + 1);
            true
        });
        let found = found.unwrap();
        assert_eq!((&found, looks.get()), (&ObjectKey::new("ns", format!("c{n:05}")), 1));
        desk.offer(&format!("v{n}"), Offer { claim: found, made: model.now });
    }
    assert_eq!(desk.unoffered(&sort, volume("v").capacity(), |_| true), None, "everybody was offered one");
    desk.forget("v17");
    let again = desk.unoffered(&sort, volume("v").capacity(), |_| true);
    assert_eq!(again, Some(ObjectKey::new("ns", "c00017")), "whose volume is gone can be offered another");
}

/// Whoever offered volumes keep waiting is asked of a fresh volume alone: every look at any other would go through all who wait.
#[test]
fn only_a_fresh_volume_looks_through_those_who_wait() {
    let check = |rule: &str, phase: &str, expected: bool| {
        let model = start().with_claim(claim()).with_volume(volume("v").in_phase(phase));
        let made = model.now;
        model.mind.desk.offer("w", Offer { claim: ObjectKey::new("ns", "c"), made });
        let world = model.volume_world("v");
        assert_eq!((world.taker, world.wanted), (None, expected), "{rule}");
    };
    check("fresh: it waits for a claim that is offered another", "Pending", true);
    check("shown as free already", "Available", false);
}
