//! A crash between any two writes is harmless: tried by failing every one of them.

use lifeboat_records::{Check, Found, Settings, Writing};

use crate::fixture::{Two, all, by_manifest, deletion, group, hasty, ids, one, pair, pairs, told, writing};
use crate::server::{Fault, Server};

/// From the n-th request of this method on, everything is refused.
pub(crate) fn die_after(server: &Server, method: &'static str, count: usize) {
    if count > 0 {
        server.plan(method, "/", Fault::Pass, count);
    }
    server.plan(method, "/", Fault::Status(403, "AccessDenied"), 100_000);
}

pub(crate) fn revive(server: &Server) {
    server.state.lock().unwrap().plans.clear();
}

#[tokio::test]
async fn after_a_crash_at_any_put_the_old_or_the_new_set_is_found_whole() {
    let change =
        || Writing { removed: ids("b"), ..writing(1, "east", [pair("a", "2Gi"), pair("c", "1Gi")].concat()) };
    let (old, new) = (vec!["a=1Gi", "b=1Gi"], vec!["a=2Gi", "c=1Gi"]);
    let mut finished = false;
    for method in ["PUT", "DELETE"] {
        for count in 0..40 {
            let (server, stores) = one().await;
            all(&stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
            die_after(&server, method, count);
            let written = stores.write(&change()).await.unwrap();
            finished = written.everywhere();
            revive(&server);
            let search = stores.newest(&group()).await;
            let found = told(by_manifest(&search).0);
            assert!(found == old || found == new, "{method} {count}: {found:?}");
            assert!(!finished || found == new, "{method} {count}: said to be kept");
            assert!(search.damage.is_empty(), "{method} {count}: {:?}", search.damage);
            // The next pass goes on from what lies there.
            let again = Writing { check: Check::ReadBack, ..change() };
            all(&stores.write(&again).await.unwrap());
            assert_eq!(told(by_manifest(&stores.newest(&group()).await).0), new, "{method} {count}");
            let claims: Vec<_> = server.keys().into_iter().filter(|key| key.contains("Claim/")).collect();
            assert_eq!(claims.len(), 2, "{method} {count}: Ramen sees the same: {claims:?}");
            if finished {
                break;
            }
        }
        assert!(finished, "more writes than this test thought: {method}");
    }
}

#[tokio::test]
async fn a_crash_at_any_put_of_the_first_generation_leaves_no_half_set() {
    for count in 0..40 {
        let (server, stores) = one().await;
        die_after(&server, "PUT", count);
        let written = stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap();
        revive(&server);
        let search = stores.newest(&group()).await;
        match &search.found {
            Found::Manifest { records, .. } => assert_eq!(told(records), ["a=1Gi", "b=1Gi"], "{count}"),
            // Before the manifest Ramen's keys may be there already; then they are all there.
            Found::Ramen { records, .. } => assert_eq!(told(records).len(), 2, "{count}"),
            Found::Empty | Found::Unreadable => assert!(!written.everywhere(), "{count}"),
            other => panic!("{count}: {other:?}"),
        }
        all(&stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
        assert_eq!(told(by_manifest(&stores.newest(&group()).await).0), ["a=1Gi", "b=1Gi"], "{count}");
        if written.everywhere() {
            return;
        }
    }
    panic!("more writes than this test thought");
}

#[tokio::test]
async fn s18_a_crash_at_any_step_of_a_sweep_keeps_the_newest_whole() {
    for count in 0..6 {
        let two = Two::with(Settings { keep: 2, ..hasty() }).await;
        for size in 1..=2 {
            all(&two.stores.write(&writing(1, "east", pair("a", &format!("{size}Gi")))).await.unwrap());
        }
        // Sweeping removes many at once, which is a POST.
        die_after(&two.east, "POST", count);
        let written = two.stores.write(&writing(1, "east", pair("a", "3Gi"))).await.unwrap();
        let swept = all(&written)[0].sweep.clone();
        assert_eq!(swept.is_some(), count < 2, "{count}: {swept:?}");
        revive(&two.east);
        let search = two.only("east").newest(&group()).await;
        assert_eq!(told(by_manifest(&search).0), ["a=3Gi"]);
        assert!(search.damage.is_empty());
    }
}

#[tokio::test]
async fn a_deletion_that_died_goes_on_where_it_was() {
    for count in 0..4 {
        let (server, stores) = one().await;
        all(&stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
        die_after(&server, "POST", count);
        die_after(&server, "DELETE", 0);
        let first = stores.delete(&deletion(1, "east")).await.unwrap();
        assert_eq!(first[0].outcome.is_err(), count == 0, "{first:?}");
        revive(&server);
        // From the tombstone on the group is gone, whatever is left of it.
        assert!(matches!(stores.newest(&group()).await.found, Found::Deleted { .. }));
        let second = stores.delete(&deletion(1, "east")).await.unwrap();
        assert!(second[0].outcome.is_ok(), "{second:?}");
        assert_eq!(server.keys(), ["shop/orders/lifeboat/v1/ledger/00000000000000000001/tombstone"]);
    }
}
