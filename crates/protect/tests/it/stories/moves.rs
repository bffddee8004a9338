//! Moves there and back, judged by what the volumes hold.

use crate::pair::{CONTENT, Pair, cut};
use crate::scene::note;
use lifeboat_api::annotations;
use serde_json::json;

#[tokio::test]
async fn an_application_moves_there_and_back_by_mover_as_often_as_one_likes() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::deployed(&folder.path().display().to_string()).await;
    for n in 0..8 {
        let (from, to) = (n % 2, 1 - n % 2);
        let written = format!("written before move {n}");
        pair.write(from, &written).await;
        // Failover, relocate, relocate, failover: every move follows every other.
        if matches!(n % 4, 0 | 3) {
            pair.copied(to, &written).await;
            assert_eq!(pair.failover(from, to).await, written, "failover {n}");
        } else {
            assert_eq!(pair.relocate(from, to).await, written, "relocation {n}");
        }
    }
}

#[tokio::test]
async fn a_relocation_waits_for_its_last_copy_and_a_failover_tells_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::deployed(&folder.path().display().to_string()).await;
    let (east, west) = (&pair.sides[0], &pair.sides[1]);
    pair.write(0, "second").await;
    pair.copied(1, "second").await;
    // A newer copy is complete at west, and its image does not become ready.
    pair.manner.lock().unready = true;
    pair.write(0, "third").await;
    let look = || async {
        let receiver = west.destinations.get("one").await?;
        let told = receiver.status.unwrap().external.get("unpublished").cloned();
        told.map(drop).ok_or_else(|| lifeboat_testbed::NotYet("nothing is unpublished".into()))
    };
    west.cluster.eventually("a copy that is not published", look).await;
    let epoch = pair.next_epoch();
    pair.withdraw(0, &epoch, "Relocate").await;
    pair.tell(1, &epoch, json!({ "replicationState": "primary", "action": "Relocate" })).await;
    let group = west.blocked("web", "Unpublished").await;
    assert!(group.status.unwrap().blockers[0].message.contains("not published"));
    assert!(west.claims.get_opt("one").await.unwrap().is_none(), "nothing older is taken");
    pair.manner.lock().unready = false;
    assert_eq!(pair.taken_over(1).await, "third");
    let group = west.groups.get("web").await.unwrap();
    let until = group.status.unwrap().protected_pvcs[0].restored_until.clone().unwrap();
    assert_eq!(until.0.to_string(), cut(3), "what was restored is told");
    let (claim, was) =
        (west.claims.get("one").await.unwrap(), east.volumes.list(&Default::default()).await.unwrap());
    assert!(note(&claim, annotations::LINEAGE).is_some_and(|lineage| !lineage.is_empty()));
    assert!(
        was.items.iter().any(|volume| note(volume, CONTENT).as_deref() == Some("third")),
        "east's volume is kept"
    );
}

#[tokio::test]
async fn a_failover_goes_back_to_a_point_and_keeps_what_is_newer() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::deployed(&folder.path().display().to_string()).await;
    let west = &pair.sides[1];
    for content in ["second", "third"] {
        pair.write(0, content).await;
        pair.copied(1, content).await;
    }
    let point = json!({ "metadata": { "annotations": { annotations::TO_POINT: cut(2) } } });
    west.merge(&west.groups, "web", point).await;
    assert_eq!(pair.failover(0, 1).await, "second");
    let newer = west.images.get("one-3").await.unwrap();
    assert_eq!(newer.metadata.labels.unwrap()["volsync.backube/do-not-delete"], "true");
}

#[tokio::test]
async fn a_change_of_mind_ends_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::deployed(&folder.path().display().to_string()).await;
    let (east, west) = (&pair.sides[0], &pair.sides[1]);
    pair.write(0, "second").await;
    pair.copied(1, "second").await;
    assert_eq!(pair.failover(0, 1).await, "second");
    pair.write(1, "third").await;
    pair.copied(0, "third").await;
    // Home, where the restore cannot end, and back again.
    let before = json!({ "metadata": { "annotations": { annotations::TO_POINT: "2000-01-01T00:00:00Z" } } });
    east.merge(&east.groups, "web", before).await;
    let epoch = pair.next_epoch();
    pair.withdraw(1, &epoch, "Failover").await;
    pair.tell(0, &epoch, json!({ "replicationState": "primary", "action": "Failover" })).await;
    let group = east.blocked("web", "PointMissing").await;
    assert!(group.status.unwrap().blockers.iter().any(|one| one.message.contains("there are 2029-12-31")));
    west.gone(&west.claims, "one").await;
    west.state("web", "Secondary").await;
    let epoch = pair.next_epoch();
    pair.withdraw(0, &epoch, "Failover").await;
    pair.tell(1, &epoch, json!({ "replicationState": "primary", "action": "Failover" })).await;
    // Nobody was primary since: what west wrote last is on its own volume.
    assert_eq!(pair.taken_over(1).await, "third");
}
