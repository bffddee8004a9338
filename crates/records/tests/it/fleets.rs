//! Two fleets that share a bucket, each with an application of the same name.

use lifeboat_records::{Epoch, Error, FleetId, Found, Orphan, Profile, Stores};

use crate::fixture::{
    Two, all, as_ramen, bucket, by_manifest, deletion, group, group_record, hasty, one, pair, pairs, told,
    writing,
};
use crate::server::{Fault, Server};

fn fleet(name: &str) -> Option<FleetId> {
    Some(FleetId(name.into()))
}

fn shared(server: &Server, of: &str) -> Stores {
    Stores::new(vec![Profile::new("shared", bucket(server))], hasty()).of_fleet(fleet(of))
}

fn is_refused<T: std::fmt::Debug>(outcome: &Result<T, Error>, theirs: &str) {
    let Err(error @ Error::OtherFleet { fleet, .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(fleet.0, theirs);
    assert!(error.to_string().contains("holds records of VRG shop/orders of another fleet"), "{error}");
}

#[tokio::test]
async fn another_fleets_records_are_not_read_written_or_removed() {
    let (server, _) = one().await;
    let (ours, theirs) = (shared(&server, "ours"), shared(&server, "theirs"));
    all(&theirs.write(&writing(3, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
    let before = server.state.lock().unwrap().objects.clone();
    // The clusters have the same names; a lower, the same and a higher epoch make no difference.
    for epoch in [1, 3, 9] {
        let written = ours.write(&writing(epoch, "east", pair("a", "9Gi"))).await.unwrap();
        assert_eq!(written.generation, None);
        is_refused(&written.stores[0].outcome, "theirs");
        is_refused(&ours.delete(&deletion(epoch, "east")).await.unwrap()[0].outcome, "theirs");
        let orphan = Orphan {
            group: group(),
            epoch: Epoch(epoch),
            cluster: lifeboat_records::ClusterId("east".into()),
            uid: "u".into(),
            time: jiff::Timestamp::UNIX_EPOCH,
            volumes: [].into(),
        };
        is_refused(&ours.orphan(&orphan).await[0].1, "theirs");
    }
    let search = ours.newest(&group()).await;
    assert_eq!((search.found.clone(), search.held.clone()), (Found::Empty, None), "theirs tells us nothing");
    assert!(!search.is_certainly_new());
    is_refused(&search.stores[0].answer, "theirs");
    assert_eq!(server.state.lock().unwrap().objects, before, "not one byte differs");
    assert_eq!(told(by_manifest(&theirs.newest(&group()).await).0), ["a=1Gi", "b=1Gi"]);
    // Whoever ends protection frees the name.
    theirs.delete(&deletion(3, "east")).await.unwrap().remove(0).outcome.unwrap();
    all(&ours.write(&writing(4, "east", pair("a", "9Gi"))).await.unwrap());
    is_refused(&theirs.write(&writing(5, "east", vec![])).await.unwrap().stores[0].outcome, "ours");
}

#[tokio::test]
async fn the_other_stores_go_on() {
    let two = Two::start().await;
    let theirs = two.only("west").of_fleet(fleet("theirs"));
    all(&theirs.write(&writing(7, "east", pair("x", "1Gi"))).await.unwrap());
    let before = two.west.state.lock().unwrap().objects.clone();
    let ours = two.stores.clone().of_fleet(fleet("ours"));
    let written = ours.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap();
    assert!(written.stores[0].outcome.is_ok(), "{written:?}");
    is_refused(&written.stores[1].outcome, "theirs");
    let search = ours.newest(&group()).await;
    assert_eq!(told(by_manifest(&search).0), ["a=1Gi"]);
    assert_eq!(search.held.unwrap().epoch, Epoch(1));
    let cleared = ours.delete(&deletion(1, "east")).await.unwrap();
    assert!(cleared[0].outcome.is_ok(), "{cleared:?}");
    assert_eq!(two.west.state.lock().unwrap().objects, before);
}

#[tokio::test]
async fn of_two_fleets_that_begin_at_once_one_writes_and_the_other_is_told() {
    for round in 0..8 {
        let (server, _) = one().await;
        let (ours, theirs) = (shared(&server, "ours"), shared(&server, "theirs"));
        // Different epochs: they do not meet at a claim.
        let (a, b) = (writing(1, "east", pair("a", "1Gi")), writing(2, "east", pair("a", "2Gi")));
        let (a, b) = tokio::join!(ours.write(&a), theirs.write(&b));
        let outcomes = [a.unwrap(), b.unwrap()].map(|written| written.stores[0].outcome.clone());
        let (winner, size) = match &outcomes {
            [Ok(_), lost] => {
                is_refused(lost, "ours");
                (&ours, "1Gi")
            }
            [lost, Ok(_)] => {
                is_refused(lost, "theirs");
                (&theirs, "2Gi")
            }
            other => panic!("round {round}: {other:?}"),
        };
        assert_eq!(told(by_manifest(&winner.newest(&group()).await).0), [format!("a={size}")]);
        let state = server.state.lock().unwrap();
        let expected = pair("a", size);
        assert_eq!(&state.objects["shop/orders/v1.PersistentVolumeClaim/shop/a"], expected[1].packed());
    }
}

#[tokio::test]
async fn records_without_a_fleet_are_taken_over_with_the_first_write() {
    let (server, plain) = one().await;
    let (ours, theirs) = (shared(&server, "ours"), shared(&server, "theirs"));
    // An earlier version, or a group without a hub, wrote it; both fleets may read it.
    all(&plain.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
    for stores in [&ours, &theirs] {
        assert_eq!(told(by_manifest(&stores.newest(&group()).await).0), ["a=1Gi"]);
    }
    all(&ours.write(&writing(1, "east", vec![])).await.unwrap());
    is_refused(&theirs.newest(&group()).await.stores[0].answer, "ours");
    assert_eq!(told(by_manifest(&ours.newest(&group()).await).0), ["a=1Gi"], "what it had is still there");
    // Who knows no fleets goes on as before, and what it writes stays ours.
    all(&plain.write(&writing(1, "east", pair("b", "1Gi"))).await.unwrap());
    is_refused(&theirs.newest(&group()).await.stores[0].answer, "ours");
    assert_eq!(told(by_manifest(&plain.newest(&group()).await).0), ["a=1Gi", "b=1Gi"]);
}

#[tokio::test]
async fn what_ramen_left_is_taken_over_too() {
    let (server, _) = one().await;
    as_ramen(&server, &[pair("a", "1Gi"), vec![group_record("2030-01-01T00:00:00Z")]].concat());
    let ours = shared(&server, "ours");
    assert!(matches!(ours.newest(&group()).await.found, Found::Ramen { .. }));
    all(&ours.write(&writing(1, "east", vec![])).await.unwrap());
    assert_eq!(told(by_manifest(&ours.newest(&group()).await).0), ["a=1Gi"]);
    is_refused(&shared(&server, "theirs").newest(&group()).await.stores[0].answer, "ours");
}

#[tokio::test]
async fn a_mark_that_is_lost_or_damaged_is_made_again_by_its_own_fleet_only() {
    let (server, _) = one().await;
    let (ours, theirs) = (shared(&server, "ours"), shared(&server, "theirs"));
    all(&ours.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
    for damage in [None, Some("rotten")] {
        {
            let objects = &mut server.state.lock().unwrap().objects;
            let mark = objects.remove("shop/orders/lifeboat/v1/fleet");
            assert!(mark.is_some());
            if let Some(rotten) = damage {
                objects.insert("shop/orders/lifeboat/v1/fleet".into(), rotten.into());
            }
        }
        is_refused(
            &theirs.write(&writing(2, "east", pair("a", "2Gi"))).await.unwrap().stores[0].outcome,
            "ours",
        );
        all(&ours.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
        is_refused(&theirs.newest(&group()).await.stores[0].answer, "ours");
    }
}

#[tokio::test]
async fn a_mark_that_cannot_be_written_leaves_the_store_as_it_was() {
    let (server, _) = one().await;
    server.plan("PUT", "lifeboat/v1/fleet", Fault::Status(403, "AccessDenied"), 1000);
    let written = shared(&server, "ours").write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap();
    assert!(written.stores[0].outcome.is_err());
    assert!(server.keys().is_empty(), "{:?}", server.keys());
}
