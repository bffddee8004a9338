//! Stores that are slow, down, refusing, empty, lying or damaged.

use std::time::{Duration, Instant};

use bytes::Bytes;
use lifeboat_records::{
    Check, Conditions, Error, Fault as Damage, Found, Profile, Settings, Stores, Writing,
};

use crate::fixture::{
    Two, all, as_ramen, bucket, by_manifest, changes, group, group_record, hasty, one, pair, pairs, told,
    writing,
};
use crate::server::{Fault, Server};

/// Every way in which a store can be of no use.
fn useless() -> Vec<Fault> {
    vec![
        Fault::Status(403, "AccessDenied"),
        Fault::Status(503, "SlowDown"),
        Fault::Status(500, "InternalError"),
        Fault::Status(404, "NoSuchBucket"),
        Fault::Cut,
        Fault::Silence,
    ]
}

fn ruin(server: &Server, fault: &Fault) {
    for method in ["GET", "HEAD", "PUT", "POST", "DELETE"] {
        server.plan(method, "/", fault.clone(), 100_000);
    }
}

#[tokio::test]
async fn one_bad_store_keeps_no_other_from_being_read_or_written() {
    for fault in useless() {
        let two = Two::start().await;
        all(&two.stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
        ruin(&two.east, &fault);
        let search = two.stores.newest(&group()).await;
        assert_eq!(told(by_manifest(&search).0), ["a=1Gi", "b=1Gi"], "{fault:?}");
        assert!(search.stores[0].answer.is_err() && search.stores[1].answer.is_ok(), "{fault:?}");
        let written = two.stores.write(&writing(1, "east", pair("a", "2Gi"))).await.unwrap();
        assert!(written.stores[0].outcome.is_err(), "{fault:?}");
        assert!(written.stores[1].outcome.as_ref().unwrap().changes > 0, "{fault:?}");
        assert!(!written.everywhere() && written.kept() == 1);
    }
}

#[tokio::test]
async fn a_store_that_stalls_in_the_middle_costs_one_deadline() {
    let names: Vec<String> = (0..50).map(|index| format!("c{index:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let two = Two::with(Settings { call: Duration::from_secs(4), at_once: 2, ..hasty() }).await;
    all(&two.stores.write(&writing(1, "east", pairs(&names, "1Gi"))).await.unwrap());
    two.east.plan("GET", "/blobs/", Fault::Silence, 100_000);
    let start = Instant::now();
    let search = two.stores.newest(&group()).await;
    assert_eq!(by_manifest(&search).0.len(), 100, "the other store has the same contents");
    // One deadline, not one for each of a hundred objects.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    two.east.state.lock().unwrap().plans.clear();
    two.east.plan("PUT", "/blobs/", Fault::Silence, 100_000);
    let start = Instant::now();
    let written = two.stores.write(&writing(1, "east", pairs(&names, "2Gi"))).await.unwrap();
    assert!(matches!(written.stores[0].outcome, Err(Error::OutOfTime { .. })), "{:?}", written.stores[0]);
    assert!(written.stores[1].outcome.is_ok());
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[tokio::test]
async fn s12_a_lost_write_is_told_and_never_called_kept() {
    // One of each kind of object is said to be written and is not, every time.
    for part in ["/blobs/", "v1.PersistentVolume/", "manifest-", "claim"] {
        let (server, stores) = one().await;
        server.plan("PUT", part, Fault::LoseWrite, 100_000);
        let written = stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap();
        assert!(written.stores[0].outcome.is_err(), "{part}: {written:?}");
        server.state.lock().unwrap().plans.clear();
        all(&stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
        assert_eq!(told(by_manifest(&stores.newest(&group()).await).0), ["a=1Gi", "b=1Gi"], "{part}");
    }
    // Lost once: it is noticed at once and written again.
    for part in ["/blobs/", "v1.PersistentVolumeClaim/"] {
        let (server, stores) = one().await;
        server.plan("PUT", part, Fault::LoseWrite, 1);
        all(&stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
        assert!(stores.newest(&group()).await.damage.is_empty(), "{part}");
    }
}

#[tokio::test]
async fn s12_reading_back_finds_and_repairs_what_a_list_cannot_show() {
    let (server, stores) = one().await;
    let change = writing(1, "east", pairs(&["a", "b"], "1Gi"));
    all(&stores.write(&change).await.unwrap());
    let whole = server.state.lock().unwrap().objects.clone();
    let hurt: Vec<String> = whole
        .keys()
        .filter(|key| key.contains("/blobs/") || key.contains("v1.Persistent"))
        .cloned()
        .collect();
    assert_eq!(hurt.len(), 8);
    for key in &hurt {
        let mut bytes = whole[key].to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        server.state.lock().unwrap().objects.insert(key.clone(), Bytes::from(bytes));
        assert_eq!(changes(&stores.write(&change).await.unwrap()), [0], "the length is the same: {key}");
        let check = Writing { check: Check::ReadBack, ..change.clone() };
        let written = stores.write(&check).await.unwrap();
        assert_eq!((changes(&written), all(&written)[0].read_back), (vec![1], true), "{key}");
        assert_eq!(server.state.lock().unwrap().objects, whole, "{key}");
    }
    // Where even that does not help, it is told.
    server.plan("GET", "/blobs/", Fault::Flip, 100_000);
    let check = Writing { check: Check::ReadBack, ..change };
    let written = stores.write(&check).await.unwrap();
    assert!(matches!(written.stores[0].outcome, Err(Error::Lost { .. })), "{written:?}");
}

#[tokio::test]
async fn damage_is_never_restored_and_the_next_best_is_taken() {
    // A turned bit on the way: the other store's copy is as good.
    let two = Two::start().await;
    all(&two.stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
    two.east.plan("GET", "/blobs/", Fault::Flip, 2);
    let search = two.stores.newest(&group()).await;
    assert_eq!(told(by_manifest(&search).0), ["a=1Gi", "b=1Gi"]);
    let damaged = |error: &Error| matches!(error, Error::Damaged { store, fault: Damage::Checksum, .. } if store == "east");
    assert_eq!(search.damage.iter().filter(|error| damaged(error)).count(), 2, "{:?}", search.damage);

    // At rest and with nobody who has it whole: the generation before.
    for part in ["/blobs/", "manifest-"] {
        let (server, stores) = one().await;
        all(&stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
        let before = server.state.lock().unwrap().objects.clone();
        all(&stores.write(&writing(1, "east", pair("a", "2Gi"))).await.unwrap());
        let newer: Vec<_> =
            server.keys().into_iter().filter(|key| key.contains(part) && !before.contains_key(key)).collect();
        let junk = Bytes::from_static(b"{\"damage\":true}");
        server.state.lock().unwrap().objects.insert(newer[0].clone(), junk.clone());
        // The same bytes lie under Ramen's keys: those go too.
        for key in server.keys().into_iter().filter(|key| key.contains("/v1.Persistent")) {
            server.state.lock().unwrap().objects.insert(key, junk.clone());
        }
        let search = stores.newest(&group()).await;
        assert_eq!(told(by_manifest(&search).0), ["a=1Gi"], "{part}");
        assert!(!search.passed_over.is_empty() && !search.damage.is_empty(), "{part}");
        assert!(
            search.damage.iter().any(|error| error.to_string().contains(&newer[0])),
            "{:?}",
            search.damage
        );
    }
}

#[tokio::test]
async fn a_removal_that_comes_late_takes_no_content_from_a_newer_manifest() {
    let (server, stores) = one().await;
    all(&stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
    let first: Vec<String> = server.keys().into_iter().filter(|key| key.contains("/blobs/")).collect();
    // Swept after five generations, with removals whose answer nobody waits for any more.
    for size in 2..=7 {
        all(&stores.write(&writing(1, "east", pair("a", &format!("{size}Gi")))).await.unwrap());
    }
    assert!(!first.iter().any(|key| server.keys().contains(key)));
    // The claim is as it was: the same contents have the same keys. Then the store carries out the old removals.
    all(&stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
    for key in &first {
        assert!(server.state.lock().unwrap().objects.remove(key).is_some(), "{key}");
    }
    let search = stores.newest(&group()).await;
    assert_eq!(told(by_manifest(&search).0), ["a=1Gi", "b=1Gi"]);
    assert!(
        search.passed_over.is_empty() && !search.damage.is_empty(),
        "found whole, and the damage is told"
    );
    // A change does not begin from an older generation, and puts back what was taken.
    all(&stores.write(&writing(1, "east", pair("c", "1Gi"))).await.unwrap());
    let search = stores.newest(&group()).await;
    assert_eq!(told(by_manifest(&search).0), ["a=1Gi", "b=1Gi", "c=1Gi"]);
    assert!(search.damage.is_empty(), "{:?}", search.damage);
}

#[tokio::test]
async fn a_list_that_leaves_out_the_newest_is_found_out() {
    let (server, stores) = one().await;
    for size in 1..=3 {
        all(&stores.write(&writing(1, "east", pair("a", &format!("{size}Gi")))).await.unwrap());
    }
    let search = stores.newest(&group()).await;
    let newest = by_manifest(&search).2;
    // Only the first object of the group is listed, again and again.
    server.state.lock().unwrap().page = 9;
    server.plan("GET", "list-type", Fault::ShortList, 100_000);
    let search = stores.newest(&group()).await;
    assert_eq!((told(by_manifest(&search).0), by_manifest(&search).2), (vec!["a=3Gi".to_owned()], newest));
}

#[tokio::test]
async fn a_short_list_of_ramens_records_is_no_whole_set() {
    let (server, stores) = one().await;
    as_ramen(&server, &pairs(&["a", "b", "c"], "1Gi"));
    server.state.lock().unwrap().page = 4;
    server.plan("GET", "list-type", Fault::ShortList, 100_000);
    let search = stores.newest(&group()).await;
    assert_eq!(search.found, Found::Unreadable);
    assert_eq!(search.flaws[0].1.to_string(), "there are 3 volumes and 1 claims");
}

#[tokio::test]
async fn one_hostile_record_stops_no_other_key_and_is_named() {
    let two = Two::start().await;
    let mut records = pairs(&["a", "b"], "1Gi");
    records.push(group_record("2026-01-02T03:04:05Z"));
    for server in [&two.east, &two.west] {
        as_ramen(server, &records);
    }
    let bomb = {
        use std::io::Write;
        let mut encoder = flate2_bomb();
        encoder.write_all(&vec![b' '; 40 << 20]).unwrap();
        Bytes::from(encoder.finish().unwrap())
    };
    let key = "shop/orders/v1.PersistentVolume/pv-a";
    for hostile in [Bytes::new(), Bytes::from_static(b"\x1f\x8bjunk"), bomb, records[2].packed().clone()] {
        two.east.state.lock().unwrap().objects.insert(key.to_owned(), hostile);
        let search = two.stores.newest(&group()).await;
        let Found::Ramen { store, records } = &search.found else { panic!("{search:?}") };
        assert_eq!((store.as_str(), records.len()), ("west", 5));
        assert_eq!(search.damage.len(), 1, "{:?}", search.damage);
        assert!(search.damage[0].to_string().contains(key), "{}", search.damage[0]);
    }
}

fn flate2_bomb() -> flate2::write::GzEncoder<Vec<u8>> {
    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best())
}

#[tokio::test]
async fn a_store_without_conditional_writes_is_used_with_a_word_or_not_at_all() {
    let ways: [fn(&Server); 2] = [
        |server| server.plan("PUT", "/", Fault::IgnoreCondition, 100_000),
        // This one says so, for as long as it is asked for conditions.
        |server| server.plan("PUT", "probe", Fault::Status(501, "NotImplemented"), 100_000),
    ];
    for way in ways {
        let (server, stores) = one().await;
        way(&server);
        for size in ["1Gi", "2Gi"] {
            let written = stores.write(&writing(1, "east", pair("a", size))).await.unwrap();
            assert!(!all(&written)[0].fenced, "it must be told");
        }
        assert_eq!(told(by_manifest(&stores.newest(&group()).await).0), ["a=2Gi"]);
        // What was seen first still holds.
        let rival = stores.write(&writing(1, "west", pair("a", "3Gi"))).await.unwrap();
        assert!(matches!(rival.stores[0].outcome, Err(Error::Refused { .. })), "{rival:?}");

        let (server, _) = one().await;
        way(&server);
        let strict = Settings { conditions: Conditions::Required, ..hasty() };
        let stores = Stores::new(vec![Profile::new("east", bucket(&server))], strict);
        let written = stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap();
        assert!(matches!(written.stores[0].outcome, Err(Error::Unconditional { .. })), "{written:?}");
        assert!(server.keys().iter().all(|key| key.ends_with("/probe")), "{:?}", server.keys());
    }
}

#[tokio::test]
async fn a_full_store_and_new_credentials_are_told_as_such() {
    let (server, stores) = one().await;
    server.plan("PUT", "/blobs/", Fault::Status(507, "XMinioStorageFull"), 100_000);
    let written = stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap();
    let full =
        |error: &Error| matches!(error, Error::Store { error: lifeboat_store::Error::Full { .. }, .. });
    assert!(written.stores[0].outcome.as_ref().is_err_and(full), "{written:?}");
}

#[tokio::test]
async fn a_bucket_that_was_emptied_is_filled_again() {
    let two = Two::start().await;
    all(&two.stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
    two.east.state.lock().unwrap().objects.clear();
    all(&two.stores.write(&writing(1, "east", vec![])).await.unwrap());
    assert_eq!(told(by_manifest(&two.only("east").newest(&group()).await).0), ["a=1Gi", "b=1Gi"]);
}

#[tokio::test]
async fn a_damaged_claim_does_not_lock_its_holder_out() {
    let (server, stores) = one().await;
    all(&stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
    let claim = server.keys().into_iter().find(|key| key.ends_with("/claim")).unwrap();
    server.state.lock().unwrap().objects.insert(claim.clone(), Bytes::from_static(b"junk"));
    all(&stores.write(&writing(1, "east", pair("a", "2Gi"))).await.unwrap());
    let rival = stores.write(&writing(1, "west", pair("a", "3Gi"))).await.unwrap();
    assert!(matches!(rival.stores[0].outcome, Err(Error::Refused { .. })), "{rival:?}");
    // Where nothing else tells whose it is, nobody is let in, and the key is named.
    let (server, stores) = one().await;
    server.state.lock().unwrap().objects.insert(claim.clone(), Bytes::from_static(b"junk"));
    let written = stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap();
    let told = |error: &Error| matches!(error, Error::Damaged { key, .. } if *key == claim);
    assert!(written.stores[0].outcome.as_ref().is_err_and(told), "{written:?}");
    assert_eq!(server.keys().len(), 1);
}
