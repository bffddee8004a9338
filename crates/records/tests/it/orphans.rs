//! The mark of a group that was deleted without the order to end its protection.

use jiff::Timestamp;
use lifeboat_records::{ClusterId, Epoch, Error, Orphan};

use crate::fixture::{Two, deletion, group, group_record, pairs, writing};

fn orphan(epoch: u64) -> Orphan {
    Orphan {
        group: group(),
        epoch: Epoch(epoch),
        cluster: ClusterId("east".into()),
        uid: "u-1".into(),
        time: Timestamp::UNIX_EPOCH,
        volumes: ["pv-a".to_owned()].into(),
    }
}

#[tokio::test]
async fn a_mark_stands_beside_the_records_until_they_are_written_again() {
    let two = Two::start().await;
    let mut all = pairs(&["a"], "1Gi");
    all.push(group_record("2030-01-01T00:00:00Z"));
    assert!(two.stores.write(&writing(3, "east", all.clone())).await.unwrap().everywhere());
    assert_eq!(two.stores.newest(&group()).await.orphan, None);
    assert!(two.stores.orphan(&orphan(3)).await.iter().all(|(_, outcome)| outcome.is_ok()));
    let search = two.stores.newest(&group()).await;
    assert_eq!(search.orphan, Some(orphan(3)));
    assert!(
        matches!(search.found, lifeboat_records::Found::Manifest { .. }),
        "records stay: {:?}",
        search.found
    );
    // Nothing else has changed, and yet the mark goes: whoever writes has a group.
    assert!(two.stores.write(&writing(3, "east", all)).await.unwrap().everywhere());
    assert_eq!(two.stores.newest(&group()).await.orphan, None);
}

#[tokio::test]
async fn a_mark_of_an_earlier_epoch_tells_nothing_and_refuses_nobody() {
    let two = Two::start().await;
    assert!(two.stores.write(&writing(3, "east", pairs(&["a"], "1Gi"))).await.unwrap().everywhere());
    // The other store does not answer at that time.
    assert!(two.only("west").orphan(&orphan(3)).await.iter().all(|(_, outcome)| outcome.is_ok()));
    assert_eq!(two.stores.newest(&group()).await.orphan, Some(orphan(3)));
    assert!(two.stores.write(&writing(4, "west", pairs(&["a"], "1Gi"))).await.unwrap().everywhere());
    assert_eq!(two.stores.newest(&group()).await.orphan, None);
    let late = two.stores.orphan(&orphan(3)).await;
    assert!(late.iter().all(|(_, outcome)| matches!(outcome, Err(Error::Refused { .. }))), "{late:?}");
    // The end of protection takes everything of the group with it.
    assert!(two.stores.orphan(&orphan(4)).await.iter().all(|(_, outcome)| outcome.is_ok()));
    for cleared in two.stores.delete(&deletion(4, "west")).await.unwrap() {
        cleared.outcome.unwrap();
    }
    assert_eq!(two.stores.newest(&group()).await.orphan, None);
}
