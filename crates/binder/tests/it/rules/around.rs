//! Growing, and volumes that live with a pod.

use crate::rules::{check, told};
use crate::things::{ClaimThings, VolumeThings, claim, room, template, volume};
use k8s_openapi::api::core::v1::{EphemeralVolumeSource, Pod, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use lifeboat_binder::ephemeral::{self, PodEffect, PodWorld};
use lifeboat_binder::expand::{self, GrowWorld};
use lifeboat_binder::lean::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_binder::protect;
use lifeboat_binder::words::{PRE_RESIZE_CAPACITY, STORAGE_RESIZER, migrated_to};
use lifeboat_engine::Next;
use lifeboat_testbed::fixtures::{With, pod};
use serde_json::json;
use std::sync::Arc;

fn sized(has: &str, wants: &str) -> PersistentVolumeClaim {
    claim().naming("v").completed().in_phase("Bound").sized(wants).with(|claim| {
        claim.status.as_mut().unwrap().capacity = Some(room(has));
    })
}

fn disk() -> PersistentVolume {
    volume("v").for_claim("c", "uid-c").stored("gcePersistentDisk", &json!({"pdName": "d"}))
}

#[test]
fn growing() {
    let row = |rule: &str, claim, volume: Option<PersistentVolume>, expected: &str| {
        let world =
            GrowWorld { claim: Arc::new(claim), volume: volume.map(Arc::new), migration: migrated_to };
        check(rule, &told(&expand::decide(&world).next, None), expected);
    };
    let csi = || Some(volume("v").for_claim("c", "uid-c").csi("x.io"));
    row("has what it asks for", sized("2Gi", "2Gi"), csi(), "Settled");
    row("has more than it asks for", sized("3Gi", "2Gi"), csi(), "Settled");
    row("asks for more: its driver grows it", sized("1Gi", "2Gi"), csi(), "Wait(External)");
    row(
        "asks for more of what nobody can grow",
        sized("1Gi", "2Gi"),
        Some(volume("v").for_claim("c", "uid-c")),
        "Wait(External)",
    );
    row(
        "was grown and the node has yet to follow",
        sized("2Gi", "2Gi"),
        csi().map(|volume| volume.noted(PRE_RESIZE_CAPACITY, "1Gi")),
        "Wait(External)",
    );
    row("asks for more of a migrated volume", sized("1Gi", "2Gi"), Some(disk()), "Do(NameResizer)");
    row(
        "asks for more of a migrated volume and names its driver",
        sized("1Gi", "2Gi").noted(STORAGE_RESIZER, "pd.csi.storage.gke.io"),
        Some(disk()),
        "Wait(Migrated)",
    );
    row(
        "names another driver",
        sized("1Gi", "2Gi").noted(STORAGE_RESIZER, "x"),
        Some(disk()),
        "Do(NameResizer)",
    );
    row("not bound yet", sized("1Gi", "2Gi").in_phase("Pending"), Some(disk()), "Settled");
    row("its volume is gone", sized("1Gi", "2Gi"), None, "Settled");
    row("its volume is another's", sized("1Gi", "2Gi"), Some(disk().for_claim("c", "uid-old")), "Settled");
}

fn asking() -> Pod {
    pod("ns", "p", &[]).with(|pod| {
        pod.metadata.uid = Some("uid-p".into());
        let template = template(&claim());
        pod.spec.as_mut().unwrap().volumes = Some(vec![Volume {
            name: "s".into(),
            ephemeral: Some(EphemeralVolumeSource { volume_claim_template: Some(template) }),
            ..Volume::default()
        }]);
    })
}

fn owned_by(uid: &str) -> PersistentVolumeClaim {
    claim().with(|claim| {
        claim.metadata.name = Some("p-s".into());
        claim.metadata.owner_references = Some(vec![OwnerReference {
            api_version: "v1".into(),
            kind: "Pod".into(),
            name: "p".into(),
            uid: uid.into(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }]);
    })
}

fn going(pod: Pod, grace: i64) -> Pod {
    pod.with(|pod| {
        pod.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        pod.metadata.deletion_grace_period_seconds = Some(grace);
    })
}

#[test]
fn volumes_that_live_with_a_pod() {
    let decided = |pod: Pod, claim: Option<PersistentVolumeClaim>| {
        let claims = claim.into_iter().map(|claim| ("p-s".to_owned(), Arc::new(claim))).collect();
        ephemeral::decide(&PodWorld { pod: Arc::new(pod), claims }).next
    };
    let row =
        |rule: &str, pod, claim, expected: &str| check(rule, &told(&decided(pod, claim), None), expected);
    row("a claim is made", asking(), None, "Do(CreateClaim)");
    row("it is there", asking(), Some(owned_by("uid-p")), "Settled");
    row("it is of an earlier pod of the name", asking(), Some(owned_by("uid-old")), "Wait(NameTaken)");
    row("it is nobody's", asking(), Some(claim()), "Wait(NameTaken)");
    row("the pod is going", going(asking(), 30), None, "Settled");
    row("a pod that asks for none", pod("ns", "p", &["c"]), None, "Settled");
    let Next::Do(effects) = decided(asking(), None) else { panic!("a claim is made") };
    let [PodEffect::CreateClaim(made)] = effects.as_slice() else { panic!("one claim: {effects:?}") };
    assert_eq!(made.metadata.owner_references, owned_by("uid-p").metadata.owner_references);
    assert_eq!(made.spec, claim().spec);
}

#[test]
fn who_uses_a_claim() {
    let row = |rule: &str, pod: Pod, claim: PersistentVolumeClaim, uses: bool| {
        assert_eq!(protect::uses(&pod, &claim), uses, "{rule}");
    };
    let placed = |pod: Pod| pod.with(|pod| pod.spec.as_mut().unwrap().node_name = Some("n".into()));
    let naming = || pod("ns", "p", &["c"]);
    row("a pod on a node that names it", placed(naming()), claim(), true);
    row("a pod without a node", naming(), claim(), false);
    row("a pod that names another", placed(pod("ns", "p", &["d"])), claim(), false);
    row("a pod of another namespace", placed(pod("other", "p", &["c"])), claim(), false);
    row(
        "a pod that has ended, until it is deleted",
        placed(naming()).with(|pod| pod.status.get_or_insert_default().phase = Some("Succeeded".into())),
        claim(),
        true,
    );
    row("a shut-down pod that names it", going(placed(naming()), 0), claim(), true);
    row("made for a volume of the pod", placed(asking()), owned_by("uid-p"), true);
    row("of the name, and made for another pod", placed(asking()), owned_by("uid-old"), false);
    row("made for a pod that is going", going(placed(asking()), 30), owned_by("uid-p"), true);
    row("made for a pod that is shut down", going(placed(asking()), 0), owned_by("uid-p"), false);
}
