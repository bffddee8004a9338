//! Defects that are known from elsewhere, each with the behaviour that would show it.

use std::time::{Duration, Instant};

use lifeboat_records::{Check, Error, Found, Profile, Settings, Stores, Writing};

use crate::fixture::{
    Two, all, as_ramen, bucket, by_manifest, changes, group, group_record, hasty, one, pair, pairs, told,
    writing,
};
use crate::server::Fault;

#[tokio::test]
async fn d01_an_empty_first_store_does_not_hide_a_second_that_has_the_data() {
    let two = Two::start().await;
    all(&two.only("west").write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
    assert_eq!(told(by_manifest(&two.stores.newest(&group()).await).0), ["a=1Gi"]);
    // The same for what Ramen left.
    let two = Two::start().await;
    as_ramen(&two.west, &pair("a", "1Gi"));
    assert!(matches!(two.stores.newest(&group()).await.found, Found::Ramen { .. }));
}

#[tokio::test]
async fn d01_empty_says_who_was_asked_and_who_was_not() {
    let two = Two::start().await;
    let search = two.stores.newest(&group()).await;
    assert!(search.found == Found::Empty && search.is_certainly_new());
    two.west.plan("GET", "/", Fault::Status(403, "AccessDenied"), 1000);
    let search = two.stores.newest(&group()).await;
    assert_eq!(search.found, Found::Empty);
    assert!(!search.is_certainly_new() && !search.reached_all());
    assert!(search.stores[0].answer.is_ok() && search.stores[1].answer.is_err());
    assert!(!Stores::default().newest(&group()).await.is_certainly_new(), "nobody was asked");
    // A store that only has a capture of objects, or half a set, is not empty.
    let (server, stores) = one().await;
    let key = "shop/orders/kube-objects/0/velero/backups/x".to_owned();
    server.state.lock().unwrap().objects.insert(key, bytes::Bytes::new());
    assert_eq!(stores.newest(&group()).await.found, Found::Unreadable);
    let (server, stores) = one().await;
    as_ramen(&server, &pair("a", "1Gi")[..1]);
    assert_eq!(stores.newest(&group()).await.found, Found::Unreadable);
}

#[tokio::test]
async fn two_volumes_of_one_claim_are_an_error_that_names_both() {
    let (server, stores) = one().await;
    let mut records = pairs(&["a", "b"], "1Gi");
    as_ramen(&server, &records);
    let rival = serde_json::json!({"metadata": {"name": "pv-rival"},
        "spec": {"claimRef": {"namespace": "shop", "name": "a"}}});
    records = vec![lifeboat_records::Record::volume(&serde_json::from_value(rival).unwrap()).unwrap()];
    as_ramen(&server, &records);
    let search = stores.newest(&group()).await;
    assert_eq!(search.found, Found::Unreadable);
    let text = search.flaws[0].1.to_string();
    assert!(text.contains("pv-a") && text.contains("pv-rival") && text.contains("shop/a"), "{text}");
}

#[tokio::test]
async fn d12_a_dead_first_store_does_not_keep_a_new_claim_out_of_the_second() {
    let two = Two::start().await;
    all(&two.stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
    two.east.plan("PUT", "/", Fault::Status(500, "InternalError"), 100_000);
    let written = two.stores.write(&writing(1, "east", pair("b", "1Gi"))).await.unwrap();
    assert!(written.stores[0].outcome.is_err() && written.stores[1].outcome.is_ok(), "{written:?}");
    assert_eq!(told(by_manifest(&two.only("west").newest(&group()).await).0), ["a=1Gi", "b=1Gi"]);
}

#[tokio::test]
async fn d13_a_store_that_failed_is_not_called_protected_by_the_next_pass() {
    let two = Two::start().await;
    two.west.plan("PUT", "/", Fault::Status(403, "AccessDenied"), 100_000);
    let change = writing(1, "east", vec![group_record("2026-01-02T03:04:05Z")]);
    for _ in 0..2 {
        // Nothing changed between the passes; the second store still has nothing, and every pass says so.
        let written = two.stores.write(&change).await.unwrap();
        assert!(written.stores[0].outcome.is_ok() && written.stores[1].outcome.is_err(), "{written:?}");
        assert!(!written.everywhere());
    }
    two.west.state.lock().unwrap().plans.clear();
    let written = two.stores.write(&change).await.unwrap();
    assert_eq!(changes(&written)[0], 0);
    assert!(written.everywhere() && changes(&written)[1] > 0);
}

#[tokio::test]
async fn d14_a_profile_that_cannot_be_opened_is_neither_silent_nor_the_end_of_the_others() {
    let (server, _) = one().await;
    let stores = Stores::new(
        vec![
            Profile::unavailable("gone", "secret ramen-system/s3 not found"),
            Profile::new("east", bucket(&server)),
        ],
        hasty(),
    );
    let written = stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap();
    let Err(Error::Unavailable { store, why }) = &written.stores[0].outcome else { panic!("{written:?}") };
    assert_eq!((store.as_str(), why.as_str()), ("gone", "secret ramen-system/s3 not found"));
    assert!(written.stores[1].outcome.is_ok() && !written.everywhere());
    let search = stores.newest(&group()).await;
    assert!(search.stores[0].answer.is_err());
    assert_eq!(told(by_manifest(&search).0), ["a=1Gi"]);
    // No store at all is an error, never a loop over nothing.
    assert_eq!(Stores::default().write(&writing(1, "east", vec![])).await.unwrap_err(), Error::NoStores);
}

#[tokio::test]
async fn d15_errors_keep_their_cause_and_a_brown_out_costs_one_deadline_for_all_claims() {
    let two = Two::with(Settings { list: Duration::from_secs(2), ..hasty() }).await;
    two.east.plan("GET", "/", Fault::Status(403, "AccessDenied"), 1000);
    let written = two.stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap();
    let denied = |error: &Error| {
        matches!(error, Error::Store { error: lifeboat_store::Error::Denied { .. }, .. })
            && !error.is_transient()
    };
    assert!(written.stores[0].outcome.as_ref().is_err_and(denied), "{written:?}");
    two.east.state.lock().unwrap().plans.clear();
    two.east.plan("GET", "/", Fault::Silence, 100_000);
    let names: Vec<String> = (0..100).map(|index| format!("c{index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let start = Instant::now();
    let written = two.stores.write(&writing(1, "east", pairs(&names, "1Gi"))).await.unwrap();
    let late = |error: &Error| matches!(error, Error::OutOfTime { .. }) && error.is_transient();
    assert!(written.stores[0].outcome.as_ref().is_err_and(late), "{:?}", written.stores[0]);
    assert!(written.stores[1].outcome.is_ok(), "{:?}", written.stores[1]);
    // A hundred claims with a deadline each would take minutes.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[tokio::test]
async fn d16_the_groups_record_is_the_one_that_was_given_last() {
    let (_server, stores) = one().await;
    for time in ["2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z"] {
        let change = Writing { check: Check::ReadBack, ..writing(1, "east", vec![group_record(time)]) };
        all(&stores.write(&change).await.unwrap());
        let search = stores.newest(&group()).await;
        let found = lifeboat_records::group(by_manifest(&search).0).unwrap();
        let found = found.status.as_ref().unwrap().last_update_time.as_ref().unwrap();
        assert_eq!(found.0.to_string(), time);
    }
}

#[tokio::test]
async fn d23_the_newest_store_is_taken_and_not_the_first() {
    // By manifests.
    let two = Two::start().await;
    all(&two.stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
    all(&two.only("west").write(&writing(1, "east", pair("a", "2Gi"))).await.unwrap());
    assert_eq!(told(by_manifest(&two.stores.newest(&group()).await).0), ["a=2Gi"]);
    // By what Ramen writes about its group.
    for (east, west, expected) in [
        ("2026-01-02T03:04:05Z", "2026-02-02T03:04:05Z", "west"),
        ("2026-03-02T03:04:05Z", "2026-02-02T03:04:05Z", "east"),
    ] {
        let two = Two::start().await;
        as_ramen(&two.east, &[pair("a", "1Gi"), vec![group_record(east)]].concat());
        as_ramen(&two.west, &[pair("a", "2Gi"), vec![group_record(west)]].concat());
        let search = two.stores.newest(&group()).await;
        let Found::Ramen { store, .. } = search.found else { panic!("{search:?}") };
        assert_eq!(store, expected);
    }
    // A manifest goes before anything without one, wherever it lies.
    let two = Two::start().await;
    as_ramen(&two.east, &[pair("a", "9Gi"), vec![group_record("2026-03-02T03:04:05Z")]].concat());
    all(&two.only("west").write(&writing(1, "east", pair("a", "2Gi"))).await.unwrap());
    assert_eq!(told(by_manifest(&two.stores.newest(&group()).await).0), ["a=2Gi"]);
}
