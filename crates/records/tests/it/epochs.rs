//! Lower epochs are refused, and of two with the same one is.

use lifeboat_records::{Check, Epoch, Error, Profile, Settings, Stores, Writing, Written};

use crate::fixture::{
    Two, all, bucket, by_manifest, deletion, group, hasty, ids, one, pair, pairs, told, writing,
};

#[tokio::test]
async fn d06_a_returning_primary_overwrites_nothing() {
    let two = Two::start().await;
    all(&two.stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
    all(&two.stores.write(&writing(2, "west", pair("a", "2Gi"))).await.unwrap());
    let before = two.east.state.lock().unwrap().objects.clone();
    // East is back and does not know: with records, without, with a removal.
    for change in [
        writing(1, "east", pair("a", "9Gi")),
        writing(1, "east", vec![]),
        Writing { removed: ids("b"), ..writing(1, "east", vec![]) },
        Writing { check: Check::ReadBack, ..writing(1, "east", pair("c", "1Gi")) },
    ] {
        let written = two.stores.write(&change).await.unwrap();
        assert_eq!(written.generation, None);
        for told in written.stores {
            let Err(Error::Refused { held_by, epoch, mine, .. }) = told.outcome else { panic!("{told:?}") };
            assert_eq!((held_by.as_str(), epoch, mine), ("west", Epoch(2), Epoch(1)));
        }
    }
    for cleared in two.stores.delete(&deletion(1, "east")).await.unwrap() {
        assert!(matches!(cleared.outcome, Err(Error::Refused { .. })), "{cleared:?}");
    }
    assert_eq!(two.east.state.lock().unwrap().objects, before, "not one byte differs");
    assert_eq!(told(by_manifest(&two.stores.newest(&group()).await).0), ["a=2Gi", "b=1Gi"]);
}

#[tokio::test]
async fn a_higher_epoch_in_one_store_refuses_in_all() {
    let two = Two::start().await;
    all(&two.stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
    // West could reach its own store only.
    all(&two.only("west").write(&writing(2, "west", pair("a", "2Gi"))).await.unwrap());
    let before = two.east.keys();
    let written = two.stores.write(&writing(1, "east", pair("b", "1Gi"))).await.unwrap();
    assert!(
        written.stores.iter().all(|told| matches!(told.outcome, Err(Error::Refused { .. }))),
        "{written:?}"
    );
    assert_eq!(two.east.keys(), before);
    assert_eq!(
        told(by_manifest(&two.stores.newest(&group()).await).0),
        ["a=2Gi"],
        "the epoch goes before all"
    );
}

#[tokio::test]
async fn s03_of_two_clusters_with_one_epoch_one_writes_and_the_other_is_told() {
    for round in 0..8 {
        let (server, _) = one().await;
        let stores = || Stores::new(vec![Profile::new("shared", bucket(&server))], hasty());
        let (one, two) = (stores(), stores());
        let (east, west) = (writing(1, "east", pair("a", "1Gi")), writing(1, "west", pair("a", "2Gi")));
        let (one, two) = tokio::join!(one.write(&east), two.write(&west));
        let outcomes = [one.unwrap(), two.unwrap()].map(|written| written.stores[0].outcome.clone());
        let winner = match &outcomes {
            [Ok(_), Err(Error::Refused { held_by, .. })] => (held_by.as_str(), "a=1Gi", "east"),
            [Err(Error::Refused { held_by, .. }), Ok(_)] => (held_by.as_str(), "a=2Gi", "west"),
            other => panic!("round {round}: {other:?}"),
        };
        assert_eq!(winner.0, winner.2);
        let search = stores().newest(&group()).await;
        assert_eq!(told(by_manifest(&search).0), [winner.1], "round {round}");
        assert_eq!(search.held.unwrap().by.as_deref(), Some(winner.2));
        // The loser has not touched what Ramen would read either.
        let state = server.state.lock().unwrap();
        let expected = pair("a", winner.1.trim_start_matches("a="));
        assert_eq!(&state.objects["shop/orders/v1.PersistentVolumeClaim/shop/a"], expected[1].packed());
    }
}

#[tokio::test]
async fn one_cluster_with_two_processes_goes_on() {
    let (_server, stores) = one().await;
    let other = stores.clone();
    let (first, second) = (writing(1, "east", pair("a", "1Gi")), writing(1, "east", pair("b", "1Gi")));
    let (first, second) = tokio::join!(stores.write(&first), other.write(&second));
    // Both are the holder; one of them may be told that its generation was taken.
    let both = [first.unwrap(), second.unwrap()];
    assert!(both.iter().any(Written::everywhere), "{both:?}");
    all(&stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
    assert_eq!(told(by_manifest(&stores.newest(&group()).await).0), ["a=1Gi", "b=1Gi"]);
}

#[tokio::test]
async fn an_epoch_without_a_manifest_is_seen() {
    let (server, stores) = one().await;
    // The new primary died between its claim and its first manifest.
    server.plan("PUT", "claim", crate::server::Fault::Pass, 1);
    server.plan("PUT", "/blobs/", crate::server::Fault::Status(403, "AccessDenied"), 1000);
    assert_eq!(stores.write(&writing(7, "west", pair("a", "1Gi"))).await.unwrap().kept(), 0);
    let search = stores.newest(&group()).await;
    assert_eq!(
        search.found,
        lifeboat_records::Found::Unreadable,
        "somebody was here: this is no empty store"
    );
    let held = search.held.unwrap();
    assert_eq!((held.epoch, held.by.as_deref()), (Epoch(7), Some("west")));
    let late = stores.write(&writing(6, "east", pair("a", "1Gi"))).await.unwrap();
    assert!(matches!(late.stores[0].outcome, Err(Error::Refused { epoch: Epoch(7), .. })), "{late:?}");
}

#[tokio::test]
async fn d06_a_primary_that_loses_its_role_while_it_writes_stops_before_ramens_keys() {
    let (server, _) = one().await;
    let slow = Settings { at_once: 1, ..hasty() };
    let stores = |settings| Stores::new(vec![Profile::new("shared", bucket(&server))], settings);
    all(&stores(hasty()).write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
    let contents = || server.keys().iter().filter(|key| key.contains("/blobs/")).count();
    let before = contents();
    let names: Vec<String> = (0..60).map(|index| format!("c{index:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (old, new) = (stores(slow), stores(hasty()));
    let late = writing(1, "east", [pair("a", "9Gi"), pairs(&names, "1Gi")].concat());
    let takeover = async {
        // The old primary has looked, and is in the middle of its first writes.
        while contents() == before {
            tokio::task::yield_now().await;
        }
        new.write(&writing(2, "west", pair("a", "2Gi"))).await.unwrap()
    };
    let (old, new) = tokio::join!(old.write(&late), takeover);
    all(&new);
    let old = old.unwrap().stores.remove(0).outcome;
    let Err(Error::Refused { held_by, epoch: Epoch(2), .. }) = &old else { panic!("{old:?}") };
    assert_eq!(held_by, "west");
    let ramens = server.keys().into_iter().filter(|key| key.contains("v1.Persistent")).count();
    assert_eq!(ramens, 2, "none of the old primary's keys");
    let expected = pair("a", "2Gi");
    let state = server.state.lock().unwrap().objects.clone();
    assert_eq!(&state["shop/orders/v1.PersistentVolumeClaim/shop/a"], expected[1].packed());
    assert_eq!(told(by_manifest(&stores(hasty()).newest(&group()).await).0), ["a=2Gi"]);
}
