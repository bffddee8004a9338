//! What becomes of a volume whose claim is gone, and the finalizers that keep it until then.

use crate::rules::start;
use crate::things::{VolumeThings, volume};
use lifeboat_binder::words::{EXTERNAL_FINALIZER, IN_TREE_FINALIZER, MIGRATED_TO, PROVISIONED_BY};
use serde_json::json;

#[test]
fn reclaiming() {
    let row = |rule: &str, volume, phase: &str, reason: Option<&str>, writes: usize| {
        let mut model = start().with_volume(volume);
        model.volume_pass("v").unwrap();
        let shown = model.volumes.values().next().unwrap().status.clone().unwrap();
        assert_eq!(shown.phase.as_deref(), Some(phase), "{rule}");
        assert_eq!(model.rest.as_deref(), reason, "{rule}");
        assert_eq!(model.writes.len(), writes, "{rule}");
        let before = model.writes.len();
        model.settle();
        assert_eq!(model.writes.len(), before, "{rule}: a second look writes nothing");
    };
    let v = |policy: &str| volume("v").for_claim("c", "uid-c").in_phase("Bound").policy(policy);
    row("Retain keeps it", v("Retain"), "Released", None, 1);
    row("Delete by CSI is the driver's business", v("Delete").csi("x.io"), "Released", Some("Deleter"), 1);
    row(
        "Delete by who provisioned it",
        v("Delete").noted(PROVISIONED_BY, "x.io/y"),
        "Released",
        Some("Deleter"),
        1,
    );
    row("Delete of what nobody here can delete", v("Delete"), "Failed", Some("NoDeleter"), 1);
    row(
        "Delete of what an in-tree plugin made",
        v("Delete").noted(PROVISIONED_BY, "kubernetes.io/host-path"),
        "Failed",
        Some("NoDeleter"),
        2,
    );
    row(
        "Delete of what was migrated",
        v("Delete").noted(PROVISIONED_BY, "kubernetes.io/gce-pd").noted(MIGRATED_TO, "pd.csi.storage.gke.io"),
        "Released",
        Some("Deleter"),
        1,
    );
    row(
        "going, and kept by storage that nobody here deletes",
        v("Delete").noted(PROVISIONED_BY, "kubernetes.io/host-path").finalizer(IN_TREE_FINALIZER).deleting(),
        "Failed",
        Some("StorageLeft"),
        1,
    );
    row("Recycle is not supported", v("Recycle"), "Failed", Some("NoRecycler"), 1);
    row("an unknown policy", v("Burn"), "Failed", Some("UnknownPolicy"), 1);
}

#[test]
fn finalizers_and_migration_of_volumes() {
    let row = |rule: &str, volume, expected: &[&str], migrated: Option<&str>| {
        let mut model = start().with_volume(volume);
        model.volume_pass("v").unwrap();
        let meta = model.volumes.values().next().unwrap().metadata.clone();
        assert_eq!(meta.finalizers.unwrap_or_default(), expected, "{rule}");
        let noted = meta.annotations.unwrap_or_default().get(MIGRATED_TO).cloned();
        assert_eq!(noted.as_deref(), migrated, "{rule}");
    };
    let v = |by: &str, policy: &str| volume("v").noted(PROVISIONED_BY, by).policy(policy);
    let in_tree = "kubernetes.io/host-path";
    row("in-tree and Delete is guarded", v(in_tree, "Delete"), &[IN_TREE_FINALIZER], None);
    row("in-tree and Retain is not", v(in_tree, "Retain").finalizer(IN_TREE_FINALIZER), &[], None);
    row(
        "a migration taken back",
        v(in_tree, "Delete").finalizer(EXTERNAL_FINALIZER).noted(MIGRATED_TO, "x"),
        &[IN_TREE_FINALIZER],
        None,
    );
    row(
        "migrated",
        v("kubernetes.io/gce-pd", "Delete").finalizer(IN_TREE_FINALIZER),
        &[],
        Some("pd.csi.storage.gke.io"),
    );
    row(
        "external ones keep theirs",
        v("x.io/y", "Delete").finalizer(EXTERNAL_FINALIZER),
        &[EXTERNAL_FINALIZER],
        None,
    );
    row(
        "not provisioned: nothing is touched",
        volume("v").finalizer(EXTERNAL_FINALIZER).policy("Delete"),
        &[EXTERNAL_FINALIZER],
        None,
    );
}

#[test]
fn what_is_said_of_storage_that_nobody_deletes() {
    let row = |rule: &str, volume, expected: &str| {
        let mut model = start().with_volume(volume);
        model.volume_pass("v").unwrap();
        assert_eq!(model.events, [expected], "{rule}");
    };
    let v = || volume("v").for_claim("c", "uid-c").in_phase("Bound").policy("Delete");
    row(
        "made by an in-tree plugin",
        v().noted(PROVISIONED_BY, "kubernetes.io/old"),
        "Warning VolumeFailedDelete no volume plugin matched name: kubernetes.io/old",
    );
    row(
        "made by hand",
        v(),
        "Warning VolumeFailedDelete error getting deleter volume plugin for volume \"v\": no volume plugin matched",
    );
    row(
        "a network share made by hand, which Kubernetes does not delete either",
        v().stored("nfs", &json!({"path": "/", "server": "s"})),
        "Warning VolumeFailedDelete error getting deleter volume plugin for volume \"v\": no deletable volume plugin matched",
    );
    row(
        "going: what is to be done",
        v().noted(PROVISIONED_BY, "kubernetes.io/old").finalizer(IN_TREE_FINALIZER).deleting(),
        "Warning StorageLeftBehind kept by the finalizer kubernetes.io/pv-controller: kubernetes.io/old is not here to delete its \
         storage. Delete the storage by hand, then set persistentVolumeReclaimPolicy to Retain, and the volume goes",
    );
    row(
        "going, and never bound",
        volume("v")
            .policy("Delete")
            .noted(PROVISIONED_BY, "kubernetes.io/old")
            .finalizer(IN_TREE_FINALIZER)
            .deleting(),
        "Warning StorageLeftBehind kept by the finalizer kubernetes.io/pv-controller: kubernetes.io/old is not here to delete its \
         storage. Delete the storage by hand, then set persistentVolumeReclaimPolicy to Retain, and the volume goes",
    );
}
