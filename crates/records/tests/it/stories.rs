//! What people rely on, told in full.

use lifeboat_records::{Check, Error, Found, Generation, Profile, RecordId, Settings, Stores, Writing};

use crate::fixture::{
    Two, all, as_ramen, by_manifest, changes, folder, group, group_record, hasty, ids, one, pair, pairs,
    told, writing,
};
use crate::server::{Fault, Server};

async fn a_life(stores: Stores) {
    let search = stores.newest(&group()).await;
    assert_eq!(search.found, Found::Empty);
    assert!(search.is_certainly_new());

    let mut records = pairs(&["a", "b"], "1Gi");
    records.push(group_record("2026-01-02T03:04:05Z"));
    let first = stores.write(&writing(1, "east", records)).await.unwrap();
    assert!(first.everywhere(), "{first:?}");
    let search = stores.newest(&group()).await;
    let (found, _, generation) = by_manifest(&search);
    assert_eq!(told(found), ["a=1Gi", "b=1Gi"]);
    assert_eq!(Some(generation), first.generation);
    assert!(lifeboat_records::group(found).is_some());

    // A resize, a new claim, one that goes: each is a generation; what is not named stays.
    let resized = stores.write(&writing(1, "east", pair("a", "2Gi"))).await.unwrap();
    assert!(resized.generation > first.generation);
    all(&stores.write(&writing(1, "east", pair("c", "1Gi"))).await.unwrap());
    let gone = Writing { removed: ids("b"), ..writing(1, "east", vec![]) };
    all(&stores.write(&gone).await.unwrap());
    let search = stores.newest(&group()).await;
    assert_eq!(told(by_manifest(&search).0), ["a=2Gi", "c=1Gi"]);

    // Nothing changed: nothing is written, whether it is looked at or read back.
    for check in [Check::Written, Check::ReadBack] {
        let again = Writing { check, ..writing(1, "east", pair("a", "2Gi")) };
        let again = stores.write(&again).await.unwrap();
        assert_eq!(changes(&again), vec![0; again.stores.len()], "{check:?}");
        assert!(
            all(&again).iter().all(|kept| kept.fenced && kept.foreign.is_empty() && kept.sweep.is_none())
        );
    }
}

#[tokio::test]
async fn a_group_lives_in_a_folder() {
    let path = tempfile::tempdir().unwrap();
    a_life(folder(path.path())).await;
}

#[tokio::test]
async fn a_group_lives_in_a_bucket() {
    let (server, stores) = one().await;
    a_life(stores).await;
    let ramens: Vec<_> = server.keys().into_iter().filter(|key| !key.contains("/lifeboat/")).collect();
    let expected = [
        "shop/orders/v1.PersistentVolume/pv-a",
        "shop/orders/v1.PersistentVolume/pv-c",
        "shop/orders/v1.PersistentVolumeClaim/shop/a",
        "shop/orders/v1.PersistentVolumeClaim/shop/c",
        "shop/orders/v1alpha1.VolumeReplicationGroup/a",
    ];
    assert_eq!(ramens, expected, "Ramen sees the same set");
}

#[tokio::test]
async fn a_group_lives_in_two_buckets_with_small_pages() {
    let two = Two::start().await;
    for server in [&two.east, &two.west] {
        server.state.lock().unwrap().page = 2;
    }
    a_life(two.stores.clone()).await;
    let manifests = |server: &Server| {
        server.keys().into_iter().filter(|key| key.contains("/ledger/")).collect::<Vec<_>>()
    };
    assert_eq!(manifests(&two.east), manifests(&two.west), "the same generations lie in both");
}

#[tokio::test]
async fn steady_state_writes_nothing() {
    let two = Two::start().await;
    let change = writing(1, "east", pairs(&["a", "b", "c"], "1Gi"));
    all(&two.stores.write(&change).await.unwrap());
    let before = (two.east.keys(), two.west.keys());
    // Any write would fail, so it would be told.
    for server in [&two.east, &two.west] {
        server.plan("PUT", "/", Fault::Status(403, "AccessDenied"), 1000);
        server.plan("DELETE", "/", Fault::Status(403, "AccessDenied"), 1000);
    }
    // A new process remembers nothing and still writes nothing.
    for check in [Check::Written, Check::ReadBack] {
        let again = two.stores.clone().write(&Writing { check, ..change.clone() }).await.unwrap();
        assert_eq!(changes(&again), [0, 0]);
    }
    assert_eq!((two.east.keys(), two.west.keys()), before);
}

#[tokio::test]
async fn five_hundred_claims_cost_a_few_requests_when_nothing_changed() {
    let (server, stores) = one().await;
    let names: Vec<String> = (0..500).map(|index| format!("c{index:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let change = writing(1, "east", pairs(&names, "1Gi"));
    let requests = || server.state.lock().unwrap().requests;
    all(&stores.write(&change).await.unwrap());
    // Each record is written twice and read back twice, and a constant beside it.
    assert!(requests() < 4 * 1000 + 40, "{}", requests());
    let before = requests();
    assert_eq!(changes(&stores.write(&change).await.unwrap()), [0]);
    assert!(requests() - before < 20, "{}", requests() - before);
    // One that changes costs one.
    let before = requests();
    assert_eq!(changes(&stores.write(&writing(1, "east", pair("c007", "2Gi"))).await.unwrap()), [5]);
    assert!(requests() - before < 40, "{}", requests() - before);
}

#[tokio::test]
async fn a_claim_that_comes_costs_the_same_however_many_there_are() {
    let (server, stores) = one().await;
    let requests = || server.state.lock().unwrap().requests;
    let mut costs = Vec::new();
    for index in 0..60 {
        let before = requests();
        let change = writing(1, "east", pair(&format!("c{index:03}"), "1Gi"));
        assert_eq!(changes(&stores.write(&change).await.unwrap()), [5]);
        costs.push(requests() - before);
    }
    // Two records are written and read back in two places each; the rest is the same for each change. The first claims the epoch.
    let (few, many) = (costs[10], costs[59]);
    assert!(many <= few && many < 40, "{costs:?}");
}

#[tokio::test]
async fn what_is_written_is_read_back_though_the_list_looks_right() {
    let at = "v1alpha1.VolumeReplicationGroup/a";
    for times in [1, 100_000] {
        let (server, stores) = one().await;
        let old = group_record("2026-01-02T03:04:05Z");
        all(&stores.write(&writing(1, "east", vec![old.clone()])).await.unwrap());
        // A version of the same length, so that only its content tells.
        let mut minutes = (0..60).map(|minute| group_record(&format!("2026-01-02T03:{minute:02}:06Z")));
        let new = minutes.find(|new| new.packed().len() == old.packed().len()).unwrap();
        server.plan("PUT", at, Fault::LoseWrite, times);
        let written = stores.write(&writing(1, "east", vec![new.clone()])).await.unwrap();
        let lost = matches!(written.stores[0].outcome, Err(Error::Lost { .. }));
        assert_eq!(lost, times > 1, "{written:?}");
        let there = server.state.lock().unwrap().objects[&format!("shop/orders/{at}")].clone();
        assert_eq!(there == *new.packed(), times == 1, "lost once, it is written again");
    }
}

#[tokio::test]
async fn a_store_that_was_out_catches_up_with_the_same_generation() {
    let two = Two::start().await;
    all(&two.stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
    let only_west = two.only("west").write(&writing(1, "east", pair("a", "2Gi"))).await.unwrap();
    // Only "a" is named again: "b" reaches nobody by hand, and "a" is carried over from west.
    let both = two.stores.write(&writing(1, "east", vec![])).await.unwrap();
    assert_eq!(both.generation, only_west.generation);
    assert_eq!(changes(&both)[1], 0);
    assert!(changes(&both)[0] > 0);
    let search = two.only("east").newest(&group()).await;
    assert_eq!(told(by_manifest(&search).0), ["a=2Gi", "b=1Gi"]);
    assert_eq!(changes(&two.stores.write(&writing(1, "east", vec![])).await.unwrap()), [0, 0]);
}

#[tokio::test]
async fn a_generation_that_cannot_be_seen_is_passed_if_it_is_remembered() {
    let two = Two::start().await;
    all(&two.stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
    let newer = two.only("west").write(&writing(1, "east", pair("a", "2Gi"))).await.unwrap();
    // West is out of reach; back to the old size. East has that already, but not as the newest.
    let back = Writing { after: newer.generation, ..writing(1, "east", pair("a", "1Gi")) };
    let back = two.only("east").write(&back).await.unwrap();
    assert!(back.generation > newer.generation);
    let search = two.stores.newest(&group()).await;
    assert_eq!(told(by_manifest(&search).0), ["a=1Gi"]);
    let mut clock = writing(1, "east", pair("a", "3Gi"));
    clock.time = "2026-01-02T03:04:05Z".parse().unwrap();
    let written = two.stores.write(&clock).await.unwrap();
    assert!(
        written.generation > Some(Generation(1_700_000_000_000)),
        "the clock helps where nothing is remembered"
    );
}

#[tokio::test]
async fn old_generations_are_swept_and_the_newest_stays_whole() {
    let settings = Settings { keep: 3, ..hasty() };
    let two = Two::with(settings).await;
    for size in 1..=8 {
        all(&two.stores.write(&writing(1, "east", pair("a", &format!("{size}Gi")))).await.unwrap());
    }
    let count = |part: &str| two.east.keys().iter().filter(|key| key.contains(part)).count();
    assert_eq!(count("/manifest-"), 3);
    assert_eq!(count("/blobs/"), 6, "two records in each of three generations");
    assert_eq!(told(by_manifest(&two.stores.newest(&group()).await).0), ["a=8Gi"]);
    // The kept ones are whole as well: the newest may be damaged tomorrow.
    for _ in 0..2 {
        let newest = two.east.keys().into_iter().rfind(|key| key.contains("/manifest-")).unwrap();
        for server in [&two.east, &two.west] {
            server.state.lock().unwrap().objects.remove(&newest);
        }
    }
    assert_eq!(told(by_manifest(&two.stores.newest(&group()).await).0), ["a=6Gi"]);
}

#[tokio::test]
async fn what_ramen_left_is_taken_over_whole() {
    let (server, stores) = one().await;
    as_ramen(&server, &pairs(&["a", "b"], "1Gi"));
    // Older releases named claims without their namespace.
    let old = pair("c", "1Gi");
    as_ramen(&server, &old[..1]);
    server
        .state
        .lock()
        .unwrap()
        .objects
        .insert("shop/orders/v1.PersistentVolumeClaim/c".into(), old[1].packed().clone());
    let search = stores.newest(&group()).await;
    let Found::Ramen { records, store } = &search.found else { panic!("{search:?}") };
    assert_eq!(
        (told(records), store.as_str()),
        (vec!["a=1Gi".into(), "b=1Gi".into(), "c=1Gi".into()], "east")
    );

    // The first manifest names all of it, though only one claim was ready to be written.
    let written = stores.write(&writing(1, "east", pair("a", "2Gi"))).await.unwrap();
    assert!(all(&written)[0].foreign.is_empty());
    assert_eq!(told(by_manifest(&stores.newest(&group()).await).0), ["a=2Gi", "b=1Gi", "c=1Gi"]);
    let claims: Vec<_> = server.keys().into_iter().filter(|key| key.contains("Claim/")).collect();
    assert_eq!(claims.len(), 3, "no claim lies under two keys: {claims:?}");
}

#[tokio::test]
async fn what_others_put_there_is_left_alone_and_told() {
    let (server, stores) = one().await;
    all(&stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
    as_ramen(&server, &pair("stranger", "1Gi"));
    let written = stores.write(&writing(1, "east", pair("a", "2Gi"))).await.unwrap();
    assert_eq!(
        all(&written)[0].foreign,
        ["v1.PersistentVolume/pv-stranger", "v1.PersistentVolumeClaim/shop/stranger"]
    );
    assert!(server.keys().iter().any(|key| key.ends_with("pv-stranger")));
    assert_eq!(
        told(by_manifest(&stores.newest(&group()).await).0),
        ["a=2Gi"],
        "a manifest goes before strangers"
    );
}

#[tokio::test]
async fn a_change_that_contradicts_itself_is_refused_as_a_whole() {
    let (server, stores) = one().await;
    let change = Writing { removed: ids("a"), ..writing(1, "east", pair("a", "1Gi")) };
    assert!(matches!(
        stores.write(&change).await.unwrap_err(),
        Error::Contradiction(RecordId::Volume { .. })
    ));
    assert_eq!(server.keys(), [""; 0]);
}

#[tokio::test]
async fn a_manifest_may_say_that_there_was_nothing() {
    let (_server, stores) = one().await;
    all(&stores.write(&writing(1, "east", vec![])).await.unwrap());
    let search = stores.newest(&group()).await;
    assert!(by_manifest(&search).0.is_empty());
    assert!(!search.is_certainly_new());
}

/// Whoever runs a controller moves it between threads.
#[tokio::test]
async fn work_can_move_between_threads() {
    fn moves<T: Send>(work: T) -> T {
        work
    }
    let stores = Stores::new(vec![Profile::unavailable("east", "no secret")], hasty());
    let change = writing(1, "east", vec![]);
    assert_eq!(moves(stores.write(&change)).await.unwrap().kept(), 0);
    assert_eq!(moves(stores.newest(&group())).await.found, Found::Empty);
    moves(stores.delete(&crate::fixture::deletion(1, "east"))).await.unwrap();
}
