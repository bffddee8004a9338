//! Deleting a group, and what comes after.

use bytes::Bytes;
use lifeboat_records::{Epoch, Error, Found, Profile, Settings, Stores};

use crate::fixture::{
    Two, all, as_ramen, bucket, by_manifest, deletion, group, hasty, one, pair, pairs, told, writing,
};
use crate::server::Fault;

fn litter(server: &crate::server::Server) {
    let mut state = server.state.lock().unwrap();
    for key in [
        "kube-objects/0/velero/backups/x/velero-backup.json",
        "kube-objects/1/velero/backups/y/y.tar.gz",
        "v1.PersistentVolumeClaim/old",
        "v1alpha1.VolumeGroupReplication/shop/g",
        "something/nobody/knows",
    ] {
        state.objects.insert(format!("shop/orders/{key}"), Bytes::from_static(b"x"));
    }
    for key in ["shop/orders2/v1.PersistentVolume/x", "shop/order", "other/orders/v1.PersistentVolume/x"] {
        state.objects.insert(key.to_owned(), Bytes::from_static(b"not ours"));
    }
}

#[tokio::test]
async fn everything_below_the_prefix_goes_and_nothing_else() {
    let two = Two::start().await;
    for server in [&two.east, &two.west] {
        litter(server);
        server.state.lock().unwrap().page = 3;
    }
    all(&two.stores.write(&writing(3, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
    as_ramen(&two.east, &pair("stranger", "1Gi"));
    for cleared in two.stores.delete(&deletion(3, "east")).await.unwrap() {
        assert!(cleared.outcome.unwrap() > 10);
    }
    let left = [
        "other/orders/v1.PersistentVolume/x",
        "shop/order",
        "shop/orders/lifeboat/v1/ledger/00000000000000000003/tombstone",
        "shop/orders2/v1.PersistentVolume/x",
    ];
    assert_eq!(
        (two.east.keys(), two.west.keys()),
        (left.map(String::from).into(), left.map(String::from).into())
    );
    // Again is nothing.
    for cleared in two.stores.delete(&deletion(3, "east")).await.unwrap() {
        assert_eq!(cleared.outcome, Ok(0));
    }
}

#[tokio::test]
async fn a_tombstone_keeps_the_old_primary_out_and_a_new_group_may_begin() {
    let two = Two::start().await;
    all(&two.stores.write(&writing(3, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
    for cleared in two.stores.delete(&deletion(3, "east")).await.unwrap() {
        cleared.outcome.unwrap();
    }
    assert_eq!(two.stores.newest(&group()).await.found, Found::Deleted { epoch: Epoch(3) });
    for (epoch, writer) in [(2, "west"), (3, "east"), (3, "west")] {
        let written = two.stores.write(&writing(epoch, writer, pair("a", "1Gi"))).await.unwrap();
        assert!(
            written
                .stores
                .iter()
                .all(|told| matches!(told.outcome, Err(Error::Refused { epoch: Epoch(3), .. }))),
            "{written:?}"
        );
    }
    assert_eq!(two.east.keys().len(), 1);
    all(&two.stores.write(&writing(4, "west", pair("z", "1Gi"))).await.unwrap());
    assert_eq!(
        told(by_manifest(&two.stores.newest(&group()).await).0),
        ["z=1Gi"],
        "nothing of the old group"
    );
    // The one who deleted the old group cannot delete the new one.
    for cleared in two.stores.delete(&deletion(3, "east")).await.unwrap() {
        assert!(matches!(cleared.outcome, Err(Error::Refused { epoch: Epoch(4), .. })), "{cleared:?}");
    }
    for cleared in two.stores.delete(&deletion(4, "west")).await.unwrap() {
        cleared.outcome.unwrap();
    }
    assert_eq!(two.east.keys(), ["shop/orders/lifeboat/v1/ledger/00000000000000000004/tombstone"]);
}

#[tokio::test]
async fn a_store_that_missed_the_deletion_brings_nothing_back() {
    let two = Two::start().await;
    all(&two.stores.write(&writing(3, "east", pair("a", "1Gi"))).await.unwrap());
    for cleared in two.only("east").delete(&deletion(3, "east")).await.unwrap() {
        cleared.outcome.unwrap();
    }
    assert_eq!(two.stores.newest(&group()).await.found, Found::Deleted { epoch: Epoch(3) });
    let late = two.stores.write(&writing(3, "east", pair("a", "1Gi"))).await.unwrap();
    assert_eq!(late.kept(), 0, "{late:?}");
}

#[tokio::test]
async fn d17_a_dead_store_is_named_and_keeps_no_other_from_being_cleared() {
    let two = Two::start().await;
    all(&two.stores.write(&writing(1, "east", pair("a", "1Gi"))).await.unwrap());
    two.east.plan("GET", "/", Fault::Status(403, "AccessDenied"), 1000);
    let cleared = two.stores.delete(&deletion(1, "east")).await.unwrap();
    let Err(Error::Store { store, .. }) = &cleared[0].outcome else { panic!("{cleared:?}") };
    assert_eq!(store, "east");
    assert!(cleared[1].outcome.is_ok(), "the caller can let go of the group where policy says so");
    assert_eq!(two.west.keys().len(), 1);
    let with_unopened = Stores::new(
        vec![Profile::unavailable("gone", "its secret is missing"), Profile::new("west", bucket(&two.west))],
        hasty(),
    );
    let cleared = with_unopened.delete(&deletion(1, "east")).await.unwrap();
    assert!(matches!(cleared[0].outcome, Err(Error::Unavailable { .. })));
    assert_eq!(cleared[1].outcome, Ok(0));
    assert_eq!(Stores::default().delete(&deletion(1, "east")).await.unwrap_err(), Error::NoStores);
}

#[tokio::test]
async fn a_deletion_is_bounded_and_says_what_is_left() {
    let (server, _) = one().await;
    let stores =
        Stores::new(vec![Profile::new("east", bucket(&server))], Settings { deletions: 4, ..hasty() });
    all(&stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
    let mut passes = 0;
    let mut before = usize::MAX;
    loop {
        passes += 1;
        match stores.delete(&deletion(1, "east")).await.unwrap().remove(0).outcome {
            Ok(_) => break,
            Err(Error::Left { left, why: None, .. }) => {
                assert!(left < before, "{left} of {before}");
                before = left;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(passes > 2);
    // One that resists keeps no other, and is named.
    let (server, stores) = one().await;
    all(&stores.write(&writing(1, "east", pairs(&["a", "b"], "1Gi"))).await.unwrap());
    server.plan("POST", "/", Fault::Status(403, "AccessDenied"), 1000);
    server.plan("DELETE", "pv-a", Fault::Status(403, "AccessDenied"), 1000);
    let cleared = stores.delete(&deletion(1, "east")).await.unwrap().remove(0).outcome;
    let Err(Error::Left { left: 1, example, why: Some(_), .. }) = &cleared else { panic!("{cleared:?}") };
    assert_eq!(example, "shop/orders/v1.PersistentVolume/pv-a");
}
