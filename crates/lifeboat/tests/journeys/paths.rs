//! Journeys on which users were hurt, written down.

use crate::fleet::Way;
use crate::steps::{Journey, Step};

async fn walk(way: Way, claims: usize, steps: &[Step]) {
    let mut journey = Journey::begin(way, claims).await.unwrap_or_else(|why| panic!("beginning: {why}"));
    for (number, step) in (1..).zip(steps) {
        if let Err(why) = journey.take(*step).await {
            panic!("step {number} of {steps:?}, {way:?}, {claims} PVCs: {why}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn back_and_forth_and_back_again() {
    walk(Way::Copied, 1, &[Step::Failover, Step::Relocate, Step::Failover]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_deleted_and_the_copy_used() {
    walk(Way::Copied, 1, &[Step::DeleteNamespaceThenFailover]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_deleted_and_restored_where_it_was() {
    walk(Way::Copied, 2, &[Step::DeleteNamespaceThenRestore]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_for_backups_is_not_used_for_copies() {
    walk(Way::Copied, 1, &[Step::BrokenSnapshotClass]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mind_is_changed() {
    walk(Way::Mirrored, 1, &[Step::ChangeMind, Step::ChangeMind]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vrg_is_deleted_by_hand() {
    walk(Way::Mirrored, 1, &[Step::Failover, Step::DeleteVrg]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_changes_and_moves() {
    let steps = [Step::Grow, Step::AddClaim, Step::Relocate, Step::Scale, Step::RemoveClaim, Step::Failover];
    walk(Way::Copied, 1, &steps).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirrored_namespace_is_deleted_and_the_copy_used() {
    walk(Way::Mirrored, 1, &[Step::DeleteNamespaceThenFailover, Step::Relocate]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_rebuilt_before_anybody_failed_over() {
    walk(Way::Copied, 1, &[Step::RebuildPrimary]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_is_lost_and_rebuilt() {
    walk(
        Way::Direct,
        1,
        &[Step::LoseHub, Step::EndAndProtect, Step::RebuildHub, Step::LoseHub, Step::RebuildHub],
    )
    .await;
}
